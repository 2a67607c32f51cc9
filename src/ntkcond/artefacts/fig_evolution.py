"""The NTK in the course of gradient descent: how far it stays the one at the start."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import conditions, interval, style
from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="The NTK during training",
    section="§6 Faster optimization",
    inputs=("descent/widths",),
    datasets="fig_evolution",
    caption="""
The NTK Kₜ in the course of full-batch gradient descent on the square loss, the learning rate 1 over
the largest eigenvalue of K₀; the data are those of ``fig_descent``. A colour for each depth; mean
over initialisations (of all but the angle and the alignment the geometric mean), shade: its 95 %
interval. **Above**, at the data set's own width, against the step: the change ‖Kₜ − K₀‖/‖K₀‖; κ of
Kₜ; the smallest angle between gradients; the centred alignment of Kₜ with the labels (Cortes, Mohri
and Rostamizadeh 2012), 1 where Kₜ is their product. **Below**, at the last step, against the width:
the change; κ of Kₜ over that of K₀; the alignment; and how far the residual ‖f(X) − y‖ is from what
K₀ predicts, were it constant: the largest difference of all steps, relative to the residual at the
start. Where κ is not resolved for an initialisation, a depth has none. The columns ``_power`` have
the powers of m by which the change and the error of the prediction fall.

**The paper** takes the NTK of wide networks to be almost constant in training, so that κ at the
start decides the rate. This figure shows how far that holds at its width, m = 512, and below.
""",
)

CURVE = ["dataset", "activation", "depth", "width"]
MEASURES = ("change", "kappa", "min_angle_deg", "alignment")
ABOVE = {
    "change": "change of the NTK",
    "kappa": r"$\kappa$ of the NTK",
    "min_angle_deg": r"min $\phi$ (degrees)",
    "alignment": "alignment with labels",
}
BELOW = {
    "change": "change of the NTK",
    "kappa_ratio": r"$\kappa$, relative to the start",
    "alignment": "alignment with labels",
    "linearised_error": "error of the prediction",
}
EXPLAINED = (
    r"change: $\|K_t - K_0\|/\|K_0\|$; error: of the residual that $K_0$ predicts, were it constant"
)
POWERS = ("change", "linearised_error")
LOG = ("change", "kappa", "kappa_ratio", "linearised_error")
MEANS = dict.fromkeys(LOG, interval.geometric) | {
    "min_angle_deg": functools.partial(interval.within, lowest=0, highest=180),
    "alignment": functools.partial(interval.within, lowest=-1, highest=1),
}


def table(descent_widths: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, depth, width and step that was watched, of the learning rate
    1/λ_max: for each of `ABOVE` and `BELOW`, _mean, _low and _high over seeds (95 % t interval;
    geometric mean of those of LOG). linearised_error: the largest difference of the residual from
    its prediction up to this step, relative to the start. own_width: whether it is the data set's.
    change_power and linearised_error_power, of the last step: p of mᵖ, fitted for each seed over
    all widths, with the same columns; empty for one width."""
    runs = pd.concat(map(_runs, descent_widths), ignore_index=True)
    rows = []
    for point, group in runs.groupby([*CURVE, "step"], sort=False):
        first = group.iloc[0]
        row = dict(zip([*CURVE, "step"], point, strict=True))
        row |= {"own_width": first.own_width, "n": first.n, "seeds": len(group)}
        for name in dict.fromkeys((*ABOVE, *BELOW)):
            row |= interval.columns(name, MEANS[name](group[name].to_numpy()))
        rows.append(row)
    numbers = pd.DataFrame(rows)
    last = runs[runs.step == runs.groupby("dataset").step.transform("max")]
    for name in POWERS:
        powers = [
            {**dict(zip(CURVE[:3], curve, strict=True)), **dict(_power(group, name))}
            for curve, group in last.groupby(CURVE[:3], sort=False)
        ]
        ends = numbers.step == numbers.groupby("dataset").step.transform("max")
        fitted = numbers[CURVE[:3]].merge(pd.DataFrame(powers), on=CURVE[:3])
        for column in fitted.columns[3:]:
            numbers[column] = fitted[column].where(ends)
    return numbers


def _power(runs: pd.DataFrame, name: str) -> Iterator[tuple[str, float]]:
    """The fitted power and its interval. runs: of a curve, at all widths."""
    values = runs.pivot(index="width", columns="seed", values=name)
    powers = np.full(values.shape[1], np.nan)
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    if len(values) > 1 and np.isfinite(logs).all(axis=None):
        powers = np.polyfit(np.log(values.index), logs, 1)[0]
    yield from interval.columns(f"{name}_power", interval.t_interval(powers))


def _runs(path: Path) -> pd.DataFrame:
    """A row for each depth, seed and step that was watched."""
    with read_hdf5(path) as file:
        about = dict(file.attrs)
        rules = list(about["rules"])
        rule = rules.index("own")
        residual, linearised = file["residual"][rule], file["linearised"][rule]
        seen = {name: file[f"evolution/{name}"][rule] for name in MEASURES}
        resolved = file["evolution/verdict"].asstr()[rule] == "resolved"
        watched = file["watched"][:]
    seen["kappa"] = np.where(resolved, seen["kappa"], np.nan)
    seen["kappa_ratio"] = seen["kappa"] / seen["kappa"][..., :1]
    error = abs(residual / residual[..., :1] - linearised / linearised[..., :1])
    seen["linearised_error"] = np.maximum.accumulate(error, axis=-1)[..., watched]
    points = pd.MultiIndex.from_product(
        [about["depths"], about["seeds"], watched], names=["depth", "seed", "step"]
    )
    columns = {name: values.ravel() for name, values in seen.items()}
    return pd.DataFrame(columns, index=points).reset_index().assign(
        dataset=path.parts[-2], activation=about["activation"], width=about["width"],
        own_width="common" in rules, n=about["n"],
    )  # fmt: skip


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """Two rows of panels for each data set: against the step, and against the width."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=3.6 * len(datasets), width=7.2)
    panels = figure.subplots(2 * len(datasets), len(ABOVE), squeeze=False)
    colours = style.depth_colours_of(numbers.depth)
    for (dataset, rows), above, below in zip(datasets, panels[::2], panels[1::2], strict=True):
        of_steps = rows[rows.own_width & (rows.step > 0)]
        at_end = rows[rows.step == rows.step.max()]
        _row(above, of_steps, "step", ABOVE, colours)
        _row(below, at_end, "width", BELOW, colours)
        above[0].set_title(f"{conditions.title(dataset)}, $m$ = {of_steps.width.iloc[0]}")
        below[0].set_title(f"after {rows.step.max()} steps")
    figure.key(about=conditions.in_words(numbers, "square loss", EXPLAINED))
    return figure


def _row(panels: Sequence[Axes], rows: pd.DataFrame, x: str, words: dict, colours: dict) -> None:
    for axes, (name, label) in zip(panels, words.items(), strict=True):
        for depth, colour in colours.items():
            curve = rows[rows.depth == depth].sort_values(x)
            low, high = curve[f"{name}_low"], curve[f"{name}_high"]
            axes.plot(curve[x], curve[f"{name}_mean"], color=colour, label=f"$L$ = {depth}",
                      marker="o" if x == "width" else None)  # fmt: skip
            style.shade(axes, curve[x], low, high, colour, "shade: 95 % interval of the mean")
        axes.set_ylabel(label)
        if x == "width":
            style.sizes_axis(axes, rows.width)
        if name in LOG:
            style.plain_log(axes)
        if x == "step":
            axes.set_xscale("log")
        axes.set_xlabel("step" if x == "step" else "width $m$")
