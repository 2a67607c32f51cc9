"""The empirical NTK, by tiles, from factored gradients.

∂f/∂Wˡ is an outer product, so that with the activations Aˡ⁻¹ and back-propagated Δˡ of n samples

    K = Σₗ (Aˡ⁻¹ Aˡ⁻¹ᵀ) ∘ (Δˡ Δˡᵀ),   l = 1..L+1

exactly (Eq. 4, 5): O(n² m L) operations, where the Jacobian's FFᵀ takes O(n² P) with P weights.
K is symmetric: only tiles on and below the diagonal are computed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from ntkcond.networks.mlp import LayerGradient

WIDTH = 16  # of the widest tile, in multiples of its height


class Tile(NamedTuple):
    """K[rows, columns], rows at or below columns; the next tile reuses the memory of `values`."""

    rows: slice
    columns: slice
    values: torch.Tensor


def tile_size(device: torch.device | str = "cpu") -> int:
    """Rows of a tile: few, to compute few entries above the diagonal; enough for the full rate of
    a matrix product (on a CPU 192: a multiple of its vectors' length)."""
    return 1024 if torch.device(device).type == "cuda" else 192


def tile_count(n: int, tile: int) -> int:
    """Number of tiles on and below the diagonal."""
    return sum(1 for _ in _tiles(n, tile))


def _tiles(n: int, tile: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of all tiles: in each band of `tile` rows, wide ones below the diagonal and
    a square one on it."""
    for row in range(0, n, tile):
        rows = slice(row, min(row + tile, n))
        for column in range(0, row, WIDTH * tile):
            yield rows, slice(column, min(column + WIDTH * tile, row))
        yield rows, rows


def ntk_tiles(factors: Sequence[LayerGradient], tile: int | None = None) -> Iterator[Tile]:
    """The tiles of K on and below the diagonal, row by row; diagonal ones exactly symmetric.

    factors: of n samples, from a `ntkcond.networks.mlp.GradientMap`, in any floating type.
    tile: rows of a tile; `tile_size` by default. Extra memory: three tiles, `WIDTH` times as wide.
    """
    first = factors[0].forward
    n = len(first)
    tile = min(tile or tile_size(first.device), n)
    total, product, other = (first.new_empty(tile * min(WIDTH * tile, n)) for _ in range(3))
    for rows, columns in _tiles(n, tile):
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        buffers = [b[: shape[0] * shape[1]].view(shape) for b in (total, product, other)]
        values = _accumulate(
            [f.rows(rows) for f in factors], [f.rows(columns) for f in factors], *buffers
        )
        if rows == columns:  # the two halves of a matrix product round differently
            values.copy_(values.tril() + values.tril(-1).mT)
        yield Tile(rows, columns, values)


def _accumulate(
    rows: Sequence[LayerGradient],
    columns: Sequence[LayerGradient],
    total: torch.Tensor,
    product: torch.Tensor,
    other: torch.Tensor,
) -> torch.Tensor:
    """Σₗ (Aᵣ Aᵪᵀ) ∘ (Δᵣ Δᵪᵀ) in `total`, with two buffers of its shape."""
    total.zero_()
    for r, c in zip(rows, columns, strict=True):
        if r.backward is None or c.backward is None:
            total.addmm_(r.forward, c.forward.T)
        else:
            torch.mm(r.forward, c.forward.T, out=product)
            torch.mm(r.backward, c.backward.T, out=other)
            total.addcmul_(product, other)
    return total


def empirical_ntk(factors: Sequence[LayerGradient], tile: int | None = None) -> torch.Tensor:
    """K, (n, n) of the factors' type, exactly symmetric, from `ntk_tiles`."""
    n = len(factors[0].forward)
    kernel = factors[0].forward.new_empty(n, n)
    for rows, columns, values in ntk_tiles(factors, tile):
        kernel[rows, columns] = values
        kernel[columns, rows] = values.T
    return kernel
