"""Certificates that were false once, each with its exact value (`adversarial`)."""

import contextlib

import numpy as np
import pytest
import torch
from adversarial import Largest, ends_of, exactly, module_kernel, network_case, network_kernel
from torch import Tensor, nn

import ntkcond
from ntkcond.library import perturbation
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import Spectrum
from ntkcond.ntk.measure import measure


def assert_holds(computed: Spectrum, exact) -> None:
    """The exact κ, of a kernel in decimals, is in the interval of κ."""
    kappa = float(ends_of(exact, to_the_end=True).kappa)
    assert computed.kappa_lower <= kappa * (1 + 1e-12)
    assert kappa * (1 - 1e-12) <= computed.kappa_upper


@pytest.mark.parametrize("scale", [1e-150, 1e-160, 1e-300])
def test_a_kernel_that_underflows_is_never_called_singular(scale):
    """κ is 9 at every scale."""
    x = scale * np.diag([1.0, 2.0, 3.0])
    computed = ntkcond.condition_number(nn.Linear(3, 1, bias=False), x)
    assert computed.verdict == ("resolved" if scale == 1e-150 else "unresolved")
    assert computed.kappa_lower <= 9 * (1 + 1e-12)
    assert computed.kappa_upper >= 9 * (1 - 1e-12)
    one_tiny = ntkcond.condition_number(nn.Linear(3, 1, bias=False), np.diag([1.0, 1.0, scale]))
    assert one_tiny.verdict == "unresolved"


def test_a_deep_network_whose_gradients_underflow_is_never_called_singular():
    """Some rows of K are zero in float64, where no layer is dead."""
    x = np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    network = MLP(ACTIVATIONS["relu2"], 10, 64)
    verdicts = [row["verdict"] for row in measure(x, network, [8], 1, range(12))]
    assert "singular" not in verdicts
    kernel = network_kernel(network, network.weights(0, 5), x.astype(np.float64)[:2])
    assert min(kernel.diagonal()) > 0
    zero = np.zeros_like(x)  # a sample of zeros has no gradient, whatever rounding does
    for row in measure(np.vstack([x[:7], zero[:1]]), network, [8], 1, range(2)):
        assert row["verdict"] == "singular"


@pytest.mark.parametrize("activation", ["relu", "relu2", "tanh", "sigmoid", "gelu"])
@pytest.mark.parametrize("scale", [1e-170, 1e4])
def test_factors_or_slopes_that_underflow_are_no_proof_of_a_zero_gradient(activation, scale):
    """Of the first layer: δ αᵀ may underflow where δ and α do not, and so do saturated slopes."""
    network = MLP(ACTIVATIONS[activation], 1, 3, trainable="first")
    x = scale * np.array([[1.0, 0.5], [0.25, 1.0]])
    case = network_case(network, [abs(w) for w in network.weights(0, 2)], x)
    computed = case.spectrum()
    assert computed.verdict != "singular"
    assert_holds(computed, case.exact)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, 1e12])
def test_offsets_in_a_few_samples_before_a_normalisation_are_in_the_error(offset):
    torch.manual_seed(0)
    module = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1)).double()
    x = np.random.default_rng(3).standard_normal((16, 6))
    x[3] = x[2] + 1e-2 * np.random.default_rng(4).standard_normal(6)
    x[2:4] += offset
    kernel = ntkcond.kernel(module, x)
    off = (exactly(kernel.matrix) - module_kernel(module, x)).astype(np.float64)
    assert np.linalg.norm(off, 2) <= kernel.error
    computed = ntkcond.condition_number(kernel)
    assert_holds(computed, lambda: module_kernel(module, x))
    assert computed.grade == "estimated"
    assert computed.verdict == ("resolved" if offset <= 1e8 else "unresolved")


@pytest.mark.parametrize("seed", range(2))
def test_knots_at_the_samples_leave_the_verdict_open(seed):
    """b = −w·x: rounding decides on which side of ReLU's kink a preactivation falls."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 3))
    module = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).double()
    with torch.no_grad():
        module[0].bias.copy_(-(module[0].weight @ torch.from_numpy(x).T).diagonal())
    computed = ntkcond.condition_number(module, x)
    assert (computed.verdict, computed.kinks > 0) == ("unresolved", True)
    assert "within rounding of a kink" in str(computed)
    assert_holds(computed, lambda: module_kernel(module, x))


@pytest.mark.parametrize("norm", [1, 100, 300, 1000])
def test_the_rounding_of_a_saturated_tanh_is_within_its_bound(norm):
    network = MLP(ACTIVATIONS["tanh"], 2, 8)
    for seed in range(2):
        x = np.random.default_rng(seed).standard_normal((4, 10))
        x *= norm / np.linalg.norm(x, axis=1, keepdims=True)
        weights = network.weights(seed, 10)
        case = network_case(network, weights, x)
        computed = case.spectrum()
        kernel = ntkcond.empirical_ntk(network.layer_gradients(x, weights))
        off = (exactly(kernel) - network_kernel(network, weights, x)).astype(np.float64)
        for grade in ("proved", "model"):
            error = computed.kernel_error.bounds[grade].norm(computed.extremes.largest[1])
            assert np.linalg.norm(off, 2) <= error
        assert_holds(computed, case.exact)


CHOICES = ["max", "amax", "topk", "sort", "maximum", "max_pool1d"]


def tied(how: str, seed: int) -> tuple[nn.Module, Tensor]:
    """A module that chooses the larger of each pair, and samples of which one has one pair that is
    equal but for rounding."""
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(8, 64), Largest(how), nn.Linear(32, 1)).double()
    x = torch.randn(16, 8, dtype=torch.float64)
    pair = module[0]
    with torch.no_grad():
        pair.bias[5] = pair.bias[4] + (pair.weight[4] @ x[3] - pair.weight[5] @ x[3])
    return module, x


@pytest.mark.parametrize("how", CHOICES)
def test_one_tie_in_a_large_module_leaves_the_verdict_open(how):
    for seed in range(2):
        computed = ntkcond.condition_number(*tied(how, seed))
        assert computed.kinks and computed.verdict == "unresolved"


def test_ties_are_decided_the_other_way_since_random_errors_may_leave_them(monkeypatch):
    monkeypatch.setattr(perturbation, "_chooses", lambda args: False)
    verdicts = set()
    for seed in range(20):
        with contextlib.suppress(ntkcond.UserError):  # where halves of a batch decide otherwise
            verdicts.add(ntkcond.condition_number(*tied("max_pool1d", seed)).verdict)
    assert "resolved" in verdicts


def test_ties_of_equal_patches_leave_the_gradient_as_it_is():
    torch.manual_seed(0)
    x = torch.zeros(8, 1, 16, 16, dtype=torch.float64)
    x[:, :, 5:9, 5:9] = torch.randn(8, 1, 4, 4)
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 49, 1)
    ).double()
    computed = ntkcond.condition_number(module, x)
    assert computed.verdict == "resolved" and not computed.kinks
