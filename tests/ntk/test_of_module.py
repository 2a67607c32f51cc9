"""The NTK of any module, held against torch.func's Jacobians in float64."""

import copy
import doctest
import math
import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional

import ntkcond
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import backward_rules, per_sample_gradients
from ntkcond.ntk.differentiated import Differentiated
from ntkcond.ntk.of_module import closest_pair, condition_number, kernel
from ntkcond.ntk.per_sample_gradients import Explicit, Gradients
from ntkcond.run.errors import UserError


class Residual(nn.Module):
    """ResNet's basic block."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(short, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        h = self.relu(self.norms[0](self.first(x)))
        h = self.norms[1](self.second(h))
        h += self.shortcut(x)
        return self.relu(h)


class Transformer(nn.Module):
    """A block with tied embeddings; attention uses its weights without calling a layer."""

    def __init__(self, words: int = 11, width: int = 8, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=batch_first)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight
        self.position = 1 if batch_first else 0

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens if self.position else tokens.T)
        h = h + self.attention(h, h, h, need_weights=False)[0]
        h = h + self.mlp(self.norm(h))
        return self.head(h.mean(self.position))


class Reused(nn.Module):
    """A layer that is called twice, and one whose weight is used without a call."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.also = nn.Linear(6, 6), nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        return self.scale * (functional.linear(h, self.also.weight) + self.also(x)).sum(1)


