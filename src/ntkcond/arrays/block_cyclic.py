"""Symmetric matrices over the ranks of MPI: ScaLAPACK's Cholesky factor and solves, and products.

Of n × n numbers each rank has its tiles, BLOCK × BLOCK, in block-cyclic order (ScaLAPACK Users'
Guide, 4.3). Rank 0 leads: what it asks of the matrix, all ranks do together. ScaLAPACK keeps a
symmetric matrix in full, and counts a rank's numbers in 32 bits.
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
# PBLAS updates a matrix by so many columns at a time (its pilaenv.f), and in triangular solves by
# twice as many for each row or column of ranks: so many terms are summed before they are added to
# an entry. `Grid.sums_apart` asks the library at hand.
SUMMED = 32


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
        """Whether SUMMED terms are added to an entry at once. All ranks must ask together.

        In the last rows of a planted matrix, ones are subtracted from −2⁵⁷, whose neighbours are 32
        away: one by one they would be lost, sums of 32 are not. So an entry of the factor tells how
        the library adds, and so does a solve with it.
        """
        ones, start = 4 * BLOCK, -(2.0**57)
        planted = Tiles(self, ones + 2)
        for panel, rows, columns in planted.panels():
            row, column = np.meshgrid(planted.rows[rows], planted.columns[columns])
            panel[:] = np.where(row == column, 1.0, row >= ones)
            panel[(row == ones) & (column == ones)] += ones
            panel[(row == ones + 1) & (column == ones)] = start
            panel[(row == ones + 1) & (column == ones + 1)] = 2.0**120
        if not planted.factorise():
            return False
        own = np.ix_(planted.rows == ones + 1, planted.columns == ones)
        entry = self.comm.allreduce(float(planted.own[own].sum()))
        right = np.ones(ones + 2)
        right[ones:] = start, (start - ones) ** 2  # of which hardly anything is left to solve for
        solved = self.comm.bcast(planted.solve(right))[ones]
        return bool(entry == solved == start - ones)


class Tiles:
    """Those of a matrix of zeros, to be filled; every rank calls each method. own: the entries
    [rows, columns] of this rank, column-major; above the diagonal they mean nothing."""

    def __init__(self, grid: Grid, n: int) -> None:
        self.grid, self.n = grid, n
        self.rows, self.columns = grid.mine(n)
        # ScaLAPACK wants a column of one entry at least, also of a rank that has none
        self._all = np.zeros((max(1, len(self.rows)), max(1, len(self.columns))), order="F")
        self.own = self._all[: len(self.rows), : len(self.columns)]
        _, *self._diagonal = np.intersect1d(self.rows, self.columns, return_indices=True)

    def panels(self) -> Iterator[tuple[np.ndarray, slice, slice]]:
        """(panel, rows, columns) of each column of tiles, from the diagonal downwards; rows,
        columns: parts of this rank's. panel: to be filled with K[columns, rows], a view of the
        entries, transposed and so row-major."""
        for start in range(0, len(self.columns), BLOCK):
            columns = slice(start, min(start + BLOCK, len(self.columns)))
            rows = slice(int(np.searchsorted(self.rows, self.columns[start])), len(self.rows))
            if rows.start < rows.stop:
                panel = self.own.T[columns, rows]
                yield panel, rows, columns
                if self.rows[rows.start] == self.columns[start]:
                    square = panel[:, : len(panel)]
                    square[:] = np.triu(square)  # zeros above the diagonal, as `product` takes them

    def diagonal(self) -> np.ndarray | None:
        """(n,), on rank 0."""
        i, j = self._diagonal
        return self._joined(self.rows[i], self.own[i, j])

    def add_to_diagonal(self, shift: float) -> None:
        i, j = self._diagonal
        self.own[i, j] += shift

    def product(self, v: np.ndarray) -> np.ndarray | None:
        """K v on rank 0; v: the same on all. By bands: a term passes through BAND + n/BAND
        roundings or so."""
        whole = np.zeros(self.n)
        for c in range(0, len(self.columns), BAND):
            for r in range(0, len(self.rows), BAND):
                rows, columns = self.rows[r : r + BAND], self.columns[c : c + BAND]
                if rows[-1] >= columns[0]:
                    band = self.own[r : r + BAND, c : c + BAND]
                    whole[rows] += band @ v[columns]
                    whole[columns] += band.T @ v[rows]
        i, j = self._diagonal  # which counted twice
        whole[self.rows[i]] -= self.own[i, j] * v[self.rows[i]]
        return self._sum(whole)

    def factorise(self) -> bool:
        """By pdpotrf, in place."""
        info = ctypes.c_int()
        layout = self._layout(self.n)
        self.grid.library.pdpotrf("L", self.n, self._all, 1, 1, layout, info)
        return info.value == 0

    def solve(self, v: np.ndarray) -> np.ndarray | None:
        """K⁻¹ v on rank 0, by pdpotrs; v: the same on all."""
        info = ctypes.c_int()
        right = np.zeros((len(self._all), 1), order="F")
        first = self.grid.column == 0  # which has the right-hand side
        rows = self.rows if first else self.rows[:0]
        right[: len(rows), 0] = v[rows]
        self.grid.library.pdpotrs(
            "L", self.n, 1, self._all, 1, 1, self._layout(self.n),
            right, 1, 1, self._layout(1), info,
        )  # fmt: skip
        return self._joined(rows, right[: len(rows), 0])

    def roundings(self) -> int:
        """p. Sums of up to 2 SUMMED terms for each row and column of ranks; these sums, added to an
        entry, one for SUMMED terms at most; a tile's own factor and its solve; two for a division.
        A library that adds otherwise: as many as there are terms, in whatever order they are added
        (Higham, Thms 8.5 and 10.3)."""
        any_order = self.n + 2
        if not self.grid.sums_apart:
            return any_order
        terms = 2 * SUMMED * (self.grid.rows + self.grid.columns)
        return min(any_order, 2 * BLOCK + terms + math.ceil(self.n / SUMMED) + 2)

    def _layout(self, columns: int) -> Any:
        """ScaLAPACK's description of (n, columns) numbers."""
        return self.grid.library.make_blacs_desc(
            self.grid.context, self.n, columns, BLOCK, BLOCK, lld=len(self._all)
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
    """The matrix as rank 0 uses it. together: calls a method of `Tiles`, by its name and arguments,
    on every rank."""

    def __init__(self, n: int, together: Callable[..., Any]) -> None:
        self._n, self._together = n, together

    @property
    def n(self) -> int:
        return self._n

    @property
    def diagonal(self) -> np.ndarray:
        return self._together("diagonal")

    @property
    def roundings(self) -> int:
        """See `Tiles.roundings`."""
        return self._together("roundings")

    def add_to_diagonal(self, shift: float) -> None:
        self._together("add_to_diagonal", shift)

    def product(self, v: np.ndarray) -> np.ndarray:
        return self._together("product", v)

    def factorise(self, track: Track = untracked) -> bool:
        """In one call of ScaLAPACK, which tells no progress."""
        (found,) = [self._together("factorise") for _ in track([None], 1)]
        return found

    def solve(self, v: np.ndarray) -> np.ndarray:
        return self._together("solve", v)


def _scalapack() -> ctypes.CDLL:
    """Debian has one for each MPI; else that of SCALAPACK_LIB_PATH, MKLROOT or the system."""
    from mpi4py import MPI
    from scalapack4py.library_loader import load_scalapack

    vendor = MPI.get_vendor()[0].replace(" ", "").lower()  # openmpi, mpich
    of_vendor = ctypes.util.find_library(f"scalapack-{vendor}")
    return load_scalapack(None if "SCALAPACK_LIB_PATH" in os.environ else of_vendor)
