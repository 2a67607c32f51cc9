"""Networks beside the paper's, as torch modules: with biases, residual, normalised, convolutional,
and a transformer.

All have L hidden layers of m neurons (channels), i.i.d. N(0, 1) weights and the factors √(c_σ/m)
of Eq. (1), so that hidden layers keep the norm of their inputs where nothing else changes it; one
output. A user's own is a function in a Python file (`own`).
"""

import importlib.util
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ntkcond.networks.activations import Activation
from ntkcond.networks.gaussian import normalisation
from ntkcond.run.errors import UserError

SIDE = 3  # of a convolution's filters
PATCH = 4  # pixels, of a transformer's tokens


class Hidden(nn.Module):
    """αˡ = √(c_σ/m) σ(Wˡ αˡ⁻¹), on its own or as a part of a layer."""

    def __init__(self, activation: Activation, layer: nn.Module, fan_in: int) -> None:
        super().__init__()
        self.layer, self.activation = layer, activation
        self.scale = math.sqrt(normalisation(activation) / fan_in)

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.activation.value(self.layer(x))


class WithOnes(nn.Module):
    """Inputs with β as one more entry, whose weights are biases."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, x.new_full((len(x), 1), self.bias)], dim=1)


class Residual(nn.Module):
    """(α + h(α))/√2."""

    def __init__(self, hidden: nn.Module) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.hidden(x)) / math.sqrt(2)


class Scaled(nn.Module):
    """A factor."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


class Linear(nn.Module):
    """W α/√k, of k inputs, without a bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(inputs, outputs, bias=False), 1 / math.sqrt(inputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.layer(x)


class Patches(nn.Module):
    """A token for each square of an image, of PATCH pixels a side, zero beyond its edge:
    (W x + p)/√m of its pixels x and the parameters p of its place."""

    def __init__(self, shape: Sequence[int], width: int) -> None:
        super().__init__()
        channels, self.height, self.across = shape
        self.tokens = math.ceil(self.height / PATCH) * math.ceil(self.across / PATCH)
        self.layer = nn.Linear(channels * PATCH**2, width, bias=False)
        self.places = nn.Parameter(torch.zeros(self.tokens, width))
        self.scale = 1 / math.sqrt(width)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pad(x, (0, -self.across % PATCH, 0, -self.height % PATCH))
        x = functional.unfold(x, PATCH, stride=PATCH).mT
        return self.scale * (self.layer(x) + self.places)


class Attention(nn.Module):
    """For each token the mean of the values of all, weighted by softmax(q·k/√d), with linear layers
    to queries, keys and values of d entries, and back; 4 heads, or 2 or 1 where m is odd."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = math.gcd(width, 4)
        self.projections, self.back = Linear(width, 3 * width), Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        by_head = self.projections(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*by_head.unbind(0))
        return self.back(mixed.transpose(1, 2).flatten(2))


Shape = Sequence[int]


def _dense(
    shape: Shape, depth: int, width: int, activation: Activation, more: int = 0
) -> list[nn.Module]:
    """L fully connected hidden layers; more: inputs of each beside those of the layer below."""
    sizes = [math.prod(shape), *[width] * depth]
    return [
        Hidden(activation, nn.Linear(a + more, b, bias=False), b)
        for a, b in itertools.pairwise(sizes)
    ]


def _output(shape: Shape, depth: int, width: int, more: int = 0) -> nn.Module:
    return nn.Linear((width if depth else math.prod(shape)) + more, 1, bias=False)


