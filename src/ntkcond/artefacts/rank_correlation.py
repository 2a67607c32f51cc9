"""Spearman's rank correlation, also given other columns: permutation tests, bootstrap intervals."""

import functools
import math
from typing import NamedTuple

import numpy as np

PERMUTATIONS = 9999
RESAMPLES, LEVEL = 1000, 0.95  # of the bootstrap


class Correlation(NamedTuple):
    """A rank correlation and its two-sided p; both nan where rho does not exist."""

    rho: float
    p: float


def rank_correlation(
    x: np.ndarray, y: np.ndarray, covariates: np.ndarray | None = None
) -> Correlation:
    """Spearman's ρ of x and y, (n,) each, or the partial one given the columns of `covariates`,
    (n, k): that of the ranks' residuals on the columns' ranks. Ties share a rank.

    p by PERMUTATIONS random permutations, always the same ones for an n. Given columns: of the
    residuals of y, which are then added to the fit of y and again freed of the columns (Freedman
    and Lane 1983). Plain: of y. p is the share of |ρ| that are at least the one measured, which
    counts as one of them: with exchangeable residuals P(p ≤ α) ≤ α.
    """
    a, b = unit_ranks(x), unit_ranks(y)
    basis = orthonormal(np.empty((len(a), 0)) if covariates is None else covariates)
    a, b = (values - basis @ (basis.T @ values) for values in (a, b))
    size_a, size_b = np.linalg.norm(a), np.linalg.norm(b)
    if not (size_a > 1e-7 and size_b > 1e-7):  # nothing left but rounding
        return Correlation(math.nan, math.nan)
    rho = float(a @ b / (size_a * size_b))
    # The fit of y lies in the columns, so that freeing the sum of it leaves that of the residuals.
    permuted = b[permutations(len(b))]
    products = permuted @ a
    left = size_b**2 - np.square(permuted @ basis).sum(axis=1)
    least = abs(rho) * size_a * np.sqrt(np.clip(left, 0, None))
    as_large = np.abs(products) >= least * (1 - 1e-9)  # equal ones differ by rounding
    return Correlation(rho, float((1 + as_large.sum()) / (1 + PERMUTATIONS)))


def bootstrap_interval(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The percentile interval of ρ of x and y, (n,) each, over RESAMPLES samples of the pairs with
    replacement; of the samples in which neither is constant."""
    rng = np.random.Generator(np.random.Philox(0))
    chosen = rng.integers(len(x), size=(RESAMPLES, len(x)))
    a, b = (unit_ranks(np.asarray(values, np.float64)[chosen]) for values in (x, y))
    rho = np.einsum("ij,ij->i", a, b)
    known = rho[np.isfinite(rho)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def adjusted(p: np.ndarray) -> np.ndarray:
    """p of Benjamini and Hochberg's correction, for the family of all that are not nan: of those
    at most α, an expected share of at most α is false."""
    from scipy.stats import false_discovery_control

    corrected, known = np.full(len(p), np.nan), np.isfinite(p)
    if known.any():
        corrected[known] = false_discovery_control(np.asarray(p)[known], method="bh")
    return corrected


def unit_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, centred and of norm 1; nan where all are equal."""
    from scipy.stats import rankdata

    ranks = rankdata(np.asarray(values, np.float64), axis=-1)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    norm = np.linalg.norm(ranks, axis=-1, keepdims=True)
    return ranks / np.where(norm > 1e-7, norm, np.nan)


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the ranks of the columns, (…, n, k) both; its last
    columns are 0 where the rank is less than k. Constant columns have no part in it."""
    ranked = np.nan_to_num(unit_ranks(np.swapaxes(np.asarray(columns), -1, -2)))
    basis, sizes, _ = np.linalg.svd(np.swapaxes(ranked, -1, -2), full_matrices=False)
    return basis * (sizes > 1e-7)[..., None, :]


@functools.lru_cache(maxsize=4)
def permutations(n: int) -> np.ndarray:
    """PERMUTATIONS of 0 to n − 1, a row each."""
    rng = np.random.Generator(np.random.Philox(0))
    return rng.permuted(np.tile(np.arange(n), (PERMUTATIONS, 1)), axis=1)
