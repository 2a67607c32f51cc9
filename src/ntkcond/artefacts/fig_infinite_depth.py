"""ReLU networks of infinite width as their depth grows: φ and κ on the way to their limits.

The newest version's Theorems 3.5 and 4.3: every φ tends to arccos(1/4) ≈ 75.52°, and κ of n inputs
of norm 1 to a constant. K / (L+1) tends to ¾ I + ¼ 1 1ᵀ, so that constant is (n+3)/3; the paper's
text has (n+4)/3, and its first version 1.
"""

import math

import numpy as np
import pandas as pd

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle, infinite_width_ntk

SPEC = Spec(
    title="Infinite depth, angles and κ on the way to their limits",
    section="§∞ Beyond the first version",
    caption="""
ReLU networks of infinite width as depth L grows, up to 3,000 layers. **(a)** The gradient angle φ
for several angles θ between the inputs; dashed: arccos(1/4), about 75.52°. **(b)** κ of the NTK of
n inputs of norm 1 (random directions in 32 dimensions); dashed: (n + 3)/3, dotted: (n + 4)/3.

**The paper**: its newest version (Theorems 3.5 and 4.3) has the limit of φ, which holds, and (n +
4)/3 as that of κ; its first version has 1. K / (L + 1) tends to a matrix of ones on the diagonal
and 1/4 elsewhere, whose κ is (n + 3)/3. On the way there, φ and κ need not be monotone.
""",
)

THETA_DEG = (1, 5, 15, 30, 60, 90, 120, 180)
SAMPLES = (4, 16, 64)  # n of κ: standard Gaussian directions
FEATURES = 32
DEEPEST = 3000
LIMIT_DEG = float(np.degrees(np.arccos(0.25)))


def table() -> pd.DataFrame:
    """Columns quantity (phi_deg or kappa), depth, theta_in_deg or n, value; and limit, with the
    paper's in paper_limit."""
    depths = np.unique(np.geomspace(1, DEEPEST, 40).round().astype(int))
    networks = [MLP(ACTIVATIONS["relu"], depth, math.inf) for depth in depths]
    rows = []
    for network in networks:
        angles = np.degrees(gradient_angle(np.radians(THETA_DEG), network))
        for theta, phi in zip(THETA_DEG, angles, strict=True):
            rows.append(("phi_deg", network.depth, theta, np.nan, phi, LIMIT_DEG, LIMIT_DEG))
    rng = np.random.default_rng(0)
    for n in SAMPLES:
        x = rng.standard_normal((n, FEATURES))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for network in networks:
            smallest, *_, largest = np.linalg.eigvalsh(infinite_width_ntk(x, network))
            limits = (n + 3) / 3, (n + 4) / 3
            rows.append(("kappa", network.depth, np.nan, n, largest / smallest, *limits))
    columns = ["quantity", "depth", "theta_in_deg", "n", "value", "limit", "paper_limit"]
    return pd.DataFrame(rows, columns=columns).astype({"n": "Int64"})


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """(a) φ, (b) κ against depth on a log axis, with their limits."""
    angles = numbers[numbers.quantity == "phi_deg"]
    kappas = numbers[numbers.quantity == "kappa"]
    figure = style.figure(height=3.3)
    left, right = figure.subplots(1, 2)
    for theta, colour in style.depth_colours_of(angles.theta_in_deg).items():
        curve = angles[angles.theta_in_deg == theta]
        left.plot(curve.depth, curve.value, color=colour, label=f"{theta:g}°")
    limit = {"color": "black", "linestyle": "--", "label": r"$\arccos(1/4)$"}
    left.axhline(angles.limit.iloc[0], linewidth=0.8, **limit)
    left.set_ylabel(r"gradient angle $\phi$ (degrees)")
    left.set_title(r"(a) $\phi \to \arccos(1/4)$")
    for (n, curve), colour in zip(kappas.groupby("n"), style.COLOURS, strict=False):
        right.plot(curve.depth, curve.value, color=colour, label=f"$n$ = {n:g}")
        right.axhline(curve.limit.iloc[0], color=colour, linestyle="--", linewidth=0.8)
        right.axhline(curve.paper_limit.iloc[0], color=colour, linestyle=":", linewidth=0.8)
    right.plot([], [], "--", color="black", linewidth=0.8, label="$(n+3)/3$")
    right.plot([], [], ":", color="black", linewidth=0.8, label="$(n+4)/3$, the paper's")
    style.plain_log(right)
    right.set_ylabel(r"$\kappa$ of $n$ inputs of norm 1")
    right.set_title(r"(b) $\kappa \to (n+3)/3$")
    for axes, title in ((left, r"$\theta_\mathrm{in}$"), (right, None)):
        axes.set_xscale("log")
        axes.set_xlabel(r"depth $L$, width $m \to \infty$")
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.46, -0.22), ncols=3, columnspacing=1.0,
            handlelength=1.6, title=title, title_fontsize=7,
        )  # fmt: skip
    return figure
