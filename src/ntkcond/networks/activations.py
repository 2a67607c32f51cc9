"""Activation functions: σ, its derivative σ′ and the normalisation c_σ of Eq. (1).

Written once for NumPy arrays and torch tensors: `xp(z)` has the functions of the array API for z,
`special(z)` those that scipy.special and torch.special share. The Snakefile reads the names at
every start: no import of numpy or torch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ntkcond.arrays.backend import Array, special, xp


@dataclass(frozen=True)
class Activation:
    """An activation function of the networks.

    Attributes
    ----------
    title : str
        Its name in figures.
    value, slope : function
        σ and σ′, elementwise on an array of any shape and its type.
    c : float or None
        c_σ = 1 / E[σ(z)²] for z ~ N(0, 1), which keeps E‖αˡ‖² = ‖x‖² from layer to layer; if None,
        `ntkcond.networks.gaussian.normalisation` computes it.
    linear : bool
        σ is the identity, so that the whole network is linear in x.
    degree : int or None
        k with σ(a z) = aᵏ σ(z) for all a > 0, so that parallel inputs have parallel gradients; None
        if no such k exists.
    kinks : sequence of float
        Where σ or a derivative of it jumps: for the quadrature at infinite width, and for gates
        that rounding may turn.
    bend : (float, float) or None
        Of bounds on rounding: (b, r) with `|σ″| ≤ min(b, r |σ′|)` away from kinks; None: b from
        differences of the slope, which is then no proof.
    rough : float
        By how much the terms of which `slope` is the sum exceed it, in all.
    flat : float
        Where `|z|` is above it, `|σ″|` is below all numbers of float64.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> relu = ntkcond.ACTIVATIONS["relu"]
    >>> relu.value(np.array([-1.0, 2.0])), relu.slope(np.array([-1.0, 2.0])), relu.degree
    (array([0., 2.]), array([0., 1.]), 1)
    """

    title: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    c: float | None = None
    linear: bool = False
    degree: int | None = None
    kinks: Sequence[float] = (0.0,)
    bend: tuple[float, float] | None = None
    rough: float = 0.0
    flat: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", tuple(self.kinks))  # hashable


def _step(z: Array) -> Array:
    """1 where z > 0, else 0, as in autograd; in z's type at once, which is faster than a
    conversion."""
    return xp(z).greater(z, 0, out=xp(z).empty_like(z))


def _normal(z: Array) -> Array:
    """The standard Gaussian's distribution function."""
    return special(z).ndtr(z)


def _tanh_slope(z: Array) -> Array:
    """1/cosh² z; 1 − tanh² z cancels where tanh z is near 1."""
    e = xp(z).exp(-2 * abs(z))
    return 4 * e / (1 + e) ** 2


def _density(z: Array) -> Array:
    return xp(z).exp(-z * z / 2) / 6.283185307179586**0.5


# fig_activations_ntk shows all.
ACTIVATIONS = {
    "relu": Activation(
        title="ReLU", value=lambda z: z.clip(0), slope=_step, c=2.0, degree=1,
        bend=(0.0, 0.0),
    ),
    "linear": Activation(
        title="linear", value=lambda z: z, slope=lambda z: xp(z).ones_like(z),
        c=1.0, linear=True, degree=1, bend=(0.0, 0.0),
    ),
    "relu2": Activation(
        title="ReLU²", value=lambda z: z.clip(0) ** 2, slope=lambda z: 2 * z.clip(0),
        c=2 / 3, degree=2, bend=(2.0, math.inf),
    ),
    "gelu": Activation(
        title="GELU",
        value=lambda z: z * _normal(z),
        slope=lambda z: _normal(z) + z * _density(z),
        bend=(0.8, math.inf), flat=40.0, rough=1.3,  # φ(z) |2 − z²| ≤ 2 φ(0); Φ + |z| φ (1 + z²/2)
    ),
    "tanh": Activation(
        title="tanh", value=lambda z: xp(z).tanh(z), slope=_tanh_slope,
        bend=(0.77, 2.0),  # 4/(3 √3); |σ″| = 2 |tanh| σ′
    ),
    "sigmoid": Activation(
        title="sigmoid",
        value=lambda z: special(z).expit(z),
        slope=lambda z: special(z).expit(z) * special(z).expit(-z),
        bend=(0.097, 1.0),  # 1/(6 √3); |σ″| = σ′ |1 − 2 σ|
    ),
    # A new one: a few lines, here at the end, so that the others keep their colours.
}  # fmt: skip
