"""Memory that kernels, angles and spectra will need, from n, m, d and L alone.

Read by the Snakefile for the jobs' `mem_mb`: standard library only.
"""

from typing import NamedTuple

FLOAT64 = 8
INTERPRETER = 400_000_000  # Python with torch loaded
TILES = 3 * FLOAT64 * 1024**2


class Need(NamedTuple):
    """What needs how many bytes, and which settings lower it."""

    what: str
    bytes: int
    way_out: str


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
    """Finding the closest pair: the factors of all samples and a few tiles."""
    return Need(
        f"the closest pair among {samples} samples at depth {depth}, width {width}",
        INTERPRETER + _factors(samples, features, depth, width) + TILES,
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


def _factors(n: int, features: int, depth: int, width: int) -> int:
    """Activations and back-propagated vectors of every layer, inputs and weights, in float64."""
    inputs_and_weights = 2 * n * features + width * features + depth * width**2
    return FLOAT64 * (inputs_and_weights + (2 * depth + 1) * n * width)
