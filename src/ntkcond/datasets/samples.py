"""From raw arrays to the samples of an experiment: chosen, ordered, scaled and checked."""

from dataclasses import dataclass, field, replace

import numpy as np

from ntkcond.errors import UserError
from ntkcond.rank import distinct_rows


@dataclass(frozen=True)
class Raw:
    """A data set as its files hold it.

    x: (n, d) real, y: (n,) integer labels or None; x_test, y_test: its own test split or None.
    value_range: the smallest and largest value that x can have (pixels: 0, 255).
    origin: where it is from, in words. files: sha256 of each raw file read.
    """

    x: np.ndarray
    y: np.ndarray | None
    value_range: tuple[float, float]
    origin: str
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Samples:
    """The samples of an experiment: x (n, d) float32, y (n,) int64 or None, likewise for testing;
    index (n,): their rows in the raw set."""

    x: np.ndarray
    y: np.ndarray | None
    x_test: np.ndarray | None
    y_test: np.ndarray | None
    index: np.ndarray


def hold_out(raw: Raw, count: int, seed: int) -> Raw:
    """Takes `count` random samples away as the test split of a set that has none of its own."""
    if count >= len(raw.x):
        raise UserError(f"hold_out: {count} leaves none of the {len(raw.x)} samples. Lower it")
    order = _stream(seed, "hold_out").permutation(len(raw.x))
    test, rest = np.sort(order[:count]), np.sort(order[count:])
    labels = (None, None) if raw.y is None else (raw.y[rest], raw.y[test])
    return replace(raw, x=raw.x[rest], y=labels[0], x_test=raw.x[test], y_test=labels[1])


def choose(
    raw: Raw, samples: int | str, seed: int, scale: tuple[float, float] | None = None
) -> Samples:
    """`samples` of them (or "all") in random order, values scaled to the interval `scale`.

    The order is that of one random permutation for each seed, so that blocks of consecutive samples
    are random blocks, and fewer samples are the first of more.
    Raises UserError when more samples are asked for than there are.
    """
    there = len(raw.x)
    wanted = there if samples == "all" else int(samples)
    if wanted > there:
        raise UserError(
            f"samples: {wanted} were asked for, there are {there}. Lower it, or use all"
        )
    index = _stream(seed, "order").permutation(there)[:wanted]

    def scaled(x: np.ndarray | None) -> np.ndarray | None:
        if x is None or scale is None:
            return None if x is None else np.ascontiguousarray(x, dtype=np.float32)
        (low, high), (bottom, top) = raw.value_range, scale
        return (bottom + (top - bottom) * (x.astype(np.float64) - low) / (high - low)).astype(
            np.float32
        )

    def labels(y: np.ndarray | None) -> np.ndarray | None:
        return None if y is None else y.astype(np.int64)

    return Samples(
        scaled(raw.x[index]),
        labels(None if raw.y is None else raw.y[index]),
        scaled(raw.x_test),
        labels(raw.y_test),
        index,
    )


def remarks(x: np.ndarray) -> list[str]:
    """What a reader of κ should know of samples x (n, d): repeated, zero and constant values."""
    distinct = distinct_rows(x)
    constant = int((x == x[0]).all(axis=0).sum())
    found = []
    if distinct.duplicate_rows:
        found.append(
            f"{distinct.duplicate_rows} of {len(x)} samples repeat an earlier one: a block with"
            " both has κ = ∞; left out of the closest pair"
        )
    if distinct.zero_rows:
        found.append(f"{distinct.zero_rows} samples are zero: κ = ∞; left out of the closest pair")
    if constant:
        found.append(f"{constant} of {x.shape[1]} features have the same value in every sample")
    return found


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """A random stream for each purpose, so that one choice does not shift another."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *purpose.encode()])))
