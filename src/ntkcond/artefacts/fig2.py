"""Figure 2: the smallest gradient angle and the condition number of the NTK against depth."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ntkcond.artefacts import interval, style, sweep_curves, sweep_panels
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Figure 2, separation and conditioning against depth",
    section="§5 Smaller condition number",
    inputs=("conditioning", "angles", "sweep/infinite"),
    datasets="fig2",
    about="experiment",
    caption="""
**(a)** The smallest angle φ between the gradients of any two samples of a data set, against depth
L; mean over initialisations, shade: its 95 % t interval. **(b)** The condition number κ of the
NTK of n samples; mean of the resolved κ over initialisations and blocks of n samples, shade: the
middle 68 % of all. κ = ∞ is drawn in a band of its own, a lower bound as an arrow. ReLU networks:
filled markers, solid lines. Linear networks: hollow markers, dashed lines. Thin lines: the same
samples at infinite width, where that is known: for homogeneous activations (ReLU, ReLU², linear)
and for inputs of norm 1. L = 0 is the linear model.

**The paper** (§5.2 and its Figure 2; Figure 3 of its newest version) states that a ReLU network
always has a larger smallest angle and a smaller κ than its linear twin, and that κ falls with
every layer. When you compare:

- The paper has 2,000 synthetic samples of 5 features, MNIST, Fashion-MNIST, SVHN and 50,000 samples
  of LibriSpeech, at width 512, depths 0 to 10, the mean of 5 initialisations.
- κ depends on n. The paper does not say n; its authors' scripts average κ over blocks of 512
  samples.
- The paper draws a finite κ for linear networks everywhere. The linear NTK of more samples than
  features is singular: κ = ∞.
- Linear networks keep the κ of the inputs only at infinite width. At finite width it tends to grow
  with depth.
- Whether ReLU and depth lower κ depends on the data. They do where nearly parallel samples or a
  common offset make κ of the inputs large. Of nearly orthogonal samples ReLU raises κ
  (``newest-1`` in the claims).
- SVHN's real files were not available to this project so far: its reader is tested on files of the
  same format only.
- The authors' scripts compute in float32, which loses the smallest eigenvalue to rounding when κ
  is about 10⁸. Here it is float64, and the smallest eigenvalue has an error bound.
- For LibriSpeech the paper only says that its 768 features follow Hui & Belkin (2020), which does
  not settle them, and nothing about labels; its authors' scripts have 41 classes. Recipe and labels
  are therefore **this project's choice**: neighbouring frames of log-mel energies; the label is the
  phone where the config names an alignment, else the speaker identity.

