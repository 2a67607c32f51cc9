"""κ and min φ against n, up to whole data sets in one NTK."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import conditions, style, sweep_panels
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Whole data sets, separation and conditioning against n",
    section="§∞ Beyond the first version",
    inputs=("fig2", "conditioning"),
    settings={"sources": "datasets.*.source"},
    datasets="fig2",
    default=False,
    costs=False,
    caption="""
**(a)** The smallest gradient angle φ among n samples and **(b)** the condition number κ of the NTK
of n samples, against n, for the data sets of figure 2 that are the first n samples of one source
(speech: normalised over its n frames); a colour for each depth. ReLU: filled, solid; linear:
hollow, dashed; thin lines: infinite width.
With ``block: all``, as in studies/whole, φ is among all samples of a set. Marks are means over
initialisations. A bar is the interval that the bounds on the errors of λ_min leave for κ of all
initialisations; a triangle is a lower bound. κ = ∞ has a band of its own: a linear NTK of more
samples than features is singular. L = 0, the linear model, is drawn once.

**The paper** does not say n of its κ (its authors' scripts have 512) and has no NTK of a whole data
set.
""",
)

COLUMNS = {
    "kappa_lower": ("kappa_lower", "min"),
    "kappa_upper": ("kappa_upper", "max"),
    "lambda_min": ("lambda_min", "min"),
    "lambda_min_error": ("lambda_min_error", "max"),
    "smallest_residual": ("smallest_residual", "max"),
    "smallest_is_above": ("smallest_is_above", "min"),
}
CURVE = ["activation", "depth"]
POINT = ["dataset", *CURVE]


def table(fig2: pd.DataFrame, conditioning: pd.DataFrame, sources: dict) -> pd.DataFrame:
    """A row for each row of figure 2: its columns; of all its kernels together the interval of κ,
    the smallest λ_min, the largest bound on its error, the largest residual of its eigenvector and,
    where it was asked for, the smallest proven bound; source, in whose order and then by n.

    sources: of each data set."""
    aggregations = {name: how for name, how in COLUMNS.items() if how[0] in conditioning}
    bounds = conditioning.groupby(POINT, sort=False, as_index=False).agg(**aggregations)
    numbers = fig2.merge(bounds, on=POINT, how="left", validate="one_to_one")
    order = dict(zip(dict.fromkeys(sources.values()), itertools.count()))
    return numbers.assign(source=numbers.dataset.map(sources)).sort_values(
        ["source", "activation", "depth", "n"],
        key=lambda values: values.map(order) if values.name == "source" else values,
        kind="stable",
    )


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row for each source: min φ, and κ below a band of its own for κ = ∞."""
    twice = (numbers.depth == 0) & (numbers.activation != "linear")
    if (numbers.activation == "linear").any():  # of which L = 0 is one
        numbers = numbers[~twice]
    sources = numbers.groupby("source", sort=False)
    lanes = [list(rows[rows.singular > 0].groupby(CURVE, sort=False).groups) for _, rows in sources]
    figure = style.figure(height=2.3 * len(lanes))
    panels = sweep_panels.rows_with_band(figure, [len(curves) for curves in lanes])
    colours = style.depth_colours_of(numbers.depth)
    for (angles, kappas, band), curves, (source, rows) in zip(panels, lanes, sources, strict=True):
        for (activation, depth), curve in rows.groupby(CURVE, sort=False):
            look = _look(activation, colours[depth])
            sweep_panels.draw_limit(angles, curve.n, curve.infinite_min_angle_deg, look)
            angles.plot(curve.n, curve.min_angle_deg_mean, **look)
            _draw_kappas(kappas, curve, look)
            if (activation, depth) in curves:
                lane = curves.index((activation, depth))
                sweep_panels.draw_in_band(band, lane, curve.n[curve.singular > 0], look)
        name = SOURCES[source].title if source in SOURCES else source
        sweep_panels.name_pair(angles, kappas, name, r"NTK condition number $\kappa$", band)
        sweep_panels.log_decades(kappas, rows[["kappa_mean", "kappa_lower_bound"]])
        for axes in (angles, kappas):
            style.sizes_axis(axes, numbers.n, apart=1.5)
            axes.set_xlim(numbers.n.min() / 1.2, numbers.n.max() * 1.2)
    for axes in panels[-1][:2]:
        axes.set_xlabel("samples in one NTK, $n$")
    _legend(figure, numbers, colours)
    return figure


def _look(activation: str, colour: object) -> dict:
    return sweep_panels.of_activation(activation, {"color": colour, "marker": "o"})


def _draw_kappas(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    sweep_panels.draw_limit(axes, curve.n, curve.infinite_kappa_mean, look)
    axes.plot(curve.n, curve.kappa_mean.replace(np.inf, np.nan), **look)
    known = curve[np.isfinite(curve.kappa_upper) & np.isfinite(curve.kappa_mean)]
    means = r"bar: $\kappa$ of all initialisations, with error bounds"
    style.bars(axes, known.n, known.kappa_lower, known.kappa_upper, look["color"], means)
    lost = curve[curve.unresolved > 0]
    sweep_panels.draw_bound(axes, lost.n, lost.kappa_lower_bound, look["color"])


def _legend(figure: style.Picture, numbers: pd.DataFrame, colours: dict) -> None:
    keys = [
        (Line2D([], [], color=colour, marker="o"), f"$L$ = {depth}")
        for depth, colour in colours.items()
    ]
    for activation in numbers.activation.unique():
        key = Line2D([], [], **_look(activation, style.GREY))
        keys.append((key, ACTIVATIONS[activation].title))
    if (numbers.singular > 0).any():
        keys.append(style.key_of_band(sweep_panels.BAND))
    figure.key(*keys, about=conditions.in_words(numbers.assign(dataset=numbers.source)))
