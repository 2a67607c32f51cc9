"""Gradient angles against input angles at infinite width: the numbers and axes of these figures."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import style
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

THETA_DEG = np.linspace(0.0, 180.0, 361)


def curve(activation: str, depth: int, **variance: float) -> pd.DataFrame:
    """Columns activation, depth, weight_variance if given, theta_in_deg, phi_deg; for each half
    degree, inputs of norm 1."""
    network = MLP(ACTIVATIONS[activation], depth, math.inf)
    phi_deg = np.degrees(gradient_angle(np.radians(THETA_DEG), network, **variance))
    about = {"activation": activation, "depth": depth, **variance}
    return pd.DataFrame({**about, "theta_in_deg": THETA_DEG, "phi_deg": phi_deg})


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
