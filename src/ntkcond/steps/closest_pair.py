"""The closest pair of gradients: results/angles/{dataset}/{network}/depth{L}.h5."""

from argparse import Namespace

import numpy as np

from ntkcond.arrays.backend import put
from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.ntk.closest_pair import closest_gradients
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT32, FLOAT64, INTERPRETER, factors_bytes
from ntkcond.settings.step import network_settings, networks
from ntkcond.steps import network_options

settings, jobs = network_settings, networks

# Of each gradient in `ntkcond.ntk.closest_pair`: in 64, 256 and 512 directions, and 64 products; in
# how many directions all pairs are compared.
COORDINATES, COMPARED = 65 + 257 + 513 + 64, 65
PAIR_TILES = 6 * FLOAT64 * 1024**2  # in the same module


def need(samples: int, features: int, depth: int, width: int) -> Need:
    """The factors of all samples, float32 coordinates, a few tiles."""
    what = f"the closest pair among {samples} samples at depth {depth}, width {width}"
    coordinates = FLOAT32 * samples * COORDINATES + PAIR_TILES
    computing = factors_bytes(samples, features, depth, width) + coordinates
    return Need(what, INTERPRETER + computing, "Lower samples or width in the config")


def main(arguments: Namespace) -> None:
    """Writes min_angle_deg (seeds,), closest_pair (seeds, 2), rows of the data set's x, and
    zero_gradients (seeds,), how many samples were left out for theirs."""
    a = arguments
    network = network_options.network(a)
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    samples, features = x.shape
    distinct = distinct_rows(x)
    if len(distinct.index) < 2:
        raise UserError(f"{a.dataset}: fewer than two different samples, so there is no angle")
    require_memory(need(samples, features, network.depth, network.width), device)
    inputs = put(x[distinct.index].astype(np.float64), device)

    angles, vanished = [], []
    found: list[tuple[int, int]] = []  # among the distinct samples
    label = f"angle {a.dataset.stem} {a.activation} L={a.depth}"
    for seed in progress(a.seeds, len(a.seeds), label):
        gradients = network.initial_gradients(seed, features, device)
        pair = closest_gradients(gradients(inputs), near=found)
        vanished.append(pair.vanished)
        angles.append(pair.angle_deg)
        found.append((pair.first, pair.second))
    with write_hdf5(a.output, a.record) as file:
        file["min_angle_deg"] = angles
        file["closest_pair"] = distinct.index[np.array(found)]
        file["zero_gradients"] = vanished
        file.attrs.update(
            network_options.settings(a), seeds=a.seeds, samples=samples,
            duplicate_rows=distinct.duplicate_rows, zero_rows=distinct.zero_rows,
        )  # fmt: skip


OPTIONS = network_options.parser(__doc__)

if __name__ == "__main__":
    command.run(main, OPTIONS)
