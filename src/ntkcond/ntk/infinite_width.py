"""Networks at infinite width: angles between embeddings and between gradients, NTK matrices.

Inputs have norm 1 unless the activation is homogeneous: their hidden layers then stay standard
Gaussian, thanks to c_σ (Eq. 1). Angles are in radians; theorem and equation numbers are those of
arXiv 2305.08813v1. The `width` of a network is ignored: it is taken as infinite.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ntkcond.arrays.backend import thread_count
from ntkcond.arrays.half import Half, half_of_tiles
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.dual_activations import angle, dual, one_minus_cosine, scaled
from ntkcond.run.errors import UserError

RELU = ACTIVATIONS["relu"]
UNIT_ROUNDOFF = 2.0**-53
BAND, BAND_ENTRIES = 256, 2**22  # rows, and entries, of a kernel computed at once
PIECE = 2**15  # entries that go through all layers together, within a processor's cache
NEAR = 0.95  # |cos θ| above which an angle is computed from sums and differences
PAIRS = 4096  # of them at once
ROUNDINGS = 32  # of the closed forms of one layer: more than they have
UNIT = 1e-6  # by how much a norm of 1 may be off, as float32's rounding makes it


class Products(NamedTuple):
    """Inner products of gradients of inputs of norm 1 at given angles: `square`, the squared norm
    of each gradient, and `deficit`, by how much less the product is, elementwise. error: a bound on
    the error of a product relative to `square`, for angles with errors up to the one given."""

    square: float
    deficit: np.ndarray
    error: float


def g(theta: ArrayLike) -> np.ndarray:
    """The angle between embeddings after one ReLU layer (Eq. 8):
    g(θ) = arccos(((π − θ) cos θ + sin θ)/π), elementwise on [0, π]."""
    return dual(RELU).turn(np.asarray(theta, dtype=np.float64))


def products(
    theta: ArrayLike, network: MLP, weight_variance: float = 1.0, angle_error: float = 0.0
) -> Products:
    """Inner products for two inputs of norm 1 at an angle θ at infinite width. theta: in [0, π].

    Θ = Σₗ Sˡ Πₗ′ χˡ′(θˡ′), l = 0..L, l′ = l..L−1, Sˡ = ‖αˡ‖² cos θˡ + β², χ(θ) = c E[σ′(u) σ′(v)]
    (Jacot et al., 2018, Thm 1, in the paper's convention, the last layer not scaled; for ReLU
    without biases Thm 4.4, Eq. 10). σ_w² is the variance of all weights, 1 in the paper but for
    Figure 6 of its newest version; hidden layers then keep their norm only if the activation is
    homogeneous, and duals are taken at that norm. With the first layer alone trainable: the summand
    of l = 0.

    The recursion is in the differences from θ = 0, all of them without cancellation: near parallel
    inputs have the smallest eigenvalues in the last digits of their products.
    """
    activation, bias = network.activation, network.bias**2
    theta = np.asarray(theta, dtype=np.float64)
    square, deficit, norm = 1.0 + bias, one_minus_cosine(theta), 1.0
    error, angle_error = angle_error, angle_error + 4 * UNIT_ROUNDOFF
    for _ in range(network.depth):
        variance = weight_variance * norm + bias  # of a preactivation
        if bias:  # which brings preactivations closer than embeddings, and their errors
            theta = angle(weight_variance * norm / variance * one_minus_cosine(theta))
            angle_error += 8 * UNIT_ROUNDOFF
        if activation.degree is not None:
            layer, after = dual(activation), variance**activation.degree
        elif variance == 1.0:
            layer, after = dual(activation), 1.0
        else:
            wider = scaled(activation, float(np.sqrt(variance)))
            layer, after = dual(wider), normalisation(activation) / normalisation(wider)
        # the dual of σ(a z) has the slope a σ′(a z); a² is the variance
        factor = weight_variance * after / variance
        loss = layer.loss(theta)
        deficit = factor * (deficit * (layer.gain - loss) + square * loss)
        loss_error = layer.steepest[1] * angle_error + layer.error[1] + ROUNDINGS * UNIT_ROUNDOFF
        error = factor * (error * layer.gain + square * loss_error)
        theta = layer.turn(theta)
        angle_error = layer.steepest[0] * angle_error + layer.error[0] + ROUNDINGS * UNIT_ROUNDOFF
        square, norm = factor * square * layer.gain, after
        if network.trainable == "all":
            deficit = deficit + norm * one_minus_cosine(theta)
            square += norm + bias
            error += norm * angle_error
        error += ROUNDINGS * UNIT_ROUNDOFF * square
    return Products(square, deficit, error / square)


def gradient_angle(theta_in: ArrayLike, network: MLP, weight_variance: float = 1.0) -> np.ndarray:
    """φ for inputs of norm 1 at an angle θ_in (Thm 4.4 for ReLU), elementwise on [0, π], in
    radians; float64, of θ_in's shape. weight_variance: see `products`.

    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=np.inf)
    >>> float(ntkcond.gradient_angle(np.pi / 2, network) / np.pi).__round__(3)  # arccos 1/(2π)
    0.449
    """
    square, deficit, _ = products(theta_in, network, weight_variance)
    half = np.clip(deficit / (2 * square), 0.0, 1.0)  # (1 − cos φ)/2
    return 2 * np.arctan2(np.sqrt(half), np.sqrt(1 - half))


def gradient_cosine(theta_in: ArrayLike, depth: int) -> np.ndarray:
    """cos φ of a ReLU network of depth L (Thm 4.4, Eq. 10), elementwise."""
    square, deficit, _ = products(theta_in, MLP(RELU, depth, np.inf))
    return 1 - deficit / square


def infinite_width_ntk(x: np.ndarray, network: MLP) -> np.ndarray:
    """The NTK at infinite width, (n, n), exactly symmetric; x (n, d).

    For ReLU K_ij = (L+1) ‖xᵢ‖ ‖xⱼ‖ cos φ_ij (Thm 4.4 with ‖∇f(x)‖² = (L+1) ‖x‖², v1's Eq. 39: the
    theorem's own last line lacks the square root). A linear network's is (L+1) X Xᵀ. With the first
    layer alone trainable, those of ReLU and linear are without the factor L+1. Homogeneous
    activations of degree k scale with ‖xᵢ‖ and ‖xⱼ‖ to the power kᴸ. For others, and with biases
    where the network is not linear, it is the NTK of x/‖x‖; raises UserError unless every row has
    norm 1, up to float32's rounding.
    `entry_error` bounds its error. Extra memory: some bands of rows.

    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["linear"], depth=1, width=np.inf)
    >>> ntkcond.infinite_width_ntk(np.eye(2), network)
    array([[2., 0.],
           [0., 2.]])
    """
    kernel = np.empty((len(x), len(x)))
    for rows, left, band in _bands(x, network):
        kernel[rows, left] = band
        kernel[left, rows] = band.T
    return kernel


def infinite_width_ntk_half(x: np.ndarray, network: MLP) -> Half:
    """`infinite_width_ntk` by half: 4 n² bytes."""

    def each(use: Callable[[slice, slice, np.ndarray], None]) -> None:
        for band in _bands(x, network):
            use(*band)

    return half_of_tiles(len(x), each, "cpu")


def _bands(x: np.ndarray, network: MLP) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Rows, columns up to the diagonal's square, and entries, the square exactly symmetric."""
    activation, depth = network.activation, network.depth
    x = np.asarray(x, dtype=np.float64)
    norms = np.linalg.norm(x, axis=1)
    any_norm = network.is_linear or network.degree is not None
    if not any_norm and not np.allclose(norms, 1.0, rtol=UNIT):
        biases = " with biases" if network.bias else ""
        raise UserError(
            f"the NTK of {activation.title}{biases} at infinite width is known here for samples of"
            f" norm 1; these have {norms.min():.3g} to {norms.max():.3g}. Set unit_norm: true"
        )
    scale = np.ones_like(norms) if network.degree is None else norms**network.degree**depth
    unit = x / np.where(norms == 0, 1.0, norms)[:, None]

    def product(theta: np.ndarray, rows: slice) -> None:
        entries = theta.reshape(-1)
        for start in range(0, len(entries), PIECE):  # all layers within a processor's cache
            piece = entries[start : start + PIECE]
            square, deficit, _ = products(piece, network)
            np.subtract(square, deficit, out=piece)
        theta *= np.outer(scale[rows], scale[: theta.shape[1]])

    for rows in _rows(len(x)):
        start, left = rows.start, slice(0, rows.stop)
        if network.is_linear:
            layers = depth + 1 if network.trainable == "all" else 1
            band = layers * (x[rows] @ x[left].T + network.bias**2 * (layers + 1) / 2)
        else:
            band = _angles(unit, rows, product)
        corner = band[:, start:]  # rounding may differ between its two halves
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        yield rows, left, band


