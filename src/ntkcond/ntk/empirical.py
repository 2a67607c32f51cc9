"""The empirical NTK, by tiles, from factored gradients.

∂f/∂Wˡ is an outer product, so that with the activations Aˡ⁻¹ and back-propagated Δˡ of n samples

    K = Σₗ (Aˡ⁻¹ Aˡ⁻¹ᵀ) ∘ (Δˡ Δˡᵀ),   l = 1..L+1

exactly (Eq. 4, 5): O(n² m L) operations, where the Jacobian's FFᵀ takes O(n² P) with P weights.
K is symmetric: only tiles on and below the diagonal are computed.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, add_product, on_cpu, xp
from ntkcond.arrays.half import Half, half_of_tiles
from ntkcond.arrays.threads import share, threads_for
from ntkcond.networks.mlp import GradientMap, LayerGradient
from ntkcond.run.errors import UserError

WIDTH = 16  # of the widest tile, in multiples of its height
WIDEST_PANEL = 768  # columns of a tile that one of several threads computes
# Samples of which threads share factors that are there: with fewer, BLAS' own threads, which made
# the factors and look for more work, are in the way.
SHARED_FROM = 2000
PART = 8192  # samples whose factors are in memory, of two such parts, where those of all are not


class KernelTile(NamedTuple):
    """K[rows, columns]; the next tile reuses the memory of `values`. Columns end at the last of
    the rows or before the first."""

    rows: slice
    columns: slice
    values: Array


def tile_size(array: Array) -> int:
    """Rows of a tile: few, to compute few entries above the diagonal; enough for the full rate of
    a matrix product (on a CPU 192: a multiple of its vectors' length)."""
    return 192 if on_cpu(array) else 1152


def tile_count(n: int, tile: int) -> int:
    """Number of tiles on and below the diagonal."""
    return sum(1 for _ in _tiles(n, tile))


def _tiles(n: int, tile: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of all tiles: bands of `tile` rows up to the diagonal, cut where they are
    too wide, the last cut at or left of the diagonal's square."""
    for row in range(0, n, tile):
        rows = slice(row, min(row + tile, n))
        starts = range(0, max(row, 1), (WIDTH - 1) * tile)
        stops = [*starts[1:], rows.stop]
        yield from ((rows, slice(*columns)) for columns in zip(starts, stops, strict=True))


def ntk_tiles(factors: Sequence[LayerGradient], tile: int | None = None) -> Iterator[KernelTile]:
    """The tiles of K on and below the diagonal, row by row; what they have of K above it, in the
    square on the diagonal, is exactly symmetric.

    factors: of n samples, from a `ntkcond.networks.mlp.GradientMap`, in any floating type.
    tile: rows of a tile; `tile_size` by default. Extra memory: three tiles, `WIDTH` times as wide.
    """
    first = factors[0].forward
    n = len(first)
    tile = min(tile or tile_size(first), n)
    functions, size = xp(first), tile * min(WIDTH * tile, n)
    buffers = [functions.empty(size, dtype=first.dtype, device=first.device) for _ in range(3)]
    for rows, columns in _tiles(n, tile):
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        values = _accumulate(
            [f.rows(rows) for f in factors], [f.rows(columns) for f in factors],
            *(buffer[: shape[0] * shape[1]].reshape(shape) for buffer in buffers),
        )  # fmt: skip
        if columns.stop == rows.stop:
            _mirror(values[:, -shape[0] :])
        yield KernelTile(rows, columns, values)


def _mirror(square: Array) -> None:
    """Makes it exactly symmetric: the two halves of a matrix product round differently."""
    functions = xp(square)
    square[:] = functions.tril(square) + functions.tril(square, k=-1).T


def _accumulate(
    rows: Sequence[LayerGradient],
    columns: Sequence[LayerGradient],
    total: Array,
    product: Array,
    other: Array,
) -> Array:
    """Σₗ (Aᵣ Aᵪᵀ) ∘ (Δᵣ Δᵪᵀ) in `total`, with two buffers of its shape."""
    matmul = xp(total).matmul
    total[:] = 0
    for r, c in zip(rows, columns, strict=True):
        matmul(r.forward, c.forward.T, out=product)
        if r.backward is None or c.backward is None:
            total += product
        else:
            matmul(r.backward, c.backward.T, out=other)
            add_product(total, product, other)
    return total


def empirical_ntk(
    factors: Sequence[LayerGradient] | GradientMap, x: Array | None = None, tile: int | None = None
) -> Array:
    """The NTK of one of the paper's networks, from factored gradients.

    Parameters
    ----------
    factors : list of LayerGradient, or function
        Of `MLP.gradients(weights)(x)` or `MLP.initial_gradients(…)(x)` on n samples; or the
        function itself, with `x`: faster on several threads.
    x : (n, d) array
        Samples, of the function.
    tile : int
        Rows of a tile.

    Returns
    -------
    (n, n) array
        K of the factors' type, exactly symmetric.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=3, width=64)
    >>> ntkcond.empirical_ntk(network.initial_gradients(seed=1, features=5), np.eye(5)).shape
    (5, 5)
    """
    like = factors[0].forward if x is None else x
    kernel = xp(like).empty((len(like), len(like)), dtype=like.dtype, device=like.device)

    def put_tile(rows: slice, columns: slice, values: Array) -> None:
        kernel[rows, columns] = values
        kernel[columns, rows] = values.T

    _each_tile(factors, x, put_tile, tile)
    return kernel


def empirical_ntk_half(
    factors: Sequence[LayerGradient] | GradientMap, x: Array | None = None
) -> Half:
    """K by half, float64: 4 n² bytes. With x (n, d), of the function: some parts' factors beside,
    each made several times."""
    like = factors[0].forward if x is None else x
    each = functools.partial(_each_tile if x is None else _each_tile_of_parts, factors, x)
    return half_of_tiles(len(like), each, like.device)


def _each_tile_of_parts(
    gradients: GradientMap, x: Array, use: Callable[[slice, slice, Array], None]
) -> None:
    """As `_each_tile`, from the factors of two parts of the samples at a time."""
    n, tile = len(x), tile_size(x)
    count = math.ceil(n / PART)
    parts = [slice(n * i // count, n * (i + 1) // count) for i in range(count)]

    def shifted(rows: slice, columns: slice, values: Array) -> None:
        use(_shifted(rows, part.start), _shifted(columns, part.start), values)

    def between(tasks: Iterator[slice]) -> None:
        out = xp(x).empty((tile, len(others[0].forward)), dtype=x.dtype, device=x.device)
        for rows in tasks:
            values = out[: rows.stop - rows.start]
            ntk_between([f.rows(rows) for f in factors], others, values)
            use(_shifted(rows, part.start), earlier, values)

    for i, part in enumerate(parts):
        factors = gradients(x[part])
        _each_tile(factors, None, shifted)
        length = part.stop - part.start
        for earlier in parts[:i]:
            others = gradients(x[earlier])
            bands = (slice(start, min(start + tile, length)) for start in range(0, length, tile))
            share(between, bands, threads_for(x))


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def _each_tile(
    factors: Sequence[LayerGradient] | GradientMap,
    x: Array | None,
    use: Callable[[slice, slice, Array], None],
    tile: int | None = None,
) -> None:
    """use(rows, columns, values) for tiles of K that together have all on and below the diagonal:
    those of `ntk_tiles`; with several threads others, in no order, by several threads."""
    like = factors[0].forward if x is None else x
    threads = threads_for(like)
    if threads == 1 or tile or (x is None and len(like) < SHARED_FROM):
        for found in ntk_tiles(factors if x is None else factors(x), tile):
            use(*found)
        return
    n = len(like)
    # An even share of panels for each thread
    count = min(n, 2 * threads * math.ceil(n / (2 * threads * WIDEST_PANEL)))
    panels = [slice(n * i // count, n * (i + 1) // count) for i in range(count)]
    parts: list[Sequence[LayerGradient]] = [[]] * count

    def make_factors(tasks: Iterator[int]) -> None:
        for i in tasks:
            parts[i] = [f.rows(panels[i]) for f in factors] if x is None else factors(x[panels[i]])

    def make_tiles(tasks: Iterator[tuple[int, slice, int]]) -> None:
        buffers = [np.empty(tile_size(like) * WIDEST_PANEL, like.dtype) for _ in range(3)]
        for i, rows, j in tasks:
            start = panels[i].start
            columns = slice(panels[j].start, rows.stop if i == j else panels[j].stop)
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            values = _accumulate(
                [f.rows(slice(rows.start - start, rows.stop - start)) for f in parts[i]],
                [f.rows(slice(0, shape[1])) for f in parts[j]],
                *(buffer[: shape[0] * shape[1]].reshape(shape) for buffer in buffers),
            )
            if i == j:
                _mirror(values[:, -shape[0] :])
            use(rows, columns, values)

    share(make_factors, range(count), 1 if x is None else threads)
    share(make_tiles, _tiles_of_panels(panels, tile_size(like)), threads)


def _tiles_of_panels(panels: Sequence[slice], tile: int) -> Iterator[tuple[int, slice, int]]:
    """Panel and rows of each tile, and the panel of its columns."""
    for i, panel in enumerate(panels):
        length = panel.stop - panel.start
        height = math.ceil(length / math.ceil(length / tile))
        for start in range(panel.start, panel.stop, height):
            rows = slice(start, min(start + height, panel.stop))
            yield from ((i, rows, j) for j in range(i + 1))


def ntk_between(
    rows: Sequence[LayerGradient], columns: Sequence[LayerGradient], out: Array
) -> None:
    """The entries of K for two sets of samples, into `out`, (samples in rows, in columns)."""
    functions, (height, n) = xp(out), out.shape
    wide = WIDTH * tile_size(out)  # as wide as the widest tile: cached, until it is added up
    for start in range(0, n, wide):
        part = slice(start, min(start + wide, n))
        shape = (height, part.stop - start)
        made = {"dtype": out.dtype, "device": out.device}
        product, other = (functions.empty(shape, **made) for _ in range(2))
        _accumulate(rows, [f.rows(part) for f in columns], out[:, part], product, other)


def require_finite(values: np.ndarray, dataset: str, depth: int) -> None:
    """Raises UserError for entries of K that are no numbers."""
    if not np.isfinite(values).all():
        raise UserError(
            f"the NTK of {dataset} at depth {depth} is beyond the range of float64. Lower the"
            " depth, or scale the samples down"
        )


def ntk_product(
    gradients: GradientMap,
    x: Array,
    v: Array,
    rows: int = 4096,
    joined: Callable[[Array], Array] = lambda total: total,
) -> Array:
    """K v without K: J (Jᵀ v), where Jᵀ v has a layer's Σᵢ vᵢ δᵢ αᵢᵀ. O(n P) operations for P
    weights. An independent check of an eigenvector of the stored K.

    x: (n, d) float64; v: (n,) on the same device; rows: samples at once. joined: adds up the sums
    of several processes, each of which has a part of the samples, and gets its part of K v.
    """
    parts = [slice(start, start + rows) for start in range(0, len(x) or 1, rows)]
    sums = None
    for part in parts:
        part_sums = [_weighted(layer, v[part]) for layer in gradients(x[part])]
        sums = part_sums if sums is None else [a + b for a, b in zip(sums, part_sums, strict=True)]
    sums = [joined(total) for total in sums]
    return xp(x).concat([
        sum(_inner(layer, total) for layer, total in zip(gradients(x[part]), sums, strict=True))
        for part in parts
    ])  # fmt: skip


def _weighted(layer: LayerGradient, v: Array) -> Array:
    """Σᵢ vᵢ ∂f(xᵢ)/∂W: (inputs, outputs) of the layer, or (inputs,) of the last."""
    weighted = layer.forward.T * v
    return weighted.sum(1) if layer.backward is None else weighted @ layer.backward


def _inner(layer: LayerGradient, direction: Array) -> Array:
    """The inner product of each sample's gradient with a direction: (n,)."""
    image = layer.forward @ direction
    return image if layer.backward is None else (image * layer.backward).sum(1)
