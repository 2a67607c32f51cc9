"""Operators against autograd's Jacobians, and what products say of the spectrum."""

import copy

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import eigsh
from test_every_layer import Calls
from test_of_module import CASES, jacobian
from torch import Tensor, nn

import ntkcond


def mlp(outputs: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, outputs)
    )


def near(computed: Tensor, expected: Tensor) -> bool:
    return bool((computed - expected).abs().max() <= 1e-12 * expected.abs().max())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_product_is_that_of_the_jacobian(case):
    torch.manual_seed(0)
    module, x = case()
    module.eval()
    x = x[:9]
    j = jacobian(module, x)
    n, k, p = j.shape
    before = copy.deepcopy(module.state_dict())
    one, every = j[:, -1], j.reshape(n * k, p)
    w, u = torch.randn(p, dtype=torch.float64), torch.randn(n * k, 2, dtype=torch.float64)
    J = ntkcond.jacobian(module, x, output="all", batch=4)
    assert J.shape == (n * k, p) and J.T.shape == (p, n * k)
    assert near(J @ w, every @ w) and near(J.T @ u, every.T @ u)
    assert near((J @ J.T) @ u, every @ (every.T @ u))
    wanted = {
        k - 1: one @ one.T,
        "trace": torch.einsum("iap,jap->ij", j, j),
        "all": every @ every.T,
    }
    for output, matrix in wanted.items():
        K = ntkcond.ntk_operator(module, x, output=output, batch=4)
        v = torch.randn(len(matrix), dtype=torch.float64)
        assert near(K @ v, matrix @ v)
        assert near(K.diag(), matrix.diagonal())
        assert K.trace() == pytest.approx(float(matrix.trace()), rel=1e-12)
        some = ntkcond.ntk_operator(module, x[:5], x[3:], output=output)
        each = k if output == "all" else 1
        part = matrix[: 5 * each, 3 * each :]
        assert some.shape == part.shape
        assert near(some @ v[: part.shape[1]], part @ v[: part.shape[1]])
        assert near(some.T @ v[: len(part)], part.T @ v[: len(part)])
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


class Twice(torch.autograd.Function):
    """z², without a forward mode."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z**2

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


class Once(Twice):
    """z², differentiable once and backwards alone."""

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


class Wrong(torch.autograd.Function):
    """z², with a forward-mode derivative that forgets the factor 2."""

    @staticmethod
    def forward(z):
        return z**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    backward = Twice.backward

    @staticmethod
    def jvp(ctx, along):
        return ctx.saved_tensors[0] * along


def square(function: type[torch.autograd.Function]) -> Calls:
    return Calls(lambda self, x: function.apply(self.layer(x)).sum(1), layer=nn.Linear(5, 3))


@pytest.mark.parametrize("function", [Twice, Wrong])
def test_without_a_right_forward_mode_an_operation_is_differentiated_twice_backwards(function):
    torch.manual_seed(0)
    module, x = square(function), torch.randn(6, 5)
    J, v = ntkcond.jacobian(module, x), torch.randn(6, dtype=torch.float64)
    assert J.network.along.__name__ == "_twice_backwards"
    assert near((J @ J.T) @ v, torch.from_numpy(ntkcond.kernel(module, x).matrix) @ v)


def test_an_operation_that_is_differentiable_once_goes_sample_by_sample():
    torch.manual_seed(0)
    module, x = square(Once), torch.randn(6, 5)
    J, v = ntkcond.jacobian(module, x), torch.randn(6, dtype=torch.float64)
    assert near((J @ J.T) @ v, torch.from_numpy(ntkcond.kernel(module, x).matrix) @ v)


def masked(w: Tensor) -> None:
    w.mul_(torch.arange(5) < 3)


def normalised(w: Tensor) -> None:
    w.div_(w.norm(dim=1, keepdim=True))


def signed(w: Tensor) -> None:
    w.copy_(w.sign())


@pytest.mark.parametrize("change", [masked, normalised, signed])
def test_weights_may_be_changed_in_place_before_they_are_used(change):
    """Forward mode makes the same change in the vector."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            change(self.layer.weight)
        return self.last(torch.tanh(self.layer(x)))

    torch.manual_seed(0)
    module = Calls(forward, layer=nn.Linear(5, 8), last=nn.Linear(8, 1)).double()
    x = torch.randn(6, 5, dtype=torch.float64)
    module(x)
    rows = [torch.autograd.grad(module(x[[i]]), list(module.parameters())) for i in range(6)]
    expected = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    J, w = ntkcond.jacobian(module, x), torch.randn(expected.shape[1], dtype=torch.float64)
    before, u = w.clone(), torch.randn(6, dtype=torch.float64)
    assert near(J @ w, expected @ before) and torch.equal(w, before)
    assert near(J.T @ u, expected.T @ u)
    assert near(ntkcond.ntk_operator(module, x) @ u, expected @ (expected.T @ u))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_may_be_off_where_it_is_called(mode):
    x = torch.randn(6, 5)
    expected = ntkcond.ntk_operator(mlp(), x).to_dense()
    with mode():
        inside = torch.randn(6, 5)
        K = ntkcond.ntk_operator(mlp(), x)
        assert torch.equal(K.to_dense(), expected) and K.trace() > 0
        assert near(torch.from_numpy(ntkcond.kernel(mlp(), x).matrix), expected)
        assert ntkcond.kernel(mlp(), inside).matrix.shape == (6, 6)
    assert torch.equal(K.to_dense(), expected)


