"""Figure 2: the smallest gradient angle and the condition number of the NTK against depth."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ntkcond.artefacts import style, sweep_curves
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title

SPEC = Spec(
    title="Figure 2, separation and conditioning against depth",
    section="§5 Smaller condition number",
    inputs=("conditioning", "angles", "sweep/infinite"),
    datasets="fig2",
    about="experiment",
    caption="""
**(a)** The smallest angle φ between the gradients of any two samples of a data set, against depth
L; mean over initialisations, shade ± one standard deviation. **(b)** The condition number κ of the
NTK of n samples; mean of the resolved κ over initialisations and blocks of n samples, shade: the
middle 68 % of all. κ = ∞ is drawn in a band of its own, a lower bound as an arrow. ReLU networks:
filled markers, solid lines. Linear networks: hollow markers, dashed lines. Thin lines: the same
samples at infinite width, where that is known. L = 0 is the linear model.

**The paper** (§5.2 and its Figure 2; Figure 3 of its newest version) states that a ReLU network
always has a larger smallest angle and a smaller κ than its linear twin, and that κ falls with
every layer. When you compare:

- The paper shows 2,000 synthetic samples of 5 features, MNIST, Fashion-MNIST, SVHN and 50,000
  samples of LibriSpeech, at width 512, depths 0 to 10, the mean of 5 initialisations.
- κ depends on n. The paper does not say n; its authors' scripts average κ over blocks of 512
  samples.
- The paper draws a finite κ for linear networks everywhere. Of more samples than features, every
  linear NTK is singular: κ = ∞.
- Linear networks keep the κ of the inputs only at infinite width. At finite width it tends to grow
  with depth.
- That deeper is better depends on the data: it holds where nearly parallel samples decide κ, and
  need not for others.
- The authors' scripts compute in float32, which loses the smallest eigenvalue to rounding when κ
  is about 10⁸. Here it is float64, and the smallest eigenvalue has an error bound.
- Of LibriSpeech the paper says no more than that its 768 features follow Hui & Belkin (2020),
  which does not settle them, and of labels nothing; its authors' scripts have 41 classes. Recipe
  and labels are therefore **this project's choice**: neighbouring frames of log-mel energies; the
  label is the phone where the config names an alignment, else who speaks.

