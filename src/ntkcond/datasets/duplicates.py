"""Repeated and zero samples, found exactly. NumPy only: data sets depend on it."""

from typing import NamedTuple

import numpy as np


class DistinctRows(NamedTuple):
    """index: (k,) rows that are neither zero nor equal to an earlier one, ascending.
    duplicate_rows, zero_rows: numbers of rows left out; a repeated zero row counts as zero."""

    index: np.ndarray
    duplicate_rows: int
    zero_rows: int


def distinct_rows(x: np.ndarray) -> DistinctRows:
    """The rows of x (n, d) whose pairwise angles are defined, without repetitions."""
    nonzero = np.flatnonzero(x.any(axis=1))
    index = nonzero[first_of_each(x[nonzero])]
    return DistinctRows(index, len(nonzero) - len(index), len(x) - len(nonzero))


def first_of_each(x: np.ndarray) -> np.ndarray:
    """Positions, ascending, of the first of each set of equal rows of x (n, d)."""
    if not x.size:
        return np.arange(min(len(x), 1))
    rows = np.ascontiguousarray(x + 0)  # −0 + 0 is 0: rows are compared by their bytes
    row_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return np.sort(np.unique(row_bytes.ravel(), return_index=True)[1])
