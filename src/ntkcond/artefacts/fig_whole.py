"""κ and min φ against n, up to whole data sets in one NTK."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import style
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
of n samples, against n, for the data sets of figure 2 that are the first n samples of one source;
a colour for each depth. ReLU: filled, solid; linear: hollow, dashed; thin lines: infinite width.
It is meant for one seed and ``block: all`` (config/whole.yaml): φ is among all samples of a set.
Bars are the interval that the bound on the error of λ_min leaves for κ; a triangle is a lower
bound. κ = ∞ is not drawn: a linear NTK of more samples than features is singular.

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
POINT = ["dataset", "activation", "depth"]


def table(fig2: pd.DataFrame, conditioning: pd.DataFrame, sources: dict) -> pd.DataFrame:
    """A row for each row of figure 2: `source`, its columns, and of all its kernels together the
    interval of κ, the smallest λ_min, the largest bound on its error, the largest residual of its
    eigenvector and, where it was asked for, the smallest proven bound.

    sources: of each data set."""
    there = {name: how for name, how in COLUMNS.items() if how[0] in conditioning}
    bounds = conditioning.groupby(POINT, sort=False, as_index=False).agg(**there)
    numbers = fig2.merge(bounds, on=POINT, how="left", validate="one_to_one")
    order = dict(zip(dict.fromkeys(sources.values()), itertools.count()))
    return numbers.assign(source=numbers.dataset.map(sources)).sort_values(
        ["source", "activation", "depth", "n"],
        key=lambda values: values.map(order) if values.name == "source" else values,
        kind="stable",
    )


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each source."""
    sources = numbers.groupby("source", sort=False)
    figure = style.figure(height=0.6 + 2.3 * len(sources))
    panels = figure.subplots(len(sources), 2, squeeze=False)
    colours = style.depth_colours_of(numbers.depth)
    for (angles, kappas), (source, rows) in zip(panels, sources, strict=True):
        for (activation, depth), curve in rows.groupby(["activation", "depth"], sort=False):
            look = _look(activation) | {"color": colours[depth]}
            if activation == "linear":
                look["markerfacecolor"] = "white"
            _draw_angles(angles, curve, look)
            _draw_kappas(kappas, curve, look)
        name = SOURCES[source].title if source in SOURCES else source
        angles.set_title(f"{name}: separation")
        angles.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
        angles.set_ylim(bottom=0)
        kappas.set_title(f"{name}: conditioning")
        kappas.set_ylabel(r"NTK condition number $\kappa$")
        kappas.set_yscale("log")
        for axes in (angles, kappas):
            axes.set_xscale("log")
            axes.set_xlabel("samples in one NTK, $n$")
    _legend(figure, numbers, colours)
    return figure


def _look(activation: str) -> dict:
    dashes = {"relu": "-", "linear": (0, (3.5, 1.6))}.get(activation, ":")
    return {"marker": "o", "linestyle": dashes, "markeredgewidth": 0.9}


def _draw_angles(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    thin = {"color": look["color"], "linestyle": look["linestyle"], "linewidth": 0.6, "zorder": 1}
    axes.plot(curve.n, curve.infinite_min_angle_deg, **thin)
    axes.plot(curve.n, curve.min_angle_deg_mean, **look)


def _draw_kappas(axes: Axes, curve: pd.DataFrame, look: dict) -> None:
    finite = curve.replace(dict.fromkeys(("kappa_mean", "infinite_kappa_mean"), np.inf), np.nan)
    thin = {"color": look["color"], "linestyle": look["linestyle"], "linewidth": 0.6, "zorder": 1}
    axes.plot(finite.n, finite.infinite_kappa_mean, **thin)
    axes.plot(finite.n, finite.kappa_mean, **look)
    known = curve[np.isfinite(curve.kappa_upper) & np.isfinite(curve.kappa_mean)]
    axes.vlines(known.n, known.kappa_lower, known.kappa_upper, color=look["color"], linewidth=0.9)
    lost = curve[curve.unresolved > 0]
    bound = {**look, "linestyle": "none", "marker": "^", "markerfacecolor": "white"}
    axes.plot(lost.n, lost.kappa_lower_bound, **bound)


def _legend(figure: style.Picture, numbers: pd.DataFrame, colours: dict) -> None:
    keys = [
        (Line2D([], [], color=colour, marker="o"), f"$L$ = {depth}")
        for depth, colour in colours.items()
    ]
    for activation in numbers.activation.unique():
        look = _look(activation) | {"color": style.GREY}
        if activation == "linear":
            look["markerfacecolor"] = "white"
        keys.append((Line2D([], [], **look), ACTIVATIONS[activation].title))
    if numbers.infinite_min_angle_deg.notna().any():
        keys.append((Line2D([], [], color=style.GREY, linewidth=0.6), r"$m \to \infty$"))
    figure.legend(*zip(*keys, strict=True), loc="outside lower center", ncols=len(keys))
