"""The end of a run on the terminal, as a user sees it."""

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
TRAINED = "results/training/digits/depth1/seed1.h5"
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


def test_a_steps_error_is_a_line_on_the_terminal_and_in_its_log(project, folder="runs/a"):
    done = snakemake(project, "results/fig2.pdf", "--directory", folder, check=False)
    assert done.returncode != 0
    first, *last = (line for line in done.stderr.splitlines(True) if line.startswith("ntkcond: "))
    assert first.endswith(MISTAKE)
    end = "At least one job did not complete successfully.\n"
    assert done.stderr.endswith(end + "".join(last))
    assert last[0].startswith("ntkcond: not finished. The same command resumes: ")
    assert last[1].startswith(f"ntkcond: {LOG}: ") and last[1].endswith(MISTAKE) and len(last) == 2
    error = done.stderr[done.stderr.index("Error in rule dataset:") :]
    assert "output: results/datasets/mine.h5" in error
    assert f"log: {LOG}" in error
    assert (project / folder / LOG).read_text("utf-8").endswith(MISTAKE)
    assert "Traceback" not in done.stderr


def test_a_run_that_is_stopped_ends_without_a_traceback_and_resumes(project):
    checkpoint = TRAINED.replace(".h5", ".checkpoint.h5")
    given = ("--config", 'training={"checkpoint_minutes": 0}')
    process = subprocess.Popen(
        [*command(TRAINED), *given], cwd=project, env=environment(project), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=at_the_keyboard,
    )  # fmt: skip
    begun = project / checkpoint
    end = time.monotonic() + 120
    while not begun.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "Terminating processes on user request" in output
    assert "Traceback" not in output
    *_, resumes, stopped = output.splitlines()
    assert resumes.startswith("ntkcond: not finished. The same command resumes: finished results")
    assert stopped.startswith("ntkcond: no step says an error: the run was stopped (Ctrl-C)")
    planned = snakemake(project, "-n", TRAINED)
    assert "sgd" in planned.stdout


def test_a_dry_run_ends_with_what_changed_of_all_jobs(project):
    np.save(project / "mine.npy", np.eye(12))
    config = {"datasets": {"mine": {"file": "mine.npy", "block": 12}}, "seeds": [1]}
    config |= {"depths": [1], "activations": ["relu"], "width": 8, "figures": {"fig2": ["mine"]}}
    write_config(project, config)
    table = "results/conditioning.csv"
    assert "ntkcond" not in snakemake(project, table).stderr
    said = snakemake(project, "-n", table, "--config", "width=9").stderr
    *_, head, first, second = said.splitlines()
    assert head == "ntkcond: what differs from the last run, from which all other jobs follow:"
    assert {first, second} == {
        f"    {rule} × 1: width=8 → width=9" for rule in ("kernel", "spectrum")
    }


def test_a_misspelt_function_of_an_own_activation_is_named_with_its_line(project):
    path = project / "src/ntkcond/networks/activations.py"
    text = path.read_text("utf-8").replace("xp(z).tanh(z)", "xp(z).tahn(z)")
    path.write_text(text, "utf-8")
    line = text[: text.index("tahn")].count("\n") + 1
    done = snakemake(project, "results/angles/synthetic/tanh/depth1.h5", check=False)
    said = f"{path}, line {line}: AttributeError: module 'numpy' has no attribute 'tahn'. Correct"
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert said in done.stderr.splitlines()[-1]
