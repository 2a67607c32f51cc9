"""Curves of min φ and κ of sweeps, and panels for them."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import style
from ntkcond.datasets.registry import title

DASHES = {"relu": "-", "linear": (0, (3.5, 1.6))}


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
    """min φ against column x: mean over seeds and its interval."""
    axes.plot(curve[x], curve.min_angle_deg_mean, **look)
    style.shade(axes, curve[x], curve.min_angle_deg_low, curve.min_angle_deg_high, look["color"])


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
        name_pair(left, right, title(dataset), rf"$\kappa$ of $n$ = {rows.n.iloc[0]:,} samples")
        right.set_yscale("log")
    return figure, panels


def name_pair(left: Axes, right: Axes, name: str, kappa: str, band: Axes | None = None) -> None:
    """Titles, y labels and limits of two panels, min φ and κ. band: above the right one."""
    left.set_title(f"{name}: separation")
    left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
    left.set_ylim(bottom=0)
    (band or right).set_title(f"{name}: conditioning")
    right.set_ylabel(kappa)


def limit(look: dict) -> dict:
    """The look of a curve's limit at infinite width: a thin line behind it. look: the curve's."""
    kept = {key: look[key] for key in ("color", "linestyle") if key in look}
    return {**kept, "linewidth": 0.6, "alpha": 0.8, "zorder": 1}


def of_activation(activation: str, colour: object) -> dict:
    """ReLU: filled, solid; linear: hollow, dashed; others: filled, dotted."""
    return {
        "color": colour,
        "linestyle": DASHES.get(activation, ":"),
        "markerfacecolor": "white" if activation == "linear" else colour,
        "markeredgewidth": 0.9,
    }


def rows_with_band(figure: style.Picture, lanes: Sequence[int]) -> list[tuple[Axes, Axes, Axes]]:
    """For each row of the figure: a panel; one for κ; above that a band for κ = ∞, with room for so
    many curves, at the heights 0, −1, …"""
    heights = [height for count in lanes for height in (0.04 + 0.03 * max(1, count), 1)]
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights, hspace=0.03)
    rows = []
    for row, count in enumerate(lanes):
        top, below = 2 * row, 2 * row + 1
        angles, kappas = (
            figure.add_subplot(grid[top : below + 1, 0]),
            figure.add_subplot(grid[below, 1]),
        )
        band = figure.add_subplot(grid[top, 1], sharex=kappas)
        band.set_ylim(-max(1, count) + 0.2, 0.8)
        band.set_yticks([(1 - max(1, count)) / 2], [r"$\infty$"], fontsize=10)
        band.set_facecolor("0.95")
        band.grid(False)
        band.spines["bottom"].set_visible(False)
        band.tick_params(bottom=False, labelbottom=False)
        rows.append((angles, kappas, band))
    return rows


def draw_in_band(band: Axes, lane: int, x: pd.Series, look: dict) -> None:
    """A curve's points with κ = ∞, in the band's lane 0, 1, …"""
    band.plot(x, np.full(len(x), -lane), **look)


def key_of_limit() -> tuple[Line2D, str]:
    """The legend's entry."""
    return Line2D([], [], **limit({"color": style.GREY})), r"thin: $m \to \infty$"


def log_decades(axes: Axes, values: pd.DataFrame | pd.Series) -> None:
    """A log scale of y that shows two powers of ten or more. values: those drawn."""
    if not np.isfinite(values).any(axis=None):
        axes.set_ylim(1, 100)  # every κ is ∞: an empty axis, which a log scale cannot choose
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 100 * low:  # or no tick would be at a power of ten
        axes.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
