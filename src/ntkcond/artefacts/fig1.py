"""Figure 1: the gradient angle φ against the input angle θ_in, at infinite width (Thm 4.4)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

SPEC = Spec(
    title="Figure 1, gradient angle against input angle",
    section="§4 Better data separation",
    settings={"depths": "theory.depths"},
    caption=r"""
The angle φ between the gradients of two samples against the angle θ\ :sub:`in` between the
samples, in networks of infinite width: solid for ReLU networks, darker with depth L; dashed for
linear networks, which keep the angle at any depth. Closed form (the paper's Eq. 10); no data, no
random numbers.

**The paper** reads two things off its Figure 1: for θ\ :sub:`in` < 60° the gradient angle is
larger than the input angle, the more so the deeper the network, and for larger θ\ :sub:`in` it
stays above 60°. (Its theorems prove the first for small angles only.) Both hold for every L up to
1000 (a test goes through them), and the first further: φ > θ\ :sub:`in` up to 66.8° for L = 1 and
69.6° for L = 10. Not in the picture: Theorem 4.4's ‖∇f(x)‖ = (L+1)‖x‖ should be ‖∇f(x)‖² =
(L+1)‖x‖²; angles are not touched by it.
""",
)

LINEAR = "linear"


def table(depths: Sequence[int]) -> pd.DataFrame:
    """Columns activation, depth (empty for linear), theta_in_deg, phi_deg; each half degree."""
    theta_deg = np.linspace(0.0, 180.0, 361)
    curves = []
    for depth in depths:
        relu = MLP(ACTIVATIONS["relu"], depth, math.inf)
        phi_deg = np.degrees(gradient_angle(np.radians(theta_deg), relu))
        curve = {"activation": "relu", "depth": depth, "theta_in_deg": theta_deg}
        curves.append(pd.DataFrame({**curve, "phi_deg": phi_deg}))
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
