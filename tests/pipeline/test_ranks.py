"""A step as MPI ranks: what is lost with a rank, or with the step, and what is said of it."""

import re
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
from ntkcond.steps.scalapack_spectrum import need

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
    (wanted,) = (
        process
        for process in mpi.ranks_of(folder)
        if process.environ().get("OMPI_COMM_WORLD_RANK") == str(number)
        and "python" in process.name()
    )
    return wanted


def test_a_rank_that_is_killed_in_mid_factor_leaves_one_error_and_nothing_else(folder):
    step = start(folder)
    mpi.until(lambda: is_factorising(folder))
    rank(folder, 1).kill()
    said = step.communicate()[1]
    assert step.returncode == 1
    assert said.startswith("ntkcond: rank 1 of 2 was lost (signal 9)")
    assert said.count("\n") == 1
    assert "Cholesky factor, n = 6000: done" not in log_of(folder)
    assert mpi.until(lambda: not mpi.ranks_of(folder))
    assert {path.name for path in folder.iterdir()} == {"mine.h5", "log.h5"}
    again = start(folder)
    assert (again.communicate()[1], again.returncode) == ("", 0)
    with h5py.File(folder / "output.h5") as file:
        assert file["verdict"].asstr()[0, 0] == "resolved"
    (peak,) = re.findall(r"peak memory of a rank: \d+ to (\d+) MB", log_of(folder))
    needed = need(N, 12, 1, 1024, ranks=2).bytes / 2
    assert 0.4 * needed < int(peak) * 1e6 < needed


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
        "ntkcond: ranks: 1 is too few for an NTK of 50000 samples. ScaLAPACK numbers the entries of"
        " a rank by 32 bits. Set ranks to 2\n"
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


def test_an_mpi_that_is_not_there_is_named(folder, monkeypatch):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/no/such/libmpi.so")
    said = start(folder).communicate()[1]
    assert said.startswith("ntkcond: engine: scalapack finds no MPI. cannot load MPI library")
    assert said.count("\n") == 1


def test_more_ranks_than_samples_give_the_same(folder):
    with h5py.File(folder / "mine.h5", "w") as file:
        file["x"] = np.random.default_rng(0).standard_normal((6, 12)).astype(np.float32)
    spectra = []
    for count in (1, 3):
        step = start(folder, "--block=2", f"--ranks={count}")
        assert (step.communicate()[1], step.returncode) == ("", 0)
        with h5py.File(folder / "output.h5") as file:
            spectra.append([file[name][:] for name in ("lambda_min", "lambda_max", "kappa")])
            assert (file["smallest_residual"][:] <= file["lambda_min_error"][:]).all()
            assert tuple(file.attrs["rank_grid"]) == (1, count)
    np.testing.assert_allclose(*spectra, rtol=1e-12)


# Open MPI 4.1's and Slurm 22.05's own words, as seen; those of memory and MPICH by their sources.
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).",
            "rank 1 of 4 was lost (signal 9)",
        ),
        ("srun: error: node1: task 1: Killed", "rank 1 of 4 was lost (Killed)"),
        ("srun: error: node1: tasks 0-1: Out Of Memory", "rank 0-1 of 4 was lost (Out Of Memory)"),
        ("=   RANK 2 PID 1234 RUNNING AT node1", "rank 2 of 4 was lost, and"),
        ("srun: error: Unable to allocate", "srun ended with status 9: srun: error: Unable to"),
        ("words", "srun ended with status 9: words"),
    ],
)
def test_how_a_rank_was_lost_is_told(said, told):
    before = ["a word"] if "error" in said or "rank" in said.lower() else []
    assert ranks._end("srun", 4, 9, [*before, said, "a last word"]).startswith(told)


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
