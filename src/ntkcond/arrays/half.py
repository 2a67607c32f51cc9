"""Symmetric matrices by half: products, a Cholesky factor in place, solves.

Only the entries on and below the diagonal are in memory, by block columns: of n × n numbers n²/2
and a few. Sums run block by block, so that a term passes through some PANEL + n/PANEL roundings in
place of n (`Half.roundings`).
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ntkcond.arrays.backend import Array, Device, is_numpy, put, to_numpy, xp
from ntkcond.arrays.symmetric import Symmetric, Track, untracked

PANEL = 576  # columns of a block column: wide enough for the full rate of a matrix product
# OpenBLAS sums the terms of a product in registers, a few hundred at a time, before it adds them to
# the result: for PANEL terms at most so often. `_sums_apart` asks the BLAS at hand.
PARTIAL_SUMS = 4


@dataclass(frozen=True, eq=False)
class Half(Symmetric):
    """A symmetric (n, n) float64 matrix, or its Cholesky factor L. panels: its block columns, each
    contiguous, (n − its first column, PANEL): from the square on the diagonal, which is whole,
    downwards. What stays above the diagonal of L's squares means nothing."""

    panels: Sequence[Array]

    @property
    def n(self) -> int:
        return len(self.panels[0])

    @property
    def diagonal(self) -> np.ndarray:
        return np.concatenate([to_numpy(xp(p).linalg.diagonal(_square(p))) for p in self.panels])

    @property
    def roundings(self) -> int:
        """A product and its sum within a block column: PANEL; this and later ones, added to the
        entry: PARTIAL_SUMS each; the square on the diagonal: PANEL; a division, also by a
        reciprocal: two. Triangular solves are taken for substitutions, as they are on a CPU."""
        return 2 * min(self.n, PANEL) + PARTIAL_SUMS * math.ceil(self.n / PANEL) + 2

    def squares(self) -> float:
        total = 0.0
        for panel in self.panels:
            below = panel[panel.shape[1] :]
            total += _sum_of_squares(_square(panel)) + 2 * _sum_of_squares(below)
        return total

    def add_to_diagonal(self, shift: float) -> None:
        for panel in self.panels:
            width = panel.shape[1]
            panel.reshape(-1)[: width**2 : width + 1] += shift

    def product(self, v: np.ndarray) -> np.ndarray:
        v = put(v, self.panels[0].device)
        result = xp(v).zeros_like(v)
        for start, panel in _with_starts(self):
            columns = slice(start, start + panel.shape[1])
            result[columns] += _times(_square(panel), v[columns])
            for rows in _bands(columns.stop, self.n):
                block = panel[rows.start - start : rows.stop - start]
                result[rows] += _times(block, v[columns])
                result[columns] += _transposed_times(block, v[rows])
        return to_numpy(result)

    def factorise(self, track: Track = untracked) -> bool:
        for j, (start, panel) in enumerate(track(_with_starts(self), len(self.panels))):
            stop = start + panel.shape[1]
            for first, earlier in _with_starts(Half(self.panels[:j])):
                facing, below = earlier[start - first : stop - first], earlier[start - first :]
                _subtract_product(panel, below, facing)
            if not _factorise_square(_square(panel)):
                return False
            if stop < self.n:
                _divide(panel[panel.shape[1] :], _square(panel))
        return True

    def solve(self, v: np.ndarray) -> np.ndarray:
        """By L: L y = v, Lᵀ x = y. v is kept."""
        x = put(v.copy(), self.panels[0].device)
        for start, panel in _with_starts(self):
            columns = slice(start, start + panel.shape[1])
            x[columns] = _solve_square(_square(panel), x[columns], transposed=False)
            for rows in _bands(columns.stop, self.n):
                x[rows] -= _times(panel[rows.start - start : rows.stop - start], x[columns])
        for start, panel in reversed(list(_with_starts(self))):
            columns = slice(start, start + panel.shape[1])
            for rows in _bands(columns.stop, self.n):
                x[columns] -= _transposed_times(
                    panel[rows.start - start : rows.stop - start], x[rows]
                )
            x[columns] = _solve_square(_square(panel), x[columns], transposed=True)
        return to_numpy(x)


def read_half(n: int, read: Callable[[slice, slice], np.ndarray], device: Device) -> Half:
    """From read(rows, columns), the entries of these rows and columns, NumPy float64. It is asked
    for panels in bands of rows; what it gives above the diagonal is not used."""
    half = _room(n, device)
    for start, panel in _with_starts(half):
        columns = slice(start, start + panel.shape[1])
        for rows in _bands(start, n):
            panel[rows.start - start : rows.stop - start] = put(read(rows, columns), device)
        _mirror(_square(panel))
    return half


def half_of_tiles(
    n: int, each: Callable[[Callable[[slice, slice, Array], None]], None], device: Device
) -> Half:
    """From each(use), which calls use(rows, columns, values) for tiles that together have all
    entries on and below the diagonal, in any order, also from several threads. What they have above
    it is not used."""
    half = _room(n, device)

    def use(rows: slice, columns: slice, values: Array) -> None:
        for start, panel in _with_starts(half):
            cut = slice(max(columns.start, start), min(columns.stop, start + panel.shape[1]))
            first = max(rows.start, start)  # what is above the panel is above the diagonal
            if cut.start < cut.stop and first < rows.stop:
                part = values[first - rows.start :, cut.start - columns.start :]
                panel[first - start : rows.stop - start, cut.start - start : cut.stop - start] = (
                    part[:, : _length(cut)]
                )

    each(use)
    for panel in half.panels:
        _mirror(_square(panel))
    return half


