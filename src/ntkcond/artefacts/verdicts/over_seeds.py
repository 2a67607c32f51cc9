"""What initialisations, by their spread, confirm or contradict: Student's t over seeds.

A statement about several depths is confirmed where each depth is, at LEVEL (all are needed: no
correction). Any depth can contradict it: p is that of the farthest one, times their number
(Bonferroni). Where neither is so and the mean over depths confirms it, it is not contradicted.

Values of one seed, whose spread is unknown, decide nothing.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t

from ntkcond.artefacts.verdicts.claim import (
    DOUBT,
    FAILS,
    HOLDS,
    LEVEL,
    UNCONTRADICTED,
    UNDECIDED,
    chance,
)

ONE_SEED = "one seed: its spread is unknown"


class Tested(NamedTuple):
    """verdict; p: of a contradiction; words: what the test says, as it is printed."""

    verdict: str
    p: float
    words: str


def one_sided(values: ArrayLike, bound: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """For each column of (seeds, columns) the p of a mean above the bound, and that of one below.

    Without spread, or with an infinite mean, they are 0 and 1; a mean that is the bound itself,
    without spread, is not above it.
    """
    values = np.asarray(values, dtype=np.float64)
    seeds = len(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.mean(axis=0) - bound
        error = values.std(axis=0, ddof=1) / math.sqrt(seeds)
        statistic = np.where(np.isfinite(mean), mean / error, mean)
    above, below = t.sf(statistic, seeds - 1), t.cdf(statistic, seeds - 1)
    unknown = np.isnan(statistic)
    return np.where(unknown, 1, above), np.where(unknown, 0, below)


def above_zero(values: pd.DataFrame, bounds: Collection[int] = ()) -> Tested:
    """Whether the means of a table are above 0. values: a row for each seed, a column for each
    depth. bounds: the depths at which they are known to be at least so large: they contradict
    nothing."""
    values = values.dropna(axis=1, how="all").dropna()
    if len(values) < 2:
        return Tested(UNDECIDED, math.nan, ONE_SEED)
    above, below = one_sided(values)
    known = ~values.columns.isin(list(bounds))
    against = min(1.0, known.sum() * below[known].min()) if known.any() else 1.0
    finite = values.loc[:, np.isfinite(values).all()]
    whole = one_sided(finite.mean(axis=1))[0] if finite.size else np.array(1.0)
    return _tested(values.columns, above, against, float(whole), len(values))


def within(values: pd.DataFrame, low: float, high: float) -> Tested:
    """Whether the means of such a table are from low to high (two one-sided tests each)."""
    values = values.dropna(axis=1, how="all").dropna()
    if len(values) < 2:
        return Tested(UNDECIDED, math.nan, ONE_SEED)

    def outside(table: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        above_low, below_low = one_sided(table, low)
        above_high, below_high = one_sided(table, high)
        return np.maximum(above_low, below_high), np.minimum(below_low, above_high)

    inside, beyond = outside(values)
    against = min(1.0, 2 * len(beyond) * beyond.min())
    whole = float(outside(values.mean(axis=1))[0])
    return _tested(values.columns, inside, against, whole, len(values))


def _tested(
    depths: pd.Index, confirmed: np.ndarray, against: float, whole: float, seeds: int
) -> Tested:
    """confirmed: p of each depth's confirmation; against: of a contradiction by any; whole: of the
    confirmation by the mean over depths."""
    if against < LEVEL:
        return Tested(FAILS, against, f"{seeds} seeds, contradicted, {chance(against)}")
    if (confirmed < LEVEL).all():
        most = chance(confirmed.max(), len(depths) > 1)
        return Tested(HOLDS, against, f"{seeds} seeds, confirmed, {most}")
    verdict = UNCONTRADICTED if against >= DOUBT and whole < LEVEL else UNDECIDED
    missed = ", ".join(
        f"L = {depth} ({chance(p)})"
        for depth, p in zip(depths, confirmed, strict=True)
        if p >= LEVEL
    )
    return Tested(verdict, against, f"{seeds} seeds, not confirmed at {missed}")


def difference(means: ArrayLike, deviations: ArrayLike, seeds: int) -> tuple[float, float, float]:
    """p of a first mean below the second, p of one above, and the degrees of freedom (Welch's t
    test), of two samples of so many seeds with known means and standard deviations."""
    first, second = np.square(np.asarray(deviations, dtype=np.float64)) / seeds
    gap = float(np.subtract(*means))
    if not first + second:
        return (0.0, 1.0, math.inf) if gap < 0 else (1.0, 0.0 if gap else 1.0, math.inf)
    freedom = (first + second) ** 2 * (seeds - 1) / (first**2 + second**2)
    statistic = gap / math.sqrt(first + second)
    return float(t.cdf(statistic, freedom)), float(t.sf(statistic, freedom)), freedom
