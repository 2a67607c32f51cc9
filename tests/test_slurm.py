"""profiles/slurm on a real Slurm, where one runs on this machine: profiles/slurm/one-machine.sh."""

import importlib.util
import math
import re
import shutil
import socket
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mpi
from ntkcond.settings import memory
from ntkcond.steps import kernel, scalapack_spectrum
from workflow import ROOT, SMALL, copy_of_the_project, skip, snakemakes, write_config

CONFIG = {**SMALL, "activations": ["relu"], "figures": {"fig2": ["synthetic"]}}
KERNEL = "results/kernels/synthetic/relu/depth2.h5"


def why_not() -> str | None:
    """Why these tests cannot run here. Their files are in a folder that other machines lack."""
    if shutil.which("sinfo") is None:
        return "there is no Slurm: profiles/slurm/one-machine.sh up starts one"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "snakemake-executor-plugin-slurm is not installed"
    nodes = subprocess.run(["sinfo", "-h", "-o", "%n"], capture_output=True, text=True, check=False)
    if nodes.returncode:
        return "no Slurm answers: profiles/slurm/one-machine.sh up starts one"
    if nodes.stdout.split() != [socket.gethostname().partition(".")[0]]:
        return "this Slurm has other nodes than this machine"
    return None


@pytest.fixture(scope="module", autouse=True)
def _needs_slurm():
    if reason := why_not():
        skip("slurm", reason)


