"""Symmetric matrices over the ranks of MPI: ScaLAPACK's Cholesky factor and solves, and products.

Of n × n numbers each rank has its tiles, BLOCK × BLOCK, in block-cyclic order (ScaLAPACK Users'
Guide, 4.3). Rank 0 leads: what it asks of the matrix, all ranks do together. ScaLAPACK stores a
symmetric matrix whole, and numbers the entries of a rank by 32 bits.
"""

import ctypes
import ctypes.util
import functools
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ntkcond.arrays.symmetric import Symmetric, Track, untracked

BLOCK = 128  # rows and columns of a tile
BAND = 512  # rows and columns at once in a product
LOGICAL = 32  # columns at once in a part of PBLAS (its pilaenv.f)


class Grid:
    """The ranks of MPI as rows and columns, for ScaLAPACK. comm: mpi4py's COMM_WORLD. Raises
    OSError where there is no ScaLAPACK for this MPI."""

    def __init__(self, comm: Any, rows: int, columns: int) -> None:
        from scalapack4py import ScaLAPACK4py

        self.comm, self.rows, self.columns = comm, rows, columns
        self.library = ScaLAPACK4py(_scalapack())
        system = self.library.get_default_system_context()
        self.context = self.library.make_blacs_context(system, rows, columns)
        _, _, self.row, self.column = self.library.blacs_gridinfo(self.context)

    def mine(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of an (n, n) matrix whose entries this rank has, ascending."""
        index = np.arange(n)
        tile = index // BLOCK
        return index[tile % self.rows == self.row], index[tile % self.columns == self.column]

    @functools.cached_property
    def sums_apart(self) -> bool:
        """Whether terms are summed before they are added to an entry: BLOCK of them in the factor,
        LOGICAL or more in solves. All ranks must ask together.

        In planted matrices, ones are subtracted from −2⁵⁹ or −2⁵⁷, whose neighbours are 128 and 32
        away. One by one they would be lost; sums of so many are not.
        """
        half, n = 4 * BLOCK, 8 * BLOCK
        index = np.arange(n)
        start = -(2.0**59)
        matrix = LocalTiles(self, n)
        for panel, rows, columns in matrix.panels():
            row, column = np.meshgrid(matrix.rows[rows], matrix.columns[columns])
            panel[:] = (row == column) | (row >= half) & (column < half)
            panel[(row == half) & (column == half)] += half
            panel[(row > half) & (column == half)] = start
            panel[(row > half) & (row == column)] = 2.0**130
        apart = matrix.factorise()
        entries = matrix.entries[np.ix_(matrix.rows > half, matrix.columns == half)]
        apart &= bool((entries == start - half).all())

        start = -(2.0**57)
        lower = LocalTiles(self, n)
        for panel, rows, columns in lower.panels():
            row, column = np.meshgrid(lower.rows[rows], lower.columns[columns])
            panel[:] = (row == column) | (row >= half) & (column < half)
        for transposed in (False, True):
            last = index < half if transposed else index >= half  # of the substitution
            solved = self.comm.bcast(lower.substitute(np.where(last, start, 1.0), transposed))
            apart &= bool((solved[last] == start - half).all())
        return all(self.comm.allgather(apart))


class LocalTiles:
    """This rank's tiles of a matrix of zeros, to be filled. Every rank calls each method. entries:
    this rank's, [rows, columns], column-major; above the diagonal they mean nothing."""

    def __init__(self, grid: Grid, n: int) -> None:
        self.grid, self.n = grid, n
        self.rows, self.columns = grid.mine(n)
        # ScaLAPACK wants one entry at least, also of a rank that has none
        self._stored = np.zeros((max(1, len(self.rows)), max(1, len(self.columns))), order="F")
        self.entries = self._stored[: len(self.rows), : len(self.columns)]
        _, *self._diagonal = np.intersect1d(self.rows, self.columns, return_indices=True)

    def panels(self) -> Iterator[tuple[np.ndarray, slice, slice]]:
        """(panel, rows, columns) of each column of tiles, from the diagonal downwards; rows,
        columns: parts of this rank's. panel: to be filled with K[columns, rows], a view of the
        entries, transposed and so row-major."""
        for start in range(0, len(self.columns), BLOCK):
            columns = slice(start, min(start + BLOCK, len(self.columns)))
            rows = slice(int(np.searchsorted(self.rows, self.columns[start])), len(self.rows))
            if rows.start < rows.stop:
                panel = self.entries.T[columns, rows]
                yield panel, rows, columns
                if self.rows[rows.start] == self.columns[start]:
                    square = panel[:, : len(panel)]
                    square[:] = np.triu(square)  # zeros above the diagonal, as `product` takes them

    def diagonal(self) -> np.ndarray | None:
        """(n,), on rank 0."""
        i, j = self._diagonal
        return self._joined(self.rows[i], self.entries[i, j])

    def squares(self) -> np.ndarray | None:
        """(1,), on rank 0: the sum of the squares of all entries of K."""
        i, j = self._diagonal
        below = float(np.einsum("ij,ij->", self.entries, self.entries))  # zeros above the diagonal
        return self._sum(np.array([2 * below - float((self.entries[i, j] ** 2).sum())]))

    def add_to_diagonal(self, shift: float) -> None:
        i, j = self._diagonal
        self.entries[i, j] += shift

    def product(self, v: np.ndarray) -> np.ndarray | None:
        """K v on rank 0; v: the same on all. By bands: a term passes through BAND + n/BAND
        roundings or so."""
        whole = np.zeros(self.n)
        for c in range(0, len(self.columns), BAND):
            for r in range(0, len(self.rows), BAND):
                rows, columns = self.rows[r : r + BAND], self.columns[c : c + BAND]
                if rows[-1] >= columns[0]:
                    band = self.entries[r : r + BAND, c : c + BAND]
                    whole[rows] += band @ v[columns]
                    whole[columns] += band.T @ v[rows]
        i, j = self._diagonal  # which counted twice
        whole[self.rows[i]] -= self.entries[i, j] * v[self.rows[i]]
        return self._sum(whole)

    def factorise(self) -> bool:
        """By pdpotrf, in place."""
        info = ctypes.c_int()
        layout = self._layout(self.n)
        self.grid.library.pdpotrf("L", self.n, self._stored, 1, 1, layout, info)
        return info.value == 0

    def solve(self, v: np.ndarray) -> np.ndarray | None:
        """K⁻¹ v on rank 0, by pdpotrs; v: the same on all."""
        right, info = self._right(v), ctypes.c_int()
        self.grid.library.pdpotrs(
            "L", self.n, 1, self._stored, 1, 1, self._layout(self.n),
            right, 1, 1, self._layout(1), info,
        )  # fmt: skip
        return self._left(right)

    def substitute(self, v: np.ndarray, transposed: bool) -> np.ndarray | None:
        """L⁻¹ v, or L⁻ᵀ v, on rank 0, by pdtrsm, which pdpotrs calls; v: the same on all."""
        right = self._right(v)
        self.grid.library.pdtrsm(
            "L", "L", "T" if transposed else "N", "N", self.n, 1, 1.0,
            self._stored, 1, 1, self._layout(self.n), right, 1, 1, self._layout(1),
        )  # fmt: skip
        return self._left(right)

    def roundings(self) -> int:
        """p, by the order of sums in ScaLAPACK's reference implementation.

        Factor: BLOCK in a sum of terms, one for each of these sums, BLOCK in a tile's factor.
        Solves, with R rows and C columns of ranks: windows of 2 LOGICAL lcm(R, C) columns; the
        terms of a rank in one, one for each window, one for each tile in it, and the reduction over
        a row or a column of ranks. One rank alone takes LOGICAL columns at a time. Two for a
        division. A library that adds otherwise: as many as there are terms, in whatever order they
        are added (Higham, Thms 8.5 and 10.3).
        """
        any_order = self.n + 2
        if not self.grid.sums_apart:
            return any_order
        rows, columns = self.grid.rows, self.grid.columns
        at_once = LOGICAL if rows * columns == 1 else BLOCK
        over_ranks = (2 * LOGICAL + 1) * (rows + columns) + math.lcm(rows, columns)
        return min(any_order, 2 * BLOCK + math.ceil(self.n / at_once) + over_ranks + 2)

    def _right(self, v: np.ndarray) -> np.ndarray:
        """A right-hand side, which the first column of ranks has."""
        right = np.zeros((len(self._stored), 1), order="F")
        if self.grid.column == 0:
            right[: len(self.rows), 0] = v[self.rows]
        return right

    def _left(self, right: np.ndarray) -> np.ndarray | None:
        """What has replaced it, on rank 0."""
        rows = self.rows if self.grid.column == 0 else self.rows[:0]
        return self._joined(rows, right[: len(rows), 0])

    def _layout(self, columns: int) -> Any:
        """ScaLAPACK's description of (n, columns) numbers."""
        return self.grid.library.make_blacs_desc(
            self.grid.context, self.n, columns, BLOCK, BLOCK, lld=len(self._stored)
        )

    def _joined(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray | None:
        """(n,) on rank 0, from the values of each rank."""
        whole = np.zeros(self.n)
        whole[rows] = values
        return self._sum(whole)

    def _sum(self, whole: np.ndarray) -> np.ndarray | None:
        """Over the ranks, on rank 0."""
        total = np.empty_like(whole) if self.grid.comm.rank == 0 else None
        self.grid.comm.Reduce(whole, total)
        return total


class BlockCyclic(Symmetric):
    """The matrix as rank 0 uses it. roundings: of its tiles. together: calls a `LocalTiles` method,
    by its name and arguments, on every rank."""

    def __init__(self, n: int, roundings: int, together: Callable[..., Any]) -> None:
        self._n, self._roundings, self._together = n, roundings, together

    @property
    def n(self) -> int:
        return self._n

    @property
    def diagonal(self) -> np.ndarray:
        return self._together("diagonal")

    def squares(self) -> float:
        return float(self._together("squares")[0])

    @property
    def roundings(self) -> int:
        return self._roundings

    def add_to_diagonal(self, shift: float) -> None:
        self._together("add_to_diagonal", shift)

    def product(self, v: np.ndarray) -> np.ndarray:
        return self._together("product", v)

    def factorise(self, track: Track = untracked) -> bool:
        """In one call of ScaLAPACK, without a progress of its own."""
        (factorised,) = [self._together("factorise") for _ in track([None], 1)]
        return factorised

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._together("solve", v)


def _scalapack() -> ctypes.CDLL:
    """The library of SCALAPACK_LIB_PATH or MKLROOT, else of this MPI (Debian has one for each),
    else of the system."""
    from mpi4py import MPI
    from scalapack4py.library_loader import load_scalapack

    if os.environ.keys() & {"SCALAPACK_LIB_PATH", "MKLROOT"}:
        return load_scalapack()
    vendor = MPI.get_vendor()[0].replace(" ", "").lower()  # openmpi, mpich
    for name in (f"scalapack-{vendor}", "scalapack"):
        if path := ctypes.util.find_library(name):
            return load_scalapack(path)
    raise OSError(f"no library libscalapack-{vendor} or libscalapack")
