"""LibriSpeech: frames of read English speech (Panayotov et al., 2015) as log-mel features.

The paper uses 50,000 frames of 768 values from the 100 hours of clean speech, "as in Hui & Belkin
2020", and its authors' scripts 41 classes. Neither describes their preprocessing. Ours: log-mel
energies of neighbouring frames side by side; labels are phones if the config names an alignment,
else the speaker identity.
"""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np

from ntkcond.datasets.samples import Samples
from ntkcond.datasets.source import Source
from ntkcond.datasets.speech import frames, phones
from ntkcond.datasets.speech.corpus import FOLDER, Utterance
from ntkcond.datasets.speech.extraction import Bad, Choice, Recipe, extract
from ntkcond.datasets.speech.log_mel import mel_filters
from ntkcond.run.digests import sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.run.progress import log

SOURCE = Source(
    title="LibriSpeech",
    corpus=True,
    options={"labels", "hold_out", "mirrors"},
    defaults={
        "subset": "train-clean-100",
        "features": 768,
        "mel": 48,
        "splice": 16,
        "normalise": "global",
        "bad_utterances": "refuse",
    },
)

HELD_OUT = 10  # one speaker, or utterance, in so many is for testing


def draw(corpus: Path, data_dir: Path, options: dict) -> Samples:
    """`samples` frames chosen uniformly from all that are not held out, and `hold_out` test frames
    from a tenth of the speakers (with phone labels) or of the utterances (without; at least one of
    each speaker's stays for training).

    corpus: the file of `ntkcond.steps.corpus`. options: samples, seed, threads and those of SOURCE.
    The number of threads changes nothing. Raises UserError if mel × splice is not `features`; for
    too few frames or too little memory; and, unless bad_utterances is "skip", for a bad utterance
    or line of labels.
    """
    recipe = Recipe(options["mel"], options["splice"], options["normalise"])
    if recipe.mel * recipe.splice != options["features"]:
        raise UserError(
            f"mel: {recipe.mel} × splice: {recipe.splice} makes {recipe.mel * recipe.splice}"
            f" features, not the {options['features']} of features. Change one of the three"
        )
    mel_filters(recipe.mel)  # raises UserError for too many
    folder = data_dir / FOLDER / options["subset"]
    bad = Bad(options["bad_utterances"] == "skip")
    utterances, description = read_corpus(corpus, folder, bad)
    labels = None
    if options["labels"]:
        labels = read_labels(options["labels"], utterances, folder, bad)
        utterances = [u for u in utterances if u.name in labels]
    starts = {u.name: start_count(u, recipe, labels) for u in utterances}
    short = {
        str(folder / u.path): f"has {frames.frame_count(u.samples)} frames, and a sample takes"
        f" {recipe.splice} (splice)"
        for u in utterances
        if starts[u.name] < 1
    }
    bad.report("too short for a sample", short)
    utterances = [u for u in utterances if starts[u.name] > 0]
    while True:
        held_out = hold_out(utterances, options, by_speaker=labels is not None)
        choice = choose(utterances, starts, held_out, options)
        if choice.training < 2:
            sources = " and ".join(map(str, filter(None, (folder, options["labels"]))))
            raise UserError(
                f"{sources}: {choice.training} samples are left; a kernel needs at least two."
                " Repair what is damaged"
            )
        x, damaged = extract(folder, utterances, choice, recipe, options["threads"], bad)
        if not damaged:
            break
        # Frames of other utterances replace theirs. This is rare, so all audio is read again.
        utterances = [u for u in utterances if u.name not in damaged]
    names = np.array([u.name for u in utterances])[choice.utterances]
    y = sample_labels(names, choice.starts + recipe.centre, labels)
    train, test = slice(choice.training), slice(choice.training, None)
    known = np.isin(y[test], y[train])
    kind = "test samples of a class that no training sample has"
    bad.counts[kind] += int((~known).sum())
    return Samples(
        x[train],
        y[train],
        x[test][known] if held_out.any() else None,
        y[test][known] if held_out.any() else None,
        {"utterance": names[train].astype("S"), "frame": choice.starts[train] + recipe.centre},
        {
            "source": f"LibriSpeech: {description}",
            "audio_sha256": audio_digest(utterances),
            "preprocessing": f"{choice.training} of {choice.frames} frames, uniformly at random"
            f" (seed {options['seed']}); {recipe}",
            "labels": label_words(options["labels"], recipe, len(np.unique(y[train]))),
            "test_split": split_words(held_out, by_speaker=labels is not None),
        },
        dict(+bad.counts),
    )


def read_corpus(corpus: Path, folder: Path, bad: Bad) -> tuple[list[Utterance], str]:
    """The good utterances of the corpus, in its order, and its description in words."""
    with read_hdf5(corpus) as file:
        paths, problems = (file[name].asstr()[:] for name in ("path", "problem"))
        samples, md5 = file["samples"][:], file["md5"][:]
        description = file.attrs["description"]
    mismatches = {str(folder / p): wrong for p, wrong in zip(paths, problems, strict=True) if wrong}
    bad.report("unlike the corpus", mismatches)
    return [
        Utterance(path, int(count), digest.tobytes())
        for path, count, digest, wrong in zip(paths, samples, md5, problems, strict=True)
        if not wrong
    ], description


