"""Which measures of a network at the start rank networks by the speed of their training."""

import functools
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="What predicts the speed of training",
    section="§6 Faster optimization",
    inputs=("fig_speed",),
    caption="""
Spearman's rank correlation ρ of measures of a network at initialisation with the epochs that SGD
takes to a training loss, over the networks of ``fig_speed``: depths, widths and activations. ρ = 1:
the larger the measure, the slower; −1: the faster. Bars: 95 % bootstrap intervals over networks
(percentiles of 1,000 samples with replacement). A colour for all networks and one for those of each
activation; the loss to reach is the lowest that at least half of these networks reach, and those
that do not count as slower than all others. **Left**: ρ. **Right**: the partial rank correlation
given depth and width, for what a measure says beyond them.

- *width m* and *depth L* need no NTK: a measure that says no more than they do is of no use.
- *κ without λ*\\ :sub:`max` is λ₂/λ\\ :sub:`min`; *share of λ*\\ :sub:`max` is λ\\ :sub:`max`/tr K.
- The other four know the labels Y (a centred column for each class), of which cᵢ is the share along
  the i-th eigenvector. *Label rate*: Σ cᵢ λᵢ/λ\\ :sub:`max`. *Label complexity*: Yᵀ K⁻¹ Y
  · tr K/(n ‖Y‖²). *Predicted steps*: of gradient descent at 1/λ\\ :sub:`max` until a tenth of ‖Y‖²
  is left, were K constant. *Alignment*: of K and Y Yᵀ, both centred.

**The paper** (§6) takes κ as what decides how fast a network trains. It compares depths alone, of
one width, and reports no correlation.
""",
)

MEASURES = {
    "width": "width $m$",
    "depth": "depth $L$",
    "start_loss": "loss at the start",
    "kappa": r"$\kappa$",
    "lambda_min": r"$\lambda_\mathrm{min}$",
    "kappa_without_first": r"$\kappa$ without $\lambda_\mathrm{max}$",
    "largest_share": r"share of $\lambda_\mathrm{max}$",
    "label_rate": "label rate",
    "label_complexity": "label complexity",
    "predicted_steps": "predicted steps",
    "alignment": "alignment",
}
SAMPLES, LEVEL = 1000, 0.95  # of the bootstrap
FEWEST = 5  # networks in a correlation
CASE = ["dataset", "loss", "threshold"]


def table(fig_speed: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set, loss function, threshold, group of networks (all, or those of an
    activation) and measure: networks for which the measure is known, reached: how many of them
    reach the threshold; shown: whether this threshold is the figure's for the group; rho with its
    interval rho_low to rho_high, and given_size, the partial one given depth and width, with
    given_size_low to given_size_high; empty for fewer than FEWEST networks, or where all are
    equal."""
    return pd.DataFrame(_rows(fig_speed))


def _rows(networks: pd.DataFrame) -> Iterator[dict]:
    activations = list(networks.activation.unique())
    groups = {"all": activations} if len(activations) > 1 else {}
    groups |= {name: [name] for name in activations}
    shown = {}
    for case, rows in networks.groupby(CASE, sort=False):
        for group, members in groups.items():
            if rows[rows.activation.isin(members)].epochs.notna().mean() >= 0.5:
                place = (*case[:2], group)
                shown[place] = min(case[2], shown.get(place, np.inf))
    for case, rows in networks.groupby(CASE, sort=False):
        for group, members in groups.items():
            of_group = rows[rows.activation.isin(members)]
            for measure in MEASURES:
                known = of_group[of_group[measure].notna()]
                epochs = known.epochs.fillna(np.inf)
                found = correlations(known[measure], epochs, known[["depth", "width"]])
                yield {
                    **dict(zip(CASE, case, strict=True)), "group": group, "measure": measure,
                    "networks": len(known), "reached": int(known.epochs.notna().sum()),
                    "shown": shown.get((*case[:2], group)) == case[2], **found,
                }  # fmt: skip


def correlations(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """Rank correlation of x and y, (n,) each, and their partial one given the columns of a third,
    (n, k), with bootstrap intervals."""
    names = [f"{name}{end}" for name in ("rho", "given_size") for end in ("", "_low", "_high")]
    if len(x) < FEWEST:
        return dict.fromkeys(names, np.nan)
    rng = np.random.Generator(np.random.Philox(0))
    chosen = rng.integers(len(x), size=(SAMPLES, len(x)))
    chosen = np.concatenate([np.arange(len(x))[None], chosen])  # the first: all, as they are
    columns = (x, y, *np.asarray(given).T)
    a, b, *others = (_ranks(np.asarray(values, np.float64)[chosen]) for values in columns)
    rest = [a, b]
    for i, other in enumerate(others):  # Gram and Schmidt
        direction = _unit(functools.reduce(_without, others[:i], other))
        others[i] = direction
        rest = [_without(values, direction) for values in rest]
    found = []
    for values in (_product(a, b), _product(*map(_unit, rest))):
        ends = (np.nan, np.nan)
        if np.isfinite(values[0]):
            known = values[1:][np.isfinite(values[1:])]
            ends = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        found += [values[0], *ends]
    return dict(zip(names, map(float, found), strict=True))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Of each row, centred and of norm 1; nan where all are equal."""
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=1)
    return _unit(ranks - ranks.mean(axis=1, keepdims=True))


