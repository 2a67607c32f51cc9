"""Gradient descent: against autograd and torch.optim.SGD; its bound where theory says it holds."""

import math
from itertools import islice

import numpy as np
import pytest
import torch

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.training.descent import descend, signs
from small_networks import SIGMA, C, inputs, mlp, weights_of

X = inputs(9, 5)
Y = np.random.default_rng(1).choice([-1.0, 1.0], 9)


def initial(depth: int, width: int, device: Device = "cpu") -> list[Array]:
    """Weights of its own for each descent, which changes them."""
    return weights_of(3, depth, width, 5, device)


def path_of(x: Array, y: Array, weights: list[Array], network: MLP, rate: float, count: int):
    """‖f(X) − y‖ before each of so many steps."""
    return [state.norm for state in islice(descend(x, y, weights, network, rate), count)]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 3])
def test_steps_are_those_of_autograd(activation, depth, device):
    rate = 1e-7 if activation == "relu2" else 1e-3  # whose outputs are large
    x, y, weights = put(X, device), put(Y, device), initial(depth, 16, device)
    norms = path_of(x, y, weights, mlp(activation, depth, 16), rate, 6)
    weights = [torch.tensor(w).requires_grad_() for w in initial(depth, 16)]
    optimiser = torch.optim.SGD(weights, lr=rate)
    expected = []
    for _ in range(6):
        alpha = torch.tensor(X)
        for w in weights[:-1]:
            alpha = math.sqrt(C[activation] / 16) * SIGMA[activation](alpha @ w.T)
        residual = (alpha @ weights[-1].T).squeeze(1) - torch.tensor(Y)
        expected.append(residual.norm().item())
        optimiser.zero_grad()
        (residual.square().sum() / 2).backward()
        optimiser.step()
    assert norms == pytest.approx(expected, rel=1e-10)
    assert norms[-1] < norms[0]


def test_a_model_that_is_linear_in_its_weights_keeps_the_bound_and_ends_on_its_rate():
    """L = 0: f = W x, whose NTK never changes."""
    x = X[:4]
    eigenvalues = np.linalg.eigvalsh(x @ x.T)
    bound = 1 - eigenvalues[0] / eigenvalues[-1]
    rate = 1 / eigenvalues[-1]
    path = path_of(x, Y[:4], initial(0, 1), mlp("relu", 0, 1), rate, 400)
    steps = np.arange(400)
    assert (np.array(path) <= path[0] * bound**steps * (1 + 1e-9)).all()
    assert path[200] / path[199] == pytest.approx(bound, rel=1e-3)


def test_every_label_set_of_two_classes_or_more_has_both_signs():
    rng = np.random.default_rng(0)
    for _ in range(500):
        n, classes = rng.integers(2, 40), rng.integers(2, 6)
        labels = rng.choice(classes, n, p=rng.dirichlet(np.full(classes, 0.5)))
        if len(np.unique(labels)) == 1:
            continue
        y = signs(labels)
        assert set(y) == {-1.0, 1.0}
        assert labels[y < 0].max() < labels[y > 0].min()
        above = labels > np.median(labels)
        if above.any():
            assert (y > 0).tolist() == above.tolist()


def test_the_median_itself_is_above_where_no_label_is():
    assert signs(np.array([0, 1, 1])).tolist() == [-1, 1, 1]
    assert signs(np.array([3, 5, 4, 5, 5])).tolist() == [-1, 1, -1, 1, 1]
