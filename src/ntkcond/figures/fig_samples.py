"""κ against n, the number of samples in one NTK: every κ depends on it."""

import pandas as pd
from matplotlib.figure import Figure

from ntkcond.datasets.registry import title
from ntkcond.figures import style, sweeps


def draw(numbers: pd.DataFrame) -> Figure:
    """A panel for each data set; darker with depth."""
    datasets = list(numbers.dataset.unique())
    depths = sorted(numbers.depth.unique())
    with style.look():
        figure = style.figure(height=2.7, width=min(style.TEXT_WIDTH, 1.2 + 2.4 * len(datasets)))
        panels = figure.subplots(1, len(datasets), squeeze=False)[0]
        for axes, dataset in zip(panels, datasets, strict=True):
            own = numbers[numbers.dataset == dataset]
            for depth, colour in zip(depths, style.depth_colours(len(depths)), strict=True):
                curve = own[own.depth == depth].sort_values("n")
                look = {"color": colour, "marker": "o", "label": f"$L$ = {depth}"}
                sweeps.draw_kappa(axes, "n", curve, look)
            axes.set_title(f"{title(dataset)}, $m$ = {own.width.iloc[0]:g}")
            axes.set(xscale="log", yscale="log", xlabel="samples in one NTK, $n$")
            axes.set_xscale("log", base=2)
            sizes = sorted(own.n.unique())
            axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        panels[0].set_ylabel(r"NTK condition number $\kappa$")
        panels[0].legend(loc="upper left")
    return figure
