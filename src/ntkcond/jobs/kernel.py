"""NTKs, in a file: a job for each data set, network and depth."""

import math

from ntkcond.jobs import costs
from ntkcond.jobs.costs import BY_HALF_FROM, FLOAT32, FLOAT64, INTERPRETER, PANEL, Work
from ntkcond.jobs.step import DataSet, block, network_settings, networks
from ntkcond.run.need import Need

path = "results/kernels/{dataset}/{network}/depth{depth}.h5"
jobs, largest = networks, block
spot_check = "spectra"  # which computes it again

TILES = 3 * FLOAT64 * 192 * (16 * 192)  # `ntkcond.ntk.empirical.ntk_tiles`, on a CPU
CHUNK = (192, PANEL)  # tiles of a kernel that is kept by half, in its file


def settings(data: DataSet, network: str, depth: str) -> dict:
    return {**network_settings(data, network, depth), "block": data.experiment.block}


def need(
    block: int, samples: int, features: int, depth: int, width: int, linear: bool = False,
    seeds: int = 1,
) -> Need:  # fmt: skip
    """What one NTK takes, and the factors of another: those of the last are freed when the next
    are there. (The step itself asks as for one seed.)"""
    one = need_of_one(block, samples, features, depth, width, linear)
    passing = max(block, min(samples, costs.TOGETHER))
    another = costs.factors_bytes(passing, features, 0 if linear else depth, width)
    return one._replace(bytes=one.bytes + another * (seeds * (samples // block) > 1))


def need_of_one(
    block: int, samples: int, features: int, depth: int, width: int, linear: bool = False
) -> Need:
    """The factors of one block, or of some small ones, what bounds their errors, and a few tiles; K
    goes to its file. linear: all gradients have one factor."""
    what = f"the NTK of {block} samples at depth {depth}, width {width}"
    passing = max(block, min(samples, costs.TOGETHER))
    computing = (
        costs.factors_bytes(passing, features, 0 if linear else depth, width)
        + costs.errors_bytes(passing, features, depth, width)
        + TILES
        + FLOAT32 * samples * features
    )
    return Need(what, INTERPRETER + computing, "Lower block or width in the config")


def file_bytes(block: int, samples: int, seeds: int) -> int:
    """Every seed's and block's (n, n) float64 matrix; of a large one tiles of its lower half."""
    entries = block**2
    if block >= BY_HALF_FROM:
        rows, columns = CHUNK
        stops = range(rows, block + rows, rows)
        entries = sum(rows * columns * math.ceil(min(stop, block) / columns) for stop in stops)
    return FLOAT64 * seeds * (samples // block) * entries


def operations(n: int, features: int, depth: int, width: int) -> float:
    """Passes, and two products a layer for each pair of samples (`ntkcond.ntk.empirical`); tiles on
    the diagonal, at most 192 wide on a CPU, in full."""
    pairs = n * (n + min(n, 192)) / 2
    passes = n * costs.propagation(features, depth, width)
    return pairs * 2 * (features + 2 * depth * width) + passes


def work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int,
    linear: bool = False,
) -> Work:  # fmt: skip
    per_kernel = operations(block, features, 0 if linear else depth, width)
    if linear:
        per_kernel += 2 * block * features**2
    written = file_bytes(block, samples, seeds)
    return Work(seeds * (samples // block) * per_kernel, written + FLOAT64 * samples * features)
