"""README, docs and captions against the results: verdicts and numbers that the texts state.

The results are those of tests/reference, which `test_reference` holds against a run of the default
config.
"""

import re

import pandas as pd
import pytest

from ntkcond.artefacts.claims import CLAIMS, SPEC
from ntkcond.artefacts.claims.claim import OURS, VERDICTS
from ntkcond.artefacts.registry import SPECS
from workflow import ROOT

REFERENCE = ROOT / "tests/reference/default"
RESULTS = (ROOT / "docs/results.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def verdicts() -> pd.Series:
    return pd.read_csv(REFERENCE / "claims.csv").set_index("id").overall


@pytest.fixture(scope="module")
def counts(verdicts) -> dict[str, int]:
    return dict(verdicts[~verdicts.index.str.startswith(OURS)].value_counts())


def test_every_claim_has_a_verdict(verdicts):
    assert set(verdicts.index) == {claim.id for claim in CLAIMS}
    assert set(verdicts) <= set(VERDICTS)


def test_the_counts_of_the_docs_are_those_of_the_results(counts):
    stated = {
        verdict: int(count)
        for verdict, count in re.findall(
            r"^\| ([a-z ]+?)(?: \(.*\)|:.*)? \| (\d+) \|$", RESULTS, re.M
        )
    }
    assert stated == counts
    assert f"Of {sum(counts.values())} claims, on the default config" in RESULTS


def test_the_counts_of_the_readme_are_those_of_the_results(counts):
    words = re.search(r"the paper's (\d+) claims[^:]*: (.*?)\.", README, re.S)
    assert int(words[1]) == sum(counts.values())
    stated = {
        verdict: int(count)
        for verdict, count in re.findall(r"\*([^*]+)\* (\d+)", " ".join(words[2].split()))
    }
    assert stated == counts


def test_the_verdicts_that_the_docs_name_are_those_of_the_results(verdicts):
    section = RESULTS.split("### Verdicts that changed")[1].split("###")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert rows
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row[0]):
            if row[2] != "–":
                assert verdicts[name].startswith(row[2].split(",")[0]), name
    for name in re.findall(r"`((?:newest|ours|\d)[^`]*)`", section):
        assert name in verdicts.index or name == "newest-rest", name


def test_kappa_in_the_readme_is_that_of_figure_2():
    table = pd.read_csv(REFERENCE / "fig2.csv")
    kappa = table[table.dataset == "digits"].set_index(["activation", "depth"]).kappa_mean
    stated = re.search(
        r"from ([\d,]+) at L = 0\s+to ([\d,]+)\s+at L = 1 and ([\d,]+) at L = 10"
        r".*?([\d,]+) at L = 10", README, re.S,
    )  # fmt: skip
    points = [("relu", 0), ("relu", 1), ("relu", 10), ("linear", 10)]
    for words, point in zip(stated.groups(), points, strict=True):
        assert float(words.replace(",", "")) == pytest.approx(kappa[point], rel=5e-3), point


def test_the_places_of_disagreement_are_counted_alike():
    numbers = sorted({claim.difference for claim in CLAIMS if claim.difference})
    assert numbers == [*range(1, 12), 13]
    assert "1 to 13; 12 was" in " ".join(SPEC.caption.split())
    everything = [RESULTS, README, *(spec.caption for spec in SPECS.values())]
    assert not any("twelve places" in text for text in everything)


def test_no_text_says_that_the_scales_of_figure_6_differ():
    for text in (RESULTS, README, SPECS["fig_weight_scale"].caption):
        assert "four different curves" not in text
