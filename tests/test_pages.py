"""README, docs and captions against the results: tables, numbers, words that compare, verdicts."""

import re
from collections import Counter
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

import pages
import pictures
from ntkcond.artefacts.registry import SPECS
from ntkcond.training.learning_rates import first_epochs
from tables import DEFAULT, ROOT, kept

TEXTS = pages.texts()
MOST = {"README.md": 15, "docs/results.md": 40, "docs/training.md": 30, "docs/when.md": 30}


@pytest.mark.parametrize("page", TEXTS)
def test_tables_and_numbers_of_a_page_are_those_of_the_results(page):
    wrong = pages.differences(page, TEXTS[page])
    assert not wrong, "\n".join([*wrong, "run .venv/bin/python docs/pages.py --write"])


@pytest.mark.parametrize("page", sorted({of.page for of in pages.NUMBERS}))
def test_each_number_with_another_digit_is_found_and_mended(page):
    text, _ = pages.todays(page, TEXTS[page])
    for words in (of.words for of in pages.NUMBERS if of.page == page):
        start, end = pages.place(text, words)
        first = re.search("[1-9]", text[start:end])[0]
        other = text[start:end].replace(first, "7" if first != "7" else "3", 1)
        planted = text[:start] + other + text[end:]
        assert any(other in line for line in pages.differences(page, planted)), words
        assert pages.todays(page, planted)[0] == text


IN_PAGES = [(page, name) for page in TEXTS for _, name, *_ in pages.TABLE.findall(TEXTS[page])]


@pytest.mark.parametrize(("page", "name"), IN_PAGES)
def test_each_table_with_another_cell_is_found_and_mended(page, name):
    text, _ = pages.todays(page, TEXTS[page])
    table = next(match for match in pages.TABLE.finditer(text) if match[2] == name)
    place = table.start(3) + re.search(r"\w+(?=\W*$)", table[3]).start()
    planted = f"{text[:place]}planted {text[place:]}"
    assert any("planted" in line for line in pages.differences(page, planted))
    assert pages.todays(page, planted)[0] == text


@pytest.mark.parametrize(
    ("column", "rows", "said"),
    [("kappa_mean", "depth == 11", "0 values"), ("kappa_mean", "depth == 1", "8 values"),
     ("kapa", "depth == 1", "'kapa' is not defined"), ("kappa_mean", "depth = 1", "assign")],
)  # fmt: skip
def test_a_row_that_gives_no_number_is_named(column, rows, said, monkeypatch):
    of = pages.Number("a.md", "κ is {}", "studies/full_size/fig2.csv", column, rows, "", "")
    monkeypatch.setattr(pages, "NUMBERS", [of])
    [line] = pages.differences("a.md", "κ is 3")
    assert line.startswith("a.md: ") and said in line


def test_pages_can_be_read_and_edited_as_they_are():
    """Few numbers; comments only as lines of their own, around tables."""
    numbers = Counter(of.page for of in pages.NUMBERS)
    assert numbers.total() <= 120 and all(numbers[page] <= MOST[page] for page in MOST)
    text = "\n".join(TEXTS[page] for page in TEXTS if page.endswith(".md"))
    comments = [line for line in text.splitlines() if "<!--" in line]
    assert len(comments) <= 60 and TEXTS["README.md"].count("<!--") <= 4
    assert [line for line in comments if not re.fullmatch(r"<!-- [^>]* -->", line)] == []


# Words that compare: in README and in headlines.