class Branching(nn.Module):
    """What torch.func cannot transform."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([(row @ self.weight) ** (3 if row[0].item() > 0 else 2) for row in x])


def mlp() -> tuple[nn.Module, Tensor]:
    layers = nn.Linear(7, 30), nn.ReLU(), nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 3)
    return nn.Sequential(*layers), torch.randn(20, 7)


def cnn() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), nn.ReLU(inplace=True),
        nn.Conv2d(8, 8, (3, 2), dilation=(1, 2)), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4 * 4, 2),
    ), torch.randn(18, 4, 12, 12)  # fmt: skip


def resnet18() -> tuple[nn.Module, Tensor]:
    """ResNet-18 of a sixteenth of its width, with statistics as after training."""
    widths = (4, 4, 8, 16, 32)
    stages = zip(widths[:-1], widths[1:], (1, 2, 2, 2), strict=True)
    blocks = [
        block
        for inputs, outputs, stride in stages
        for block in (Residual(inputs, outputs, stride), Residual(outputs, outputs, 1))
    ]
    module = nn.Sequential(
        nn.Conv2d(3, 4, 7, 2, padding=3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 3),
    )  # fmt: skip
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(std=0.1)
            part.running_var.uniform_(0.5, 2)
    return module, torch.randn(16, 3, 32, 32)


def paddings() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same", padding_mode="circular"), nn.GroupNorm(2, 4), nn.ELU(),
        nn.Conv2d(4, 6, 4, padding=(1, 2), padding_mode="reflect", groups=2, bias=False),
        nn.LayerNorm([7, 9]), nn.GELU(), nn.Conv2d(6, 6, 3, padding="same", dilation=2, groups=6),
        nn.Flatten(), nn.Linear(6 * 63, 1),
    ), torch.randn(16, 3, 8, 8)  # fmt: skip


def transformer() -> tuple[nn.Module, Tensor]:
    return Transformer(), torch.randint(0, 11, (16, 5))


def sequence_first() -> tuple[nn.Module, Tensor]:
    """As many samples as positions, which come first in every layer."""
    return Transformer(batch_first=False), torch.randint(0, 11, (16, 16))


def reused() -> tuple[nn.Module, Tensor]:
    return Reused(), torch.randn(16, 6)


def branching() -> tuple[nn.Module, Tensor]:
    return Branching(), torch.randn(16, 5)


def recurrent() -> tuple[nn.Module, Tensor]:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.lstm(x)[0][:, -1])

    return Last(), torch.randn(16, 6, 3)


CASES = (mlp, cnn, resnet18, paddings, transformer, sequence_first, reused, branching, recurrent)


def jacobian(module: nn.Module, x: Tensor) -> Tensor:
    """(n, k, P), by torch.func; by autograd, sample by sample, of what it cannot transform."""
    module = copy.deepcopy(module).double()
    x = x.double() if x.is_floating_point() else x
    parameters = dict(module.named_parameters())

    def outputs(weights: dict, sample: Tensor) -> Tensor:
        return functional_call(module, weights, (sample[None],))[0].reshape(-1)

    if isinstance(module, Branching) or any(isinstance(m, nn.LSTM) for m in module.modules()):
        rows = [
            torch.cat(
                [g.reshape(len(g), -1) for g in jacrev(outputs)(parameters, sample).values()], 1
            )
            if not isinstance(module, Branching)
            else torch.autograd.grad(outputs(parameters, sample), [*parameters.values()])[0][None]
            for sample in x
        ]
        return torch.stack(rows).detach()
    by_name = vmap(jacrev(outputs), (None, 0))(parameters, x)
    return torch.cat([part.reshape(*part.shape[:2], -1) for part in by_name.values()], 2).detach()


@pytest.mark.parametrize("memory", [2e9, 4e6])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_kernel_is_that_of_the_jacobian(case, memory):
    torch.manual_seed(0)
    module, x = case()
    module.eval()
    j = jacobian(module, x)
    n, k, _ = j.shape
    before = copy.deepcopy(module.state_dict())
    wanted = {
        k - 1: j[:, -1] @ j[:, -1].T,
        "trace": torch.einsum("iap,jap->ij", j, j),
        "all": torch.einsum("iap,jbp->iajb", j, j).reshape(n * k, n * k),
    }
    for output, expected in wanted.items():
        ntk = kernel(module, x, output=output, memory=memory)
        norms = expected.diagonal().sqrt()
        off = (torch.from_numpy(ntk.matrix) - expected).abs() / torch.outer(norms, norms)
        assert off.max() < 1e-12
        assert np.array_equal(ntk.matrix, ntk.matrix.T)
        assert np.linalg.norm(ntk.matrix - expected.numpy(), 2) <= ntk.error
        assert {*ntk.layerwise, *ntk.by_jacobian} == dict(module.named_parameters()).keys()
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_wrong_rule_is_found_out(monkeypatch):
    """The check against autograd: a rule that forgets half of the gradient gives no kernel."""
    torch.manual_seed(0)
    module, x = mlp()
    expected = kernel(module, x, output=0).matrix

    def wrong(meeting: backward_rules.Meeting) -> Gradients | None:
        gradients = backward_rules.addmm(meeting)
        return Explicit(gradients.values / 2) if isinstance(gradients, Explicit) else gradients

    monkeypatch.setitem(backward_rules.RULES, "AddmmBackward0", wrong)
    ntk = kernel(module, x, output=0)
    assert set(ntk.by_jacobian) == {"0.bias", "2.bias", "4.bias"}
    assert np.allclose(ntk.matrix, expected, rtol=1e-13)


@pytest.mark.parametrize("activation", ["relu", "tanh", "linear"])
def test_kernel_of_the_papers_network_as_a_module_is_that_of_its_factors(activation):
    """z = √(c/m) W α: the workflow's networks, without biases."""
    network = MLP(ACTIVATIONS[activation], depth=3, width=40)
    weights = network.weights(seed=1, features=6)
    x = np.random.default_rng(0).standard_normal((24, 6))
    scale = math.sqrt(normalisation(network.activation) / 40)
    function = {"relu": torch.relu, "tanh": torch.tanh, "linear": lambda z: z}[activation]

    class Papers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(*w.shape[::-1], bias=False) for w in weights)
            for layer, w in zip(self.layers, weights, strict=True):
                layer.weight.data = torch.from_numpy(w)

        def forward(self, h: Tensor) -> Tensor:
            for layer in self.layers[:-1]:
                h = scale * function(layer(h))
            return self.layers[-1](h)

    ntk = kernel(Papers(), x)
    expected = ntkcond.empirical_ntk(network.initial_gradients(1, 6)(x))
    assert np.allclose(ntk.matrix, expected, rtol=1e-12)
    assert ntk.by_jacobian == ()


