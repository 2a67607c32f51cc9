"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{network}/depth{L}.h5."""

from argparse import Namespace

import numpy as np

from ntkcond.arrays.backend import Array, put, to_numpy
from ntkcond.arrays.half import read_half
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, Spectrum
from ntkcond.ntk.empirical import ntk_product
from ntkcond.ntk.rounding import KernelError
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress, timed
from ntkcond.settings import command
from ntkcond.settings.memory import BY_HALF_FROM, FLOAT64, INTERPRETER, PANEL, factors_bytes
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


def solver_bytes(n: int) -> int:
    """A small kernel and two copies; half of a large one, a panel's product, a band, vectors."""
    if n < BY_HALF_FROM:
        return FLOAT64 * 3 * n**2
    return FLOAT64 * (n * (n + PANEL) // 2 + PANEL * n + 4 * PANEL**2 + 30 * n)


def need(block: int, samples: int, features: int, depth: int, width: int) -> Need:
    """Eigenvalues of a kernel that is read from its file; then, of a large one, the residual."""
    computing = solver_bytes(block) + FLOAT64 * (samples + block) * features
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
    features = x.shape[1]
    with read_hdf5(a.kernel) as source:
        kernels = source["kernel"]
        seeds, blocks, n, _ = kernels.shape
        require_memory(need(n, *x.shape, network.depth, network.width), device)
        inputs = x[: blocks * n].reshape(blocks, n, features)

        def kernel(s: int, b: int) -> tuple[Array | Symmetric, KernelError]:
            """A large one by half."""
            error = kernel_errors.read(source, s, b)
            if n <= FULL_SPECTRUM_UP_TO:
                return put(kernels[s, b], device), error
            with timed("reading the kernel"):
                half = read_half(n, lambda rows, columns: kernels[s, b, rows, columns], device)
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
                )
            return norm

        samples = inputs.__getitem__
        shape = blocks, features
        records = spectra.records(a, network, shape, samples, device, kernel, residual)
        label = f"spectrum {a.dataset.stem} {a.activation} L={a.depth}"
        records = list(progress(records, seeds * blocks, label))
    spectra.write(a, records, n, *x.shape)


OPTIONS = network_options.parser(__doc__)
OPTIONS.add_inputs("kernel")
OPTIONS.add_settings("block")
OPTIONS.add_settings("prove_smallest", optional=True)

if __name__ == "__main__":
    command.run(main, OPTIONS, chosen=lambda a: [KERNEL])
