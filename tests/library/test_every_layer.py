"""Layers of every kind in one backward pass, held against autograd's gradients of each sample."""

import copy
import functools
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

from ntkcond.library import per_sample_gradients
from ntkcond.library.of_module import kernel
from ntkcond.run.errors import UserError

N = 7


class Calls(nn.Module):
    """A module of some parts, and what is done with them."""

    def __init__(self, forward: Callable[..., Tensor], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def alone(layer: nn.Module) -> nn.Module:
    """A number of each sample that depends on all that the layer gives."""
    return Calls(lambda self, x: self.layer(x).flatten(1).cos().sum(1), layer=layer)


def attention(batch_first: bool = True, mask: bool = False, **options) -> nn.Module:
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, **options)

    def forward(self: Calls, x: Tensor) -> Tensor:
        x = x if batch_first else x.transpose(0, 1)
        hidden = torch.ones(6, 6, dtype=torch.bool).triu(1) if mask else None
        y = self.layer(x, x, x, need_weights=mask, attn_mask=hidden)[0]
        return (y if batch_first else y.transpose(0, 1)).flatten(1).cos().sum(1)

    return Calls(forward, layer=layer)


def cross(**options) -> nn.Module:
    """Attention of two positions to the others."""
    padding = torch.tensor([[False] * 3 + [True]])

    def forward(self: Calls, x: Tensor) -> Tensor:
        hidden = padding.expand(len(x), -1)
        y = self.layer(x[:, :2], x[:, 2:], 2 * x[:, 2:], key_padding_mask=hidden)[0]
        return y.flatten(1).cos().sum(1)

    return Calls(forward, layer=nn.MultiheadAttention(8, 2, batch_first=True, **options))


def recurrent(kind: type[nn.RNNBase], batch_first: bool, **options) -> nn.Module:
    def forward(self: Calls, x: Tensor) -> Tensor:
        if batch_first:
            return self.layer(x)[0][:, -1].sum(1)
        return self.layer(x.transpose(0, 1))[0][-1].sum(1)

    options |= {"num_layers": 2, "bidirectional": True}
    return Calls(forward, layer=kind(8, 5, batch_first=batch_first, **options))


def bare() -> nn.Module:
    """Parameters without a layer: a token, positions, products, a scale, a weight on the left."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(x), -1, -1), x - self.position], 1)
        y = torch.einsum("ntd,dhe->nhte", x, self.weight) * self.scale / self.division
        y = torch.matmul(self.left, y.sum(1).mT).tanh() @ self.vector
        return y.sum(1) + torch.matmul(self.rows, x.mean(1).T).tanh().sum(0)

    shapes = {
        "token": (1, 1, 8), "position": (6, 8), "weight": (8, 2, 3), "scale": (), "division": (3,),
        "left": (7, 3), "vector": (7,), "rows": (4, 8),
    }  # fmt: skip
    return Calls(forward, **{name: nn.Parameter(torch.randn(s)) for name, s in shapes.items()})


def tied() -> nn.Module:
    """A weight that is used twice by its layer, once transposed, once in parts."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        y = self.layer(self.layer(x).tanh()) @ self.layer.weight
        first, second = self.layer.weight.split(4)
        y = y + functional.linear(y[..., :4], first.T)
        y = y + functional.linear(y, second).repeat(1, 1, 2)
        return functional.conv2d(y[:, None], self.kernel[None, None]).flatten(1).cos().sum(1)

    return Calls(forward, layer=nn.Linear(8, 8), kernel=nn.Parameter(torch.randn(3, 3)))


def frames() -> nn.Module:
    """Images of several times of a sample, folded into the batch."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        y = self.conv(x.reshape(-1, 1, 2, 4)).relu().mean((2, 3))
        return self.head(y).reshape(len(x), -1).cos().sum(1)

    return Calls(forward, conv=nn.Conv2d(1, 3, 2), head=nn.Linear(3, 2))


def hooked() -> nn.Module:
    """A hook that changes what a layer gives, by the layer's own weight."""
    module = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    module[0].register_forward_hook(lambda layer, _, result: result * 2 + layer.weight.sum())
    return Calls(lambda self, x: self.layers(x).sum((1, 2)), layers=module)


