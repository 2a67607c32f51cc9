"""What the steps of both engines share: the record of each kernel, and the file of them all."""

import math
from argparse import Namespace
from collections.abc import Callable, Iterator

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.spectrum import (
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
from ntkcond.run.command import StepParser
from ntkcond.run.files import write_hdf5
from ntkcond.steps import network_options


def add_proof(options: StepParser) -> None:
    """--prove-smallest"""
    options.add_argument(
        "--prove-smallest", type=command.truth, help="by a second factor: no eigenvalue is below"
    )


def records(
    a: Namespace,
    network: MLP,
    shape: tuple[int, int],
    samples: Callable[[int], np.ndarray],
    device: Device,
    kernel: Callable[[int, int], Array | Symmetric],
    residual: Callable[[int, int, dict], float],
) -> Iterator[dict]:
    """Of each seed and each block. shape: blocks, features. samples: of a block, (n, d) float32, by
    its number. kernel: of a seed and block, by their numbers. residual: ‖K v − λ_min v‖ of a large
    kernel's record, with K v from the gradients themselves; not asked of a singular kernel, whose
    eigenvector is not computed."""
    blocks, features = shape
    bounds = [rank_bound(samples(b), network) for b in range(blocks)]
    relative = rounding(network, features)
    for s, seed in enumerate(a.seeds):
        linear = None
        if network.is_linear:
            weights = network.initial_weights(seed, features, device)
            linear = with_norm(network.linear_factor(weights))
        for b in range(blocks):
            made = kernel(s, b)
            large = isinstance(made, Symmetric)
            if linear:
                moved = put(network.with_bias(samples(b).astype(np.float64)), device)
                error = relative * linear_size(moved, linear) ** 2
                record = linear_spectrum_record(made, bounds[b], relative, moved, linear)
            else:  # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K
                error = relative * float(diagonal(made).sum())
                record = spectrum_record(made, bounds[b], error)
            del made  # its memory
            if large:
                known = record["verdict"] != SINGULAR
                record["smallest_residual"] = residual(s, b, record) if known else math.nan
                if a.prove_smallest:
                    record["smallest_is_above"] = math.nan
                if a.prove_smallest and record["verdict"] == RESOLVED:
                    record |= with_proof(record, kernel(s, b), error)
            yield record


def write(
    a: Namespace, spectra: list[dict], n: int, samples: int, features: int, **attributes: object
) -> None:
    """The file results/spectra/{dataset}/{network}/depth{L}.h5: each entry of the records as an
    array (seeds, blocks), eigenvalues as (seeds, blocks, their number)."""
    with write_hdf5(a.output, a.record) as file:
        for name in spectra[0]:
            values = np.array([record[name] for record in spectra])
            values = values.reshape(len(a.seeds), -1, *values.shape[1:])
            file[name] = values.astype(h5py.string_dtype()) if name == "verdict" else values
        file.attrs.update(
            network_options.settings(a), seeds=a.seeds, block=n, samples=samples,
            features=features, **attributes,
        )  # fmt: skip
