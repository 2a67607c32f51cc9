"""Small networks for tests, and their NTK by torch's autograd, to hold ours against."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import quad

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, GradientMap

# σ by torch's own functions (an activation added since is taken at its word, its slope is not), and
# c_σ by SciPy's quadrature, in halves that end at a kink
SIGMA = {name: activation.value for name, activation in ACTIVATIONS.items()} | {
    "relu": torch.relu,
    "linear": lambda z: z,
    "relu2": lambda z: torch.relu(z) ** 2,
    "gelu": torch.nn.functional.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}


def mean_square(activation: str) -> float:
    def weighted(z: float) -> float:
        value = SIGMA[activation](torch.tensor(z, dtype=torch.float64)).item()
        return value**2 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    halves = (quad(weighted, *ends, epsabs=1e-14, epsrel=1e-13) for ends in ((-12, 0), (0, 12)))
    return sum(value for value, _ in halves)


C = {activation: 1 / mean_square(activation) for activation in SIGMA}


def mlp(activation: str, depth: int, width: float = math.inf, trainable: str = "all") -> MLP:
    """By the name of its activation; of infinite width unless one is given."""
    return MLP(ACTIVATIONS[activation], depth, width, trainable=trainable)


def inputs(n: int, features: int, device: Device = "cpu", seed: int = 0) -> Array:
    """Standard Gaussian samples."""
    return put(np.random.default_rng(seed).standard_normal((n, features)), device)


def drawn(seed: int, depth: int, width: int, features: int, outputs: int = 1) -> list[np.ndarray]:
    """Initial weights, which are those of any activation."""
    return mlp("relu", depth, width).weights(seed, features, outputs)


def weights_of(
    seed: int, depth: int, width: int, features: int, device: Device = "cpu"
) -> list[Array]:
    """Initial weights of one output, for a device."""
    return [put(w, device) for w in drawn(seed, depth, width, features)]


def with_weights(weights: list, activation: str, trainable: str = "all") -> MLP:
    """The network whose weights these are."""
    return mlp(activation, len(weights) - 1, weights[-1].shape[1], trainable)


def gradients_of(weights: list, activation: str, trainable: str = "all") -> GradientMap:
    """Its gradients."""
    return with_weights(weights, activation, trainable).gradients(weights)


def autograd_ntk(
    x: NDArray, weights: list[NDArray], activation: str, trainable: str = "all", bias: float = 0
) -> NDArray:
    """F Fᵀ from per-sample autograd gradients of Eq. (1) and (3), written out here anew. bias: β,
    of weights whose last columns are b."""
    sigma, c = SIGMA[activation], C[activation]
    weights = [torch.tensor(w).requires_grad_() for w in weights]
    gradients = []
    for sample in torch.tensor(x):
        alpha = sample
        for w in weights[:-1]:
            z = w[:, :-1] @ alpha + bias * w[:, -1] if bias else w @ alpha
            alpha = math.sqrt(c / len(w)) * sigma(z)
        w = weights[-1]
        f = w[:, :-1] @ alpha + bias * w[:, -1] if bias else w @ alpha
        trained = weights if trainable == "all" else weights[:1]
        grads = torch.autograd.grad(f.squeeze(), trained)
        gradients.append(torch.cat([g.flatten() for g in grads]))
    jacobian = torch.stack(gradients)
    return (jacobian @ jacobian.T).numpy()
