"""Descents of small networks by the step, for its own tests and those of its figures."""

from argparse import Namespace
from pathlib import Path

import h5py
import numpy as np

from ntkcond.steps import descent

N, DEPTHS, SEEDS, WIDTH, STEPS = 12, [1, 2, 6], [1, 32], 64, 20
ALTERNATING = np.arange(N) % 2


def gaussian() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, 5)).astype(np.float32)


def descend(folder: Path, x: np.ndarray, labels: np.ndarray, **changes: object) -> Path:
    """The step's file for this data set, mine."""
    output = folder / f"descent/mine/width{WIDTH}.h5"
    output.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "mine.h5", "w") as file:
        file["x"], file["y"] = x, labels
    options = {
        "dataset": folder / "mine.h5", "activation": "relu", "depths": DEPTHS, "seeds": SEEDS,
        "width": WIDTH, "block": "all", "steps": STEPS, "rules": ["common", "own"],
        "device": "cpu", "threads": 1, "record": None, "output": output,
    }  # fmt: skip
    descent.main(Namespace(**options | changes))
    return output
