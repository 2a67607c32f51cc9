"""Gradient angles against input angles at infinite width: the axes of these figures."""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import style


def draw_depths(axes: Axes, curves: pd.DataFrame, depths: Iterable[int], label: str) -> None:
    """A curve for each depth, darker with depth."""
    for depth, colour in style.depth_colours_of(depths).items():
        shown = curves[curves.depth == depth]
        axes.plot(shown.theta_in_deg, shown.phi_deg, color=colour, label=f"{label} = {depth:g}")


def limit(axes: Axes, phi_max: int, theta_step: int, phi_step: int) -> None:
    """Axes in degrees, with their ticks."""
    axes.set(
        xlim=(0, 180),
        ylim=(0, phi_max),
        xticks=range(0, 181, theta_step),
        yticks=range(0, phi_max + 1, phi_step),
    )
