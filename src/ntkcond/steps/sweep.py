"""κ and min φ over depths, widths and n: results/sweeps/{sweep}/{dataset}/{activation}.h5.

A width of inf is the NTK at infinite width.
"""

from argparse import Namespace
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import h5py
import numpy as np

from ntkcond import command, sweep
from ntkcond.activations import ACTIVATIONS
from ntkcond.errors import UserError
from ntkcond.needs import kernel_need
from ntkcond.network import TRAINABLE
from ntkcond.progress import progress
from ntkcond.resources import require_memory, resolve_device, use_threads
from ntkcond.storage import read_hdf5, write_hdf5
from ntkcond.sweep import INFINITE, Point


def main(arguments: Namespace) -> None:
    """Writes a table, each column an array (rows,): depth, width, n, samples and those of
    `ntkcond.sweep.measure`."""
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
    finite = [int(width) for width in a.widths if width != INFINITE]
    largest = max(finite, default=1)
    require_memory(kernel_need(max(sizes), samples, features, max(a.depths), largest), device)
    points = [
        Point(depth, width, n, a.blocks, a.trainable)
        for depth, width, n in product(a.depths, a.widths, sizes)
    ]

    def rows() -> Iterator[list[dict]]:
        for point in points:
            where = {"depth": point.depth, "width": point.width, "n": point.n}
            found = sweep.measure(x, ACTIVATIONS[a.activation], point, a.seeds, device)
            yield [{**where, **row} for row in found]

    label = f"sweep {a.dataset.stem} {a.activation}"
    table = [row for some in progress(rows(), len(points), label) for row in some]
    with write_hdf5(a.output, a.made_by) as file:
        for name in table[0]:
            values = np.array([row[name] for row in table])
            file[name] = values.astype(h5py.string_dtype()) if name == "verdict" else values
        file.attrs.update(
            activation=a.activation, trainable=a.trainable, samples=samples, features=features
        )


def width(text: str) -> float:
    """A number of neurons, or inf."""
    return INFINITE if text == "inf" else float(command.at_least(1)(text))


def blocks(text: str) -> int | None:
    """A number of blocks; None for all."""
    return None if text == "all" else command.at_least(1)(text)


if __name__ == "__main__":
    options = command.parser(__doc__)
    command.add_computing(options)
    options.add_argument("--dataset", type=Path, required=True, help="results/datasets/*.h5")
    options.add_argument("--activation", required=True, choices=ACTIVATIONS)
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument("--seeds", type=command.whole_numbers, required=True)
    options.add_argument(
        "--widths", type=lambda text: [width(word) for word in text.split(",")], required=True,
        help="such as 64,512,inf",
    )  # fmt: skip
    options.add_argument(
        "--sizes", type=lambda text: [command.count_or_all(word) for word in text.split(",")],
        required=True, help="samples in one NTK, such as 48,512 or all",
    )  # fmt: skip
    options.add_argument("--blocks", type=blocks, required=True, help="at most; or all")
    command.add_trainable(options, TRAINABLE)
    command.run(main, options)
