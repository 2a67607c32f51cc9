"""A row for each data set, depth, seed, learning rate and epoch: results/training.csv."""

from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5
from ntkcond.training.history import MEASURES

SPEC = Spec(
    title="Table, every epoch of every training run",
    section="§6 Faster optimization",
    inputs=("sgd",),
    datasets="fig3",
    files=(".csv",),
    reported=(),
    default=False,
    costs=False,
    caption="""
A row for each data set, depth, seed, learning rate and epoch: every epoch of every training run.
""",
)

SETTINGS = (
    "width", "activation", "convention", "loss", "batch", "epochs", "stop_below", "samples",
    "test_samples", "tf32",
)  # fmt: skip
FLOPS = ("flops_per_epoch", "test_flops_per_epoch")


def table(sgd: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given; empty where a run had ended or has no test split."""
    return pd.concat(map(rows, sgd), ignore_index=True)


def rows(path: Path) -> pd.DataFrame:
    """The rows of one training file. The data set is in its path: …/{dataset}/depth*/seed*.h5."""
    with read_hdf5(path) as file:
        seeds, rates, epochs = file["train_loss"].shape
        attributes = dict(file.attrs)
        measured = {name: file[name][:].ravel() for name in MEASURES}
        ended = {
            name: np.repeat(file[name][:].ravel(), epochs)
            for name in ("diverged_epoch", "stopped_epoch")
        }
    return pd.DataFrame({
        "dataset": path.parts[-3], "depth": attributes["depth"],
        "seed": np.repeat(attributes["seeds"], rates * epochs),
        "learning_rate": np.tile(np.repeat(attributes["learning_rates"], epochs), seeds),
        "epoch": np.tile(np.arange(1, epochs + 1), seeds * rates), **measured,
        **{name: pd.array(np.where(e == 0, None, e), dtype="Int64") for name, e in ended.items()},
        **{name: attributes[name] for name in (*SETTINGS, *FLOPS)},
    })  # fmt: skip
