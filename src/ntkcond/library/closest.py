"""The closest pair of a kernel, and how far its error may have moved the angle."""

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from ntkcond.library.kernel import Kernel
from ntkcond.library.matrices import as_kernel, matrix_of
from ntkcond.run.errors import UserError


class ClosestPair(NamedTuple):
    """The two samples whose gradients have the smallest angle: what `closest_pair` gives.

    Attributes
    ----------
    angle_deg : float
        The angle, in degrees.
    first, second : int
        Positions of the samples.
    vanished : int
        Number of samples whose gradient is 0, left out.
    low_deg, high_deg : float
        Between them the smallest angle of the exact NTK lies, by the kernel's error: 0 and 180 if
        nothing is known of that.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> ntkcond.closest_pair(np.eye(3)).angle_deg
    90.0
    """

    angle_deg: float
    first: int
    second: int
    vanished: int
    low_deg: float
    high_deg: float


def closest_pair(kernel: Kernel | np.ndarray | Tensor) -> ClosestPair:
    """The two rows of an NTK whose gradients have the smallest angle, arccos K_ij/√(K_ii K_jj)
    (Def. 2.1).

    Parameters
    ----------
    kernel : Kernel or (n, n) array

    Returns
    -------
    ClosestPair
        Near 0 the rounding of K moves the angle by some 10⁻⁶ degrees: see its low_deg, high_deg.

    Raises
    ------
    UserError
        If fewer than two gradients do not vanish, and as `condition_number` does.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> pair = ntkcond.closest_pair(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> pair.first, pair.second, round(pair.angle_deg, 6)
    (0, 1, 60.0)
    """
    matrix, error = matrix_of(kernel), kernel.error if isinstance(kernel, Kernel) else math.nan
    if not isinstance(kernel, Kernel):
        error = as_kernel(kernel).error
    norms = np.sqrt(matrix.diagonal())
    index = np.flatnonzero(norms)
    if len(index) < 2:
        raise UserError("fewer than two gradients do not vanish: no pair has an angle")
    cosines = matrix[np.ix_(index, index)] / np.outer(norms[index], norms[index])
    np.fill_diagonal(cosines, -math.inf)
    first, second = np.unravel_index(cosines.argmax(), cosines.shape)
    angle = math.degrees(math.acos(max(-1.0, min(1.0, cosines[first, second]))))
    i, j = sorted((int(index[first]), int(index[second])))
    largest = _largest_cosines(matrix[np.ix_(index, index)], error)
    np.fill_diagonal(largest, -math.inf)
    low = math.degrees(math.acos(min(1.0, largest.max())))
    smallest = -_largest_cosines(-matrix[np.ix_((i, j), (i, j))], error)[0, 1]
    high = math.degrees(math.acos(max(-1.0, min(1.0, smallest))))
    return ClosestPair(angle, i, j, len(matrix) - len(index), low, high)


def _largest_cosines(matrix: np.ndarray, error: float) -> np.ndarray:
    """Upper bounds on all K_ij/√(K_ii K_jj), if no entry is off by more than an error."""
    unit = 8 * float(np.finfo(np.float64).eps)
    sizes = np.abs(matrix.diagonal())
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = (np.sqrt(np.maximum(sizes + off, 0)) for off in (-error, error))
        entries = matrix + error
        bounds = np.where(
            entries > 0, entries / np.outer(least, least), entries / np.outer(most, most)
        )
    return np.where(np.isfinite(bounds), np.minimum(bounds + unit, 1.0), 1.0)
