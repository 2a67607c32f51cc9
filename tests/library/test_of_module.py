"""The NTK of any module, held against torch.func's Jacobians in float64."""

import copy
import doctest
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from test_every_layer import Calls
from torch import Tensor, nn
from torch.nn import functional

import ntkcond
from ntkcond.library import backward_rules, per_sample_gradients
from ntkcond.library.closest import closest_pair
from ntkcond.library.differentiated import Differentiated
from ntkcond.library.of_module import Kernel, condition_number, kernel
from ntkcond.library.per_sample_gradients import Explicit, Gradients
from ntkcond.run.errors import UserError


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


def branching() -> tuple[nn.Module, Tensor]:
    """What torch.func cannot transform."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        return torch.stack([(r @ self.weight) ** (3 if r[0].item() > 0 else 2) for r in x])

    return Calls(forward, weight=nn.Parameter(torch.randn(5))), torch.randn(10, 5)


def mlp() -> tuple[nn.Module, Tensor]:
    layers = nn.Linear(7, 30), nn.ReLU(), nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 3)
    return nn.Sequential(*layers), torch.randn(20, 7)


def cnn() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), nn.ReLU(inplace=True),
        nn.Conv2d(8, 8, (3, 2), dilation=(1, 2)), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4 * 4, 2),
    ), torch.randn(18, 4, 12, 12)  # fmt: skip


def resnet() -> tuple[nn.Module, Tensor]:
    """A block of one, with statistics as after training."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        x = self.stem(x)
        h = self.block(x)
        h += self.shortcut(x)
        return self.head(h)

    def conv(*sizes: int, **more: int) -> tuple[nn.Module, ...]:
        norm = nn.BatchNorm2d(sizes[1])
        norm.running_mean.normal_(std=0.1)
        norm.running_var.uniform_(0.5, 2)
        return nn.Conv2d(*sizes, bias=False, **more), norm

    relu = nn.ReLU(inplace=True)
    module = Calls(
        forward,
        stem=nn.Sequential(*conv(3, 4, 7, 2, padding=3), relu, nn.MaxPool2d(3, 2, padding=1)),
        block=nn.Sequential(*conv(4, 8, 3, 2, padding=1), relu, *conv(8, 8, 3, padding=1)),
        shortcut=nn.Sequential(*conv(4, 8, 1, 2)),
        head=nn.Sequential(relu, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)),
    )
    return module, torch.randn(10, 3, 20, 20)


def sequence_first() -> tuple[nn.Module, Tensor]:
    """As many samples as positions, which come first in every layer."""
    return Transformer(5, batch_first=False), torch.randint(0, 5, (10, 10))


def recurrent() -> tuple[nn.Module, Tensor]:
    def forward(self: Calls, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])

    parts = {"lstm": nn.LSTM(3, 4, batch_first=True), "head": nn.Linear(4, 1)}
    return Calls(forward, **parts), torch.randn(10, 6, 3)


CASES = (mlp, resnet, sequence_first, branching, recurrent)


