"""Sweeps: against the kernel and closest pair of the full route, and against what must hold."""

import math

import numpy as np
import pytest

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.ntk.closest_pair import closest_gradients
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import gradient_angle, infinite_width_ntk
from ntkcond.ntk.measure import measure
from small_networks import autograd_ntk, drawn, mlp


def unit(n: int, features: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, features))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


X = unit(20, 6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_finite_width_is_that_of_the_full_route(activation, device):
    network = mlp(activation, 2, 32)
    rows = list(measure(X, network, [5], blocks=3, seeds=[1, 7], device=device))
    assert [(row["seed"], row["block"]) for row in rows] == [
        (seed, block) for seed in (1, 7) for block in range(3)
    ]
    used = X[:15].astype(np.float64)
    for seed in (1, 7):
        gradients = network.initial_gradients(seed, 6)
        angle = closest_gradients(gradients(used)).angle_deg
        for block, row in enumerate(row for row in rows if row["seed"] == seed):
            eigenvalues = np.linalg.eigvalsh(empirical_ntk(gradients(used[5 * block :][:5])))
            assert row["kappa"] == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-8)
            assert row["min_angle_deg"] == pytest.approx(angle, rel=1e-9)
            assert row["verdict"] == "resolved"


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_infinite_width_has_the_smallest_angle_of_all_pairs(activation):
    """It looks at the closest inputs alone."""
    for depth in (1, 2, 6):
        network = mlp(activation, depth)
        (row,) = measure(X, network, [20], 1, seeds=[1])
        assert (row["seed"], row["block"]) == (-1, 0)
        if network.is_linear:  # 20 samples of 6 features
            assert (row["verdict"], row["kappa"]) == ("singular", np.inf)
        kernel = infinite_width_ntk(X, network)
        norms = np.sqrt(np.diag(kernel))
        cosine = kernel / np.outer(norms, norms) - 2 * np.eye(20)
        smallest = np.degrees(np.arccos(cosine.max()))
        assert row["min_angle_deg"] == pytest.approx(smallest, abs=2e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradient_angle_grows_with_the_input_angle_below_90_degrees(activation):
    """What makes the closest inputs the closest gradients."""
    theta = np.radians(np.linspace(0.5, 90, 180))
    for depth in (1, 3, 10):
        phi = gradient_angle(theta, mlp(activation, depth))
        assert (np.diff(phi) > -1e-6).all()  # rounding, of sigmoid's near 0


def test_the_first_layer_alone_is_that_block_of_autograds_jacobian():
    x = X[:5].astype(np.float64)
    expected = np.linalg.eigvalsh(autograd_ntk(x, drawn(3, 2, 32, 6), "relu", "first"))
    (row,) = measure(X[:5], mlp("relu", 2, 32, "first"), [5], 1, seeds=[3])
    assert row["kappa"] == pytest.approx(expected[-1] / expected[0], rel=1e-9)
    assert row["lambda_max"] == pytest.approx(expected[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("activation", "depth"),
    [("relu", 2), ("relu2", 1), ("tanh", 2), ("linear", 2)],  # relu2 of two layers is biased
)
def test_the_first_layer_of_a_wide_network_comes_near_that_of_the_infinite_one(activation, depth):
    x = X.astype(np.float64)
    infinite, wide = (mlp(activation, depth, width, "first") for width in (math.inf, 512))
    exact = infinite_width_ntk(X, infinite)
    kernels = [empirical_ntk(wide.initial_gradients(seed, 6)(x)) for seed in range(32)]
    error = np.std(kernels, axis=0, ddof=1) / np.sqrt(32)
    assert error.max() < 0.1 * exact.max()
    assert (np.abs(np.mean(kernels, axis=0) - exact) < 4 * error + 0.01 * exact.max()).all()
    (row,) = measure(X, infinite, [20], 1, seeds=[1])
    norms = np.sqrt(np.diag(exact))
    cosine = exact / np.outer(norms, norms) - 2 * np.eye(20)
    assert row["min_angle_deg"] == pytest.approx(np.degrees(np.arccos(cosine.max())), abs=2e-5)


def test_all_blocks_are_as_many_as_there_are_and_the_angle_is_among_all_samples():
    x = np.concatenate([X, X[:1] * np.float32(2) + np.float32(1e-3)])  # the last in no block
    network = mlp("relu", 1, 16)
    rows = list(measure(x, network, [5], None, seeds=[1]))
    assert [row["block"] for row in rows] == [0, 1, 2, 3]
    (some, *_) = measure(x, network, [5], 4, seeds=[1])
    assert rows[0]["min_angle_deg"] < some["min_angle_deg"]
    assert rows[0]["kappa"] == some["kappa"]


def test_a_kernel_that_overflows_is_unresolved(device):
    """ReLU² squares sizes in each layer."""
    rows = list(measure(100 * X[:5], mlp("relu2", 14, 4), [5], 1, range(3), device))
    assert {row["verdict"] for row in rows} <= {"unresolved", "singular"}
    unknown = [row for row in rows if np.isnan(row["kappa"])]
    assert all(np.isnan([row["lambda_max"], row["lambda_min"]]).all() for row in unknown)
    assert unknown
