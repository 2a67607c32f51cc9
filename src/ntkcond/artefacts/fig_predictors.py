"""Which measures of a network at the start rank networks by the speed of their training."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import conditions, style
from ntkcond.artefacts.rank_correlation import adjusted, bootstrap_interval, rank_correlation
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
the larger the measure, the slower; −1: the faster. A colour for all networks and one for those of
each activation; the loss to reach is the lowest that at least half of these networks reach, and
those that do not count as slower than all others. **Left**: ρ. Bars: 95 % bootstrap intervals over
networks (percentiles of 1,000 samples with replacement), not corrected for their number.
**Middle**: the partial rank correlation given depth and width, for what a measure says beyond them.
**Right**: of all networks, given the activation, for what a measure says beyond it.

**Filled** points are decided, **hollow** ones are not: p ≤ 0.05 in a permutation test (two-sided,
9,999 permutations; partial: of residuals, Freedman and Lane 1983), with the correction of Benjamini
and Hochberg for all points of a column of panels. At most 5 % of the filled points of a column are
expected to be false.

- *activation* is the bare label: the second activation of the config, linear say, above the first,
  ReLU. Like *width m* and *depth L* it needs no NTK: a measure that says no more than they do is of
  no use.
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
    "activation": "activation",
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
CORRELATIONS = {  # each a column of panels, and a family of tests
    "rho": "",
    "given_size": ", given $L$ and $m$",
    "given_activation": ", given the activation",
}
LEVEL = 0.05  # expected share of false ones among those decided
FEWEST = 5  # networks in a correlation
CASE = ["dataset", "loss", "threshold"]


def table(fig_speed: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set, loss function, threshold, group of networks (all, or those of an
    activation) and measure.

    n: samples in one NTK. seeds: of each network. networks: for which the measure is known.
    reached: how many of them reach the threshold. shown: whether this threshold is the figure's
    for the group. rho with its bootstrap interval rho_low to rho_high; given_size, the partial
    one given depth and width; given_activation, the one given the activation, of all networks.
    Each with its permutation p (rho_p, say), and of those shown with rho_p_adjusted, Benjamini
    and Hochberg's over all that are shown, and rho_decided, whether this is at most LEVEL.
    Empty for fewer than FEWEST networks, or where nothing is left to rank; of the measure
    "activation" also where there are not two of them."""
    rows = pd.DataFrame(_rows(fig_speed))
    numbers = rows.drop(columns=list(CORRELATIONS) + [f"{name}_p" for name in CORRELATIONS])
    for name in CORRELATIONS:
        p = rows[f"{name}_p"]
        numbers[[name, f"{name}_p"]] = rows[[name, f"{name}_p"]]
        numbers[f"{name}_p_adjusted"] = adjusted(p.where(rows.shown).to_numpy())
        numbers[f"{name}_decided"] = numbers[f"{name}_p_adjusted"] <= LEVEL
    return numbers


def _rows(networks: pd.DataFrame) -> Iterator[dict]:
    activations = list(networks.activation.unique())
    groups = {"all": activations} if len(activations) > 1 else {}
    groups |= {name: [name] for name in activations}
    label = networks.activation.map(activations.index) if len(activations) == 2 else np.nan
    labelled = networks.assign(activation=label, group=networks.activation)
    shown = {}
    for case, rows in labelled.groupby(CASE, sort=False):
        for group, members in groups.items():
            if rows[rows.group.isin(members)].epochs.notna().mean() >= 0.5:
                place = (*case[:2], group)
                shown[place] = min(case[2], shown.get(place, np.inf))
    for case, rows in labelled.groupby(CASE, sort=False):
        for group, members in groups.items():
            of_group = rows[rows.group.isin(members)]
            for measure in MEASURES:
                known = of_group[of_group[measure].notna()]
                yield {
                    **dict(zip(CASE, case, strict=True)), "group": group, "measure": measure,
                    "n": of_group.n.iloc[0], "seeds": of_group.seeds.iloc[0],
                    "networks": len(known), "reached": int(known.epochs.notna().sum()),
                    "shown": shown.get((*case[:2], group)) == case[2],
                    **correlations(
                        known[measure], known.epochs.fillna(np.inf), known[["depth", "width"]],
                        pd.get_dummies(known.group) if group == "all" else None,
                    ),
                }  # fmt: skip


