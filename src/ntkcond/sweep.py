"""κ and min φ of one data set and activation over depths, widths (∞ among them) and sample sizes.

Small kernels, made and judged in memory: what the files of `kernel`, `spectrum` and `angle` hold of
one width and n at full length is here a row each.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from ntkcond.activations import Activation
from ntkcond.closest_pair import closest_pair
from ntkcond.dual_activations import gradient_angle, infinite_width_ntk
from ntkcond.duplicates import distinct_rows
from ntkcond.errors import UserError
from ntkcond.kernel import empirical_ntk
from ntkcond.network import (
    LayerGradient,
    first_layer,
    initial_weights,
    is_linear,
    layer_gradients,
)  # fmt: skip
from ntkcond.rank import distinct_directions, rank_bound
from ntkcond.spectrum import rounding, spectrum_record

INFINITE = math.inf


class Point(NamedTuple):
    """Where on a sweep: width may be `INFINITE`; n samples in one NTK, at most so many blocks of
    them, or all there are, None; trainable: one of `ntkcond.network.TRAINABLE`."""

    depth: int
    width: float
    n: int
    blocks: int | None
    trainable: str = "all"


def measure(
    x: np.ndarray,
    activation: Activation,
    point: Point,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
) -> Iterator[dict]:
    """A row for each seed and block (a single seed, −1, at infinite width): seed, block, kappa,
    kappa_lower, verdict, lambda_max, lambda_min, and min_angle_deg among the seed's samples.

    x: (samples, d) float32; its first min(blocks, samples // n) blocks of n are used. Where all
    blocks are asked for, the angle is among all samples, those in no block, too.
    """
    there = len(x) // point.n
    used = x[: (there if point.blocks is None else min(point.blocks, there)) * point.n]
    among = x if point.blocks is None else used
    distinct = torch.from_numpy(among[distinct_rows(among).index]).to(device, torch.float64)
    for seed in (-1,) if point.width == INFINITE else seeds:
        if point.width == INFINITE:
            angle = _smallest_angle(distinct, activation, point)
            kernels = _infinite_kernels(used, activation, point)
        else:
            weights = initial_weights(seed, point.depth, int(point.width), x.shape[1])
            moved = [torch.from_numpy(w).to(device) for w in weights]
            angle = _angle(_factors(distinct, moved, activation, point))
            kernels = _kernels(used, moved, activation, point)
        for block, kernel in enumerate(kernels):
            samples = used[block * point.n : (block + 1) * point.n]
            record = _record(kernel, samples, activation, point)
            yield {"seed": seed, "block": block, "min_angle_deg": angle, **record}


def _factors(
    x: torch.Tensor, weights: list[torch.Tensor], activation: Activation, point: Point
) -> list[LayerGradient]:
    factors = layer_gradients(x, weights, activation)
    return first_layer(factors) if point.trainable == "first" else factors


def _angle(factors: list[LayerGradient]) -> float:
    """nan where no two gradients are left, as of a narrow network that is switched off."""
    try:
        return closest_pair(factors).angle_deg
    except UserError:
        return math.nan


def _kernels(
    used: np.ndarray, weights: list[torch.Tensor], activation: Activation, point: Point
) -> Iterator[torch.Tensor]:
    for start in range(0, len(used), point.n):
        block = torch.from_numpy(used[start : start + point.n])
        block = block.to(weights[0].device, torch.float64)
        yield empirical_ntk(_factors(block, weights, activation, point))


def _infinite_kernels(
    used: np.ndarray, activation: Activation, point: Point
) -> Iterator[torch.Tensor]:
    for start in range(0, len(used), point.n):
        block = used[start : start + point.n]
        yield torch.from_numpy(infinite_width_ntk(block, point.depth, activation, point.trainable))


def _smallest_angle(distinct: torch.Tensor, activation: Activation, point: Point) -> float:
    """Of the closest inputs: φ grows with θ_in (for every activation here, tests say)."""
    closest = closest_pair([LayerGradient(distinct, None)]).angle_deg
    if activation.linear:
        return closest
    phi = gradient_angle(math.radians(closest), point.depth, activation, trainable=point.trainable)
    return float(np.degrees(phi))


def _record(
    kernel: torch.Tensor, samples: np.ndarray, activation: Activation, point: Point
) -> dict:
    """κ and its verdict; of a kernel that overflowed, that nothing is known."""
    if not torch.isfinite(kernel).all():
        unknown = {"lambda_max": math.nan, "lambda_min": math.nan, "kappa": math.nan}
        return {**unknown, "kappa_lower": 1.0, "verdict": "unresolved"}
    width = samples.shape[1] if point.width == INFINITE else int(point.width)
    bound = _rank_bound(samples, activation, point)
    relative = rounding(point.depth, width, samples.shape[1], activation.degree or 1)
    record = spectrum_record(kernel, bound, relative * kernel.diagonal().sum().item())
    names = ("lambda_max", "lambda_min", "kappa", "kappa_lower", "verdict")
    return {name: record[name] for name in names}


def _rank_bound(samples: np.ndarray, activation: Activation, point: Point) -> int:
    if point.width != INFINITE:
        return rank_bound(samples, activation, point.depth, int(point.width))
    if is_linear(activation, point.depth):
        return rank_bound(samples, activation, depth=0, width=1)
    return distinct_directions(samples, signed=True)
