"""Curves of min φ and κ of sweeps, and panels for them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import style
from ntkcond.datasets.registry import title


def draw_kappa(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """κ against column x: the median, the middle 68 % shaded; nothing where all are singular. Where
    kernels that are not resolved may raise the median, a hollow triangle: a lower bound."""
    lost = (curve.unresolved > 0) & ~(curve.kappa_lower_bound > curve.kappa_median)
    known, lost = curve[~lost], curve[lost]
    axes.plot(known[x], known.kappa_median.replace(np.inf, np.nan), **look)
    low, high = known.kappa_q16, known.kappa_q84.replace(np.inf, np.nan)
    style.shade(axes, known[x], low, high, look["color"])
    bounds = {**look, "linestyle": "none", "marker": "^", "markerfacecolor": "white", "label": None}
    axes.plot(lost[x], lost.kappa_median, **bounds)


def draw_angle(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """min φ against column x: mean over seeds ± one standard deviation."""
    mean, spread = curve.min_angle_deg_mean, curve.min_angle_deg_std.fillna(0)
    axes.plot(curve[x], mean, **look)
    style.shade(axes, curve[x], mean - spread, mean + spread, look["color"])


def draw_rows(
    numbers: pd.DataFrame,
    heights: tuple[float, float],
    draw: Callable[[Axes, Axes, pd.DataFrame], None],
) -> tuple[style.Picture, np.ndarray]:
    """A row of two panels for each data set: min φ and κ, which draw(left, right, rows) draws.
    heights: of the figure without rows, and of each row, in inches."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=heights[0] + heights[1] * len(datasets))
    panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True)
    for (left, right), (dataset, rows) in zip(panels, datasets, strict=True):
        draw(left, right, rows)
        left.set_title(f"{title(dataset)}: separation")
        left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
        left.set_ylim(bottom=0)
        right.set_title(f"{title(dataset)}: conditioning")
        right.set_ylabel(rf"$\kappa$ of $n$ = {rows.n.iloc[0]:,} samples")
        right.set_yscale("log")
    return figure, panels