For each point the table also has the number of samples, seeds and blocks, the median, and how many
κ are resolved, singular and unresolved.
""",
)

CURVE = ["dataset", "activation", "depth"]
LIMITS = [*CURVE, "infinite_kappa_mean", "infinite_kappa_verdict", "infinite_min_angle_deg"]


def table(
    conditioning: pd.DataFrame, angles: pd.DataFrame, sweep_infinite: Sequence[Path] = ()
) -> pd.DataFrame:
    """The numbers drawn: a row for each (dataset, activation, depth).

    Of κ over all seeds and blocks: kappa_mean, kappa_std over the resolved ones (∞ where all are
    singular, empty where none is resolved); kappa_median and the quantiles kappa_q16 and kappa_q84
    over all, a singular κ counting as ∞ and an unresolved one as its lower bound;
    kappa_lower_bound, the smallest bound of the unresolved. kappa_verdict: that of all of them, or
    `mixed`; kappa_grade: the weakest of their grades (`ntkcond.ntk.spectrum`); resolved, singular,
    unresolved: how many. nonzero_kappa_mean: of linear networks, the
    non-zero spectrum. min_angle_deg_mean: over seeds, of all samples, with _low and _high, its 95 %
    t interval. std: of a sample (n − 1); it and intervals are empty for a single one. infinite_*,
    where the files of a sweep at infinite width are given: kappa_mean, kappa_verdict and
    min_angle_deg of the same blocks at infinite width."""
    kappas = pd.DataFrame([
        {**dict(zip(CURVE, curve, strict=True)), **kappa_columns(rows)}
        for curve, rows in conditioning.groupby(CURVE, sort=False)
    ])  # fmt: skip
    minima = pd.DataFrame(
        [
            {
                **dict(zip(CURVE, curve, strict=True)),
                **interval.t_interval_columns("min_angle_deg", rows.min_angle_deg),
                "duplicate_rows": rows.duplicate_rows.iloc[0],
                "zero_rows": rows.zero_rows.iloc[0],
            }
            for curve, rows in angles.groupby(CURVE, sort=False)
        ]
    )
    limits = pd.DataFrame(columns=LIMITS)
    if sweep_infinite:
        columns = [*CURVE, "kappa_mean", "kappa_verdict", "min_angle_deg_mean"]
        limits = sweep_curves.table(sweep_infinite)[columns].set_axis(LIMITS, axis=1)
    numbers = kappas.merge(minima, on=CURVE, how="left", validate="one_to_one")
    return numbers.merge(limits, on=CURVE, how="left", validate="one_to_one")


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """Two panels: min φ, and κ on a log axis with a band of its own for κ = ∞."""
    curves = numbers.groupby(CURVE[:2], sort=False)
    datasets = list(numbers.dataset.unique())
    lanes = list(numbers[numbers.singular > 0].groupby(CURVE[:2], sort=False).groups)
    figure = style.figure(height=2.7 + 0.13 * len(datasets))
    ((angles, kappas, band),) = sweep_panels.rows_with_band(figure, [len(lanes)])
    for (dataset, activation), curve in curves:
        look = _look(datasets.index(dataset), activation)
        _draw_angles(angles, curve, look)
        _draw_kappas(kappas, curve, look)
        if (dataset, activation) in lanes:
            lane = lanes.index((dataset, activation))
            sweep_panels.draw_in_band(band, lane, curve.depth[curve.singular > 0], look)
    _finish(angles, kappas, band, numbers)
    _legend(figure, numbers)
    return figure


def _look(position: int, activation: str) -> dict:
    """A colour and marker for each data set, dashes and filling for each activation."""
    look = sweep_panels.of_activation(activation, style.COLOURS[position % len(style.COLOURS)])
    return {**look, "marker": style.MARKERS[position % len(style.MARKERS)]}


def _draw_angles(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    sweep_panels.draw_angle(axes, "depth", curve, look)
    axes.plot(curve.depth, curve.infinite_min_angle_deg, **sweep_panels.limit(look))


def _draw_kappas(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    """Means of resolved κ; above them, an arrow from the bound of those that are larger still."""
    infinite = dict.fromkeys(["kappa_mean", "kappa_q84", "infinite_kappa_mean"], np.inf)
    finite = curve.replace(infinite, np.nan)
    axes.plot(curve.depth, finite.infinite_kappa_mean, **sweep_panels.limit(look))
    axes.plot(curve.depth, finite.kappa_mean, **look)
    style.shade(axes, curve.depth, finite.kappa_q16, finite.kappa_q84, look["color"])
    for row in curve[curve.unresolved > 0].itertuples():
        lower = row.depth, row.kappa_lower_bound
        axes.plot(*lower, **{**look, "marker": "_", "markersize": 6})
        arrow = {"arrowstyle": "<-", "color": look["color"], "linewidth": 0.9}
        axes.annotate("", lower, (0, 9), textcoords="offset points", arrowprops=arrow)


def _finish(angles: Axes, kappas: Axes, band: Axes, numbers: pd.DataFrame) -> None:
    depths = sorted(numbers.depth.unique())
    step = 1 if len(depths) <= 12 else -(-len(depths) // 10)
    sizes = " or ".join(f"{n:,}" for n in sorted(numbers.n.unique()))
    for axes in (angles, kappas):
        axes.set_xlabel("depth $L$ (hidden layers)")
        axes.set_xticks(depths[::step])
    angles.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ over all pairs (degrees)")
    angles.set_ylim(bottom=0)
    angles.set_title("(a) separation")
    kappas.set_ylabel("NTK condition number\n" rf"$\kappa$ of $n$ = {sizes} samples")
    sweep_panels.log_decades(kappas, numbers[["kappa_mean", "kappa_lower_bound"]])
    band.set_title("(b) conditioning")


def _legend(figure: Figure, numbers: pd.DataFrame) -> None:
    """A column for the data sets, one for the activations and infinite width."""
    left, right = [], []
    for position, row in enumerate(numbers.drop_duplicates("dataset").itertuples()):
        marker = Line2D([], [], **{**_look(position, "relu"), "linestyle": "none"})
        blocks = f"{row.blocks} {'block' if row.blocks == 1 else 'blocks'} of {row.n:,}"
        left.append((marker, f"{title(row.dataset)}: {row.samples:,} samples in {blocks}"))
    for activation in numbers.activation.unique():
        look = sweep_panels.of_activation(activation, style.GREY) | {"marker": style.MARKERS[0]}
        right.append((Line2D([], [], **look), ACTIVATIONS[activation].title))
    if numbers.infinite_min_angle_deg.notna().any():
        right.append(sweep_panels.key_of_limit())
    left += [(Line2D([], [], linestyle="none"), "")] * (len(right) - len(left))
    figure.legend(
        *zip(*left, *right, strict=True), loc="outside lower center", ncols=2, columnspacing=1.0,
        handlelength=1.6, handletextpad=0.4,
    )  # fmt: skip
