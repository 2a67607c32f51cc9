"""Whether a curve over depth goes one way: a test against all that is not monotone.

Noise: independent between seeds and depths, but for what `by_depth` removes: that which a seed adds
to all its depths. (Tables that state only a spread at each depth, as that of `6-descent`, leave it
in.) Standard deviations σ differ by depth; five seeds alone would tell them
too badly, so they are shrunk towards each other as far as their scatter may be chance. With two
seeds one σ is taken for all depths.

- Contradiction: the distance of the means from the nearest monotone curve (isotonic regression,
  weighted by 1/σ²), in units of σ, against its distribution under that curve, by simulation that
  estimates σ anew. This is the likelihood-ratio test of order (Robertson, Wright and Dykstra,
  1988). It sums up a slow drift over many depths as well as one step, which tests of adjacent
  depths do not. A curve is rejected at p < 5 %; between 5 and 10 % nothing is decided.
- Confirmation: each step, by Student's t, p < 5 % (all are needed: no correction). If only the
  change from the first depth to the last is confirmed, and no contradiction found, the curve is
  not contradicted.

Neither level is exact. p is taken at the nearest monotone curve; at the least favourable one, which
is flat, the test would find far fewer violations. So of curves that are flat, or flat after a rise,
10 to 12 in 100 are rejected; of those that rise throughout 1 to 3, and 5 of those that rise ever
slower while σ grows by a factor of nine.

Power, of five seeds (`benchmarks/trends.py` simulates it; docs/measured/trends.csv): a
violation of 2.5 σ is rejected in 92 to 99 of 100 cases, and not contradicted in at most 5; where σ
differs by a factor of nine, in 85 to 95, and 6 at most. Fewer seeds find less: with fewer than
FULL, means that are not monotone decide nothing unless they are rejected, and one seed decides
nothing.
Exact curves, as at infinite width, are judged step by step.

A mean may be known by a bound alone. Then the curve is contradicted only if it is whatever the mean
is within the bound, and a step is confirmed only if it is at the bound.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import polygamma
from scipy.stats import t

from ntkcond.artefacts.verdicts.claim import (
    DOUBT,
    FAILS,
    HOLDS,
    LEVEL,
    UNCONTRADICTED,
    UNDECIDED,
)

FULL = 5  # seeds, of which the power is known
DRAWS = 2000  # that simulate the distributions
ROUNDS = 20_000  # at most, in which bounds find the nearest monotone curve
STILL = 1e-6  # of σ, by which they then move
LEAST = 0.02  # of a depth's variance, of the mean variance
SHRINK = 1.5  # more than the scatter asks for: power where all σ are equal


def isotonic(values: np.ndarray, weights: ArrayLike = 1.0) -> np.ndarray:
    """The nearest rising curves, in weighted least squares, along the last axis: at each point the
    largest, over starts up to it, of the smallest mean of an interval that reaches at least to it.
    """
    index = np.arange(values.shape[-1])
    starts, ends = index[:, None], index[None, :]
    backwards = ends < starts
    weights = np.broadcast_to(weights, values.shape)
    means = _intervals(values * weights) / np.where(backwards, 1, _intervals(weights))
    means = np.where(backwards, np.inf, means)
    smallest = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
    return np.where(backwards, -np.inf, smallest).max(axis=-2)


def _intervals(values: np.ndarray) -> np.ndarray:
    """Sums of values from start to end, (…, starts, ends)."""
    sums = np.concatenate([np.zeros_like(values[..., :1]), values.cumsum(axis=-1)], axis=-1)
    return sums[..., None, 1:] - sums[..., :-1, None]


def by_depth(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Variance of a mean over seeds at each depth, and its degrees of freedom, of (seeds, depths):
    without what each seed adds to all its depths (Grubbs, 1948)."""
    seeds, depths = values.shape
    freedom = (seeds - 1) * max(depths - 1, 1) / max(depths, 1)
    if seeds < 2 or not depths:
        return np.zeros(depths), 0.0
    left = values - values.mean(axis=0)
    if depths > 1:
        left = left - left.mean(axis=1, keepdims=True)
    squares = np.square(left).sum(axis=0) / (seeds - 1)
    if depths == 2:
        squares = 2 * squares
    elif depths > 2:
        squares = (depths * squares - squares.sum() / (depths - 1)) / (depths - 2)
    return np.maximum(squares, 0) / seeds, freedom


