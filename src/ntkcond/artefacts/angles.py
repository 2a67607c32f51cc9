"""A row for each data set, activation, depth and seed: results/angles.csv."""

from pathlib import Path

import pandas as pd

from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Table, smallest gradient angles",
    section="§5 Smaller condition number",
    inputs=("closest_pair",),
    datasets="fig2",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each data set, activation, depth, width and seed, with

- ``min_angle_deg``: the smallest angle between the gradients of two samples, in degrees, over all
  pairs of the ``samples``; ``first``, ``second``: the closest pair;
- ``duplicate_rows``, ``zero_rows``: repeated and zero samples, left out of the minimum;
- ``zero_gradients``: samples whose gradient is zero, left out as well.

**The paper** has no such table. Its §5.2 reports the mean over five initialisations, as a figure.
Its authors' scripts use one, and pixels of 0 to 255 for the angles but of −1 to 1 for κ. Here both
use the same samples.
""",
)

SETTINGS = ("activation", "depth", "width", "bias", "trainable", "samples")


def table(closest_pair: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given."""
    return pd.concat(map(rows, closest_pair), ignore_index=True)


def rows(path: Path) -> pd.DataFrame:
    """The rows of one angle file. The data set is in its path: …/{dataset}/*/depth*.h5."""
    with read_hdf5(path) as file:
        attributes, pairs = file.attrs, file["closest_pair"][:]
        return pd.DataFrame({
            "dataset": path.parts[-3], **{name: attributes[name] for name in SETTINGS},
            "seed": attributes["seeds"], "min_angle_deg": file["min_angle_deg"][:],
            "first": pairs[:, 0], "second": pairs[:, 1],
            "duplicate_rows": attributes["duplicate_rows"], "zero_rows": attributes["zero_rows"],
            "zero_gradients": file["zero_gradients"][:],
        })  # fmt: skip
