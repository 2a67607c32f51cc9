"""Why depth raises κ of residual networks: claims on their NTK at infinite width.

A layer αˡ = √a αˡ⁻¹ + √b h(αˡ⁻¹), with h = √(2/m) relu(W αˡ⁻¹), has the kernel of embeddings
Σˡ = a Σˡ⁻¹ + b κ₁(Σˡ⁻¹) + √(ab) (M hᵀ + h Mᵀ), where κ₁ is relu's (Cho and Saul 2009), h(x) =
√(Σˡ⁻¹(x, x)/π) the mean of its entries times √m, and M that of αˡ⁻¹, which each layer makes larger:
M ← √a M + √b h. With a linear layer behind the relu that mean is 0. The NTK of the hidden layers
follows Θˡ = Θˡ⁻¹ (a + b κ₀) + b Σˡ⁻¹ κ₀, and once more with the weights of the linear layer.
"""

import math
from collections.abc import Callable

import numpy as np

from ntkcond.artefacts.theory.conditioning import in_pairs
from ntkcond.artefacts.verdicts.claim import Claims, Findings, bounded, short

CLAIMS = Claims()
DEPTHS = (1, 3, 8, 20)
DRAWS = range(3)
# Shares a and b of the sum, by the depth.
HALVES = "(α + h)/√2"
SUMS: dict[str, Callable[[int], tuple[float, float]]] = {
    HALVES: lambda depth: (0.5, 0.5),
    "α + h/√L": lambda depth: (1.0, 1 / depth),
}


def residual_ntk(x: np.ndarray, depth: int, a: float, b: float, linear: bool = False) -> np.ndarray:
    """The NTK of a relu network whose layers from the second on are such sums, (n, n).

    x: (n, d); linear: whether a linear layer follows each relu from there on."""
    s, _, ntk = _layer(x @ x.T)
    mean = np.sqrt(np.sum(x**2, axis=1) / math.pi)
    for _ in range(1, depth):
        activated, gate, own = _layer(s)
        h = np.sqrt(s.diagonal() / math.pi)
        if linear:
            ntk = ntk * (a + b * gate) + b * (own + activated)
            s = a * s + b * activated
        else:
            ntk = ntk * (a + b * gate) + b * own
            s = a * s + b * activated + math.sqrt(a * b) * (np.outer(mean, h) + np.outer(h, mean))
            mean = math.sqrt(a) * mean + math.sqrt(b) * h
    return ntk + s


def _layer(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """κ₁(Σ), κ₀, and the NTK of its own weights, Σ κ₀."""
    norms = np.sqrt(s.diagonal())
    theta = np.arccos(np.clip(s / np.outer(norms, norms), -1, 1))
    np.fill_diagonal(theta, 0)
    gate = 1 - theta / math.pi
    activated = np.outer(norms, norms) * (np.sin(theta) / math.pi + gate * np.cos(theta))
    return activated, gate, s * gate


def _ends(kernel: np.ndarray) -> tuple[float, float]:
    """κ, and λ₁/λ₂."""
    low, second, first = np.linalg.eigvalsh(kernel)[[0, -2, -1]]
    return first / low, first / second


@CLAIMS.add(
    "ours-residual-mean", "ours; on the newest §1: any finite depth",
    "Depth raises κ of residual networks since the positive means of relu add up along their sum;"
    " behind a further linear layer, which leaves no mean, it lowers κ or raises it by less than a"
    " tenth.",
)  # fmt: skip
def means_add_up() -> Findings:
    """From L = 1 to 20: the ratio of κ, and that of the largest eigenvalue to the second."""
    for name, shares in SUMS.items():
        for linear in (False, True):
            ends = np.array([
                [_ends(residual_ntk(x, depth, *shares(depth), linear)) for depth in DEPTHS]
                for x in map(in_pairs, DRAWS)
            ])  # fmt: skip
            kappa, gap = ends.mean(axis=0).T
            yield bounded(
                f"{name}{', linear layer behind relu' if linear else ''}, nearly parallel pairs,"
                f" m = ∞, {len(DRAWS)} draws",
                f"κ at L = {DEPTHS[-1]} / κ at L = 1", ends[:, -1, 0] / ends[:, 0, 0],
                "< 1.1" if linear else "> 1",
                f"κ at L = {', '.join(map(str, DEPTHS))}: {', '.join(map(short, kappa))};"
                f" λ₁/λ₂: {', '.join(map(short, gap))}",
            )  # fmt: skip
