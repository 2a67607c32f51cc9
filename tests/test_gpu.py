"""`benchmarks/gpu.sh`, which nobody can try on a GPU first: without one, at small size."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from workflow import ROOT

SCRIPT = ROOT / "benchmarks/gpu.sh"
STEPS = re.search(r"^ALL='(.*)'$", SCRIPT.read_text("utf-8"), re.M)[1].split()
STUB = """#!/bin/sh
[ "$1" = -c ] && exit
[ "$2" = "$FAILS" ] && exit 1
echo "$HEAD" >$WORK/$2.csv; echo "$2,a,1,,,,,agrees,," >>$WORK/$2.csv
[ "$2" = "$DIES" ] && kill -9 $$
exit 0
"""
HEAD = "step,case,seconds,gflops,share,difference,tolerance,verdict,gpu_gb,result"


def run(folder: Path, python: Path | str, **environment: str) -> tuple[int, pd.DataFrame, str]:
    """Its exit status, its table, and what it printed."""
    settings = {"WORK": folder / "work", "OUT": folder / "out", "PYTHON": python, "DATA": ""}
    settings |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "SMALL": "1", **environment}
    settings = {name: str(value) for name, value in settings.items()}
    with (folder / "printed").open("w+") as file:
        done = subprocess.run(
            ["bash", SCRIPT], env={**os.environ, **settings}, stdout=file, stderr=file, check=False
        )
        file.seek(0)
        printed = file.read()
    return done.returncode, pd.read_csv(folder / "out/gpu.csv"), printed


def test_every_step_runs_and_agrees_with_the_cpu(tmp_path):
    status, table, printed = run(tmp_path, sys.executable)
    assert status == 0, printed
    assert ("no GPU: CPU at small size" in printed) != torch.cuda.is_available()
    assert list(table.step.unique()) == STEPS
    assert {"machine", "kernels", "spectra", "pairs", "training", "whole"} == {
        *table.step[table.verdict == "agrees"]
    }
    assert (tmp_path / "out/figure_3.tgz").is_file()


@pytest.fixture
def stub(tmp_path) -> Path:
    """In place of Python: each step has one row."""
    path = tmp_path / "python"
    path.write_text(STUB)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_the_others(step, stub, tmp_path):
    status, table, _ = run(tmp_path, stub, FAILS=step, HEAD=HEAD)
    assert status == 1
    expected = {name: "failed" if name == step else "agrees" for name in STEPS}
    assert list(zip(table.step, table.verdict, strict=True)) == list(expected.items())


def test_a_step_that_is_killed_leaves_its_rows(stub, tmp_path):
    status, table, _ = run(tmp_path, stub, DIES="whole", HEAD=HEAD)
    assert status == 1
    assert list(table.step) == sorted([*STEPS, "whole"], key=STEPS.index)
    assert list(table.verdict[table.step == "whole"]) == ["agrees", "cut off"]
    assert (table.verdict[table.step != "whole"] == "agrees").all()


def test_what_does_not_fit_in_the_time_is_named(tmp_path):
    status, table, _ = run(tmp_path, sys.executable, LIMIT="0")
    assert status == 1
    assert list(table.step) == STEPS
    assert set(table.verdict) == {"not begun"}
