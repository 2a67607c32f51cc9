"""‖∇f(x)‖ of every sample: results/gradient_norms/{dataset}/{network}/depth{L}.h5."""

from argparse import Namespace
from collections.abc import Sequence

import numpy as np

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.networks.mlp import LayerGradient
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import INTERPRETER, factors_bytes
from ntkcond.settings.step import network_settings, networks
from ntkcond.steps import network_options

settings, jobs = network_settings, networks


def need(samples: int, features: int, depth: int, width: int) -> Need:
    """The factors of all samples, and their squares."""
    computing = 2 * factors_bytes(samples, features, depth, width)
    return Need(f"gradients of {samples} samples", INTERPRETER + computing, "Lower samples")


def gradient_norms(factors: Sequence[LayerGradient]) -> np.ndarray:
    """(n,), from the factors of each layer's gradient: √Σₗ ‖forward‖² ‖backward‖²."""
    squares = 0.0
    for forward, backward in factors:
        ones = np.ones(1) if backward is None else (to_numpy(backward) ** 2).sum(1)
        squares = squares + (to_numpy(forward) ** 2).sum(1) * ones
    return np.sqrt(squares)


def main(arguments: Namespace) -> None:
    """Writes gradient_norm (seeds, samples)."""
    a = arguments
    network = network_options.network(a)
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:].astype(np.float64)
    require_memory(need(*x.shape, network.depth, network.width), device)
    norms = []
    for seed in progress(a.seeds, len(a.seeds), f"gradient norms {a.dataset.stem}"):
        gradients = network.initial_gradients(seed, x.shape[1], device)
        norms.append(gradient_norms(gradients(put(x, device))))
    with write_hdf5(a.output, a.record) as file:
        file["gradient_norm"] = norms
        file.attrs.update(network_options.settings(a), seeds=a.seeds)


OPTIONS = network_options.parser(__doc__)

if __name__ == "__main__":
    command.run(main, OPTIONS)
