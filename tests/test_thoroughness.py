"""`pytest --thorough`: its numbers reach the tests, also in workers; a variable overrules."""

import re
import subprocess
import sys

import pytest

import thoroughness
from thoroughness import how_many
from workflow import ROOT


@pytest.mark.parametrize("case", range(how_many("EXAMPLES", few=1, thorough=2)))
def test_example(case):
    assert case >= 0


def test_a_thorough_run_tries_more():
    """Also in a worker."""
    options = ["--thorough", "--numprocesses", "1", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/test_thoroughness.py", "-k", "example"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert re.findall(r"(\d+) passed", done.stdout) == ["2"], done.stdout + done.stderr


@pytest.mark.parametrize("asked", [False, True])
def test_a_variable_overrules_both_numbers(asked, monkeypatch):
    monkeypatch.setattr(thoroughness, "asked", asked)
    assert how_many("NUMBER", few=1, thorough=2) == 1 + asked
    monkeypatch.setenv("NTKCOND_TEST_NUMBER", "3")
    assert how_many("NUMBER", few=1, thorough=2) == 3
