"""Gradients of a module's layers, sample by sample, from one backward pass of all samples.

With inputs aᵢₜ and back-propagated vectors δᵢₜ of sample i at the positions t where a linear layer
is applied, its weight has the gradient Σₜ δᵢₜ aᵢₜᵀ, and the inner product of two of them is
Σₜₛ (aᵢₜ·aⱼₛ)(δᵢₜ·δⱼₛ), cheaper than theirs where positions are few. A convolution is linear in the
patches of its input; a normalisation scales what it has normalised.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

BAND_ENTRIES = 1 << 24  # of each of the two products of a band, 128 MiB
SMALL_BAND = 64  # rows: smaller products are slow
PROBES = 8


class Explicit(NamedTuple):
    """Gradients of n samples as they are, (n, weights)."""

    values: Tensor

    def explicit(self) -> Tensor:
        return self.values

    def total(self) -> Tensor:
        """Their sum, (weights,)."""
        return self.values.sum(0)

    def rows(self, index: Tensor | slice) -> "Explicit":
        """The gradients of some of the samples."""
        return Explicit(self.values[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        return (self.values**2).sum(1)

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,)."""
        return ((self.values - other.explicit()) ** 2).sum(1)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return self.values.shape[1]

    @property
    def passing(self) -> int:
        """Entries of a sample while it is computed and multiplied."""
        return 2 * self.values.shape[1]

    def compact(self) -> "Gradients":
        return self

    def gram(self, other: "Gradients") -> Tensor:
        """Their inner products with those of other samples, (n, other n). With themselves: on and
        below the diagonal; above it, some."""
        return _products(self.values, self.values if other is self else other.explicit())


