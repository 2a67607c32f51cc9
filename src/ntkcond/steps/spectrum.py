"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{network}/depth{L}.h5."""

import functools
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ntkcond.arrays.backend import Array, Device, put, to_numpy
from ntkcond.arrays.half import Half, read_half
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.datasets.blocks import blocks_of
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, Spectrum
from ntkcond.ntk.empirical import PART, empirical_ntk_half, ntk_product, require_finite
from ntkcond.ntk.rounding import KernelError, gradients_with_error
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress, timed
from ntkcond.settings import command
from ntkcond.settings.memory import (
    BY_HALF_FROM,
    FLOAT64,
    INTERPRETER,
    PANEL,
    errors_bytes,
    factors_bytes,
)
from ntkcond.settings.step import DataSet, block, network_settings, networks
from ntkcond.steps import kernel_errors, network_options, spectra

jobs, largest = networks, block

KERNEL = "ntkcond.steps.kernel:main"
PRODUCT_ROWS = 4096  # samples at once in `ntkcond.ntk.empirical.ntk_product`


def serves(data: DataSet) -> bool:
    return data.engine.engine == "local"


def settings(data: DataSet, network: str, depth: str) -> dict:
    values = {**network_settings(data, network, depth), "block": data.experiment.block}
    return {**values, **({"prove_smallest": True} if data.experiment.prove_smallest else {})}


def chosen(data: DataSet) -> tuple[str, ...]:
    """A spectrum also says what its kernel was made with, which keep_kernels: false deletes."""
    return (KERNEL,)


def makes_kernels(data: DataSet) -> bool:
    """Whether it takes no file of kernels: of large ones that are not kept."""
    return not data.config.keep_kernels and (data.block or 0) >= BY_HALF_FROM


def sizes(data: DataSet, network: str, depth: str) -> dict:
    return {"makes_kernels": makes_kernels(data)}


def solver_bytes(n: int) -> int:
    """A small kernel and two copies; half of a large one, a panel's product, a band, vectors."""
    if n < BY_HALF_FROM:
        return FLOAT64 * 3 * n**2
    return FLOAT64 * (n * (n + PANEL) // 2 + PANEL * n + 4 * PANEL**2 + 30 * n)


def need(
    block: int, samples: int, features: int, depth: int, width: int, makes_kernels: bool = False
) -> Need:
    """Eigenvalues of a kernel that is read from its file, or made of two parts' factors at a time;
    then, of a large one, the residual."""
    computing = solver_bytes(block) + FLOAT64 * (samples + block) * features
    if makes_kernels:
        part = min(block, PART)
        making = 2 * factors_bytes(part, features, depth, width)
        computing += making + errors_bytes(features, depth, width)
    if block >= BY_HALF_FROM:
        weights = width * features + depth * width**2
        residual = factors_bytes(min(block, PRODUCT_ROWS), features, depth, width) + 16 * weights
        computing = max(computing, residual + FLOAT64 * (samples + block) * features)
    what = f"the spectrum of an NTK of {block} samples"
    return Need(what, INTERPRETER + computing, "Lower block in the config")


def main(arguments: Namespace) -> None:
    """Writes the record of each `Spectrum` and, for linear networks, its non-zero part."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    network = network_options.network(a)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    samples, features = x.shape
    n, blocks = blocks_of(samples, a.block, a.dataset.stem)
    sizes = n, samples, features, network.depth, network.width
    require_memory(need(*sizes, makes_kernels=a.kernel is None), device)
    inputs = x[: blocks * n].reshape(blocks, n, features)

    def kernel(s: int, b: int) -> tuple[Array | Symmetric, KernelError]:
        """A large one by half."""
        if a.kernel:
            return _read(a.kernel, s, b, device)
        with timed("the kernel"):
            weights = network.initial_weights(a.seeds[s], features, device)
            half, error = _made(network, weights, put(inputs[b].astype(np.float64), device))
        require_finite(half.diagonal, a.dataset.stem, a.depth)
        return half, error

    def residual(s: int, b: int, spectrum: Spectrum) -> float:
        gradients = network.initial_gradients(a.seeds[s], features, device)
        vector = spectrum.extremes.vector
        with timed("residual of the eigenvector"):
            moved = put(inputs[b].astype(np.float64), device)
            product = to_numpy(ntk_product(gradients, moved, put(vector, device)))
        norm = float(np.linalg.norm(product - spectrum.lambda_min * vector))
        if norm > 3 * spectrum.error:
            raise UserError(
                f"{a.kernel}: is not the NTK of {a.dataset.stem}: its eigenvector has a"
                f" residual of {norm:.3g}. Delete it, and snakemake makes the right one"
                if a.kernel
                else f"the eigenvector of {a.dataset.stem} has a residual of {norm:.3g}, above the"
                " bound: this machine computes wrongly. Set device: cpu, or take another"
            )
        return norm

    shape = blocks, features
    records = spectra.records(a, network, shape, inputs.__getitem__, device, kernel, residual)
    label = f"spectrum {a.dataset.stem} {a.activation} L={a.depth}"
    records = list(progress(records, len(a.seeds) * blocks, label))
    spectra.write(a, records, n, *x.shape)


def _read(path: Path, s: int, b: int, device: Device) -> tuple[Array | Half, KernelError]:
    with read_hdf5(path) as file:
        kernel, error = file["kernel"], kernel_errors.read(file, s, b)
        n = kernel.shape[-1]
        if n <= FULL_SPECTRUM_UP_TO:
            return put(kernel[s, b], device), error
        with timed("reading the kernel"):
            return read_half(n, lambda rows, columns: kernel[s, b, rows, columns], device), error


def _made(network: MLP, weights: Sequence[Array], x: Array) -> tuple[Half, KernelError]:
    """The kernel of a large block x (n, d) float64, by half, and its error."""
    known = gradients_with_error(network, weights)
    parts = (x[start : start + PART] for start in range(0, len(x), PART))
    error = functools.reduce(KernelError.joined, (known(part)[1] for part in parts))
    with np.errstate(over="ignore", invalid="ignore"):
        return empirical_ntk_half(network.gradients(weights), x), error


OPTIONS = network_options.parser(__doc__)
OPTIONS.add_inputs("kernel", optional=True)
OPTIONS.add_settings("block")
OPTIONS.add_settings("prove_smallest", optional=True)

if __name__ == "__main__":
    command.run(main, OPTIONS, chosen=lambda a: [KERNEL])
