"""The linearised NTK, held against the NTK itself and against closed forms of its constants."""

import math

import numpy as np
import pytest

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.networks.zero_mean import less_its_mean
from ntkcond.ntk.dual_activations import dual
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.linearised import linearised, linearised_ntk, mean_cosine, predicted_kappa
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
    n, d = 200, 500
    x = np.random.default_rng(1).standard_normal((n, d)) + offset
    network = MLP(ACTIVATIONS["relu"], depth, math.inf)
    exact = kappa(infinite_width_ntk(x, network))
    assert kappa(linearised_ntk(x, network)) == pytest.approx(exact, rel=0.03)
    assert predicted_kappa(x, network) == pytest.approx(exact, rel=0.03)


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


def test_where_the_linearised_ntk_has_the_kappa_of_the_inputs():
    """Of samples whose first eigenvector is the mean: exactly at 1 + n μ/s."""
    n, c = 40, 0.3
    about = linearised(c, RELU)
    above = about.lowers_above(n)
    for factor, relation in ((0.9, 1), (1.0, 0), (1.1, -1)):
        spread = np.linspace(1, 2, n - 1)  # eigenvalues beside that of the mean
        low = spread[0] * (1 + (n - 1) * c) / (factor * above * spread[0])
        values = np.array([1 + (n - 1) * c, *(low * spread)])
        basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0]
        cosines = basis * values @ basis.T
        kernel = about.mean + about.slope * (cosines - c) + about.lift * np.eye(n)
        change = kappa(kernel) / kappa(cosines) - 1
        assert abs(change) < 1e-9 if relation == 0 else np.sign(change) == relation
    assert linearised(0.9, RELU).lowers_above(n) == 1  # no mean mode: it lowers any κ
    for cosine in (0.0, 0.3, 0.9, 0.999):  # no lift: it lowers none
        assert linearised(cosine, LINEAR).lowers_above(n) == math.inf


def test_without_its_mean_relu_has_this_closed_form():
    """c E[σ(u) σ(v)] = (J₁ − 1)/(π − 1), J₁ = sin θ + (π − θ) cos θ (Cho and Saul 2009)."""
    theta = np.linspace(0, math.pi, 25)
    closed = (np.sin(theta) + (math.pi - theta) * np.cos(theta) - 1) / (math.pi - 1)
    shifted = less_its_mean(ACTIVATIONS["relu"])
    np.testing.assert_allclose(np.cos(dual(shifted).turn(theta)), closed, atol=1e-12)
    assert normalisation(shifted) == pytest.approx(1 / (1 / 2 - 1 / (2 * math.pi)), rel=1e-12)


@pytest.mark.parametrize("depth", [1, 4])
def test_without_a_mean_the_eigenvalues_stay_within_those_of_the_cosines(depth):
    """Schur's theorem, of K less its b₁ C: what is left is a sum of entrywise powers from 2 on."""
    x = np.random.default_rng(4).standard_normal((30, 40))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    network = MLP(less_its_mean(ACTIVATIONS["relu"]), depth, math.inf)
    kernel = infinite_width_ntk(x, network)
    low, high = np.linalg.eigvalsh(kernel / kernel[0, 0])[[0, -1]]
    least, most = np.linalg.eigvalsh(x @ x.T)[[0, -1]]
    assert least < low < 1 < high < most
    assert kernel[0, 0] == pytest.approx(np.diag(kernel))
    orthonormal = infinite_width_ntk(np.eye(5), network)
    assert np.abs(orthonormal - np.diag(np.diag(orthonormal))).max() < 1e-10  # no mean mode
