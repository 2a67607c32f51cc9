"""Memory that kernels, angles, spectra and training need, from n, m, d and L alone.

The Snakefile reads this for the jobs' `mem_mb`: beside errors, standard library only.
"""

import math
from typing import NamedTuple

from ntkcond.run.errors import UserError

FLOAT64, FLOAT32 = 8, 4
INTERPRETER = 150_000_000  # Python with NumPy and SciPy loaded
TORCH = 250_000_000  # more, with torch
CUDA = 3_000_000_000  # more of the host's, with torch's CUDA build at work; not measured
TILES = 3 * FLOAT64 * 192 * (16 * 192)  # `ntkcond.ntk.empirical.ntk_tiles`, on a CPU
GPU_TILES = 500_000_000  # by how much those of a GPU are larger, with its libraries' workspace
BY_HALF_FROM = 2001  # samples in a kernel: `ntkcond.ntk.spectrum.FULL_SPECTRUM_UP_TO` and one
PANEL = 576  # of `ntkcond.arrays.half`
KERNEL_CHUNK = (192, PANEL)  # tiles of a kernel that is kept by half, in its file
TILE = 128  # of `ntkcond.arrays.block_cyclic`
RANK = 100_000_000  # more of a rank than of INTERPRETER: MPI, ScaLAPACK and their buffers
INDEX_LIMIT = 2**31 - 1  # entries of a rank: ScaLAPACK counts them in 32 bits
BAND, BAND_ENTRIES = 256, 2**22  # of `ntkcond.ntk.infinite_width`
PRODUCT_ROWS = 4096  # samples at once in `ntkcond.ntk.empirical.ntk_product`
AT_ONCE = 2048  # samples whose errors `ntkcond.ntk.rounding` follows together
NOISE = 256  # rows of noise at least, in the same module
FILTER = 9  # weights of a convolution's filter for each pair of channels
MODULE = 2_000_000_000  # of gradients at once in `ntkcond.ntk.of_module.kernel`
ALONE = 4  # samples run alone in the same module
COORDINATES = 129  # of each gradient in `ntkcond.ntk.closest_pair`
PAIR_TILES = 6 * FLOAT64 * 1024**2  # in the same module
TEST_ROWS = 2000  # test samples that pass through the networks at once


class Need(NamedTuple):
    """A computation, the bytes that it needs, and the settings that lower them."""

    what: str
    bytes: int
    hint: str


def kernel_need(
    block: int, samples: int, features: int, depth: int, width: int, linear: bool = False
) -> Need:
    """Computing NTKs: the factors of one block, what bounds their errors, and a few tiles; K itself
    goes to its file. linear:
    all gradients have one factor, as those of a network without hidden layers."""
    what = f"the NTK of {block} samples at depth {depth}, width {width}"
    computing = (
        _factors(block, features, 0 if linear else depth, width)
        + _errors(block, features, depth, width)
        + TILES
        + FLOAT32 * samples * features
    )
    return Need(what, INTERPRETER + computing, "Lower block or width in the config")


def kernel_file_bytes(seeds: int, blocks: int, block: int) -> int:
    """Size of a kernel file: every seed's and block's (n, n) float64 matrix; of a large one the
    tiles on and below the diagonal."""
    entries = block**2
    if block >= BY_HALF_FROM:
        rows, columns = KERNEL_CHUNK
        stops = range(rows, block + rows, rows)
        entries = sum(rows * columns * math.ceil(min(stop, block) / columns) for stop in stops)
    return FLOAT64 * seeds * blocks * entries


def angle_need(samples: int, features: int, depth: int, width: int) -> Need:
    """Finding the closest pair: the factors of all samples, float32 coordinates, a few tiles."""
    what = f"the closest pair among {samples} samples at depth {depth}, width {width}"
    coordinates = FLOAT32 * samples * COORDINATES + PAIR_TILES
    computing = _factors(samples, features, depth, width) + coordinates
    return Need(what, INTERPRETER + computing, "Lower samples or width in the config")


