"""A row for each data set, depth, seed, learning rate and epoch: results/training.csv."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond import command
from ntkcond.history import MEASURES
from ntkcond.storage import read_hdf5, write_csv

SETTINGS = (
    "width",
    "activation",
    "convention",
    "batch",
    "epochs",
    "samples",
    "test_samples",
    "tf32",
)
FLOPS = ("flops_per_epoch", "test_flops_per_epoch")


def main(arguments: Namespace) -> None:
    """Rows in the order of the files given; empty where a run had diverged or has no test split."""
    write_csv(arguments.output, pd.concat(map(rows, arguments.trained), ignore_index=True))


def rows(path: Path) -> pd.DataFrame:
    """The rows of one training file. The data set is in its path: …/{dataset}/depth*.h5."""
    with read_hdf5(path) as file:
        seeds, rates, epochs = file["train_loss"].shape
        attributes = file.attrs
        diverged = np.repeat(file["diverged_epoch"][:].ravel(), epochs)
        table = {
            "dataset": path.parts[-2],
            "depth": attributes["depth"],
            "seed": np.repeat(attributes["seeds"], rates * epochs),
            "learning_rate": np.tile(np.repeat(attributes["learning_rates"], epochs), seeds),
            "epoch": np.tile(np.arange(1, epochs + 1), seeds * rates),
            **{name: file[name][:].ravel() for name in MEASURES},
            "diverged_epoch": pd.array(np.where(diverged == 0, None, diverged), dtype="Int64"),
            **{name: attributes[name] for name in (*SETTINGS, *FLOPS)},
        }
    return pd.DataFrame(table)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--trained", type=Path, nargs="+", required=True)
    command.run(main, options)
