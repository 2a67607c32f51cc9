"""Whether a curve over depth goes one way: a test against all that is not monotone.

Noise: independent between seeds, and of one standard deviation σ at all depths; what a seed adds to
all its depths cancels. σ² is pooled over depths, so that five seeds at ten depths give 36 degrees
of freedom, where a pair of depths would give 4.

- Contradiction: the distance of the means from the nearest monotone curve (isotonic regression), in
  units of σ, against its distribution under that curve. This is the likelihood-ratio test of order
  (Robertson, Wright and Dykstra, 1988). It sums up a slow drift over many depths as well as one
  step, which tests of adjacent depths do not. A curve is rejected at a level of 5 %; between 5 and
  10 % nothing is decided.
- Confirmation: the change from the first depth to the last, by Student's t at a level of 5 %.

Power, of five seeds (`benchmarks/trends.py` simulates it; docs/results.md has the table): a
violation of 2.5 σ is rejected in 92 to 99 of 100 cases, and passes in at most 5. Fewer seeds find
less: with fewer than FULL, means that are not monotone decide nothing unless they are rejected, and
one seed decides nothing. Exact curves, as at infinite width, are judged step by step.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from ntkcond.artefacts.claims.claim import FAILS, HOLDS, UNDECIDED

LEVEL = 0.05  # of a contradiction, and of a confirmation
DOUBT = 0.10  # of a contradiction: below, nothing is decided
FULL = 5  # seeds, of which the power is known
DRAWS = 2000  # that simulate the distribution of the distance


def isotonic(values: np.ndarray) -> np.ndarray:
    """The nearest rising curves, in least squares, along the last axis: at each point the largest,
    over starts up to it, of the smallest mean of an interval that reaches at least to it."""
    index = np.arange(values.shape[-1])
    sums = np.concatenate([np.zeros_like(values[..., :1]), values.cumsum(axis=-1)], axis=-1)
    starts, ends = index[:, None], index[None, :]
    means = (sums[..., None, 1:] - sums[..., :-1, None]) / np.maximum(ends - starts + 1, 1)
    means = np.where(ends >= starts, means, np.inf)
    smallest = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
    return np.where(ends >= starts, smallest, -np.inf).max(axis=-2)


def contradiction(means: ArrayLike, variance: float, freedom: int) -> float:
    """The probability that means of a rising curve are as far from rising as these.

    variance: of a mean; freedom: degrees of freedom of its estimate.
    """
    means = np.asarray(means, dtype=np.float64)
    if (np.diff(means) >= 0).all():
        return 1.0
    nearest = isotonic(means)
    distance = np.square(means - nearest).sum()
    rng = np.random.default_rng(0)
    drawn = nearest + math.sqrt(variance) * rng.standard_normal((DRAWS, len(means)))
    distances = np.square(drawn - isotonic(drawn)).sum(axis=-1)
    estimates = rng.chisquare(freedom, DRAWS) / freedom
    return float((distances >= distance * estimates).mean())


def exactly_rising(means: ArrayLike) -> str:
    """The verdict on a curve without noise that should rise."""
    return HOLDS if (np.diff(means) > 0).all() else FAILS


def rising(means: ArrayLike, seeds: int, variance: float, freedom: int) -> str:
    """The verdict on a curve of means over seeds that should rise, from `pooled`'s variance.

    Means that are not finite do not rise.
    """
    means = np.asarray(means, dtype=np.float64)
    if not np.isfinite(means).all():
        return FAILS
    if seeds == 1:
        return UNDECIDED
    if not variance:
        return exactly_rising(means)
    probability = contradiction(means, variance, freedom)
    if probability < LEVEL:
        return FAILS
    grown = t.sf((means[-1] - means[0]) / math.sqrt(2 * variance), freedom) < LEVEL
    agrees = probability >= DOUBT and (seeds >= FULL or (np.diff(means) >= 0).all())
    return HOLDS if grown and agrees else UNDECIDED


def pooled(values: np.ndarray) -> tuple[float, int]:
    """Variance of a mean over seeds, and its degrees of freedom, of (seeds, depths): of what is
    left without each depth's mean and, with several depths, each seed's."""
    seeds, depths = values.shape
    freedom = (seeds - 1) * max(depths - 1, 1)
    if not freedom or not depths:
        return 0.0, 0
    left = values - values.mean(axis=0)
    if depths > 1:
        left = left - left.mean(axis=1, keepdims=True)
    return float(np.square(left).sum() / freedom / seeds), freedom