def spectrum_need(block: int, samples: int, features: int, depth: int, width: int) -> Need:
    """Eigenvalues of a kernel that is read from its file; then, of a large one, the residual."""
    computing = _spectrum(block) + FLOAT64 * (samples + block) * features
    if block >= BY_HALF_FROM:
        weights = width * features + depth * width**2
        residual = _factors(min(block, PRODUCT_ROWS), features, depth, width) + 16 * weights
        computing = max(computing, residual + FLOAT64 * (samples + block) * features)
    what = f"the spectrum of an NTK of {block} samples"
    return Need(what, INTERPRETER + computing, "Lower block in the config")


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of so many MPI ranks, as square as they can be."""
    rows = max(row for row in range(1, math.isqrt(ranks) + 1) if ranks % row == 0)
    return rows, ranks // rows


def entries_of_rank(block: int, ranks: int) -> int:
    """Entries of an NTK that a rank has at most."""
    rows, columns = grid(ranks)
    return _share(block, rows) * _share(block, columns)


def least_ranks(block: int, ranks: int = 1) -> int:
    """How many ScaLAPACK needs for an NTK, from so many on. Not every larger number will do: a
    prime has them in one row."""
    ranks = max(ranks, block**2 // INDEX_LIMIT)
    while entries_of_rank(block, ranks) > INDEX_LIMIT:
        ranks += 1
    return ranks


def require_ranks(ranks: int, block: int) -> None:
    """Raises UserError if one would have more than ScaLAPACK can count, and names a number that is
    enough."""
    if entries_of_rank(block, ranks) > INDEX_LIMIT:
        raise UserError(
            f"ranks: {ranks} {'is' if ranks == 1 else 'are'} too few for an NTK of {block} samples."
            " ScaLAPACK numbers the entries of a rank by 32 bits. Set ranks to"
            f" {least_ranks(block, ranks + 1)}"
        )


def ranks_need(
    block: int, features: int, depth: int, width: int, ranks: int, linear: bool = False
) -> Need:
    """The spectrum of an NTK over so many ranks, of all together: on each its entries, and the
    factors of their rows and columns; on rank 0 Lanczos' vectors and, of a linear network, all
    samples. Before, rank 0 alone looks for equal samples."""
    rows, columns = (_share(block, count) for count in grid(ranks))
    hidden = 0 if linear else depth
    factors = _factors(rows, features, hidden, width) + _factors(columns, features, hidden, width)
    share = math.ceil(block / ranks)
    errors = _factors(share, features, hidden, width) + _errors(share, features, depth, width)
    factors = max(factors, errors)
    started = ranks * (INTERPRETER + RANK)
    leading = 30 * FLOAT64 * block + (4 * FLOAT64 * block * features if linear else 0)
    computing = ranks * (FLOAT64 * rows * columns + factors) + leading
    comparing = 5 * FLOAT64 * block * features
    what = f"the spectrum of an NTK of {block} samples on {ranks} ranks"
    hint = "Lower block in the config, or use more machines"
    return Need(what, started + max(computing, comparing), hint)


def _share(n: int, among: int) -> int:
    """Of n rows or columns, what the first of so many has, which has most."""
    tiles, rest = divmod(n, TILE)
    left, extra = divmod(tiles, among)
    return left * TILE + (TILE if extra else rest)


def sweep_need(
    block: int, blocks: int | None, samples: int, features: int, depth: int, width: int
) -> Need:
    """The closest pair of the samples in so many blocks, None for all samples; then NTKs in memory,
    one after the other, and their eigenvalues; of the largest."""
    kernel = kernel_need(block, samples, features, depth, width)
    searched = samples if blocks is None else min(samples, blocks * block)
    # at infinite width: bands of K, and samples as they are, divided by their norms, and distinct
    copies = 3 * FLOAT64 * searched * features
    bands = 12 * FLOAT64 * min(BAND * block, BAND_ENTRIES) + copies
    angle = angle_need(searched, features, depth, width).bytes + FLOAT32 * samples * features
    return kernel._replace(bytes=max(angle, kernel.bytes + _spectrum(block) + bands))


def descent_need(block: int, features: int, depth: int, width: int) -> Need:
    """Weights and gradients, an NTK at the start and one on the way, with their eigenvectors."""
    kernel = kernel_need(block, block, features, depth, width)
    return kernel._replace(bytes=kernel.bytes + 6 * FLOAT64 * block**2)


def architecture_need(
    block: int, samples: int, features: int, depth: int, width: int, pixels: int
) -> Need:
    """Gradients of a block as torch modules give them, in parts if they are many; those of a few
    samples run alone; a kernel and its eigenvalues."""
    size, positions = (FILTER if pixels else 1), max(1, pixels)
    weights = (width * features + depth * width**2) * size
    activations = (4 * depth + size) * width * positions
    gradients = min(MODULE, FLOAT64 * block * (activations + weights))
    alone = FLOAT64 * ALONE * (activations + 2 * weights)
    total = INTERPRETER + TORCH + gradients + alone + FLOAT64 * 3 * weights + _spectrum(block)
    total += 2 * FLOAT64 * samples * features * positions
    what = f"the NTK of {block} samples at depth {depth}, width {width}, as a torch module"
    return Need(what, total, "Lower block or architectures.width in the config")


def _spectrum(block: int) -> int:
    """A small kernel and two copies; half of a large one, overwritten, a product for one of its
    panels, a band of it while it is read, and Lanczos' vectors."""
    if block < BY_HALF_FROM:
        return FLOAT64 * 3 * block**2
    return FLOAT64 * (block * (block + PANEL) // 2 + PANEL * block + 4 * PANEL**2 + 30 * block)


def train_need(
    samples: int, features: int, test_samples: int, depth: int, width: int, batch: int,
    together: int = 1,
) -> Need:  # fmt: skip
    """Training so many networks together: all samples, twice while they are read; weights, in
    float64 at first; activations and slopes of a batch, and a few layers of test samples."""
    weights = width * features + depth * width**2  # at most as many outputs as neurons
    per_batch = batch * (2 * features + (2 * depth + 4) * width)
    per_run = FLOAT32 * (per_batch + 4 * TEST_ROWS * width) + (FLOAT32 + 2 * FLOAT64) * weights
    read = 2 * FLOAT32 * (samples + test_samples) * features
    return Need(
        f"training {together} networks of depth {depth}, width {width} on {samples} samples",
        INTERPRETER + TORCH + read + together * per_run,
        "Lower samples, batch or width in the config",
    )


def speed_need(
    block: int, samples: int, features: int, depth: int, width: int, batch: int, seeds: int
) -> Need:
    """Training of all seeds together; NTKs before it, with their eigenvectors."""
    kernel = kernel_need(block, samples, features, depth, width)
    ntk = kernel.bytes + 6 * FLOAT64 * block**2
    training = train_need(samples, features, 0, depth, width, batch, seeds)
    return training._replace(bytes=training.bytes + ntk - INTERPRETER)


def _factors(n: int, features: int, depth: int, width: int) -> int:
    """Inputs, activations and back-propagated vectors of every layer, one more while they are made,
    and weights, in float64."""
    weights = width * features + depth * width**2
    return FLOAT64 * (n * features + weights + (2 * depth + 2) * n * width)


def _errors(n: int, features: int, depth: int, width: int) -> int:
    """Following the errors of some samples through all layers: preactivations, slopes and what
    arrives at each, their noise in float32, and weights in float32; for a linear network's inputs
    as many basis vectors, and the stacked layers."""
    rows = max(min(n, AT_ONCE), NOISE)
    weights = width * features + depth * width**2
    stack = 3 * FLOAT64 * features * (features + depth * width)
    return (3 * FLOAT64 + 3 * FLOAT32) * rows * width * depth + FLOAT32 * weights + stack
