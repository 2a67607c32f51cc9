"""Dual activations: maps of the correlation of two Gaussians."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.networks.gaussian import hermite_coefficients, moment, normalisation

SERIES = 256  # terms of a Hermite series at most
ROUNDING = 1e-17


class Dual(NamedTuple):
    """An activation seen by correlated Gaussians: for u, v ~ N(0, 1) with correlation ρ,

    value: ρ → c_σ E[σ(u) σ(v)], slope: ρ → c_σ E[σ′(u) σ′(v)], elementwise on [−1, 1].
    error: a bound on the error of both, without rounding.
    """

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    error: float


@functools.cache
def dual(activation: Activation) -> Dual:
    """In closed form for ReLU, linear and ReLU², else by its Hermite series.

    With σ = Σ aₖ hₖ in normalised Hermite polynomials, E[σ(u) σ(v)] = Σ aₖ² ρᵏ. The truncation
    error is at most E[σ²] − Σ aₖ² over the terms kept, and `error` has it: rounding for smooth
    activations, up to 10⁻⁵ for one with a kink and no closed form here.
    """
    for known, closed in CLOSED_FORMS.items():
        if activation is ACTIVATIONS[known]:
            return closed
    c = normalisation(activation)
    parts, errors = [], []
    for function in (activation.value, activation.slope):
        squares = c * hermite_coefficients(function, SERIES) ** 2
        whole = c * moment(function)
        errors.append(max(0.0, whole - squares.sum()))
        kept = np.flatnonzero(squares > ROUNDING * whole)[-1] + 1
        # ascending powers, by Horner's rule
        parts.append(functools.partial(np.polynomial.polynomial.polyval, c=squares[:kept]))
    return Dual(*parts, max(errors))


def _arc_cosine(degree: int, rho: np.ndarray) -> np.ndarray:
    """J_k(θ), θ = arccos ρ (Cho & Saul, 2009, Eq. 4–6), divided by π, for k = 0, 1, 2."""
    cosine = np.clip(rho, -1.0, 1.0)
    theta = np.arccos(cosine)
    sine, rest = np.sin(theta), np.pi - theta
    first, second = sine + rest * cosine, 3 * sine * cosine + rest * (1 + 2 * cosine**2)
    return (rest, first, second)[degree] / np.pi


CLOSED_FORMS = {
    "relu": Dual(functools.partial(_arc_cosine, 1), functools.partial(_arc_cosine, 0), 0.0),
    "relu2": Dual(
        lambda rho: _arc_cosine(2, rho) / 3, lambda rho: 4 / 3 * _arc_cosine(1, rho), 0.0
    ),
    "linear": Dual(lambda rho: rho, np.ones_like, 0.0),
}


@functools.cache
def scaled(activation: Activation, factor: float) -> Activation:
    """z → σ(factor z); its c is computed."""
    return Activation(
        activation.title,
        lambda z: activation.value(factor * z),
        lambda z: factor * activation.slope(factor * z),
    )
