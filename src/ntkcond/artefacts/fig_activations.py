"""φ against θ_in at infinite width for other activations than ReLU (newest version, Figure 2)."""

from collections.abc import Sequence

import pandas as pd

from ntkcond.artefacts import angle_curves, angle_panels, style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS

SPEC = Spec(
    title="Other activations, gradient angle against input angle",
    section="§∞ Beyond the first version",
    settings={"activations": "theory.activations", "depths": "theory.activation_depths"},
    caption="""
The angle φ between the gradients of two inputs of norm 1 against the angle θ between the inputs,
at infinite width, for activations other than ReLU. A curve for each depth L; dashed: the diagonal.
The network is that of Eq. (1), with c_σ of each activation. The dual activation of ReLU² has a
closed form (Cho & Saul, 2009); those of smooth activations are Hermite series, exact to rounding.

**The paper** has this as Figure 2 of its newest version, for ReLU², GELU and tanh. Each activation
makes small angles larger, the more the deeper the network, and φ → 90° as L → ∞, for GELU only
beyond some 100 layers. As tanh is odd, opposite inputs keep
opposite gradients.
""",
)


def table(activations: Sequence[str], depths: Sequence[int]) -> pd.DataFrame:
    """Columns activation, depth, theta_in_deg, phi_deg; each half degree, inputs of norm 1."""
    curves = [angle_curves.curve(name, depth) for name in activations for depth in depths]
    return pd.concat(curves, ignore_index=True)


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A panel for each activation; darker with depth, the diagonal dashed."""
    activations = numbers.groupby("activation", sort=False)
    columns = min(3, len(activations))
    rows = -(-len(activations) // columns)
    figure = style.figure(height=2.1 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in panels.flat[len(activations) :]:
        axes.set_visible(False)
    for axes, (activation, curves) in zip(panels.flat, activations, strict=False):
        axes.plot([0, 180], [0, 180], "--", color="black", linewidth=0.8, label=r"$\phi=\theta$")
        angle_panels.draw_depths(axes, curves, numbers.depth, "$L$")
        axes.set_title(ACTIVATIONS[activation].title)
        angle_panels.limit(axes, 180, 60, 30)
    for axes in panels[-1]:
        axes.set_xlabel(r"$\theta_\mathrm{in}$ (degrees)")
    for axes in panels[:, 0]:
        axes.set_ylabel(r"gradient angle $\phi$" "\n" r"(degrees), $m \to \infty$")
    figure.key()
    return figure
