"""The linearised NTK, held against the NTK itself and against closed forms of its constants."""

import math

import numpy as np
import pytest

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.linearised import (
    gaussian_kappa,
    linearised,
    linearised_ntk,
    mean_cosine,
    predicted_kappa,
)
from ntkcond.run.errors import UserError

RELU, LINEAR = (MLP(ACTIVATIONS[name], 1, math.inf) for name in ("relu", "linear"))


def kappa(kernel: np.ndarray) -> float:
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low


def test_constants_of_one_hidden_layer():
    """k(ρ) = ((1 − θ/π) 2ρ + sin θ/π)/2 by hand: k(0) = 1/2π, k′(0) = 1/2."""
    about = linearised(0.0, RELU)
    assert about.mean == pytest.approx(1 / (2 * math.pi), rel=1e-12)
    assert about.slope == pytest.approx(0.5, rel=1e-6)
    assert about.lift == pytest.approx(0.5 - 1 / (2 * math.pi), rel=1e-6)
    theta = math.acos(0.3)
    by_hand = 1 - theta / math.pi + 0.3 / (2 * math.pi * math.sin(theta))
    assert linearised(0.3, RELU).slope == pytest.approx(by_hand, rel=1e-6)
    straight = linearised(0.3, LINEAR)
    assert straight[1:] == pytest.approx((0.3, 1, 0), abs=1e-6)


def test_mean_cosine_is_that_of_all_pairs():
    x = np.random.default_rng(0).standard_normal((7, 4))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(7, 1)]
    assert mean_cosine(x) == pytest.approx(cosines.mean())


@pytest.mark.parametrize("depth", [1, 3, 10])
@pytest.mark.parametrize("offset", [0.0, 0.3, 1.0, 3.0])
def test_kappa_of_gaussian_samples(offset, depth):
    """Of the linearised NTK and of the formula without samples, ReLU and linear."""
    n, d = 200, 500
    x = np.random.default_rng(1).standard_normal((n, d)) + offset
    network = MLP(ACTIVATIONS["relu"], depth, math.inf)
    exact = kappa(infinite_width_ntk(x, network))
    assert kappa(linearised_ntk(x, network)) == pytest.approx(exact, rel=0.03)
    assert gaussian_kappa(n, d, offset, network) == pytest.approx(exact, rel=0.15)
    assert predicted_kappa(x, network) == pytest.approx(exact, rel=0.03)
    assert gaussian_kappa(n, d, offset, LINEAR) == pytest.approx(kappa(x @ x.T), rel=0.15)


@pytest.mark.parametrize("distance", [0.3, 0.1, 0.03])
def test_kappa_of_samples_in_pairs_follows_from_the_closest(distance):
    rng = np.random.default_rng(2)
    x = np.repeat(rng.standard_normal((100, 300)), 2, axis=0)
    x += distance * rng.standard_normal(x.shape)
    exact = kappa(infinite_width_ntk(x, RELU))
    assert predicted_kappa(x, RELU) == pytest.approx(exact, rel=0.3)
    assert kappa(linearised_ntk(x, RELU)) < 0.5 * exact  # it alone knows of no pair


def test_what_it_is_not_known_for_is_refused():
    x = np.random.default_rng(0).standard_normal((5, 4))
    tanh = MLP(ACTIVATIONS["tanh"], 1, math.inf)
    for samples, network in ((x[:1], RELU), (x * [[0], [1], [1], [1], [1]], RELU), (x, tanh)):
        with pytest.raises(UserError, match="the linearised NTK"):
            predicted_kappa(samples, network)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert linearised_ntk(unit, tanh).diagonal() == pytest.approx(1)
    assert predicted_kappa(np.repeat(x, 2, axis=0), RELU) > 1e15  # a repeated sample


def test_where_relu_helps_of_gaussian_samples():
    """The sign of κ(ReLU) − κ(linear) over n/d and the offset, but near the line."""
    d, right, tried = 300, 0, 0
    for size in (0.1, 0.3, 0.5, 0.7, 0.9):
        for offset in (0.0, 0.1, 0.3, 1.0):
            n = round(size * d)
            x = np.random.default_rng(3).standard_normal((n, d)) + offset
            exact = kappa(infinite_width_ntk(x, RELU)) / kappa(x @ x.T)
            formula = gaussian_kappa(n, d, offset, RELU) / gaussian_kappa(n, d, offset, LINEAR)
            if abs(math.log(exact)) > math.log(1.3):
                tried += 1
                right += (exact < 1) == (formula < 1)
    assert tried >= 14
    assert right == tried