def jacobian(module: nn.Module, x: Tensor) -> Tensor:
    """(n, k, P), by autograd, of one sample after the other."""
    module = copy.deepcopy(module).double()
    parameters, rows = [*module.parameters()], []
    for sample in x.double() if x.is_floating_point() else x:
        f = module(sample[None]).reshape(-1)
        gradients = (torch.autograd.grad(v, parameters, retain_graph=True) for v in f)
        rows.append(torch.stack([torch.cat([g.flatten() for g in of_one]) for of_one in gradients]))
    return torch.stack(rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.filterwarnings("error")
def test_every_kernel_is_that_of_the_jacobian(case):
    """Of one set of samples and of two, at once and in parts, with a certificate and without."""
    torch.manual_seed(0)
    module, x = case()
    module.eval()
    j = jacobian(module, x)
    n, k, _ = j.shape
    before = copy.deepcopy(module.state_dict())
    every = j.reshape(n * k, -1)
    wanted = {
        k - 1: j[:, -1] @ j[:, -1].T,
        "trace": torch.einsum("iap,jap->ij", j, j),
        "all": every @ every.T,
    }
    small = 2e9 if case is recurrent else 4e6  # which takes long in parts
    for output, whole in wanted.items():
        norms = whole.diagonal().sqrt()
        for sets, memory in (((x,), 2e9), ((x,), small), ((x[:9], x[7:]), small)):
            each = k if output == "all" else 1
            places = np.s_[: len(sets[0]) * each, (n - len(sets[-1])) * each :]
            expected, scale = whole[places], torch.outer(norms, norms)[places]
            ntk = kernel(module, *sets, output=output, memory=memory)
            assert ((torch.from_numpy(ntk.matrix) - expected).abs() / scale).max() < 1e-12
            one = len(sets) == 1
            assert np.linalg.norm(ntk.matrix - expected.numpy(), 2 if one else None) <= ntk.error
            assert not one or np.array_equal(ntk.matrix, ntk.matrix.T)
            assert {*ntk.layerwise, *ntk.by_jacobian} == dict(module.named_parameters()).keys()
        bare = kernel(module, *sets, output=output, memory=memory, certify=False)
        assert np.allclose(bare.matrix, ntk.matrix, rtol=1e-11, atol=1e-11 * float(scale.max()))
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_wrong_rule_is_found_out(monkeypatch):
    """The check against autograd: a rule that forgets half of the gradient gives no kernel."""
    torch.manual_seed(0)
    module, x = mlp()
    expected = kernel(copy.deepcopy(module), x, output=0).matrix  # what is found out is kept

    def wrong(meeting: backward_rules.Meeting) -> Gradients | None:
        gradients = backward_rules.addmm(meeting)
        return Explicit(gradients.values / 2) if isinstance(gradients, Explicit) else gradients

    monkeypatch.setitem(backward_rules.RULES, "AddmmBackward0", wrong)
    ntk = kernel(module, x, output=0)
    assert set(ntk.by_jacobian) == {"0.bias", "2.bias", "4.bias"}
    assert np.allclose(ntk.matrix, expected, rtol=1e-13)


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


def linear(change: Callable = lambda f, x: f) -> Calls:
    return Calls(lambda self, x: change(self.layer(x), x), layer=nn.Linear(3, 1))


REFUSED = {
    "random": (linear(lambda f, x: f + torch.rand(len(x), 1)), "changes from call to call"),
    "mixing": (linear(lambda f, x: f - f.mean(0)), "depends on the others of its batch"),
    "nan": (linear(lambda f, x: f / 0 * 0), "output has NaN"),
    "dictionary": (linear(lambda f, x: {"logits": f}), "gives a dict: say which tensor"),
    "reduced": (linear(lambda f, x: f.mean()), r"must be \(4, …\)"),
    "whole": (linear(lambda f, x: f.long()), "of real numbers"),
    "constant": (linear(lambda f, x: x.sum(1)), "does not depend on the chosen parameters"),
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


HIDDEN = {
    "mixing": lambda h: h - h.mean(0),
    "random": lambda h: functional.dropout(h, 0.5),
    "capacity": lambda h: torch.cat([h[:8], 0 * h[8:]]),
    "in large batches": lambda h: torch.cat([h[:1], h[1:2] + h[4:5], h[2:]]) if len(h) > 7 else h,
}


@pytest.mark.parametrize("what", HIDDEN)
def test_dependence_that_outputs_do_not_show_is_found(what):
    """Samples that depend on each other, or on chance, below a head of zeros."""
    torch.manual_seed(0)
    parts = {"layer": nn.Linear(3, 6), "head": nn.Linear(6, 1)}
    nn.init.zeros_(parts["head"].weight)
    module = Calls(lambda self, x: self.head(HIDDEN[what](torch.tanh(self.layer(x)))), **parts)
    with pytest.raises(UserError, match=r"depends on the other|changes from call"):
        kernel(module, torch.randn(12, 3))
    if what == "in large batches":
        assert kernel(module, torch.randn(7, 3)).matrix.shape == (7, 7)


def test_a_module_that_insists_on_its_precision_and_samples_without_a_gradient():
    torch.manual_seed(0)
    x, layer = torch.randn(12, 3, dtype=torch.float64), nn.Linear(3, 1)

    def kernel_of(forward: Callable) -> Kernel:
        return kernel(Calls(lambda self, z: forward(z, self.layer), layer=layer), x)

    def some(z: Tensor, of: nn.Linear) -> Tensor:  # samples that use no weight
        return torch.stack([of(r) if r[0].item() > 0 else r.sum(0, keepdim=True) for r in z])

    fine = (x @ x.T).numpy()
    rough = kernel_of(lambda z, of: functional.linear(z.float(), of.weight.float()).double())
    assert 1e-9 < np.linalg.norm(rough.matrix - fine, 2) < rough.error < 1e-3
    double = kernel_of(lambda z, of: functional.linear(z.double(), of.weight, of.bias))
    assert np.allclose(double.matrix, fine + 1, rtol=1e-12)
    used = (x[:, 0] > 0).numpy()
    assert np.allclose(kernel_of(some).matrix, (fine + 1) * np.outer(used, used), rtol=1e-12)


def test_samples_and_options_in_other_forms():
    torch.manual_seed(0)
    x, module = torch.randn(12, 3, dtype=torch.float64), linear()
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
    slope = nn.Parameter(torch.tensor(0.3))
    leaky = linear(lambda f, _: torch.where(f > 0, f, slope * f))
    leaky.slope = slope
    with pytest.raises(UserError, match="a weight that a copy of it does not own"):
        kernel(leaky, x)
    layer, turn = nn.Linear(3, 1, bias=False), torch.polar(torch.ones(3), torch.arange(3.0))
    module = Calls(lambda self, z: self.layer((z * self.turn).imag), layer=layer)
    module.register_buffer("turn", turn)
    module.double()
    features = (x * module.turn.to(torch.complex128)).imag
    assert np.allclose(kernel(module, x).matrix, (features @ features.T).numpy(), rtol=1e-6)
    root = Calls(lambda self, z: self.layer(z).abs().sqrt(), layer=nn.Linear(3, 2, bias=False))
    bad = torch.cat([x[:7], torch.zeros(1, 3)])
    for output in (1, "trace", "all"):
        with pytest.raises(UserError, match="the gradient of sample 7 is NaN or infinite"):
            kernel(root, bad, output=output)
    with pytest.raises(UserError, match="the gradient of sample 7 of x2 is NaN"):
        kernel(root, x, bad, output=1)
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


@pytest.mark.parametrize("name", sorted(set(ntkcond.__all__) - {"ACTIVATIONS"}))
def test_the_example_of_each_public_name_runs(name):
    """And those of its methods."""
    first, *others = doctest.DocTestFinder().find(getattr(ntkcond, name), name)
    assert first.name == name and first.examples
    for example in (first, *others):
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0, example.name


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
