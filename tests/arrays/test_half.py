"""Symmetric matrices by half, held against extended precision and LAPACK's full storage."""

import numpy as np
import pytest

from ntkcond.arrays import half
from ntkcond.arrays.backend import put, to_numpy
from ntkcond.arrays.half import PANEL, PARTIAL_SUMS, half_of
from ntkcond.ntk.eigenvalues import UNIT_ROUNDOFF

SIZES = [1, PANEL - 1, PANEL, PANEL + 1, 2 * PANEL + 17]


def matrix_of(n: int) -> np.ndarray:
    """Symmetric positive definite, κ some 10⁷: Gram matrix of smooth curves, and a ridge."""
    rng = np.random.default_rng(n)
    curves = np.cumsum(rng.standard_normal((n, 2 * n + 5)), axis=0)
    matrix = curves @ curves.T / n
    return np.tril(matrix) + np.tril(matrix, -1).T


def lower_of(factor: half.Half) -> np.ndarray:
    """L, (n, n)."""
    lower = np.zeros((factor.n, factor.n))
    for start, panel in zip(range(0, factor.n, PANEL), factor.panels, strict=True):
        lower[start:, start : start + PANEL] = to_numpy(panel)
    return np.tril(lower)


@pytest.mark.parametrize("n", SIZES)
def test_products_and_solves_are_those_of_the_whole_matrix(n, device):
    matrix, v = matrix_of(n), np.random.default_rng(0).standard_normal(n)
    by_half = half_of(put(matrix, device))
    assert by_half.n == n
    assert np.array_equal(by_half.diagonal, np.diagonal(matrix))
    np.testing.assert_allclose(by_half.product(v), matrix @ v, rtol=1e-12, atol=1e-9)
    assert by_half.factorise()
    np.testing.assert_allclose(
        lower_of(by_half), np.linalg.cholesky(matrix), rtol=1e-6, atol=1e-9 * matrix.max()
    )
    x = by_half.solve(v)
    assert np.linalg.norm(matrix @ x - v) <= 1e-9 * np.linalg.norm(v)


def test_it_takes_half_the_memory_and_leaves_the_matrix(device):
    n = 5 * PANEL
    matrix = put(np.eye(n), device)
    by_half = half_of(matrix)
    assert sum(panel.shape[0] * panel.shape[1] for panel in by_half.panels) == n * (n + PANEL) // 2
    by_half.add_to_diagonal(1.0)
    assert (by_half.diagonal == 2).all()
    assert (to_numpy(matrix) == np.eye(n)).all()


@pytest.mark.parametrize("where", [0, PANEL - 1, PANEL, 2 * PANEL + 16])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(where, device):
    matrix = matrix_of(2 * PANEL + 17)
    matrix[where, where] = 0.0
    assert not half_of(put(matrix, device)).factorise()


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
def test_factor_and_solve_are_as_accurate_as_their_bounds_say(device):
    """|LLᵀ − K| ≤ p u |L||Lᵀ| entry by entry, and |LLᵀx − v| ≤ 2 p u |L||Lᵀ||x| and terms in u²."""
    n = PANEL + 200
    matrix, v = matrix_of(n), np.random.default_rng(1).standard_normal(n)
    by_half = half_of(put(matrix, device))
    assert by_half.factorise()
    bound = by_half.roundings * UNIT_ROUNDOFF
    lower = lower_of(by_half).astype(np.longdouble)
    rows = np.r_[0:5, PANEL - 3 : PANEL + 3, n - 5 : n]
    error = abs(lower[rows] @ lower.T - matrix[rows])
    assert (error <= bound * (abs(lower[rows]) @ abs(lower.T))).all()
    assert (error > 0).any()
    x = by_half.solve(v).astype(np.longdouble)
    error = abs(lower @ (lower.T @ x) - v)
    assert (error <= 2.001 * bound * (abs(lower) @ (abs(lower.T) @ abs(x)))).all()


@pytest.mark.parametrize("shape", [(PANEL, PANEL), (3 * PANEL, PANEL), (PANEL + 3, 3), (7, 7)])
@pytest.mark.parametrize("bits", [56, 58, 60])
def test_terms_are_summed_before_they_are_added_to_an_entry(shape, bits, device):
    """To 2⁶⁰, whose neighbours are 256 away, ones are added: one by one, all would be lost."""
    rows, columns = shape
    target = put(np.full(shape, -(2.0**bits)), device)
    ones = np.ones((rows, PANEL))
    half._subtract_product(target, put(ones, device), put(ones[:columns].copy(), device))
    gain = -to_numpy(target) - 2.0**bits
    half_a_step = 2.0 ** (bits - 53)
    assert (abs(gain - PANEL) <= PARTIAL_SUMS * half_a_step).all()
    assert (gain > 0).all()


def test_a_blas_that_adds_one_by_one_is_recognised(monkeypatch):
    def one_by_one(target, a, b):
        for k in range(a.shape[1]):
            target -= np.outer(a[:, k], b[:, k])

    assert half._sums_apart.__wrapped__() in (True, False)
    monkeypatch.setattr(half, "_subtract_at_once", one_by_one)
    assert not half._sums_apart.__wrapped__()