def test_chosen_parameters():
    torch.manual_seed(0)
    module, x = mlp()
    parts = [kernel(module, x, output=0, parameters=[name]) for name in ("0", "2", "4")]
    whole = kernel(module, x, output=0)
    assert parts[0].layerwise == ("0.weight", "0.bias")
    assert np.allclose(sum(part.matrix for part in parts), whole.matrix, rtol=1e-13)
    for p in module[0].parameters():
        p.requires_grad_(False)
    frozen = kernel(module, x, output=0).matrix
    assert np.allclose(frozen, parts[1].matrix + parts[2].matrix, rtol=1e-13)
    with pytest.raises(UserError, match=r"no parameter '1'. It has 0.weight, 0.bias"):
        kernel(module, x, output=0, parameters=["1"])


def test_condition_number_and_its_verdicts():
    torch.manual_seed(0)
    module, x = mlp()
    computed = condition_number(module, x, output=0)
    eigenvalues = np.linalg.eigvalsh(kernel(module, x, output=0).matrix)
    assert computed.verdict == "resolved"
    assert computed.kappa == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-9)
    assert computed.kappa_lower < computed.kappa < computed.kappa_upper
    assert str(computed).startswith("κ = ")
    repeated = condition_number(module, torch.cat([x, x[:1]]), output=0)
    assert (repeated.verdict, repeated.kappa) == ("singular", math.inf)
    assert str(repeated).startswith("κ = ∞: the rank is at most 20")
    few = condition_number(nn.Linear(3, 1), torch.randn(10, 3))
    assert (few.verdict, few.rank_bound) == ("singular", 4)
    close = condition_number(module, torch.cat([x.double(), x[:1].double() + 1e-9]), output=0)
    assert (close.verdict, close.kappa_upper) == ("unresolved", math.inf)
    assert "lost in rounding" in str(close)


