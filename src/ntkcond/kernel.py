"""The empirical NTK, by tiles, from factored gradients.

∂f/∂Wˡ is an outer product, so that with the activations Aˡ⁻¹ and back-propagated Δˡ of n samples

    K = Σₗ (Aˡ⁻¹ Aˡ⁻¹ᵀ) ∘ (Δˡ Δˡᵀ),   l = 1..L+1

exactly (Eq. 4, 5): O(n² m L) operations, where the Jacobian's FFᵀ takes O(n² P) with P weights.
K is symmetric: only tiles on and below the diagonal are computed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from ntkcond.network import LayerGradient


class Tile(NamedTuple):
    """K[rows, columns], rows at or below columns; `values` is a buffer that the next one reuses."""

    rows: slice
    columns: slice
    values: torch.Tensor


def tile_size(n: int, device: torch.device | str = "cpu") -> int:
    """Edge of a tile: small enough that few entries above the diagonal are computed, large enough
    for a matrix product to run at its full rate (on a CPU from 256 on)."""
    if torch.device(device).type == "cuda":
        return 4096
    return 256 if n <= 4096 else 1024


def tile_count(n: int, tile: int) -> int:
    """Number of tiles on and below the diagonal."""
    edges = -(-n // tile)
    return edges * (edges + 1) // 2


def ntk_tiles(factors: Sequence[LayerGradient], tile: int | None = None) -> Iterator[Tile]:
    """The tiles of K on and below the diagonal, row by row; diagonal ones exactly symmetric.

    factors: of n samples, as a `ntkcond.network.GradientMap` gives them, float64.
    tile: edge of a tile; `tile_size` by default. Extra memory: three tiles.
    """
    first = factors[0].forward
    n = len(first)
    tile = min(tile or tile_size(n, first.device), n)
    total, product, other = (first.new_empty(tile * tile) for _ in range(3))
    for row in range(0, n, tile):
        rows = slice(row, min(row + tile, n))
        for column in range(0, row + 1, tile):
            columns = slice(column, min(column + tile, n))
            shape = (rows.stop - row, columns.stop - column)
            buffers = [b[: shape[0] * shape[1]].view(shape) for b in (total, product, other)]
            values = _accumulate(
                [f.rows(rows) for f in factors], [f.rows(columns) for f in factors], *buffers
            )
            if row == column:  # the two halves of a matrix product round differently
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
    """K, (n, n) float64, exactly symmetric: `ntk_tiles` put together."""
    n = len(factors[0].forward)
    kernel = factors[0].forward.new_empty(n, n)
    for rows, columns, values in ntk_tiles(factors, tile):
        kernel[rows, columns] = values
        kernel[columns, rows] = values.T
    return kernel
