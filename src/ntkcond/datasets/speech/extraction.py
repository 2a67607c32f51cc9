"""Samples from the audio of a corpus: decoded by several threads, spliced, normalised."""

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import torch

from ntkcond.datasets.speech.corpus import Utterance
from ntkcond.datasets.speech.frames import frame_count
from ntkcond.datasets.speech.log_mel import log_mel
from ntkcond.run.errors import UserError
from ntkcond.run.machine import available_memory
from ntkcond.run.progress import log, progress
from ntkcond.run.units import size

NORMALISE = {
    "utterance": "mean 0 and variance 1 of each energy over its utterance",
    "speaker": "mean 0 and variance 1 of each energy over its speaker's utterances",
    "global": "mean 0 and variance 1 of each energy over the training samples",
    "none": "not normalised",
}
COPIES = 7  # of all samples, at the step's peak; measured
ROWS = 4096  # samples normalised at once
NO_MD5 = bytes(16)  # some FLAC writers omit it


class Recipe(NamedTuple):
    """How a sample is made: `splice` consecutive frames of `mel` energies each, side by side."""

    mel: int
    splice: int
    normalise: str

    @property
    def centre(self) -> int:
        """Position in a sample of the frame whose label the sample has."""
        return self.splice // 2

    def __str__(self) -> str:
        return (
            f"{self.splice} neighbouring frames of {self.mel} log-mel energies each (25 ms every"
            f" 10 ms, Kaldi's conventions, no dither) = {self.mel * self.splice} features;"
            f" {NORMALISE[self.normalise]}"
        )


class Choice(NamedTuple):
    """Chosen samples: the position of each one's utterance in a list, and its first frame; the
    first `training` are for training, the others for testing. frames: number of frames from which
    the training samples were chosen."""

    utterances: np.ndarray
    starts: np.ndarray
    training: int
    frames: int


class Bad:
    """Problems of utterances: the first one stops the work, or all are left out and counted."""

    def __init__(self, skip: bool) -> None:
        self.skip = skip
        self.counts: Counter[str] = Counter()

    def report(self, kind: str, problems: dict[str, str]) -> None:
        """problems: {utterance or file: its problem}. Raises UserError unless skip is set."""
        if problems and not self.skip:
            where, reason = next(iter(problems.items()))
            others = f" (and {len(problems) - 1} more with: {kind})" if len(problems) > 1 else ""
            raise UserError(
                f"{where}: {reason}{others}. Repair or remove it, or set bad_utterances: skip in"
                " the data set's settings, which leaves out and counts such utterances"
            )
        for where, reason in problems.items():
            log.info("left out: %s: %s", where, reason)
        self.counts[kind] += len(problems)


def extract(
    folder: Path, utterances: list[Utterance], choice: Choice, recipe: Recipe, threads: int,
    bad: Bad,
) -> tuple[np.ndarray, set[str]]:  # fmt: skip
    """The chosen samples, (samples, features) float32, and the names of utterances with damaged
    audio; if any is damaged, the samples are incomplete."""
    count = len(choice.utterances)
    need = COPIES * 4 * count * recipe.splice * recipe.mel
    if need > available_memory():
        raise UserError(
            f"samples: {count} of {recipe.splice * recipe.mel} features need {size(need)} of"
            f" memory, {size(available_memory())} are free. Lower samples"
        )
    x = np.empty((count, recipe.splice, recipe.mel), np.float32)
    by_utterance = np.argsort(choice.utterances, kind="stable")
    bounds = np.searchsorted(choice.utterances[by_utterance], np.arange(len(utterances) + 1))
    window = np.arange(recipe.splice)

    def one(i: int) -> str | tuple[int, np.ndarray, np.ndarray]:
        """Fills in an utterance's samples. Returns its problem, or the number of frames used and
        the sums of their energies and of the squares of these."""
        try:
            audio = decoded(folder, utterances[i])
        except ValueError as error:
            return str(error)
        rows = by_utterance[bounds[i] : bounds[i + 1]]
        in_samples = choice.starts[rows, None] + window
        whole = recipe.normalise in ("utterance", "speaker")
        needed = np.arange(frame_count(len(audio))) if whole else np.unique(in_samples)
        energies = log_mel(audio, recipe.mel, needed).numpy()
        sums = len(energies), energies.sum(axis=0), np.square(energies).sum(axis=0)
        if recipe.normalise == "utterance":
            energies = standardised(energies, *sums)
        x[rows] = energies[np.searchsorted(needed, in_samples)]
        return sums

    speakers = np.array([u.speaker for u in utterances])
    needed = np.diff(bounds) > 0
    if recipe.normalise == "speaker":
        needed = np.isin(speakers, speakers[needed])
    jobs = np.flatnonzero(needed)
    # Threads: decoding and transforms release Python's lock, and threads leave no orphans.
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    damaged: set[str] = set()
    sums: dict[int, list[np.ndarray]] = {}
    try:
        results = progress(pool.map(one, jobs), len(jobs), "features of utterances")
        for i, result in zip(jobs, results, strict=True):
            if isinstance(result, str):
                bad.report("damaged", {str(folder / utterances[i].path): result})
                damaged.add(utterances[i].name)
            elif recipe.normalise == "speaker":
                before = sums.get(speakers[i], (0, 0, 0))
                sums[speakers[i]] = [a + b for a, b in zip(before, result, strict=True)]
    finally:
        pool.shutdown(cancel_futures=True)
    if not damaged:
        if recipe.normalise == "global":
            standardise_by_training(x, choice.training)
        for speaker, its_sums in sums.items():
            rows = np.flatnonzero(speakers[choice.utterances] == speaker)
            x[rows] = standardised(x[rows], *its_sums)
    return x.reshape(count, -1), damaged


def decoded(folder: Path, utterance: Utterance) -> np.ndarray:
    """The audio, (samples,) int16. Raises ValueError with the problem if it is damaged."""
    try:
        audio, _ = soundfile.read(folder / utterance.path, dtype="int16")
    except (soundfile.LibsndfileError, OSError) as error:
        raise ValueError(f"cannot be decoded ({error})") from error
    if len(audio) != utterance.samples:
        raise ValueError(
            f"is cut off: {len(audio)} of {utterance.samples} samples of audio can be read"
        )
    if utterance.md5 not in (NO_MD5, hashlib.md5(audio.astype("<i2").tobytes()).digest()):
        raise ValueError("is damaged: its audio has not the md5 that its header says")
    return audio


def standardised(
    energies: np.ndarray, count: int, total: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """With mean 0 and variance 1 over the `count` frames with these sums; a constant becomes 0."""
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return (energies - mean) / np.where(deviation > 0, deviation, 1.0)


def standardise_by_training(x: np.ndarray, training: int) -> None:
    """In place, by the first `training` samples of x (samples, splice, mel), a few at a time."""
    total = squares = 0.0
    for start in range(0, training, ROWS):
        rows = x[start : min(start + ROWS, training)].astype(np.float64)
        total, squares = total + rows.sum((0, 1)), squares + np.square(rows).sum((0, 1))
    for rows in np.split(x, range(ROWS, len(x), ROWS)):
        rows[:] = standardised(rows.astype(np.float64), training * x.shape[1], total, squares)
