"""A given NTK: its matrix in float64, and what is known of its error."""

import math
import weakref
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ntkcond.library.kernel import UNCERTIFIED, Kernel
from ntkcond.ntk.rounding import ESTIMATED, PROVED
from ntkcond.run.errors import UserError

_ERRORS: dict[int, float] = {}  # of matrices that `kernel` gave, by their id, while they are there


def remember(matrix: np.ndarray | Tensor, error: float) -> None:
    """The error of a matrix that `kernel` gives."""
    _ERRORS[id(matrix)] = error
    weakref.finalize(matrix, _ERRORS.pop, id(matrix), None)


def as_kernel(kernel: Kernel | np.ndarray | Tensor, error: float = 0.0) -> Kernel[np.ndarray]:
    """A kernel with a certificate and a matrix of float64 NumPy. error: of a given matrix, to which
    that of rounding its entries to their type is added."""
    error = bound_of(error)
    if not isinstance(kernel, Kernel | Tensor):
        kernel = entries_of(kernel)
    matrix = matrix_of(kernel, error)
    if not isinstance(kernel, Kernel):
        own, rounding = _ERRORS.get(id(kernel)), _rounding_of_entries(kernel, matrix)
        grade = PROVED if own is None else ESTIMATED
        return Kernel(matrix, rounding + (own or 0.0), len(matrix), (), (), grade=grade)
    if kernel.grade == UNCERTIFIED:
        raise UserError(
            "this kernel was computed with certify=False: nothing is known of its error. Leave"
            " that out, or pass kernel.matrix with an error= of your own"
        )
    return cast(Kernel[np.ndarray], replace(kernel, matrix=matrix))


def bound_of(error: Any) -> float:
    """Raises UserError for what is no bound on the norm of an error."""
    try:
        bound = float(error)
    except (TypeError, ValueError):
        bound = math.nan
    if not bound >= 0:
        raise UserError(f"error={error}: a bound on the norm of an error is a number, 0 or above")
    return bound


def _rounding_of_entries(given: np.ndarray | Tensor, matrix: np.ndarray) -> float:
    """A bound on the Frobenius norm of what rounding K's entries to their type changed: each by u
    of it, and below the normal numbers by half the smallest. ‖K‖_F is at most tr K, and the trace
    that is computed is within (u + n 2⁻⁵²) tr K and n of the smallest."""
    if given.dtype in (np.float64, torch.float64):
        return 0.0
    double, n = np.finfo(np.float64), len(matrix)
    unit, tiny = unit_of(given), float(double.smallest_subnormal) / 2
    if isinstance(given, Tensor) and given.is_floating_point():
        known = torch.finfo(given.dtype)
        tiny = max(tiny, known.smallest_normal * known.eps / 2)
    elif not isinstance(given, Tensor) and given.dtype.kind == "f":
        tiny = max(tiny, float(np.finfo(given.dtype).smallest_subnormal) / 2)
    trace = float(np.trace(matrix))
    return unit * (1 + 4 * unit + n * float(double.eps)) * trace + 2 * n * tiny


def unit_of(given: np.ndarray | Tensor) -> float:
    """The unit of rounding of its entries, that of float64 at least."""
    unit = float(np.finfo(np.float64).eps) / 2
    if isinstance(given, Tensor):
        return max(unit, torch.finfo(given.dtype).eps / 2) if given.is_floating_point() else unit
    kind = np.asarray(given).dtype
    return max(unit, float(np.finfo(kind).eps) / 2) if kind.kind == "f" else unit


def matrix_of(kernel: Kernel | np.ndarray | Tensor, error: float = 0.0) -> np.ndarray:
    """(n, n) float64. error: by how much its diagonal may be below zero."""
    if isinstance(kernel, Kernel) and kernel.two_sets:
        raise UserError("this kernel is of two sets of samples: one of a single set is needed")
    entries = entries_of(kernel.matrix if isinstance(kernel, Kernel) else kernel)
    if entries.dtype.kind not in "fiu":
        raise UserError(
            f"an NTK is a matrix of real numbers, not of {entries.dtype}. Of a network:"
            " ntkcond.kernel(module, x) gives it"
        )
    matrix = entries.astype(np.float64, copy=False)
    if matrix.ndim != 2 or len(matrix) != matrix.shape[1] or not len(matrix):
        raise UserError(f"an NTK is an (n, n) matrix, not one of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise UserError("the matrix has entries that are NaN or infinite")
    if (matrix.diagonal() < -error).any():
        raise UserError("the matrix is no NTK: it has a squared norm below zero on its diagonal")
    if not np.array_equal(matrix, matrix.T):
        raise UserError("the matrix is not symmetric: give (K + K.T) / 2 if rounding made it so")
    return matrix


def entries_of(matrix: np.ndarray | Tensor) -> np.ndarray:
    if isinstance(matrix, Tensor):
        if matrix.layout != torch.strided:
            raise UserError("the matrix is sparse: give matrix.to_dense()")
        matrix = matrix.detach().cpu()
        known_to_numpy = not matrix.is_floating_point() or matrix.dtype == torch.float32
        return (matrix if known_to_numpy else matrix.double()).numpy()
    if isinstance(matrix, np.ma.MaskedArray):
        raise UserError("the matrix has a mask: give the NTK of the samples that are to count")
    try:
        return np.asarray(matrix)
    except ValueError as error:  # rows of several lengths
        raise UserError(f"an NTK is an (n, n) matrix of real numbers: {error}") from error
