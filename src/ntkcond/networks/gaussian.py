"""Expectations over a standard Gaussian z, by Gauss–Legendre quadrature in panels, float64.

Panels end at an activation's kinks. For those of `ntkcond.networks.activations` moments are exact
to a few units of rounding (tests compare them with closed forms).
"""

import functools
from collections.abc import Callable

import numpy as np

from ntkcond.networks.activations import Activation

REACH = 40.0  # beyond it the density is below 10⁻³⁴⁷
PANELS, POINTS = 320, 20

Elementwise = Callable[[np.ndarray], np.ndarray]


@functools.cache
def normalisation(activation: Activation) -> float:
    """c_σ = 1 / E[σ(z)²] of Eq. (1): the activation's c, else computed."""
    if activation.c is not None:
        return activation.c
    return 1 / moment(activation.value, activation.kinks)


def moment(function: Elementwise, kinks: tuple[float, ...] = (0.0,), panels: int = PANELS) -> float:
    """E[f(z)²]. function: elementwise on a float64 array, smooth but at the kinks."""
    z, weights = _panels(kinks, panels)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return float(function(z) ** 2 @ (weights * density))


def hermite_coefficients(function: Elementwise, count: int) -> np.ndarray:
    """E[f(z) hₖ(z)] for k = 0 … count − 1 and the normalised Hermite polynomials hₖ, (count,).

    function: elementwise on a float64 array. By the three-term recurrence of Hermite functions,
    hₖ(z) √density(z), which neither overflow nor cancel.
    """
    z, weights = _panels((0.0,), PANELS)
    root = np.exp(-z * z / 4) / (2 * np.pi) ** 0.25
    weighted = function(z) * root * weights
    before, here = np.zeros_like(z), root
    coefficients = np.empty(count)
    for k in range(count):
        coefficients[k] = weighted @ here
        before, here = here, (z * here - np.sqrt(k) * before) / np.sqrt(k + 1)
    return coefficients


@functools.cache
def _panels(kinks: tuple[float, ...], panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the plain integral from −REACH to REACH."""
    return composite_rule(np.concatenate([np.linspace(-REACH, REACH, panels + 1), kinks]))


def composite_rule(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss–Legendre quadrature in panels between the edges (…, panels + 1),
    in any order: (…, panels · POINTS) each."""
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    edges = np.sort(edges, axis=-1)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
    places = middle[..., None] + half[..., None] * points
    return places.reshape(*edges.shape[:-1], -1), (half[..., None] * weights).reshape(
        *edges.shape[:-1], -1
    )
