"""φ against θ_in at infinite width for other activations than ReLU (newest version, Figure 2)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

SPEC = Spec(
    title="Other activations, gradient angle against input angle",
    section="§∞ Beyond the first version",
    settings={"activations": "theory.activations", "depths": "theory.activation_depths"},
    caption="""
The angle φ between the gradients of two inputs of norm 1 against the angle θ between the inputs,
at infinite width, for activations other than ReLU; a curve for each depth L, the diagonal dashed.
The network is that of Eq. (1), with c_σ of each activation. Dual activations are in closed form
for ReLU² (Cho & Saul, 2009) and from a Hermite series, exact to rounding, for smooth ones.

**The paper** has this as Figure 2 of its newest version, for ReLU², GELU and tanh. What to see:
each makes small angles larger, the more the deeper. tanh is odd, so that opposite inputs keep
opposite gradients.
""",
)


def table(activations: Sequence[str], depths: Sequence[int]) -> pd.DataFrame:
    """Columns activation, depth, theta_in_deg, phi_deg; each half degree, inputs of norm 1."""
    theta_deg = np.linspace(0.0, 180.0, 361)
    curves = []
    for activation in activations:
        for depth in depths:
            network = MLP(ACTIVATIONS[activation], depth, math.inf)
            phi = gradient_angle(np.radians(theta_deg), network)
            curves.append(
                pd.DataFrame(
                    {
                        "activation": activation,
                        "depth": depth,
                        "theta_in_deg": theta_deg,
                        "phi_deg": np.degrees(phi),
                    }
                )
            )
    return pd.concat(curves, ignore_index=True)


def draw(numbers: pd.DataFrame) -> Figure:
    """A panel for each activation; darker with depth, the diagonal dashed."""
    activations = list(numbers.activation.unique())
    depths = sorted(numbers.depth.unique())
    columns = min(3, len(activations))
    rows = -(-len(activations) // columns)
    with style.look():
        figure = style.figure(height=0.35 + 2.0 * rows)
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in panels.flat[len(activations) :]:
            axes.set_visible(False)
        for axes, activation in zip(panels.flat, activations, strict=False):
            _panel(axes, numbers[numbers.activation == activation], depths)
        for axes in panels[-1]:
            axes.set_xlabel(r"$\theta_\mathrm{in}$ (degrees)")
        for axes in panels[:, 0]:
            axes.set_ylabel(r"gradient angle $\phi$" "\n" r"(degrees), $m \to \infty$")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _panel(axes: Axes, curves: pd.DataFrame, depths: list[int]) -> None:
    axes.plot([0, 180], [0, 180], "--", color="black", linewidth=0.8, label=r"$\phi=\theta$")
    for depth, colour in zip(depths, style.depth_colours(len(depths)), strict=True):
        curve = curves[curves.depth == depth]
        axes.plot(curve.theta_in_deg, curve.phi_deg, color=colour, label=f"$L$ = {depth}")
    axes.set_title(ACTIVATIONS[curves.activation.iloc[0]].title)
    axes.set(xlim=(0, 180), ylim=(0, 180))
    axes.set_xticks(range(0, 181, 60))
    axes.set_yticks(range(0, 181, 30))
