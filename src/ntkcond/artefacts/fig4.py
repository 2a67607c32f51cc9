"""Figure 4: g(θ), the embedding angle after one ReLU layer of infinite width (Eq. 8, Prop. A.1)."""

import numpy as np
import pandas as pd

from ntkcond.artefacts import angle_curves, angle_panels, style
from ntkcond.artefacts.spec import Spec
from ntkcond.ntk.infinite_width import g

SPEC = Spec(
    title="Figure 4, the function g",
    section="§A Properties of g",
    caption="""
g(θ): the angle between two samples' activations after one ReLU layer of infinite width, against
the angle θ before it. Dashed: the identity. Closed form (the paper's Eq. 14), without data or
settings.

**The paper** (its Figure 4, Proposition A.1; Figure 5 of its newest version) states that g
increases, that g(θ) ≤ θ, with equality only at 0, and that g(θ) ≈ θ at small angles. The curve
agrees. So with depth the activations of different samples move together, while the gradients of
close samples move apart (Figure 1).
""",
)


def table() -> pd.DataFrame:
    """Columns theta_deg, g_deg; every half degree."""
    theta_deg = angle_curves.THETA_DEG
    return pd.DataFrame({"theta_deg": theta_deg, "g_deg": np.degrees(g(np.radians(theta_deg)))})


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """g solid, the identity dashed."""
    figure = style.figure(height=2.6, width=3.0)
    axes, theta = figure.subplots(), numbers.theta_deg
    axes.plot(theta, theta, "--", color="black", label="identity")
    axes.plot(theta, numbers.g_deg, color=style.COLOURS[0], label=r"$g(\theta)$, ReLU")
    axes.set_xlabel(r"angle before the layer $\theta$ (degrees)")
    axes.set_ylabel(r"angle after it $g(\theta)$ (degrees)")
    angle_panels.limit(axes, 120, 30, 30)
    axes.legend(loc="lower right")
    return figure