def in_place() -> nn.Module:
    def forward(self: Calls, x: Tensor) -> Tensor:
        return self.second(self.first(x).mul_(2).relu_()).sum((1, 2))

    return Calls(forward, first=nn.Linear(8, 8), second=nn.Linear(8, 2))


def in_two_shapes() -> nn.Module:
    def forward(self: Calls, x: Tensor) -> Tensor:
        y = torch.cat([x[..., :4] @ self.w, x @ self.w.view(8, 4)], 2)
        return y.flatten(1).cos().sum(1)

    return Calls(forward, w=nn.Parameter(torch.randn(4, 8)))


def table_of_two_widths() -> nn.Module:
    def forward(self: Calls, t: Tensor) -> Tensor:
        rows = functional.embedding(t, self.w), functional.embedding(t, self.w.view(14, 4))
        return torch.cat(rows, 2).flatten(1).cos().sum(1)

    return Calls(forward, w=nn.Parameter(torch.randn(7, 8)))


def checkpointed(reentrant: bool) -> nn.Module:
    def forward(self: Calls, x: Tensor) -> Tensor:
        y = checkpoint(self.middle, self.first(x), use_reentrant=reentrant)
        return self.last(y).sum((1, 2))

    middle = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    return Calls(forward, first=nn.Linear(8, 8), middle=middle, last=nn.Linear(8, 2))


def by_vmap() -> nn.Module:
    """A function of a single sample, for all by torch.func."""

    def forward(self: Calls, x: Tensor) -> Tensor:
        def one(v: Tensor) -> Tensor:
            return (self.linear(v) @ self.w).tanh().sum() + self.conv(v[None])[0].mean()

        return torch.vmap(one)(x)

    weight = nn.Parameter(torch.randn(3, 5))
    return Calls(forward, linear=nn.Linear(8, 3), w=weight, conv=nn.Conv1d(6, 2, 3))


