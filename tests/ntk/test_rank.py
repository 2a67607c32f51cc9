"""Which kernels are singular, from the inputs alone; held against numerical ranks."""

import numpy as np
import pytest

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.rank import distinct_directions, rank_bound
from small_networks import drawn, gradients_of, mlp

BASE = np.random.default_rng(0).standard_normal((6, 20)).astype(np.float32)


def with_row(row: np.ndarray) -> np.ndarray:
    return np.vstack([BASE, row]).astype(np.float32)


CASES = {
    "all different": (BASE, 6, 6),
    "a row twice": (with_row(BASE[2]), 6, 6),
    "a zero row": (with_row(0 * BASE[0]), 6, 6),
    "a row and its double": (with_row(2 * BASE[1]), 6, 6),
    "an antipodal pair": (with_row(-BASE[3]), 7, 6),
    "more rows than features": (BASE.T, 20, 6),
    "a constant column of zeros": (np.vstack([BASE[:, :3].T, np.zeros(6)]).T, 6, 3),
}


@pytest.mark.parametrize("case", CASES)
def test_rank_bound_is_the_rank(case):
    """rank of K for ReLU (rays) and for linear networks (lines), against the numerical one."""
    x, relu, linear = CASES[case]
    x = x.astype(np.float32)
    for activation, expected in (("relu", relu), ("linear", linear)):
        assert rank_bound(x, mlp(activation, 2, 256)) == expected
        weights = drawn(0, 2, 256, x.shape[1])
        gradients = gradients_of(weights, activation)
        kernel = empirical_ntk(gradients(x.astype(np.float64)))
        assert np.linalg.matrix_rank(kernel, tol=1e-10 * np.trace(kernel)) == expected


def test_rank_is_at_most_that_of_the_weights_and_depth_zero_is_linear():
    assert rank_bound(BASE.T.copy(), mlp("relu", 0, 256)) == 6
    x = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    assert rank_bound(x, mlp("relu", 1, 2)) == 2 * 3 + 2


def test_directions_that_float32_barely_tells_apart_count_as_two():
    x = np.array([[1, 1], [1, 1 + 2**-23], [3, 3], [-1, -1]], dtype=np.float32)
    assert distinct_directions(x, signed=True) == 3
    assert distinct_directions(x, signed=False) == 2


def test_duplicates_and_zero_rows_are_found_and_counted():
    x = np.array([[1, 2], [0, 0], [1, 2], [3, 4], [-0.0, 0], [1, 2]], dtype=np.float32)
    distinct = distinct_rows(x)
    assert distinct.index.tolist() == [0, 3]
    assert (distinct.duplicate_rows, distinct.zero_rows) == (2, 2)


def test_parallel_rows_count_for_activations_that_are_not_homogeneous():
    """tanh(2 z) ≠ 2 tanh(z): a row and its double have gradients of their own."""
    tanh = mlp("tanh", 2, 256)
    x = with_row(2 * BASE[1])
    assert rank_bound(x, tanh) == 7
    weights = drawn(0, 2, 256, x.shape[1])
    kernel = empirical_ntk(tanh.gradients(weights)(x.astype(np.float64)))
    assert np.linalg.matrix_rank(kernel, tol=1e-10 * kernel.trace()) == 7
    assert rank_bound(with_row(BASE[1]), tanh) == 6