def correlations(
    x: np.ndarray, y: np.ndarray, size: np.ndarray, activations: np.ndarray | None
) -> dict[str, float]:
    """CORRELATIONS of x and y, (n,) each, given the columns of size and of activations, (n, k);
    their p; the interval of rho. Without activations given_activation is nan."""
    names = [*CORRELATIONS, *(f"{name}_p" for name in CORRELATIONS), "rho_low", "rho_high"]
    coefficients = dict.fromkeys(names, np.nan)
    if len(x) < FEWEST:
        return coefficients
    for name, covariates in zip(CORRELATIONS, (None, size, activations), strict=True):
        if name == "rho" or covariates is not None:
            coefficients[name], coefficients[f"{name}_p"] = rank_correlation(x, y, covariates)
    if np.isfinite(coefficients["rho"]):
        coefficients["rho_low"], coefficients["rho_high"] = bootstrap_interval(x, y)
    return coefficients


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of panels for each data set and loss function, a panel for each correlation."""
    cases = list(numbers.groupby(["dataset", "loss"], sort=False))
    groups = list(numbers.group.unique())  # each with its colour in all panels
    names = [name for name in CORRELATIONS if numbers[name].notna().any()] or ["rho"]
    figure = style.figure(height=2.8 * len(cases), width=1.4 + 2.1 * len(names))
    panels = figure.subplots(len(cases), len(names), squeeze=False, sharey=True, sharex=True)
    for line, ((dataset, loss), rows) in zip(panels, cases, strict=True):
        shown = rows[rows.shown]
        losses = {}
        for i, group in enumerate(groups):
            points = shown[shown.group == group]
            if points.empty:
                continue
            losses[group] = f"{points.threshold.iloc[0]:g}"
            look = style.look_of(i)
            for axes, name in zip(line, names, strict=True):
                _points(axes, points, name, 0.25 * (i - 1), look)
        title_of_row = f"{title(dataset)}, {loss.replace('_', ' ')} loss"
        if losses:
            to = {_name(group, short=True): value for group, value in losses.items()}
            title_of_row += f", to {', '.join(f'{value} ({name})' for name, value in to.items())}"
        line[0].set_title(title_of_row)
        line[0].set_yticks(range(len(MEASURES)), MEASURES.values())
        line[0].set(ylim=(len(MEASURES) - 0.5, -0.5), xlim=(-1.05, 1.05))
        if shown.empty:
            words = "reached by fewer than half of the networks"
            line[0].text(0.5, 0.5, words, ha="center", transform=line[0].transAxes, fontsize=6)
        for axes in line:
            axes.axvline(0, color=style.GREY, linewidth=0.8)
    for axes, name in zip(panels[-1], names, strict=True):
        axes.set_xlabel(rf"$\rho$ with the epochs{CORRELATIONS[name]}")
    figure.key(*_entries(groups), about=_about(numbers))
    return figure


def _name(group: str, short: bool = False) -> str:
    if group == "all":
        return "all" if short else "all networks"
    return ACTIVATIONS[group].title


def _points(axes: Axes, points: pd.DataFrame, name: str, shift: float, look: dict) -> None:
    """Filled if decided; with the interval of ρ."""
    places = points.measure.map(list(MEASURES).index) + shift
    if name == "rho":
        bar = {"color": look["color"], "label": r"bar: 95 % interval of $\rho$"}
        axes.hlines(places, points.rho_low, points.rho_high, linewidth=0.8, **bar)
    for decided, fill in ((True, look["color"]), (False, "white")):
        chosen = points[f"{name}_decided"] == decided
        axes.plot(
            points[name][chosen], places[chosen], linestyle="none", markerfacecolor=fill,
            markeredgewidth=0.8, zorder=3, **look,
        )  # fmt: skip


def _about(numbers: pd.DataFrame) -> str:
    words = conditions.in_words(
        numbers, f"{style.span(numbers.networks)} networks in a correlation"
    )
    decided = f"Decided: p ≤ {LEVEL:g} after the correction for all points of a column."
    return rf"$\rho$: Spearman's rank correlation. {words} {decided}"


def _entries(groups: list[str]) -> Iterator[tuple[Line2D, str]]:
    looks = {"linestyle": "none"}
    for i, group in enumerate(groups):
        look = {**style.look_of(i), **looks}
        yield Line2D([], [], **look), _name(group)
    for words, fill in (("filled: decided", style.GREY), ("hollow: not decided", "white")):
        look = {"color": style.GREY, "marker": "o", "markerfacecolor": fill, **looks}
        yield Line2D([], [], **look), words