def read_labels(
    path: Path, utterances: list[Utterance], folder: Path, bad: Bad
) -> dict[str, np.ndarray]:
    """Phone labels by utterance. An utterance with up to two labels more or fewer than frames is
    kept: surplus labels or frames are not used. With a larger difference it is bad."""
    frame_counts = {u.name: frames.frame_count(u.samples) for u in utterances}
    labels, others = phones.read(path, frame_counts)
    unknown = dict.fromkeys(others, f"has a line in {path}, and is not in {folder}")
    bad.report("labelled, but not in the corpus", unknown)
    unlabelled = [str(folder / u.path) for u in utterances if u.name not in labels]
    bad.report("without labels", dict.fromkeys(unlabelled, f"has no line in {path}"))
    surplus = {name: abs(len(labels[name]) - frame_counts[name]) for name in labels}
    other_length = {
        name: f"has {len(labels[name])} labels in {path} and {frame_counts[name]} frames of audio"
        for name in labels
        if surplus[name] > phones.TOLERANCE
    }
    bad.report("with labels of another length", other_length)
    inexact = sum(0 < count <= phones.TOLERANCE for count in surplus.values())
    log.info("%d utterances have one or two labels more or fewer than frames: not used", inexact)
    return {name: labels[name] for name in labels if name not in other_length}


def start_count(utterance: Utterance, recipe: Recipe, labels: dict[str, np.ndarray] | None) -> int:
    """Number of frames at which a sample may start: it fits, and its centre has a label."""
    fitting = frames.frame_count(utterance.samples) - recipe.splice + 1
    if labels is None:
        return fitting
    return min(fitting, len(labels[utterance.name]) - recipe.centre)


def hold_out(utterances: list[Utterance], options: dict, by_speaker: bool) -> np.ndarray:
    """Which utterances are for testing, (utterances,) bool."""
    held_out = np.zeros(len(utterances), bool)
    if not options["hold_out"]:
        return held_out
    speakers = np.array([u.speaker for u in utterances])
    everyone = np.unique(speakers)
    if by_speaker:
        if len(everyone) < 2:
            raise UserError("hold_out: all are of one speaker, none can be held out. Set it to 0")
        order = frames.shuffled([str(speaker) for speaker in everyone], options["seed"])
        return np.isin(speakers, everyone[order[: max(1, round(len(everyone) / HELD_OUT))]])
    left = Counter(speakers.tolist())
    for i in frames.shuffled([u.name for u in utterances], options["seed"]):
        if held_out.sum() >= max(1, round(len(utterances) / HELD_OUT)):
            break
        if left[utterances[i].speaker] > 1:
            left[utterances[i].speaker] -= 1
            held_out[i] = True
    if not held_out.any():
        raise UserError(
            "hold_out: no speaker has two utterances, one to train and one to test. Set it to 0"
        )
    return held_out


def choose(
    utterances: list[Utterance], starts: dict[str, int], held_out: np.ndarray, options: dict
) -> Choice:
    """Training samples and then test samples."""
    names = [u.name for u in utterances]
    counts = np.array([starts[name] for name in names], np.int64)
    chosen = []
    for key, part in ("samples", ~held_out), ("hold_out", held_out):
        available = int(counts[part].sum())
        wanted = available if options[key] == "all" else options[key] or 0
        if wanted > available:
            raise UserError(
                f"{key}: {wanted} frames requested, {available} available in {part.sum()}"
                " utterances. Lower it"
            )
        chosen.append(frames.choose(names, np.where(part, counts, 0), wanted, options["seed"]))
    (training, training_starts), (testing, testing_starts) = chosen
    return Choice(
        np.concatenate([training, testing]),
        np.concatenate([training_starts, testing_starts]),
        len(training),
        int(counts[~held_out].sum()),
    )


def sample_labels(
    names: np.ndarray, centres: np.ndarray, labels: dict[str, np.ndarray] | None
) -> np.ndarray:
    """Phone of the centre frame, or number of the speaker, (samples,) int64."""
    if labels is None:
        return np.array([int(name.partition("-")[0]) for name in names], np.int64)
    pairs = zip(names, centres, strict=True)
    return np.array([labels[name][centre] for name, centre in pairs], np.int64)


def audio_digest(utterances: list[Utterance]) -> str:
    """sha256 of names, lengths and md5 of the audio of all available utterances."""
    lines = "".join(f"{u.name} {u.samples} {u.md5.hex()}\n" for u in utterances)
    return hashlib.sha256(lines.encode()).hexdigest()


def label_words(path: Path | None, recipe: Recipe, classes: int) -> str:
    which = "speaker identity, by the corpus' numbers"
    if path is not None:
        which = (
            f"phones of {path.name} (sha256 {sha256_of(path)}), that of frame {recipe.centre} of a"
            f" sample's 0 to {recipe.splice - 1}"
        )
    return (
        f"{which}; {classes} classes. ntkcond's choice: the paper does not name its labels, its"
        " authors' scripts have 41 classes"
    )


def split_words(held_out: np.ndarray, by_speaker: bool) -> str:
    if not held_out.any():
        return "none"
    which = "of the speakers held out" if by_speaker else "held out"
    return f"frames of {int(held_out.sum())} of {len(held_out)} utterances, those {which}"