ROWS = (N, 6, 8)
LAYERS = {
    "linear of positions": (lambda: alone(nn.Linear(8, 3)), ROWS),
    "linear without bias": (lambda: alone(nn.Linear(8, 3, bias=False)), ROWS),
    "conv1d": (
        lambda: alone(nn.Conv1d(6, 4, 3, stride=2, padding=1, dilation=2, groups=2)), ROWS
    ),
    "conv1d same": (lambda: alone(nn.Conv1d(6, 4, 4, padding="same")), ROWS),
    "conv1d circular": (
        lambda: alone(nn.Conv1d(6, 4, 3, padding=1, padding_mode="circular")), ROWS
    ),
    "conv2d": (
        lambda: alone(nn.Conv2d(4, 6, 3, groups=2, stride=2, padding=(1, 2))), (N, 4, 7, 8)
    ),
    "conv2d reflecting": (
        lambda: alone(nn.Conv2d(4, 6, 4, padding=(1, 2), padding_mode="reflect", bias=False)),
        (N, 4, 5, 6),
    ),
    "conv3d": (lambda: alone(nn.Conv3d(2, 4, 2, stride=(1, 2, 1), groups=2)), (N, 2, 4, 4, 4)),
    "transposed conv1d": (lambda: alone(nn.ConvTranspose1d(6, 4, 3, dilation=2, stride=3)), ROWS),
    "transposed conv2d": (
        lambda: alone(nn.ConvTranspose2d(4, 6, 3, 2, padding=1, output_padding=1, groups=2)),
        (N, 4, 5, 4),
    ),
    "transposed conv3d": (lambda: alone(nn.ConvTranspose3d(2, 4, 2)), (N, 2, 3, 3, 3)),
    "embedding": (lambda: alone(nn.Embedding(10, 4, padding_idx=0)), 10),
    "embedding of a long table": (lambda: alone(nn.Embedding(500, 4)), 500),
    "layer norm": (lambda: alone(nn.LayerNorm((6, 8))), ROWS),
    "RMS norm": (lambda: alone(nn.RMSNorm(8)).double(), ROWS),
    "group norm": (lambda: alone(nn.GroupNorm(2, 6)), ROWS),
    "instance norm": (lambda: alone(nn.InstanceNorm1d(6, affine=True)), ROWS),
    "batch norm": (lambda: alone(nn.BatchNorm2d(4)), (N, 4, 3, 3)),
    "PReLU": (lambda: alone(nn.PReLU(6)), ROWS),
    "weight norm": (lambda: alone(weight_norm(nn.Linear(8, 3))), ROWS),
    "spectral norm": (lambda: alone(spectral_norm(nn.Linear(8, 3))), ROWS),
    "attention": (attention, ROWS),
    "attention, positions first": (lambda: attention(batch_first=False), ROWS),
    "attention, masked": (lambda: attention(mask=True, bias=False), ROWS),
    "attention, cross": (cross, ROWS),
    "attention, cross, own sizes": (lambda: cross(kdim=8, vdim=8, add_bias_kv=True), ROWS),
    "encoder layer": (
        lambda: alone(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), ROWS
    ),
    "RNN": (lambda: recurrent(nn.RNN, True), ROWS),
    "GRU": (lambda: recurrent(nn.GRU, False), ROWS),
    "LSTM": (lambda: recurrent(nn.LSTM, False, proj_size=3), ROWS),
    "LSTM, batch first": (lambda: recurrent(nn.LSTM, True), ROWS),
    "cells": (
        lambda: Calls(
            lambda self, x: functools.reduce(
                lambda h, t: self.cell(x[:, t], h), range(6), x.new_zeros(len(x), 5)
            ).sum(1),
            cell=nn.GRUCell(8, 5),
        ),
        ROWS,
    ),
    "bare parameters": (bare, ROWS),
    "tied": (tied, ROWS),
    "two shapes": (in_two_shapes, ROWS),
    "two widths": (table_of_two_widths, 7),
    "shared convolution": (
        lambda: Calls(
            lambda self, x: self.layer(self.layer(x).tanh()).flatten(1).sum(1),
            layer=nn.Conv1d(6, 6, 3, padding=1),
        ),
        ROWS,
    ),
    "frames": (frames, (N, 4, 2, 4)),
    "hook": (hooked, ROWS),
    "in place": (in_place, ROWS),
    "checkpoint": (lambda: checkpointed(False), ROWS),
    "vmap": (by_vmap, ROWS),
}  # fmt: skip


def samples(shape: tuple[int, ...] | int) -> Tensor:
    """Or tokens of a table of so many rows."""
    return torch.randint(0, shape, (N, 6)) if isinstance(shape, int) else torch.randn(shape)


def gram(module: nn.Module, x: Tensor, other: Tensor | None = None) -> Tensor:
    """Of autograd's gradients of the first output, of one sample after the other, in float64."""
    module = copy.deepcopy(module).double()
    parameters = [p for p in module.parameters() if p.requires_grad]

    def rows(samples: Tensor) -> Tensor:
        found = []
        for sample in samples.double() if samples.is_floating_point() else samples:
            f = module(sample[None]).reshape(-1)[0]
            gradients = torch.autograd.grad(f, parameters, allow_unused=True)
            pairs = zip(gradients, parameters, strict=True)
            found.append(
                torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])
            )
        return torch.stack(found)

    return rows(x) @ rows(x if other is None else other).T


