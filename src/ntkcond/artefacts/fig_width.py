"""min φ and κ against the width, at fixed depths, with their values at infinite width.

The paper proves at infinite width and measures at 512; what lies between it leaves to future work.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style, sweep_curves
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title

SPEC = Spec(
    title="Width, separation and conditioning at finite width",
    section="§∞ Beyond the first version",
    inputs=("sweep/width",),
    datasets="fig_width",
    caption="""
**Left**: the smallest angle between the gradients of two samples, mean over initialisations ± one
standard deviation. **Right**: κ of the NTK of n samples, median and middle 68 % over
initialisations and blocks. Against the width m of the hidden layers, a colour for each depth;
dashed: the closed form at infinite width.

**The paper** proves its theorems at infinite width, measures at m = 512, and leaves finite width
to future work. What to see: how far 512 is from infinite, and that it is the farther the deeper
the network.
""",
)


def table(sweep_width: Sequence[Path]) -> pd.DataFrame:
    """See `ntkcond.artefacts.sweep_curves.table`."""
    return sweep_curves.table(sweep_width)


def draw(numbers: pd.DataFrame) -> Figure:
    """A row of two panels for each data set; darker with depth, dashed: infinite width."""
    datasets = list(numbers.dataset.unique())
    depths = sorted(numbers.depth.unique())
    colours = dict(zip(depths, style.depth_colours(len(depths)), strict=True))
    with style.look():
        figure = style.figure(height=0.5 + 2.2 * len(datasets))
        panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True)
        for (left, right), dataset in zip(panels, datasets, strict=True):
            own = numbers[numbers.dataset == dataset]
            for depth, colour in colours.items():
                curve = own[own.depth == depth].sort_values("width")
                finite, limit = curve[np.isfinite(curve.width)], curve[np.isinf(curve.width)]
                look = {"color": colour, "marker": "o"}
                sweep_curves.draw_angle(left, "width", finite, {**look, "label": f"$L$ = {depth}"})
                sweep_curves.draw_kappa(right, "width", finite, look)
                for axes, value in ((left, "min_angle_deg_mean"), (right, "kappa_median")):
                    for height in limit[value]:
                        axes.axhline(height, color=colour, linestyle="--", linewidth=0.9)
            row = own.iloc[0]
            left.set_title(f"{title(dataset)}: separation")
            left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
            left.set_ylim(bottom=0)
            right.set_title(f"{title(dataset)}: conditioning")
            right.set_ylabel(rf"$\kappa$ of $n$ = {row.n:,} samples")
            right.set_yscale("log")
            widths = sorted(own.width[np.isfinite(own.width)].unique())
            for axes in (left, right):
                axes.set_xscale("log", base=2)
                axes.set_xticks(widths, [f"{width:g}" for width in widths])
        for axes in panels[-1]:
            axes.set_xlabel("width $m$")
        panels[0, 0].plot([], [], "--", color=style.GREY, linewidth=0.9, label=r"$m \to \infty$")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