def test_vectors_keep_their_kind_and_their_type():
    x = torch.randn(7, 5)
    K = ntkcond.ntk_operator(mlp(), x)
    dense = K.to_dense()
    assert near(dense, torch.from_numpy(ntkcond.kernel(mlp(), x).matrix))
    v = np.arange(7.0)
    assert isinstance(K @ v, np.ndarray) and np.allclose(K @ v, dense.numpy() @ v, rtol=1e-12)
    assert (K @ np.arange(7)).dtype == np.float64
    single = K @ torch.ones(7)
    assert single.dtype == torch.float32
    assert torch.allclose(single, dense.sum(1).float(), rtol=1e-5)
    assert (K @ torch.ones(7, 3, dtype=torch.float64)).shape == (7, 3)
    assert (K @ torch.ones(7, 0)).shape == (7, 0)
    low = ntkcond.ntk_operator(mlp(), x, dtype=torch.float32)
    assert low.to_dense().dtype == torch.float32
    assert torch.allclose(low.to_dense().double(), dense, rtol=1e-3, atol=1e-4)


def test_a_function_and_chosen_parameters_have_operators():
    module, x = mlp().double(), torch.randn(6, 5, dtype=torch.float64)
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def f(params: dict, sample: Tensor) -> Tensor:
        return torch.func.functional_call(module, params, (sample,))

    K = ntkcond.ntk_operator(f, x, params=weights, parameters=["2", "4.bias"])
    expected = ntkcond.kernel(module, x, parameters=["2", "4.bias"]).matrix
    assert near(K.to_dense(), torch.from_numpy(expected))
    assert ntkcond.jacobian(module, x, parameters=["4.bias"]).shape == (6, 1)


def test_later_changes_of_module_and_samples_do_not_change_the_operator():
    module, x = mlp(), torch.randn(6, 5, dtype=torch.float64)
    K, v = ntkcond.ntk_operator(module, x), torch.ones(6, dtype=torch.float64)
    before = K @ v
    with torch.no_grad():
        module[0].weight.mul_(2)
    x.mul_(2)
    assert torch.equal(K @ v, before)


def test_scipys_solvers_take_it():
    x = torch.randn(40, 5)
    K = ntkcond.ntk_operator(mlp(), x)
    values = eigsh(K.to_scipy(), k=3, return_eigenvectors=False)
    assert np.allclose(np.sort(values), np.linalg.eigvalsh(K.to_dense().numpy())[-3:], rtol=1e-9)
    J = ntkcond.jacobian(mlp(), x).to_scipy()
    assert np.allclose(J.rmatvec(np.ones(40)), J.H @ np.ones(40), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 60])
def test_extreme_eigenvalues_lie_where_they_are_said_to(n):
    x = torch.randn(n, 5)
    K = ntkcond.ntk_operator(mlp(), x)
    exact = np.linalg.eigvalsh(K.to_dense().numpy())
    largest, smallest = K.largest_eigenvalue(), K.smallest_eigenvalue()
    assert largest.value == pytest.approx(exact[-1], rel=1e-7)
    assert largest.low <= exact[-1] <= largest.high == pytest.approx(K.trace())
    assert abs(largest.value - exact[-1]) <= largest.residual + 1e-12 * exact[-1]
    assert smallest.low == 0 and exact[0] <= smallest.high
    few = K.smallest_eigenvalue(products=10, tolerance=1e-12)
    assert exact[0] <= few.high <= exact[-1]


def test_the_density_has_the_moments_of_the_eigenvalues():
    """Within five standard errors; each probe's weights add up to 1."""
    x = torch.randn(60, 5)
    K = ntkcond.ntk_operator(mlp(), x)
    exact = np.linalg.eigvalsh(K.to_dense().numpy())
    density = K.density(probes=40, steps=30)
    assert np.allclose(density.weights.sum(1), 1)
    for power in (1, 2, 3):
        moment = density.moment(power)
        assert abs(moment.value - np.mean(exact**power)) < 5 * moment.standard_error
    share = density.share_below(float(np.median(exact)))
    assert abs(share.value - 0.5) < 5 * share.standard_error + 1 / 30
    grid = np.linspace(-20, exact[-1] * 1.2, 4000)
    total = density.smoothed(grid, 2.0).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1, abs=1e-3)
    whole = ntkcond.ntk_operator(mlp(), x[:5]).density(probes=2, steps=30)  # ends early
    assert np.allclose(whole.weights.sum(1), 1)


def test_the_estimated_trace_is_within_its_error_and_repeatable():
    K = ntkcond.ntk_operator(mlp(), torch.randn(50, 5))
    for seed in range(5):
        estimate = K.estimated_trace(seed=seed)
        assert abs(estimate.value - K.trace()) < 5 * estimate.standard_error < 0.1 * K.trace()
    assert K.estimated_trace() == K.estimated_trace()
    between = ntkcond.ntk_operator(mlp(), torch.randn(6, 5), torch.randn(2, 5))
    assert repr(between) == "NTKOperator(6 × 2, float64 on cpu, of Sequential)"
