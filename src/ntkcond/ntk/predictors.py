"""What the NTK at the start may say of the speed of training, a number each."""

import math
from typing import NamedTuple

import numpy as np

from ntkcond.ntk.labels import alignment, squared_projections

LEFT = 0.1  # share of ‖Y‖² that is left after `Predictors.predicted_steps`


class Predictors(NamedTuple):
    """Measures of an NTK K of n samples with eigenvalues λᵢ and eigenvectors uᵢ, and the labels Y,
    a centred column for each class, of which cᵢ = ‖uᵢᵀ Y‖²/‖Y‖² is the share along uᵢ.

    kappa_without_first: λ₂/λ_min. largest_share: λ_max/tr K, the share of the mean mode where it
    is that. label_rate: Σ cᵢ λᵢ/λ_max, by which the labels' part of the residual begins to fall.
    label_complexity: Σ cᵢ λ̄/λᵢ with λ̄ = tr K/n, which is Yᵀ K⁻¹ Y (Arora et al. 2019) of a kernel
    of mean eigenvalue 1. predicted_steps: of gradient descent on the square loss at 1/λ_max from
    f = 0 until LEFT of ‖Y‖² is left, were K constant; ∞ if it never is. alignment:
    `ntkcond.ntk.labels.alignment`.
    """

    kappa_without_first: float
    largest_share: float
    label_rate: float
    label_complexity: float
    predicted_steps: float
    alignment: float


def class_columns(labels: np.ndarray) -> np.ndarray:
    """Y, (n, C): 1 in the column of a sample's class, less the mean of the column."""
    columns = (labels[:, None] == np.unique(labels)).astype(np.float64)
    return columns - columns.mean(axis=0)


def predictors(kernel: np.ndarray, y: np.ndarray, kappa: float) -> Predictors:
    """kernel: (n, n) float64; y: (n, C) of `class_columns`; kappa: that of the kernel, ∞ if it is
    singular, nan if it is not resolved. What divides by λ_min is then the same."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    shares = squared_projections(vectors, y) / np.square(y).sum()
    largest, mean = eigenvalues[-1], eigenvalues.mean()
    without_first = complexity = kappa
    if math.isfinite(kappa):
        without_first = float(eigenvalues[-2] / eigenvalues[0])
        complexity = float(np.sum(shares * mean / eigenvalues))
    return Predictors(
        without_first,
        float(largest / (mean * len(y))),
        float(shares @ eigenvalues / largest),
        complexity,
        steps_until(LEFT, eigenvalues / largest, shares),
        alignment(kernel, y),
    )


def steps_until(left: float, rates: np.ndarray, shares: np.ndarray) -> float:
    """The t at which Σ (1 − rateᵢ)²ᵗ shareᵢ = left, any real number from 0 on; ∞ if there is none.

    rates: (n,), at most 1; rounding's, 0 or below, count as 0. shares: (n,), which add up to 1."""
    from scipy.optimize import brentq

    with np.errstate(divide="ignore"):
        decay = 2 * np.log1p(-np.clip(rates, 0, 1))  # −∞ at a rate of 1: nothing left for t > 0

    def excess(log_t: float) -> float:
        return float(np.exp(decay * math.exp(log_t)) @ shares) - left

    low, high = math.log(1e-6), math.log(1e18)
    if excess(high) > 0:
        return math.inf
    return math.exp(brentq(excess, low, high)) if excess(low) > 0 else 0.0
