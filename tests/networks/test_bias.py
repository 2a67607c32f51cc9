"""Networks with biases, z = W α + β b: every part, held against autograd and wide networks."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import entry_error, gradient_angle, infinite_width_ntk
from ntkcond.ntk.rank import rank_bound
from ntkcond.run.errors import UserError
from ntkcond.training.descent import descend
from small_networks import autograd_ntk

BETA = 0.7


def network(activation: str, depth: int, width: float = 8, **more) -> MLP:
    return MLP(ACTIVATIONS[activation], depth, width, bias=BETA, **more)


@pytest.mark.parametrize("trainable", ["all", "first"])
@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_ntk_is_that_of_autograd(activation, depth, trainable, device):
    """Also of linear networks, by their factor."""
    mlp = network(activation, depth, trainable=trainable)
    x = np.random.default_rng(0).standard_normal((9, 5))
    weights = mlp.weights(3, 5)
    expected = autograd_ntk(x, weights, activation, trainable, BETA)
    gradients = mlp.gradients([put(w, device) for w in weights])
    assert np.allclose(to_numpy(empirical_ntk(gradients(put(x, device)))), expected, rtol=1e-12)


def test_weights_are_those_without_biases_and_a_column_more():
    with_bias = network("relu", 2).weights(1, 5, 3)
    without = dataclasses.replace(network("relu", 2), bias=0.0).weights(1, 5, 3)
    for w, plain in zip(with_bias, without, strict=True):
        assert np.array_equal(w[:, :-1], plain)
        assert w.shape[1] == plain.shape[1] + 1
    count = sum(w.size for w in with_bias)
    assert network("relu", 2).weight_count(5, 3) == count
    assert MLP(ACTIVATIONS["tanh"], 0, 6).weight_count(3, 2) == 3 * 2
    biases = np.concatenate([network("relu", 1, 4000).weights(1, 5)[0][:, -1]])
    assert abs(biases.mean()) < 0.05
    assert abs(biases.std() - 1) < 0.05


@pytest.mark.parametrize("activation", ["relu", "relu2", "tanh"])
@pytest.mark.parametrize("trainable", ["all", "first"])
def test_wide_networks_approach_the_ntk_at_infinite_width(activation, trainable):
    """The difference falls as 1/√m, over seeds."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((6, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[1] = x[0] + 0.05 * x[2]
    x[1] /= np.linalg.norm(x[1])
    limit = infinite_width_ntk(x, network(activation, 2, math.inf, trainable=trainable))
    off = []
    for width in (100, 1600):
        mlp = network(activation, 2, width, trainable=trainable)
        kernels = [empirical_ntk(mlp.initial_gradients(seed, 4)(x)) for seed in range(12)]
        off.append(abs(np.mean(kernels, axis=0) - limit).max() / abs(limit).max())
    assert off[1] < (0.12 if activation == "relu2" else 0.05)  # whose variance is larger
    assert off[1] < off[0]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_infinite_width_is_the_recursion_of_jacot_et_al(depth):
    """Theorem 1 with biases, for ReLU, from scratch and in float64."""
    theta = np.linspace(0.01, 3.1, 40)
    dot, norm = np.cos(theta), 1.0
    kernel = dot + BETA**2
    for _ in range(depth):
        q = norm + BETA**2
        rho = (dot + BETA**2) / q
        angle = np.arccos(rho)
        dot = q * (np.sin(angle) + (np.pi - angle) * rho) / np.pi
        kernel = kernel * (1 - angle / np.pi) + dot + BETA**2
        norm = q
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    x = np.vstack([[1.0, 0.0], x])
    computed = infinite_width_ntk(x, network("relu", depth, math.inf))
    assert np.allclose(computed[0, 1:], kernel, rtol=1e-12)
    assert computed[0, 0] == pytest.approx(sum(1 + (k + 1) * BETA**2 for k in range(depth + 1)))
    phi = gradient_angle(theta, network("relu", depth, math.inf))
    assert np.allclose(np.cos(phi), kernel / computed[0, 0], rtol=1e-10)
    assert entry_error(network("relu", depth, math.inf), 2) < 1e-12
    with pytest.raises(UserError, match=r"ReLU with biases at infinite width.*norm 1"):
        infinite_width_ntk(2 * x, network("relu", depth, math.inf))


def test_rank_counts_rays_only_without_biases():
    x = np.array([[1, 2], [2, 4], [3, 1], [0, 0]], dtype=np.float32)
    plain = dataclasses.replace(network("relu", 1, 100), bias=0.0)
    assert rank_bound(x, plain) == 2
    assert rank_bound(x, network("relu", 1, 100)) == 4
    affine = network("linear", 1, 100)
    assert rank_bound(x, affine) == 3  # of the columns 1, x₁, x₂
    kernel = empirical_ntk(affine.initial_gradients(1, 2)(x.astype(np.float64)))
    assert np.linalg.matrix_rank(kernel) == 3


def test_descent_moves_biases(device):
    mlp = network("relu", 1, 20)
    x = np.random.default_rng(0).standard_normal((6, 3))
    y = np.sign(np.arange(6) - 2.5)
    weights = mlp.weights(1, 3)
    c = math.sqrt(normalisation(mlp.activation) / 20)
    v, w = (torch.tensor(part, requires_grad=True) for part in weights)
    h = c * torch.relu(torch.tensor(x) @ v[:, :-1].T + BETA * v[:, -1])
    f = h @ w[0, :-1] + BETA * w[0, -1]
    (0.5 * (f - torch.tensor(y)).square().sum()).backward()
    moved = [put(part.copy(), device) for part in weights]
    steps = descend(put(x, device), put(y, device), moved, mlp, 0.01)
    first = next(steps)
    assert first.norm == pytest.approx(float((f - torch.tensor(y)).norm()))
    next(steps)
    for before, after, tracked in zip(weights, moved, (v, w), strict=True):
        assert np.allclose(to_numpy(after), before - 0.01 * tracked.grad.numpy(), rtol=1e-10)
