"""κ and min φ of one data set and network, of finite or infinite width, at one size of the NTK.

Small kernels, in memory: one row for each, with a part of the results that the steps `kernel`,
`spectrum` and `closest_pair` write to files.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.arrays.half import Half
from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.mlp import MLP, LayerGradient
from ntkcond.ntk import infinite_width
from ntkcond.ntk.closest_pair import smallest_angle
from ntkcond.ntk.dual_activations import dual
from ntkcond.ntk.empirical import empirical_ntk, empirical_ntk_half
from ntkcond.ntk.infinite_width import (
    gradient_angle,
    infinite_width_ntk,
    infinite_width_ntk_half,
)
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import (
    ESTIMATED,
    PROVED,
    TINY,
    KernelError,
    of_blocks_with_error,
)
from ntkcond.ntk.spectrum import FULL_SPECTRUM_UP_TO, diagonal, spectrum


def measure(
    x: np.ndarray,
    network: MLP,
    n: int,
    blocks: int | None,
    seeds: Sequence[int],
    device: Device = "cpu",
) -> Iterator[dict]:
    """A row for each seed and block (a single seed, −1, at infinite width): seed, block, kappa,
    kappa_lower, verdict, grade, lambda_max, lambda_min (`ntkcond.ntk.spectrum.Spectrum`), and
    min_angle_deg among the seed's samples.

    x: (samples, d) float32; its first min(blocks, samples // n) blocks of n are used. For blocks
    None, all blocks are used, and the angle is among all samples, including those in no block.
    """
    count = len(x) // n if blocks is None else min(blocks, len(x) // n)
    inputs = x[: count * n].reshape(count, n, x.shape[1])
    searched = x if blocks is None else x[: count * n]
    distinct = searched[distinct_rows(searched).index].astype(np.float64)
    for seed in (-1,) if network.width == math.inf else seeds:
        yield from _of_seed(seed, network, inputs, distinct, device)


@np.errstate(over="ignore", invalid="ignore")  # a kernel that overflows is recorded as unresolved
def _of_seed(
    seed: int, network: MLP, inputs: np.ndarray, distinct: np.ndarray, device: Device
) -> list[dict]:
    """The rows of one seed. inputs: (blocks, n, d); distinct: the samples of the angle, float64."""
    by_half = inputs.shape[1] > FULL_SPECTRUM_UP_TO
    if network.width == math.inf:
        angle = _at_infinite_width(distinct, network)
        ntk = infinite_width_ntk_half if by_half else infinite_width_ntk

        def kernel(samples: np.ndarray) -> tuple[Array | Half, KernelError]:
            matrix = ntk(samples, network)
            return matrix, infinite_width_error(network, samples.shape[1], diagonal(matrix))

        kernels = map(kernel, inputs)
    else:
        weights = network.initial_weights(seed, distinct.shape[1], device)
        angle = smallest_angle(network.layer_gradients(put(distinct, device), weights))
        empirical = empirical_ntk_half if by_half else empirical_ntk
        gradients = of_blocks_with_error(network, weights, inputs.shape[1], by_layers=True)
        made = gradients(inputs.reshape(-1, inputs.shape[2]), device)

        def kernel_of(known: tuple[list[LayerGradient], KernelError]) -> tuple[Any, KernelError]:
            return empirical(known[0]), known[1]

        kernels = map(kernel_of, made)
    known = {"seed": seed, "min_angle_deg": angle}
    # no name keeps a kernel: the next one needs its memory
    records = map(lambda made, x: _record(*made, rank_bound(x, network)), kernels, inputs)
    return [{**known, "block": block, **record} for block, record in enumerate(records)]


def _at_infinite_width(distinct: np.ndarray, network: MLP) -> float:
    """min φ at infinite width: of the closest inputs where φ grows with θ_in, as it does for every
    activation here up to 90°; else of all pairs."""
    closest = smallest_angle([LayerGradient(distinct, None)])
    if (network.activation.linear and not network.bias) or math.isnan(closest):
        return closest
    theta = np.linspace(0, math.pi, 361)
    phi = gradient_angle(theta, network)
    nearest = theta >= math.radians(closest)
    smallest = float(gradient_angle(math.radians(closest), network))
    if (phi[nearest] < smallest - 1e-6).any():
        smallest = infinite_width.smallest_angle(distinct[distinct.any(axis=1)], network)
    return math.degrees(smallest)


def infinite_width_error(network: MLP, features: int, squared_norms: np.ndarray) -> KernelError:
    """The error of `infinite_width_ntk`, by `ntkcond.ntk.infinite_width.entry_error`.
    squared_norms: its diagonal, (n,). Proved for closed forms, whose elementary functions are taken
    as good to a few units of rounding; else estimated."""
    closed = network.is_linear or max(dual(network.activation).error) == 0
    # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K; and entries that underflow
    error = infinite_width.entry_error(network, features) * float(squared_norms.sum()) + TINY * len(
        squared_norms
    )
    return KernelError.of_matrix(error, PROVED if closed else ESTIMATED)


def _record(kernel: Array | Half, error: KernelError, rank: int) -> dict:
    """κ and its verdict; `unresolved` for a kernel that overflowed. rank: a bound on it."""
    if not np.isfinite(diagonal(kernel)).all():  # which no entry exceeds
        unknown = {"lambda_max": math.nan, "lambda_min": math.nan, "kappa": math.nan}
        return {**unknown, "kappa_lower": 1.0, "verdict": "unresolved", "grade": "estimated"}
    record = spectrum(kernel, error, rank).record
    names = ("lambda_max", "lambda_min", "kappa", "kappa_lower", "verdict", "grade")
    return {name: record[name] for name in names}
