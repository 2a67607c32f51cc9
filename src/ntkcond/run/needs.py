"""Memory that kernels, angles, spectra and training will need, from n, m, d and L alone.

Read by the Snakefile for the jobs' `mem_mb`: standard library only.
"""

from typing import NamedTuple

FLOAT64, FLOAT32 = 8, 4
INTERPRETER = 400_000_000  # Python with torch loaded
TILES = 3 * FLOAT64 * 192 * (16 * 192)  # `ntkcond.ntk.empirical.ntk_tiles`, on a CPU
COORDINATES = 129  # kept of each gradient by `ntkcond.ntk.closest_pair`
PAIR_TILES = 6 * FLOAT64 * 1024**2  # of the same
TEST_ROWS = 2000  # test samples that pass through the networks at once


class Need(NamedTuple):
    """What needs how many bytes, and which settings lower it."""

    what: str
    bytes: int
    hint: str


def kernel_need(block: int, samples: int, features: int, depth: int, width: int) -> Need:
    """Computing NTKs: the factors of one block and a few tiles; K itself goes to its file."""
    return Need(
        f"the NTK of {block} samples at depth {depth}, width {width}",
        INTERPRETER
        + _factors(block, features, depth, width)
        + TILES
        + FLOAT64 * samples * features,
        "Lower block or width in the config",
    )


def kernel_file_bytes(seeds: int, blocks: int, block: int) -> int:
    """Size of a kernel file: every seed's and block's (n, n) float64 matrix."""
    return FLOAT64 * seeds * blocks * block**2


def angle_need(samples: int, features: int, depth: int, width: int) -> Need:
    """Finding the closest pair: the factors of all samples, float32 coordinates, a few tiles."""
    return Need(
        f"the closest pair among {samples} samples at depth {depth}, width {width}",
        INTERPRETER
        + _factors(samples, features, depth, width)
        + FLOAT32 * samples * COORDINATES
        + PAIR_TILES,
        "Lower samples or width in the config",
    )


def spectrum_need(block: int, samples: int, features: int) -> Need:
    """Eigenvalues: one kernel, worked on in place (small ones twice over)."""
    copies = 1 if block > 2000 else 3
    return Need(
        f"the spectrum of an NTK of {block} samples",
        INTERPRETER + copies * FLOAT64 * block**2 + FLOAT64 * (samples + block) * features,
        "Lower block in the config",
    )


def train_need(
    samples: int,
    features: int,
    test_samples: int,
    depth: int,
    width: int,
    batch: int,
    together: int = 1,
) -> Need:
    """Training so many networks together: all samples, twice while they are read; weights, in
    float64 at first; what one step keeps of a batch, and a few layers of test samples."""
    weights = width * features + depth * width**2  # as many outputs as neurons, at most
    of_batch = batch * (2 * features + (2 * depth + 4) * width)
    a_run = FLOAT32 * (of_batch + 4 * TEST_ROWS * width) + (FLOAT32 + 2 * FLOAT64) * weights
    return Need(
        f"training {together} networks of depth {depth}, width {width} on {samples} samples",
        INTERPRETER + 2 * FLOAT32 * (samples + test_samples) * features + together * a_run,
        "Lower samples, batch or width in the config",
    )


def _factors(n: int, features: int, depth: int, width: int) -> int:
    """Activations and back-propagated vectors of every layer, inputs and weights, in float64."""
    inputs_and_weights = 2 * n * features + width * features + depth * width**2
    return FLOAT64 * (inputs_and_weights + (2 * depth + 1) * n * width)