def half_of(matrix: Array) -> Half:
    """A copy of the lower half of a symmetric (n, n) float64 matrix."""
    panels = []
    for columns in _blocks(len(matrix)):
        panel = xp(matrix).asarray(matrix[columns.start :, columns], copy=True)
        panels.append(panel.reshape(-1).reshape(panel.shape))  # contiguous
        _mirror(_square(panels[-1]))
    return Half(panels)


def _room(n: int, device: Device) -> Half:
    """A matrix by half whose entries are still to be written."""
    like = put(np.empty(0), device)
    return Half([
        xp(like).empty((n - c.start, _length(c)), dtype=like.dtype, device=device)
        for c in _blocks(n)
    ])  # fmt: skip


def _blocks(n: int) -> Iterator[slice]:
    """Columns of each panel."""
    return _bands(0, n)


def _bands(start: int, stop: int) -> Iterator[slice]:
    """From start to stop, PANEL at a time."""
    for first in range(start, stop, PANEL):
        yield slice(first, min(first + PANEL, stop))


def _with_starts(matrix: Half) -> Iterator[tuple[int, Array]]:
    """Each panel with its first column."""
    return zip(range(0, len(matrix.panels) * PANEL, PANEL), matrix.panels, strict=True)


def _length(part: slice) -> int:
    return part.stop - part.start


def _mirror(square: Array) -> None:
    """What is above the diagonal becomes what is below, in place."""
    square[:] = xp(square).tril(square) + xp(square).tril(square, k=-1).T


def _sum_of_squares(a: Array) -> float:
    """Without a copy."""
    if is_numpy(a):
        return float(np.einsum("ij,ij->", a, a))
    return float(xp(a).linalg.vector_norm(a)) ** 2


def _square(panel: Array) -> Array:
    """What of it is on the diagonal of the matrix."""
    return panel[: panel.shape[1]]


# Row-major blocks are the transposes of what LAPACK takes, column-major.


def _times(block: Array, v: Array) -> Array:
    """B v."""
    if is_numpy(block):
        from scipy.linalg import blas

        return blas.dgemv(1.0, block.T, v, trans=1)
    return block @ v


def _transposed_times(block: Array, v: Array) -> Array:
    """Bᵀ v."""
    if is_numpy(block):
        from scipy.linalg import blas

        return blas.dgemv(1.0, block.T, v)
    return block.T @ v


def _subtract_product(target: Array, a: Array, b: Array) -> None:
    """target −= A Bᵀ, in place."""
    if is_numpy(target) and target.shape[1] == PANEL and _sums_apart():
        _subtract_at_once(target, a, b)
    else:
        target -= a @ b.T


def _subtract_at_once(target: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """target −= A Bᵀ without a product in memory of its own."""
    from scipy.linalg import blas

    blas.dgemm(-1.0, b.T, a.T, 1.0, target.T, trans_a=1, overwrite_c=1)


@functools.cache
def _sums_apart() -> bool:
    """Whether the BLAS was seen to add PANEL terms to a result as PARTIAL_SUMS sums or fewer; MKL
    adds each by itself. Ones are added to 2⁶⁰, whose neighbours are 256 away: of each sum at most
    128 are lost, so that more sums would show, but for a shape that takes another path."""
    ones, target = np.ones((PANEL, PANEL)), np.full((PANEL, PANEL), -(2.0**60))
    _subtract_at_once(target, ones, ones)
    lost = PANEL - (-target - 2.0**60)
    return bool((abs(lost) <= 128 * PARTIAL_SUMS).all())


def _factorise_square(square: Array) -> bool:
    """Replaces the lower triangle by its Cholesky factor; False if it has none."""
    if is_numpy(square):
        from scipy.linalg import lapack

        return lapack.dpotrf(square.T, lower=0, clean=0, overwrite_a=1)[1] == 0
    import torch

    factor, info = torch.linalg.cholesky_ex(square)
    square.copy_(factor)
    return info.item() == 0


def _divide(rows: Array, square: Array) -> None:
    """rows L⁻ᵀ, in place; L: lower triangle of the square."""
    if is_numpy(rows):
        from scipy.linalg import blas

        blas.dtrsm(1.0, square.T, rows.T, lower=0, trans_a=1, overwrite_b=1)
    else:
        import torch

        rows.copy_(torch.linalg.solve_triangular(square.T, rows, upper=True, left=False))


def _solve_square(square: Array, v: Array, transposed: bool) -> Array:
    """L⁻¹ v, or L⁻ᵀ v; L: lower triangle of the square."""
    if is_numpy(square):
        from scipy.linalg import blas

        return blas.dtrsv(square.T, v, lower=0, trans=int(not transposed))
    import torch

    lower = square.T if transposed else square
    return torch.linalg.solve_triangular(lower, v[:, None], upper=transposed)[:, 0]
