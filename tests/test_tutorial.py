"""The tutorial of docs/library.md: its numbers, by its script; the lines that pages show."""

import importlib.util
import re
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

from workflow import ROOT


def test_the_numbers_of_the_tutorial_are_those_of_its_script(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("tutorial", ROOT / "docs/examples/tutorial.py")
    tutorial = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tutorial)
    monkeypatch.setattr(tutorial, "HERE", tmp_path)
    numbers = tutorial.main()
    stated = pd.read_csv(ROOT / "docs/measured/tutorial.csv").set_index("quantity").value
    assert len(numbers) == len(stated)
    for name, value in numbers.items():
        # training adds up rounding, by other threads and processors in another order; an error is
        # estimated from it
        rel = 0.5 if name.startswith("error") else 1e-3
        assert value == pytest.approx(stated[f"tutorial, {name}"], rel=rel), name
    assert (tmp_path / "tutorial.png").stat().st_size > 10_000


NUMBER = r"-?\d+\.?\d*(?:e[+-]\d+)?"
STATED = re.compile(rf"(κ > |κ = |from |to )?({NUMBER})( to |(?: ± )({NUMBER}|inf))?")


def assert_printed(shown: str, printed: str) -> None:
    """The same words; numbers as another machine may print them. With ±, they agree within both
    errors; errors, and bounds that follow from them, are estimates: within a factor of 3."""
    assert re.sub(NUMBER, "#", shown) == re.sub(NUMBER, "#", printed)
    for page, today in zip(STATED.finditer(shown), STATED.finditer(printed), strict=True):
        value, todays = float(page[2]), float(today[2])
        if page[1] == "κ > " or page[3] == " to ":
            assert value / 3 < todays < value * 3, page[0]
            continue
        errors = [float(found[4] or 0) for found in (page, today)]
        assert abs(todays - value) <= 1e-5 * abs(value) + sum(errors), page[0]
        assert errors[0] == errors[1] or errors[0] / 3 < errors[1] < errors[0] * 3, page[0]


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_lines_that_a_page_shows_run_as_they_stand(page):
    shows = r"```python\n(import torch, ntkcond\n.*?)```\n\nprints\n\n    (κ = .*?)\n"
    code = re.search(shows, (ROOT / page).read_text("utf-8"), re.S)
    done = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_printed(code[2], done.stdout.strip())


PAGE = (ROOT / "docs/answers.md").read_text("utf-8")
ANSWERS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}


@pytest.mark.parametrize("question", ANSWERS)
def test_each_answer_prints_what_it_shows(question, capsys):
    [(code, shown)] = re.findall(
        r"^```python\n(.*?)^```\n\n((?:    [^\n]+\n)+)", ANSWERS[question], re.M | re.S
    )
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(code, {})
    assert_printed(textwrap.dedent(shown).strip(), capsys.readouterr().out.strip())


EXAMPLES = {  # of docs/examples: a line that each prints
    "condition_number": r"^κ > .*: λ_min is lost in rounding, unresolved",
    "training": r"^width 2048, step 300: loss 0\.\d+, κ = \S+ ± \S+, K moved by \d %$",
    "prediction": r"^predicted  0\.\d+ ± \de-\d+, trained  0\.\d+$",
    "labels": r"^linear: alignment 0\.\d+, complexity \d+\.\d$",
    "large": r"^λ_max ExtremeEigenvalue",
    "two_inputs": r"^image weights: κ = .* resolved",
    "torch_tutorial": r"^largest difference: \de-1[1-9]\nκ = .* resolved",
    "encoder": r"^LoRA: κ = .* resolved",
    "resnet": r"^κ = .* resolved",
}
NEEDS = {"encoder": "transformers", "resnet": "timm"}
BESIDE = "import ntkcond.datasets.torchvision_data"  # which timm and transformers import
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_runs_and_prints_what_it_is_about(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    run = f"{BESIDE}; {RUN}" if name in NEEDS else RUN
    script = ROOT / f"docs/examples/{name}.py"
    done = subprocess.run([sys.executable, "-c", run, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(EXAMPLES[name], done.stdout, re.M), done.stdout
    assert not done.stderr


def test_every_example_is_tried_and_on_the_page():
    names = {path.stem for path in (ROOT / "docs/examples").glob("*.py")}
    page = (ROOT / "docs/library.md").read_text("utf-8")
    assert names == {*EXAMPLES, "tutorial"}
    assert all(f"examples/{name}.py" in page for name in names)
