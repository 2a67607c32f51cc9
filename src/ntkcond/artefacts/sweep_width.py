"""κ and min φ against the width: results/sweep_width.csv."""

from pathlib import Path

import pandas as pd

from ntkcond.artefacts import sweep_curves
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Table, NTKs against the width",
    section="§∞ Beyond the first version",
    inputs=("sweep/width",),
    datasets="fig_width",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each NTK of a few blocks, at each width:
data set, activation, depth, width (``inf``: infinite), ``n``, seed and block; ``kappa``, its lower
bound, its verdict and grade, λ_max and λ_min; and ``min_angle_deg``, the smallest angle between the
gradients of two samples.

**The paper** has no such table.
""",
)


def table(sweep_width: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given."""
    return sweep_curves.read(sweep_width)
