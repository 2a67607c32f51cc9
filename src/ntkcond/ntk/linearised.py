"""The NTK at infinite width of samples that are about equally far from each other, linearised.

If the cosines of n samples of norm 1 are c but for small deviations, the entries k(cos θ) of their
NTK are linear in them (El Karoui 2010, Thm 2.1, for random samples with n/d fixed):

    K ≈ k(c) 11ᵀ + k′(c) (C − c 11ᵀ) + s I,   s = k(1) − k(c) − k′(c) (1 − c),

with the matrix C of the cosines. So an activation does three things to the spectrum of C. It adds
k(c) − c k′(c) to every entry: one large eigenvalue, the mean mode, grows with n. It scales the
others by k′(c). And it lifts them all by s, which is 0 for a linear network.
"""

import math
from typing import NamedTuple

import numpy as np

from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.run.errors import UserError

STEP = 1e-4  # of the angle, in the derivative
NOISE = 1e-7  # above the error of the derivative: that of a linear network has a lift of 10⁻⁹


class Linearised(NamedTuple):
    """mean: k(c); slope: k′(c); lift: s. All in units of k(1)."""

    c: float
    mean: float
    slope: float
    lift: float

    def lowers_above(self, n: int) -> float:
        """κ of the cosines of n samples above which that of the linearised NTK is smaller:
        1 + n μ/s, with the mean mode μ = k(c) − c k′(c); 1 if μ is not above 0, ∞ without a lift.

        By Weyl's inequality κ(K) ≤ (n μ + k′ λ_max + s)/(k′ λ_min + s), for every n samples, which
        is below λ_max/λ_min just there. If the eigenvector of λ_max is 1, both sides are equal, and
        below 1 + n μ/s κ(K) is larger. If it is another, κ(K) may be smaller already from
        (n μ + s)/(k′ λ_min + s) on."""
        mode = self.mean - self.c * self.slope
        if mode < -NOISE:
            return 1.0
        return 1 + n * max(mode, 0.0) / self.lift if self.lift > NOISE else math.inf


def linearised(c: float, network: MLP) -> Linearised:
    """About a cosine c, −1 < c < 1, of an infinitely wide network that takes samples of norm 1."""
    theta = math.acos(c)
    angles = np.array([theta, theta - STEP, theta + STEP])
    x = np.array([[1.0, 0.0], *np.transpose([np.cos(angles), np.sin(angles)])])
    one, at, before, after = infinite_width_ntk(x, network)[0]
    slope = float((before - after) / (2 * STEP) / math.sin(theta) / one)
    mean = float(at / one)
    return Linearised(c, mean, slope, 1 - mean - slope * (1 - c))


def mean_cosine(x: np.ndarray) -> float:
    """The mean over all pairs of the samples x, (n, d)."""
    n = len(x)
    return float((np.sum(_unit(x).sum(axis=0) ** 2) - n) / (n * (n - 1)))


def linearised_ntk(x: np.ndarray, network: MLP) -> np.ndarray:
    """The linearised NTK of samples x, (n, n), in units of k(1), about their mean cosine; scaled by
    their norms, as that of a network that is homogeneous of degree 1.

    Raises UserError for another network unless all norms are 1, for fewer than two samples, and for
    one that is zero."""
    norms = np.linalg.norm(x, axis=1)
    if len(x) < 2 or not norms.all():
        raise UserError("the linearised NTK needs two samples or more, none of them zero")
    if not (network.is_linear or network.degree == 1) and not np.allclose(norms, 1):
        raise UserError(
            f"the linearised NTK of {network.activation.title} is known for samples of norm 1"
        )
    about = linearised(mean_cosine(x), network)
    cosines = _unit(x) @ _unit(x).T
    kernel = about.mean + about.slope * (cosines - about.c) + about.lift * np.eye(len(x))
    return kernel * np.outer(norms, norms)


def predicted_kappa(x: np.ndarray, network: MLP) -> float:
    """κ at infinite width of samples x, (n, d), of a network that is homogeneous of degree 1: the
    largest eigenvalue of the linearised NTK over its smallest or, if that is less, over the smaller
    one of the NTK of the two closest samples, whose cosine is far from the others. ∞ where neither
    is above zero. Raises UserError as `linearised_ntk`."""
    kernel = linearised_ntk(x, network)
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    cosines = _unit(x) @ _unit(x).T
    np.fill_diagonal(cosines, -1)
    closest = x[list(np.unravel_index(cosines.argmax(), cosines.shape))]
    pair = infinite_width_ntk(closest, network) / infinite_width_ntk(_unit(closest), network)[0, 0]
    least = min(low, np.linalg.eigvalsh(pair)[0])
    return float(high / least) if least > 0 else math.inf


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)
