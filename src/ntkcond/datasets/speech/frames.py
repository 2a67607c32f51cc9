"""Frames of speech: their number in an utterance, and a uniform choice from a corpus."""

from collections.abc import Iterable, Sequence

import numpy as np

from ntkcond.datasets.speech.corpus import SAMPLE_RATE

WINDOW = SAMPLE_RATE * 25 // 1000  # samples in a frame
STEP = SAMPLE_RATE * 10 // 1000  # samples from one frame to the next
PENDING = 1 << 16  # candidates beyond the requested number that are kept before a sort


def frame_count(samples: int) -> int:
    """Frames that fit whole into so many samples of audio (Kaldi's snip_edges, its default)."""
    return max(0, 1 + (samples - WINDOW) // STEP)


def choose(
    names: Sequence[str], frames: Iterable[int], count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`count` frames, uniformly at random without repetition, in random order: for each the
    position of its utterance in `names` and its number in the utterance, (count,) int64 both.

    names: of the utterances. frames: how many each has, in the same order.

    Every frame has a random key from a counter-based stream of the seed and the utterance's name,
    and the `count` smallest keys win. So the choice depends neither on the machine nor on the
    order of the utterances, a smaller choice is the beginning of a larger one, and without some
    files the choice changes by their frames only. Memory grows with `count`, not with the corpus.
    """
    keys = np.empty(0, np.uint64)
    utterances = places = np.empty(0, np.int64)
    highest = np.uint64(2**64 - 1)  # a larger key cannot win
    pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    waiting = 0

    def sort_in() -> None:
        nonlocal keys, utterances, places, highest, waiting
        columns = zip((keys, utterances, places), *pending, strict=True)
        keys, utterances, places = (np.concatenate(column) for column in columns)
        order = np.argsort(keys, kind="stable")[:count]
        keys, utterances, places = keys[order], utterances[order], places[order]
        if 0 < len(keys) == count:
            highest = keys[-1]
        pending.clear()
        waiting = 0

    for utterance, (name, its_frames) in enumerate(zip(names, frames, strict=True)):
        if not its_frames:
            continue
        key = _stream(seed, f"frames of {name}").random_raw(its_frames)
        low = np.flatnonzero(key <= highest)
        pending.append((key[low], np.full(len(low), utterance), low))
        waiting += len(low)
        if waiting > count + PENDING:
            sort_in()
    sort_in()
    return utterances, places


def shuffled(names: Sequence[str], seed: int) -> np.ndarray:
    """The positions of `names` in random order, (len(names),), by random keys as in `choose`."""
    keys = [int(_stream(seed, f"place of {name}").random_raw()) for name in names]
    return np.argsort(np.array(keys, np.uint64), kind="stable")


def _stream(seed: int, purpose: str) -> np.random.Philox:
    return np.random.Philox(np.random.SeedSequence([seed, *purpose.encode()]))
