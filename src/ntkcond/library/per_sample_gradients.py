"""Gradients of n samples with respect to the same weights, in the form in which one backward pass
gives them, and their inner products.

The weight of a linear layer has the gradient Σₜ bᵢₜ aᵢₜᵀ, of inputs aᵢₜ and back-propagated vectors
bᵢₜ at the positions t of sample i: tokens, steps in time, places of an image (a convolution is
linear in the patches of its input). The inner product of two of them is Σₜₛ (aᵢₜ·aⱼₛ)(bᵢₜ·bⱼₛ).
Both ways are counted: pairs of positions cost p + q + 1 multiplications each, gradients p q in all,
and the fewer are done (structured derivatives: Novak, Sohl-Dickstein, Schoenholz 2022). Where
positions cancel, as in finite differences, products of pairs round relative to Σₜ ‖aᵢₜ‖ ‖bᵢₜ‖, far
above the norm of the gradient: then the gradients are multiplied.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

BAND_ENTRIES = 1 << 24  # of each of the two products of a band, 128 MiB
SMALL_BAND = 64  # rows: smaller products are slow
PROBES = 8
CANCELS = 8.0  # Σₜ ‖aₜ‖ ‖bₜ‖ over the norm of the gradient, above which pairs are not multiplied


class Explicit(NamedTuple):
    """Gradients of n samples as they are, (n, weights)."""

    values: Tensor

    def explicit(self) -> Tensor:
        return self.values

    def rows(self, index: Tensor | slice) -> "Explicit":
        """The gradients of some of the samples."""
        return Explicit(self.values[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        return (self.values**2).sum(1)

    def terms(self) -> Tensor:
        """Sums of the norms of what is added up in a gradient, (n,)."""
        return self.values.norm(dim=1)

    def multiplied(self) -> Tensor:
        """Norms that the products of gradients round relative to, (n,)."""
        return self.values.norm(dim=1)

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,)."""
        return ((self.values - other.explicit()) ** 2).sum(1)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return self.values.shape[1]

    @property
    def passing(self) -> int:
        """Entries of a sample while it is computed."""
        return self.values.shape[1]

    def compact(self) -> "Gradients":
        return self

    def gram(self, other: "Gradients") -> Tensor:
        """Their inner products with those of other samples, (n, other n). With themselves: on and
        below the diagonal; above it, some."""
        return _products(self.values, self.values if other is self else other.explicit())


def as_they_are(x: Tensor) -> Tensor:
    return x


