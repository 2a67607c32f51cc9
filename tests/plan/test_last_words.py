"""The terminal after a run that failed, as a user sees it. These tests also hold what
`ntkcond.plan.workflow` takes from Snakemake's messages."""

import os
import signal
import subprocess
import time
from functools import partial

import numpy as np
import pytest

from workflow import command, copy_of_the_project, environment, snakemake, write_config

NOISE = ("Error in rule", "RuleException", "CalledProcessError", "WorkflowError", "Look above")
TRAINED = "results/training/digits/depth1.h5"


@pytest.fixture
def project(tmp_path):
    """A copy of the project without results, with samples that have a NaN."""
    copy = copy_of_the_project(tmp_path / "a project")
    np.save(copy / "nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    datasets = {"mine": {"file": "nan.npy"}, "digits": {"training": {"epochs": 10_000}}}
    write_config(copy, {"datasets": datasets, "figures": {"fig2": ["mine"]}})
    return copy


def break_step(project, name: str, line: str) -> None:
    """The step begins with that line."""
    path = project / f"src/ntkcond/steps/{name}.py"
    begin, main, end = path.read_text("utf-8").partition("    a = arguments\n")
    path.write_text(f"{begin}{line}\n{main}{end}", "utf-8")


def last_words(project, *arguments: str) -> list[str]:
    """All that a failed run says from its first block of ours on, without empty lines."""
    done = snakemake(project, *arguments, check=False)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert not [words for words in NOISE if words in output], output
    return [line for line in output[output.rindex("\n\nntkcond: ") :].splitlines() if line]


@pytest.mark.parametrize("folder", [".", "runs/a"])
def test_the_error_is_the_last_thing_one_sees(project, folder):
    words = last_words(project, "results/fig2.pdf", "--directory", folder)
    log = "results/logs/dataset/mine.log"
    assert words[0] == "ntkcond: dataset mine failed (needed by angles, conditioning, fig2)"
    assert words[1].endswith(
        "nan.npy: x has 1 values that are NaN or infinite, the first at row 1, column 0. Remove or"
        " replace them"
    )
    assert words[2:] == [f"    log: {log if folder == '.' else f'{folder}/{log}'}"]


def test_a_run_takes_three_lines_a_job_and_ends_with_where_its_figures_are(project):
    write_config(project, {})
    targets = ["results/fig1.pdf", "results/fig4.csv"]
    done = snakemake(project, *targets, "--directory", "runs/a", check=False)
    assert done.stderr.endswith("\n\nntkcond: made in runs/a/results: fig1.pdf, fig4.pdf\n")
    jobs = done.stderr.partition("fig4: not built yet\n")[2].partition("2 of 2 steps")[0]
    lines = [line for line in jobs.splitlines() if line]
    assert len(lines) == 5, jobs  # of each its time, its name and the steps done; but the last
    assert sum(line.startswith("Job ") for line in lines) == 2


def test_of_several_failed_jobs_each_is_said_and_the_killed_one_too(project):
    broken = "    {'digits': lambda: 1 / 0, 'synthetic': lambda: __import__('os').kill("
    break_step(
        project, "dataset", f"{broken}__import__('os').getpid(), 9)}}[arguments.output.stem]()"
    )
    write_config(project, {})
    targets = [f"results/datasets/{name}.h5" for name in ("digits", "synthetic")]
    done = snakemake(project, "-k", *targets, check=False)
    last = done.stderr[done.stderr.rindex("Elapsed time") :]
    digits = last.index("ntkcond: dataset digits failed\n    this should not happen")
    synthetic = last.index("ntkcond: dataset synthetic failed\n    it was killed (SIGKILL), as the")
    assert "\n    ZeroDivisionError: division by zero\n    log: results/logs/" in last[digits:]
    assert "Run fewer jobs at a time (-j1), or lower block" in last[synthetic:]
    assert not [words for words in NOISE if words in done.stderr]


def test_snakemakes_own_words_can_be_had(project):
    target = "results/datasets/mine.h5"
    done = snakemake(project, target, "--show-failed-logs", check=False)
    assert "Error in rule dataset" in done.stderr
    assert done.stderr.rstrip().endswith("log: results/logs/dataset/mine.log")
    snakemake(project, target, check=False)
    newest = max((project / ".snakemake/log").glob("*.log"))
    assert "Error in rule dataset" in newest.read_text("utf-8")


def test_a_run_that_is_stopped_says_how_to_resume(project):
    process = subprocess.Popen(
        command(TRAINED), cwd=project, env=environment(project), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        # ignored where pytest runs in the background of a script, and inherited
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    begun = project / "results/logs/sgd/digits/depth1.log"
    end = time.monotonic() + 120
    while not begun.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert output.endswith("\n\nntkcond: stopped. The same command resumes\n"), output
    assert not [words for words in NOISE if words in output]


def test_a_setting_without_effect_is_named_also_if_there_is_nothing_to_do(project):
    write_config(project, {})
    line = "ntkcond: width: 33 has no effect: nothing in this run depends on it"
    for _ in range(2):
        done = snakemake(project, "results/fig1.csv", "--config", "width=33")
        assert done.stderr.count(line) == 1
    assert "Nothing to be done" in done.stderr
    done = snakemake(project, "-n", TRAINED, "--config", 'training={"epochs": 41}')
    output = done.stdout + done.stderr
    assert output.count("training.epochs: 41 has no effect, overridden by datasets.digits") == 1
