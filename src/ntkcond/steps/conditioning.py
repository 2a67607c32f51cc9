"""A row for each data set, activation, depth, seed and block: results/conditioning.csv."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond import command
from ntkcond.storage import read_hdf5, write_csv

PER_KERNEL = (
    "lambda_max", "lambda_min", "lambda_min_error", "rank_bound", "kappa", "kappa_lower",
    "kappa_upper", "verdict", "nonzero_rank", "nonzero_lambda_min",
    "nonzero_lambda_min_error", "nonzero_kappa",
)  # fmt: skip


def main(arguments: Namespace) -> None:
    """Rows in the order of the files given; `nonzero_*` are empty but for linear networks."""
    write_csv(arguments.output, pd.concat(map(rows, arguments.spectra), ignore_index=True))


def rows(path: Path) -> pd.DataFrame:
    """The rows of one spectrum file. The data set is in its path: …/{dataset}/*/depth*.h5."""
    with read_hdf5(path) as file:
        seeds, blocks = file["kappa"].shape
        attributes = file.attrs
        table = {
            "dataset": path.parts[-3],
            "activation": attributes["activation"],
            "depth": attributes["depth"],
            "width": attributes["width"],
            "trainable": attributes["trainable"],
            "n": attributes["block"],
            "samples": attributes["samples"],
            "seed": np.repeat(attributes["seeds"], blocks),
            "block": np.tile(np.arange(blocks), seeds),
        }
        for name in PER_KERNEL:
            if name == "verdict":
                table[name] = file[name].asstr()[:].ravel()
            else:
                table[name] = file[name][:].ravel() if name in file else np.nan
    return pd.DataFrame(table).astype({"nonzero_rank": "Int64"})


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--spectra", type=Path, nargs="+", required=True)
    command.run(main, options)