The numbers drawn are in fig2.csv_: for each point also the number of samples, seeds and blocks,
the median, and how many κ are resolved, singular and unresolved.
""",
)

CURVE = ["dataset", "activation", "depth"]
LIMITS = [*CURVE, "infinite_kappa_mean", "infinite_kappa_verdict", "infinite_min_angle_deg"]
DASHES = {"relu": "-", "linear": (0, (3.5, 1.6))}
NAMES = {"relu": "ReLU", "linear": "linear"}
LIMIT = {"linewidth": 0.6, "alpha": 0.8, "zorder": 1}


def table(
    conditioning: pd.DataFrame, angles: pd.DataFrame, sweep_infinite: Sequence[Path] = ()
) -> pd.DataFrame:
    """The numbers drawn: a row for each (dataset, activation, depth).

    Of κ over all seeds and blocks: kappa_mean, kappa_std over the resolved ones (∞ where all are
    singular, empty where none is resolved); kappa_median and the quantiles kappa_q16 and kappa_q84
    over all, a singular κ counting as ∞ and an unresolved one as its lower bound;
    kappa_lower_bound, the smallest bound of the unresolved. kappa_verdict: that of all of them, or
    `mixed`; resolved, singular, unresolved: how many. nonzero_kappa_mean: of linear networks, the
    non-zero spectrum. min_angle_deg_*: over seeds, of all samples. std: of a sample (n − 1), empty
    for a single one. infinite_*, where the files of a sweep at infinite width are given:
    kappa_mean, kappa_verdict and min_angle_deg of the same blocks at infinite width."""
    kappas = pd.DataFrame(
        [
            {**dict(zip(CURVE, curve, strict=True)), **kappa_columns(rows)}
            for curve, rows in conditioning.groupby(CURVE, sort=False)
        ]
    )
    minima = angles.groupby(CURVE, sort=False, as_index=False).agg(
        min_angle_deg_mean=("min_angle_deg", "mean"),
        min_angle_deg_std=("min_angle_deg", "std"),
        duplicate_rows=("duplicate_rows", "first"),
        zero_rows=("zero_rows", "first"),
    )
    numbers = kappas.merge(minima, on=CURVE, how="left", validate="one_to_one")
    limits = _at_infinite_width(sweep_infinite) if sweep_infinite else pd.DataFrame(columns=LIMITS)
    return numbers.merge(limits, on=CURVE, how="left", validate="one_to_one")


def _at_infinite_width(paths: Sequence[Path]) -> pd.DataFrame:
    found = sweep_curves.table(paths)[[*CURVE, "kappa_mean", "kappa_verdict", "min_angle_deg_mean"]]
    return found.set_axis(LIMITS, axis=1)


def draw(numbers: pd.DataFrame) -> Figure:
    """Two panels: min φ, and κ on a log axis with a band of its own for κ = ∞."""
    datasets = list(numbers.dataset.unique())
    lanes = list(numbers[numbers.singular > 0].groupby(CURVE[:2], sort=False).groups)
    with style.look():
        figure = style.figure(height=2.7 + 0.13 * len(datasets))
        angle_axes, kappa_axes = figure.subplots(1, 2)
        band_height = 0.04 + 0.03 * max(1, len(lanes))
        band = kappa_axes.inset_axes((0, 1.03, 1, band_height), sharex=kappa_axes)
        for position, dataset in enumerate(datasets):
            of_dataset = numbers[numbers.dataset == dataset]
            for activation, curve in of_dataset.groupby("activation", sort=False):
                look = _look(position, activation)
                _draw_angles(angle_axes, curve, look)
                _draw_kappas(kappa_axes, curve, look)
                if (dataset, activation) in lanes:
                    infinite = curve.depth[curve.singular > 0]
                    height = -lanes.index((dataset, activation))
                    band.plot(infinite, np.full(len(infinite), height), **look)
        _finish(angle_axes, kappa_axes, band, numbers)
        band.set_ylim(-max(1, len(lanes)) + 0.2, 0.8)
        band.set_yticks([(1 - max(1, len(lanes))) / 2], [r"$\infty$"], fontsize=10)
        _legend(figure, numbers, datasets)
    return figure


def _look(position: int, activation: str) -> dict:
    """Colour and marker say which data set, dashes and filling which activation."""
    colour = style.COLOURS[position % len(style.COLOURS)]
    return {
        "color": colour,
        "marker": style.MARKERS[position % len(style.MARKERS)],
        "linestyle": DASHES.get(activation, ":"),
        "markerfacecolor": "white" if activation == "linear" else colour,
        "markeredgewidth": 0.9,
    }


def _shade(axes: Axes, depth: pd.Series, low: pd.Series, high: pd.Series, look: dict) -> None:
    axes.fill_between(depth, low, high, color=look["color"], alpha=0.15, linewidth=0)


def _draw_angles(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    mean, spread = curve.min_angle_deg_mean, curve.min_angle_deg_std.fillna(0)
    axes.plot(curve.depth, mean, **look)
    _shade(axes, curve.depth, mean - spread, mean + spread, look)
    _draw_limit(axes, curve.depth, curve.infinite_min_angle_deg, look)


def _draw_limit(axes: Axes, depth: pd.Series, value: pd.Series, look: dict) -> None:
    """At infinite width: a thin line behind the others."""
    axes.plot(depth, value, color=look["color"], linestyle=look["linestyle"], **LIMIT)


def _draw_kappas(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    """Means of resolved κ; above them, an arrow from the bound of those that are larger still."""
    infinite = dict.fromkeys(["kappa_mean", "kappa_q84", "infinite_kappa_mean"], np.inf)
    finite = curve.replace(infinite, np.nan)
    _draw_limit(axes, curve.depth, finite.infinite_kappa_mean, look)
    axes.plot(curve.depth, finite.kappa_mean, **look)
    _shade(axes, curve.depth, finite.kappa_q16, finite.kappa_q84, look)
    bound = curve[curve.unresolved > 0]
    for depth, lower in zip(bound.depth, bound.kappa_lower_bound, strict=True):
        axes.plot(depth, lower, **{**look, "marker": "_", "markersize": 6})
        axes.annotate(
            "", (depth, lower), (0, 9), textcoords="offset points",
            arrowprops={"arrowstyle": "<-", "color": look["color"], "linewidth": 0.9},
        )  # fmt: skip


def _finish(angles: Axes, kappas: Axes, band: Axes, numbers: pd.DataFrame) -> None:
    depths = sorted(numbers.depth.unique())
    ticks = depths if len(depths) <= 12 else depths[:: -(-len(depths) // 10)]
    sizes = " or ".join(f"{n:,}" for n in sorted(numbers.n.unique()))
    for axes in (angles, kappas):
        axes.set_xlabel("depth $L$ (hidden layers)")
        axes.set_xticks(ticks)
    angles.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ over all pairs (degrees)")
    angles.set_ylim(bottom=0)
    angles.set_title("(a) separation")
    kappas.set_ylabel("NTK condition number\n" rf"$\kappa$ of $n$ = {sizes} samples")
    if not np.isfinite(numbers[["kappa_mean", "kappa_lower_bound"]]).any(axis=None):
        kappas.set_ylim(1, 100)  # every κ is ∞: an empty axis, which a log scale cannot choose
    kappas.set_yscale("log")
    low, high = kappas.get_ylim()
    if high < 100 * low:  # fewer than two decades would have no tick at a power of ten
        kappas.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
    band.set_title("(b) conditioning")
    band.set_facecolor("0.95")
    band.grid(False)
    band.spines["bottom"].set_visible(False)
    band.tick_params(bottom=False, labelbottom=False)


def _legend(figure: Figure, numbers: pd.DataFrame, datasets: list[str]) -> None:
    handles, labels = [], []
    for position, dataset in enumerate(datasets):
        row = numbers[numbers.dataset == dataset].iloc[0]
        handles.append(Line2D([], [], **{**_look(position, "relu"), "linestyle": "none"}))
        blocks = "block" if row.blocks == 1 else "blocks"
        labels.append(
            f"{title(dataset)}: {row.samples:,} samples in {row.blocks} {blocks} of {row.n:,}"
        )
    activations = numbers.activation.unique()
    limits = bool(numbers.infinite_min_angle_deg.notna().any())
    for _ in range(len(activations) + limits - len(datasets)):  # columns fill from the left
        handles.append(Line2D([], [], linestyle="none"))
        labels.append("")
    for activation in activations:
        look = {**_look(0, activation), "color": style.GREY}
        look["markerfacecolor"] = "white" if activation == "linear" else style.GREY
        handles.append(Line2D([], [], **look))
        labels.append(NAMES.get(activation, activation))
    if limits:
        handles.append(Line2D([], [], color=style.GREY, **LIMIT))
        labels.append(r"thin: $m \to \infty$")
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2, columnspacing=1.0,
        handlelength=1.6, handletextpad=0.4,
    )  # fmt: skip
