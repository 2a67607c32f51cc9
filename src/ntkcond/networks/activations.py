"""Activation functions: σ, its derivative σ′ and the normalisation c_σ of Eq. (1).

The Snakefile reads the names at every start: no import of torch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Activation:
    """An activation function of the networks.

    title: its name in figures.
    value, slope: σ and σ′, elementwise on a tensor of any shape.
    c: c_σ = 1 / E[σ(z)²] for z ~ N(0, 1), which keeps E‖αˡ‖² = ‖x‖² from layer to layer; if None,
    `ntkcond.networks.gaussian.normalisation` computes it.
    linear: σ is the identity, so that the whole network is linear in x.
    degree: k with σ(a z) = aᵏ σ(z) for all a > 0, so that parallel inputs have parallel gradients;
    None if no such k exists.
    """

    title: str
    value: "Callable[[Tensor], Tensor]"
    slope: "Callable[[Tensor], Tensor]"
    c: float | None = None
    linear: bool = False
    degree: int | None = None


def _step(z: "Tensor") -> "Tensor":
    """1 where z > 0, else 0, as in autograd; in z's type at once, which on a CPU is several times
    as fast as a comparison with a conversion."""
    return z.clone().gt_(0)


def _normal(z: "Tensor") -> "Tensor":
    """The standard Gaussian's distribution function."""
    return (1 + (z / 2**0.5).erf()) / 2


def _density(z: "Tensor") -> "Tensor":
    return (-z.square() / 2).exp() / 6.283185307179586**0.5


# To add one, add a few lines here only. fig_activations_ntk shows all.
ACTIVATIONS = {
    "relu": Activation(
        title="ReLU", value=lambda z: z.relu(), slope=_step, c=2.0, degree=1
    ),
    "linear": Activation(
        title="linear", value=lambda z: z, slope=lambda z: z.new_ones(z.shape),
        c=1.0, linear=True, degree=1,
    ),
    "relu2": Activation(
        title="ReLU²", value=lambda z: z.relu().square(), slope=lambda z: 2 * z.relu(),
        c=2 / 3, degree=2,
    ),
    "gelu": Activation(
        title="GELU",
        value=lambda z: z * _normal(z),
        slope=lambda z: _normal(z) + z * _density(z),
    ),
    "tanh": Activation(
        title="tanh", value=lambda z: z.tanh(), slope=lambda z: 1 - z.tanh().square()
    ),
    "sigmoid": Activation(
        title="sigmoid",
        value=lambda z: z.sigmoid(),
        slope=lambda z: z.sigmoid() * (1 - z.sigmoid()),
    ),
}  # fmt: skip
