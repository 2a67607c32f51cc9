"""Networks at infinite width: angles between embeddings and between gradients, NTK matrices.

Inputs have norm 1 unless the activation is homogeneous: their hidden layers then stay standard
Gaussian, thanks to c_σ (Eq. 1). Angles are in radians; theorem and equation numbers are those of
arXiv 2305.08813v1. The `width` of a network is ignored: it is taken as infinite.
"""

import numpy as np
from numpy.typing import ArrayLike

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.dual_activations import dual, scaled
from ntkcond.run.errors import UserError

RELU = ACTIVATIONS["relu"]
BAND = 256  # rows of a kernel computed at once


def g(theta: ArrayLike) -> np.ndarray:
    """The angle between embeddings after one ReLU layer (Eq. 8):
    g(θ) = arccos(((π − θ) cos θ + sin θ)/π), elementwise on [0, π]."""
    theta = np.asarray(theta, dtype=np.float64)
    cosine = ((np.pi - theta) * np.cos(theta) + np.sin(theta)) / np.pi
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def gradient_cosine(theta_in: ArrayLike, depth: int, trainable: str = "all") -> np.ndarray:
    """cos φ of a ReLU network of depth L (Thm 4.4, Eq. 10), elementwise.

    cos φ = 1/(L+1) · Σₗ cos θˡ · Πₗ′ (1 − θˡ′/π), l = 0..L, l′ = l..L−1, θˡ = gˡ(θ_in);
    summed by Horner's rule from l = 0 on, in one pass over the layers. trainable: all, or first,
    the gradient with respect to W¹ alone: the summand of l = 0.
    """
    theta = np.asarray(theta_in, dtype=np.float64)
    total = np.cos(theta)
    for _ in range(depth):
        total = total * (1.0 - theta / np.pi)
        theta = g(theta)
        if trainable == "all":
            total += np.cos(theta)
    return total / (depth + 1) if trainable == "all" else total


def ntk_of_correlation(rho: ArrayLike, network: MLP, weight_variance: float = 1.0) -> np.ndarray:
    """The NTK of two inputs of norm 1 and inner product ρ at infinite width, elementwise.

    Θ = Σₗ Sˡ Πₗ′ σ_w² slope(Sˡ′), l = 0..L, l′ = l..L−1, Sˡ⁺¹ = value(Sˡ), S⁰ = ρ (Jacot et al.,
    2018, Thm 1, in the paper's convention: no biases, the last layer not scaled). σ_w² is the
    variance of all weights, 1 in the paper but for Figure 6 of its newest version; hidden layers
    then keep their norm only if the activation is homogeneous, and duals are taken at that norm.
    With the first layer alone trainable: the summand of l = 0.
    """
    activation = network.activation
    covariance = np.asarray(rho, dtype=np.float64)
    total, norm = covariance.copy(), 1.0
    for _ in range(network.depth):
        variance = weight_variance * norm  # of a preactivation
        if activation.degree is not None:
            layer, norm = dual(activation), variance**activation.degree
        elif variance == 1.0:
            layer, norm = dual(activation), 1.0
        else:
            wider = scaled(activation, float(np.sqrt(variance)))
            layer, norm = dual(wider), normalisation(activation) / normalisation(wider)
        correlation = np.clip(weight_variance * covariance / variance, -1.0, 1.0)
        # the dual of σ(a z) has the slope a σ′(a z); a² is the variance
        total = total * (weight_variance * layer.slope(correlation) * norm / variance)
        covariance = layer.value(correlation) * norm
        if network.trainable == "all":
            total = total + covariance
    return total


def gradient_angle(theta_in: ArrayLike, network: MLP, weight_variance: float = 1.0) -> np.ndarray:
    """φ for inputs of norm 1 at an angle θ_in (Thm 4.4 for ReLU), elementwise on [0, π]."""
    theta = np.asarray(theta_in, dtype=np.float64)
    if network.activation is RELU and weight_variance == 1.0:  # exact at small angles
        cosine = gradient_cosine(theta, network.depth, network.trainable)
    else:
        norm = ntk_of_correlation(1.0, network, weight_variance)
        cosine = ntk_of_correlation(np.cos(theta), network, weight_variance) / norm
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def infinite_width_ntk(x: np.ndarray, network: MLP) -> np.ndarray:
    """The NTK at infinite width, (n, n), exactly symmetric; x (n, d), no zero rows.

    For ReLU K_ij = (L+1) ‖xᵢ‖ ‖xⱼ‖ cos φ_ij (Thm 4.4 with ‖∇f(x)‖² = (L+1) ‖x‖², v1's Eq. 39: the
    theorem's own last line lacks the square root). A linear network's is (L+1) X Xᵀ. With the first
    layer alone trainable, those of ReLU and linear are without the factor L+1. Homogeneous
    activations of degree k scale with ‖xᵢ‖ and ‖xⱼ‖ to the power kᴸ. Raises UserError for others
    unless every row of x has norm 1, up to float32's rounding. Extra memory: some bands of rows.
    """
    activation, depth = network.activation, network.depth
    x = np.asarray(x, dtype=np.float64)
    norms = np.linalg.norm(x, axis=1)
    if activation.degree is None and depth and not np.allclose(norms, 1.0, rtol=1e-5):
        raise UserError(
            f"the NTK of {activation.title} at infinite width is known here for samples of norm 1;"
            f" these have {norms.min():.3g} to {norms.max():.3g}. Set unit_norm: true"
        )
    layers = depth + 1 if network.trainable == "all" else 1
    if network.is_linear:
        return layers * (x @ x.T)
    scale = norms ** ((activation.degree or 1) ** depth)
    unit = x / norms[:, None]
    kernel = np.empty((len(x), len(x)))
    for start in range(0, len(x), BAND):
        rows, left = slice(start, start + BAND), slice(0, start + BAND)
        cosine = np.clip(unit[rows] @ unit[left].T, -1.0, 1.0)
        np.fill_diagonal(cosine[:, start:], 1.0)
        if activation is RELU:
            theta = np.arccos(cosine, out=cosine)
            band = layers * gradient_cosine(theta, depth, network.trainable)
        else:
            band = ntk_of_correlation(cosine, network)
        band *= np.outer(scale[rows], scale[left])
        corner = band[:, start:]  # rounding may differ between its two halves
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        kernel[rows, left] = band
        kernel[left, rows] = band.T
    return kernel
