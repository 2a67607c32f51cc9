"""Activation functions: σ, its derivative σ′ and the normalisation c_σ of Eq. (1).

Read by the Snakefile at every start, for their names: torch is not imported here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Activation:
    """An activation as the network needs it.

    title: as figures call it.
    value, slope: σ and σ′, elementwise on a tensor of any shape.
    c: c_σ = 1 / E[σ(z)²] for z ~ N(0, 1), which keeps E‖αˡ‖² = ‖x‖² from layer to layer; None to
    have it computed (`ntkcond.networks.gaussian.normalisation`).
    linear: σ is the identity, so that the whole network is linear in x.
    degree: k where σ(a z) = aᵏ σ(z) for all a > 0, so that parallel inputs have parallel gradients;
    None where there is none, and the network depends on the norm of its inputs.
    """

    title: str
    value: "Callable[[Tensor], Tensor]"
    slope: "Callable[[Tensor], Tensor]"
    c: float | None = None
    linear: bool = False
    degree: int | None = None


def _step(z: "Tensor") -> "Tensor":
    """1 where z > 0, else 0, as autograd has it; in z's own type at once, which on a
    CPU is several times as fast as a comparison that is then converted."""
    return z.clone().gt_(0)


def _normal(z: "Tensor") -> "Tensor":
    """The standard Gaussian's distribution function."""
    return (1 + (z / 2**0.5).erf()) / 2


def _density(z: "Tensor") -> "Tensor":
    return (-z.square() / 2).exp() / 6.283185307179586**0.5


# To add one: a few lines here, and nowhere else. fig_activations_ntk shows all.
ACTIVATIONS = {
    "relu": Activation("ReLU", lambda z: z.relu(), _step, c=2.0, degree=1),
    "linear": Activation(
        "linear", lambda z: z, lambda z: z.new_ones(z.shape), c=1.0, linear=True, degree=1
    ),
    "relu2": Activation(
        "ReLU²", lambda z: z.relu().square(), lambda z: 2 * z.relu(), c=2 / 3, degree=2
    ),
    "gelu": Activation("GELU", lambda z: z * _normal(z), lambda z: _normal(z) + z * _density(z)),
    "tanh": Activation("tanh", lambda z: z.tanh(), lambda z: 1 - z.tanh().square()),
    "sigmoid": Activation(
        "sigmoid", lambda z: z.sigmoid(), lambda z: z.sigmoid() * (1 - z.sigmoid())
    ),
}
