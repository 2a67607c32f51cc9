"""Any activation at infinite width: dual activations, gradient angles, NTK matrices.

Inputs have norm 1 unless the activation is homogeneous: their hidden layers then stay standard
Gaussian, thanks to c_σ (Eq. 1). Angles are in radians.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ntkcond import infinite_width
from ntkcond.activations import ACTIVATIONS, Activation
from ntkcond.errors import UserError
from ntkcond.gaussian import hermite_coefficients, moment, normalisation

SERIES = 256  # terms of a Hermite series at most
ROUNDING = 1e-17
BAND = 256  # rows of a kernel at infinite width made at once


class Dual(NamedTuple):
    """An activation seen by correlated Gaussians: for u, v ~ N(0, 1) with correlation ρ,

    value: ρ → c_σ E[σ(u) σ(v)], slope: ρ → c_σ E[σ′(u) σ′(v)], elementwise on [−1, 1].
    error: a bound on what either may be wrong by, beside rounding.
    """

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    error: float


@functools.cache
def dual(activation: Activation) -> Dual:
    """In closed form where there is one (ReLU, linear, ReLU²), else by its Hermite series.

    With σ = Σ aₖ hₖ in normalised Hermite polynomials, E[σ(u) σ(v)] = Σ aₖ² ρᵏ; what is cut off is
    at most E[σ²] − Σ aₖ² of the terms kept, which is known. For smooth activations that is
    rounding; for one with a kink and no closed form here it may be 10⁻⁵, and `error` says so.
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
    return (
        rest,
        sine + rest * cosine,
        3 * sine * cosine + rest * (1 + 2 * cosine**2),
    )[degree] / np.pi


CLOSED_FORMS = {
    "relu": Dual(functools.partial(_arc_cosine, 1), functools.partial(_arc_cosine, 0), 0.0),
    "relu2": Dual(
        lambda rho: _arc_cosine(2, rho) / 3, lambda rho: 4 / 3 * _arc_cosine(1, rho), 0.0
    ),
    "linear": Dual(lambda rho: rho, np.ones_like, 0.0),
}


def ntk_of_correlation(
    rho: ArrayLike,
    depth: int,
    activation: Activation,
    weight_variance: float = 1.0,
    trainable: str = "all",
) -> np.ndarray:
    """The NTK of two inputs of norm 1 and inner product ρ at infinite width, elementwise.

    Θ = Σₗ Sˡ Πₗ′ σ_w² slope(Sˡ′), l = 0..L, l′ = l..L−1, Sˡ⁺¹ = value(Sˡ), S⁰ = ρ (Jacot et al.,
    2018, Thm 1, in the paper's convention: no biases, the last layer not scaled). σ_w² is the
    variance of all weights, 1 in the paper but for Figure 6 of its newest version; hidden layers
    then keep their norm only if the activation is homogeneous, and duals are taken at that norm.
    trainable: the weights of all layers, or of the first: the summand of l = 0.
    """
    covariance = np.asarray(rho, dtype=np.float64)
    total, norm = covariance.copy(), 1.0
    for _ in range(depth):
        variance = weight_variance * norm  # of a preactivation
        if activation.degree is not None:
            its, norm = dual(activation), variance**activation.degree
        elif variance == 1.0:
            its, norm = dual(activation), 1.0
        else:
            here = _scaled(activation, float(np.sqrt(variance)))
            its, norm = dual(here), normalisation(activation) / normalisation(here)
        correlation = np.clip(weight_variance * covariance / variance, -1.0, 1.0)
        # the dual of σ(a z) has the slope a σ′(a z); a² is the variance
        total = total * (weight_variance * its.slope(correlation) * norm / variance)
        covariance = its.value(correlation) * norm
        if trainable == "all":
            total = total + covariance
    return total


@functools.cache
def _scaled(activation: Activation, factor: float) -> Activation:
    """z → σ(factor z), with a c of its own."""
    return Activation(
        activation.title,
        lambda z: activation.value(factor * z),
        lambda z: factor * activation.slope(factor * z),
    )


def gradient_angle(
    theta_in: ArrayLike,
    depth: int,
    activation: Activation,
    weight_variance: float = 1.0,
    trainable: str = "all",
) -> np.ndarray:
    """φ at infinite width for inputs of norm 1 at an angle θ_in, elementwise on [0, π]."""
    theta = np.asarray(theta_in, dtype=np.float64)
    if activation is ACTIVATIONS["relu"] and weight_variance == 1.0:
        # which keeps small angles exact
        return infinite_width.gradient_angle(theta, depth, trainable)
    own = ntk_of_correlation(1.0, depth, activation, weight_variance, trainable)
    ntk = ntk_of_correlation(np.cos(theta), depth, activation, weight_variance, trainable)
    return np.arccos(np.clip(ntk / own, -1.0, 1.0))


def infinite_width_ntk(
    x: np.ndarray,
    depth: int,
    activation: Activation = ACTIVATIONS["relu"],
    trainable: str = "all",
) -> np.ndarray:
    """The NTK at infinite width, (n, n), exactly symmetric; x (n, d), no zero rows.

    For ReLU K_ij = (L+1) ‖xᵢ‖ ‖xⱼ‖ cos φ_ij (Thm 4.4 with ‖∇f(x)‖² = (L+1) ‖x‖², v1's Eq. 39: the
    theorem's own last line lacks the square root). A linear network's is (L+1) X Xᵀ. With the first
    layer alone trainable, those of ReLU and linear are without the factor L+1. Homogeneous
    activations of degree k scale with ‖xᵢ‖ and ‖xⱼ‖ to the power kᴸ. Raises UserError for others
    unless every row of x has norm 1, up to float32's rounding. Extra memory: some bands of rows.
    """
    x = np.asarray(x, dtype=np.float64)
    norms = np.linalg.norm(x, axis=1)
    if activation.degree is None and depth and not np.allclose(norms, 1.0, rtol=1e-5):
        raise UserError(
            f"the NTK of {activation.title} at infinite width is known here for samples of norm 1;"
            f" these have {norms.min():.3g} to {norms.max():.3g}. Set unit_norm: true"
        )
    layers = depth + 1 if trainable == "all" else 1
    if activation.linear or depth == 0:
        return layers * (x @ x.T)
    scale = norms ** ((activation.degree or 1) ** depth)
    unit = x / norms[:, None]
    kernel = np.empty((len(x), len(x)))
    for start in range(0, len(x), BAND):
        rows, left = slice(start, start + BAND), slice(0, start + BAND)
        cosine = np.clip(unit[rows] @ unit[left].T, -1.0, 1.0)
        np.fill_diagonal(cosine[:, start:], 1.0)
        if activation is ACTIVATIONS["relu"]:
            theta = np.arccos(cosine, out=cosine)
            band = layers * infinite_width.gradient_cosine(theta, depth, trainable)
        else:
            band = ntk_of_correlation(cosine, depth, activation, trainable=trainable)
        band *= np.outer(scale[rows], scale[left])
        corner = band[:, start:]  # whose two halves may be rounded differently
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        kernel[rows, left] = band
        kernel[left, rows] = band.T
    return kernel
