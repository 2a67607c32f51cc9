"""Kills, full and read-only disks, damaged files, two runs at once.

No result ever differs from that of an undisturbed run, and the same command finishes the work.

`make faults` kills sixty times; NTKCOND_TEST_KILLS sets another number.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psutil
import pytest

from workflow import (
    SMALL,
    at_the_keyboard,
    command,
    contents,
    copy_of_the_project,
    environment,
    planned,
    skip,
    snakemake,
    write_config,
)

KILLS = int(os.environ.get("NTKCOND_TEST_KILLS", "5"))
PATIENCE = 900  # seconds; no test needs as much: something hangs
# What is killed while it is made: a file of each, and what is made from it.
KERNEL = ["kernels/digits/relu/*", "spectra/digits/relu/*", "conditioning.csv", "fig2.*"]
VICTIMS = {
    "dataset": ["datasets/digits.h5", *KERNEL, "angles/digits/relu/*", "angles.csv"],
    "kernel": KERNEL,
    "spectrum": ["spectra/synthetic/relu/*", "conditioning.csv", "fig2.*"],
    "closest_pair": ["angles/digits/relu/*", "angles.csv", "fig2.*"],
    "sgd": ["training/digits/depth1.h5", "training.csv", "table_*", "fig3.*"],
    "conditioning": ["conditioning.csv", "fig2.*"],
    "angles": ["angles.csv", "fig2.*"],
    "fig1": ["fig1.*"],
    "fig2": ["fig2.*"],
    "fig3": ["fig3.*"],
    "fig4": ["fig4.*"],
}


# What the one command would make again besides takes ten seconds, and is not at stake.
FIGURES = ("results/fig1.pdf", "results/fig2.pdf", "results/fig4.pdf")


def unfinished(project: Path) -> list[Path]:
    return list((project / "results").rglob(".*.tmp"))


def steps(project: Path, rule: str | None = None) -> list[psutil.Process]:
    """The running steps of a rule, or of all."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            names = [word for word in words if word.startswith("ntkcond.steps.")]
            if not names or process.cwd() != str(project):
                continue
            name = names[0].rpartition(".")[2]
            if name == "artefact":
                name = words[words.index(names[0]) + 1]
            if rule in (None, name):
                found.append(process)
    return found


def seconds_of(rule: str, finished: Path) -> float:
    """How long a job of this rule took."""
    records = [*finished.glob(f"results/benchmarks/{rule}.tsv")]
    records += finished.glob(f"results/benchmarks/{rule}/**/*.tsv")
    return max(pd.read_csv(record, sep="\t").s.max() for record in records)


def wait_until(condition, pause: float = 0.02):
    """What `condition` returns, once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(pause)
    return found


def suspended(project: Path, rule: str) -> psutil.Process | None:
    """A running step of a rule, which is held still from now on: time no longer matters."""
    for step in steps(project, rule):
        with contextlib.suppress(psutil.Error):
            step.suspend()
            return step
    return None


@contextlib.contextmanager
def running(
    project: Path, *arguments: str, output: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen]:
    """Snakemake at work in the background; whatever is left of it is killed at the end."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=project,
        env=environment(project),
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=at_the_keyboard,
    )
    try:
        yield process
    finally:
        for left in [process, *steps(project)]:
            with contextlib.suppress(psutil.Error):
                left.kill()
        process.wait()


