"""A row for each data set, activation, depth and seed: results/angles.csv."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.storage import read_hdf5, write_csv


def main(arguments: Namespace) -> None:
    """Rows in the order of the files given."""
    write_csv(arguments.output, pd.concat(map(rows, arguments.angles), ignore_index=True))


def rows(path: Path) -> pd.DataFrame:
    """The rows of one angle file. The data set is in its path: …/{dataset}/*/depth*.h5."""
    with read_hdf5(path) as file:
        attributes, pairs = file.attrs, file["closest_pair"][:]
        return pd.DataFrame(
            {
                "dataset": path.parts[-3],
                "activation": attributes["activation"],
                "depth": attributes["depth"],
                "width": attributes["width"],
                "trainable": attributes["trainable"],
                "samples": attributes["samples"],
                "seed": attributes["seeds"],
                "min_angle_deg": file["min_angle_deg"][:],
                "first": pairs[:, 0],
                "second": pairs[:, 1],
                "duplicate_rows": attributes["duplicate_rows"],
                "zero_rows": attributes["zero_rows"],
                "zero_gradients": file["zero_gradients"][:],
            }
        )


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--angles", type=Path, nargs="+", required=True)
    command.run(main, options)
