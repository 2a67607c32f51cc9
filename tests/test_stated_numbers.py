"""README, docs and captions against the results: the numbers and the verdicts that the texts state.

docs/measured/README.md lists the statements, and says how to add one. The results of the default
config are those of tests/reference, which `test_reference` holds against a run.
"""

import re

import pandas as pd
import pytest

from measured import MEASURED, STATEMENTS, Values, statements, table, values
from ntkcond.artefacts import claims, theory
from ntkcond.artefacts.verdicts.claim import VERDICTS
from prose import ROOT, Quantity, agrees, find, pages, problems

PAGES = pages()
CLAIMS = [*theory.CLAIMS, *claims.CLAIMS]
CLAIMS_PAGE = (ROOT / "docs/claims.md").read_text("utf-8")


def problems_of(page: str, text: str, **changed) -> list[str]:
    stated, no_results = statements().get(page, ([], []))
    return [*problems(stated, no_results, Values({**values(), **changed}), text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_was_measured_or_is_no_result(page):
    wrong = problems_of(page, PAGES[page])
    assert not wrong, "\n".join([*wrong, "docs/measured/README.md says how to state a number"])


def test_statements_are_of_pages_that_exist():
    assert not set(statements()) - set(PAGES)


@pytest.mark.parametrize("page", [page for page in PAGES if statements().get(page, [[]])[0]])
def test_a_wrong_number_is_found(page):
    """The last number of a page's first and of its last statement, with another first digit."""
    stated, _ = statements()[page]
    text = PAGES[page]
    for words in (stated[0], stated[-1]):
        start, end = find(words, values(), text)[0].spans[-1]
        digit = re.search(r"\d", text[start:end])[0]
        planted = text[start:end].replace(digit, "7" if digit != "7" else "3", 1)
        assert problems_of(page, text[:start] + planted + text[end:]), planted


@pytest.mark.parametrize(
    "words",
    [
        "The export takes 12 s.",
        "It takes a minute and 12 s for 3 images.",
        "Each job takes 3.5 GB of memory.",
        "It is 2.5 times as fast.",
        "It is three times as fast.",
        "It ends after half an hour.",
        "κ is 105 on the digits.",
        "κ falls from 532 at L = 0 to 105 in the limit.",
        "At L = 1 and 0.0021 κ₀ it is lower.",
        "The smallest angle is 13.2°.",
        "p = 0.51.",
        "Of them 98 % hold.",
        "It reaches 164 Gflop/s.",
        "There are 2,100 tests in 12 files.",
        "They agree within 2·10⁻¹⁵.",
        "κ ≈ 10⁹.",
    ],
)
@pytest.mark.parametrize("page", ["README.md", "caption of fig2"])
def test_a_number_without_a_statement_is_found(page, words):
    assert problems_of(page, f"{PAGES[page]} {words}")


@pytest.mark.parametrize(
    "words",
    [
        "With n = 512, L = 1 to 10 and m = 64, 128 or 256 on 2,048 images.",
        "See Figure 2, §5.2, Theorem 3.5 and Eq. (10) of arXiv 2305.08813 (2023).",
        "The inputs are in [−1, 1], of norm 1, and (n + 3)/3 is the limit.",
        "Five seeds at depths 0 to 10, with 8 n² bytes in float64.",
    ],
)
def test_settings_need_no_statement(words):
    assert not problems_of("caption of fig2", f"{PAGES['caption of fig2']} {words}")


def test_another_measurement_is_found():
    assert problems_of("docs/claims.md", PAGES["docs/claims.md"], claims=values()["claims"] + 1)


def test_a_statement_that_the_page_no_longer_makes_is_found():
    assert problems_of("docs/claims.md", PAGES["docs/claims.md"].replace("claims", "statements"))


@pytest.mark.parametrize(
    ("stated", "value", "same"),
    [
        ("4 s", Quantity(3.987, "s"), True),
        ("3.99 s", Quantity(3.987, "s"), True),
        ("3.98 s", Quantity(3.987, "s"), False),
        ("3 min 58 s", Quantity(238.4, "s"), True),
        ("532,000", 531_900.0, True),
        ("532,000", 536_000.0, False),
        ("63 %", 0.6327, True),
        ("63 MB", Quantity(63, "s"), False),
        ("1.9·10⁻⁴", 0.0001936, True),
        ("10⁶", 10_000_000, False),
        ("half an hour", Quantity(30, "min"), True),
        ("−0.58", 0.58, False),
    ],
)
def test_a_stated_number_is_the_measured_one_rounded(stated, value, same):
    assert agrees(stated, value) == same


def test_every_csv_names_its_command():
    text = STATEMENTS.read_text("utf-8")
    assert "| `tests/reference/default/*.csv` | `make figures` |" in text
    here = {path.name for path in MEASURED.glob("*.csv")}
    for path in here | set(re.findall(r"\{(\S+/\S+\.csv):", text.partition("\n## ")[2])):
        folder = path.rpartition("/")[0]
        by_folder = f"| `{folder}/*.csv` | `" in text
        assert by_folder or table(path)[["command", "when"]].notna().all(axis=None), path


# Verdicts


@pytest.fixture(scope="module")
def verdicts() -> pd.Series:
    return table("claims.csv").set_index("id").overall


def test_every_claim_has_a_verdict(verdicts):
    assert set(verdicts.index) == {claim.id for claim in CLAIMS}
    assert set(verdicts) <= set(VERDICTS)


def test_the_verdicts_that_the_docs_name_are_those_of_the_results(verdicts):
    section = CLAIMS_PAGE.split("## Verdicts that changed")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert rows
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row[0]):
            if row[2] != "–":
                assert verdicts[name].startswith(row[2].split(",")[0]), name
    for name in re.findall(r"`((?:newest|ours|\d)[^`]*)`", section):
        assert name in verdicts.index or name == "newest-rest", name


def test_no_text_says_that_relu_lowers_kappa_of_all_data():
    """Each place where a text says so names the data, or what does not hold."""
    said = re.compile(
        r"ReLU (?:always |only )?(?:lowers|reduces|improves|decreases) (?:the |κ)", re.I
    )
    for name, text in PAGES.items():
        for sentence in re.split(r"(?<=[.:!?]) ", text):
            if said.search(sentence):
                limits = (
                    "on these data",
                    "images and speech",
                    "does not",
                    "same samples",
                    "says that",
                    "if κ of their cosines is above",
                    "with β ≥ 1",
                    "where that of the inputs is above",
                )
                assert any(words in sentence.lower() for words in map(str.lower, limits)), (
                    name,
                    sentence,
                )


def test_the_places_of_disagreement_are_counted_alike():
    numbers = sorted({claim.difference for claim in CLAIMS if claim.difference})
    assert numbers == [*range(1, 12), 13, 14]
    assert "1 to 14; 12 was" in PAGES["caption of claims"]
    assert not any("twelve places" in text for text in PAGES.values())


def test_no_text_says_that_the_scales_of_figure_6_differ():
    assert not any("four different curves" in text for text in PAGES.values())
