"""MPI, where this machine has it: Open MPI and ScaLAPACK, and the packages of the extra."""

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

from ntkcond.run.ranks import PACKAGES, SETTINGS
from workflow import ROOT, skip


def why_not() -> str | None:
    """Why ranks cannot run here."""
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if shutil.which("mpirun") is None:
        lacking.append("mpirun")
    if not any(ctypes.util.find_library(f"scalapack-{mpi}") for mpi in ("openmpi", "mpich")):
        lacking.append("ScaLAPACK")
    return f"no {', '.join(lacking)}: docs/scaling.md" if lacking else None


def required() -> None:
    """Skips a test that needs them."""
    if reason := why_not():
        skip("mpi", reason)


def on_ranks(count: int, script: str, *arguments: Path | str) -> None:
    """Runs a script of the tests."""
    command = ["mpirun", "-n", str(count), sys.executable, "-m", "mpi4py", ROOT / "tests" / script]
    subprocess.run([*command, *arguments], check=True, env={**SETTINGS, **os.environ})


def until(condition, seconds: float = 60):
    """What `condition` returns once that is something."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


def ranks_of(folder: Path) -> list[psutil.Process]:
    """Ranks, and what starts them, that work in this folder or on files in it."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if "--as-rank" in (words := process.info["cmdline"] or [])
        and (process.info["cwd"] == str(folder) or any(str(folder) in word for word in words))
    ]
