"""Figure 4: g(θ), the embedding angle after one ReLU layer of infinite width (Eq. 8, Prop. A.1)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.ntk.infinite_width import g

SPEC = Spec(
    title="Figure 4, the function g",
    section="§A Properties of g",
    caption="""
g(θ): the angle between two samples' activations after one ReLU layer of infinite width, against
the angle θ before it. The dashed line is no change. Closed form (the paper's Eq. 14); no data, no
settings.

**The paper** (its Figure 4, Proposition A.1; Figure 5 of its newest version) states that g
increases, that g(θ) ≤ θ, with equality only at 0, and that g(θ) ≈ θ at small angles. The curve
agrees. So activations of different samples move together with depth, while the gradients of close
samples move apart (Figure 1).
""",
)


def table() -> pd.DataFrame:
    """Columns theta_deg, g_deg; every half degree."""
    theta_deg = np.linspace(0.0, 180.0, 361)
    return pd.DataFrame({"theta_deg": theta_deg, "g_deg": np.degrees(g(np.radians(theta_deg)))})


def draw(numbers: pd.DataFrame) -> Figure:
    """g solid, the identity dashed."""
    with style.look():
        figure = style.figure(height=2.6, width=3.0)
        axes = figure.subplots()
        colour = style.COLOURS[0]
        axes.plot(numbers.theta_deg, numbers.theta_deg, "--", color="black", label="identity")
        axes.plot(numbers.theta_deg, numbers.g_deg, color=colour, label=r"$g(\theta)$, ReLU")
        axes.set(
            xlabel=r"angle before the layer $\theta$ (degrees)",
            ylabel=r"angle after it $g(\theta)$ (degrees)",
            xlim=(0, 180),
            ylim=(0, 120),
        )
        axes.set_xticks(range(0, 181, 30))
        axes.set_yticks(range(0, 121, 30))
        axes.legend(loc="lower right")
    return figure
