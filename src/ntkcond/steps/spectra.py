"""What the steps of both engines share: the record of each kernel, and the file of them all."""

import math
from argparse import Namespace
from collections.abc import Callable, Iterator

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import (
    RESOLVED,
    SINGULAR,
    Spectrum,
    nonzero_spectrum,
    spectrum,
    with_norm,
    with_proof,
)
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import KernelError
from ntkcond.run.files import write_hdf5
from ntkcond.steps import network_options


def records(
    a: Namespace,
    network: MLP,
    shape: tuple[int, int],
    samples: Callable[[int], np.ndarray],
    device: Device,
    kernel: Callable[[int, int], tuple[Array | Symmetric, KernelError]],
    residual: Callable[[int, int, Spectrum], float],
) -> Iterator[dict]:
    """Records of the kernels, by seed and block. shape: blocks, features. samples: of a block, (n,
    d) float32, by its number. kernel: of a seed and block, by their numbers, with its error.
    residual: ‖K v − λ_min v‖ of a large kernel's spectrum, with K v from the gradients themselves;
    not asked of a singular kernel, whose eigenvector is not computed."""
    blocks, features = shape
    bounds = [rank_bound(samples(b), network) for b in range(blocks)]
    for s, seed in enumerate(a.seeds):
        linear = None
        if network.is_linear:
            weights = network.initial_weights(seed, features, device)
            linear = with_norm(network.linear_factor(weights))
        for b in range(blocks):
            made, error = kernel(s, b)
            large = isinstance(made, Symmetric)
            result = spectrum(made, error, bounds[b])
            del made  # its memory
            known, about = result.verdict != SINGULAR, {}
            if large:
                about["smallest_residual"] = residual(s, b, result) if known else math.nan
            if large and a.prove_smallest:
                about["smallest_is_above"] = math.nan
                if result.verdict == RESOLVED:
                    result = with_proof(result, kernel(s, b)[0])
            if linear:
                inputs = put(network.with_bias(samples(b).astype(np.float64)), device)
                about |= nonzero_spectrum(network, inputs, linear)
            yield about | result.record


def write(
    a: Namespace, spectra: list[dict], n: int, samples: int, features: int, **attributes: object
) -> None:
    """The file results/spectra/{dataset}/{network}/depth{L}.h5: each entry of the records as an
    array (seeds, blocks), eigenvalues as (seeds, blocks, their number)."""
    with write_hdf5(a.output, a.record) as file:
        for name in spectra[0]:
            values = np.array([record[name] for record in spectra])
            values = values.reshape(len(a.seeds), -1, *values.shape[1:])
            text = name in ("verdict", "grade")
            file[name] = values.astype(h5py.string_dtype()) if text else values
        file.attrs.update(
            network_options.settings(a), seeds=a.seeds, block=n, samples=samples,
            features=features, **attributes,
        )  # fmt: skip
