"""Matrices over MPI ranks by ScaLAPACK, held against NumPy, LAPACK and extended precision."""

import numpy as np
import pytest

import mpi
from on_ranks import KAPPAS, SIZES, N, conditioned, definite
from thoroughness import how_many

UNIT_ROUNDOFF = 2.0**-53
EXTENDED = np.finfo(np.longdouble).eps < 1e-18
RANKS = (1, 2, 4, 3, 6)[: how_many("RANKS", few=3, thorough=5)]


@pytest.fixture(scope="module", params=RANKS)
def computed(request, tmp_path_factory) -> dict:
    """What so many ranks compute."""
    mpi.required()
    path = tmp_path_factory.mktemp("ranks") / "computed.npz"
    mpi.on_ranks(request.param, "on_ranks.py", path)
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("n", SIZES)
def test_products_and_solves_are_those_of_the_whole_matrix(computed, n):
    matrix, v = definite(n), computed[f"n{n}/v"]
    assert np.array_equal(computed[f"n{n}/matrix"], np.tril(matrix))
    assert np.array_equal(computed[f"n{n}/diagonal"], np.diagonal(matrix))
    np.testing.assert_allclose(computed[f"n{n}/product"], matrix @ v, rtol=1e-12, atol=1e-6)
    assert computed[f"n{n}/factorised"]
    expected = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(
        computed[f"n{n}/factor"], expected, rtol=1e-5, atol=1e-9 * expected.max()
    )
    assert np.linalg.norm(matrix @ computed[f"n{n}/solved"] - v) <= 1e-8 * np.linalg.norm(v)
    assert not computed[f"n{n}/indefinite"]  # of one that is not positive definite


@pytest.mark.skipif(not EXTENDED, reason="no extended precision here")
@pytest.mark.parametrize("n", SIZES)
def test_factor_and_solve_are_as_accurate_as_their_bounds_say(computed, n):
    """|LLᵀ − K| ≤ p u |L||Lᵀ| entry by entry, and |LLᵀx − v| ≤ 2 p u |L||Lᵀ||x|."""
    lower = computed[f"n{n}/factor"].astype(np.longdouble)
    bound = computed[f"n{n}/roundings"] * UNIT_ROUNDOFF
    rows = np.unique(np.linspace(0, n - 1, 25).astype(int))
    error = abs(lower[rows] @ lower.T - definite(n)[rows])
    assert (error <= bound * (abs(lower[rows]) @ abs(lower.T))).all()
    x = computed[f"n{n}/solved"].astype(np.longdouble)
    error = abs(lower @ (lower.T @ x) - computed[f"n{n}/v"])
    assert (error <= 2.001 * bound * (abs(lower) @ (abs(lower.T) @ abs(x)))).all()


def least_eigenvalue(matrix: np.ndarray) -> tuple[np.longdouble, np.longdouble]:
    """In extended precision, by a Cholesky factor and inverse iteration; ‖K v − λ v‖."""
    lower = matrix.astype(np.longdouble)
    for k in range(len(lower)):
        lower[k, k] = np.sqrt(lower[k, k])
        lower[k + 1 :, k] /= lower[k, k]
        lower[k + 1 :, k + 1 :] -= np.outer(lower[k + 1 :, k], lower[k + 1 :, k])
    v = np.random.default_rng(0).standard_normal(len(lower)).astype(np.longdouble)
    for _ in range(20):
        v /= np.sqrt(v @ v)
        for k in range(len(v)):
            v[k] = (v[k] - lower[k, :k] @ v[:k]) / lower[k, k]
        for k in reversed(range(len(v))):
            v[k] = (v[k] - lower[k + 1 :, k] @ v[k + 1 :]) / lower[k, k]
    v /= np.sqrt(v @ v)
    image = matrix.astype(np.longdouble) @ v
    value = v @ image
    return value, np.sqrt(((image - value * v) ** 2).sum())


@pytest.mark.skipif(not EXTENDED, reason="no extended precision here")
@pytest.mark.parametrize("kappa", [kappa for kappa in KAPPAS if kappa < 1e16])
def test_the_bound_on_a_planted_smallest_eigenvalue_holds(computed, kappa):
    exact, residual = least_eigenvalue(conditioned(kappa))
    error = computed[f"{kappa:g}/lambda_min_error"]
    assert residual < error / 100
    assert abs(computed[f"{kappa:g}/lambda_min"] - exact) <= error
    assert abs(computed[f"{kappa:g}/lambda_max"] - 1) <= error
    resolved = exact > 2 * error
    assert computed[f"{kappa:g}/verdict"] == ("resolved" if resolved else "unresolved")
    assert resolved == (kappa <= 1e8)
    assert computed[f"{kappa:g}/kappa_lower"] <= 1 / exact <= computed[f"{kappa:g}/kappa_upper"]


def test_a_matrix_that_rounding_leaves_indefinite_is_not_resolved(computed):
    assert np.linalg.eigvalsh(conditioned(1e18))[0] < 1e-15
    assert computed["1e+18/verdict"] == "unresolved"
    assert abs(computed["1e+18/lambda_min"]) <= computed["1e+18/lambda_min_error"]


def test_the_bound_asks_the_library_how_it_adds(computed):
    """Reference ScaLAPACK adds sums of terms; with one that does not, p is that of any order."""
    assert computed["sums_apart"]
    assert (computed["plain"] == N + 2).all()
