"""`make gpu` at small size: killed at any moment, it loses the part in progress and no more."""

import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from workflow import ROOT

PARTS = ("kernel", "spectra")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def command(folder: Path, *arguments: str) -> list[str]:
    program = [sys.executable, str(ROOT / "benchmarks/gpu.py"), "--small"]
    places = ["--output", str(folder / "out"), "--page", str(folder / "gpu.md")]
    places += ["--table", str(folder / "gpu.csv")]
    return [*program, *places, "--parts", *PARTS, *arguments]


def run(folder: Path, *arguments: str) -> str:
    """What it printed."""
    done = subprocess.run(
        command(folder, *arguments), env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kill_during(part: str, folder: Path) -> None:
    """Kills the caller alone; the part has to find out."""
    log = folder / f"out/parts/{part}.log"
    process = psutil.Popen(command(folder), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    while not (log.exists() and process.children()):
        assert process.poll() is None
        time.sleep(0.01)
    workers = process.children()
    process.kill()
    process.wait()
    assert psutil.wait_procs(workers, timeout=30)[1] == []


def test_a_killed_run_keeps_its_finished_parts_and_the_next_call_continues(tmp_path):
    kill_during("spectra", tmp_path)
    assert not (tmp_path / "out/parts/spectra.json").exists()
    page = (tmp_path / "gpu.md").read_text("utf-8")
    assert "## Kernels" in page and "- Spectra: not reached." in page
    finished = (tmp_path / "out/parts/kernel.json").stat().st_mtime_ns

    assert "finished" in run(tmp_path)
    assert (tmp_path / "out/parts/kernel.json").stat().st_mtime_ns == finished
    page = (tmp_path / "gpu.md").read_text("utf-8")
    for words in ("## Kernels", "## Spectra", "| agrees |", "- Training: not asked for."):
        assert words in page
    assert "differs" not in page
    assert {line.split(",")[0] for line in (tmp_path / "gpu.csv").open()} == {"part", *PARTS}


def test_what_does_not_fit_in_the_time_is_named(tmp_path):
    run(tmp_path, "--minutes", "0.1")
    page = (tmp_path / "gpu.md").read_text("utf-8")
    assert "- Kernels: takes some 15 s, 0 s were left." in page


def test_the_page_of_a_gpu_is_that_of_its_table():
    page = ROOT / "docs/gpu.md"
    if not page.is_file():
        pytest.skip("no GPU was measured")
    gpu = runpy.run_path(str(ROOT / "benchmarks/gpu.py"))
    for _, rows in pd.read_csv(ROOT / "docs/measured/gpu.csv").groupby("part"):
        assert gpu["as_markdown"](rows) in page.read_text("utf-8")
