"""κ and min φ of the first layer alone: results/sweep_first_layer.csv."""

from pathlib import Path

import pandas as pd

from ntkcond.artefacts import sweep_curves
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Table, NTKs of the first layer",
    section="§5 Smaller condition number",
    inputs=("sweep/first_layer",),
    datasets="fig2",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each NTK of the first layer of a network with one hidden layer (Thm 5.1), and its limit:
data set, activation, depth, width (``inf``: infinite), ``n``, seed and block; ``kappa``, its lower
bound, its verdict and grade, λ_max and λ_min; and ``min_angle_deg``, the smallest angle between the
gradients of two samples.

**The paper** has no such table.
""",
)


def table(sweep_first_layer: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given."""
    return sweep_curves.read(sweep_first_layer)
