"""min φ and κ against depth for every activation (ICLR submission, Appendix F)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style, sweep_curves
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Other activations, separation and conditioning against depth",
    section="§∞ Beyond the first version",
    inputs=("sweep/activations",),
    datasets="fig_activations_ntk",
    caption="""
**Left**: the smallest angle between the gradients of two samples of norm 1, mean over
initialisations ± one standard deviation. **Right**: κ of the NTK of n samples, median and middle
68 % over initialisations and blocks; a hollow triangle is a lower bound. Against depth, for every
activation there is; thin lines: infinite width.

**The paper** mentions such an experiment in its ICLR submission (Appendix F, not in our copies):
tanh lowers κ, sigmoid raises it, depth magnifies either. What to see: that holds here. ReLU²
follows its infinite width for a few layers only: its size is squared in each layer, and so are the
fluctuations of a finite width.
""",
)


def table(sweep_activations: Sequence[Path]) -> pd.DataFrame:
    """See `ntkcond.artefacts.sweep_curves.table`."""
    return sweep_curves.table(sweep_activations)


def draw(numbers: pd.DataFrame) -> Figure:
    """A row of two panels for each data set, a colour and marker for each activation; thin, without
    markers: infinite width."""
    datasets = list(numbers.dataset.unique())
    with style.look():
        figure = style.figure(height=0.6 + 2.3 * len(datasets))
        panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True)
        for (left, right), dataset in zip(panels, datasets, strict=True):
            own = numbers[numbers.dataset == dataset]
            for i, activation in enumerate(ACTIVATIONS):
                curve = own[own.activation == activation].sort_values("depth")
                finite, limit = curve[np.isfinite(curve.width)], curve[np.isinf(curve.width)]
                colour = style.COLOURS[i % len(style.COLOURS)]
                if curve.empty:
                    continue
                look = {"color": colour, "marker": style.MARKERS[i % len(style.MARKERS)]}
                label = ACTIVATIONS[activation].title
                sweep_curves.draw_angle(left, "depth", finite, {**look, "label": label})
                sweep_curves.draw_kappa(right, "depth", finite, look)
                thin = {"color": colour, "linewidth": 0.7}
                sweep_curves.draw_angle(left, "depth", limit, thin)
                sweep_curves.draw_kappa(right, "depth", limit, thin)
            row = own.iloc[0]
            left.set_title(f"{title(dataset)}: separation")
            left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
            left.set_ylim(bottom=0)
            right.set_title(f"{title(dataset)}: conditioning")
            right.set_ylabel(rf"$\kappa$ of $n$ = {row.n:,} samples")
            right.set_yscale("log")
            for axes in (left, right):
                axes.set_xticks(sorted(own.depth.unique()))
        for axes in panels[-1]:
            axes.set_xlabel("depth $L$ (hidden layers)")
        panels[0, 0].plot([], [], color=style.GREY, linewidth=0.7, label=r"$m \to \infty$")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
