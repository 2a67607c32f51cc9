"""Figure 1: the gradient angle φ against the input angle θ_in, at infinite width (Thm 4.4)."""

from collections.abc import Sequence

import pandas as pd

from ntkcond.artefacts import angle_curves, angle_panels, style
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Figure 1, gradient angle against input angle",
    section="§4 Better data separation",
    settings={"depths": "theory.depths"},
    caption=r"""
The angle φ between the gradients of two samples against the angle θ\ :sub:`in` between the
samples, at infinite width. Solid: ReLU networks, darker with depth L. Dashed: linear networks,
which keep the angle at any depth. Closed form (the paper's Eq. 10), without data or random numbers.

**The paper** reads two things off its Figure 1. For θ\ :sub:`in` < 60° the gradient angle is larger
than the input angle, the more so the deeper the network; for larger θ\ :sub:`in` it stays above
60°. (Its theorems prove the first for small angles only; the newest version has 30° in both.) Both
hold for every L up to 1000, which a test checks. The first holds further: φ > θ\ :sub:`in` up to
66.8° for L = 1 and 69.6° for L = 10. Theorem 4.4's ‖∇f(x)‖ = (L+1)‖x‖ should be ‖∇f(x)‖² =
(L+1)‖x‖²; this leaves angles unchanged.
""",
)

LINEAR = "linear"


def table(depths: Sequence[int]) -> pd.DataFrame:
    """Columns activation, depth (empty for linear), theta_in_deg, phi_deg; each half degree."""
    linear = angle_curves.curve(LINEAR, 0).assign(depth=pd.NA, phi_deg=angle_curves.THETA_DEG)
    curves = [angle_curves.curve("relu", depth) for depth in depths]
    return pd.concat([*curves, linear], ignore_index=True).astype({"depth": "Int64"})


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """ReLU solid, darker with depth, linear dashed."""
    figure = style.figure(height=2.9, width=3.6)
    axes = figure.subplots()
    linear = numbers[numbers.activation == LINEAR]
    relu = numbers[numbers.activation == "relu"]
    axes.plot(linear.theta_in_deg, linear.phi_deg, "--", color="black", label="linear, any $L$")
    angle_panels.draw_depths(axes, relu, relu.depth, "ReLU, $L$")
    axes.set_xlabel(r"input angle $\theta_\mathrm{in}$ (degrees)")
    axes.set_ylabel(r"gradient angle $\phi$ (degrees), width $m \to \infty$")
    angle_panels.limit(axes, 120, 30, 15)
    axes.legend(loc="lower right", handlelength=1.8)
    return figure
