"""κ and min φ of one data set and network, of finite or infinite width, at one size of the NTK.

Small kernels, in memory: one row for each, with a part of the results that the steps `kernel`,
`spectrum` and `closest_pair` write to files.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.mlp import MLP, LayerGradient
from ntkcond.ntk.closest_pair import closest_pair
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import gradient_angle, infinite_width_ntk
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.spectrum import rounding, spectrum_record
from ntkcond.run.errors import UserError


def measure(
    x: np.ndarray,
    network: MLP,
    n: int,
    blocks: int | None,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> Iterator[dict]:
    """A row for each seed and block (a single seed, −1, at infinite width): seed, block, kappa,
    kappa_lower, verdict, lambda_max, lambda_min, and min_angle_deg among the seed's samples.

    x: (samples, d) float32; its first min(blocks, samples // n) blocks of n are used. For blocks
    None, all blocks are used, and the angle is among all samples, including those in no block.
    """
    count = len(x) // n if blocks is None else min(blocks, len(x) // n)
    inputs = x[: count * n].reshape(count, n, x.shape[1])
    searched = x if blocks is None else x[: count * n]
    distinct = torch.from_numpy(searched[distinct_rows(searched).index]).to(device, torch.float64)
    for seed in (-1,) if network.width == math.inf else seeds:
        if network.width == math.inf:
            angle = _smallest_angle(distinct, network)
            kernels = (torch.from_numpy(infinite_width_ntk(block, network)) for block in inputs)
        else:
            weights = network.initial_weights(seed, x.shape[1], device)
            angle = _angle(network.layer_gradients(distinct, weights))
            kernels = _kernels(inputs, network, weights)
        for block, kernel in enumerate(kernels):
            record = _record(kernel, inputs[block], network)
            yield {"seed": seed, "block": block, "min_angle_deg": angle, **record}


def _angle(factors: list[LayerGradient]) -> float:
    """min φ in degrees; nan if fewer than two gradients do not vanish."""
    try:
        return closest_pair(factors).angle_deg
    except UserError:
        return math.nan


def _kernels(
    inputs: np.ndarray, network: MLP, weights: list[torch.Tensor]
) -> Iterator[torch.Tensor]:
    for block in inputs:
        moved = torch.from_numpy(block).to(weights[0].device, torch.float64)
        yield empirical_ntk(network.layer_gradients(moved, weights))


def _smallest_angle(distinct: torch.Tensor, network: MLP) -> float:
    """min φ of the closest inputs: φ grows with θ_in (tested for every activation here)."""
    closest = closest_pair([LayerGradient(distinct, None)]).angle_deg
    if network.activation.linear:
        return closest
    return float(np.degrees(gradient_angle(math.radians(closest), network)))


def _record(kernel: torch.Tensor, samples: np.ndarray, network: MLP) -> dict:
    """κ and its verdict; `unresolved` for a kernel that overflowed."""
    if not torch.isfinite(kernel).all():
        unknown = {"lambda_max": math.nan, "lambda_min": math.nan, "kappa": math.nan}
        return {**unknown, "kappa_lower": 1.0, "verdict": "unresolved"}
    relative = rounding(network, samples.shape[1])
    trace = kernel.diagonal().sum().item()
    record = spectrum_record(kernel, rank_bound(samples, network), relative * trace)
    names = ("lambda_max", "lambda_min", "kappa", "kappa_lower", "verdict")
    return {name: record[name] for name in names}
