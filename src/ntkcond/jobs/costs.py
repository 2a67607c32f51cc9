"""What steps share in counting memory and operations, and what a cluster is asked for.

Estimates are from n, m, d and L alone, and in no code digest: a better one triggers no rebuild.
Counts of operations and bytes become times by rates that a slow machine exceeds: a job that ends
early costs nothing, a job that runs out of time must start again.
"""

import math
from typing import NamedTuple

FLOAT64, FLOAT32 = 8, 4
INTERPRETER = 150_000_000  # Python with NumPy and SciPy loaded
TORCH = 250_000_000  # more, with torch
CUDA = 3_000_000_000  # more of the host's, with torch's CUDA build at work; not measured
BY_HALF_FROM = 2001  # samples in a kernel: `ntkcond.ntk.spectrum.FULL_SPECTRUM_UP_TO` and one
PANEL = 576  # of `ntkcond.arrays.half`
AT_ONCE = 2048  # samples whose errors `ntkcond.ntk.rounding` follows together
TOGETHER = 512  # samples of small blocks that pass through a network together, in the same module
FILTER = 9  # weights of a convolution's filter for each pair of channels

# Float64 operations a second and core: a third of what the slowest of them, eigenvalues, reached
# on one core of a 2-core cloud machine (AMD EPYC: 8e9 to 10e9; matrix products 21e9 to 27e9).
OPERATIONS_PER_SECOND = 3e9
BYTES_PER_SECOND = 50e6  # a busy shared file system; one gigabit a second is 125e6
# Measured peaks were 0.6 to 1.05 of the needs (MNIST and digits, L = 10).
MARGIN = 1.25
# In a job, Snakemake runs twice, one in the other: 126 MB each, measured with 9.27. The rest is
# for srun and cached files.
SNAKEMAKE = 300_000_000
START = 10  # minutes: three Pythons from a shared file system; a trivial job: 0.3
# For a user's own data set, whose size is unknown until its file exists.
UNKNOWN_MEGABYTES = 4000
UNKNOWN_MINUTES = 240


class Work(NamedTuple):
    operations: float  # in float64
    bytes: float  # read and written


def megabytes(need: int | None, attempt: int) -> int:
    """`mem_mb` of a job that needs so many bytes, doubled at each further attempt."""
    known = UNKNOWN_MEGABYTES if need is None else math.ceil((MARGIN * need + SNAKEMAKE) / 10**6)
    return known * 2 ** (attempt - 1)


def minutes(work: Work | None, threads: float, attempt: int) -> int:
    """`runtime` of a job, doubled at each further attempt."""
    known = UNKNOWN_MINUTES
    if work is not None:
        computing = work.operations / (OPERATIONS_PER_SECOND * threads)
        known = START + math.ceil((computing + work.bytes / BYTES_PER_SECOND) / 60)
    return known * 2 ** (attempt - 1)


def propagation(features: int, depth: int, width: int) -> float:
    """Operations of one sample's forward and backward pass."""
    return 2 * (features + 2 * (depth - 1) * width) * width if depth else 0


def factors_bytes(n: int, features: int, depth: int, width: int) -> int:
    """Inputs, activations and back-propagated vectors of every layer, one more, and weights."""
    weights = width * features + depth * width**2
    return FLOAT64 * (n * features + weights + (2 * depth + 2) * n * width)


def errors_bytes(n: int, features: int, depth: int, width: int) -> int:
    """Errors of some samples in all layers: preactivations, slopes and what arrives, their noise
    and weights in float32; basis vectors of a linear network's inputs, and the stacked layers."""
    rows = max(min(n, AT_ONCE), TOGETHER)
    weights = width * features + depth * width**2
    stack = 3 * FLOAT64 * features * (features + depth * width)
    return (3 * FLOAT64 + 3 * FLOAT32) * rows * width * depth + FLOAT32 * weights + stack
