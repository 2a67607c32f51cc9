"""Means over seeds with their 95 % t intervals."""

import math
from collections.abc import Iterator

import numpy as np

LEVEL = 0.95
FEWEST = 3  # values in an interval: that of two is 13 standard errors wide to each side


def t_interval(values: np.ndarray) -> tuple[float, float, float]:
    """The mean, and its lower and upper end; these nan for fewer than FEWEST values, or if one is
    not finite."""
    mean, half = float(np.mean(values)), _half(values)
    return mean, mean - half, mean + half


def _half(values: np.ndarray) -> float:
    from scipy.stats import t

    count = len(values)
    if count < FEWEST or not np.isfinite(values).all():
        return math.nan
    return t.ppf((1 + LEVEL) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count)


def within(values: np.ndarray, lowest: float, highest: float) -> tuple[float, float, float]:
    """As `t_interval`, of values from lowest to highest, which the interval does not leave: the one
    of the mean's log odds, with their standard error by the delta method."""
    mean, half = float(np.mean(values)), _half(values)
    share = (mean - lowest) / (highest - lowest)
    if not 0 < share < 1:
        return mean, mean + 0 * half, mean + 0 * half  # all lie at one end, or none is known
    change = half / (highest - lowest) / (share * (1 - share))
    odds = (share / (1 - share) * math.exp(sign * change) for sign in (-1, 1))
    low, high = (lowest + (highest - lowest) * odd / (1 + odd) for odd in odds)
    return mean, low, high


def geometric(values: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean and t interval of positive values, by their logarithms; 0 if one is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return tuple(float(np.exp(value)) for value in t_interval(np.log(values)))


def columns(name: str, ends: tuple[float, float, float]) -> Iterator[tuple[str, float]]:
    """name_mean, name_low, name_high."""
    yield from zip((f"{name}_{end}" for end in ("mean", "low", "high")), ends, strict=True)


def angle_columns(name: str, degrees: np.ndarray) -> dict[str, float]:
    """name_mean, name_low, name_high of angles in degrees, within 0 and 180; name_std (n − 1)."""
    std = float(np.std(degrees, ddof=1)) if len(degrees) > 1 else math.nan
    return {**dict(columns(name, within(degrees, 0, 180))), f"{name}_std": std}
