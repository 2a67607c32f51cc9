"""How far one network is from infinite width: claims on the spread of K(x, x) between networks.

A layer adds 5/m to the relative variance of ‖αˡ‖² and of ‖δˡ‖², and 1/m to their covariance. Over
the pairs of the L + 1 terms of K(x, x), whose mean distance is L (L + 2)/(3 (L + 1)), the relative
variance is (5 L − 4 L (L + 2)/(3 (L + 1)))/m to first order in L/m: 3/m at L = 1, (11/3) L/m in
deep networks. Hanin and Nica (2020, Thm 1) have E K²/(E K)² ≃ exp(5 L/m), up to constants.
"""

import math

import numpy as np

from ntkcond.artefacts.verdicts.claim import Claims, Finding, Findings, short

CLAIMS = Claims()
FIRST_ORDER = ((1, 128), (3, 256), (10, 512))  # L, m
LARGE = ((20, 64), (40, 128))
DRAWS = 8000


def diagonal_entries(depth: int, width: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """K(x, x)/(L + 1) of so many networks of Eq. (1) with ReLU, ‖x‖ = 1, (draws,).

    Weights are drawn as far as they act, m numbers a layer in place of m²: W α is Gaussian, and Wᵀδ
    is known along α from W α, and Gaussian across it."""
    scale = math.sqrt(2 / width)
    norms, activations, gates = [np.ones(draws)], [], []
    for _ in range(depth):
        z = rng.standard_normal((draws, width)) * np.sqrt(norms[-1])[:, None]
        gates.append(scale * (z > 0))
        activations.append(gates[-1] * z)
        norms.append(np.sum(activations[-1] ** 2, axis=1))
    last = rng.standard_normal((draws, width))
    output = np.sum(last * activations[-1], axis=1)
    entries, backward = norms[-1], gates[-1] * last
    for layer in reversed(range(depth)):
        squares = np.sum(backward**2, axis=1)
        entries = entries + norms[layer] * squares
        if layer:
            before = activations[layer - 1]
            arriving = rng.standard_normal((draws, width)) * np.sqrt(squares)[:, None]
            # (W α)·δ is the output, at every layer of a homogeneous network
            along = (output - np.sum(arriving * before, axis=1)) / norms[layer]
            backward = gates[layer - 1] * (arriving + before * along[:, None])
    return entries / (depth + 1)


def relative_variance(depth: int, width: int) -> float:
    """To first order in L/m."""
    apart = depth * (depth + 2) / (3 * (depth + 1))
    return (5 * depth - 4 * apart) / width


@CLAIMS.add(
    "ours-fluctuation", "ours; on Hanin and Nica 2020, Thm 1",
    "It is L/m that decides how far K(x, x) of one network is from infinite width: its relative"
    " variance is (11/3) L/m in deep networks, 3/m at L = 1, to first order; and E K²/(E K)² is 1 +"
    " 3/m at L = 1, and between exp(3 L/m) and exp(5 L/m) in deep networks.",
)  # fmt: skip
def spread_of_the_diagonal() -> Findings:
    rng = np.random.default_rng(0)
    for depth, width in FIRST_ORDER:
        k = diagonal_entries(depth, width, DRAWS, rng)
        variance, expected = k.var(ddof=1) / k.mean() ** 2, relative_variance(depth, width)
        error = k.std(ddof=1) / math.sqrt(DRAWS)
        yield Finding(
            f"L = {depth}, m = {width}, {DRAWS:,} networks", "relative variance of K(x, x)",
            f"{short(expected)}, within 8 %", short(variance),
            f"mean of K(x, x)/(L + 1): {short(k.mean())} ± {short(error)}",
            abs(variance / expected - 1) < 0.08,
        )  # fmt: skip
    for depth, width in LARGE:
        k = diagonal_entries(depth, width, DRAWS, rng)
        growth = math.log(np.mean(k**2) / np.mean(k) ** 2) * width / depth
        yield Finding(
            f"L = {depth}, m = {width}: L/m = {short(depth / width)}, {DRAWS:,} networks",
            "ln(E K²/(E K)²) in units of L/m", "from 3 to 5", short(growth), "", 3 < growth < 5,
        )  # fmt: skip
