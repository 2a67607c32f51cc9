"""The NTK of every seed and block: results/kernels/{dataset}/{network}/depth{L}.h5."""

import math
from argparse import Namespace

import numpy as np

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.datasets.blocks import blocks_of
from ntkcond.ntk.empirical import ntk_tiles, require_finite, tile_count, tile_size
from ntkcond.ntk.rounding import KernelError, gradients_with_error
from ntkcond.run.files import read_hdf5, require_space, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import (
    BY_HALF_FROM,
    FLOAT32,
    FLOAT64,
    INTERPRETER,
    PANEL,
    TOGETHER,
    errors_bytes,
    factors_bytes,
)
from ntkcond.settings.step import DataSet, block, network_settings, networks
from ntkcond.steps import kernel_errors, network_options

jobs, largest = networks, block

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
    passing = max(block, min(samples, TOGETHER))
    another = factors_bytes(passing, features, 0 if linear else depth, width)
    return one._replace(bytes=one.bytes + another * (seeds * (samples // block) > 1))


def need_of_one(
    block: int, samples: int, features: int, depth: int, width: int, linear: bool = False
) -> Need:
    """The factors of one block, or of some small ones, what bounds their errors, and a few tiles; K
    goes to its file. linear: all gradients have one factor."""
    what = f"the NTK of {block} samples at depth {depth}, width {width}"
    passing = max(block, min(samples, TOGETHER))
    computing = (
        factors_bytes(passing, features, 0 if linear else depth, width)
        + errors_bytes(features, depth, width)
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


def main(arguments: Namespace) -> None:
    """Writes `kernel`, (seeds, blocks, n, n) float64, tile by tile; large kernels by half: above
    the diagonal's tiles, NaN, which takes no room on the disk. And what is known of their errors
    (`ntkcond.steps.kernel_errors`)."""
    a = arguments
    network = network_options.network(a)
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    samples, features = x.shape
    n, blocks = blocks_of(samples, a.block, a.dataset.stem)
    sizes = n, samples, features, network.depth, network.width, network.is_linear
    require_memory(need(*sizes), device)
    require_space(
        a.output,
        file_bytes(n, samples, len(a.seeds)),
        "Free some space; or lower block or samples in the config; or set keep_kernels: false,"
        " which deletes each kernel once its spectrum is there",
    )

    def tiles():
        for s, seed in enumerate(a.seeds):
            weights = network.initial_weights(seed, features, device)
            gradients = gradients_with_error(network, weights)
            for b, (factors, error) in enumerate(gradients.blocks(x[: blocks * n], n, device)):
                errors.append(error)
                for tile in ntk_tiles(factors):
                    yield s, b, tile

    errors: list[KernelError] = []
    overflow = np.errstate(over="ignore", invalid="ignore")  # raises UserError instead
    with write_hdf5(a.output, a.record) as file, overflow:
        file.attrs.update(
            network_options.settings(a), seeds=a.seeds, block=n, samples=samples,
            features=features, left_out=samples - blocks * n,
        )  # fmt: skip
        by_half = n >= BY_HALF_FROM
        options = {"chunks": (1, 1, *CHUNK), "fillvalue": np.nan} if by_half else {}
        kernel = file.create_dataset("kernel", (len(a.seeds), blocks, n, n), "f8", **options)
        count = len(a.seeds) * blocks * tile_count(n, tile_size(put(x[:1], device)))
        label = f"kernel {a.dataset.stem} {a.activation} L={a.depth}"
        for s, b, (rows, columns, values) in progress(tiles(), count, label):
            values = to_numpy(values)
            require_finite(values, a.dataset.stem, a.depth)
            kernel[s, b, rows, columns] = values
            if not by_half:
                kernel[s, b, columns, rows] = values.T
        kernel_errors.write(file, errors, (len(a.seeds), blocks))


OPTIONS = network_options.parser(__doc__)
OPTIONS.add_settings("block")

if __name__ == "__main__":
    command.run(main, OPTIONS)
