"""Activation functions: σ, its derivative σ′ and the normalisation c_σ of Eq. (1)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Activation:
    """An activation as the network needs it.

    value, slope: σ and σ′, elementwise on a tensor of any shape.
    c: c_σ = 1 / E[σ(z)²] for z ~ N(0, 1), which keeps E‖αˡ‖² = ‖x‖² from layer to layer.
    linear: σ is the identity, so that the whole network is linear in x.
    homogeneous: σ(a z) = a σ(z) for a > 0, so that parallel inputs have parallel gradients.
    """

    value: Callable[[torch.Tensor], torch.Tensor]
    slope: Callable[[torch.Tensor], torch.Tensor]
    c: float
    linear: bool = False
    homogeneous: bool = False


def _step(z: torch.Tensor) -> torch.Tensor:
    """1 where z > 0, else 0, as autograd has it; in z's own type at once, which on a
    CPU is several times as fast as a comparison that is then converted."""
    return torch.gt(z, 0, out=torch.empty_like(z))


# To add one: a line here, and its name in workflow/schemas/config.schema.yaml.
ACTIVATIONS = {
    "relu": Activation(torch.relu, _step, c=2.0, homogeneous=True),
    "linear": Activation(lambda z: z, torch.ones_like, c=1.0, linear=True, homogeneous=True),
}