def test_condition_number_of_a_matrix():
    a = np.random.default_rng(0).standard_normal((12, 20))
    assert condition_number(a @ a.T).kappa == pytest.approx(np.linalg.cond(a @ a.T))
    planted = a @ a.T - 8 * np.eye(12)
    with pytest.raises(UserError, match=r"no NTK: λ_min = -.* positive semi-definite"):
        condition_number(planted)
    for matrix, words in (
        (a, "shape"), (np.full((3, 3), np.nan), "NaN"), (np.triu(np.ones((3, 3))), "symmetric"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=words):
            condition_number(matrix)
    with pytest.raises(UserError, match="needs samples"):
        condition_number(nn.Linear(2, 1))


def test_closest_pair_of_a_kernel():
    torch.manual_seed(0)
    module, x = mlp()
    x[7] = x[3] + 0.01
    module[0].bias.data.zero_()
    pair = closest_pair(kernel(module, x, output=0))
    assert (pair.first, pair.second, pair.vanished) == (3, 7, 0)
    j = jacobian(module, x)[:, 0]
    unit = j / j.norm(dim=1, keepdim=True)
    expected = math.degrees(2 * math.asin((unit[3] - unit[7]).norm() / 2))
    assert pair.angle_deg == pytest.approx(expected, abs=1e-5)
    with pytest.raises(UserError, match="fewer than two"):
        closest_pair(np.diag([1.0, 0.0]))


class Odd(nn.Module):
    """What kernel refuses, by what it does."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.layer, self.what = nn.Linear(3, 1), what

    def forward(self, x: Tensor) -> Tensor | dict:
        f = self.layer(x)
        match self.what:
            case "random":
                return f + torch.rand(len(x), 1)
            case "mixing":
                return f - f.mean(0)
            case "nan":
                return f / 0 * 0
            case "dictionary":
                return {"logits": f}
            case "reduced":
                return f.mean()
            case "whole":
                return f.long()
            case "constant":
                return x.sum(1)
        return f


REFUSED = {
    "random": (Odd("random"), "changes from call to call"),
    "mixing": (Odd("mixing"), "depends on the others of its batch"),
    "nan": (Odd("nan"), "output has NaN"),
    "dictionary": (Odd("dictionary"), "gives a dict: wrap it"),
    "reduced": (Odd("reduced"), r"must be \(4, …\)"),
    "whole": (Odd("whole"), "of real numbers"),
    "constant": (Odd("constant"), "does not depend on the chosen parameters"),
    "lazy": (nn.LazyLinear(1), "weight has no shape yet"),
    "shape": (nn.Linear(4, 1), r"fails on samples of shape \(4, 3\)"),
    "batch norm": (nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)), r"0 \(BatchNorm1d\) uses"),
    "own statistics": (
        nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 1)).eval(),
        "track_running_stats=True",
    ),
    "dropout": (nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.1)), r"1 \(Dropout\) is on"),
    "complex": (nn.Linear(3, 1, dtype=torch.complex64), "weight is complex"),
    "outputs": (nn.Linear(3, 2), "has 2 outputs: say which"),
    "no parameters": (nn.Identity(), "no parameter of the module requires a gradient"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_module_without_an_ntk_is_refused_with_the_reason(what):
    module, words = REFUSED[what]
    with pytest.raises(UserError, match=words):
        kernel(module, torch.randn(6, 3))


def test_bad_samples_and_options_are_refused():
    module, x = nn.Linear(3, 2), torch.randn(6, 3)
    for wrong, words in (
        (x[:1], "two samples or more"),
        (torch.zeros(5, 0), "two samples or more"),
        (None, "an array of numbers"),
        (["a", "b"], "an array of numbers"),
        (x.index_fill(0, torch.tensor([4]), math.nan), "first in sample 4"),
        (x.to(torch.complex64), "complex"),
    ):
        with pytest.raises(UserError, match=words):
            kernel(module, wrong, output=0)
    for output in (2, -1, "sum", 0.0, True):
        with pytest.raises(UserError, match="it must be 0 to 1, 'trace' or 'all'"):
            kernel(module, x, output=output)
    with pytest.raises(UserError, match="more than memory="):
        kernel(module, x, output=0, memory=100)
    with pytest.raises(UserError, match="parameters is empty"):
        kernel(module, x, output=0, parameters=[])
    for matrix in ("K", np.eye(2) * 1j):
        with pytest.raises(UserError, match="matrix of real numbers"):
            condition_number(matrix)
    with pytest.raises(UserError, match="neither samples nor options"):
        condition_number(np.eye(2), memory=1e9)


def test_the_error_bound_follows_a_module_that_rounds_badly():
    """Between two large numbers that cancel, rounding is far above that of any layer."""

    class Cancels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = x * 1e-4 + 1e4
            return self.layer((h - 1e4) * 1e4)

    torch.manual_seed(0)
    x = torch.randn(20, 4, dtype=torch.float64)
    module = Cancels().double()
    exact = nn.Linear(4, 1).double()
    exact.load_state_dict(module.layer.state_dict())
    rough, fine = kernel(module, x), kernel(exact, x)
    assert rough.error > 1000 * fine.error
    assert np.linalg.norm(rough.matrix - fine.matrix, 2) < rough.error


class Hidden(nn.Module):
    """Samples that depend on each other, or on chance, below a head of zeros; `sorted`: samples
    that do not, but are computed in another order."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.layer, self.head, self.what = nn.Linear(3, 6), nn.Linear(6, 1), what
        nn.init.zeros_(self.head.weight)

    def forward(self, z: Tensor) -> Tensor:
        order = z[:, 0].argsort() if self.what == "sorted" else torch.arange(len(z))
        h = torch.tanh(self.layer(z[order]))[order.argsort()]
        if self.what == "mixing":
            h = h - h.mean(0)
        elif self.what == "random":
            h = functional.dropout(h, 0.5)
        elif self.what == "capacity":
            h = torch.cat([h[:8], 0 * h[8:]])
        return self.head(h)


def twelve_samples() -> Tensor:
    """The first four in the order of their first entry already."""
    torch.manual_seed(0)
    x = torch.randn(12, 3)
    x[:4, 0] = torch.tensor([-9.0, -8.0, -7.0, -6.0])
    return x


@pytest.mark.parametrize("what", ["mixing", "random", "capacity"])
def test_dependence_that_outputs_do_not_show_is_found(what):
    x = twelve_samples()
    with pytest.raises(UserError, match=r"depends on the other|changes from call"):
        kernel(Hidden(what), x)


def test_a_layer_that_sees_the_samples_in_another_order_has_its_kernel():
    """Its gradients belong to other samples than it seems; those of the first four do not."""
    x, module = twelve_samples(), Hidden("sorted")
    nn.init.ones_(module.head.weight)
    plain = Hidden("")
    plain.load_state_dict(module.state_dict())
    ntk, expected = kernel(module, x), kernel(plain, x)
    assert set(ntk.by_jacobian) == {"layer.weight", "layer.bias"}
    assert np.allclose(ntk.matrix, expected.matrix, rtol=1e-12)


class Asks(nn.Module):
    """One linear layer, by what else it does."""

    def __init__(self, what: str = "") -> None:
        super().__init__()
        self.layer, self.what = nn.Linear(3, 1), what

    def forward(self, z: Tensor) -> Tensor:
        match self.what:
            case "float32":
                return functional.linear(z.float(), self.layer.weight.float()).double()
            case "float64":
                return functional.linear(z.double(), self.layer.weight, self.layer.bias)
            case "some":  # samples that use no weight
                rows = [self.layer(r) if r[0].item() > 0 else r.sum(0, keepdim=True) for r in z]
                return torch.stack(rows)
        return self.layer(z)


def test_a_module_that_rounds_to_float32_inside_has_its_error():
    torch.manual_seed(0)
    x = torch.randn(12, 3, dtype=torch.float64)
    rough, fine = kernel(Asks("float32"), x), (x @ x.T).numpy()
    assert 1e-9 < np.linalg.norm(rough.matrix - fine, 2) < rough.error < 1e-3


def test_a_module_that_insists_on_float64_and_samples_without_a_gradient():
    torch.manual_seed(0)
    x = torch.randn(12, 3, dtype=torch.float64)
    fine = (x @ x.T + 1).numpy()
    assert np.allclose(kernel(Asks("float64"), x).matrix, fine, rtol=1e-12)
    used = (x[:, 0] > 0).numpy()
    assert np.allclose(kernel(Asks("some"), x).matrix, fine * np.outer(used, used), rtol=1e-12)


def test_samples_and_options_in_other_forms():
    torch.manual_seed(0)
    x, module = torch.randn(12, 3, dtype=torch.float64), Asks()
    expected = kernel(module, x).matrix
    backwards = kernel(module, x.numpy()[::-1], output=np.int64(0), parameters="layer")
    assert np.allclose(backwards.matrix[::-1, ::-1], expected, rtol=1e-12)
    tied = Transformer()
    tokens = torch.randint(0, 11, (6, 5))
    named = (kernel(tied, tokens, output=0, parameters=[word]) for word in ("head", "embedding"))
    assert np.array_equal(*(ntk.matrix for ntk in named))


def test_the_error_of_a_matrix_is_stated_or_that_of_its_type():
    matrix = np.diag([1.0, 2.0])
    assert condition_number(matrix).error < 1e-14
    assert condition_number(matrix).grade == "proved"
    assert 1e-7 < condition_number(matrix.astype(np.float32)).error < 1e-6
    assert 1e-7 < condition_number(torch.tensor(matrix).float().requires_grad_()).error < 1e-6
    assert condition_number(matrix, error=3.0).verdict == "unresolved"
    for wrong in (-0.5, math.nan):
        with pytest.raises(UserError, match=f"error={wrong}: a bound on the norm of an error is"):
            condition_number(matrix, error=wrong)
    assert 1e-3 < condition_number(torch.eye(2, dtype=torch.bfloat16)).error < 1e-1


def test_whole_numbers_that_float64_rounds_are_within_the_error():
    large = 2**60
    exact = mpmath.eigsy(mpmath.matrix([[large + 1, large], [large, large]]), eigvals_only=True)[0]
    found = condition_number(np.array([[large + 1, large], [large, large]]))
    assert found.error > 2**7  # an entry's rounding
    assert abs(found.lambda_min - exact) <= found.error


def test_products_of_factors_in_bands_are_those_in_one(monkeypatch):
    torch.manual_seed(0)
    module, x = cnn()
    whole = kernel(module, x, output=0).matrix
    monkeypatch.setattr(per_sample_gradients, "BAND_ENTRIES", 1)
    assert np.allclose(kernel(module, x, output=0).matrix, whole, rtol=1e-12)


def test_what_a_review_found():
    """Each gave a wrong kernel, or a traceback."""
    torch.manual_seed(0)
    x = torch.randn(8, 3, dtype=torch.float64)
    kept = x.clone()
    kernel(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1)), x)
    assert torch.equal(x, kept)

    class Closure(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope, self.layer = nn.Parameter(torch.tensor(0.3)), nn.Linear(3, 1)
            self.act = lambda z: torch.where(z > 0, z, self.slope * z)

        def forward(self, z: Tensor) -> Tensor:
            return self.act(self.layer(z))

    with pytest.raises(UserError, match="a weight that a copy of it does not own"):
        kernel(Closure(), x)

    class Rotated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("turn", torch.polar(torch.ones(3), torch.arange(3.0)))
            self.layer = nn.Linear(3, 1, bias=False)

        def forward(self, z: Tensor) -> Tensor:
            return self.layer((z * self.turn).imag)

    module = Rotated().double()
    features = (x * module.turn.to(torch.complex128)).imag
    assert np.allclose(kernel(module, x).matrix, (features @ features.T).numpy(), rtol=1e-6)

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2, bias=False)

        def forward(self, z: Tensor) -> Tensor:
            return self.layer(z).abs().sqrt()

    for output in (1, "trace", "all"):
        with pytest.raises(UserError, match="the gradient of sample 7 is NaN or infinite"):
            kernel(Root(), torch.cat([x[:7], torch.zeros(1, 3)]), output=output)
    assert closest_pair(kernel(nn.Linear(3, 1, bias=False), torch.stack([x[0], -x[0]]))).first == 0
    with pytest.raises(UserError, match="below zero on its diagonal"):
        closest_pair(np.diag([-1.0, 1.0]))