def _unit(rows: np.ndarray) -> np.ndarray:
    """Of norm 1; nan for what rounding left."""
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norm > 1e-7, norm, np.nan)


def _without(rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The part across a direction of norm 1; all of it where there is no direction."""
    return rows - np.nan_to_num(direction) * _product(rows, np.nan_to_num(direction))[:, None]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each data set and loss function."""
    cases = list(numbers.groupby(["dataset", "loss"], sort=False))
    groups = list(numbers.group.unique())  # each with its colour in all panels
    figure = style.figure(height=0.4 + 2.6 * len(cases), width=7.0)
    panels = figure.subplots(len(cases), 2, squeeze=False, sharey=True, sharex=True)
    for (left, right), ((dataset, loss), rows) in zip(panels, cases, strict=True):
        shown = rows[rows.shown]
        left.set_title(f"{title(dataset)}, {loss.replace('_', ' ')} loss")
        for i, group in enumerate(groups):
            points = shown[shown.group == group]
            if points.empty:
                continue
            look = {"color": style.COLOURS[i], "marker": style.MARKERS[i]}
            name = "all networks" if group == "all" else ACTIVATIONS[group].title
            look["label"] = f"{name}, to {points.threshold.iloc[0]:g}"
            for axes, column in ((left, "rho"), (right, "given_size")):
                _bars(axes, points, column, 0.25 * (i - 1), look)
        left.set_yticks(range(len(MEASURES)), MEASURES.values())
        left.set(ylim=(len(MEASURES) - 0.5, -0.5), xlim=(-1.05, 1.05))
        if shown.empty:
            left.text(
                0.5,
                0.5,
                "reached by fewer than half of the networks",
                ha="center",
                transform=left.transAxes,
            )
        else:
            right.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=6)
        for axes in (left, right):
            axes.axvline(0, color=style.GREY, linewidth=0.8)
    for axes, words in zip(panels[-1], ("", ", given $L$ and $m$"), strict=True):
        axes.set_xlabel(rf"$\rho$ with the epochs{words}")
    return figure


def _bars(axes: Axes, points: pd.DataFrame, column: str, shift: float, look: dict) -> None:
    values, low, high = (points[f"{column}{end}"].to_numpy() for end in ("", "_low", "_high"))
    places = points.measure.map(list(MEASURES).index) + shift
    ends = np.clip([values - low, high - values], 0, None)
    axes.errorbar(values, places, xerr=ends, linestyle="none", linewidth=0.8, **look)