def moderated(variances: ArrayLike, freedom: float) -> np.ndarray:
    """Variances of depths, along the last axis, shrunk towards their mean as far as their scatter
    is that of estimates with so few degrees of freedom; the mean where one is missing (NaN).

    The logarithms are shrunk by the ratio of variances expected and observed (Cui et al., 2005)."""
    variances = np.asarray(variances, dtype=np.float64)
    mean = np.nanmean(variances, axis=-1, keepdims=True)
    if freedom <= 1:
        return np.broadcast_to(mean, variances.shape)
    variances = np.maximum(variances, LEAST * mean)
    logs = np.log(variances)
    logs = logs - np.nanmean(logs, axis=-1, keepdims=True)
    count = np.isfinite(logs).sum(axis=-1, keepdims=True)
    observed = np.nansum(np.square(logs), axis=-1, keepdims=True) / np.maximum(count - 1, 1)
    expected = SHRINK * polygamma(1, freedom / 2)
    shape = np.exp(
        np.maximum(1 - expected / np.maximum(observed, expected), 0) * np.nan_to_num(logs)
    )
    return shape * np.nanmean(variances / shape, axis=-1, keepdims=True)


def _distance(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    return (np.square(means - isotonic(means, 1 / variances)) / variances).sum(axis=-1)


def contradiction(means: ArrayLike, variances: ArrayLike, freedom: float) -> float:
    """The probability that means of the nearest rising curve are as far from rising as these.

    variances: of the means, as `by_depth` estimates them; freedom: of each estimate.
    """
    means, variances = np.asarray(means, float), np.asarray(variances, float)
    if (np.diff(means) >= 0).all():
        return 1.0
    known = moderated(variances, freedom)
    nearest = isotonic(means, 1 / known)
    rng = np.random.default_rng(0)
    drawn = nearest + np.sqrt(known) * rng.standard_normal((DRAWS, len(means)))
    estimates = known * rng.chisquare(freedom, drawn.shape) / freedom
    estimates = moderated(np.where(np.isnan(variances), np.nan, estimates), freedom)
    return float((_distance(drawn, estimates) >= _distance(means, known)).mean())


def _within_bounds(
    means: np.ndarray, weights: np.ndarray, at_most: np.ndarray, at_least: np.ndarray
) -> np.ndarray:
    """The values within the bounds that are nearest to a rising curve: by turns the nearest curve,
    and the values nearest to it."""
    values = means
    for _ in range(ROUNDS if (at_most | at_least).any() else 0):
        curve, before = isotonic(values, weights), values
        values = np.where(at_most & (curve < means) | at_least & (curve > means), curve, means)
        if (abs(values - before) * np.sqrt(weights) < STILL).all():
            break
    return values


def exactly_rising(means: ArrayLike) -> str:
    """The verdict on a curve without noise that should rise."""
    return HOLDS if (np.diff(means) > 0).all() else FAILS


class Trend(NamedTuple):
    """verdict; p: of a contradiction, NaN without a test; steps: p of the confirmation of each."""

    verdict: str
    p: float = math.nan
    steps: tuple[float, ...] = ()


def rising(
    means: ArrayLike,
    seeds: int,
    variances: ArrayLike,
    freedom: float,
    at_most: ArrayLike = False,
    at_least: ArrayLike = False,
) -> Trend:
    """Whether a curve of means over seeds that should rise does, from `by_depth`'s variances.

    at_most, at_least: of each mean, whether that is only known to be at most, or at least, what is
    given; if both, nothing is known of it. Infinite means do not rise; NaN decides nothing.
    """
    means = np.asarray(means, dtype=np.float64)
    if seeds == 1 or np.isnan(means).any():
        return Trend(UNDECIDED)
    if not np.isfinite(means).all():
        return Trend(FAILS)
    at_most, at_least = (
        np.broadcast_to(np.asarray(m, bool), means.shape) for m in (at_most, at_least)
    )
    if not np.nansum(variances):
        return Trend(UNDECIDED if (at_most | at_least).any() else exactly_rising(means))
    known = moderated(variances, freedom)
    nearest = _within_bounds(means, 1 / known, at_most, at_least)
    probability = max(contradiction(nearest, variances, freedom), 1 / DRAWS)

    def growth(sample: ArrayLike, first: int, last: int) -> float:
        if at_least[first] or at_most[last]:
            return 1.0
        return _growth(known, sample, freedom, means, first, last)

    steps = tuple(growth(variances, i, i + 1) for i in range(len(means) - 1))
    if probability < LEVEL:
        return Trend(FAILS, probability, steps)
    if all(p < LEVEL for p in steps):
        return Trend(HOLDS, probability, steps)
    agrees = probability >= DOUBT and (seeds >= FULL or (np.diff(means) >= 0).all())
    grows = growth(known, 0, -1) < LEVEL
    return Trend(UNCONTRADICTED if agrees and grows else UNDECIDED, probability, steps)


def _growth(
    known: np.ndarray, sample: ArrayLike, freedom: float, means: np.ndarray, first: int, last: int
) -> float:
    """p of a confirmation that the curve is higher at the last of two depths than at the first. Of
    a depth's own variance and the moderated one the larger counts."""
    variances = np.fmax(known, sample)
    growth = (means[last] - means[first]) / math.sqrt(variances[first] + variances[last])
    return float(t.sf(growth, 2 * freedom))
