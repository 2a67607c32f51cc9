"""engine: scalapack through Snakemake: the same spectra, and what is rebuilt for which setting."""

import json
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import mpi
from workflow import SMALL, copy_of_the_project, planned, snakemake, write_config

TABLE = "results/conditioning.csv"
CONFIG = {
    **SMALL,
    "engine": "scalapack",
    "depths": [2],
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
        assert len(table) == 2 * 2 * 4  # data sets, activations, seeds and blocks
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
    assert rebuilt == {"kernel": 2, "spectrum": 2, "conditioning": 1}


def test_too_few_ranks_are_refused_at_the_start(by_ranks):
    overlay = json.dumps({"synthetic": {"samples": 100_000, "block": "all"}})
    done = snakemake(by_ranks, "-n", TABLE, "--config", f"datasets={overlay}", check=False)
    assert done.returncode == 1
    assert (
        "ntkcond: ranks: 2 are too few for an NTK of 100000 samples. ScaLAPACK numbers the entries"
        " of a rank by 32 bits. Set ranks to 5"
    ) in done.stdout + done.stderr
