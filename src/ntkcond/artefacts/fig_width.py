"""min φ and κ against the width, at fixed depths, with their values at infinite width.

The paper proves at infinite width and measures at 512; it leaves the range between to future work.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import conditions, style, sweep_curves, sweep_panels
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Width, separation and conditioning at finite width",
    section="§∞ Beyond the first version",
    inputs=("sweep_width",),
    datasets="fig_width",
    caption="""
**Left**: the smallest angle between the gradients of two samples, mean over initialisations with
its 95 % t interval. **Right**: κ of the NTK of n samples, median and middle 68 % over
initialisations and blocks. Against the width m of the hidden layers, a colour for each depth;
thin lines: the closed form at infinite width. A hollow triangle is a lower bound.

**The paper** proves its theorems at infinite width and measures at m = 512. Its newest version has
one theorem at finite width (3.2: φ > θ for small θ where m is large against 1/θ²). Here the
distance of m = 512 from infinite width grows with depth.
""",
)


def table(sweep_width: pd.DataFrame) -> pd.DataFrame:
    """See `ntkcond.artefacts.sweep_curves.table`."""
    return sweep_curves.table(sweep_width)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each data set; darker with depth, thin: infinite width."""
    colours = style.depth_colours_of(numbers.depth)

    def curves(left: Axes, right: Axes, rows: pd.DataFrame) -> None:
        for depth, colour in colours.items():
            curve = rows[rows.depth == depth].sort_values("width")
            finite, limit = curve[np.isfinite(curve.width)], curve[np.isinf(curve.width)]
            look = {"color": colour, "marker": "o"}
            sweep_panels.draw_angle(left, "width", finite, {**look, "label": f"$L$ = {depth}"})
            sweep_panels.draw_kappa(right, "width", finite, look)
            for axes, column in ((left, "min_angle_deg_mean"), (right, "kappa_median")):
                for height in limit[column]:
                    axes.axhline(height, **sweep_panels.limit(look))
        widths = sorted(rows.width[np.isfinite(rows.width)].unique())
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xticks(widths, [f"{width:g}" for width in widths])

    figure, panels = sweep_panels.draw_rows(numbers, 2.2, curves)
    for axes in panels[-1]:
        axes.set_xlabel("width $m$")
    figure.key(about=conditions.in_words(numbers))
    return figure
