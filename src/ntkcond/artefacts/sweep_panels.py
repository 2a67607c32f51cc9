"""Curves of min φ and κ of sweeps, and panels for them."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import conditions, style

DASHES = {"relu": "-", "linear": (0, (3.5, 1.6))}
LIMIT = r"thin line: $m \to \infty$"
LOWER = r"triangle: lower bound on $\kappa$"
SPREAD = r"shade: middle 68 % of $\kappa$"
BAND = r"$\kappa = \infty$, a singular NTK"
ANGLES = r"shade: 95 % CI of mean min $\phi$"
TWO = r"short lines: min $\phi$ of each initialisation"


def draw_kappa(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """κ against column x: the median, the middle 68 % shaded; nothing where all are singular. Where
    kernels that are not resolved may raise the median, a hollow triangle: a lower bound."""
    lost = (curve.unresolved > 0) & ~(curve.kappa_lower_bound > curve.kappa_median)
    known, lost = curve[~lost], curve[lost]
    axes.plot(known[x], known.kappa_median.replace(np.inf, np.nan), **look)
    low, high = known.kappa_q16, known.kappa_q84.replace(np.inf, np.nan)
    style.shade(axes, known[x], low, high, look["color"], SPREAD)
    draw_bound(axes, lost[x], lost.kappa_median, look["color"])


def draw_bound(axes: Axes, x: pd.Series, bound: pd.Series, colour: object) -> None:
    """Lower bounds on κ."""
    if len(x):
        axes.plot(x, bound, color=colour, label=LOWER, **style.BOUND)


def draw_angle(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """min φ against column x: mean over seeds and its interval; of two seeds, which have none, the
    values themselves."""
    mean, colour = curve.min_angle_deg_mean, look["color"]
    axes.plot(curve[x], mean, **look)
    style.shade(axes, curve[x], curve.min_angle_deg_low, curve.min_angle_deg_high, colour, ANGLES)
    half = curve.min_angle_deg_std[curve.seeds == 2] / np.sqrt(2)  # of their difference
    if half.notna().any():
        points = {"color": colour, "linestyle": "none", "marker": "_", "label": TWO}
        for ends in (mean - half, mean + half):
            axes.plot(curve[x], ends, **points)


def draw_rows(
    numbers: pd.DataFrame,
    height: float,
    draw: Callable[[Axes, Axes, pd.DataFrame], None],
) -> tuple[style.Picture, np.ndarray]:
    """A row of two panels for each data set: min φ and κ, which draw(left, right, rows) draws.
    height: of each row, in inches."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=height * len(datasets))
    panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True)
    for (left, right), (dataset, rows) in zip(panels, datasets, strict=True):
        draw(left, right, rows)
        name_pair(
            left, right, conditions.title(dataset), rf"$\kappa$ of $n$ = {rows.n.iloc[0]:,} samples"
        )
        log_decades(right, rows[["kappa_median", "kappa_lower_bound"]])
    return figure, panels


def name_pair(left: Axes, right: Axes, name: str, kappa: str, band: Axes | None = None) -> None:
    """Titles, y labels and limits of two panels, min φ and κ. band: above the right one."""
    left.set_title(f"{name}: separation")
    left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
    left.set_ylim(bottom=0)
    (band or right).set_title(f"{name}: conditioning")
    right.set_ylabel(kappa)


def draw_limit(axes: Axes, x: pd.Series, values: pd.Series, look: dict) -> None:
    """A curve's limit at infinite width, where it is known. look: the curve's."""
    values = values.astype(float).replace(np.inf, np.nan)  # without a sweep they have no type
    if values.notna().any():
        axes.plot(x, values, **limit(look))


def limit(look: dict) -> dict:
    """The look of a curve's limit at infinite width: a thin line behind it. look: the curve's."""
    kept = {key: look[key] for key in ("color", "linestyle") if key in look}
    return {**kept, "linewidth": 0.6, "alpha": 0.8, "zorder": 1, "label": LIMIT}


def of_activation(activation: str, look: dict) -> dict:
    """ReLU: filled, solid; linear: hollow, dashed; others: half filled, dotted.
    look: colour and marker."""
    return {
        **look,
        "linestyle": DASHES.get(activation, ":"),
        "markerfacecolor": "white" if activation == "linear" else look["color"],
        "markerfacecoloralt": "white",
        "fillstyle": "full" if activation in DASHES else "bottom",
        "markeredgewidth": 0.9,
    }


def rows_with_band(figure: style.Picture, lanes: Sequence[int]) -> list[tuple[Axes, Axes, Axes]]:
    """For each row of the figure: a panel; one for κ; above that a band for κ = ∞, with room for so
    many curves, at the heights 0, −1, …"""
    heights = [height for count in lanes for height in (0.04 + 0.03 * count if count else 0.001, 1)]
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
        band.set_facecolor(style.IN_BAND)
        band.grid(False)
        band.spines["bottom"].set_visible(False)
        band.tick_params(bottom=False, labelbottom=False)
        if not count:
            band.set_axis_off()  # nothing is ∞
        rows.append((angles, kappas, band))
    return rows


def draw_in_band(band: Axes, lane: int, x: pd.Series, look: dict) -> None:
    """A curve's points with κ = ∞, in the band's lane 0, 1, …"""
    band.plot(x, np.full(len(x), -lane), **look)


def log_decades(axes: Axes, values: pd.DataFrame | pd.Series) -> None:
    """A log scale of y: powers of ten, or plain numbers where it has fewer than two of them.
    values: those drawn."""
    if not np.isfinite(values).any(axis=None):
        words = {"ha": "center", "transform": axes.transAxes, "fontsize": 7, "color": style.GREY}
        axes.text(0.5, 0.5, r"no finite $\kappa$", **words)
        axes.set_yticks([])
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if np.floor(np.log10(high)) < np.ceil(np.log10(low)) + 1:
        style.plain_log(axes)
