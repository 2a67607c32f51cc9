"""min φ and κ against depth for every activation (ICLR submission, Appendix F)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import conditions, style, sweep_curves, sweep_panels
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Other activations, separation and conditioning against depth",
    section="§∞ Beyond the first version",
    inputs=("sweep_activations",),
    datasets="fig_activations_ntk",
    caption="""
**Left**: the smallest angle between the gradients of two samples of norm 1, mean over
initialisations with its 95 % t interval. **Right**: κ of the NTK of n samples, median and middle
68 % over initialisations and blocks; a hollow triangle is a lower bound. Against depth, for each
available activation; thin lines: infinite width.

**The paper** mentions such an experiment in its ICLR submission (Appendix F, not in our copies):
tanh lowers κ, sigmoid raises it, and depth amplifies both. That holds here, but that sigmoid's κ is
still below that of the inputs after one and two layers. **ReLU²** follows its infinite width for
two layers only. Each layer squares its size, and so the fluctuations of a finite width: at m = 512
κ on the digits rises from 700 at L = 3 to 10⁶ at L = 5, while at infinite width it falls from 250
to 60. From L = 6 on there are lower bounds alone.
""",
)


def table(sweep_activations: pd.DataFrame) -> pd.DataFrame:
    """See `ntkcond.artefacts.sweep_curves.table`."""
    return sweep_curves.table(sweep_activations)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each data set, a colour and marker for each activation; thin, without
    markers: infinite width."""
    figure, panels = sweep_panels.draw_rows(numbers, 2.3, _curves)
    for axes in panels[-1]:
        style.depth_axis(axes, numbers.depth)
    figure.key(about=conditions.in_words(numbers))
    return figure


def _curves(left: Axes, right: Axes, rows: pd.DataFrame) -> None:
    for position, (name, activation) in enumerate(ACTIVATIONS.items()):
        curve = rows[rows.activation == name].sort_values("depth")
        finite, limit = curve[np.isfinite(curve.width)], curve[np.isinf(curve.width)]
        if len(curve):
            look = style.look_of(position)
            thin = sweep_panels.limit(look)
            sweep_panels.draw_angle(left, "depth", finite, {**look, "label": activation.title})
            sweep_panels.draw_kappa(right, "depth", finite, look)
            sweep_panels.draw_angle(left, "depth", limit, thin)
            sweep_panels.draw_kappa(right, "depth", limit, thin)
