"""Functions of the mathematics below, for the library: with their input checked.

The workflow checks its input elsewhere, and takes them without.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from ntkcond.library.inputs import with_hints
from ntkcond.library.kernel import Kernel
from ntkcond.library.matrices import bound_of, matrix_of
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import eigenvalues, infinite_width
from ntkcond.ntk.eigenvalues import Extremes
from ntkcond.run.errors import UserError


@with_hints
def extreme_eigenvalues(
    kernel: Kernel | np.ndarray | Tensor, *, kernel_error: float = 0.0, certify: bool = True
) -> Extremes:
    """λ_max and λ_min of a symmetric positive semi-definite matrix, and intervals that hold them.

    Parameters
    ----------
    kernel : Kernel or (n, n) array
        Exactly symmetric; in float64, or taken to it without rounding.
    kernel_error : float
        By how much, in norm, it may fail to be positive semi-definite.
    certify : bool
        Prove the intervals, for n ≤ 2,000; beyond, λ_min is the smallest as far as Lanczos has
        converged.

    Returns
    -------
    Extremes

    Raises
    ------
    UserError
        As `condition_number` does, and if it is not positive semi-definite.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> extremes = ntkcond.extreme_eigenvalues(np.diag([1.0, 2.0, 5.0]))
    >>> extremes.lambda_min, extremes.lambda_max, extremes.error < 1e-14, extremes.proved
    (1.0, 5.0, True, True)
    """
    error = bound_of(kernel_error)
    found = eigenvalues.extreme_eigenvalues(matrix_of(kernel, error), error, certify)
    if found.smallest[1] < -error:
        raise UserError(
            f"the matrix is not positive semi-definite: λ_min is at most {found.smallest[1]:.4g}."
            " Give its error, if it has one, as kernel_error="
        )
    return found


@with_hints
def gradient_angle(
    theta_in: ArrayLike, network: MLP, *, weight_variance: float = 1.0
) -> np.ndarray:
    """φ, the angle of the gradients of two inputs of norm 1 at infinite width (Thm 4.4 for ReLU).

    Parameters
    ----------
    theta_in : array
        The angle of the inputs, on [0, π], in radians, of any shape.
    network : MLP
        Of infinite width.
    weight_variance : float
        σ_w², of all weights, 1 in the paper but for Figure 6 of its newest version.

    Returns
    -------
    float64 array
        φ in radians, elementwise, of the same shape.

    Raises
    ------
    UserError
        For other angles, a network of finite width, a variance that is not above 0.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=np.inf)
    >>> float(ntkcond.gradient_angle(np.pi / 2, network) / np.pi).__round__(3)  # arccos 1/(2π)
    0.449
    """
    theta = _real(theta_in, "theta_in")
    if not ((theta >= 0) & (theta <= math.pi)).all():
        raise UserError("theta_in: angles are in radians, from 0 to π. Of degrees: np.radians")
    if not 0 < weight_variance < math.inf:
        raise UserError(f"weight_variance={weight_variance}: it must be above 0")
    return infinite_width.gradient_angle(theta, _infinitely_wide(network), weight_variance)


def infinite_width_ntk(x: ArrayLike | Tensor, network: MLP) -> np.ndarray:
    """The NTK of a network at infinite width.

    Parameters
    ----------
    x : (n, d) array
        Samples. Where the NTK is that of x/‖x‖ (Notes), their norms are 1.
    network : MLP
        Of infinite width.

    Returns
    -------
    (n, n) float64 array
        Exactly symmetric.

    Raises
    ------
    UserError
        Where the NTK is that of x/‖x‖, unless every row has norm 1, up to float32's rounding; for a
        network of finite width; for other x.

    Notes
    -----
    For ReLU K_ij = (L+1) ‖xᵢ‖ ‖xⱼ‖ cos φ_ij (Thm 4.4 with ‖∇f(x)‖² = (L+1) ‖x‖², v1's Eq. 39: the
    theorem's own last line lacks the square root). A linear network's is (L+1) X Xᵀ. With the first
    layer alone trainable, those of ReLU and linear are without the factor L+1. Homogeneous
    activations of degree k scale with ‖xᵢ‖ and ‖xⱼ‖ to the power kᴸ. For others, and with biases
    where the network is not linear, it is the NTK of x/‖x‖.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["linear"], depth=1, width=np.inf)
    >>> ntkcond.infinite_width_ntk(np.eye(2), network)
    array([[2., 0.],
           [0., 2.]])
    """
    samples = _real(x, "x")
    if samples.ndim != 2 or not samples.size:
        raise UserError(f"x must be samples (n, d), not of shape {samples.shape}")
    return infinite_width.infinite_width_ntk(samples, _infinitely_wide(network))


def _real(values: Any, name: str) -> np.ndarray:
    """In float64. Raises UserError for what is no array of finite numbers."""
    array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise UserError(f"{name}: an array of finite real numbers is needed")
    return array.astype(np.float64, copy=False)


def _infinitely_wide(network: MLP) -> MLP:
    if not isinstance(network, MLP):
        raise UserError(f"network={network!r}: give an ntkcond.MLP with width=math.inf")
    if network.width != math.inf:
        raise UserError(f"width={network.width}: at infinite width the MLP has width=math.inf")
    return network
