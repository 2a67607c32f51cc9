"""A step as MPI ranks: what is lost with a rank, or with the step, and what is said of it."""

import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest

import mpi
from ntkcond.run import ranks
from ntkcond.run.errors import UserError

N = 6000  # a second for its factor


@pytest.fixture
def folder(tmp_path) -> Path:
    """With samples, and room for what the step writes."""
    mpi.required()
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["x"] = np.random.default_rng(0).standard_normal((N, 12)).astype(np.float32)
    return tmp_path


def start(folder: Path, *more: str) -> subprocess.Popen:
    """The step, of a network with more weights than samples."""
    command = [sys.executable, "-m", "ntkcond.steps.scalapack_spectrum"]
    network = ["--activation", "relu", "--depth", "1", "--width", "1024", "--seeds", "3"]
    files = [f"--{name}={folder / name}.h5" for name in ("output", "log")]
    options = [f"--dataset={folder}/mine.h5", "--block=all", "--ranks=2", *network, *files, *more]
    return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)


def log_of(folder: Path) -> str:
    path = folder / "log.h5"
    return path.read_text("utf-8") if path.exists() else ""


def is_factorising(folder: Path) -> bool:
    return "λ_max: done" in log_of(folder)


def rank(folder: Path, number: int) -> psutil.Process:
    (found,) = (
        process
        for process in mpi.ranks_of(folder)
        if process.environ().get("OMPI_COMM_WORLD_RANK") == str(number)
        and "python" in process.name()
    )
    return found


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_that_is_killed_in_mid_factor_leaves_one_error_and_nothing_else(folder, number):
    step = start(folder)
    mpi.until(lambda: is_factorising(folder))
    rank(folder, number).kill()
    said = step.communicate()[1]
    assert step.returncode == 1
    assert said.startswith(f"ntkcond: rank {number} of 2 was lost (signal 9)")
    assert said.count("\n") == 1
    assert "Cholesky factor, n = 6000: done" not in log_of(folder)
    assert mpi.until(lambda: not mpi.ranks_of(folder))
    assert {path.name for path in folder.iterdir()} == {"mine.h5", "log.h5"}
    again = start(folder)
    assert (again.communicate()[1], again.returncode) == ("", 0)
    with h5py.File(folder / "output.h5") as file:
        assert file["verdict"].asstr()[0, 0] == "resolved"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_end_with_their_step(folder, how):
    step = start(folder)
    mpi.until(lambda: is_factorising(folder))
    step.send_signal(how)
    step.communicate()
    assert step.returncode == -how
    assert mpi.until(lambda: not mpi.ranks_of(folder))
    assert not (folder / "output.h5").exists()


def test_an_error_of_the_ranks_is_that_of_the_step(folder):
    with h5py.File(folder / "mine.h5", "w") as file:
        file["x"] = np.ones((50_000, 1), np.float32)
    step = start(folder, "--ranks=1")
    assert step.communicate()[1] == (
        "ntkcond: ranks: 1 is too few for an NTK of 50000 samples. ScaLAPACK counts the entries of"
        " a rank in 32 bits. Set ranks to 2 or more\n"
    )
    assert step.returncode == 1


def test_what_mpirun_itself_says_is_told(folder):
    step = start(folder, "--mpi=mpirun --no-such-option")
    said = step.communicate()[1]
    assert said.startswith("ntkcond: mpirun --no-such-option ended with status ")
    assert step.returncode == 1


def test_a_scalapack_that_is_not_there_is_named(folder, monkeypatch):
    monkeypatch.setenv("SCALAPACK_LIB_PATH", "/no/such/libscalapack.so")
    said = start(folder).communicate()[1]
    assert said.startswith("ntkcond: engine: scalapack finds no ScaLAPACK. SCALAPACK_LIB_PATH is")
    assert "'/no/such/libscalapack.so'" in said and said.count("\n") == 1


def test_ranks_that_do_not_find_each_other_are_refused(folder):
    """As with the mpirun of another MPI: each is alone."""
    alone = folder / "mpirun"
    alone.write_text('#!/bin/sh\nshift 2\nexec "$@"\n', "utf-8")
    alone.chmod(0o755)
    step = start(folder, f"--mpi={alone}")
    said = step.communicate()[1]
    assert said.startswith("ntkcond: 2 ranks were started, and MPI knows of 1.")
    assert not (folder / "output.h5").exists()


def test_what_is_missing_is_named_with_where_to_get_it(monkeypatch):
    ranks.require_mpi()
    with pytest.raises(UserError, match="needs no-such-mpirun, which this environment lacks"):
        ranks.require_mpi("no-such-mpirun --option")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="engine: scalapack needs mpi4py and scalapack4py, which"):
        ranks.require_mpi("mpirun")