def _rows(n: int) -> Iterator[slice]:
    """Bands of rows: of all columns, they need some tens of MB an array."""
    size = max(16, min(BAND, BAND_ENTRIES // n))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _angles(
    unit: np.ndarray,
    rows: slice,
    then: Callable[[np.ndarray, slice], None] = lambda theta, rows: None,
) -> np.ndarray:
    """Angles between a band of rows of norm 1 and all rows up to its end; right below the diagonal.
    Some rows at a time on all threads: NumPy's functions do not hold the interpreter's lock. then:
    what is done with them in place.

    Those of near parallel or opposite rows by their difference and sum (Kahan, 2006): the arc
    cosine of a cosine c has √(1 − c²) times its accuracy."""
    band = unit[rows] @ unit[: rows.stop].T

    def fill(start: int) -> None:
        some = slice(start, min(start + step, rows.stop))
        theta = band[some.start - rows.start : some.stop - rows.start]
        np.clip(theta, -1.0, 1.0, out=theta)
        first, second = np.nonzero(np.tril(np.abs(theta) > NEAR, start - 1))
        np.arccos(theta, out=theta)
        for begin in range(0, len(first), PAIRS):
            i, j = first[begin : begin + PAIRS], second[begin : begin + PAIRS]
            one, other = unit[start + i], unit[j]
            theta[i, j] = 2 * np.arctan2(
                np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1)
            )
        np.fill_diagonal(theta[:, start:], 0.0)
        then(theta, some)

    step = max(1, 4 * PIECE // rows.stop)
    with ThreadPoolExecutor(thread_count()) as pool:
        for _ in pool.map(fill, range(rows.start, rows.stop, step)):
            pass
    return band


def smallest_angle(x: np.ndarray, network: MLP) -> float:
    """The smallest φ among the rows of x (n, d), at least two, none zero; radians. All pairs."""
    x = np.asarray(x, dtype=np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    smallest = np.inf
    for rows in _rows(len(x)):
        theta = _angles(unit, rows)
        below = np.tril(np.ones(theta.shape, dtype=bool), rows.start - 1)
        smallest = min(smallest, gradient_angle(theta[below], network).min(initial=np.inf))
    return float(smallest)


def entry_error(network: MLP, features: int) -> float:
    """e: a bound on the error of `infinite_width_ntk`, |δK_ij| ≤ e √(K_ii K_jj).

    Of the worst case, for closed forms: k products in any order have an error of k u at most,
    relative to the norms (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), and every
    error grows by the largest slopes of the functions that follow. For other activations slopes and
    the error of series or quadrature are estimates, on the safe side.
    """
    if network.is_linear:
        return (features + 8) * UNIT_ROUNDOFF
    # a cosine of unit rows, and d + 4 roundings in both norms; arccos at NEAR
    cosine = (2 * features + 12) * UNIT_ROUNDOFF
    error = products(0.0, network, angle_error=cosine / np.sqrt(1 - NEAR**2)).error
    power = (network.degree or 0) ** network.depth
    return error + power * (features + 8) * UNIT_ROUNDOFF
