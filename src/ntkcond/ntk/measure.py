"""κ and min φ of one data set and network, of finite or infinite width, at one size of the NTK.

Small kernels, in memory: one row for each, with a part of the results that the steps `kernel`,
`spectrum` and `closest_pair` write to files.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.arrays.half import Half
from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.mlp import MLP, LayerGradient
from ntkcond.ntk import infinite_width
from ntkcond.ntk.closest_pair import smallest_angle
from ntkcond.ntk.dual_activations import dual
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, diagonal, spectrum
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
    Known,
    layer_gradients_with_error,
)


class _Samples(NamedTuple):
    """Samples of one n. inputs: (blocks, n, d) float32; ranks: bounds on those of their NTKs;
    distinct: the samples of the angle, float64."""

    inputs: np.ndarray
    ranks: list[int]
    distinct: np.ndarray


@np.errstate(over="ignore", invalid="ignore")  # a kernel that overflows is recorded as unresolved
def measure(
    x: np.ndarray,
    network: MLP,
    sizes: Sequence[int],
    blocks: int | None,
    seeds: Sequence[int],
    device: Device = "cpu",
) -> list[dict]:
    """A row for each n of sizes, seed and block (a single seed, −1, at infinite width): n, seed,
    block, kappa, kappa_lower, verdict, grade, lambda_max, lambda_min
    (`ntkcond.ntk.eigenvalues.Spectrum`), and min_angle_deg among the seed's samples.

    x: (samples, d) float32; its first min(blocks, samples // n) blocks of n are used. For blocks
    None, all blocks are used, and the angle is among all samples, including those in no block.
    """
    taken = [_taken(x, network, n, blocks) for n in sizes]
    at_infinity = network.width == math.inf

    def of_seed(seed: int) -> Iterator[list[dict]]:
        """The rows of each n; no name keeps what the next seed or kernel needs room for."""
        ntks = _infinite(network) if at_infinity else _finite(network, seed, x.shape[1], device)
        for samples in taken:
            angle, kernels = ntks(samples)
            known = {"n": samples.inputs.shape[1], "seed": seed, "min_angle_deg": angle}
            records = map(lambda kernel, rank: _record(*kernel, rank), kernels, samples.ranks)
            yield [{**known, "block": b, **record} for b, record in enumerate(records)]

    of_seeds = [list(of_seed(seed)) for seed in ((-1,) if at_infinity else seeds)]
    return [row for of_size in zip(*of_seeds, strict=True) for rows in of_size for row in rows]


def _taken(x: np.ndarray, network: MLP, n: int, blocks: int | None) -> _Samples:
    """See `measure`."""
    count = len(x) // n if blocks is None else min(blocks, len(x) // n)
    inputs = x[: count * n].reshape(count, n, x.shape[1])
    searched = x if blocks is None else x[: count * n]
    distinct = searched[distinct_rows(searched).index].astype(np.float64)
    return _Samples(inputs, [rank_bound(samples, network) for samples in inputs], distinct)


OfSeed = Callable[[_Samples], tuple[float, Iterator[tuple[Array | Half, KernelError]]]]


def _infinite(network: MLP) -> OfSeed:
    """min φ, and the NTK of each block."""

    def of_samples(samples: _Samples) -> tuple[float, Iterator[tuple[Array | Half, KernelError]]]:
        by_half = samples.inputs.shape[1] > FULL_SPECTRUM_UP_TO
        ntk = infinite_width_ntk_half if by_half else infinite_width_ntk

        def kernel(x: np.ndarray) -> tuple[Array | Half, KernelError]:
            matrix = ntk(x, network)
            return matrix, infinite_width_error(network, x.shape[1], diagonal(matrix))

        return _at_infinite_width(samples.distinct, network), map(kernel, samples.inputs)

    return of_samples


def _finite(network: MLP, seed: int, features: int, device: Device) -> OfSeed:
    """min φ, and the NTK of each block."""
    weights = network.initial_weights(seed, features, device)
    with_error = layer_gradients_with_error(network, weights)

    def of_samples(samples: _Samples) -> tuple[float, Iterator[tuple[Array | Half, KernelError]]]:
        inputs = samples.inputs
        n = inputs.shape[1]
        empirical = empirical_ntk_half if n > FULL_SPECTRUM_UP_TO else empirical_ntk

        def kernel(known: Known) -> tuple[Array | Half, KernelError]:
            return empirical(known[0]), known[1]

        angle = smallest_angle(network.layer_gradients(put(samples.distinct, device), weights))
        return angle, map(kernel, with_error.blocks(inputs.reshape(-1, features), n, device))

    return of_samples


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
