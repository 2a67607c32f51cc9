"""The tutorial of docs/library.md: its numbers, by its script; the lines that pages show."""

import importlib.util
import re
import subprocess
import sys

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


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_lines_that_a_page_shows_run_as_they_stand(page):
    shows = r"```python\n(import torch, ntkcond\n.*?)```\n\nprints\n\n    (κ = .*)\n"
    code = re.search(shows, (ROOT / page).read_text("utf-8"), re.S)
    done = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = code[2].partition("\n")[0]
    number = r"\d+\.?\d*(?:e[+-]\d+)?"
    assert re.sub(number, "#", shown) == re.sub(number, "#", done.stdout.strip())
    (*values, error), (*todays, todays_error) = (
        [float(n) for n in re.findall(number, text)] for text in (shown, done.stdout)
    )
    assert todays == pytest.approx(values, rel=1e-5)
    assert error / 3 < todays_error < error * 3


EXAMPLES = {  # of docs/examples: a line that each prints
    "condition_number": r"^κ > .*: λ_min is lost in rounding, unresolved",
    "training": r"^width 2048: loss 0\.\d+, κ \d+ → \d+, K moved by \d %$",
    "prediction": r"^predicted  0\.\d+ ± \de-\d+, trained  0\.\d+$",
    "labels": r"^linear: alignment 0\.\d+, complexity \d+\.\d$",
    "large": r"^λ_max ExtremeEigenvalue",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_runs_and_prints_what_it_is_about(name):
    script = ROOT / f"docs/examples/{name}.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(EXAMPLES[name], done.stdout, re.M), done.stdout
    assert not done.stderr


def test_every_example_is_tried_and_on_the_page():
    names = {path.stem for path in (ROOT / "docs/examples").glob("*.py")}
    page = (ROOT / "docs/library.md").read_text("utf-8")
    assert names == {*EXAMPLES, "tutorial"}
    assert all(f"examples/{name}.py" in page for name in names)
