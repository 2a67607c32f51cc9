"""Level and power of the tests of rank correlations, by simulation.

    python benchmarks/rank_correlations.py [--output docs/measured/rank_correlations.csv]

Each line draws a measure x and the epochs y of 15 networks (five depths, three widths), or of 30
(with two activations), and tests their rank correlation at 5 %: by permutations, as
`ntkcond.artefacts.rank_correlation` does, and by whether a bootstrap interval contains 0. At a
slope of 0, x has no effect on y beyond what the correlation is given: the share of simulations that
are decided is the level. Else it is the power. Then the coverage of the intervals of the plain ρ,
and whole families with the correction. Five minutes on one core.
"""

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts.rank_correlation import (
    LEVEL,
    RESAMPLES,
    adjusted,
    bootstrap_interval,
    orthonormal,
    rank_correlation,
    unit_ranks,
)

ALPHA = 0.05
SIZES = np.array([(depth, width) for width in (64, 128, 256) for depth in (1, 2, 3, 6, 10)])
BOTH = np.repeat([0.0, 1.0], len(SIZES))[:, None]  # the label of two activations
DEPTH, WIDTH = ((v - v.mean()) / v.std() for v in np.log(SIZES).T)
Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


def independent(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(len(SIZES)), rng.standard_normal(len(SIZES))


def by_size(slope: float) -> Draw:
    """x falls with depth; y falls with width, rises with depth, and with what x has beyond it. A
    fifth of the networks never arrive."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        signal, noise = rng.standard_normal((2, len(SIZES)))
        y = 0.5 * DEPTH - 1.5 * WIDTH + slope * signal + 0.5 * noise
        return signal - DEPTH, np.where(y > np.quantile(y, 0.8), np.inf, y)

    return draw


def by_activation(slope: float, spread: float, arrives: bool) -> Draw:
    """x and y are larger with the second activation, x of which spreads so many times as much."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        signal, noise = rng.standard_normal((2, len(BOTH)))
        second = BOTH[:, 0]
        x = 2 * second + signal * np.where(second, spread, 1)
        y = 2 * second + slope * signal + noise
        return x, y if arrives else np.where(second, np.inf, y)

    return draw


def bootstrap_partial(x: np.ndarray, y: np.ndarray, covariates: np.ndarray) -> tuple[float, float]:
    """The percentile interval of the partial rank correlation."""
    chosen = np.random.default_rng(0).integers(len(x), size=(RESAMPLES, len(x)))
    basis = orthonormal(covariates[chosen])
    rest = (unit_ranks(values[chosen])[..., None] for values in (x, y))
    a, b = ((v - basis @ (np.swapaxes(basis, 1, 2) @ v))[..., 0] for v in rest)
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    rho = (a * b).sum(axis=1)[size > 1e-12] / size[size > 1e-12]
    low, high = np.quantile(rho, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def decided(
    draw: Draw, covariates: np.ndarray | None, simulations: int, resampled: int
) -> list[float]:
    """Percent of the simulations that the permutations decide; of the first few, the bootstrap."""
    rng = np.random.default_rng(1)
    by_permutations, by_bootstrap = [], []
    for i in range(simulations):
        x, y = draw(rng)
        by_permutations.append(rank_correlation(x, y, covariates).p <= ALPHA)
        if i < resampled:
            ends = (
                bootstrap_interval(x, y)
                if covariates is None
                else bootstrap_partial(x, y, covariates)
            )
            by_bootstrap.append(ends[0] > 0 or ends[1] < 0)
    return [100 * float(np.mean(decisions)) for decisions in (by_permutations, by_bootstrap)]


def false_among_decided(families: int) -> tuple[float, float]:
    """Percent: the mean share of false ones among those decided, and of true ones found. A family
    has six cases (data sets and losses) of twelve measures each, given depth and width. Half of the
    measures share what moves y; the others share something else, and no two are independent."""
    rng = np.random.default_rng(1)
    false, power = [], []
    true = np.arange(12) < 6
    for _ in range(families):
        p = []
        for _ in range(6):
            signal, other, noise = rng.standard_normal((3, len(SIZES)))
            y = 0.5 * DEPTH - 1.5 * WIDTH + signal + 0.5 * noise
            shared = np.where(true[:, None], signal, other) + 0.5 * rng.standard_normal(
                (12, len(y))
            )
            p += [rank_correlation(x - DEPTH, y, SIZES).p for x in shared]
        chosen = adjusted(np.array(p)) <= ALPHA
        is_true = np.tile(true, 6)
        false.append((chosen & ~is_true).sum() / max(1, chosen.sum()))
        power.append(chosen[is_true].mean())
    return 100 * float(np.mean(false)), 100 * float(np.mean(power))


def coverage(rho: float, count: int, simulations: int) -> float:
    """Percent of the bootstrap intervals of so many pairs that contain their true ρ; of normal x
    and y, whose ρ determines their correlation."""
    rng, inside = np.random.default_rng(1), 0
    correlation = 2 * np.sin(np.pi * rho / 6)
    for _ in range(simulations):
        x, noise = rng.standard_normal((2, count))
        y = correlation * x + np.sqrt(1 - correlation**2) * noise
        low, high = bootstrap_interval(x, y)
        inside += low <= rho <= high
    return 100 * inside / simulations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--resampled", type=int, default=1000, help="of them with the bootstrap")
    parser.add_argument("--families", type=int, default=300)
    parser.add_argument("--output", type=Path, help="a CSV, beside the table printed")
    options = parser.parse_args()
    cases: list[tuple[str, str, float, Draw, np.ndarray | None]] = [
        ("x and y independent", "plain", 0, independent, None),
        ("x and y independent", "given L and m", 0, independent, SIZES),
    ]
    for slope in (0.0, 0.5, 1.0, 2.0):
        cases.append(("y of L, m and x", "given L and m", slope, by_size(slope), SIZES))
    for words, spread, arrives in (
        ("y of activation and x", 1, True),
        ("the same, x of one activation spreads 3 times as much", 3, True),
        ("y of activation and x, one activation never arrives", 1, False),
        ("the same, and x of this one spreads a third as much", 1 / 3, False),
    ):
        for slope in (0.0, 1.0):
            draw = by_activation(slope, spread, arrives)
            cases.append((words, "given the activation", slope, draw, BOTH))
    print("| case | correlation | networks | slope | permutations | bootstrap |")
    rows = []
    command = "python benchmarks/rank_correlations.py"
    for words, name, slope, draw, covariates in cases:
        count = len(draw(np.random.default_rng(0))[0])
        percent = decided(draw, covariates, options.simulations, options.resampled)
        print(f"| {words} | {name} | {count} | {slope:g} | {percent[0]:.1f} | {percent[1]:.1f} |",
              flush=True)  # fmt: skip
        rows.append([words, name, count, slope, *percent, command, date.today()])
    for count in (15, 30):
        for rho in (0.0, 0.3, 0.6, 0.9):
            share = coverage(rho, count, options.resampled)
            print(f"{count} networks: {share:.1f} % of the intervals contain a ρ of {rho:g}")
            rows.append(["intervals that contain the true rho", "plain", count, rho, np.nan, share,
                         command, date.today()])  # fmt: skip
    false, power = false_among_decided(options.families)
    print(f"families: {false:.1f} % of those decided are false, {power:.1f} % of the true decided")
    for words, share in (("false among those decided", false), ("true that are decided", power)):
        rows.append([f"families of 72, corrected: {words}", "given L and m", 15, 1.0, share,
                     np.nan, command, date.today()])  # fmt: skip
    columns = ["case", "correlation", "networks", "slope", "permutations", "bootstrap", "command",
               "when"]  # fmt: skip
    if options.output:
        pd.DataFrame(rows, columns=columns).round(2).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