def snakemake(project: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Runs Snakemake in a copy of the project; all that it says is in stdout."""
    done, _ = snakemakes().run(
        project, "snakemake", *arguments, "--configfile", "small.yaml",
        path=[project / "src", ROOT / "tests"], imports=["impatient"],
    )  # fmt: skip
    done.stdout += done.stderr
    return done


def on_slurm(project: Path, *arguments: str) -> subprocess.CompletedProcess:
    """The same through the profile."""
    soon = ("--slurm-init-seconds-before-status-checks", "1")
    return snakemake(project, "--workflow-profile", "profiles/slurm", *soon, *arguments)


def requests(output: str, job: str) -> list[dict[str, str]]:
    """What Slurm knows of the jobs of a rule and its wildcards, such as kernel/synthetic_relu_2,
    in the order in which they were submitted."""
    numbers = re.findall(rf"SLURM jobid (\d+) \(log: .*/rule_{job}/\d+\.log\)", output)
    shown = [
        subprocess.check_output(["scontrol", "show", "--oneliner", "job", number], text=True)
        for number in numbers
    ]
    return [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in shown]


@pytest.fixture(scope="module")
def run_by_slurm(tmp_path_factory) -> tuple[Path, str]:
    """A copy of the project with figure 2 made by Slurm in runs/slurm, and what was said."""
    project = copy_of_the_project(tmp_path_factory.mktemp("slurm") / "a project")
    write_config(project, CONFIG)
    done = on_slurm(project, "results/fig2.csv", "--directory", "runs/slurm")
    assert done.returncode == 0, done.stdout
    return project, done.stdout


@pytest.fixture
def project(run_by_slurm, tmp_path) -> Path:
    """A copy of it to change."""
    return shutil.copytree(run_by_slurm[0], tmp_path / "a project")


def test_numbers_are_those_of_this_machine(run_by_slurm):
    project, _ = run_by_slurm
    done = snakemake(project, "-j2", "results/fig2.csv", "--directory", "runs/here")
    assert done.returncode == 0, done.stdout
    for table in ("fig2", "conditioning", "angles"):
        by_slurm, here = (project / f"runs/{run}/results/{table}.csv" for run in ("slurm", "here"))
        assert by_slurm.read_bytes() == here.read_bytes()


def in_megabytes(count: int) -> int:
    return math.ceil((memory.MARGIN * count + memory.SNAKEMAKE) / 1e6)


def test_a_job_asks_for_what_its_sizes_need(run_by_slurm):
    n, samples, d, depth, m, seeds = 20, 60, 5, 2, 24, 2
    (job,) = requests(run_by_slurm[1], "kernel/synthetic_relu_2")
    megabytes = in_megabytes(kernel.need(n, samples, d, depth, m, seeds=seeds).bytes)
    assert (job["MinMemoryNode"], job["TimeLimit"]) == (f"{megabytes}M", "04:00:00")
    assert job["NumCPUs"] == "1"
    assert "gpu" not in str(job)


def test_a_log_is_where_the_terminal_says_and_kept_if_the_job_failed(run_by_slurm):
    project, output = run_by_slurm
    of_slurm = project / "runs/slurm/results/logs/slurm"
    assert f"(log: {of_slurm}/rule_kernel/synthetic_relu_2/" in output
    assert not list(of_slurm.rglob("*.log"))
    assert (project / "runs/slurm/results/logs/kernel/synthetic/relu/depth2.log").stat().st_size


def test_a_mistake_is_explained_on_the_terminal(project):
    np.save(project / "nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    write_config(
        project, {"datasets": {"mine": {"file": "nan.npy"}}, "figures": {"fig2": ["mine"]}}
    )
    done = on_slurm(project, "results/datasets/mine.h5", "--retries", "0")
    assert done.returncode != 0
    assert "nan.npy: x has 1 values that are NaN" in done.stdout
    assert "Traceback" not in done.stdout
    logs = {"results/logs/dataset/mine.log"}
    logs.update(re.findall(r"results/logs/slurm/rule_dataset/mine/\d+\.log", done.stdout))
    assert len(logs) == 2
    for log in logs:
        assert log in done.stdout
        assert "nan.npy: x has 1 values that are NaN" in Path(project, log).read_text("utf-8")
    (job,) = requests(done.stdout, "dataset/mine")
    assert (job["MinMemoryNode"], job["TimeLimit"]) == ("4000M", "04:00:00")


def test_a_job_killed_for_its_memory_gets_twice_as_much(project):
    """With too low an estimate: 100 MB do not even hold Snakemake."""
    if "OverMemoryKill" not in subprocess.check_output(["scontrol", "show", "config"], text=True):
        pytest.skip("this Slurm may not kill for memory")
    estimates = project / "src/ntkcond/settings/memory.py"
    code = estimates.read_text("utf-8")
    code = re.sub("^MARGIN = .*$", "MARGIN = 0", code, flags=re.M)
    code = re.sub("^SNAKEMAKE = .*$", "SNAKEMAKE = 100_000_000", code, flags=re.M)
    estimates.write_text(code, "utf-8")
    done = on_slurm(project, "results/datasets/synthetic.h5")
    assert done.returncode == 0, done.stdout
    jobs = requests(done.stdout, "dataset/synthetic")
    assert [job["MinMemoryNode"] for job in jobs] == ["100M", "200M", "400M"][: len(jobs)]
    assert [job["TimeLimit"] for job in jobs] == ["04:00:00", "08:00:00", "16:00:00"][: len(jobs)]
    assert [job["JobState"] == "COMPLETED" for job in jobs] == [False] * (len(jobs) - 1) + [True]
    assert len(jobs) > 1


def test_mpi_ranks_run_as_tasks_and_agree_with_one_process(project):
    mpi.required()
    write_config(project, {**CONFIG, "engine": "scalapack"})
    done = on_slurm(project, "results/conditioning.csv", "--directory", "runs/ranks")
    assert done.returncode == 0, done.stdout
    (job,) = requests(done.stdout, "scalapack_spectrum/synthetic_relu_2")
    megabytes = in_megabytes(scalapack_spectrum.need(20, 5, 2, 24, 2).bytes // 2)
    assert (job["NumTasks"], job["NumCPUs"], job["MinMemoryCPU"]) == ("2", "2", f"{megabytes}M")
    by_ranks, local = (
        pd.read_csv(project / f"runs/{run}/results/conditioning.csv") for run in ("ranks", "slurm")
    )
    bound = by_ranks.lambda_min_error + local.lambda_min_error
    assert len(by_ranks) == len(local) == 2 * 2 * 3  # depths, seeds, blocks
    assert (abs(by_ranks.lambda_min - local.lambda_min) <= bound).all()
    assert (by_ranks.verdict == local.verdict).all()
    log = project / "runs/ranks/results/logs/spectrum/synthetic/relu/depth2.log"
    assert "2 ranks: done in" in log.read_text("utf-8")


def test_a_gpu_is_asked_for_with_device_cuda(project):
    if "gpu" not in subprocess.check_output(["sinfo", "-h", "-o", "%G"], text=True):
        pytest.skip("this Slurm has no GPU: profiles/slurm/one-machine.sh up --gpus 1 declares one")
    write_config(project, {**CONFIG, "device": "cuda"})
    (project / "runs/slurm" / KERNEL).unlink()
    done = on_slurm(project, KERNEL, "--directory", "runs/slurm", "--retries", "0")
    (job,) = requests(done.stdout, "kernel/synthetic_relu_2")
    assert re.search(r"gpu[:=]1\b", job["TresPerJob"])
    assert (done.returncode == 0) != ("device: cuda was asked for" in done.stdout)