def plain(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """The paper's own, fully connected, without biases."""
    hidden = _dense(shape, depth, width, activation)
    return nn.Sequential(nn.Flatten(), *hidden, _output(shape, depth, width))


def biases(
    shape: Shape, depth: int, width: int, activation: Activation, bias: float = 0.5
) -> nn.Module:
    """The same with biases β b in every layer; bias: β."""
    layers = [*_dense(shape, depth, width, activation, 1), _output(shape, depth, width, 1)]
    pairs = ((WithOnes(bias), layer) for layer in layers)
    return nn.Sequential(nn.Flatten(), *(part for pair in pairs for part in pair))


def residual(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """αˡ = (αˡ⁻¹ + √(c_σ/m) σ(Wˡ αˡ⁻¹))/√2 from the second layer on."""
    hidden = _dense(shape, depth, width, activation)
    blocks = [*hidden[:1], *map(Residual, hidden[1:])]
    return nn.Sequential(nn.Flatten(), *blocks, _output(shape, depth, width))


def residual_linear(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """αˡ = (αˡ⁻¹ + √(1/m) Vˡ √(c_σ/m) σ(Wˡ αˡ⁻¹))/√2 from the second layer on: V leaves no mean."""
    hidden = _dense(shape, depth, width, activation)
    pairs = (nn.Sequential(layer, Linear(width, width)) for layer in hidden[1:])
    blocks = [*hidden[:1], *map(Residual, pairs)]
    return nn.Sequential(nn.Flatten(), *blocks, _output(shape, depth, width))


def _norm(width: int) -> nn.Module:
    """To mean 0 and norm √m."""
    return nn.LayerNorm(width, elementwise_affine=False)


def normalised(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """Layer normalisation after each hidden layer, to norm 1."""
    norm = _norm(width), Scaled(1 / math.sqrt(width))
    layers = [part for layer in _dense(shape, depth, width, activation) for part in (layer, *norm)]
    return nn.Sequential(nn.Flatten(), *layers, _output(shape, depth, width))


def convolutional(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """L convolutions by 3 × 3 filters that keep the size of the image, then the sum over it,
    divided by the root of the number of pixels."""
    if len(shape) != 3:
        raise UserError(f"a convolutional network needs images, not samples of shape {shape}")
    channels, height, across = shape
    sizes = [channels, *[width] * depth]
    hidden = [
        Hidden(activation, nn.Conv2d(a, b, SIDE, padding="same", bias=False), b * SIDE**2)
        for a, b in itertools.pairwise(sizes)
    ]
    pixels = nn.AvgPool2d((height, across)), nn.Flatten(), Scaled(math.sqrt(height * across))
    return nn.Sequential(*hidden, *pixels, _output((channels,), depth, width))


def transformer(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
    """A small vision transformer: L blocks of attention and of a network with one hidden layer,
    each on normalised tokens and added as in `residual`; the output is of the mean token."""
    if len(shape) != 3:
        raise UserError(f"a transformer here needs images, not samples of shape {shape}")
    patches, unit = Patches(shape, width), Scaled(1 / math.sqrt(width))
    blocks: list[nn.Module] = []
    for _ in range(depth):
        hidden = Hidden(activation, nn.Linear(width, width, bias=False), width)
        blocks += [
            Residual(nn.Sequential(*parts))
            for parts in (
                (_norm(width), Attention(width), unit),
                (_norm(width), unit, hidden, Linear(width, width)),
            )
        ]
    mean = nn.AvgPool2d((patches.tokens, 1)), nn.Flatten()
    return nn.Sequential(patches, *blocks, _norm(width), unit, *mean, _output((width,), 0, width))


Builder = Callable[[Shape, int, int, Activation], nn.Module]
BUILDERS: dict[str, Builder] = {
    "plain": plain,
    "biases": biases,
    "residual": residual,
    "residual_linear": residual_linear,
    "normalised": normalised,
    "convolutional": convolutional,
    "transformer": transformer,
}


def builder(name: str, bias: float | None) -> Builder:
    """The builder of this name. bias: β, which `biases` needs: raises UserError without it."""
    if name != "biases":
        return BUILDERS[name]
    if bias is None:
        raise UserError("the network biases needs β: give --bias")
    return partial(biases, bias=bias)


def drawn(module: nn.Module, seed: int) -> nn.Module:
    """The module in float64 with all parameters i.i.d. N(0, 1), from a counter-based stream that
    depends on seed, shape and place of each alone."""
    module = module.double()
    with torch.no_grad():
        for place, p in enumerate(module.parameters()):
            stream = np.random.Philox(np.random.SeedSequence([seed, place, *p.shape]))
            values = np.random.Generator(stream).standard_normal(tuple(p.shape))
            p.copy_(torch.from_numpy(values))
    return module


def builder_of_file(path: Path | str) -> Builder:
    """`network(shape, depth, width, activation)` of a user's Python file, which returns a
    torch.nn.Module at its initial weights. Raises UserError, here or when called, if there is none.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file. Correct architectures.own")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    loaded: ModuleType = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:  # whatever a user's file may raise
        raise UserError(f"{path}: {type(error).__name__}: {error}") from error
    if not callable(getattr(loaded, "network", None)):
        raise UserError(f"{path}: has no function network(shape, depth, width, activation)")

    def built(shape: Shape, depth: int, width: int, activation: Activation) -> nn.Module:
        try:
            module = loaded.network(shape, depth, width, activation)
        except Exception as error:
            raise UserError(f"{path}: network: {type(error).__name__}: {error}") from error
        if not isinstance(module, nn.Module):
            kind = type(module).__name__
            raise UserError(f"{path}: network returns a {kind}, not a torch.nn.Module")
        return module

    return built
