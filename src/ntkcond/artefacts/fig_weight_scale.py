"""φ against θ_in for several variances of the weights (newest version, Figure 6)."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

SPEC = Spec(
    title="Weight scale, gradient angle against input angle",
    section="§∞ Beyond the first version",
    caption="""
The gradient angle φ against the angle θ between two inputs of norm 1, at infinite width, L = 5,
for weights of variance σ_w² = 0.01, 0.1, 1 and 10. For ReLU all four curves coincide: a network
without biases whose activation is homogeneous only changes its size with its weights. For tanh
small weights make the network linear, large ones make it saturate.

**The paper** shows four different curves for ReLU in Figure 6 of its newest version. For the
network of its Eq. (1) they cannot differ.
""",
)

VARIANCES = (0.01, 0.1, 1.0, 10.0)  # the paper's
SHOWN = ("relu", "tanh")
DEPTH = 5
DASHES = ("-", (0, (4, 3)), (0, (2, 2.5)), (0, (1, 2)))


def table(depth: int = DEPTH) -> pd.DataFrame:
    """Columns activation, depth, weight_variance, theta_in_deg, phi_deg; each half degree, inputs
    of norm 1."""
    theta_deg = np.linspace(0.0, 180.0, 361)
    curves = []
    for activation in SHOWN:
        network = MLP(ACTIVATIONS[activation], depth, math.inf)
        for variance in VARIANCES:
            phi = gradient_angle(np.radians(theta_deg), network, variance)
            curves.append(
                pd.DataFrame(
                    {
                        "activation": activation,
                        "depth": depth,
                        "weight_variance": variance,
                        "theta_in_deg": theta_deg,
                        "phi_deg": np.degrees(phi),
                    }
                )
            )
    return pd.concat(curves, ignore_index=True)


def draw(numbers: pd.DataFrame) -> Figure:
    """A panel for each activation. Dashes of growing sparseness let coinciding curves be seen."""
    activations = list(numbers.activation.unique())
    variances = sorted(numbers.weight_variance.unique())
    with style.look():
        figure = style.figure(height=2.6)
        panels = figure.subplots(1, len(activations), sharey=True)
        for axes, activation in zip(panels, activations, strict=True):
            curves = numbers[numbers.activation == activation]
            for i, variance in enumerate(variances):
                curve = curves[curves.weight_variance == variance]
                axes.plot(
                    curve.theta_in_deg, curve.phi_deg, color=style.COLOURS[i], linestyle=DASHES[i],
                    linewidth=2.6 - 0.5 * i, label=rf"$\sigma_w^2$ = {variance:g}",
                )  # fmt: skip
            same = np.ptp([c.phi_deg for _, c in curves.groupby("weight_variance")], axis=0).max()
            word = "all coincide" if same < 1e-6 else f"up to {same:.0f}° apart"
            axes.set_title(f"{ACTIVATIONS[activation].title}: {word}")
            axes.set(xlim=(0, 180), xlabel=r"input angle $\theta_\mathrm{in}$ (degrees)")
            axes.set_xticks(range(0, 181, 30))
        panels[0].set_ylabel(
            rf"gradient angle $\phi$ (degrees)"
            "\n"
            rf"$L$ = {numbers.depth.iloc[0]}, $m \to \infty$"
        )
        panels[0].set_ylim(0, 180)
        panels[0].set_yticks(range(0, 181, 30))
        panels[-1].legend(loc="lower right")
    return figure
