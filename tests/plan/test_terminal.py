"""The terminal of a run that failed or was stopped, as a user sees it."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest

from workflow import (
    at_the_keyboard,
    command,
    copy_of_the_project,
    environment,
    snakemake,
    write_config,
)

LOG = "results/logs/dataset/mine.log"
TRAINED = "results/training/digits/depth1.h5"
MISTAKE = (
    "nan.npy: x has 1 values that are NaN or infinite, the first at row 1, column 0. Remove or"
    " replace them\n"
)


@pytest.fixture
def project(tmp_path):
    """A copy of the project without results, with samples that have a NaN."""
    copy = copy_of_the_project(tmp_path / "a project")
    np.save(copy / "nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    datasets = {"mine": {"file": "nan.npy"}, "digits": {"training": {"epochs": 10_000}}}
    write_config(copy, {"datasets": datasets, "figures": {"fig2": ["mine"]}})
    return copy


@pytest.mark.parametrize("folder", [".", "runs/a"])
def test_a_steps_error_is_a_line_on_the_terminal_and_in_its_log(project, folder):
    done = snakemake(project, "results/fig2.pdf", "--directory", folder, check=False)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines(True) if line.startswith("ntkcond: ")]
    assert len(lines) == 1 and lines[0].endswith(MISTAKE)
    error = done.stderr[done.stderr.index("Error in rule dataset:") :]
    assert "output: results/datasets/mine.h5" in error
    assert f"log: {LOG}" in error
    assert (project / folder / LOG).read_text("utf-8").endswith(MISTAKE)
    assert "Traceback" not in done.stderr


def test_a_run_that_is_stopped_ends_without_a_traceback_and_resumes(project):
    process = subprocess.Popen(
        command(TRAINED), cwd=project, env=environment(project), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=at_the_keyboard,
    )  # fmt: skip
    begun = project / "results/logs/sgd/digits/depth1.log"
    end = time.monotonic() + 120
    while not begun.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "Terminating processes on user request" in output
    assert "Traceback" not in output
    planned = snakemake(project, "-n", TRAINED)
    assert "sgd" in planned.stdout
