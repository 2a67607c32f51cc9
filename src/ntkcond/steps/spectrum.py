"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{network}/depth{L}.h5."""

from argparse import Namespace

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, Device, put, xp
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.spectrum import linear_spectrum_record, rounding, spectrum_record, with_norm
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.needs import spectrum_need
from ntkcond.run.progress import progress
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
        require_memory(spectrum_need(n, *x.shape), device)
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
                        moved = put(block.astype(np.float64), device)
                        yield linear_spectrum_record(kernel, bounds[b], relative, moved, linear)
                    else:  # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K
                        trace = float(xp(kernel).linalg.trace(kernel))
                        yield spectrum_record(kernel, bounds[b], relative * trace)

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


def read_kernel(kernels: h5py.Dataset, which: tuple[int, int], device: Device) -> Array:
    """One of them, by bands of rows of some 64 MB: of a GPU's kernel the host never holds more."""
    n = kernels.shape[-1]
    like = put(np.empty(0), device)
    kernel = xp(like).empty((n, n), dtype=like.dtype, device=device)
    band = max(1, 2**23 // n)
    for start in range(0, n, band):
        rows = slice(start, min(start + band, n))
        kernel[rows] = put(kernels[(*which, rows)], device)
    return kernel


if __name__ == "__main__":
    options = network_options.parser(__doc__)
    options.add_input("--kernel", required=True, help="results/kernels/…/*.h5")
    command.run(main, options)
