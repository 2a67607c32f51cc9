"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{network}/depth{L}.h5."""

import math
from argparse import Namespace

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, Device, put, to_numpy
from ntkcond.arrays.half import Half, read_half
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import ntk_product
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.spectrum import (
    FULL_SPECTRUM_UP_TO,
    RESOLVED,
    SINGULAR,
    diagonal,
    linear_size,
    linear_spectrum_record,
    rounding,
    spectrum_record,
    with_norm,
    with_proof,
)
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.needs import spectrum_need
from ntkcond.run.progress import progress, timed
from ntkcond.steps import network_options


def main(arguments: Namespace) -> None:
    """Writes each entry of `spectrum_record` or, for linear networks, `linear_spectrum_record` as
    an array (seeds, blocks), eigenvalues as (seeds, blocks, their number)."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    network = network_options.network(a)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    features = x.shape[1]
    with read_hdf5(a.kernel) as source:
        kernels = source["kernel"]
        for name, wanted in {**network_options.settings(a), "seeds": a.seeds}.items():
            found = source.attrs[name]
            if not np.array_equal(found, wanted):
                raise UserError(
                    f"{a.kernel}: is a kernel of {name} {found}, not {wanted}. Delete it, and"
                    " snakemake makes the right one"
                )
        seeds, blocks, n, _ = kernels.shape
        require_memory(spectrum_need(n, *x.shape, network.depth, network.width), device)
        inputs = x[: blocks * n].reshape(blocks, n, features)
        bounds = [rank_bound(block, network) for block in inputs]
        relative = rounding(network, features)

        def records():
            for s, seed in enumerate(a.seeds):
                linear = None
                if network.is_linear:
                    weights = network.initial_weights(seed, features, device)
                    linear = with_norm(network.linear_factor(weights))
                for b, block in enumerate(inputs):
                    kernel = read_kernel(kernels, (s, b), device)
                    if linear:
                        moved = put(network.with_bias(block.astype(np.float64)), device)
                        kernel_error = relative * linear_size(moved, linear) ** 2
                        record = linear_spectrum_record(kernel, bounds[b], relative, moved, linear)
                    else:  # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K
                        kernel_error = relative * float(diagonal(kernel).sum())
                        record = spectrum_record(kernel, bounds[b], kernel_error)
                    if isinstance(kernel, Half):
                        del kernel  # its memory
                        with timed("residual of the eigenvector"):
                            residual = _residual(network, seed, block, record, device)
                        if residual > 3 * record["lambda_min_error"]:
                            raise UserError(
                                f"{a.kernel}: is not the NTK of {a.dataset.stem}: its eigenvector"
                                f" has a residual of {residual:.3g}. Delete it, and snakemake makes"
                                " the right one"
                            )
                        record["smallest_residual"] = residual
                        if a.prove_smallest:
                            record["smallest_is_above"] = math.nan
                        if a.prove_smallest and record["verdict"] == RESOLVED:
                            kernel = read_kernel(kernels, (s, b), device)
                            record |= with_proof(record, kernel, kernel_error)
                            del kernel
                    yield record

        label = f"spectrum {a.dataset.stem} {a.activation} L={a.depth}"
        spectra = list(progress(records(), seeds * blocks, label))

    with write_hdf5(a.output, a.record) as file:
        for name in spectra[0]:
            values = np.array([record[name] for record in spectra])
            values = values.reshape(seeds, blocks, *values.shape[1:])
            file[name] = values.astype(h5py.string_dtype()) if name == "verdict" else values
        file.attrs.update(
            network_options.settings(a), seeds=a.seeds, block=n, samples=len(x), features=features
        )  # fmt: skip


def _residual(network: MLP, seed: int, block: np.ndarray, record: dict, device: Device) -> float:
    """‖K v − λ_min v‖ with K v from the gradients themselves, not from the kernel file; NaN of a
    singular kernel, whose eigenvector is not computed."""
    if record["verdict"] == SINGULAR:
        return math.nan
    gradients = network.initial_gradients(seed, block.shape[1], device)
    vector = record["smallest_eigenvector"]
    product = ntk_product(gradients, put(block.astype(np.float64), device), put(vector, device))
    return float(np.linalg.norm(to_numpy(product) - record["lambda_min"] * vector))


def read_kernel(kernels: h5py.Dataset, which: tuple[int, int], device: Device) -> Array | Half:
    """One of them; a large one by half."""
    n = kernels.shape[-1]
    if n <= FULL_SPECTRUM_UP_TO:
        return put(kernels[which], device)
    with timed("reading the kernel"):
        return read_half(n, lambda rows, columns: kernels[(*which, rows, columns)], device)


if __name__ == "__main__":
    options = network_options.parser(__doc__)
    options.add_input("--kernel", required=True, help="results/kernels/…/*.h5")
    options.add_argument(
        "--prove-smallest", type=command.truth, help="by a second factor: no eigenvalue is below"
    )
    command.run(main, options)
