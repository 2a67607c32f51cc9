"""The NTK in the course of gradient descent: how far it stays the one at the start."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import interval, style
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="The NTK during training",
    section="§6 Faster optimization",
    inputs=("descent/widths",),
    datasets="fig_evolution",
    caption="""
The NTK Kₜ in the course of full-batch gradient descent on the square loss, the learning rate 1 over
the largest eigenvalue of K₀; the data are those of ``fig_descent``. A colour for each depth; mean
over initialisations (of all but the angle and the alignment the geometric mean), shade: its 95 % t
interval. **Above**, at the data set's own width, against the step: the change ‖Kₜ − K₀‖/‖K₀‖; κ of
Kₜ; the smallest angle between gradients; the centred alignment of Kₜ with the labels (Cortes, Mohri
and Rostamizadeh 2012), 1 where Kₜ is their product. **Below**, at the last step, against the width:
the change; κ of Kₜ over that of K₀; the alignment; and how far the residual ‖f(X) − y‖ is from what
K₀ predicts, were it constant: the largest difference of all steps, relative to the residual at the
start. Where κ is not resolved for an initialisation, a depth has none.

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
LOG = ("change", "kappa", "kappa_ratio", "linearised_error")


def table(descent_widths: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, depth, width and step that was watched, of the learning rate
    1/λ_max: for each of `ABOVE` and `BELOW`, _mean, _low and _high over seeds (95 % t interval;
    geometric mean of those of LOG). linearised_error: the largest difference of the residual from
    its prediction up to this step, relative to the start. own_width: whether it is the data set's.
    """
    return pd.concat(map(pd.DataFrame, map(_rows, descent_widths)), ignore_index=True)


def _rows(path: Path) -> Iterator[dict]:
    with read_hdf5(path) as file:
        about = dict(file.attrs)
        rules = list(about["rules"])
        own = rules.index("own")
        residual, linearised = file["residual"][own], file["linearised"][own]
        seen = {name: file[f"evolution/{name}"][own] for name in MEASURES}
        resolved = file["evolution/verdict"].asstr()[own] == "resolved"
        watched = file["watched"][:]
    seen["kappa"] = np.where(resolved, seen["kappa"], np.nan)
    seen["kappa_ratio"] = seen["kappa"] / seen["kappa"][..., :1]
    error = abs(residual - linearised) / residual[..., :1]
    seen["linearised_error"] = np.maximum.accumulate(error, axis=-1)[..., watched]
    for i, depth in enumerate(about["depths"]):
        for k, step in enumerate(watched):
            row = {
                "dataset": path.parts[-2], "activation": about["activation"], "depth": depth,
                "width": about["width"], "own_width": "common" in rules, "n": about["n"],
                "seeds": residual.shape[1], "step": step,
            }  # fmt: skip
            for name, values in seen.items():
                mean = interval.geometric if name in LOG else interval.t_interval
                row |= interval.columns(name, mean(values[i, :, k]))
            yield row


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """Two rows of panels for each data set: against the step, and against the width."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=0.5 + 3.6 * len(datasets), width=7.2)
    panels = figure.subplots(2 * len(datasets), len(ABOVE), squeeze=False)
    colours = style.depth_colours_of(numbers.depth)
    for (dataset, rows), above, below in zip(datasets, panels[::2], panels[1::2], strict=True):
        of_steps = rows[rows.own_width & (rows.step > 0)]
        at_end = rows[rows.step == rows.step.max()]
        _row(above, of_steps, "step", ABOVE, colours)
        _row(below, at_end, "width", BELOW, colours)
        first = rows.iloc[0]
        width = of_steps.width.iloc[0]
        above[0].set_title(f"{title(dataset)}, $n$ = {first.n}, $m$ = {width}")
        below[0].set_title(f"after {rows.step.max()} steps")
        for axes in below:
            style.sizes_axis(axes, rows.width)
    style.key_below(figure, panels[0, 0])
    return figure


def _row(panels: Sequence[Axes], rows: pd.DataFrame, x: str, words: dict, colours: dict) -> None:
    for axes, (name, label) in zip(panels, words.items(), strict=True):
        for depth, colour in colours.items():
            curve = rows[rows.depth == depth].sort_values(x)
            low, high = curve[f"{name}_low"], curve[f"{name}_high"]
            axes.plot(curve[x], curve[f"{name}_mean"], color=colour, label=f"$L$ = {depth}",
                      marker="o" if x == "width" else None)  # fmt: skip
            style.shade(axes, curve[x], low, high, colour)
        axes.set_ylabel(label)
        if name in LOG:
            axes.set_yscale("log")
        if x == "step":
            axes.set_xscale("log")
        axes.set_xlabel("step" if x == "step" else "width $m$")
