"""From raw arrays to the samples of an experiment: chosen, ordered, scaled and checked."""

import json
from dataclasses import dataclass, field, replace

import numpy as np

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.run.errors import UserError

Interval = tuple[float, float]


@dataclass(frozen=True)
class Raw:
    """A data set as its files hold it.

    x: (n, d) real, y: (n,) integer labels or None; x_test, y_test: its test split or None.
    value_range: the smallest and largest value that x can have (pixels: 0, 255).
    origin: its source, in words. files: sha256 of each raw file read.
    """

    x: np.ndarray
    y: np.ndarray | None
    value_range: Interval
    origin: str
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Samples:
    """The samples of an experiment: x (n, d) float32, y (n,) int64 or None, likewise for testing.
    origin: arrays (n,) by name that locate each sample; `index` is its row in the raw set.
    about: source and preprocessing, in words. left_out: numbers of samples left out, by kind."""

    x: np.ndarray
    y: np.ndarray | None
    x_test: np.ndarray | None
    y_test: np.ndarray | None
    origin: dict[str, np.ndarray]
    about: dict[str, str]
    left_out: dict[str, int] = field(default_factory=dict)


def hold_out(raw: Raw, count: int, seed: int) -> Raw:
    """Moves `count` random samples into a test split. Raises UserError if the set has one."""
    if raw.x_test is not None:
        raise UserError("hold_out: this set has a test split of its own. Set it to 0")
    if count >= len(raw.x):
        raise UserError(f"hold_out: {count} leaves none of the {len(raw.x)} samples. Lower it")
    order = _stream(seed, "hold_out").permutation(len(raw.x))
    test, rest = np.sort(order[:count]), np.sort(order[count:])
    labels = (None, None) if raw.y is None else (raw.y[rest], raw.y[test])
    return replace(raw, x=raw.x[rest], y=labels[0], x_test=raw.x[test], y_test=labels[1])


def choose(raw: Raw, samples: int | str, seed: int, scale: Interval | None = None) -> Samples:
    """`samples` of them (or "all") in random order, values scaled to the interval `scale`.

    The order is a random permutation of the raw set that depends on the seed alone: blocks of
    consecutive samples are random, and a smaller choice is the beginning of a larger one.
    Raises UserError for more samples than available, and for values that are all equal or too
    large for float32.
    """
    available = len(raw.x)
    wanted = available if samples == "all" else int(samples)
    if wanted > available:
        raise UserError(f"samples: {wanted} requested, {available} available. Lower it, or use all")
    if scale is not None and not raw.value_range[0] < raw.value_range[1]:
        value = raw.value_range[0]
        raise UserError(f"scale: every value is {value}, which scales to nothing. Set it to null")
    index = _stream(seed, "order").permutation(available)[:wanted]
    everything = np.arange(0 if raw.x_test is None else len(raw.x_test))
    return Samples(
        _scaled(raw, raw.x, index, scale),
        _labels(raw.y, index),
        None if raw.x_test is None else _scaled(raw, raw.x_test, everything, scale),
        _labels(raw.y_test, everything),
        {"index": index},
        {
            "source": raw.origin,
            "raw_files_sha256": json.dumps(raw.files),
            "preprocessing": f"{wanted} of {available} samples in random order (seed {seed}); "
            + (f"values {raw.value_range} scaled to {scale}" if scale else "not scaled"),
        },
    )


def _scaled(raw: Raw, x: np.ndarray, index: np.ndarray, scale: Interval | None) -> np.ndarray:
    """Rows of x, of raw, as float32, a few at a time: only the result takes memory."""
    result = np.empty((len(index), x.shape[1]), dtype=np.float32)
    for start in range(0, len(index), 1024):
        rows = x[index[start : start + 1024]].astype(np.float64)
        if scale is not None:
            (low, high), (bottom, top) = raw.value_range, scale
            rows = bottom + (top - bottom) * (rows - low) / (high - low)
        with np.errstate(over="ignore"):  # checked right below
            result[start : start + 1024] = rows
    if not np.isfinite(result).all():
        raise UserError(
            f"{raw.origin}: values up to {np.abs(x).max():.3g} are too large for float32. Divide"
            " them by a constant, or set a scale such as [-1, 1]"
        )
    return result


def _labels(y: np.ndarray | None, index: np.ndarray) -> np.ndarray | None:
    return None if y is None else y[index].astype(np.int64)


def with_unit_norm(samples: Samples) -> Samples:
    """Each sample divided by its Euclidean norm; zero ones stay zero."""

    def unit(x: np.ndarray | None) -> np.ndarray | None:
        if x is None:
            return None
        norms = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
        zeros = np.zeros_like(x, np.float64)
        return np.divide(x, norms, out=zeros, where=norms > 0).astype(x.dtype)

    words = samples.about["preprocessing"] + "; each divided by its norm"
    about = {**samples.about, "preprocessing": words}
    return replace(samples, x=unit(samples.x), x_test=unit(samples.x_test), about=about)


def distinct(samples: Samples) -> Samples:
    """Without zero samples and those that repeat an earlier one, which make κ infinite; their
    numbers are in left_out. Test samples stay."""
    index, duplicates, zeros = distinct_rows(samples.x)
    if not len(index):
        raise UserError("distinct: all samples are zero, so none is left. Check the data")
    counts = {"samples that repeat an earlier one": duplicates, "samples that are zero": zeros}
    left_out = {**samples.left_out, **{kind: count for kind, count in counts.items() if count}}
    words = samples.about["preprocessing"] + "; each once"
    return replace(
        samples,
        x=samples.x[index],
        y=None if samples.y is None else samples.y[index],
        origin={name: array[index] for name, array in samples.origin.items()},
        about={**samples.about, "preprocessing": words},
        left_out=left_out,
    )


def defects(x: np.ndarray) -> list[str]:
    """What makes kernels of the samples x (n, d) singular: repeated and zero samples."""
    _, duplicates, zeros = distinct_rows(x)
    repeated, zero = "repeat an earlier one: a block with both", "are zero: a block with one"
    return [
        f"{count} of {len(x)} samples {kind} has κ = ∞; left out of the closest pair"
        for kind, count in ((repeated, duplicates), (zero, zeros))
        if count
    ]


def constant_features(x: np.ndarray) -> int:
    """How many features have the same value in every sample of x (n, d)."""
    return int((x == x[0]).all(axis=0).sum())


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """A stream for each purpose: no choice shifts another."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *purpose.encode()])))
