"""Full-batch gradient descent on the square loss, to compare its rate with the NTK's bound.

While the NTK K keeps its initial value, the residual r = f(X) − y of ½ ‖f(X) − y‖² follows
rₜ₊₁ = (I − η K) rₜ. With η = 1/λ_max that is ‖rₜ‖ ≤ (1 − 1/κ)ᵗ ‖r₀‖: a smaller κ gives a faster
descent, the link behind the paper's Section 6. Wide networks keep their NTK; those here may not.
"""

from collections.abc import Iterator, Sequence

import torch

from ntkcond.networks.mlp import MLP


def descend(
    x: torch.Tensor,
    y: torch.Tensor,
    weights: Sequence[torch.Tensor],
    network: MLP,
    learning_rate: float,
) -> Iterator[float]:
    """‖f(X) − y‖ before each step, for ever; changes the weights in place.

    x: (n, d), y: (n,), weights: W¹ … Wᴸ⁺¹ with one output, all float64 and trained. One step:
    Wˡ ← Wˡ − η Σᵢ rᵢ δˡᵢ αˡ⁻¹ᵢᵀ.
    """
    while True:
        factors = network.layer_gradients(x, weights)
        residual = (factors[-1].forward @ weights[-1].T).squeeze(1) - y
        yield torch.linalg.vector_norm(residual).item()
        for w, (forward, backward) in zip(weights, factors, strict=True):
            if backward is None:  # of the last layer: δ = 1
                gradient = (residual @ forward)[None]
            else:
                gradient = (backward * residual[:, None]).T @ forward
            w.sub_(gradient, alpha=learning_rate)
