"""κ and min φ at infinite width: results/sweep_infinite.csv."""

from pathlib import Path

import pandas as pd

from ntkcond.artefacts import sweep_curves
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Table, NTKs at infinite width",
    section="§5 Smaller condition number",
    inputs=("sweep/infinite",),
    datasets="fig2",
    files=(".csv",),
    default=False,
    costs=False,
    caption="""
A row for each NTK of the blocks of Figure 2, at infinite width:
data set, activation, depth, width (``inf``: infinite), ``n``, seed and block; ``kappa``, its lower
bound, its verdict and grade, λ_max and λ_min; and ``min_angle_deg``, the smallest angle between the
gradients of two samples.

**The paper** has no such table.
""",
)


def table(sweep_infinite: list[Path]) -> pd.DataFrame:
    """Rows in the order of the files given."""
    return sweep_curves.read(sweep_infinite)
