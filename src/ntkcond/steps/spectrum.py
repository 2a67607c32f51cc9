"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{network}/depth{L}.h5."""

from argparse import Namespace

import numpy as np

from ntkcond.arrays.backend import Array, put, to_numpy
from ntkcond.arrays.half import read_half
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.jobs.spectrum import need
from ntkcond.ntk.empirical import ntk_product
from ntkcond.ntk.rounding import KernelError
from ntkcond.ntk.spectrum import FULL_SPECTRUM_UP_TO, Spectrum
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.progress import progress, timed
from ntkcond.steps import kernel_errors, network_options, spectra


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


if __name__ == "__main__":
    options = network_options.parser(__doc__)
    options.add_input("--kernel", required=True, help="results/kernels/…/*.h5")
    spectra.add_proof(options)
    command.run(main, options)