FIG2, WHOLE, OTHERS = (
    "studies/full_size/fig2",
    "studies/whole/fig_whole",
    f"{DEFAULT}/fig_architectures",
)
RELU, LINEAR = "activation == 'relu'", "activation == 'linear'"
EVOLUTION, RESULTS = f"{DEFAULT}/fig_evolution", "docs/measured/results"
TABLE_1 = "studies/table_1/table_generalization"
WHEN = "studies/when/fig_when_data"
FIGURE_3, BEST = "studies/figure_3/table_epochs", "rate_for == 'depth'"
SPEECH = "dataset == 'librispeech' and rate_for == 'depth' and threshold == 1"
# Each number of the first rows is below its number of the second: file, then `column: rows`.
SAID = [
    ("README.md", "ReLU lowers κ, and depth", FIG2,
     f"kappa_mean: {RELU} and depth > 0",
     f"kappa_mean: {LINEAR} and depth > 0"),
    ("README.md", "depth lowers it further", FIG2,
     f"kappa_mean: {RELU} and depth == 10",
     f"kappa_mean: {RELU} and depth == 1"),
    ("README.md", "κ of linear networks of width 512 grows", FIG2,
     f"kappa_mean: {LINEAR} and depth == 0 and dataset == 'mnist'",
     f"kappa_mean: {LINEAR} and depth == 10 and dataset == 'mnist'"),
    ("README.md", "one ReLU layer raises κ of 500", RESULTS,
     "value: quantity == 'isotropic, κ₀'",
     "value: quantity == 'isotropic, κ at L = 1'"),
    ("README.md", "each feature it lowers κ", RESULTS,
     "value: quantity == 'offset, κ at L = 1'",
     "value: quantity == 'offset, κ₀'"),
    ("docs/results.md", "the larger smallest angle", FIG2,
     f"min_angle_deg_mean: {LINEAR} and depth > 0",
     f"min_angle_deg_mean: {RELU} and depth > 0"),
    ("docs/results.md", "the smaller κ, on all four", FIG2,
     f"kappa_mean: {RELU} and depth > 0",
     f"kappa_mean: {LINEAR} and depth > 0"),
    ("docs/results.md", "κ falls from L = 1 to 10. Not on all", FIG2,
     f"kappa_mean: {RELU} and depth == 10",
     f"kappa_mean: {RELU} and depth == 1"),
    ("docs/results.md", "at infinite width κ falls with every layer", FIG2,
     f"infinite_kappa_mean: {RELU} and depth > 1",
     f"infinite_kappa_mean: {RELU} and 0 < depth < 10"),
    ("docs/results.md", "At m = 512 it rises with the tenth", FIG2,
     f"kappa_mean: {RELU} and depth == 9",
     f"kappa_mean: {RELU} and depth == 10"),
    ("docs/results.md", "At m = 512 κ grows", FIG2,
     f"kappa_mean: {LINEAR} and depth == 0 and dataset != 'synthetic'",
     f"kappa_mean: {LINEAR} and depth == 10 and dataset != 'synthetic'"),
    ("docs/results.md", "κ is smaller at L = 10 than at L = 3", WHOLE,
     f"kappa_mean: {RELU} and depth == 10",
     f"kappa_mean: {RELU} and depth == 3"),
    ("docs/results.md", "The smallest angle is larger, except for", WHOLE,
     f"min_angle_deg_mean: {RELU} and depth == 3 and source != 'fashion_mnist'",
     f"min_angle_deg_mean: {RELU} and depth == 10 and source != 'fashion_mnist'"),
    ("docs/results.md", "**κ grows with n**", WHOLE,
     f"kappa_mean: {RELU} and depth > 0 and source == 'mnist' and n == 512",
     f"kappa_mean: {RELU} and depth > 0 and source == 'mnist' and n == 60000"),
    ("docs/results.md", "ReLU lowers κ in all of them", OTHERS,
     f"kappa_median: {RELU} and depth > 0",
     f"kappa_median: {LINEAR} and depth > 0"),
    ("docs/results.md", "At L = 8 κ is larger than at L = 1 in residual", OTHERS,
     f"kappa_median: {RELU} and depth == 1 and architecture == 'residual'",
     f"kappa_median: {RELU} and depth == 8 and architecture == 'residual'"),
    ("docs/results.md", "The NTK changes more at depth", EVOLUTION,
     "change_mean: width == 512 and step == 200 and depth == 1",
     "change_mean: width == 512 and step == 200 and depth == 10"),
    ("docs/training.md", "The deepest network is less accurate than L = 1", TABLE_1,
     "test_accuracy_percent_mean: depth == 12",
     "test_accuracy_percent_mean: depth == 1"),
    ("docs/training.md", "To 0.01 and to 0.001 L = 10 takes the fewest epochs", FIGURE_3,
     f"epochs_least: {BEST} and threshold <= 0.01 and depth == 10",
     f"epochs_least: {BEST} and threshold <= 0.01 and depth == 5"),
    *(("docs/training.md", "At the best rates L = 4 to 9 take fewer than L = 1 to 3", FIGURE_3,
       f"epochs_least: {BEST} and threshold == {loss} and 4 <= depth <= 9",
       f"epochs_least: {BEST} and threshold == {loss} and depth == {fewest}")
      for loss, fewest in ((0.01, 2), (0.001, 3))),
    ("docs/training.md", "In operations L = 1 is the cheapest to 0.01", FIGURE_3,
     f"tflop_mean: {BEST} and threshold == 0.01 and depth == 1",
     f"tflop_mean: {BEST} and threshold == 0.01 and depth == 10"),
    ("README.md", "ReLU mostly lowers κ if κ of the matrix of their cosines is above", WHEN,
     "kappa: input_kappa > lowers_above", "input_kappa: input_kappa > lowers_above"),
    ("docs/when.md", "Below the limit, ReLU mostly raises κ", WHEN,
     "input_kappa: input_kappa < lowers_above", "kappa: input_kappa < lowers_above"),
    ("README.md", "to 0.001 the shallowest is the slowest", TABLE_1,
     "last_epoch_mean: depth > 1", "last_epoch_mean: depth == 1"),
    ("README.md", "deeper networks do not always train [faster]", "studies/small/table_epochs",
     f"epochs_mean: {SPEECH} and depth == 1", f"epochs_mean: {SPEECH} and depth == 10"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "words", "csv", "first", "second"), SAID)
