"""What a job requests from a cluster: megabytes and minutes, from n, m, d and L alone.

The Snakefile reads this: standard library only. No step imports it: a better estimate here triggers
no rebuild. Counts of operations and bytes become times by rates that a slow machine exceeds: a
job that ends early costs nothing, a job that runs out of time must start again.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ntkcond.run.needs import (
    BY_HALF_FROM,
    COORDINATES,
    FILTER,
    FLOAT32,
    FLOAT64,
    INTERPRETER,
    TORCH,
    grid,
    kernel_file_bytes,
)

# Float64 operations a second and core: a third of what the slowest of them, eigenvalues, reached
# on one core of a 2-core cloud machine (AMD EPYC: 8e9 to 10e9; matrix products 21e9 to 27e9).
OPERATIONS_PER_SECOND = 3e9
# Operations at the rate of a matrix product, as measured (benchmarks/predicted.py): eigenvalues of
# small kernels 5 n³, a Cholesky factor 0.31 n³. Lanczos reads the half of K from memory: for λ_max
# 440 n², with λ_min 2,300 n².
EIGENVALUES, CHOLESKY, LARGEST, LANCZOS = 5, 0.31, 440, 2300
SCALAPACK_CHOLESKY = 0.46  # over ranks of one machine (docs/measured/ranks.csv)
# An entry of a kernel at infinite width, and each layer of it, at that rate.
ANGLE, DUAL = 10_000, 3_400
WATCHED = 11  # NTKs in the course of a descent: `ntkcond.training.evolution.watched`
# Training is nothing but float32 products: 61e9 to 79e9 a second on one of these cores.
FLOAT32_ADVANTAGE = 5
GPU_AS_CORES = 400  # then 6e12 float32 operations a second, a third of an A100's; not measured
BYTES_PER_SECOND = 50e6  # a busy shared file system; one gigabit a second is 125e6

# For each second of audio: 1.07 ms of such a core to decode it and to compute frames, with a factor
# of 3; a third more bytes than 16 kHz, 16 bit FLAC has on average.
AUDIO_OPERATIONS = 3 * 1.07e-3 * OPERATIONS_PER_SECOND
AUDIO_BYTES = 24_000

# Measured peaks were 0.6 to 1.05 of `ntkcond.run.needs`' estimates (MNIST and digits, L = 10).
MARGIN = 1.25
# In a job, Snakemake runs twice, one in the other: 126 MB each, measured with 9.27. The rest is
# for srun and cached files.
SNAKEMAKE = 300_000_000
START = 10  # minutes: three Pythons from a shared file system; a trivial job: 0.3

# For a user's own data set, whose size is unknown until its file exists.
UNKNOWN_MEGABYTES = 4000
UNKNOWN_MINUTES = 240


class Work(NamedTuple):
    """Float64 operations, and bytes read and written."""

    operations: float
    bytes: float


def megabytes(need: int | None, attempt: int) -> int:
    """`mem_mb` of a job that needs so many bytes; doubled at each further attempt, since a job
    killed for its memory does not report how much it needed."""
    known = UNKNOWN_MEGABYTES if need is None else math.ceil((MARGIN * need + SNAKEMAKE) / 10**6)
    return known * 2 ** (attempt - 1)


def minutes(work: Work | None, threads: float, attempt: int) -> int:
    """`runtime` of a job, doubled at each further attempt."""
    known = UNKNOWN_MINUTES
    if work is not None:
        computing = work.operations / (OPERATIONS_PER_SECOND * threads)
        known = START + math.ceil((computing + work.bytes / BYTES_PER_SECOND) / 60)
    return known * 2 ** (attempt - 1)


def dataset_need(available: int, features: int) -> int:
    """Bytes while all available samples are read and some are chosen and scaled: a few copies."""
    return INTERPRETER + TORCH + 4 * FLOAT64 * available * features


def dataset_work(available: int, features: int, hours: float = 0) -> Work:
    """Reading, choosing, scaling and writing samples: a few passes over them. All audio is decoded
    and turned into frames."""
    values = available * features
    audio = 3600 * hours
    return Work(20 * values + AUDIO_OPERATIONS * audio, 4 * FLOAT64 * values + AUDIO_BYTES * audio)


def kernel_work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int,
    linear: bool = False,
) -> Work:  # fmt: skip
    """The NTK of every seed and block, written to its file. linear: see `needs.kernel_need`."""
    operations = _kernel_operations(block, features, 0 if linear else depth, width)
    if linear:
        operations += 2 * block * features**2
    blocks = samples // block
    return Work(
        seeds * blocks * operations,
        kernel_file_bytes(seeds, blocks, block) + FLOAT64 * samples * features,
    )


def angle_work(samples: int, features: int, depth: int, width: int, seeds: int) -> Work:
    """The closest pair among all samples, for every seed: factors, their products with landmarks,
    two passes over all pairs' coordinates, and the remaining pairs, as many as for MNIST."""
    gradient = features + 2 * depth * width  # entries of its factors
    pairs = samples * (samples + 1024) / 2
    per_pair = 4 * COORDINATES + 0.04 * gradient
    per_sample = 2.5 * _propagation(features, depth, width) + 1836 * gradient
    return Work(seeds * (samples * per_sample + pairs * per_pair), FLOAT64 * samples * features)