def test_outputs_and_gradients_may_be_zero():
    """x xᵀ and 1 of a head of zeros; nothing at all of samples of zeros."""
    head, x = nn.Linear(3, 1), torch.eye(3)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    assert np.array_equal(kernel(head, x).matrix, np.eye(3) + 1)
    nothing = kernel(nn.Linear(3, 1, bias=False), torch.zeros(4, 3))
    assert not nothing.matrix.any()
    assert nothing.error < 1e-300
    assert nothing.rank_bound == 1


def test_gradients_stay_within_their_memory():
    """By counting the samples that are differentiated at once."""
    torch.manual_seed(0)
    module, x = cnn()
    differentiated = Differentiated(module, [name for name, _ in module.named_parameters()])
    differentiated.check(x[:4].double())
    of_parts, of_all = (
        differentiated.samples_at_once(outputs=1, memory=memory, n=1000) for memory in (1e6, 1e12)
    )
    assert of_all == (1000, 1000)
    at_once, kept = of_parts
    assert 1 <= at_once < kept < 200


@pytest.mark.parametrize("name", sorted(set(ntkcond.__all__) - {"ACTIVATIONS", "UserError"}))
def test_the_example_of_each_public_name_runs(name):
    shown = getattr(ntkcond, name)
    if name in ("Kernel", "Spectrum"):  # which functions give
        assert shown.__doc__
        return
    (example,) = doctest.DocTestFinder(recurse=False).find(shown, name)
    assert example.examples
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_the_public_names_are_those_of_the_stub_and_load_lazily():
    stub = Path(ntkcond.__file__).with_suffix(".pyi").read_text("utf-8")
    imports = re.findall(r"from ntkcond\.(\S+) import (\w+) as \2\n", stub)
    declared = {name: module for module, name in imports}
    assert declared == {name: ntkcond._PUBLIC[name] for name in ntkcond.__all__}
    for name in ntkcond.__all__:
        assert getattr(ntkcond, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'kappa'"):
        ntkcond.kappa  # noqa: B018
    loaded = "import sys, ntkcond; print(*sorted(set(sys.modules) & {'torch', 'numpy', 'scipy'}))"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
