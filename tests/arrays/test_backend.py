"""NumPy and torch by one code: what the array API lacks, and that no step on a CPU loads torch."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

from ntkcond.arrays.backend import add_product, put, thread_count, to_numpy, triangular_factor
from one_device import OneDevice

COMPUTING = (
    "kernel", "spectrum", "closest_pair", "sweep", "descent", "drawing", "table", "dataset",
)  # fmt: skip


def test_a_step_on_a_cpu_starts_without_torch():
    code = "import importlib, sys\n"
    code += f"for step in {COMPUTING}:\n    importlib.import_module('ntkcond.steps.' + step)\n"
    code += "    print(step, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{step} False" for step in COMPUTING]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_job_on_a_cpu_computes_without_torch(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["x"] = np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
        file["y"] = np.arange(30) % 2
    code = """
import sys
from pathlib import Path
from types import SimpleNamespace
from ntkcond.steps import closest_pair, descent, kernel, spectrum, sweep
common = dict(dataset=Path("data.h5"), activation="relu", seeds=[1], trainable="all",
              device="auto", threads=1, record=None)
one = dict(common, depth=2, width=8)
one_block = dict(one, block="all")
kernel.main(SimpleNamespace(**one_block, output=Path("kernel.h5")))
spectrum.main(SimpleNamespace(**one_block, kernel=Path("kernel.h5"), output=Path("spectrum.h5")))
closest_pair.main(SimpleNamespace(**one, output=Path("angle.h5")))
sweep.main(SimpleNamespace(**common, depths=[1], widths=[8, float("inf")], sizes=[9], blocks=2,
                           output=Path("sweep.h5")))
descent.main(SimpleNamespace(**common, depths=[1], width=8, block=9, steps=3,
                             rules=["own"], output=Path("descent.h5")))
print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "False\n", done.stderr


def test_named_operations_are_those_of_numpy(device):
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 7, 7))
    total = put(c.copy(), device)
    add_product(total, put(a.copy(), device), put(b, device))
    np.testing.assert_allclose(to_numpy(total), c + a * b, rtol=1e-14)
    factor = to_numpy(triangular_factor(put(rng.standard_normal((9, 4)), device)))
    assert factor.shape == (4, 4) and np.array_equal(factor, np.triu(factor))


def on_a_device(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device=torch.device("cpu"))


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: on_a_device(2) + torch.ones(2),
        lambda: on_a_device(2, 2) @ torch.ones(2, 2),
        lambda: torch.matmul(on_a_device(2, 2), on_a_device(2, 2), out=torch.empty(2, 2)),
        lambda: on_a_device(2, 2).T + put(np.ones(2, np.float32), torch.device("cpu")).cpu(),
        lambda: on_a_device(3)[torch.arange(2)],
        lambda: on_a_device(3).__setitem__(slice(0, 2), torch.ones(2)),
        lambda: on_a_device(3).numpy(),
        lambda: np.asarray(on_a_device(3)),
    ],
)
def test_arrays_of_two_devices_mixed_up_are_found(mixed):
    mixed()
    with OneDevice(), pytest.raises((RuntimeError, TypeError), match="device"):
        mixed()


def test_what_a_gpu_allows_is_allowed():
    with OneDevice():
        moved = put(np.ones(3), torch.device("cpu"))
        assert float((moved * 2.0 + torch.tensor(1.0)).sum()) == 9
        assert to_numpy(moved[moved > 0]).tolist() == [1, 1, 1]
        assert (torch.ones(3) + torch.from_numpy(np.ones(3))).numpy().sum() == 6


@pytest.mark.parametrize(
    ("asked", "threads"), [("3", 3), ("2,1", 2), ("", None), ("0", None), ("many", None)]
)
def test_threads_are_those_of_openmp_or_all(monkeypatch, asked, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert thread_count() == (threads or os.cpu_count())
