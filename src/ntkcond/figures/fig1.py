"""Figure 1: the gradient angle φ against the input angle θ_in, at infinite width (Thm 4.4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.figures import style
from ntkcond.infinite_width import gradient_angle

LINEAR = "linear"


def table(depths: Sequence[int]) -> pd.DataFrame:
    """Columns activation, depth (empty for linear), theta_in_deg, phi_deg; each half degree."""
    theta_deg = np.linspace(0.0, 180.0, 361)
    curves = [
        pd.DataFrame(
            {
                "activation": "relu",
                "depth": depth,
                "theta_in_deg": theta_deg,
                "phi_deg": np.degrees(gradient_angle(np.radians(theta_deg), depth)),
            }
        )
        for depth in depths
    ]
    linear = pd.DataFrame({"activation": LINEAR, "theta_in_deg": theta_deg, "phi_deg": theta_deg})
    return pd.concat([*curves, linear], ignore_index=True).astype({"depth": "Int64"})[
        ["activation", "depth", "theta_in_deg", "phi_deg"]
    ]


def draw(numbers: pd.DataFrame) -> Figure:
    """ReLU solid, darker with depth, linear dashed."""
    relu = numbers[numbers.activation == "relu"]
    depths = sorted(relu.depth.unique())
    with style.look():
        figure = style.figure(height=2.9, width=3.6)
        axes = figure.subplots()
        linear = numbers[numbers.activation == LINEAR]
        axes.plot(linear.theta_in_deg, linear.phi_deg, "--", color="black", label="linear, any $L$")
        for depth, colour in zip(depths, style.depth_colours(len(depths)), strict=True):
            curve = relu[relu.depth == depth]
            label = f"ReLU, $L$ = {depth}"
            axes.plot(curve.theta_in_deg, curve.phi_deg, color=colour, label=label)
        axes.set(
            xlabel=r"input angle $\theta_\mathrm{in}$ (degrees)",
            ylabel=r"gradient angle $\phi$ (degrees), width $m \to \infty$",
            xlim=(0, 180),
            ylim=(0, 120),
        )
        axes.set_xticks(range(0, 181, 30))
        axes.set_yticks(range(0, 121, 15))
        axes.legend(loc="lower right", handlelength=1.8)
    return figure
