"""Kernels of two sets of samples, of functions, in float32, as tensors, without a certificate."""

import math

import numpy as np
import pytest
import torch
from test_every_layer import Calls
from torch import Tensor, nn

import ntkcond
from ntkcond.library import of_module
from ntkcond.library.of_module import condition_number, kernel
from ntkcond.ntk.eigenvalues import spectrum
from ntkcond.run.errors import UserError
from one_device import OneDevice


def mlp(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 1)
    )


def test_the_error_follows_a_module_that_rounds_badly():
    """Held against the exact product: the module is linear in its weights."""
    layer, x = nn.Linear(4, 1, bias=False), torch.randn(20, 4, dtype=torch.float64)
    module = Calls(lambda self, z: self.layer(((z * 1e-4 + 1e4) - 1e4) * 1e4), layer=layer)
    for one, other in ((x, x), (x[:12], x[12:])):
        ntk = kernel(module, one) if other is x else kernel(module, one, other)
        off = np.linalg.norm(ntk.matrix - (one @ other.T).numpy())
        assert 1e-9 < off < ntk.error < 1e4 * off


def test_a_large_spectrum_is_computed_on_the_device_of_its_matrix(monkeypatch):
    x = torch.randn(2001, 3000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    matrix = x @ x.T
    matrix = (matrix + matrix.T) / 2
    on_host = condition_number(matrix)
    monkeypatch.setattr(of_module, "HOST", ())
    given: list = []
    monkeypatch.setattr(
        of_module, "spectrum", lambda k, *rest: given.append(k) or spectrum(k, *rest)
    )
    with OneDevice():
        on_device = condition_number(matrix.to(torch.device("cpu")))
    assert given[0].on_device
    assert on_device.kappa_lower <= on_host.kappa <= on_device.kappa_upper


def test_a_single_sample_may_be_held_against_many():
    x = torch.randn(6, 5, dtype=torch.float64)
    whole = kernel(mlp(), x).matrix
    assert np.allclose(kernel(mlp(), x, x[2:3]).matrix, whole[:, 2:3], rtol=1e-12)


def test_a_function_of_params_and_a_sample_has_the_kernel_of_its_module():
    module, x = mlp().double(), torch.randn(8, 5, dtype=torch.float64)
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def f(params: dict, sample: Tensor) -> Tensor:
        return torch.func.functional_call(module, params, (sample,))

    ntk, expected = kernel(f, x, params=weights), kernel(module, x)
    assert np.allclose(ntk.matrix, expected.matrix, rtol=1e-12)
    assert ntk.rank_bound == expected.rank_bound
    assert set(ntk.layerwise) == weights.keys()
    some = kernel(f, x, params=weights, parameters=["0", "4.bias"])
    assert np.allclose(
        some.matrix, kernel(module, x, parameters=["0", "4.bias"]).matrix, rtol=1e-12
    )
    both = condition_number(f, x, params=weights), condition_number(module, x)
    assert both[0].kappa == pytest.approx(both[1].kappa, rel=1e-6)


def test_params_may_be_nested_and_a_function_may_have_several_outputs():
    torch.manual_seed(0)
    params = {
        "layers": [{"w": torch.randn(4, 3)}, {"w": torch.randn(2, 4)}],
        "scale": torch.ones(()),
    }
    x = torch.randn(7, 3)

    def f(params: dict, sample: Tensor) -> Tensor:
        first, second = params["layers"]
        return params["scale"] * (second["w"] @ torch.tanh(first["w"] @ sample))

    ntk = kernel(f, x, x[:3], params=params, output="all")
    assert set(ntk.layerwise) == {"layers.0.w", "layers.1.w", "scale"}
    double = {"layers": [{"w": p["w"].double()} for p in params["layers"]], "scale": torch.ones(())}
    rows = []
    for sample in x.double():
        by_name = torch.func.jacrev(f)(double, sample)
        leaves = [by_name["layers"][0]["w"], by_name["layers"][1]["w"], by_name["scale"]]
        rows.append(torch.cat([leaf.reshape(2, -1) for leaf in leaves], 1))
    j = torch.cat(rows)
    assert np.allclose(ntk.matrix, (j @ j[:6].T).numpy(), rtol=1e-6)  # scale is float32 there


@pytest.mark.parametrize("seed", range(3))
def test_float32_has_an_error_that_holds_and_is_no_more_than_needed(seed):
    x = torch.randn(40, 5)
    exact = kernel(mlp(seed), x)
    single = kernel(mlp(seed), x, dtype=torch.float32)
    assert single.matrix.dtype == np.float32
    off = np.linalg.norm(single.matrix.astype(np.float64) - exact.matrix)
    assert off + exact.error < single.error < 2000 * off
    assert single.error > 1e5 * exact.error
    verdict = condition_number(single)
    assert verdict.verdict == "unresolved" or (
        verdict.kappa_lower <= condition_number(exact).kappa <= verdict.kappa_upper
    )


def test_a_tensor_comes_back_on_the_modules_device_and_is_taken_again():
    x = torch.randn(8, 5)
    as_array, as_tensor = kernel(mlp(), x), kernel(mlp(), x, as_tensor=True)
    assert isinstance(as_tensor.matrix, Tensor)
    assert np.array_equal(as_tensor.matrix.numpy(), as_array.matrix)
    assert condition_number(as_tensor).kappa == condition_number(as_array).kappa
    assert ntkcond.closest_pair(as_tensor) == ntkcond.closest_pair(as_array)


def test_without_a_certificate_no_verdict_is_given():
    x = torch.randn(8, 5)
    bare = kernel(mlp(), x, certify=False)
    assert math.isnan(bare.error) and bare.grade == "none"
    assert np.allclose(bare.matrix, kernel(mlp(), x).matrix, rtol=1e-13)
    with pytest.raises(UserError, match="certify=False"):
        condition_number(bare)
    assert condition_number(bare.matrix, error=1e-9).verdict == "resolved"


def test_a_kernel_says_what_it_is_in_a_line():
    x = torch.randn(8, 5)
    assert repr(kernel(mlp(), x)).startswith("Kernel(8 × 8, float64, error ")
    assert "no certificate" in repr(kernel(mlp(), x, x[:3], certify=False, as_tensor=True))
