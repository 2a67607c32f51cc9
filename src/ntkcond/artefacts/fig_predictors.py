"""Which measures of a network at the start rank networks by the speed of their training."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from ntkcond.artefacts import conditions, style
from ntkcond.artefacts.rank_correlation import adjusted, bootstrap_interval, rank_correlation
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="What predicts the speed of training",
    section="§6 Faster optimization",
    inputs=("fig_speed",),
    caption="""
Spearman's rank correlation ρ of measures of a network at initialisation with the epochs that SGD
takes to a training loss, over the networks of ``fig_speed``: depths, widths and activations. ρ = 1:
the larger the measure, the slower; −1: the faster. Tables for all networks and for those of each
activation, a row for each data set and loss function. The loss to reach is the lowest that at least
half of these networks reach; those that do not count as slower than all others. **Left**: ρ; its
95 % bootstrap interval over networks (percentiles of 1,000 samples with replacement) is in the CSV.
**Right**, and the last table: the partial rank correlation given depth and width, or given the
activation, for what a measure says beyond these.

A **coloured** field is decided, a grey number is not: p ≤ 0.05 in a permutation test (two-sided,
9,999 permutations; partial: of residuals, Freedman and Lane 1983), with the correction of Benjamini
and Hochberg for all of one kind of correlation. At most 5 % of the coloured fields of a kind are
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
CORRELATIONS = {  # each a family of tests
    "rho": "",
    "given_size": ", given $L$ and $m$",
    "given_activation": ", given the activation",
}
ORDER = list(MEASURES)
LOSSES = {"cross_entropy": "cross entropy", "square": "square loss"}
COLOURS = colormaps["RdBu_r"]  # from −1 to 1
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
    """Tables of ρ: a row for each data set and loss function, a column for each measure. A pair of
    tables for each group of networks: ρ, and given depth and width; below, given the activation."""
    shown = numbers[numbers.shown]
    groups = [(group, shown[shown.group == group]) for group in numbers.group.unique()]
    lines = [[("rho", *group), ("given_size", *group)] for group in groups]
    lines += [[("given_activation", *group)] for group in groups if group[0] == "all"]
    heights = [max(1, rows.groupby(CASE).ngroups) for ((_, _, rows), *_) in lines]
    figure = style.figure(height=0.8 + sum(0.15 * height + 0.27 for height in heights), width=6.6)
    panels = figure.subplots(len(lines), 2, squeeze=False, height_ratios=heights)
    for axes in panels[len(groups) :, 1]:
        axes.remove()
    for line, tables in zip(panels, lines, strict=True):
        for axes, (name, group, rows) in zip(line, tables, strict=False):
            _table(axes, rows, name)
            axes.set_title(f"{_name(group)}: $\\rho${CORRELATIONS[name]}", fontsize=7)
        line[0].tick_params(labelleft=True)
    panels[-1, 0].set_xticks(range(len(ORDER)), MEASURES.values(), rotation=90, fontsize=6)
    beside = panels[len(groups) - 1, 1]  # its names hang beside the last table
    for i, words in enumerate(MEASURES.values()):
        place = {"xy": (i, beside.get_ylim()[0]), "xytext": (0, -4), "textcoords": "offset points"}
        look = {"rotation": 90, "ha": "center", "va": "top", "fontsize": 6}
        beside.annotate(words, **place, **look).set_in_layout(len(lines) == len(groups))
    figure.key(*_entries(), about=_about(numbers))
    return figure


def _name(group: str) -> str:
    return "all networks" if group == "all" else ACTIVATIONS[group].title


def _table(axes: Axes, rows: pd.DataFrame, name: str) -> None:
    """ρ of each case and measure, on a coloured field if it is decided."""
    cases = list(rows.groupby(CASE, sort=False).groups)
    words = [f"{conditions.title(d)}, {LOSSES[loss]}, {to:g}" for d, loss, to in cases]
    axes.set(xlim=(-0.5, len(ORDER) - 0.5), ylim=(max(1, len(cases)) - 0.5, -0.5), xticks=[])
    axes.set_yticks(range(len(cases)), words, fontsize=6)
    axes.tick_params(length=0, labelleft=False)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if not cases:
        axes.text(0, 0, "reached by fewer than half of the networks", va="center", fontsize=6)
    for row in rows.itertuples():
        rho, decided = getattr(row, name), getattr(row, f"{name}_decided")
        if np.isfinite(rho):
            x, y = ORDER.index(row.measure), cases.index((row.dataset, row.loss, row.threshold))
            look = {"ha": "center", "va": "center_baseline", "fontsize": 5.5, "color": style.GREY}
            if decided:
                colour = COLOURS(0.5 + rho / 2)
                axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, lw=0))
                look["color"] = "white" if abs(rho) > 0.6 else "black"
            axes.text(x, y, f"{rho:.2f}".replace("-", "−").replace("0.", "."), **look)


def _about(numbers: pd.DataFrame) -> str:
    words = conditions.in_words(
        numbers, f"{style.span(numbers.networks)} networks in a correlation"
    )
    decided = f"Decided: p ≤ {LEVEL:g} after the correction for all of one kind of correlation."
    to = "Left: data set, loss function, training loss to reach."
    return rf"$\rho$: Spearman's rank correlation with the epochs. {words} {to} {decided}"


def _entries() -> Iterator[tuple[Artist, str]]:
    for rho, words in ((0.7, "decided, larger is slower"), (-0.7, "decided, larger is faster")):
        yield Patch(color=COLOURS(0.5 + rho / 2)), words
    yield Patch(color="white"), "grey number without a field: not decided"