def off(found: object, expected: Tensor) -> float:
    return float((torch.as_tensor(found) - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("name", LAYERS)
def test_one_backward_pass_gives_the_gradients_of_all_samples(name):
    torch.manual_seed(0)
    build, shape = LAYERS[name]
    module, x = build().eval(), samples(shape)
    module.requires_grad_(True)
    ntk = kernel(module, x, output=0)
    assert ntk.by_jacobian == ()
    expected = gram(module, x)
    assert off(ntk.matrix, expected) < 1e-12
    assert torch.linalg.norm(torch.from_numpy(ntk.matrix) - expected, 2) <= ntk.error
    in_parts = kernel(module, x[:4], x[3:], output=0, memory=2e5, certify=False)
    assert off(in_parts.matrix, gram(module, x[:4], x[3:])) < 1e-12


@pytest.mark.parametrize("name", ["attention", "tied", "conv1d", "GRU", "embedding"])
def test_pairs_of_positions_and_gradients_give_the_same(name, monkeypatch):
    """Both ways of multiplying, whichever is cheaper."""
    torch.manual_seed(0)
    build, shape = LAYERS[name]
    module, x = build().eval(), samples(shape)
    expected = gram(module, x)
    for pays in (True, False):
        for kind in (per_sample_gradients.Factored, per_sample_gradients.Embedded):
            monkeypatch.setattr(kind, "pays_with", lambda self, other, pays=pays: pays)
        assert off(kernel(module, x, output=0, certify=False).matrix, expected) < 1e-12


def test_what_has_no_rule_goes_sample_by_sample():
    """And what a batch sorts; nothing is wrong."""
    torch.manual_seed(0)
    bilinear = Calls(lambda self, x: self.layer(x, x).sum((1, 2)), layer=nn.Bilinear(8, 8, 3))

    def in_order(self: Calls, x: Tensor) -> Tensor:
        order = x[:, 0].sum(1).argsort()
        return self.layer(x[order]).cos().sum((1, 2))[order.argsort()]

    def in_two_parts(self: Calls, x: Tensor) -> Tensor:
        """The second is turned round, and empty where there are four samples, as in the check."""
        second = self.layer(x[4:].flip(0)).flip(0)
        return torch.cat([self.layer(x[:4]), second]).cos().sum((1, 2))

    for module, names in (
        (bilinear, {"layer.weight"}),
        (Calls(in_order, layer=nn.Linear(8, 3)), {"layer.weight", "layer.bias"}),
        (Calls(in_two_parts, layer=nn.Linear(8, 3)), {"layer.weight", "layer.bias"}),
    ):
        x = torch.randn(ROWS)
        ntk = kernel(module, x)
        assert set(ntk.by_jacobian) == names
        assert off(ntk.matrix, gram(module, x)) < 1e-12


def test_samples_that_share_a_layout_by_chance_are_told_apart():
    """As many positions as samples, one more, one less, and only one of them counts: where samples
    lie does not follow from the first four of them alone."""
    for length in (3, 4, 5):
        module = Calls(
            lambda self, x: self.head(self.layer(x)[:, 0].tanh()).sum(1),
            layer=nn.Linear(8, 5), head=nn.Linear(5, 2),
        )  # fmt: skip
        x = torch.randn(4, length, 8)
        ntk = kernel(module, x)
        assert ntk.by_jacobian == ()
        assert off(ntk.matrix, gram(module, x)) < 1e-12


def test_a_checkpoint_that_hides_its_graph_is_refused_with_the_way_out():
    torch.manual_seed(0)
    module, x = checkpointed(True), torch.randn(ROWS)
    with warnings.catch_warnings(), pytest.raises(UserError, match="use_reentrant=False"):
        warnings.simplefilter("ignore")
        kernel(module, x)


def test_a_compiled_module_runs_as_it_is_written():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(N, 5)
    compiled = torch.compile(copy.deepcopy(module), backend="aot_eager")
    torch._dynamo.utils.counters.clear()
    ntk = kernel(compiled, x)
    assert off(ntk.matrix, gram(module, x)) < 1e-12
    assert not torch._dynamo.utils.counters["frames"]  # nothing was compiled
