"""κ and min φ over depths, widths and n: results/sweeps/{sweep}/{dataset}/{network}.h5.

A width of inf is the NTK at infinite width.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import product
from typing import Any

import h5py
import numpy as np

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.ntk.measure import measure
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT32, FLOAT64
from ntkcond.settings.step import DataSet
from ntkcond.steps import network_options
from ntkcond.steps.closest_pair import need as search_need
from ntkcond.steps.kernel import need_of_one
from ntkcond.steps.spectrum import solver_bytes

BAND, BAND_ENTRIES = 256, 2**22  # of `ntkcond.ntk.infinite_width`
# The data sets of each sweep are those of this figure.
lists = {
    "activations": "fig_activations_ntk",
    "width": "fig_width",
    "samples": "fig_samples",
    "finite": "fig_lambda_min",
    "infinite": "fig2",
    "first_layer": "fig2",
}


def jobs(data: DataSet, sweep: str) -> Iterator[dict[str, str]]:
    """Over activations, widths, n, both (finite); at infinite width; of the first layer alone, for
    Thm 5.1."""
    networks = {
        "activations": list(ACTIVATIONS),
        "infinite": data.config.activations,
        "first_layer": ["relu"],
    }.get(sweep, [data.config.sweeps.activation])
    for network in networks:
        if sweep != "infinite" or has_infinite_width(data, network):
            yield {"sweep": sweep, "network": network}


def has_infinite_width(data: DataSet, network: str) -> bool:
    """Whether that NTK is known: norm 1, linear, or homogeneous without biases."""
    activation = ACTIVATIONS[network]
    any_norm = activation.linear or (activation.degree is not None and not data.network.bias)
    return any_norm or "unit_norm" in data.settings


def settings(data: DataSet, sweep: str, network: str) -> dict:
    """sizes: n."""
    defaults, sweeps = data.experiment, data.config.sweeps
    infinite = ["inf"] if has_infinite_width(data, network) else []
    values: dict[str, Any] = {
        "activation": network,
        **{key: value for key, value in vars(data.network).items() if key != "width"},
        "depths": defaults.depths,
        "widths": [defaults.width, *infinite],
        "sizes": [defaults.block],
        "seeds": defaults.seeds,
        "blocks": sweeps.blocks,
    }
    if sweep == "width":
        widths = [*sweeps.widths, *infinite]
        values |= {"depths": sweeps.depths, "widths": widths, "seeds": sweeps.seeds}
    elif sweep in ("samples", "finite"):
        sizes: list = [n for n in sweeps.sizes if data.samples is None or n <= data.samples]
        values |= {"sizes": sizes or [data.samples], "seeds": sweeps.seeds}
        widths = [defaults.width] if sweep == "samples" else [*sweeps.widths, *infinite]
        values |= {"depths": sweeps.depths, "widths": widths}
    elif sweep == "infinite":  # which depends on no seed
        values |= {"widths": ["inf"], "seeds": [0], "blocks": "all"}
    elif sweep == "first_layer":  # the network of Thm 5.1
        values |= {"depths": [1], "trainable": "first"}
    return values


def largest(data: DataSet, **wildcards: str) -> int | None:
    """The largest n."""
    sizes = [data.samples if n == "all" else n for n in settings(data, **wildcards)["sizes"]]
    return None if None in sizes else max(filter(None, sizes))


def sizes(data: DataSet, **wildcards: str) -> dict:
    """At its largest."""
    values = settings(data, **wildcards)
    widths = [width for width in values["widths"] if width != "inf"]
    return {
        "block": largest(data, **wildcards),
        "blocks": None if values["blocks"] == "all" else values["blocks"],
        "width": max(widths, default=1),
    }


def need(
    block: int, blocks: int | None, samples: int, features: int, depth: int, width: int
) -> Need:
    """The closest pair of so many blocks, None for all samples; then the largest NTK's spectrum."""
    ntk = need_of_one(block, samples, features, depth, width)
    searched = samples if blocks is None else min(samples, blocks * block)
    # at infinite width: bands of K, and samples as they are, divided by their norms, and distinct
    copies = 3 * FLOAT64 * searched * features
    bands = 12 * FLOAT64 * min(BAND * block, BAND_ENTRIES) + copies
    angle = search_need(searched, features, depth, width).bytes
    angle += FLOAT32 * samples * features
    return ntk._replace(bytes=max(angle, ntk.bytes + solver_bytes(block) + bands))


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
    points = list(product(a.depths, map(float, a.widths)))

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


OPTIONS = network_options.parser(__doc__, without=("depth", "width"))
OPTIONS.add_settings("depths", "widths", "sizes")
OPTIONS.add_settings("blocks")

if __name__ == "__main__":
    command.run(main, OPTIONS)
