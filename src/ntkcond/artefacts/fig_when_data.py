"""Real data on the map: does κ of the inputs say whether ReLU lowers it?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from ntkcond.artefacts import conditions, style
from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Data sets on the map",
    section="§∞ When does ReLU help?",
    inputs=("variant",),
    datasets="fig_when_data",
    caption="""
κ of the NTK over κ of the inputs' cosines, against the latter over 1 + n μ/s: above this value the
linearised NTK of ReLU has the smaller κ (docs/when.md); μ is its mean mode, s its lift. All samples
have norm 1; each set as it is, less its mean sample, and whitened; n/d = 0.1, 0.3, 0.6, with d the
number of directions that vary; L = 1, 3, 10. A point is at infinite width, a thin line leads to the
median of the networks of finite width. **(a)** ReLU: by the rule, points are left above or right
below the crossing. **(b)** ReLU less its mean, which has no mean mode: never above 1. Where κ is ∞
or lost to rounding, as with parallel samples, there is no point; the figure says how many.

**The paper** says that ReLU lowers κ of any data without parallel inputs: all points of (a) would
be below 1.
""",
)
EXPLAINED = (
    r"points: $m \to \infty$, one for each $n$ and $L$",
    r"$\mu$, $s$: mean mode and lift of the linearised NTK",
)
VARIANTS = {"as it is": "o", "centred": "s", "whitened": "D"}
PANELS = {"kappa": "(a) ReLU", "zero_mean_kappa": "(b) ReLU less its mean"}


def table(variant: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, variant, n and depth: the columns of `ntkcond.steps.variant`, with
    width, and kappa_at_width, the median over its seeds."""
    tables = []
    for path in variant:
        with read_hdf5(path) as file:
            columns = {name: file[name][:] for name in file}
            columns["variant"] = file["variant"].asstr()[:]
            columns["kappa_at_width"] = np.median(columns["kappa_at_width"], axis=1)  # or NaN
            about = {"width": file.attrs["width"], "seeds": len(file.attrs["seeds"])}
        tables.append(pd.DataFrame({"dataset": path.stem, **columns, **about}))
    return pd.concat(tables, ignore_index=True)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A panel for ReLU, one for ReLU less its mean."""
    figure = style.figure(height=3.2)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    lost = numbers[["input_kappa", *PANELS]].isna().any(axis=1)
    if lost.any():
        figure.note(f"{lost.sum()} of {len(numbers)} points are not drawn: κ is ∞ or not resolved")
    numbers = numbers[~lost]
    place = numbers.input_kappa / numbers.lowers_above
    names = list(numbers.dataset.unique())
    for axes, (column, heading) in zip(panels, PANELS.items(), strict=True):
        axes.axhline(1, color="black", linewidth=0.8)
        axes.axvline(1, color="black", linewidth=0.8)
        for i, name in enumerate(names):
            colour = style.look_of(i)["color"]
            for variant, marker in VARIANTS.items():
                rows = numbers[(numbers.dataset == name) & (numbers.variant == variant)]
                x, y = place[rows.index], rows[column] / rows.input_kappa
                axes.plot(x, y, marker, color=colour, markersize=3, fillstyle="none")
                if column == "kappa":
                    at_width = rows.kappa_at_width / rows.input_kappa
                    axes.vlines(x, y, at_width, color=colour, linewidth=0.6)
        axes.set_title(heading)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(r"$\kappa$ of the inputs / (1 + $n\mu/s$)")
    panels[0].set_ylabel(r"$\kappa$ / $\kappa$ of the inputs")
    looks = {"linestyle": "none", "fillstyle": "none"}
    keys = [
        (
            Line2D([], [], marker="o", color=style.look_of(i)["color"], **looks),
            conditions.title(name),
        )
        for i, name in enumerate(names)
    ]
    keys += [
        (Line2D([], [], marker=marker, color=style.GREY, **looks), variant)
        for variant, marker in VARIANTS.items()
    ]
    width = Line2D([], [], color=style.GREY, linewidth=0.6)
    keys.append((width, f"thin line: to $m$ = {style.span(numbers.width)}"))
    figure.key(*keys, about=conditions.in_words(numbers, *EXPLAINED))
    return figure
