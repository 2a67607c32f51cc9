"""The paper's networks (Eq. 1–3): initial weights, and the two factors of every weight's gradient.

    α⁰ = x,   αˡ = √(c_σ/m) σ(Wˡ αˡ⁻¹) for l = 1..L,   f = Wᴸ⁺¹ αᴸ

Depth L is the number of hidden layers, m their width; no biases; one output for every NTK.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from ntkcond.activations import Activation
from ntkcond.gaussian import normalisation

TRAINABLE = ("all", "first")  # whose gradients an NTK is of: all weights', or W¹'s (Thm 5.1)


class LayerGradient(NamedTuple):
    """∂f/∂Wˡ of n samples as its two factors: the gradient of sample i is backward[i] forward[i]ᵀ.

    forward: αˡ⁻¹, (n, m_{l−1}) float64.
    backward: ∂f/∂(Wˡ αˡ⁻¹), (n, m_l) float64; None stands for a column of ones.
    """

    forward: torch.Tensor
    backward: torch.Tensor | None

    def rows(self, rows: slice) -> "LayerGradient":
        """The factors of some of the samples (views)."""
        return LayerGradient(
            self.forward[rows], None if self.backward is None else self.backward[rows]
        )


def initial_weights(
    seed: int, depth: int, width: int, features: int, outputs: int = 1
) -> list[np.ndarray]:
    """W¹ … Wᴸ⁺¹ with i.i.d. N(0, 1) entries: float64 of shapes (m, d), (m, m) …, (outputs, m).

    Each matrix comes from a counter-based stream (Philox) of its own, named by seed, depth,
    layer and shape alone: the same on every device and machine and in any order of jobs.
    """
    sizes = [features, *[width] * depth, outputs]
    weights = []
    for layer, shape in enumerate(zip(sizes[1:], sizes[:-1], strict=True), start=1):
        stream = np.random.Philox(np.random.SeedSequence([seed, depth, layer, *shape]))
        weights.append(np.random.Generator(stream).standard_normal(shape))
    return weights


def weight_count(depth: int, width: int, features: int, outputs: int = 1) -> int:
    """Number of weights P: no NTK of a network with one output has a rank above it."""
    sizes = [features, *[width] * depth, outputs]
    return sum(a * b for a, b in zip(sizes[1:], sizes[:-1], strict=True))


def is_linear(activation: Activation, depth: int) -> bool:
    """Whether f is linear in x: a linear activation, or no hidden layer at all."""
    return activation.linear or depth == 0


def layer_gradients(
    x: torch.Tensor, weights: Sequence[torch.Tensor], activation: Activation
) -> list[LayerGradient]:
    """The gradient of f with respect to W¹ … Wᴸ⁺¹, factored, for each row of x.

    x: (n, d) float64; weights: as `initial_weights`, on x's device.
    """
    width = weights[-1].shape[1]
    scale = math.sqrt(normalisation(activation) / width)
    forward, slopes = [x], []
    for w in weights[:-1]:
        z = forward[-1] @ w.T
        slopes.append(activation.slope(z).mul_(scale))
        forward.append(activation.value(z).mul_(scale))

    backward: list[torch.Tensor | None] = [None]  # of the output itself: ∂f/∂f = 1
    for w, slope in zip(weights[:0:-1], reversed(slopes), strict=True):
        above = w if backward[-1] is None else backward[-1] @ w
        backward.append(slope.mul_(above))
    return [LayerGradient(a, b) for a, b in zip(forward, reversed(backward), strict=True)]


def first_layer(factors: Sequence[LayerGradient]) -> list[LayerGradient]:
    """Of a gradient, what belongs to W¹ alone: the other weights are fixed (Eq. 12, Thm 5.1)."""
    return list(factors[:1])


def linear_factor(weights: Sequence[torch.Tensor], trainable: str = "all") -> torch.Tensor:
    """R, upper triangular (d, d) float64, with K = (X Rᵀ)(X Rᵀ)ᵀ for the linear network (Eq. 3).

    There αˡ = Pₗ x and the back-propagated vectors δˡ do not depend on x, so that
    K = X M Xᵀ with M = Σₗ ‖δˡ⁺¹‖² PₗᵀPₗ, l = 0..L. R is the triangular factor of a QR
    decomposition of the stacked ‖δˡ⁺¹‖ Pₗ: M = RᵀR is never formed, which would square
    its condition number. trainable: one of TRAINABLE; of the first layer alone, R = ‖δ¹‖ I.
    """
    features, width = weights[0].shape[1], weights[-1].shape[1]
    scale = 1.0 / math.sqrt(width)
    product = torch.eye(features, dtype=weights[0].dtype, device=weights[0].device)
    products = [product]
    for w in weights[:-1]:
        product = w @ product * scale
        products.append(product)

    norms, delta = [1.0], None
    for w in weights[:0:-1]:
        delta = (w if delta is None else delta @ w) * scale
        norms.append(torch.linalg.vector_norm(delta).item())
    if trainable == "first":
        return products[0] * norms[-1]
    stack = torch.cat([p * norm for p, norm in zip(products, reversed(norms), strict=True)])
    return torch.linalg.qr(stack, mode="r").R


GradientMap = Callable[[torch.Tensor], list[LayerGradient]]


def gradient_map(
    weights: Sequence[torch.Tensor], activation: Activation, trainable: str = "all"
) -> GradientMap:
    """A function from x (n, d) to factors whose NTK (`ntkcond.kernel`) is that of the network,
    as few as there need be: one for each trainable layer (TRAINABLE), or a single (n, d) one, X Rᵀ,
    where the network is linear (`linear_factor`)."""
    if is_linear(activation, depth=len(weights) - 1):
        transposed = linear_factor(weights, trainable).T
        return lambda x: [LayerGradient(x @ transposed, None)]
    if trainable == "first":
        return lambda x: first_layer(layer_gradients(x, weights, activation))
    return lambda x: layer_gradients(x, weights, activation)


def initial_gradient_map(
    activation: Activation,
    seed: int,
    depth: int,
    width: int,
    features: int,
    device: torch.device | str = "cpu",
    trainable: str = "all",
) -> GradientMap:
    """`gradient_map` of the network at its `initial_weights`, on a device."""
    weights = initial_weights(seed, depth, width, features)
    return gradient_map([torch.from_numpy(w).to(device) for w in weights], activation, trainable)
