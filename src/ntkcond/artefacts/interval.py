"""Means over seeds with their 95 % t intervals."""

import math
from collections.abc import Iterator

import numpy as np

LEVEL = 0.95


def t_interval(values: np.ndarray) -> tuple[float, float, float]:
    """The mean, and its lower and upper end; these nan for a single value, or if one is not
    finite."""
    from scipy.stats import t

    mean, count = float(np.mean(values)), len(values)
    if count < 2 or not np.isfinite(values).all():
        return mean, math.nan, math.nan
    half = t.ppf((1 + LEVEL) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


def geometric(values: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean and t interval of positive values, by their logarithms; 0 if one is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return tuple(float(np.exp(value)) for value in t_interval(np.log(values)))


def columns(name: str, ends: tuple[float, float, float]) -> Iterator[tuple[str, float]]:
    """name_mean, name_low, name_high."""
    yield from zip((f"{name}_{end}" for end in ("mean", "low", "high")), ends, strict=True)


def t_interval_columns(name: str, values: np.ndarray) -> dict[str, float]:
    """name_mean, name_low, name_high of the t interval."""
    return dict(columns(name, t_interval(values)))
