"""How a module is run (`ntkcond.library.running`), beside what `test_random_programs` draws:
modules as people have them, each with the right value or the true reason."""

import math
import warnings
from collections import deque
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from random_programs import gradients
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import prune

import ntkcond
from ntkcond.run.errors import UserError

X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Calls(nn.Module):
    def __init__(self, forward, **parts: nn.Module) -> None:
        super().__init__()
        self.does = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.does(self, x)


def mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def normed() -> nn.Sequential:
    module = mlp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module[0] = nn.utils.weight_norm(module[0])
    return module


def pruned() -> nn.Sequential:
    module = mlp()
    prune.random_unstructured(module[0], "weight", amount=0.5)
    return module


def padded(nested: bool) -> nn.Module:
    """torch's encoder takes another way in eval mode without gradients."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x[..., None])
        padding = torch.arange(4) >= (2 + (x[:, :1] > 0) + (x[:, 1:2] > 0))
        return self.head(self.encoder(h, src_key_padding_mask=padding)[:, 0])

    parts = {"embed": nn.Linear(1, 4), "encoder": encoder, "head": nn.Linear(4, 1)}
    return Calls(forward, **parts).eval()


def slope(self, x: Tensor) -> Tensor:
    y = x.requires_grad_()
    return torch.autograd.grad(self.f(y).sum(), y, create_graph=True)[0].pow(2).sum(1)


def by_torch_func(self, x: Tensor) -> Tensor:
    return torch.vmap(torch.func.grad(lambda z: self.f(z)[0]))(x).pow(2).sum(1)


def buckets(self, x: Tensor) -> Tensor:
    """A mask made of floats, which are at the threshold."""
    places = torch.arange(4, dtype=x.dtype)
    keep = (places / 3).floor() == x.new_zeros(4)
    return self.f(torch.where(keep, x, 0.5 * x))


def soft(self, x: Tensor) -> Tensor:
    """The gradient of sgn has no place in memory."""
    z = self.f[0](x)
    return self.f[2](torch.sgn(z) * torch.relu(z.abs() - 0.1))


def sparse(self, x: Tensor) -> Tensor:
    return self.f(torch.sparse.mm(torch.eye(4, dtype=x.dtype).to_sparse(), x.T).T)


def spectral(self, x: Tensor) -> Tensor:
    z = torch.fft.rfft(self.f[0](x))
    return torch.fft.irfft(torch.einsum("nk,k->nk", z, z.sum(0, keepdim=True)[0] * 0 + 2j), n=8)


def listed(pair: nn.Bilinear, head: nn.Linear) -> nn.Module:
    """torch.func replaces attributes alone."""
    module = Calls(lambda s, x: s.o(functional.bilinear(x, x, *s.all).tanh()), a=pair, o=head)
    module.all = list(pair.parameters())
    return module


def converted(self, x: Tensor) -> Tensor:
    """A part in float32, whatever the rest is in, as routers of experts."""
    return self.f.to(torch.float32)(x.float()).to(x) + self.g(x, x)


LARGEST = {  # of the neighbours of each of two places
    "scatter_reduce": lambda z, at: z.new_zeros(len(z), 2).scatter_reduce(
        1, at.expand(len(z), 8), z, "amax", include_self=False
    ),
    "index_reduce": lambda z, at: z.new_zeros(len(z), 2).index_reduce(
        1, at, z, "amin", include_self=False
    ),
    "segment_reduce": lambda z, at: torch.segment_reduce(
        z, "max", lengths=torch.tensor([[3, 5]] * len(z)), axis=1
    ),
    "aminmax": lambda z, at: torch.stack(z.aminmax(dim=1), 1),
    "norm": lambda z, at: z.norm(math.inf, dim=1, keepdim=True).repeat(1, 2),
}
PLACES = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])


def largest(name: str) -> nn.Module:
    return Calls(lambda s, x: s.g(LARGEST[name](s.f[0](x), PLACES)), f=mlp(), g=nn.Linear(2, 1))


ACCEPTED = {
    "pruned": pruned, "weight norm": normed, "nested tensors": lambda: padded(True),
    "not nested": lambda: padded(False), "a gradient inside": lambda: Calls(slope, f=mlp()),
    "torch.func inside": lambda: Calls(by_torch_func, f=mlp()),
    "buckets": lambda: Calls(buckets, f=mlp()), "sgn": lambda: Calls(soft, f=mlp()),
    "a sparse constant": lambda: Calls(sparse, f=mlp()),
    "a Fourier transform": lambda: Calls(lambda s, x: spectral(s, x).tanh().sum(1), f=mlp()),
    "weights in a list, too": lambda: listed(nn.Bilinear(4, 4, 3), nn.Linear(3, 1)),
    "converted weights": lambda: Calls(converted, f=mlp(), g=nn.Bilinear(4, 4, 1)),
    "largest by amax": lambda: Calls(
        lambda s, x: torch.stack([s.f(x), s.g(x)]).amax(0), f=mlp(), g=nn.Linear(4, 1)
    ),
    "an exponent": lambda: Calls(
        lambda s, x: s.f((2**x) ** (s.g.weight**2)), f=mlp(), g=nn.Linear(4, 1)
    ),
    "an empty part": lambda: Calls(lambda s, x: s.f(x) + x[:, :0].softmax(1).sum(1, True), f=mlp()),
    "a quantile": lambda: Calls(
        lambda s, x: s.g(s.f[0](x) * s.f[0](x).quantile(0.3, 1, True)), f=mlp(), g=nn.Linear(8, 1)
    ),
    **{f"largest by {name}": lambda name=name: largest(name) for name in LARGEST},
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_modules_as_people_have_them_are_resolved(name):
    module = ACCEPTED[name]().double()
    J = gradients(module, X)
    kernel = ntkcond.kernel(module, X)
    assert np.linalg.norm(kernel.matrix - J @ J.T) <= kernel.error + 1e-13 * np.trace(J @ J.T)
    assert kernel.kinks == 0 and ntkcond.condition_number(kernel).verdict == "resolved"


class Counts:
    """calls: what a run changes; itself within itself, which a description must not follow."""

    def __init__(self, calls: object) -> None:
        self.calls, self.act, self.parent = calls, torch.tanh, {}
        self.parent["parent"] = self.parent


class Slotted:
    __slots__ = ("__dict__", "n")

    def __init__(self) -> None:
        self.n = 0

    def __len__(self) -> int:
        return self.n


def one_more(calls: object) -> None:
    if isinstance(calls, Slotted):
        calls.n += 1
    elif isinstance(calls, nn.Parameter):
        calls.data = torch.zeros(len(calls) + 1)
    else:
        calls.append(1)


KEPT = {"list": list, "deque": deque, "slots": Slotted, "weights": lambda: nn.Parameter(X[:0, 0])}


@pytest.mark.parametrize("kept", KEPT)
def test_each_run_begins_with_the_state_that_was_given(kept):
    """Of an object of attributes, and of those that have others."""

    def forward(self, x: Tensor) -> Tensor:
        before = len(self.counts.calls)
        one_more(self.counts.calls)
        return self.f(self.counts.act(x + before))

    module = Calls(forward, f=mlp()).double()
    module.counts = Counts(KEPT[kept]())
    J = gradients(module.f, X.tanh())
    np.testing.assert_allclose(ntkcond.kernel(module, X).matrix, J @ J.T, rtol=1e-12)
    assert not len(module.counts.calls)


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize(("sizes", "memory"), [((10, 6), 2e9), ((60,), 3e4), ((60,), 6e4)])
def test_what_only_large_batches_show_is_refused(sizes, memory, certify):
    """Also where the matrix and its checks run in batches of other sizes."""
    module = Calls(
        lambda s, x: s.g(s.f(x - x.mean(0) if len(x) > 8 else x).tanh()),
        f=nn.Linear(4, 8), g=nn.Linear(8, 1),
    ).double()  # fmt: skip
    sets = torch.randn(sum(sizes), 4, dtype=torch.float64).split(sizes)
    with pytest.raises(UserError, match="depends on the other"):
        ntkcond.kernel(module, *sets, memory=memory, certify=certify)


def test_a_complex_weight_is_seen_where_the_first_samples_have_real_spectra():
    torch.manual_seed(0)
    module = Calls(lambda s, x: s.o(torch.fft.irfft(torch.fft.rfft(x) * s.w, n=4).tanh()),
                   o=nn.Linear(4, 1)).double()  # fmt: skip
    module.pairs = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
    type(module).w = property(lambda s: torch.view_as_complex(s.pairs))
    x = torch.cat([X[:, :1].expand(-1, 4), X])
    J = gradients(module, x)
    kernel = ntkcond.kernel(module, x)
    assert np.linalg.norm(kernel.matrix - J @ J.T) <= kernel.error + 1e-13 * np.trace(J @ J.T)


def near(self, x: Tensor) -> Tensor:
    """A mean over the samples that are near."""
    far = (x[:, None] - x[None]).square().sum(-1)
    return self.o(torch.softmax(-1000 * far, 1) @ self.v(x).tanh())


def longest(self, x: Tensor) -> Tensor:
    """A mean over the positions that any sample has."""
    used = (x != 0).any(0).to(x)
    return self.o(self.v(x * used).tanh()) / used.sum()


def log_spectrum(self, x: Tensor) -> Tensor:
    return self.o(self.v(torch.log(x.abs() + torch.finfo(x.dtype).eps)).tanh())


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize("of", [near, longest, log_spectrum])
def test_what_only_later_samples_show_is_refused(of, certify):
    torch.manual_seed(0)
    module, x = Calls(of, v=nn.Linear(4, 8), o=nn.Linear(8, 1)).double(), torch.cat([X, 3 + X])
    words = "depends on the others of its batch"
    if of is near:
        x[9] = x[5] + 0.01 * x[9]
    elif of is longest:
        x[:5, 2:] = 0
    else:
        module, x, words = module.float(), x.float(), "another function than in its own float32"
        x[6, 1:3] = 0
    with pytest.raises(UserError, match=words):
        ntkcond.kernel(module, x, certify=certify)


@pytest.mark.parametrize("memory", [2e9, 2e3])
def test_a_slice_of_a_weight_may_lie_elsewhere_in_another_batch(memory):
    def forward(self, x: Tensor) -> Tensor:
        start = int((x != 0).any(0).long().argmax())
        part = slice(start, start + 4)
        return self.o((x[:, part] * self.p.weight[0, part]).sum(1, keepdim=True).tanh())

    torch.manual_seed(0)
    module = Calls(forward, p=nn.Linear(12, 1, bias=False), o=nn.Linear(1, 1)).double()
    x = torch.zeros(8, 12, dtype=torch.float64)
    x[:4, 2:4], x[4:, 3:5] = 1 + X[:4, :2], 1 + X[3:, :2]
    J = gradients(module, x)
    kernel = ntkcond.kernel(module, x, memory=memory)
    assert np.linalg.norm(kernel.matrix - J @ J.T) <= kernel.error + 1e-13 * np.trace(J @ J.T)


def test_the_error_of_the_same_call_is_the_same():
    """What rounds was known by places in memory, which others can take."""
    torch.manual_seed(0)
    module = Calls(lambda s, x: s.o(s.f(x[..., None])[0][:, -1]), f=nn.LSTM(1, 8, batch_first=True),
                   o=nn.Linear(8, 1)).double()  # fmt: skip
    assert len({ntkcond.kernel(module, X).error for _ in range(10)}) == 1


def test_an_embedding_that_divides_by_counts_of_the_batch_is_refused():
    module = nn.Sequential(nn.Embedding(5, 3, scale_grad_by_freq=True), nn.Flatten())
    with pytest.raises(UserError, match=r"0 \(Embedding\) divides gradients by how often"):
        ntkcond.kernel(module, torch.tensor([[0], [1]]), output=0)


def test_equal_terms_that_all_round_the_same_way_are_within_the_error():
    d, sizes = 2_000_000, (0.1, 0.100001)
    x = torch.tensor(sizes, dtype=torch.float64)[:, None].expand(2, d).contiguous()
    kernel = ntkcond.kernel(nn.Linear(d, 1, dtype=torch.float64), x)
    exact = [[Fraction(a) * Fraction(b) * d + 1 for b in sizes] for a in sizes]
    off = [[float(Fraction(float(kernel.matrix[i, j])) - exact[i][j]) for j in (0, 1)]
           for i in (0, 1)]  # fmt: skip
    assert 0 < np.linalg.norm(off) <= kernel.error


@pytest.mark.parametrize("name", LARGEST)
def test_which_of_two_is_the_largest_is_unknown_where_rounding_decides(name):
    module = largest(name).double()
    with torch.no_grad():
        weight, bias = module.f[0].weight, module.f[0].bias
        bias[:2] = -9 if name == "index_reduce" else 9
        weight[1] = weight[0] / 3
        bias[1] += module.f[0](X[:1])[0] @ torch.tensor([1.0, -1, 0, 0, 0, 0, 0, 0]).double()
    assert ntkcond.condition_number(module, X).verdict == "unresolved"


def test_a_float8_within_a_module_is_in_the_error():
    def forward(self, x: Tensor) -> Tensor:
        z = self.f[0](x)
        return self.f[2](z + (z.to(torch.float8_e4m3fn).to(z.dtype) - z).detach())

    kernel = ntkcond.kernel(Calls(forward, f=mlp()), X)
    assert kernel.error > 0.01 * np.trace(kernel.matrix)
    rough = Calls(lambda s, x: s.f[2](s.f[0](x).to(torch.float8_e4m3fn).to(x.dtype)), f=mlp())
    kernel = ntkcond.kernel(rough, X)
    assert kernel.error > 0.01 * np.trace(kernel.matrix)


def test_relu_squared_at_zero_is_no_kink():
    torch.manual_seed(0)
    layer, head = nn.Linear(4, 8).double(), nn.Linear(8, 1).double()
    with torch.no_grad():
        layer.bias[0] -= layer(X[:1])[0, 0]  # but for rounding
    smooth, kinked = (
        Calls(lambda s, x, p=p: s.o(torch.relu(s.a(x)) ** p), a=layer, o=head) for p in (2, 1)
    )
    assert ntkcond.kernel(smooth, X).kinks == 0 and ntkcond.kernel(kinked, X).kinks >= 1


class Fails(nn.Linear):
    error: type[Exception]

    def forward(self, x: Tensor) -> Tensor:
        raise self.error("no such width")


def fails(error: type[Exception]) -> nn.Module:
    module = Fails(4, 1)
    module.error = error
    return module


def eps_of_its_type(self, x: Tensor) -> Tensor:
    small = 1e-5 * self.f[0](x)
    return self.f[2](small / (small.norm(dim=1, keepdim=True) + 1e3 * torch.finfo(x.dtype).eps))


REFUSED = {
    "TorchScript": (lambda: torch.jit.script(mlp()), "is of TorchScript"),
    "one hot": (
        lambda: Calls(lambda s, x: s.f(functional.one_hot((x > 0).long(), 1 + 1).float()[..., 1]),
                      f=mlp()), r"dtype=torch\.float32"),
    "state of float32": (
        lambda: Calls(lambda s, x: s.f(x.float() / 255), f=mlp()), r"dtype=torch\.float32"),
    "KeyError": (lambda: fails(KeyError), "fails on samples.*KeyError: 'no such width'"),
    "AssertionError": (lambda: fails(AssertionError), "AssertionError: no such width"),
    "finfo": (lambda: Calls(eps_of_its_type, f=mlp()), "another function than in its own float32"),
    "NaN in float64": (lambda: Calls(lambda s, x: s.f(x) / (x.dtype == torch.float32), f=mlp()),
                       r"infinite entries in torch\.float64, and none in torch\.float32: compute"),
    "a hook": (lambda: Hooked(), r"KeyError: 'z'. A hook names a module itself \(Hooked\)"),
    "kept": (lambda: Stale(), "made of its weights, and does not make it anew"),
}  # fmt: skip


class Hooked(nn.Module):
    """Its hook writes to the module that it was made for."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.seen = mlp(), {}
        self.f[0].register_forward_hook(lambda part, given, z: self.seen.update(z=z))

    def forward(self, x: Tensor) -> Tensor:
        return self.f(x) + self.seen["z"].sum(1, keepdim=True)


