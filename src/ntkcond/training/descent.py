"""Full-batch gradient descent on the square loss, to compare its rate with the NTK's bound.

While the NTK K keeps its initial value, the residual r = f(X) − y of ½ ‖f(X) − y‖² follows
rₜ₊₁ = (I − η K) rₜ. With η = 1/λ_max that is ‖rₜ‖ ≤ (1 − 1/κ)ᵗ ‖r₀‖: a smaller κ gives a faster
descent, the link behind the paper's Section 6. Wide networks keep their NTK; those here may not.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, xp
from ntkcond.networks.mlp import MLP, LayerGradient


class State(NamedTuple):
    """A network before a step: the residual r = f(X) − y, (n,), the gradients of f, factored
    (`ntkcond.networks.mlp.MLP.layer_gradients`), and the weights, which the step changes."""

    residual: Array
    gradients: list[LayerGradient]
    weights: Sequence[Array]

    @property
    def norm(self) -> float:
        """‖r‖."""
        return float(xp(self.residual).linalg.vector_norm(self.residual))


def signs(labels: np.ndarray) -> np.ndarray:
    """y, (n,) float64: 1 where the label is above the median, else −1. If no label is, as in
    {0, 1, 1}, 1 where it equals the median, which is then the largest label.

    labels: (n,) integers of at least two classes; each sign has a sample then.
    """
    median = np.median(labels)
    above = labels > median
    return np.where(above if above.any() else labels == median, 1.0, -1.0)


def descend(
    x: Array,
    y: Array,
    weights: Sequence[Array],
    network: MLP,
    learning_rate: float,
) -> Iterator[State]:
    """The network before each step, for ever; changes the weights in place.

    x: (n, d), y: (n,), weights: W¹ … Wᴸ⁺¹ with one output, all float64 and trained. One step:
    Wˡ ← Wˡ − η Σᵢ rᵢ δˡᵢ αˡ⁻¹ᵢᵀ.
    """
    while True:
        factors = network.layer_gradients(x, weights)
        residual = (factors[-1].forward @ weights[-1].T)[:, 0] - y
        yield State(residual, factors, weights)
        step = learning_rate * residual
        for w, (forward, backward) in zip(weights, factors, strict=True):
            if backward is None:  # of the last layer: δ = 1
                w -= step @ forward
            else:
                w -= (backward * step[:, None]).T @ forward
