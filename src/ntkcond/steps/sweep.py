"""κ and min φ over depths, widths and n: results/sweeps/{sweep}/{dataset}/{network}.h5.

A width of inf is the NTK at infinite width.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import product

import h5py
import numpy as np

from ntkcond.jobs.sweep import need
from ntkcond.ntk.measure import measure
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.progress import progress
from ntkcond.steps import network_options


def main(arguments: Namespace) -> None:
    """Writes a table, each column an array (rows,): depth, width, n, samples and those of
    `ntkcond.ntk.measure.measure`."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    samples, features = x.shape
    sizes = [samples if n == "all" else n for n in a.sizes]
    sizes = [n for n in sizes if n <= samples]  # of a user's own set, known only here
    if not sizes:
        raise UserError(f"{a.dataset}: has {samples} samples, fewer than any n asked for. Lower it")
    blocks = None if a.blocks == "all" else a.blocks
    finite = [int(width) for width in a.widths if width != math.inf]
    largest = max(finite, default=1)
    require_memory(need(max(sizes), blocks, samples, features, max(a.depths), largest), device)
    points = list(product(a.depths, a.widths))

    def rows() -> Iterator[list[dict]]:
        for depth, width in points:
            network = network_options.network(a, depth=depth, width=width)
            measured = measure(x, network, sizes, blocks, a.seeds, device)
            yield [{"depth": depth, "width": width, **row} for row in measured]

    label = f"sweep {a.dataset.stem} {a.activation}"
    table = [row for some in progress(rows(), len(points), label) for row in some]
    with write_hdf5(a.output, a.record) as file:
        for name in table[0]:
            values = np.array([row[name] for row in table])
            text = name in ("verdict", "grade")
            file[name] = values.astype(h5py.string_dtype()) if text else values
        file.attrs.update(network_options.settings(a), samples=samples, features=features)


def width_or_inf(text: str) -> float:
    """A number of neurons, or inf."""
    return math.inf if text == "inf" else float(command.at_least(1)(text))


def blocks_or_all(text: str) -> int | str:
    """A number of blocks, or "all"."""
    return text if text == "all" else command.at_least(1)(text)


if __name__ == "__main__":
    options = network_options.parser(__doc__, without=("depth", "width"))
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument(
        "--widths", type=lambda text: [width_or_inf(word) for word in text.split(",")],
        required=True, help="such as 64,512,inf",
    )  # fmt: skip
    options.add_argument(
        "--sizes", type=lambda text: [command.count_or_all(word) for word in text.split(",")],
        required=True, help="samples in one NTK, such as 48,512 or all",
    )  # fmt: skip
    options.add_argument("--blocks", type=blocks_or_all, required=True, help="at most; or all")
    command.run(main, options)