class Stale(nn.Module):
    """Keeps a tensor made of its weight for good: a copy has none of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.twice = 2 * self.weight

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.twice


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_in_float64_is_refused_with_the_reason(name):
    build, words = REFUSED[name]
    with pytest.raises(UserError, match=words), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ntkcond.kernel(build(), X.float())


def test_a_kernel_knows_its_matrix_and_a_matrix_its_kernels_error():
    """(z + c) − c in float64 is off by far more than the matrix says."""
    module = Calls(lambda s, x: s.f[2](torch.tanh((s.f[0](x) + 4e15) - 4e15)), f=mlp())
    kernel = ntkcond.kernel(module, X)
    assert ntkcond.condition_number(kernel.matrix).verdict == "unresolved"
    pair = ntkcond.closest_pair(kernel)
    assert (pair.low_deg, pair.high_deg) == (0, 180)
    exact = ntkcond.closest_pair(ntkcond.kernel(mlp(), X))
    assert exact.low_deg <= exact.angle_deg <= exact.high_deg < exact.low_deg + 1e-8


def test_samples_may_be_a_data_frame_and_a_matrix_a_list():
    frame = pd.DataFrame(X.numpy())
    assert np.array_equal(ntkcond.kernel(mlp(), frame).matrix, ntkcond.kernel(mlp(), X).matrix)
    assert math.isclose(ntkcond.condition_number([[2.0, 1.0], [1.0, 2.0]]).kappa, 3)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_predictions_from_a_rounded_kernel_are_within_their_errors(kind):
    r = np.random.default_rng(0)
    a, b, y = r.normal(size=(30, 40)), r.normal(size=(5, 40)), r.normal(size=30)
    eigen, exact = ntkcond.eigendecomposition(a @ a.T / 40), b @ a.T / 40
    expected = eigen.predicted(exact, y, 0.1, 1000).values
    found = eigen.predicted(exact.astype(kind), y, 0.1, 1000)
    assert (abs(found.values - expected) <= found.errors).all()


def test_the_alignment_of_labels_with_a_large_offset_is_in_its_interval():
    r = np.random.default_rng(0)
    a, y = r.normal(size=(20, 30)), np.arange(20.0) % 3
    eigen = ntkcond.eigendecomposition(a @ a.T)
    exact, offset = eigen.alignment(y), eigen.alignment(y * 2**-8 + 2.0**44)
    assert offset.low <= exact.value <= offset.high and offset.high - offset.low > 1e-6