class Factored(NamedTuple):
    """Gradients of n samples as factors, Σₜ bᵢₜ aᵢₜᵀ for each group of channels. b: (n, groups, t,
    p). unfold: from x to a, (n, groups, t, q); where x is a, `as_they_are`."""

    b: Tensor
    x: Tensor
    q: int
    unfold: Callable[[Tensor], Tensor] = as_they_are

    def explicit(self) -> Tensor:
        return (self.b.mT @ self.unfold(self.x)).flatten(1)

    def rows(self, index: Tensor | slice) -> "Factored":
        """The gradients of some of the samples."""
        return self._replace(x=self.x[index], b=self.b[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        positions, p = self.b.shape[2:]
        if positions > 1 and positions * (self.q + p) >= self.q * p:
            return (self.explicit() ** 2).sum(1)
        a = self.unfold(self.x)
        squares = ((a @ a.mT) * (self.b @ self.b.mT)).sum((1, 2, 3)).clamp(min=0)
        lost = squares * CANCELS**2 < self.terms() ** 2
        if positions > 1 and lost.any():
            squares[lost] = (self.rows(lost).explicit() ** 2).sum(1)
        return squares

    def terms(self) -> Tensor:
        """Σₜ ‖aₜ‖ ‖bₜ‖ of each sample, (n,)."""
        sizes = self.unfold(self.x).norm(dim=3) * self.b.norm(dim=3)
        return sizes.sum(2).norm(dim=1)

    def multiplied(self) -> Tensor:
        """Norms that the products of gradients round relative to, (n,)."""
        norms = self.squares().sqrt()
        if self.b.shape[2] == 1 or not self._pays_with(self):
            return norms
        terms = self.terms()
        return torch.where(terms > CANCELS * norms, norms, terms)

    def _cancels(self) -> bool:
        """Whether positions do, in any sample."""
        if self.b.shape[2] == 1:
            return False
        return bool((self.terms() > CANCELS * self.squares().sqrt()).any())

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,), from those of the
        factors: b′ᵀ a′ − bᵀ a = b′ᵀ (a′ − a) + (b′ − b)ᵀ a. With several positions and p > PROBES
        an estimate (Hutchinson 1990): the mean over PROBES random vectors of signs s of
        ‖sᵀ (b′ᵀ a′ − bᵀ a)‖²."""
        if not isinstance(other, Factored):
            return ((self.explicit() - other.explicit()) ** 2).sum(1)
        n, groups, positions, _ = self.b.shape
        size = max(1, BAND_ENTRIES // (groups * positions * self.q))
        bands = (slice(start, start + size) for start in range(0, n, size))
        return torch.cat([self.rows(band)._apart(other.rows(band)) for band in bands])

    def _apart(self, other: "Factored") -> Tensor:
        a, b, moved = self.unfold(self.x), self.b, other.b
        along, across = self.unfold(other.x - self.x), moved - b  # linear in x
        positions, p = b.shape[2:]
        if positions > 1:
            if p > PROBES:
                signs = torch.from_numpy(_signs(p) / math.sqrt(PROBES)).to(b)
                moved, across = moved @ signs, across @ signs
            return ((moved.mT @ along + across.mT @ a) ** 2).sum((1, 2, 3))

        def dot(u: Tensor, v: Tensor) -> Tensor:
            return torch.einsum("ngti,ngti->ng", u, v)

        squared = dot(along, along) * dot(moved, moved) + dot(a, a) * dot(across, across)
        return (squared + 2 * dot(along, a) * dot(moved, across)).sum(1).clamp(min=0)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return self.x[0].numel() + self.b[0].numel()

    @property
    def passing(self) -> int:
        """Entries of a sample while it is multiplied: its unfolded inputs."""
        return self.b.shape[1] * self.b.shape[2] * self.q

    def compact(self) -> "Gradients":
        """The explicit ones if these are what is multiplied, and smaller."""
        _, groups, _, p = self.b.shape
        smaller = groups * self.q * p < self.kept
        return Explicit(self.explicit()) if smaller and not self._pays_with(self) else self

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`; by the factors where that is cheaper."""
        if not isinstance(other, Factored):
            return _products(self.explicit(), other.explicit())
        cancels = self._cancels() or (other is not self and other._cancels())
        if cancels or not self._pays_with(other):
            return self._by_gradients(other)
        a, b = self.unfold(self.x), other.unfold(other.x)
        n, groups, t, _ = a.shape
        total = a.new_zeros(n, len(b))
        most = max(1, BAND_ENTRIES // (t * len(b) * b.shape[2]))
        for rows, columns in _bands(n, len(b), other is self, most):
            for g in range(groups):
                products = a[rows, g].flatten(0, 1) @ b[columns, g].flatten(0, 1).T
                products *= self.b[rows, g].flatten(0, 1) @ other.b[columns, g].flatten(0, 1).T
                shape = -1, t, columns.stop, b.shape[2]
                total[rows, columns] += products.reshape(shape).sum((1, 3))
        return total

    def _by_gradients(self, other: "Factored") -> Tensor:
        """The same by explicit gradients, of some rows of the weights at a time."""
        total = self.b.new_zeros(len(self.b), len(other.b))
        groups, p = self.b.shape[1], self.b.shape[3]
        size = max(1, 2 * BAND_ENTRIES // (max(total.shape) * groups * self.q))
        for start in range(0, p, size):
            some = slice(start, start + size)
            values = self._of_rows(some)
            total += _products(values, values if other is self else other._of_rows(some))
        return total

    def _of_rows(self, some: slice) -> Tensor:
        """Explicit gradients of some rows of the weights of each group, (n, weights)."""
        n, groups, t, _ = self.b.shape
        size = max(1, BAND_ENTRIES // (groups * t * self.q))
        bands = (slice(start, start + size) for start in range(0, n, size))
        return torch.cat(
            [(self.b[i, ..., some].mT @ self.unfold(self.x[i])).flatten(1) for i in bands]
        )

    def _pays_with(self, other: "Factored") -> bool:
        """Whether the products of factors take fewer multiplications than those of gradients."""
        p, positions = self.b.shape[-1], self.b.shape[2] * other.b.shape[2]
        return positions * (self.q + p + 1) <= self.q * p


class Embedded(NamedTuple):
    """Gradients of n samples with respect to a table of rows, of which each position takes one:
    Σₜ e(iₜ) bₜᵀ. taken: (n, t); b: (n, t, width)."""

    taken: Tensor
    b: Tensor
    table: int

    def explicit(self) -> Tensor:
        values = self.b.new_zeros(len(self.b), self.table, self.b.shape[2])
        place = self.taken[..., None].expand_as(self.b)
        return values.scatter_add(1, place, self.b).flatten(1)

    def rows(self, index: Tensor | slice) -> "Embedded":
        """The gradients of some of the samples."""
        return self._replace(taken=self.taken[index], b=self.b[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        return (self._gathered().b ** 2).sum((1, 2))

    def terms(self) -> Tensor:
        """Sums of ‖bₜ‖, (n,)."""
        return self.b.norm(dim=2).sum(1)

    def multiplied(self) -> Tensor:
        """Norms that the products of gradients round relative to, (n,)."""
        return self.squares().sqrt()

    def _gathered(self) -> "Embedded":
        """With all of a row of the table at its first position: added up before it is multiplied,
        since positions may cancel."""
        same = self.taken[:, :, None] == self.taken[:, None]
        first = ~same.tril(-1).any(2, keepdim=True)
        return self._replace(b=(same.to(self.b) @ self.b) * first)

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,)."""
        if isinstance(other, Embedded):
            return self._replace(b=other.b - self.b).squares()
        return ((self.explicit() - other.explicit()) ** 2).sum(1)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return self.taken[0].numel() + self.b[0].numel()

    @property
    def passing(self) -> int:
        """Entries of a sample while it is multiplied."""
        return 0 if self._pays_with(self) else 2 * self.table * self.b.shape[2]

    def compact(self) -> "Gradients":
        return self

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`; by pairs of positions with the same row where that is cheaper."""
        if not isinstance(other, Embedded) or not self._pays_with(other):
            values = self.explicit()
            return _products(values, values if other is self else other.explicit())
        (n, t), (m, s) = self.taken.shape, other.taken.shape
        total = self.b.new_zeros(n, m)
        most = max(1, BAND_ENTRIES // (t * m * s))
        b = self._gathered().b
        other_b = b if other is self else other._gathered().b
        for rows, columns in _bands(n, m, other is self, most):
            products = b[rows].flatten(0, 1) @ other_b[columns].flatten(0, 1).T
            products *= self.taken[rows].reshape(-1, 1) == other.taken[columns].reshape(1, -1)
            total[rows, columns] = products.reshape(-1, t, columns.stop, s).sum((1, 3))
        return total

    def _pays_with(self, other: "Embedded") -> bool:
        width = self.b.shape[2]
        return self.b.shape[1] * other.b.shape[1] * (width + 1) <= self.table * width


class Blocks(NamedTuple):
    """Gradients with respect to parts of a parameter that share no entry, such as the three
    projections that attention keeps in one weight."""

    parts: tuple["Gradients", ...]

    def explicit(self) -> Tensor:
        return torch.cat([part.explicit() for part in self.parts], 1)

    def rows(self, index: Tensor | slice) -> "Blocks":
        """The gradients of some of the samples."""
        return Blocks(tuple(part.rows(index) for part in self.parts))

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        return torch.stack([part.squares() for part in self.parts]).sum(0)

    def terms(self) -> Tensor:
        """Sums of the norms of what is added up in a gradient, (n,)."""
        return torch.stack([part.terms() for part in self.parts]).norm(dim=0)

    def multiplied(self) -> Tensor:
        """Norms that the products of gradients round relative to, (n,)."""
        return torch.stack([part.multiplied() for part in self.parts]).norm(dim=0)

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,)."""
        if not isinstance(other, Blocks):
            return ((self.explicit() - other.explicit()) ** 2).sum(1)
        pairs = zip(self.parts, other.parts, strict=True)
        return torch.stack([one.apart(another) for one, another in pairs]).sum(0)

    @property
    def kept(self) -> int:
        """Entries of a sample."""
        return sum(part.kept for part in self.parts)

    @property
    def passing(self) -> int:
        """Entries of a sample while it is computed and multiplied."""
        return max(part.passing for part in self.parts)

    def compact(self) -> "Gradients":
        return Blocks(tuple(part.compact() for part in self.parts))

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`."""
        if not isinstance(other, Blocks):
            return _products(self.explicit(), other.explicit())
        pairs = zip(self.parts, other.parts, strict=True)
        return torch.stack([one.gram(another) for one, another in pairs]).sum(0)


Gradients = Explicit | Factored | Embedded | Blocks


def added(uses: Sequence[Gradients]) -> Gradients:
    """The gradients of a weight that is used several times, from those of each use: of factors,
    with the positions of all."""
    if len(uses) == 1:
        return uses[0]
    factored = [use for use in uses if isinstance(use, Factored) and use.unfold is as_they_are]
    if len(factored) == len(uses):
        b, x = (torch.cat(parts, 2) for parts in ([u.b for u in factored], [u.x for u in factored]))
        return factored[0]._replace(b=b, x=x)
    embedded = [use for use in uses if isinstance(use, Embedded)]
    if len(embedded) == len(uses):
        taken = torch.cat([use.taken for use in embedded], 1)
        return embedded[0]._replace(taken=taken, b=torch.cat([use.b for use in embedded], 1))
    return Explicit(functools.reduce(torch.add, (use.explicit() for use in uses)))


def room_for(first: Gradients, n: int) -> Gradients:
    """As those of some samples, for those of n, which `put` writes: to keep each part as it comes
    would leave the memory between them in pieces."""
    if isinstance(first, Blocks):
        return Blocks(tuple(room_for(part, n) for part in first.parts))
    any_kind: Any = first
    rooms = {name: v.new_empty(n, *v.shape[1:]) for name, v in _tensors(first).items()}
    return any_kind._replace(**rooms)


def put(room: Gradients, rows: slice, part: Gradients) -> None:
    """Writes the gradients of some samples to their rows of `room_for`."""
    if isinstance(room, Blocks) and isinstance(part, Blocks):
        for one, other in zip(room.parts, part.parts, strict=True):
            put(one, rows, other)
        return
    values = _tensors(part)
    for name, whole in _tensors(room).items():
        whole[rows] = values[name]


def _tensors(gradients: Any) -> dict[str, Tensor]:
    return {name: v for name, v in gradients._asdict().items() if isinstance(v, Tensor)}


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
