"""φ against θ_in for several variances of the weights (newest version, Figure 6)."""

import itertools

import numpy as np
import pandas as pd

from ntkcond.artefacts import angle_curves, angle_panels, style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Weight scale, gradient angle against input angle",
    section="§∞ Beyond the first version",
    caption="""
The gradient angle φ against the angle θ between two inputs of norm 1, at infinite width, L = 5,
for weights of variance σ_w² = 0.01, 0.1, 1 and 10. For ReLU all four curves coincide: if the
activation is homogeneous and biases are absent, the weights only scale the network. For tanh, small
weights make the network linear and large ones make it saturate.

**The paper** says in its newest version (Appendix B, Figure 6) that similar inputs are separated
better, φ > θ, at each of the four scales. That holds. For the network of its Eq. (1), which has no
biases, the curves cannot differ.
""",
)

VARIANCES = (0.01, 0.1, 1.0, 10.0)  # the paper's
SHOWN = ("relu", "tanh")
DEPTH = 5
DASHES = ("-", (0, (4, 3)), (0, (2, 2.5)), (0, (1, 2)))


def table(depth: int = DEPTH) -> pd.DataFrame:
    """Columns activation, depth, weight_variance, theta_in_deg, phi_deg; each half degree, inputs
    of norm 1."""
    pairs = itertools.product(SHOWN, VARIANCES)
    curves = [angle_curves.curve(name, depth, weight_variance=variance) for name, variance in pairs]
    return pd.concat(curves, ignore_index=True)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A panel for each activation. Growing gaps in the dashes make coinciding curves visible."""
    activations = numbers.groupby("activation", sort=False)
    figure = style.figure(height=2.6)
    panels = figure.subplots(1, len(activations), sharey=True)
    for axes, (activation, curves) in zip(panels, activations, strict=True):
        for i, (variance, curve) in enumerate(curves.groupby("weight_variance")):
            axes.plot(
                curve.theta_in_deg, curve.phi_deg, color=style.COLOURS[i], linestyle=DASHES[i],
                linewidth=2.6 - 0.5 * i, label=rf"$\sigma_w^2$ = {variance:g}",
            )  # fmt: skip
        apart = np.ptp([curve.phi_deg for _, curve in curves.groupby("weight_variance")], axis=0)
        words = "all coincide" if apart.max() < 1e-6 else f"up to {apart.max():.0f}° apart"
        axes.set_title(f"{ACTIVATIONS[activation].title}: {words}")
        axes.set_xlabel(r"input angle $\theta_\mathrm{in}$ (degrees)")
        angle_panels.limit(axes, 180, 30, 30)
    depth = rf"$L$ = {numbers.depth.iloc[0]}, $m \to \infty$"
    panels[0].set_ylabel(rf"gradient angle $\phi$ (degrees)" f"\n{depth}")
    panels[-1].legend(loc="lower right")
    return figure
