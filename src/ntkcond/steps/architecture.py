"""κ and min φ of networks beside the paper's: results/architectures/{dataset}/{name}.h5.

Networks are those of `ntkcond.networks.modules`, or of a user's file, as torch modules.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import h5py
import numpy as np

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ON_IMAGES, seen_as
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.fields import Config
from ntkcond.settings.memory import FILTER, FLOAT64, INTERPRETER, TORCH
from ntkcond.settings.step import DataSet, block
from ntkcond.steps.spectrum import solver_bytes

if TYPE_CHECKING:
    import torch

largest = block

MODULE = 2_000_000_000  # of gradients at once in `ntkcond.library.of_module.kernel`
ALONE = 4  # samples run alone in the same module


def architectures(config: Config) -> list[str]:
    return [*config.architectures.names, *config.architectures.own]


def jobs(data: DataSet, which: str) -> Iterator[dict[str, str]]:
    for name in architectures(data.config):
        if name not in ON_IMAGES or data.shape:
            yield {"architecture": name}


def files(data: DataSet, architecture: str) -> dict[str, str]:
    modules = data.config.architectures.own
    return {"file": modules[architecture]} if architecture in modules else {}


def settings(data: DataSet, architecture: str) -> dict:
    chosen = data.config.architectures
    return {
        "architecture": architecture,
        **{key: getattr(chosen, key) for key in ("activations", "depths", "width", "seeds")},
        "block": data.experiment.block,
        "blocks": chosen.blocks,
        **({"shape": list(data.shape)} if data.shape else {}),
        **({"bias": chosen.bias} if architecture == "biases" else {}),
    }


def sizes(data: DataSet, architecture: str) -> dict:
    assert data.features
    channels, pixels = seen_as(architecture, data.shape, data.features)
    return {"features": channels, "pixels": pixels}


def need(block: int, samples: int, features: int, depth: int, width: int, pixels: int) -> Need:
    """Gradients of a block, in parts if they are many; of a few samples; an NTK's spectrum."""
    size, positions = (FILTER if pixels else 1), max(1, pixels)
    weights = (width * features + depth * width**2) * size
    activations = (4 * depth + size) * width * positions
    gradients = min(MODULE, FLOAT64 * block * (activations + weights))
    alone = FLOAT64 * ALONE * (activations + 2 * weights)
    total = INTERPRETER + TORCH + gradients + alone + FLOAT64 * 3 * weights
    total += solver_bytes(block) + 2 * FLOAT64 * samples * features * positions
    what = f"the NTK of {block} samples at depth {depth}, width {width}, as a torch module"
    return Need(what, total, "Lower block or architectures.width in the config")


def main(arguments: Namespace) -> None:
    """Writes a table, each column an array (rows,): activation, depth, width, n, seed, block;
    kappa, kappa_lower, verdict, grade, lambda_max, lambda_min; min_angle_deg among the samples of
    the block; weights, their number."""
    import torch

    from ntkcond.networks.modules import builder, builder_of_file, drawn

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
    from ntkcond.library.closest import closest_pair
    from ntkcond.library.of_module import condition_number, kernel

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


OPTIONS = command.parser(__doc__)
OPTIONS.add_inputs("dataset")
OPTIONS.add_inputs("file", optional=True)
OPTIONS.add_settings("architecture", "activations", "depths", "width", "seeds", "block", "blocks")
OPTIONS.add_settings("bias", "shape", optional=True)
command.add_computing(OPTIONS)

if __name__ == "__main__":
    command.run(main, OPTIONS)
