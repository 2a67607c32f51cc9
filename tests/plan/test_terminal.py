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
    first, *last = (line for line in done.stderr.splitlines(True) if line.startswith("ntkcond: "))
    assert first.endswith(MISTAKE)
    end = "At least one job did not complete successfully.\n"
    assert done.stderr.endswith(end + "".join(last))
    if folder != ".":
        assert last.pop(0) == f"ntkcond: in {folder}:\n"
    assert last[0].startswith("ntkcond: not finished. Once mended, the same command resumes: ")
    assert last[1].startswith(f"ntkcond: {LOG}: ") and last[1].endswith(MISTAKE) and len(last) == 2
    error = done.stderr[done.stderr.index("Error in rule dataset:") :]
    assert "output: results/datasets/mine.h5" in error
    assert f"log: {LOG}" in error
    assert (project / folder / LOG).read_text("utf-8").endswith(MISTAKE)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("minutes", [5, 0])
def test_a_run_that_is_stopped_ends_without_a_traceback_and_resumes(project, minutes):
    checkpoint = TRAINED.replace(".h5", ".checkpoint.h5")
    given = ("--config", f'training={{"checkpoint_minutes": {minutes}}}')
    process = subprocess.Popen(
        [*command(TRAINED), *given], cwd=project, env=environment(project), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=at_the_keyboard,
    )  # fmt: skip
    begun = project / ("results/logs/sgd/digits/depth1.log" if minutes else checkpoint)
    end = time.monotonic() + 120
    while not begun.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "Terminating processes on user request" in output
    assert "Traceback" not in output
    *_, resumes, stopped = output.splitlines()
    anew = "ntkcond: not finished. The same command resumes: finished results are kept, other jobs"
    saved = (
        " start anew (no checkpoint yet)"
        if minutes
        else f" start anew, training from {checkpoint} of "
    )
    assert resumes.startswith(f"{anew}{saved}")
    assert stopped.startswith("ntkcond: no step says an error: the run was stopped (Ctrl-C)")
    planned = snakemake(project, "-n", TRAINED)
    assert "sgd" in planned.stdout


def said_last(done: subprocess.CompletedProcess) -> list[str]:
    """From the first line of ours on."""
    return done.stderr[f"\n{done.stderr}".index("\nntkcond: ") :].splitlines()


def test_runs_end_with_what_is_made_and_lacks_and_dry_runs_with_what_changed(project):
    np.save(project / "repeated.npy", np.eye(12)[[*range(12), 3, 7]])
    config = {"datasets": {"mine": {"file": "repeated.npy", "block": 14}}, "seeds": [1]}
    config |= {"depths": [1], "activations": ["relu"], "width": 8, "figures": {"fig2": ["mine"]}}
    write_config(project, config)
    table = "results/conditioning.csv"
    repeated = (
        "ntkcond: mine: 2 of 14 samples repeat an earlier one: a block with both has κ = ∞; left"
        " out of the closest pair. Fix: datasets: {mine: {distinct: true}}, block ≤ what is left"
    )
    done = snakemake(project, table)
    assert done.stderr.endswith(f"\nntkcond: up to date now: {table}\n{repeated}\n")
    assert said_last(snakemake(project, table)) == [repeated]
    assert said_last(snakemake(project, "-n", table, "--config", "width=9"))[:-1] == [
        "ntkcond: reasons, from which all other jobs follow:",
        "    kernel: width 8 → 9",
        "    spectrum: width 8 → 9",
    ]
    config["datasets"]["mine"] |= {"distinct": True, "block": 12}
    write_config(project, config)
    assert said_last(snakemake(project, "-np", table))[:2] == [
        "ntkcond: reasons, from which all other jobs follow:",
        "    dataset: distinct – → True",
    ]
    assert "distinct: true" not in snakemake(project, table).stderr


@pytest.mark.parametrize(
    ("given", "own"),
    [('training={"epochs": 7}', "training.epochs"), ("block=7", "block"), ("width=7", "")],
)
def test_a_setting_that_each_data_set_has_of_its_own_is_named(project, given, own):
    write_config(project, {"datasets": {"digits": {"training": {"epochs": 2}}}})
    done = snakemake(project, "-n", "results/fig3.csv", "--config", given)
    line = f"ntkcond: {own} changes nothing here: set by datasets.digits.{own}\n"
    assert done.stderr.endswith(line) if own else "changes nothing" not in done.stderr


@pytest.mark.parametrize("target", ["results/fig22.pdf", "fig2.pdf"])
def test_a_misspelt_result_ends_with_the_right_name(project, target):
    done = snakemake(project, "-n", target, check=False)
    line = f"ntkcond: {target} is no result of ours. Did you mean results/fig2.pdf?\n"
    assert done.returncode != 0 and done.stderr.endswith(line)


def test_a_misspelt_function_of_an_own_activation_is_named_with_its_line(project):
    path = project / "src/ntkcond/networks/activations.py"
    text = path.read_text("utf-8").replace("xp(z).tanh(z)", "xp(z).tahn(z)")
    path.write_text(text, "utf-8")
    line = text[: text.index("tahn")].count("\n") + 1
    done = snakemake(project, "results/angles/synthetic/tanh/depth1.h5", check=False)
    said = f"{path}, line {line}: AttributeError: module 'numpy' has no attribute 'tahn'. Correct"
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert said in done.stderr.splitlines()[-1]
