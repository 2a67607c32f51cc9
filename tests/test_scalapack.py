"""engine: scalapack through Snakemake: the same spectra, and what is rebuilt for which setting."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import mpi
from ntkcond.steps.scalapack_spectrum import need
from workflow import (
    SMALL,
    at_the_keyboard,
    command,
    copy_of_the_project,
    environment,
    planned,
    snakemake,
    write_config,
)

TABLE = "results/conditioning.csv"
LARGE = 6000  # a second for its factor
CONFIG = {
    **SMALL,
    "engine": "scalapack",
    "datasets": {
        "synthetic": {"samples": 600, "features": 5, "block": 300},
        "digits": {"hold_out": 1700, "engine": "local"},
    },
    "figures": {"fig2": ["synthetic", "digits"]},
}
ROW = ["dataset", "activation", "depth", "n", "seed", "block"]


@pytest.fixture(scope="module")
def by_ranks(tmp_path_factory) -> Path:
    """A copy of the project with the spectra of one data set by ranks, of the other not."""
    mpi.required()
    project = copy_of_the_project(tmp_path_factory.mktemp("scalapack") / "a project")
    write_config(project, CONFIG)
    snakemake(project, TABLE)
    return project


def test_spectra_are_those_of_one_process_within_their_bounds(by_ranks, tmp_path):
    assert not (by_ranks / "results/kernels/synthetic").exists()
    assert (by_ranks / "results/kernels/digits").is_dir()
    distributed = pd.read_csv(by_ranks / TABLE)
    overlay = json.dumps({"synthetic": {"engine": "local"}})
    folder = ("--directory", "runs/local")
    snakemake(by_ranks, TABLE, *folder, "--config", f"datasets={overlay}")
    local = pd.read_csv(by_ranks / "runs/local" / TABLE)
    for table in (distributed, local):
        assert len(table) == 2 * 2 * 2 * 4  # data sets, activations, depths, seeds and blocks
    both = distributed.merge(local, on=ROW, suffixes=("", "_local"), validate="one_to_one")
    assert (both.verdict == both.verdict_local).all()
    assert set(both.verdict) == {"resolved", "singular"}
    bound = both.lambda_min_error + both.lambda_min_error_local
    for name in ("lambda_min", "lambda_max"):
        assert (abs(both[name] - both[f"{name}_local"]) <= bound).all()
    np.testing.assert_allclose(both.nonzero_kappa, both.nonzero_kappa_local, rtol=1e-9)
    same = both[both.dataset == "digits"]
    assert (same.lambda_min == same.lambda_min_local).all()
    with h5py.File(by_ranks / "results/spectra/synthetic/relu/depth2.h5") as file:
        assert (file.attrs["block"], file.attrs["samples"]) == (300, 600)
        vectors, residual = file["smallest_eigenvector"][:], file["smallest_residual"][:]
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1)
        assert (residual <= file["lambda_min_error"][:]).all()


def test_the_engine_is_recorded_and_the_number_of_ranks_is_not(by_ranks):
    assert planned(by_ranks, TABLE) == {}
    assert planned(by_ranks, TABLE, "--config", "ranks=3") == {}
    rebuilt = planned(by_ranks, TABLE, "--config", "engine=local")
    assert rebuilt == {"kernel": 4, "spectrum": 4, "conditioning": 1}


def test_too_few_ranks_are_refused_at_the_start(by_ranks):
    overlay = json.dumps({"synthetic": {"samples": 100_000, "block": "all"}})
    done = snakemake(by_ranks, "-n", TABLE, "--config", f"datasets={overlay}", check=False)
    assert done.returncode == 1
    assert (
        "ntkcond: ranks: 2 are too few for an NTK of 100000 samples. ScaLAPACK numbers the entries"
        " of a rank by 32 bits. Set ranks to 5"
    ) in done.stdout + done.stderr


def test_a_lost_rank_is_one_error_and_the_same_command_finishes(by_ranks):
    spectrum = "results/spectra/synthetic/relu/depth2.h5"
    overlay = json.dumps({"synthetic": {"samples": LARGE, "block": "all"}})
    overrides = ("--config", f"datasets={overlay}", "width=100")  # more weights than samples
    options = command(spectrum, "--directory", "runs/lost", *overrides)
    folder = by_ranks / "runs/lost"
    log = folder / "results/logs/spectrum/synthetic/relu/depth2.log"
    run = subprocess.Popen(
        options, cwd=by_ranks, env=environment(by_ranks), preexec_fn=at_the_keyboard,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    mpi.until(lambda: log.exists() and "λ_max: done" in log.read_text("utf-8"))
    ranks = [one for one in mpi.ranks_of(folder) if "python" in one.name()]
    os.kill(ranks[-1].pid, signal.SIGKILL)
    said = run.communicate()[0]
    assert run.returncode == 1
    lines = [line for line in said.splitlines() if line.startswith("ntkcond: ")]
    assert len(lines) == 3  # where it happened; last how to resume, and the same
    lost = "rank 1 of 2 was lost (signal 9), and the others were ended."
    assert lost in lines[0] and lost in lines[-1]
    assert not list(folder.rglob("*depth2.h5*"))
    assert not mpi.ranks_of(folder)
    subprocess.run(options, cwd=by_ranks, env=environment(by_ranks), check=True)
    assert (folder / spectrum).exists()
    (peak,) = re.findall(r"peak memory of a rank: \d+ to (\d+) MB", log.read_text("utf-8"))
    needed = need(LARGE, 5, 2, 100, ranks=2).bytes / 2
    assert 0.4 * needed < int(peak) * 1e6 < needed
