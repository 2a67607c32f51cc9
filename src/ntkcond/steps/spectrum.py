"""Eigenvalues and κ of every NTK: results/spectra/{dataset}/{activation}/depth{L}.h5."""

from argparse import Namespace
from pathlib import Path

import h5py
import numpy as np
import torch

from ntkcond import command
from ntkcond.activations import ACTIVATIONS
from ntkcond.errors import UserError
from ntkcond.needs import spectrum_need
from ntkcond.network import TRAINABLE, initial_weights, is_linear, linear_factor
from ntkcond.progress import progress
from ntkcond.rank import rank_bound
from ntkcond.resources import require_memory, resolve_device, use_threads
from ntkcond.spectrum import linear_network, linear_spectrum_record, rounding, spectrum_record
from ntkcond.storage import read_hdf5, write_hdf5


def main(arguments: Namespace) -> None:
    """Writes each entry of `spectrum_record` or, for linear networks, `linear_spectrum_record` as
    an array (seeds, blocks), eigenvalues as (seeds, blocks, their number)."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    activation = ACTIVATIONS[a.activation]
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    features = x.shape[1]
    with read_hdf5(a.kernel) as source:
        kernels = source["kernel"]
        for name in ("activation", "depth", "width", "seeds", "trainable"):
            there, wanted = source.attrs[name], vars(a)[name]
            if not np.array_equal(there, wanted):
                raise UserError(
                    f"{a.kernel}: is a kernel of {name} {there}, not {wanted}. Delete it, and"
                    " snakemake makes the right one"
                )
        seeds, blocks, n, _ = kernels.shape
        require_memory(spectrum_need(n, *x.shape), device)
        inputs = x[: blocks * n].reshape(blocks, n, features)
        bounds = [rank_bound(block, activation, a.depth, a.width) for block in inputs]
        relative = rounding(a.depth, a.width, features, activation.degree or 1)

        def records():
            for s, seed in enumerate(a.seeds):
                linear = None
                if is_linear(activation, a.depth):
                    weights = initial_weights(seed, a.depth, a.width, features)
                    moved = [torch.from_numpy(w).to(device) for w in weights]
                    linear = linear_network(linear_factor(moved, a.trainable))
                for b, block in enumerate(inputs):
                    kernel = read_kernel(kernels, (s, b), device)
                    if linear:
                        block = torch.from_numpy(block).to(device, torch.float64)
                        yield linear_spectrum_record(kernel, bounds[b], relative, block, linear)
                    else:  # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K
                        trace = kernel.diagonal().sum().item()
                        yield spectrum_record(kernel, bounds[b], relative * trace)

        label = f"spectrum {a.dataset.stem} {a.activation} L={a.depth}"
        found = list(progress(records(), seeds * blocks, label))

    with write_hdf5(a.output, a.made_by) as file:
        for name in found[0]:
            values = np.array([record[name] for record in found])
            values = values.reshape(seeds, blocks, *values.shape[1:])
            file[name] = values.astype(h5py.string_dtype()) if name == "verdict" else values
        file.attrs.update(
            activation=a.activation, depth=a.depth, width=a.width, seeds=a.seeds, block=n,
            trainable=a.trainable, samples=len(x), features=features,
        )  # fmt: skip


def read_kernel(
    kernels: h5py.Dataset, which: tuple[int, int], device: torch.device
) -> torch.Tensor:
    """One of them, by bands of rows of some 64 MB: of a GPU's kernel the host never holds more."""
    n = kernels.shape[-1]
    kernel = torch.empty(n, n, dtype=torch.float64, device=device)
    band = max(1, 2**23 // n)
    for start in range(0, n, band):
        rows = slice(start, min(start + band, n))
        kernel[rows] = torch.from_numpy(kernels[(*which, rows)]).to(device)
    return kernel


if __name__ == "__main__":
    options = command.parser(__doc__)
    command.add_network(options, ACTIVATIONS)
    command.add_trainable(options, TRAINABLE)
    command.add_computing(options)
    options.add_argument("--kernel", type=Path, required=True, help="results/kernels/…/*.h5")
    command.run(main, options)