class Factored(NamedTuple):
    """Gradients of n samples as factors, for each group of channels. unfold: from x, the layer's
    input, to the inputs a, (n, groups, t, inputs); inputs: how many; back: δ, (n, groups, t,
    outputs)."""

    x: Tensor
    unfold: Callable[[Tensor], Tensor]
    inputs: int
    back: Tensor

    def explicit(self) -> Tensor:
        return (self.back.mT @ self.unfold(self.x)).flatten(1)

    def total(self) -> Tensor:
        """Their sum, (weights,)."""
        a, back = (v.transpose(0, 1).flatten(1, 2) for v in (self.unfold(self.x), self.back))
        return (back.mT @ a).flatten()

    def rows(self, index: Tensor | slice) -> "Factored":
        """The gradients of some of the samples."""
        return self._replace(x=self.x[index], back=self.back[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,); by inner products of positions where these are fewer."""
        positions, outputs = self.back.shape[2:]
        if positions * (self.inputs + outputs) >= self.inputs * outputs:
            return (self.explicit() ** 2).sum(1)
        a = self.unfold(self.x)
        return ((a @ a.mT) * (self.back @ self.back.mT)).sum((1, 2, 3))

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,), from those of the
        factors: b′ᵀ a′ − bᵀ a = b′ᵀ (a′ − a) + (b′ − b)ᵀ a. With several positions and more than
        PROBES outputs an estimate (Hutchinson 1990): the mean over PROBES random vectors of signs s
        of ‖sᵀ (b′ᵀ a′ − bᵀ a)‖²."""
        if not isinstance(other, Factored):
            return ((self.explicit() - other.explicit()) ** 2).sum(1)
        n, groups, positions, _ = self.back.shape
        size = max(1, BAND_ENTRIES // (groups * positions * self.inputs))
        bands = (slice(start, start + size) for start in range(0, n, size))
        return torch.cat([self.rows(band)._apart(other.rows(band)) for band in bands])

    def _apart(self, other: "Factored") -> Tensor:
        a, b, moved = self.unfold(self.x), self.back, other.back
        along, across = self.unfold(other.x - self.x), moved - b  # linear in x
        positions, outputs = b.shape[2:]
        if positions > 1:
            if outputs > PROBES:
                signs = torch.from_numpy(_signs(outputs) / math.sqrt(PROBES)).to(b)
                moved, across = moved @ signs, across @ signs
            return ((moved.mT @ along + across.mT @ a) ** 2).sum((1, 2, 3))

        def dot(u: Tensor, v: Tensor) -> Tensor:
            return torch.einsum("ngti,ngti->ng", u, v)

        squared = dot(along, along) * dot(moved, moved) + dot(a, a) * dot(across, across)
        return (squared + 2 * dot(along, a) * dot(moved, across)).sum(1).clamp(min=0)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return self.x[0].numel() + self.back[0].numel()

    @property
    def passing(self) -> int:
        """Entries of a sample while it is multiplied: its unfolded inputs and, unless factors are
        multiplied, its gradient twice."""
        _, groups, t, outputs = self.back.shape
        return groups * self.inputs * (t if self._pays_with(self) else t + 2 * outputs)

    def compact(self) -> "Gradients":
        """The explicit ones if these are what is multiplied, and smaller."""
        _, groups, _, outputs = self.back.shape
        smaller = groups * self.inputs * outputs < self.kept
        return Explicit(self.explicit()) if smaller and not self._pays_with(self) else self

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`; by the factors where that is cheaper."""
        if not isinstance(other, Factored) or not self._pays_with(other):
            values = self.explicit()
            return _products(values, values if other is self else other.explicit())
        a, b = self.unfold(self.x), other.unfold(other.x)
        n, groups, t, _ = a.shape
        total = a.new_zeros(n, len(b))
        most = max(1, BAND_ENTRIES // (t * len(b) * b.shape[2]))
        for rows, columns in _bands(n, len(b), other is self, most):
            for g in range(groups):
                products = a[rows, g].flatten(0, 1) @ b[columns, g].flatten(0, 1).T
                products *= (
                    self.back[rows, g].flatten(0, 1) @ other.back[columns, g].flatten(0, 1).T
                )
                shape = -1, t, columns.stop, b.shape[2]
                total[rows, columns] += products.reshape(shape).sum((1, 3))
        return total

    def _pays_with(self, other: "Factored") -> bool:
        """Whether the products of factors are fewer than the weights."""
        inputs, outputs = self.inputs, self.back.shape[-1]
        positions = self.back.shape[2] * other.back.shape[2]
        return positions * (inputs + outputs + 1) <= inputs * outputs


Gradients = Explicit | Factored


@functools.cache
def _signs(outputs: int) -> np.ndarray:
    """Random vectors of ±1, (outputs, PROBES)."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (outputs, PROBES))


def _products(a: Tensor, b: Tensor) -> Tensor:
    """a bᵀ; if b is a, on and below the diagonal at least."""
    total = a.new_zeros(len(a), len(b))
    for rows, columns in _bands(len(a), len(b), b is a, len(a)):
        total[rows, columns] = a[rows] @ b[columns].T
    return total


def _bands(n: int, columns: int, symmetric: bool, most: int) -> Iterator[tuple[slice, slice]]:
    """Rows of an (n, columns) matrix, so many at most, and the columns that they need."""
    size = min(most, max(SMALL_BAND, -(-n // 4))) if symmetric else most
    for start in range(0, n, size):
        stop = min(start + size, n)
        yield slice(start, stop), slice(0, stop if symmetric else columns)


def linear(layer: nn.Linear, x: Tensor, back: Tensor) -> dict[str, Gradients]:
    back = back.reshape(len(back), 1, -1, layer.out_features)

    def rows(x: Tensor) -> Tensor:
        return x.reshape(len(x), 1, -1, layer.in_features)

    gradients: dict[str, Gradients] = {"weight": Factored(x, rows, layer.in_features, back)}
    if layer.bias is not None:
        gradients["bias"] = Explicit(back.sum((1, 2)))
    return gradients


def conv2d(layer: nn.Conv2d, x: Tensor, back: Tensor) -> dict[str, Gradients]:
    def patches(x: Tensor) -> Tensor:
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = functional.pad(x, layer._reversed_padding_repeated_twice, mode=mode)
        for axis in (0, 1):  # a view of all windows; a copy of it is faster than functional.unfold
            step, apart = layer.stride[axis], layer.dilation[axis]
            reach = apart * (layer.kernel_size[axis] - 1) + 1
            padded = padded.unfold(2 + axis, reach, step)[..., ::apart]
        windows = padded.permute(0, 1, 4, 5, 2, 3).unflatten(1, (layer.groups, -1))
        return windows.flatten(2, 4).flatten(3).mT

    by_group = back.flatten(2).unflatten(1, (layer.groups, -1)).mT
    inputs = layer.weight[0].numel()
    gradients: dict[str, Gradients] = {"weight": Factored(x, patches, inputs, by_group)}
    if layer.bias is not None:
        gradients["bias"] = Explicit(back.sum((2, 3)))
    return gradients


def normalisation(layer: Any, x: Tensor, back: Tensor) -> dict[str, Gradients]:
    """BatchNorm with fixed statistics, GroupNorm and LayerNorm."""
    if isinstance(layer, nn.LayerNorm):
        normalised = functional.layer_norm(x, layer.normalized_shape, None, None, layer.eps)
        kept = len(layer.normalized_shape)
        summed = tuple(range(1, x.ndim - kept))
    else:
        if isinstance(layer, nn.GroupNorm):
            normalised = functional.group_norm(x, layer.num_groups, None, None, layer.eps)
        else:
            normalised = functional.batch_norm(
                x, layer.running_mean, layer.running_var, None, None, False, 0.0, layer.eps
            )
        summed = tuple(range(2, x.ndim))

    def total(values: Tensor) -> Explicit:
        return Explicit((values.sum(summed) if summed else values).flatten(1))

    gradients: dict[str, Gradients] = {}
    if layer.weight is not None:
        gradients["weight"] = total(back * normalised)
    if layer.bias is not None:
        gradients["bias"] = total(back)
    return gradients


Rule = Callable[..., dict[str, Gradients]]
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    nn.BatchNorm1d: normalisation,
    nn.BatchNorm2d: normalisation,
    nn.BatchNorm3d: normalisation,
    nn.GroupNorm: normalisation,
    nn.LayerNorm: normalisation,
}


def rule(layer: nn.Module) -> Rule | None:
    """How the gradients of a layer follow from its input and the vectors back-propagated to its
    output, or None: then they are left to autograd. Of a subclass only if its forward is that of
    its parent."""
    for kind, layer_rule in RULES.items():
        if isinstance(layer, kind) and type(layer).forward is kind.forward:
            return layer_rule
    return None
