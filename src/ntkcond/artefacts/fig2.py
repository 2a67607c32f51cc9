"""Figure 2: the smallest gradient angle and the condition number of the NTK against depth."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import conditions, interval, style, sweep_curves, sweep_panels
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Figure 2, separation and conditioning against depth",
    section="§5 Smaller condition number",
    inputs=("conditioning", "angles", "sweep_infinite"),
    datasets="fig2",
    about="experiment",
    caption="""
**(a)** The smallest angle φ between the gradients of any two samples of a data set, against depth
L; mean over initialisations, shade: its 95 % t interval. **(b)** The condition number κ of the
NTK of n samples; mean of the resolved κ over initialisations and blocks of n samples, shade: the
middle 68 % of all. κ = ∞ is drawn in a band of its own, a lower bound as a hollow triangle. ReLU
networks: filled markers, solid lines. Linear networks: hollow markers, dashed lines. With more than
two activations each data set has panels of its own. Thin lines: the same
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
  common offset make κ of the inputs large. Of nearly orthogonal samples, if they
  are few against their features, ReLU raises κ (``newest-1`` in the claims).
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
    conditioning: pd.DataFrame, angles: pd.DataFrame, sweep_infinite: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The numbers drawn: a row for each (dataset, activation, depth).

    Of κ over all seeds and blocks: kappa_mean, kappa_std over the resolved ones (∞ where all are
    singular, empty where none is resolved); kappa_median and the quantiles kappa_q16 and kappa_q84
    over all, a singular κ counting as ∞ and an unresolved one as its lower bound;
    kappa_lower_bound, the smallest bound of the unresolved. kappa_verdict: that of all of them, or
    `mixed`; kappa_grade: the weakest of their grades (`ntk.eigenvalues`); resolved, singular,
    unresolved: how many. nonzero_kappa_mean: of linear networks, the
    non-zero spectrum. min_angle_deg_mean: over seeds, of all samples, with _low and _high, its 95 %
    interval (`ntkcond.artefacts.interval.within`), empty for fewer than three, and _std. std: of a
    sample (n − 1), empty for a single one. infinite_*,
    where a sweep at infinite width is given: kappa_mean, kappa_verdict and
    min_angle_deg of the same blocks at infinite width."""
    kappas = pd.DataFrame([
        {**dict(zip(CURVE, curve, strict=True)), **kappa_columns(rows)}
        for curve, rows in conditioning.groupby(CURVE, sort=False)
    ])  # fmt: skip
    minima = pd.DataFrame(
        [
            {
                **dict(zip(CURVE, curve, strict=True)),
                **interval.angle_columns("min_angle_deg", rows.min_angle_deg),
                "duplicate_rows": rows.duplicate_rows.iloc[0],
                "zero_rows": rows.zero_rows.iloc[0],
            }
            for curve, rows in angles.groupby(CURVE, sort=False)
        ]
    )
    limits = pd.DataFrame(columns=LIMITS)
    if sweep_infinite is not None:
        columns = [*CURVE, "kappa_mean", "kappa_verdict", "min_angle_deg_mean"]
        limits = sweep_curves.table(sweep_infinite)[columns].set_axis(LIMITS, axis=1)
    numbers = kappas.merge(minima, on=CURVE, how="left", validate="one_to_one")
    return numbers.merge(limits, on=CURVE, how="left", validate="one_to_one")


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels, min φ, and κ on a log axis with a band of its own for κ = ∞, for all
    data sets; for each one where there are more than two activations."""
    rows = _rows(numbers)
    infinite = [some[some.singular > 0].groupby(CURVE[:2], sort=False).groups for some in rows]
    figure = style.figure(height=2.7 if len(rows) == 1 else 2.5 * len(rows))
    panels = sweep_panels.rows_with_band(figure, [len(curves) for curves in infinite])
    looks = _looks(numbers)
    for (angles, kappas, band), curves, some in zip(panels, map(list, infinite), rows, strict=True):
        for names, curve in some.groupby(CURVE[:2], sort=False):
            look = looks[names]
            sweep_panels.draw_angle(angles, "depth", curve, look)
            sweep_panels.draw_limit(angles, curve.depth, curve.infinite_min_angle_deg, look)
            _draw_kappas(kappas, curve, look)
            if names in curves:
                lane = curves.index(names)
                sweep_panels.draw_in_band(band, lane, curve.depth[curve.singular > 0], look)
        _finish(angles, kappas, band, some)
        if len(rows) > 1 or some.activation.nunique() > 2:
            sets = ", ".join(map(conditions.title, some.dataset.unique()))
            angles.set_title(f"{sets}: separation")
            band.set_title("conditioning")
    entries = _entries(numbers, looks)
    if any(map(len, infinite)):
        entries.append(style.key_of_band(sweep_panels.BAND))
    figure.key(*entries, about=conditions.in_words(numbers, *_reasons(numbers)))
    return figure


