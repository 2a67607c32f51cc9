"""Kernels of two sets of samples, of functions, in float32, as tensors, without a certificate."""

import math
import warnings

import numpy as np
import pytest
import torch
from test_of_module import CASES, jacobian
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import ntkcond
from ntkcond.ntk.of_module import condition_number, kernel
from ntkcond.run.errors import UserError


@pytest.mark.parametrize("memory", [2e9, 4e6])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_kernel_of_two_sets_is_that_of_their_jacobians(case, memory):
    torch.manual_seed(0)
    module, x = case()
    module.eval()
    if memory < 1e9 and case.__name__ in ("resnet18", "recurrent"):
        pytest.skip("as slow as test_of_module's, and in parts like the others")
    rows, columns = x[:9], x[7:]
    j = jacobian(module, x)
    j1, j2 = j[:9], j[7:]
    k = j.shape[1]
    wanted = {
        k - 1: j1[:, -1] @ j2[:, -1].T,
        "trace": torch.einsum("iap,jap->ij", j1, j2),
        "all": torch.einsum("iap,jbp->iajb", j1, j2).reshape(9 * k, -1),
    }
    norms = {
        k - 1: j[:, -1].norm(dim=1),
        "trace": j.flatten(1).norm(dim=1),
        "all": j.norm(dim=2).flatten(),
    }
    for output, expected in wanted.items():
        ntk = kernel(module, rows, columns, output=output, memory=memory)
        each = k if output == "all" else 1
        scale = torch.outer(norms[output][: 9 * each], norms[output][7 * each :])
        off = (torch.from_numpy(ntk.matrix) - expected).abs() / scale
        assert off.max() < 1e-12
        assert np.linalg.norm(ntk.matrix - expected.numpy()) <= ntk.error
        bare = kernel(module, rows, columns, output=output, memory=memory, certify=False)
        assert np.allclose(bare.matrix, ntk.matrix, rtol=1e-11, atol=1e-11 * float(scale.max()))


def mlp(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 1)
    )


def test_the_error_of_two_sets_follows_a_badly_rounding_one():
    """Held against the exact product: the module is linear in its weights."""

    class Cancels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(((x * 1e-4 + 1e4) - 1e4) * 1e4)

    x = torch.randn(20, 4, dtype=torch.float64)
    ntk = kernel(Cancels(), x[:12], x[12:])
    off = np.linalg.norm(ntk.matrix - (x[:12] @ x[12:].T).numpy())
    assert 1e-9 < off < ntk.error < 1e4 * off


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


def test_mistakes_are_refused_with_the_fix():
    x = torch.randn(8, 5)
    loader = DataLoader(TensorDataset(x))
    with pytest.raises(UserError, match=r"x is a DataLoader.*torch\.cat"):
        kernel(mlp(), loader)
    with pytest.raises(UserError, match="x2 is a DataLoader"):
        kernel(mlp(), x, loader)
    with pytest.raises(UserError, match=r"x and x2 must be samples of one shape"):
        kernel(mlp(), x, torch.randn(3, 4))
    with pytest.raises(UserError, match=r"x2 has NaN or infinite entries, first in sample 1"):
        kernel(mlp(), x, torch.tensor([[0.0] * 5, [math.nan] * 5]))
    with pytest.raises(UserError, match=r"f\(params, sample\) needs params="):
        kernel(lambda params, sample: sample.sum(), x)
    with pytest.raises(UserError, match="a module has its own"):
        kernel(mlp(), x, params={})
    with pytest.raises(UserError, match="params has a float at b"):
        kernel(lambda params, sample: sample.sum(), x, params={"a": x, "b": 1.0})
    with pytest.raises(UserError, match="or of a function, not of a dict"):
        kernel({}, x)
    with pytest.raises(UserError, match=r"torch\.float64 or"):
        kernel(mlp(), x, dtype=torch.bfloat16)
    with torch.autocast("cpu"), pytest.raises(UserError, match="autocast lowers the precision"):
        kernel(mlp(), x)
    two = kernel(mlp(), x, x)
    for function in (condition_number, ntkcond.closest_pair):
        with pytest.raises(UserError, match="of two sets of samples"):
            function(two)
    with pytest.raises(ValueError, match="x has the shape"):
        kernel(mlp(), x[:1])


def test_a_gradient_that_is_not_finite_is_named_in_either_set():
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1, bias=False)

        def forward(self, z: Tensor) -> Tensor:
            return self.layer(z).abs().sqrt()

    x = torch.randn(5, 3)
    bad = torch.cat([x[:2], torch.zeros(1, 3)])
    with pytest.raises(UserError, match="gradient of sample 2 is NaN"):
        kernel(Root(), bad, x)
    with pytest.raises(UserError, match="gradient of sample 2 of x2 is NaN"):
        kernel(Root(), x, bad)


def test_a_kernel_says_what_it_is_in_a_line():
    x = torch.randn(8, 5)
    assert repr(kernel(mlp(), x)).startswith("Kernel(8 × 8, float64, error ")
    assert "no certificate" in repr(kernel(mlp(), x, x[:3], certify=False, as_tensor=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_no_warning_reaches_the_user(case):
    torch.manual_seed(0)
    module, x = case()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(module.eval(), x[:6], output=0)
