"""Figure 4: g(θ), the embedding angle after one ReLU layer of infinite width (Eq. 8, Prop. A.1)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.figures import style
from ntkcond.infinite_width import g


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
