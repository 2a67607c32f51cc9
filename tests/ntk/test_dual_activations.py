"""Activations at infinite width: quadrature against closed forms, SciPy, Monte Carlo, the digest's
check values, neural-tangents and wide finite networks."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import erf, eval_hermitenorm, factorial
from scipy.stats import multivariate_normal

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.networks.gaussian import hermite_coefficients, moment, normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.dual_activations import _by_quadrature, dual
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import gradient_angle, infinite_width_ntk, products
from ntkcond.ntk.rounding import gradients_with_error
from ntkcond.run.errors import UserError
from small_networks import mlp
from workflow import ROOT

THETA = np.linspace(0, np.pi, 41)
RHO = np.cos(THETA)
# The same functions as the registry's, as strangers whose closed forms nobody knows.
ERF = Activation("erf", erf, lambda z: 2 / np.pi**0.5 * np.exp(-z * z))
CUBE = Activation("cube", lambda z: z**3, lambda z: 3 * z**2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_are_those_of_autograd(activation, device):
    sigma, z = ACTIVATIONS[activation], np.linspace(-6, 6, 2000)  # none at a kink
    tensor = torch.tensor(z).requires_grad_()
    sigma.value(tensor).sum().backward()
    slope, value = to_numpy(sigma.slope(put(z, device))), to_numpy(sigma.value(put(z, device)))
    np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(value, sigma.value(tensor).detach().numpy(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "wrong", [lambda z: 1.01 * np.cos(z), lambda z: np.where(z > 5.9, 2, np.cos(z))]
)
def test_a_wrong_slope_is_refused_before_a_kernel_is_computed(wrong):
    right = Activation("sine", np.sin, np.cos, kinks=())
    network = MLP(right, depth=1, width=8)
    weights = network.initial_weights(1, 3)
    assert gradients_with_error(network, weights)(np.eye(3))
    network = MLP(dataclasses.replace(right, slope=wrong), depth=1, width=8)
    with pytest.raises(UserError, match=r"activation 'sine': its slope at .* values rise by"):
        gradients_with_error(network, weights)(np.eye(3))


@pytest.mark.parametrize(
    ("activation", "c", "chi"),
    [("relu", 2.0, 1.0), ("linear", 1.0, 1.0), ("relu2", 0.6667, 1.333), ("gelu", 2.3517, 1.072),
     ("tanh", 2.5362, 1.178), ("sigmoid", None, 0.153)],
)  # fmt: skip
def test_normalisations_are_the_papers(activation, c, chi):
    sigma = ACTIVATIONS[activation]
    assert dual(sigma).gain == pytest.approx(chi, abs=6e-4)
    assert normalisation(sigma) == pytest.approx(1 / moment(sigma.value), rel=1e-14)
    if c is not None:
        assert normalisation(sigma) == pytest.approx(c, abs=6e-5)


def test_moments_are_exact():
    assert moment(lambda z: z**4) == pytest.approx(105, rel=1e-14)
    assert moment(erf) == pytest.approx(2 / np.pi * np.arcsin(2 / 3), rel=1e-14)
    assert moment(lambda z: z.clip(0)) == pytest.approx(0.5, rel=1e-14)


def test_hermite_coefficients_are_those_of_scipy():
    coefficients = hermite_coefficients(np.tanh, 8)
    for k, coefficient in enumerate(coefficients):

        def weighted(z, k=k):
            h = eval_hermitenorm(k, z) / np.sqrt(factorial(k))
            return np.tanh(z) * h * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

        assert coefficient == pytest.approx(quad(weighted, -15, 15, epsabs=1e-13)[0], abs=1e-12)


def value(its, theta=THETA):
    """c E[σ(u) σ(v)]."""
    return np.cos(its.turn(theta))


def slope(its, theta=THETA):
    """c E[σ′(u) σ′(v)]."""
    return its.gain - its.loss(theta)


def test_series_are_the_closed_forms():
    """erf: Williams (1997); z³: E[u³v³] = 6ρ³ + 9ρ, of 15."""
    erf = dual(ERF)
    c = np.pi / 2 / np.arcsin(2 / 3)
    assert value(erf) == pytest.approx(c * 2 / np.pi * np.arcsin(2 * RHO / 3), abs=1e-14)
    assert slope(erf) == pytest.approx(c * 4 / np.pi / np.sqrt(9 - 4 * RHO**2), rel=1e-13)
    cube = dual(CUBE)
    assert value(cube) == pytest.approx((6 * RHO**3 + 9 * RHO) / 15, abs=1e-14)
    assert max(*erf.error, *cube.error) < 1e-13


@pytest.mark.parametrize("activation", ["relu", "relu2"])
def test_quadrature_of_a_stranger_with_a_kink_is_the_closed_form(activation):
    known = ACTIVATIONS[activation]
    stranger, closed = dual(Activation("stranger", known.value, known.slope)), dual(known)
    theta = np.concatenate([THETA, np.geomspace(1e-12, 1, 50)])
    assert closed.error == (0, 0)
    assert max(stranger.error) < 1e-12
    assert np.abs(stranger.turn(theta) - closed.turn(theta)).max() <= stranger.error[0]
    assert np.abs(stranger.loss(theta) - closed.loss(theta)).max() <= stranger.error[1]


@pytest.mark.parametrize("name", ["tanh", "gelu"])
def test_quadrature_and_series_of_a_smooth_activation_agree(name):
    series, other = dual(ACTIVATIONS[name]), _by_quadrature(ACTIVATIONS[name])
    turn, loss = np.add(series.error, other.error)
    assert np.abs(series.turn(THETA) - other.turn(THETA)).max() <= turn < 2e-11
    assert np.abs(series.loss(THETA) - other.loss(THETA)).max() <= loss < 2e-11


# jumps of σ′ away from 0
HARD_TANH = Activation("hard tanh", lambda z: z.clip(-1, 1), lambda z: 1.0 * (abs(z) < 1))


def test_kinks_are_named_or_cost_accuracy_that_the_error_tells(caplog):
    """E[σ′(u) σ′(v)] is a probability, by SciPy; E[σσ′] by Price's theorem is its integral."""
    named = dual(dataclasses.replace(HARD_TANH, kinks=(-1.0, 1.0)))
    assert max(named.error) < 1e-10 and not caplog.records
    nameless = dual(HARD_TANH)
    assert "If it or a derivative of it jumps, name the points: Activation.kinks" in caplog.text
    c = normalisation(HARD_TANH)
    inside = [
        c * multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([1, 1], lower_limit=[-1, -1])
        for rho in (-0.9, 0.0, 0.5, 0.99)
    ]
    theta = np.arccos([-0.9, 0.0, 0.5, 0.99])
    assert slope(named, theta) == pytest.approx(inside, abs=1e-7)
    off = np.abs(nameless.loss(THETA) - named.loss(THETA)).max()
    assert 1e-7 < off <= nameless.error[1]


