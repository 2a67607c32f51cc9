"""A row for each data set, activation, depth, seed and block: results/conditioning.csv."""

from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Table, κ of every kernel",
    section="§5 Smaller condition number",
    inputs=("spectrum",),
    datasets="fig2",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each NTK: data set, activation, depth, width, seed and block of ``n`` samples, with

- ``lambda_max``, ``lambda_min``, and ``lambda_min_error``, a bound on the error of the latter;
- ``rank_bound``: the rank that the inputs allow; below n, the NTK is singular;
- ``kappa``, ``kappa_lower``, ``kappa_upper``: the condition number and the interval that the bound
  leaves; ``verdict``: resolved, singular (κ = ∞), or unresolved (``kappa`` is a lower bound);
  ``grade`` of the bound and the verdict: proved, under a model of rounding, or estimated;
  ``kinks``: preactivations that rounding may have put on the other side of a kink;
- ``nonzero_*``, linear networks only: rank, smallest eigenvalue and condition number of the
  non-zero spectrum;
- ``smallest_residual``, where an n is above 2,000: ‖K v − λ_min v‖ for the eigenvector v found in
  the kernel file, with K v from the gradients themselves;
- ``smallest_is_above``, with ``prove_smallest``: no eigenvalue of the stored K is below.

**The paper** has no such table. Its §5.2 reports the mean κ over five initialisations, as a
figure. Its authors' scripts average it over blocks of 512 samples, from a float32 solver without
an error bound.
""",
)

SETTINGS = ("activation", "depth", "width", "bias", "trainable")
PER_KERNEL = (
    "lambda_max", "lambda_min", "lambda_min_error", "rank_bound", "kappa", "kappa_lower",
    "kappa_upper", "verdict", "grade", "kinks", "nonzero_rank", "nonzero_lambda_min",
    "nonzero_lambda_min_error", "nonzero_kappa",
)  # fmt: skip
OPTIONAL = ("smallest_residual", "smallest_is_above")  # columns only where a kernel has them


def table(spectrum: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given; `nonzero_*` are empty but for linear networks."""
    return pd.concat(map(rows, spectrum), ignore_index=True)


def rows(path: Path) -> pd.DataFrame:
    """The rows of one spectrum file. The data set is in its path: …/{dataset}/*/depth*.h5."""
    with read_hdf5(path) as file:
        (seeds, blocks), attributes = file["kappa"].shape, dict(file.attrs)
        columns = {name: file[name][:].ravel() if name in file else np.nan for name in PER_KERNEL}
        columns |= {name: file[name][:].ravel() for name in OPTIONAL if name in file}
        for name in ("verdict", "grade"):
            columns[name] = file[name].asstr()[:].ravel()
    about = {
        "dataset": path.parts[-3], **{name: attributes[name] for name in SETTINGS},
        "n": attributes["block"], "samples": attributes["samples"],
        "seed": np.repeat(attributes["seeds"], blocks),
        "block": np.tile(np.arange(blocks), seeds),
    }  # fmt: skip
    return pd.DataFrame({**about, **columns}).astype({"nonzero_rank": "Int64"})