def delete(project: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in (project / "results").glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def kill(process: subprocess.Popen, project: Path, rule: str, whom: str) -> bool:
    """Kills Snakemake, a job or all of them at once (a power cut); whether there was one left."""
    victims = {"snakemake": [process], "job": steps(project, rule)[:1]}
    victims["all"] = [process, *steps(project)]
    for victim in victims[whom]:
        with contextlib.suppress(psutil.Error):
            victim.send_signal(signal.SIGKILL)
    return bool(victims[whom])


def test_killed_at_any_moment_the_same_command_finishes_with_the_same_results(finished, tmp_path):
    """From nothing, so that every file is made twice: there, undisturbed, and here."""
    project = copy_of_the_project(tmp_path / "a project")
    expected = contents(finished)
    chance = random.Random(1)
    kills, rounds, different = Counter(), 0, []
    while kills.total() < KILLS and rounds < 10 * KILLS:
        rule = min(VICTIMS, key=kills.__getitem__)
        whom = chance.choice(["snakemake", "job", "all"])
        rounds += 1
        delete(project, *VICTIMS[rule])
        with running(project) as process:
            wait_until(lambda: steps(project, rule) or process.poll() is not None)  # noqa: B023
            if rounds % 2:  # while a file is being written
                wait_until(lambda: unfinished(project) or not steps(project, rule), 0.001)  # noqa: B023
            else:  # while it loads, computes, ends
                time.sleep(chance.uniform(0, seconds_of(rule, finished)))
            if process.poll() is None and kill(process, project, rule, whom):
                kills[rule] += 1
            if whom == "job":  # Snakemake itself finds out
                process.wait(PATIENCE)
            wait_until(lambda: not steps(project))  # no orphan stays
        different += [
            f"{name} after {rule}, {whom}"
            for name, content in contents(project).items()
            if content != expected[name]
        ]
    snakemake(project)  # the one command, without --unlock
    # A job that was to make its output again may be killed before it has. If all artefacts are
    # there, the one command needs no such file in between; by its name it is made.
    lacking = expected.keys() - contents(project).keys()
    if lacking:
        assert all(Path(name).suffix == ".h5" for name in lacking)
        snakemake(project, *(f"results/{name}" for name in lacking))
    print(f"{kills.total()} kills: {dict(kills)}", end=", ")
    print(f"{len(different)} differences")
    assert contents(project) == expected
    assert different == []
    assert not unfinished(project)
    assert planned(project) == {}
    assert kills.total() == KILLS


def test_killed_in_mid_training_the_same_command_resumes_from_the_checkpoint(project):
    """Snakemake, which clears away what a killed job left, does not take the checkpoint. The job
    that it left at work ends by itself, long before it is done."""
    training = {"learning_rates": [8], "epochs": 600, "batch": 40}
    config = {**SMALL, "training": {**SMALL["training"], "depths": [1]}}
    config["datasets"] = {"digits": {"hold_out": 1700, "training": training}}
    write_config(project, config)
    delete(project, "training")
    trained = "results/training/digits/depth1.h5"
    snakemake(project, trained)
    expected = contents(project)["training/digits/depth1.h5"]
    (project / trained).unlink()
    checkpoint = project / "results/training/digits/depth1.checkpoint.h5"
    with running(project, trained) as process:
        job = wait_until(lambda: checkpoint.exists() and suspended(project, "sgd"))
        process.kill()
        process.wait()
        job.resume()
        wait_until(lambda: not steps(project))
    assert checkpoint.exists()
    assert not (project / trained).exists()
    snakemake(project, trained)
    log = (project / "results/logs/sgd/digits/depth1.log").read_text("utf-8")
    assert "resumes from results/training/digits/depth1.checkpoint.h5" in log
    assert contents(project)["training/digits/depth1.h5"] == expected
    assert not checkpoint.exists()


def test_what_a_killed_run_left_at_work_does_not_write_into_the_next(finished, project):
    """The killed run has other settings: what it would write late is seen in the end."""
    delete(project, *VICTIMS["closest_pair"])
    write_config(project, {**SMALL, "width": 25})
    with running(project, "results/angles/digits/relu/depth2.h5") as process:
        job = wait_until(lambda: suspended(project, "closest_pair"))
        process.kill()
        process.wait()
        write_config(project, SMALL)
        job.resume()
        snakemake(project, *FIGURES)
    assert contents(project).items() <= contents(finished).items()  # all that something needs
    assert planned(project, *FIGURES) == {}


def test_interrupted_at_the_keyboard_it_ends_without_a_traceback(finished, project):
    """Whatever the jobs are at: tests/run/test_command.py tries each moment of their start."""
    delete(project, *VICTIMS["closest_pair"])
    with running(project, output=subprocess.PIPE) as process:
        wait_until(lambda: steps(project, "closest_pair"))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode != 0, output
    assert "ntkcond/steps" not in output.replace(os.sep, "/")
    snakemake(project, *FIGURES)
    assert contents(project) == contents(finished)


def test_of_two_runs_at_once_one_is_refused_and_the_other_unharmed(finished, project):
    delete(project, *VICTIMS["kernel"], "fig4.*")
    with running(project, "results/fig2.pdf") as first:
        job = wait_until(lambda: suspended(project, "kernel"))
        snakemake(project, "results/angles.csv")  # nothing to be done, whoever is at work
        for target in ("results/fig2.pdf", "results/fig4.pdf"):  # the same files, and others
            second = snakemake(project, target, check=False)
            assert second.returncode != 0
            assert "another Snakemake" in second.stderr or "no other Snakemake" in second.stderr
            assert not steps(project, "fig4")
        job.resume()
        assert first.wait(PATIENCE) == 0
    snakemake(project, *FIGURES)
    assert contents(project) == contents(finished)
    assert planned(project, *FIGURES) == {}


@pytest.fixture
def small_disk(project):
    """The results on a disk of their own, with little room for more."""
    disk = project / "results"
    delete(project, *KERNEL, "fig1.*", "fig4.*")
    shutil.move(disk, project / "moved")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", disk], check=False).returncode:
        skip("disk", "mounting a small disk needs root")
    shutil.copytree(project / "moved", disk, dirs_exist_ok=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def remount(disk: Path, *options: str) -> None:
    subprocess.run(["mount", "-o", ",".join(["remount", *options]), disk], check=True)


def test_a_full_disk_is_named_and_the_run_goes_on_with_more_room(finished, project, small_disk):
    remount(small_disk, f"size={shutil.disk_usage(small_disk).used + 100_000}")
    done = snakemake(project, "-j1", *FIGURES, check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "disk is full" in output or "are free" in output
    assert "Traceback" not in output
    expected = contents(finished)
    assert all(expected[name] == content for name, content in contents(project).items())
    assert not unfinished(project)
    remount(small_disk, "size=50m")
    snakemake(project, *FIGURES)
    assert contents(project) == expected


def test_read_only_results_are_named_and_lose_nothing(finished, project, small_disk):
    remount(small_disk, "ro")
    before = contents(project)
    done = snakemake(project, *FIGURES, check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Write-protected output" in output
    assert "results/" in output
    assert "Traceback" not in output
    assert contents(project) == before
    remount(small_disk, "rw")
    snakemake(project, *FIGURES)
    assert contents(project) == contents(finished)


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("spectra/digits/relu/depth2.h5", 0.5),
        ("training/digits/depth2.h5", 0),
        ("datasets/digits.h5", 0.99),
        ("fig2.png", 0.5),
        ("fig3.png", 0.99),
    ],
)
def test_a_truncated_file_is_never_read_and_made_again(finished, project, name, keep):
    """With the date it had: that a crash of the machine or a full quota left it so."""
    path = project / "results" / name
    date, content = path.stat().st_mtime, path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    os.utime(path, (date, date))
    snakemake(project, f"results/{name}")
    assert contents(project).items() <= contents(finished).items()