def test_words_that_compare_are_true(page, words, csv, first, second):
    is_there = re.search(r"\s+".join(map(re.escape, words.split())), TEXTS[page])
    assert is_there, (
        f"{page} says no longer: {words}. SAID in tests/test_pages.py holds these words"
    )
    below, above = (
        kept(csv).query(rows)[column].to_numpy()
        for column, _, rows in (side.partition(": ") for side in (first, second))
    )
    true = len(below) >= len(above) > 0 and (below < above).all()
    assert true, f"{page} says: {words}. Not so in {csv}.csv"


def test_pages_say_whether_deeper_is_faster():
    verdicts = kept("studies/figure_3/table_depth").set_index("threshold").verdict
    row = re.search(r"^\| MNIST, \[so far\]\(.*?\) \| (.*) \| (.*) \|$", TEXTS["README.md"], re.M)
    assert row and row.groups() == (verdicts[0.1], verdicts[0.01])
    for page, sentence in (
        ("docs/training.md", "At the paper's size, on MNIST"),
        ("docs/training.md", "The preliminary verdict"),
        ("paper/paper.md", "on all of MNIST (ten depths, three seeds)"),
    ):
        said = TEXTS[page].replace("\n", " ").partition(sentence)[2].partition(". ")[0]
        for loss, verdict in verdicts.items():
            assert f"*{verdict.removesuffix(' in general')}* to {loss}" in said


def test_the_deepest_network_of_figure_3_is_the_first_at_any_rate_tried():
    """Runs that do not get there count one epoch more than they were trained."""
    assert "L = 10 takes the fewest epochs** of [all rates tried]" in TEXTS["docs/training.md"]
    runs = pd.read_csv(ROOT / "studies/figure_3/training.csv.gz")
    first = first_epochs(runs, [0.01, 0.001])
    first = first.assign(least=first["first"].fillna(first.epochs_trained + 1))
    means = first.groupby(["threshold", "depth", "learning_rate"]).least.mean()
    assert len(means) == 2 * 10 * 3
    for _, of in means.groupby("threshold"):
        assert of.idxmin()[1] == 10


# Files


def test_every_measured_number_has_its_command():
    text = TEXTS["docs/measured/README.md"]
    for folder in ("tests/reference/default", "tests/reference/images"):
        assert f"| `{folder}/*.csv` | `make " in text
    for path in (ROOT / "docs/measured").glob("*.csv"):
        assert pd.read_csv(path)[["command", "when"]].notna().all(axis=None), path


def test_the_files_of_codecheck_are_kept_or_targets():
    files = yaml.safe_load((ROOT / "codecheck.yml").read_text("utf-8"))["manifest"]
    for path in (ROOT / one["file"] for one in files):
        assert path.exists() or (path.parent.name == "results" and path.stem in SPECS), path


@pytest.mark.parametrize("name", pictures.NAMES)
def test_a_picture_is_drawn_of_the_numbers_that_pages_state(name):
    assert pictures.is_todays(name), "python docs/pages.py --write draws it anew"


def test_a_picture_of_other_numbers_or_code_is_found(tmp_path, monkeypatch):
    name = pictures.NAMES[0]
    numbers = (pictures.NUMBERS / f"{name}.csv").read_text("utf-8")
    (tmp_path / f"{name}.csv").write_text(numbers + "\n", "utf-8")
    with monkeypatch.context() as planted:
        planted.setattr(pictures, "NUMBERS", tmp_path)
        assert not pictures.is_todays(name)
    other = SimpleNamespace(digests=lambda *modules: {"artefacts.style": "0" * 16})
    monkeypatch.setattr(pictures, "CODE", other)
    assert not pictures.is_todays(name)