def _rows(numbers: pd.DataFrame) -> list[pd.DataFrame]:
    """What shares panels: curves that colours, markers and dashes tell apart."""
    datasets = list(numbers.dataset.unique())
    together = 1 if numbers.activation.nunique() > 2 else len(style.COLOURS)
    groups = [datasets[i : i + together] for i in range(0, len(datasets), together)]
    return [numbers[numbers.dataset.isin(group)] for group in groups]


def _looks(numbers: pd.DataFrame) -> dict[tuple[str, str], dict]:
    """The look of each curve. Colour and marker are the data set's, dashes and filling the
    activation's; of more than two activations the activation has them all."""
    activations = list(numbers.activation.unique())
    by = list(numbers.dataset.unique()) if len(activations) < 3 else list(ACTIVATIONS)
    looks = {}
    for names in numbers.groupby(CURVE[:2], sort=False).groups:
        position = by.index(names[0] if len(activations) < 3 else names[1])
        looks[names] = sweep_panels.of_activation(names[1], style.look_of(position))
    return looks


def _draw_kappas(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    """Means of resolved κ; a bound of those that are larger still."""
    finite = curve.replace(dict.fromkeys(["kappa_mean", "kappa_q84"], np.inf), np.nan)
    sweep_panels.draw_limit(axes, curve.depth, curve.infinite_kappa_mean, look)
    axes.plot(curve.depth, finite.kappa_mean, **look)
    low, high = finite.kappa_q16, finite.kappa_q84
    style.shade(axes, curve.depth, low, high, look["color"], sweep_panels.SPREAD)
    lost = curve[curve.unresolved > 0]
    sweep_panels.draw_bound(axes, lost.depth, lost.kappa_lower_bound, look["color"])


def _finish(angles: Axes, kappas: Axes, band: Axes, numbers: pd.DataFrame) -> None:
    for axes in (angles, kappas):
        style.depth_axis(axes, numbers.depth)
    angles.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ over all pairs (degrees)")
    angles.set_ylim(bottom=0)
    angles.set_title("(a) separation")
    kappas.set_ylabel(
        "NTK condition number\n" rf"$\kappa$ of $n$ = {style.span(numbers.n)} samples"
    )
    sweep_panels.log_decades(kappas, numbers[["kappa_mean", "kappa_lower_bound"]])
    band.set_title("(b) conditioning")


def _entries(numbers: pd.DataFrame, looks: dict) -> list[tuple[Line2D, str]]:
    """Entries of the legend: data sets, then activations."""
    by_activation = numbers.activation.nunique() > 2
    entries = []
    for row in numbers.drop_duplicates("dataset").itertuples():
        marker = Line2D([], [], **{**looks[row.dataset, row.activation], "linestyle": "none"})
        marker.set_markerfacecolor(marker.get_color())
        if not by_activation:
            width = f", $m$ = {row.width}" if numbers.width.nunique() > 1 else ""
            entries.append(
                (marker, f"{conditions.title(row.dataset)}, {row.samples:,} samples{width}")
            )
    for row in numbers.drop_duplicates("activation").itertuples():
        look = looks[row.dataset, row.activation]
        if not by_activation:
            look = sweep_panels.of_activation(row.activation, style.IN_GREY)
        entries.append((Line2D([], [], **look), ACTIVATIONS[row.activation].title))
    return entries


def _reasons(numbers: pd.DataFrame) -> Iterator[str]:
    """Why κ is ∞, and why infinite width is not known."""
    for row in numbers.drop_duplicates("dataset").itertuples():
        if row.duplicate_rows > 0 or row.zero_rows > 0:
            yield (
                f"{conditions.title(row.dataset)}: of {row.samples:,} samples"
                f" {row.duplicate_rows:.0f} repeat another, {row.zero_rows:.0f} are zero: left out"
                r" of (a); a block with such samples has a singular NTK, $\kappa = \infty$"
            )
    linear = (numbers.activation == "linear") | (numbers.depth == 0)
    if (numbers.singular[linear] > 0).any():
        yield r"linear networks, and $L$ = 0: $\kappa = \infty$ where the inputs' rank is below $n$"
    known = numbers.infinite_min_angle_deg.notna().groupby(numbers.activation, sort=False).any()
    if known.any() and not known.all():
        names = ", ".join(ACTIVATIONS[name].title for name in known.index[~known])
        yield rf"$m \to \infty$ for {names}: known for inputs of norm 1 only"
