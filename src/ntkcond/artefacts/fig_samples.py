"""κ against n, the number of samples in one NTK: every κ depends on it."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import conditions, style, sweep_curves, sweep_panels
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Samples, κ against n",
    section="§∞ Beyond the first version",
    inputs=("sweep/samples",),
    datasets="fig_samples",
    caption="""
κ of the NTK of the first n samples against n: median and middle 68 % over initialisations and
blocks, a colour for each depth; a hollow triangle is a lower bound.

**The paper** does not say n of its κ (the authors' scripts have 512). Here κ grows faster than n:
no κ means anything without its n.
""",
)


def table(sweep_samples: Sequence[Path]) -> pd.DataFrame:
    """See `ntkcond.artefacts.sweep_curves.table`."""
    return sweep_curves.table(sweep_curves.read(sweep_samples))


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A panel for each data set; darker with depth."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=2.7, width=min(style.TEXT_WIDTH, 1.2 + 2.4 * len(datasets)))
    panels = figure.subplots(1, len(datasets), squeeze=False)[0]
    for axes, (dataset, rows) in zip(panels, datasets, strict=True):
        for depth, colour in style.depth_colours_of(numbers.depth).items():
            curve = rows[rows.depth == depth].sort_values("n")
            look = {"color": colour, "marker": "o", "label": f"$L$ = {depth}"}
            sweep_panels.draw_kappa(axes, "n", curve, look)
        axes.set_title(conditions.title(dataset))
        axes.set_xlabel("samples in one NTK, $n$")
        sweep_panels.log_decades(axes, rows[["kappa_median", "kappa_lower_bound"]])
        style.sizes_axis(axes, rows.n)
    panels[0].set_ylabel(r"NTK condition number $\kappa$")
    figure.key(about=conditions.in_words(numbers))
    return figure