# φ in degrees at θ_in = 5°, computed independently of this package
PHI = {
    "relu2": {1: 6.5, 2: 8.2, 5: 14.7, 10: 32.2, 20: 82.7, 50: 90},
    "gelu": {1: 5.8, 2: 6.6, 5: 8.8, 10: 12.7, 20: 21.8, 50: 61.5},
    "tanh": {1: 6.0, 2: 7.0, 5: 10.4, 10: 17.9, 20: 41.6, 50: 89.6},
}


@pytest.mark.parametrize("activation", PHI)
def test_gradient_angles_have_the_check_values(activation):
    for depth, phi in PHI[activation].items():
        angle = gradient_angle(np.radians(5), mlp(activation, depth))
        assert np.degrees(angle) == pytest.approx(phi, abs=0.06)


def test_angles_of_relu_are_those_of_the_papers_sum():
    """Eq. 10: cos φ = 1/(L+1) Σₗ cos θˡ Πₗ′ (1 − θˡ′/π), its angles by arccos."""
    theta = np.radians(np.linspace(1, 179, 90))
    for depth in (0, 1, 4, 30):
        angles = [theta]
        for _ in range(depth):
            t = angles[-1]
            angles.append(np.arccos(((np.pi - t) * np.cos(t) + np.sin(t)) / np.pi))
        total = sum(
            np.cos(angles[k]) * np.prod([1 - a / np.pi for a in angles[k:-1]], axis=0)
            for k in range(depth + 1)
        )
        phi = gradient_angle(theta, mlp("relu", depth))
        assert np.cos(phi) == pytest.approx(total / (depth + 1), abs=1e-13)


def test_the_scale_of_the_weights_changes_no_angle_of_a_homogeneous_network():
    theta = np.radians(np.linspace(1, 179, 20))
    for activation, largest in (("relu", 1e-7), ("linear", 1e-7), ("tanh", np.inf)):
        network = mlp(activation, 5)
        angles = [gradient_angle(theta, network, variance) for variance in (0.01, 1.0, 10.0)]
        assert np.ptp(angles, axis=0).max() < largest
    assert np.ptp(angles, axis=0).max() > 1  # tanh


@pytest.mark.parametrize("variance", [0.25, 4.0])
def test_weights_of_another_variance_are_those_of_a_wide_network(variance):
    """tanh, two hidden layers, W = √variance times N(0, 1); gradients with respect to W."""
    tanh = mlp("tanh", 2, 1024)
    rho = 0.6
    x = np.array([[1.0, 0.0], [rho, (1 - rho**2) ** 0.5]])
    kernels = []
    for seed in range(16):
        weights = [variance**0.5 * w for w in tanh.weights(seed, 2)]
        kernels.append(empirical_ntk(tanh.layer_gradients(x, weights)))
    error = np.std(kernels, axis=0, ddof=1) / 4
    mean = np.mean(kernels, axis=0)
    for place, correlation in (((0, 0), 1.0), ((0, 1), rho)):
        square, deficit, _ = products(np.arccos(correlation), mlp("tanh", 2), variance)
        expected = square - deficit
        assert mean[place] == pytest.approx(expected, abs=6 * error[place])
        assert error[place] < 0.05 * expected


REFERENCE = ROOT / "tests/reference/neural_tangents.json"


def test_ntks_are_those_of_neural_tangents():
    """tests/reference/make_neural_tangents.py made the file, in an environment of its own."""
    stored = json.loads(REFERENCE.read_text("utf-8"))
    x = np.array(stored["x"])
    assert {entry["activation"] for entry in stored["kernels"]} == {"relu", "linear", "erf", "gelu"}
    for entry in stored["kernels"]:
        activation = {**ACTIVATIONS, "erf": ERF}[entry["activation"]]
        kernel = infinite_width_ntk(x, MLP(activation, entry["depth"], math.inf))
        assert kernel == pytest.approx(np.array(entry["kernel"]), rel=1e-10)