def spectrum_work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int,
    linear: bool = False, prove_smallest: bool = False,
) -> Work:  # fmt: skip
    """Eigenvalues of every kernel, all or the extreme ones; the factor that replaces K in linear
    networks, for each kernel and once a seed, and the rank of the inputs. linear: then a large
    kernel of more samples than features is singular, and has no Cholesky factor. prove_smallest:
    large ones are read again for a second."""
    blocks = samples // block
    singular = linear and block > features
    per_kernel, reads = _spectrum(block, singular), 1
    if prove_smallest and block >= BY_HALF_FROM and not singular:
        per_kernel, reads = per_kernel + CHOLESKY * block**3, 2
    factor = 4 * block * features * min(block, features)
    per_seed = 4 * features**3 + 2 * (features + depth * width) * features**2
    return Work(
        seeds * (blocks * (per_kernel + factor) + per_seed) + blocks * factor,
        reads * kernel_file_bytes(seeds, blocks, block) + FLOAT64 * samples * features,
    )


def ranks_work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int, ranks: int,
    linear: bool = False, prove_smallest: bool = False,
) -> Work:  # fmt: skip
    """Kernels and their spectra by MPI ranks: each sample is read and passes through the network on
    all ranks of one row and of one column."""
    blocks, singular = samples // block, linear and block > features
    kernel = _kernel_operations(block, features, 0 if linear else depth, width)
    times = sum(grid(ranks))
    kernel += times * block * _propagation(features, depth, width)
    per_kernel = kernel + LARGEST * block**2
    if not singular:
        per_kernel += SCALAPACK_CHOLESKY * block**3 + (LANCZOS - LARGEST) * block**2
        if prove_smallest:
            per_kernel += kernel + SCALAPACK_CHOLESKY * block**3
    if linear:  # by rank 0 alone
        per_kernel += ranks * 4 * block * features * min(block, features)
    return Work(seeds * blocks * per_kernel, (2 + seeds * times) * FLOAT32 * samples * features)


def sweep_work(
    block: int, blocks: int | None, samples: int, features: int, depths: Sequence[int], width: int,
    seeds: int, linear: bool = False, infinite: bool = False,
) -> Work:  # fmt: skip
    """NTKs and their eigenvalues, all of the largest n; none is written. blocks: at most, None for
    all. linear: see `spectrum_work`. infinite: whether every width is."""
    operations = 0.0
    for depth in depths:
        is_linear = linear or depth == 0
        operations += _spectrum(block, singular=is_linear and block > features)
        if not infinite:
            operations += _kernel_operations(block, features, depth, width)
        else:
            per_entry = 0 if is_linear else ANGLE + depth * DUAL
            operations += block**2 / 2 * (2 * features + per_entry)
    blocks = min(blocks or samples, samples // block)
    return Work(seeds * blocks * operations, FLOAT64 * samples * features)


def architecture_work(
    block: int, blocks: int, features: int, depths: Sequence[int], width: int, seeds: int,
    activations: int, pixels: int,
) -> Work:  # fmt: skip
    """Gradients and products of every kernel, and its eigenvalues; explicit gradients at worst."""
    operations = 0.0
    for depth in depths:
        weights = (width * features + depth * width**2) * (FILTER if pixels else 1)
        operations += block * weights * (20 * max(1, pixels) + 2 * block) + _spectrum(block)
    return Work(seeds * activations * blocks * operations, 0)


def train_work(
    samples: int, test_samples: int, features: int, depth: int, width: int, runs: int, epochs: int
) -> Work:
    """All training and testing: for each weight 6 operations a sample, 2 a test sample."""
    weights = features * width + depth * width**2
    operations = runs * epochs * (6 * samples + 2 * test_samples) * weights
    return Work(operations / FLOAT32_ADVANTAGE, 2 * 4 * (samples + test_samples) * features)


def descent_work(block: int, features: int, depth: int, width: int, runs: int, steps: int) -> Work:
    """A forward and a backward pass for each step of each run, of the deepest network; NTKs on the
    way and their eigenvalues."""
    passes = 6 * steps * block * (width * features + depth * width**2)
    kernels = WATCHED * (_kernel_operations(block, features, depth, width) + _spectrum(block))
    return Work(runs * (passes + kernels), 0)


def speed_work(
    block: int, samples: int, features: int, depths: Sequence[int], width: int, runs: int,
    seeds: int, activations: int, epochs: int,
) -> Work:  # fmt: skip
    """All training of all networks, and their NTKs at the start. runs: of each network."""
    operations = 0.0
    for depth in depths:
        operations += train_work(samples, 0, features, depth, width, runs, epochs).operations
        kernel = _kernel_operations(block, features, depth, width) + 2 * _spectrum(block)
        operations += seeds * kernel
    return Work(activations * operations, FLOAT64 * samples * features)


def _spectrum(n: int, singular: bool = False) -> float:
    """Eigenvalues of one kernel; of a large singular one the largest."""
    if n < BY_HALF_FROM:
        return EIGENVALUES * n**3
    return LARGEST * n**2 if singular else CHOLESKY * n**3 + LANCZOS * n**2


def _kernel_operations(n: int, features: int, depth: int, width: int) -> float:
    """Forward and backward passes, and two products a layer for each pair of samples
    (`ntkcond.ntk.empirical`); tiles on the diagonal, at most 192 wide on a CPU, in full."""
    pairs = n * (n + min(n, 192)) / 2
    return pairs * 2 * (features + 2 * depth * width) + n * _propagation(features, depth, width)


def _propagation(features: int, depth: int, width: int) -> float:
    """One sample's forward and backward pass."""
    return 2 * (features + 2 * (depth - 1) * width) * width if depth else 0
