"""κ and min φ of networks beside the paper's: results/architectures/{dataset}/{name}.h5.

Networks are those of `ntkcond.networks.modules`, or of a user's file, as torch modules.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import product

import h5py
import numpy as np
import torch

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.jobs.architecture import need
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import seen_as
from ntkcond.networks.modules import builder, builder_of_file, drawn
from ntkcond.ntk.of_module import closest_pair, condition_number, kernel
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.progress import progress


def main(arguments: Namespace) -> None:
    """Writes a table, each column an array (rows,): activation, depth, width, n, seed, block;
    kappa, kappa_lower, verdict, grade, lambda_max, lambda_min; min_angle_deg among the samples of
    the block; weights, their number."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    torch.set_num_threads(a.threads or torch.get_num_threads())
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    n = len(x) if a.block == "all" else a.block
    shape = a.shape or x.shape[1:]
    if np.prod(shape) != x.shape[1]:
        raise UserError(f"{a.dataset}: has samples of {x.shape[1]} values, not of shape {shape}")
    blocks = min(a.blocks, len(x) // n)
    if not blocks:
        raise UserError(f"{a.dataset}: has {len(x)} samples, fewer than block. Lower it")
    features, pixels = seen_as(a.architecture, a.shape or (), x.shape[1])
    sizes = n, len(x), features, max(a.depths), a.width, pixels
    require_memory(need(*sizes), device)
    inputs = torch.from_numpy(x[: blocks * n]).reshape(blocks, n, *shape)
    built = builder_of_file(a.file) if a.file else builder(a.architecture, a.bias)
    points = list(product(a.activations, a.depths, a.seeds))

    def rows() -> Iterator[list[dict]]:
        for activation, depth, seed in points:
            torch.manual_seed(seed)  # of a user's own initialisation
            module = built(tuple(shape), depth, a.width, ACTIVATIONS[activation])
            module = (module if a.file else drawn(module, seed)).to(device)
            about = {"activation": activation, "depth": depth, "width": a.width, "n": n}
            about["weights"] = sum(p.numel() for p in module.parameters())
            yield [
                {**about, "seed": seed, "block": block, **_measured(module, samples)}
                for block, samples in enumerate(inputs)
            ]

    label = f"networks {a.dataset.stem} {a.architecture}"
    table = [row for some in progress(rows(), len(points), label) for row in some]
    with write_hdf5(a.output, a.record) as file:
        for name in table[0]:
            values = np.array([row[name] for row in table])
            text = name in ("verdict", "grade", "activation")
            file[name] = values.astype(h5py.string_dtype()) if text else values
        file.attrs.update(architecture=a.architecture, samples=len(x), shape=shape)


def _measured(module: torch.nn.Module, samples: torch.Tensor) -> dict:
    ntk = kernel(module, samples)
    spectrum = condition_number(ntk)
    flat = samples.numpy().reshape(len(samples), -1)
    distinct = first_of_each(flat)
    among = ntk.matrix[np.ix_(distinct, distinct)]
    pairs = np.count_nonzero(among.diagonal()) > 1
    return {
        "kappa": spectrum.kappa, "kappa_lower": spectrum.kappa_lower,
        "verdict": spectrum.verdict, "grade": spectrum.grade,
        "lambda_max": spectrum.lambda_max, "lambda_min": spectrum.lambda_min,
        "min_angle_deg": closest_pair(among).angle_deg if pairs else math.nan,
    }  # fmt: skip


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_input("--dataset", required=True, help="results/datasets/*.h5")
    options.add_argument("--architecture", required=True, help="its name")
    options.add_input("--file", help="a Python file with network(shape, depth, width, activation)")
    options.add_argument("--activations", type=lambda text: text.split(","), required=True)
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument("--width", type=command.at_least(1), required=True)
    options.add_argument("--bias", type=float, help="β, of biases alone")
    options.add_argument("--shape", type=command.whole_numbers, help="of a sample, such as 1,8,8")
    options.add_argument("--block", type=command.count_or_all, required=True)
    options.add_argument("--blocks", type=command.at_least(1), required=True, help="at most")
    options.add_argument("--seeds", type=command.whole_numbers, required=True)
    command.add_computing(options)
    command.run(main, options)
