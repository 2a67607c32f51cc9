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
UNFOLDED = 1 << 20  # entries of patches at a time, 8 MiB: what stays near the processor
SMALL_BAND = 64  # rows: smaller products are slow
PROBES = 8
BY_INDEX = 16  # multiplications that reading and writing an entry by its index takes as long as
CANCELS = 8.0  # Σₜ ‖aₜ‖ ‖bₜ‖ over the norm of the gradient, above which pairs are not multiplied


class Sizes(NamedTuple):
    """Sizes of the gradient of each sample, (n,): its norm; the sum of the norms of what is added
    up in it; and the norm that its products round relative to."""

    norms: Tensor
    terms: Tensor
    multiplied: Tensor


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

    def sizes(self) -> Sizes:
        size = self.values.norm(dim=1)
        return Sizes(size, size, size)

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
        return self.of_rows(slice(None))

    def rows(self, index: Tensor | slice) -> "Factored":
        """The gradients of some of the samples."""
        return self._replace(x=self.x[index], b=self.b[index])

    def _in_bands(self) -> "Iterator[Factored]":
        """The gradients of some samples after the other, so that little is unfolded at once."""
        n, groups, t, _ = self.b.shape
        most = BAND_ENTRIES if self.unfold is as_they_are else UNFOLDED
        size = max(1, most // max(1, groups * t * self.q))
        return (self.rows(slice(start, start + size)) for start in range(0, n, size))

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        return self._with_terms()[0]

    def sizes(self) -> Sizes:
        squares, terms = self._with_terms()
        size = squares.sqrt()
        if self.b.shape[2] == 1 or not self.pays_with(self):
            return Sizes(size, terms, size)
        return Sizes(size, terms, torch.where(terms > CANCELS * size, size, terms))

    def _with_terms(self) -> tuple[Tensor, Tensor]:
        """Squared norms, and Σₜ ‖aₜ‖ ‖bₜ‖, of each sample, (n,)."""
        parts = [band._sizes_of_band() for band in self._in_bands()]
        squares, terms = zip(*parts, strict=True)
        return _joined(squares), _joined(terms)

    def _sizes_of_band(self) -> tuple[Tensor, Tensor]:
        a, (positions, p) = self.unfold(self.x), self.b.shape[2:]
        terms = (a.norm(dim=3) * self.b.norm(dim=3)).sum(2).norm(dim=1)
        if positions > 1 and positions * (self.q + p) >= self.q * p:
            return ((self.b.mT @ a) ** 2).sum((1, 2, 3)), terms
        squares = ((a @ a.mT) * (self.b @ self.b.mT)).sum((1, 2, 3)).clamp(min=0)
        lost = squares * CANCELS**2 < terms**2
        if positions > 1 and lost.any():
            squares[lost] = ((self.b[lost].mT @ a[lost]) ** 2).sum((1, 2, 3))
        return squares, terms

    def cancels(self) -> bool:
        """Whether positions do, in any sample."""
        if self.b.shape[2] == 1:
            return False
        squares, terms = self._with_terms()
        return bool((terms > CANCELS * squares.sqrt()).any())

    def apart(self, other: "Gradients") -> Tensor:
        """Squared norms of the differences from others of the same samples, (n,), from those of the
        factors: b′ᵀ a′ − bᵀ a = b′ᵀ (a′ − a) + (b′ − b)ᵀ a. With several positions and p > PROBES
        an estimate (Hutchinson 1990): the mean over PROBES random vectors of signs s of
        ‖sᵀ (b′ᵀ a′ − bᵀ a)‖²."""
        if not isinstance(other, Factored):
            return ((self.explicit() - other.explicit()) ** 2).sum(1)
        bands = zip(self._in_bands(), other._in_bands(), strict=True)
        return _joined([band._apart(of_other) for band, of_other in bands])

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
        return Explicit(self.explicit()) if smaller and not self.pays_with(self) else self

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`; by the factors where that is cheaper."""
        if not isinstance(other, Factored):
            return _products(self.explicit(), other.explicit())
        some = [self]
        if by_pairs(some, [other]):
            return self.by_positions(other)
        return _by_rows(some, some if other is self else [other])

    def by_positions(self, other: "Factored") -> Tensor:
        """The same by pairs of positions."""
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

    def of_rows(self, some: slice) -> Tensor:
        """Explicit gradients of some rows of the weights of each group, (n, weights)."""
        return _joined([(g.b[..., some].mT @ g.unfold(g.x)).flatten(1) for g in self._in_bands()])

    def pays_with(self, other: "Factored") -> bool:
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
        return values.scatter_add_(1, place, self.b).flatten(1)

    def rows(self, index: Tensor | slice) -> "Embedded":
        """The gradients of some of the samples."""
        return self._replace(taken=self.taken[index], b=self.b[index])

    def squares(self) -> Tensor:
        """Squared norms, (n,)."""
        _, samples, sums = self._summed()
        return sums.new_zeros(len(self.b)).index_add_(0, samples, (sums**2).sum(1))

    def sizes(self) -> Sizes:
        size = self.squares().sqrt()
        return Sizes(size, self.b.norm(dim=2).sum(1), size)

    def _summed(self) -> tuple[Tensor, Tensor, Tensor]:
        """For each row of the table and each sample that takes it, in this order: both, and the sum
        of its b, since positions may cancel."""
        n = len(self.b)
        sample = torch.arange(n, device=self.b.device)[:, None]
        pairs, place = (self.taken * n + sample).flatten().unique(return_inverse=True)
        sums = self.b.new_zeros(len(pairs), self.b.shape[2])
        return pairs // n, pairs % n, sums.index_add_(0, place, self.b.flatten(0, 1))

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
        gathered = 2 * self.b[0].numel()
        return gathered if self.pays_with(self) else gathered + 2 * self.table * self.b.shape[2]

    def compact(self) -> "Gradients":
        return self

    def gram(self, other: "Gradients") -> Tensor:
        """See `Explicit.gram`; row by row of the table, of the samples that take it, where that is
        cheaper."""
        if isinstance(other, Embedded):
            some = self._by_row()
            others = some if other is self else other._by_row()
            shared = [(of, others[row]) for row, of in some.items() if row in others]
            pairs = sum(len(a) * len(b) for (a, _), (b, _) in shared)
            n, m, width = len(self.b), len(other.b), self.b.shape[2]
            if self.pays_with(other) or pairs * (width + BY_INDEX) < n * m * self.table * width / 2:
                total = self.b.new_zeros(n, m)
                for (a, of_a), (b, of_b) in shared:
                    total[a[:, None], b] += of_a @ of_b.T
                return total
        values = self.explicit()
        return _products(values, values if other is self else other.explicit())

    def _by_row(self) -> dict[int, tuple[Tensor, Tensor]]:
        """For each row of the table that any sample takes: these samples, each once, and the sums
        of their b."""
        rows, samples, sums = self._summed()
        taken, counts = rows.unique_consecutive(return_counts=True)
        sizes = counts.tolist()
        parts = zip(samples.split(sizes), sums.split(sizes), strict=True)
        return dict(zip(taken.tolist(), parts, strict=True))

    def pays_with(self, other: "Embedded") -> bool:
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

    def sizes(self) -> Sizes:
        parts = (part.sizes() for part in self.parts)
        return Sizes(*(torch.stack(one).norm(dim=0) for one in zip(*parts, strict=True)))

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
    """The gradients of a weight that is used several times, from those of each use: of factors of
    one shape, with the positions of all."""
    if len(uses) == 1:
        return uses[0]
    factored = [use for use in uses if isinstance(use, Factored) and use.unfold is as_they_are]
    shapes = {(u.b.shape[1], u.b.shape[3], u.q) for u in factored}
    if len(factored) == len(uses) and len(shapes) == 1:
        b, x = (torch.cat(parts, 2) for parts in ([u.b for u in factored], [u.x for u in factored]))
        return factored[0]._replace(b=b, x=x)
    embedded = [use for use in uses if isinstance(use, Embedded)]
    if len(embedded) == len(uses) and len({(use.table, use.b.shape[2]) for use in embedded}) == 1:
        taken = torch.cat([use.taken for use in embedded], 1)
        return embedded[0]._replace(taken=taken, b=torch.cat([use.b for use in embedded], 1))
    return Explicit(functools.reduce(torch.add, (use.explicit() for use in uses)))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def by_pairs(some: Sequence[Factored], others: Sequence[Factored]) -> bool:
    """Whether pairs of positions are multiplied: if that is cheaper, and they cancel nowhere."""
    every = some if some[0] is others[0] else [*some, *others]
    return some[0].pays_with(others[0]) and not any(g.cancels() for g in every)


def of_all_outputs(some: Sequence[Gradients], others: Sequence[Gradients]) -> Tensor:
    """Inner products of the gradients of k outputs, (n k, m k), sample by sample; if `others` is
    `some`: on and below the diagonal; above it, some."""
    blocks = [g.parts for g in some if isinstance(g, Blocks)]
    of_others = [g.parts for g in others if isinstance(g, Blocks)]
    if len(blocks) == len(some) and len(of_others) == len(others):
        pairs = zip(zip(*blocks, strict=True), zip(*of_others, strict=True), strict=True)
        same = others is some
        return torch.stack([of_all_outputs(a, a if same else b) for a, b in pairs]).sum(0)
    rows = [g for g in some if isinstance(g, Factored)]
    columns = rows if others is some else [g for g in others if isinstance(g, Factored)]
    factored = len(rows) == len(some) and len(columns) == len(others)
    if factored and not by_pairs(rows, columns):
        return _by_rows(rows, columns)
    products = [torch.stack([a.gram(b) for b in others], 2) for a in some]
    return torch.stack(products, 1).flatten(2).flatten(0, 1)


def _by_rows(some: Sequence[Factored], others: Sequence[Factored]) -> Tensor:
    """The same from explicit gradients, of some rows of the weights at a time."""
    groups, p = some[0].b.shape[1], some[0].b.shape[3]
    n, m = (len(of) * len(of[0].b) for of in (some, others))
    total = some[0].b.new_zeros(n, m)
    size = max(1, 2 * BAND_ENTRIES // (max(n, m) * groups * some[0].q))
    for start in range(0, p, size):
        of_all = []
        for of in (some,) if others is some else (some, others):
            rows = [g.of_rows(slice(start, start + size)) for g in of]
            of_all.append(torch.stack(rows, 1).flatten(0, 1) if len(rows) > 1 else rows[0])
        total += _products(of_all[0], of_all[-1])
    return total


def together(by_output: Sequence[Gradients]) -> Sequence[Gradients]:
    """For norms and distances: one with the entries of all, if they are of the same inputs."""
    blocks = [g.parts for g in by_output if isinstance(g, Blocks)]
    if len(blocks) == len(by_output):
        parts = [together(part) for part in zip(*blocks, strict=True)]
        whole = all(len(part) == 1 for part in parts)
        return [Blocks(tuple(part[0] for part in parts))] if whole else by_output
    some = [g for g in by_output if isinstance(g, Factored)]
    inputs = {(g.x.data_ptr(), g.x.shape, g.x.stride()) for g in some}
    if len(some) < len(by_output) or len(inputs) > 1 or len(some) == 1:
        return by_output
    return [some[0]._replace(b=torch.cat([g.b for g in some], 3))]


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
