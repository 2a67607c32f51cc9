"""How well the test of monotone trends finds violations, by simulation.

    python benchmarks/trends.py [--simulations 1000] [--output docs/measured/trends.csv]

Prints a table (docs/measured/trends.csv has it). Each line is a curve at ten depths that should
rise, in standard deviations σ of the seeds; a simulation adds independent noise to each of five
seeds and judges as `ntkcond.artefacts.verdicts` does. Ten seconds a line for 1,000.
"""

import argparse
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ntkcond.artefacts.verdicts.claim import FAILS, HOLDS, UNCONTRADICTED, UNDECIDED
from ntkcond.artefacts.verdicts.trend import by_depth, rising

DEPTHS = 10
VIOLATION = 2.5  # standard deviations of the seeds
SIGMAS = np.linspace(0.2, 1.8, DEPTHS)  # unequal ones, whose mean is 1


def line(slope: float) -> np.ndarray:
    """A curve that rises by slope σ with each depth."""
    return slope * np.arange(DEPTHS, dtype=float)


def with_step(slope: float, at: int) -> np.ndarray:
    """The same, but for one step down by the violation."""
    steps = np.full(DEPTHS - 1, slope, dtype=float)
    steps[at] = -VIOLATION
    return np.concatenate([[0.0], steps.cumsum()])


def rise_then_drift(rise: float = 8.0) -> np.ndarray:
    """A rise from the first depth to the second, then a slow fall by the violation."""
    return np.concatenate([[0.0], rise - np.linspace(0, VIOLATION, DEPTHS - 1)])


def with_step_of(at: int) -> np.ndarray:
    """A rise by 1 with each depth, but for one step down to it by the violation in its own σ."""
    steps = np.ones(DEPTHS - 1)
    steps[at - 1] = -VIOLATION * SIGMAS[at]
    return np.concatenate([[0.0], steps.cumsum()])


def levelling(height: float = 8.0) -> np.ndarray:
    """A rise that becomes slower and slower, as that of −log κ does."""
    return height * np.log(np.arange(1, DEPTHS + 1)) / np.log(DEPTHS)


def flat_step(at: int) -> np.ndarray:
    """A steep rise but for one step without any: what is not to be confirmed."""
    steps = np.full(DEPTHS - 1, 8.0)
    steps[at] = 0
    return np.concatenate([[0.0], steps.cumsum()])


MONOTONE = {
    "rises by 1 σ a depth": line(1),
    "rises by 0.5 σ a depth": line(0.5),
    "rises by 8 σ, ever slower (as −log κ)": levelling(),
}
VIOLATED = {
    "rises by 8 σ at once, then falls slowly by 2.5 σ": rise_then_drift(),
    "rises by 2 σ a depth; falls by 2.5 σ at the second step": with_step(2, 1),
    "rises by 2 σ a depth; falls by 2.5 σ at the last step": with_step(2, 8),
    "rises by 1 σ a depth; falls by 2.5 σ in the middle": with_step(1, 4),
    "rises by 0.5 σ a depth; falls by 2.5 σ at the last step": with_step(0.5, 8),
}
OTHERS = {
    "is flat": line(0),
    "rises by 0.2 σ a depth": line(0.2),
    "rises by 2 σ a depth; falls by 1.25 σ at the last step": np.append(line(2)[:-1], 16 - 1.25),
    "rises by 8 σ at once, then is flat": np.append(0, np.full(DEPTHS - 1, 8.0)),
    "rises by 8 σ a depth; one step is flat": flat_step(4),
    "rises by 3 σ a depth": line(3),
}
UNEQUAL_MONOTONE = {
    "rises by 1 a depth; σ from 0.2 to 1.8": line(1),
    "rises by 8, ever slower; σ from 0.2 to 1.8": levelling(),
}
UNEQUAL_OTHERS = {
    "rises by 8 a depth; the second step is flat; σ from 0.2 to 1.8": flat_step(1),
    "rises by 8 a depth; the last step is flat; σ from 0.2 to 1.8": flat_step(8),
}
UNEQUAL_VIOLATED = {
    "rises by 1 a depth; falls by 2.5 of its own σ at the second step; σ from 0.2 to 1.8":
        with_step_of(2),
    "rises by 1 a depth; falls by 2.5 of its own σ at the eighth step; σ from 0.2 to 1.8":
        with_step_of(8),
}  # fmt: skip


def judged(
    curve: np.ndarray, seeds: int, simulations: int, sigma: ArrayLike = 1.0
) -> dict[str, float]:
    """How many of 100 simulations have each verdict."""
    rng = np.random.default_rng(1)
    counts = dict.fromkeys((HOLDS, UNCONTRADICTED, UNDECIDED, FAILS), 0)
    for _ in range(simulations):
        values = curve + sigma * rng.standard_normal((seeds, len(curve)))
        counts[rising(values.mean(axis=0), seeds, *by_depth(values)).verdict] += 1
    return {verdict: 100 * count / simulations for verdict, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--output", type=Path, help="a CSV, beside the table printed")
    options = parser.parse_args()
    cases = [
        (words, curve, seeds, 1.0)
        for words, curve in {**MONOTONE, **VIOLATED, **OTHERS}.items()
        for seeds in ((5, 2) if words in (*list(MONOTONE)[:1], *list(VIOLATED)[:1]) else (5,))
    ]
    unequal = {**UNEQUAL_MONOTONE, **UNEQUAL_VIOLATED, **UNEQUAL_OTHERS}
    cases += [(words, curve, 5, SIGMAS) for words, curve in unequal.items()]
    rows = []
    print("| a curve that | seeds | holds | not contradicted | not decided | does not hold |")
    print("|---|---|---|---|---|---|")
    for words, curve, seeds, sigma in cases:
        percent = judged(curve, seeds, options.simulations, sigma)
        shares = " | ".join(f"{share:.1f}" for share in percent.values())
        print(f"| {words} | {seeds} | {shares} |", flush=True)
        rows.append([words, seeds, *percent.values(), "python benchmarks/trends.py", date.today()])
    columns = [
        "curve", "seeds", "holds", "not_contradicted", "not_decided", "does_not_hold", "command",
        "when",
    ]  # fmt: skip
    if options.output:
        pd.DataFrame(rows, columns=columns).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
