"""LibriSpeech's samples: made another way, by Kaldi's own code; every kind of bad input."""

import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile
from test_speech import kaldi_fbank

from ntkcond.datasets.librispeech import draw
from ntkcond.datasets.samples import Samples
from ntkcond.datasets.speech.extraction import NORMALISE
from ntkcond.pipeline.schema import SCHEMA
from ntkcond.run.errors import UserError
from ntkcond.steps import corpus as corpus_step
from speech import SUBSET, voice, write_corpus

OPTIONS = {
    "subset": SUBSET, "samples": 60, "seed": 0, "hold_out": None, "features": 96, "mel": 24,
    "splice": 4, "normalise": "none", "labels": None, "bad_utterances": "refuse", "threads": 2,
}  # fmt: skip


def indexed(data_dir: Path, index: Path) -> None:
    """Writes what files the corpus has, without provenance."""
    arguments = corpus_step.OPTIONS.parse_args(
        [f"--subset={SUBSET}", f"--data-dir={data_dir}", f"--output={index}"]
    )
    arguments.record = None
    corpus_step.main(arguments)


def drawn(data_dir: Path, **options) -> Samples:
    """Through the files that the steps leave."""
    index = data_dir / "corpus.h5"
    indexed(data_dir, index)
    return draw(index, data_dir, {**OPTIONS, **options})


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_corpus(tmp_path)


def fbank_of(folder: Path, name: bytes) -> np.ndarray:
    speaker, chapter, _ = name.decode().split("-")
    audio, _ = soundfile.read(folder / speaker / chapter / f"{name.decode()}.flac", dtype="int16")
    return kaldi_fbank(audio, 24).astype(np.float64)


def spliced(energies: np.ndarray, centre: int) -> np.ndarray:
    return np.concatenate([energies[t] for t in range(centre - 2, centre + 2)])


@pytest.mark.parametrize("normalise", NORMALISE)
def test_samples_are_those_of_kaldis_energies(folder, tmp_path, normalise):
    samples = drawn(tmp_path, normalise=normalise, samples=200)
    everything = {name: fbank_of(folder, name) for name in set(samples.origin["utterance"])}
    if normalise == "speaker":
        for path in folder.rglob("*.flac"):  # its utterances without a sample count as well
            name = path.stem.encode()
            everything[name] = fbank_of(folder, name)

    def of_speaker(name: bytes) -> np.ndarray:
        speaker = name.partition(b"-")[0] + b"-"
        return np.concatenate([e for n, e in everything.items() if n.startswith(speaker)])

    origin = list(zip(samples.origin["utterance"], samples.origin["frame"], strict=True))
    expected = []
    for name, frame in origin:
        energies = everything[name]
        if normalise in ("utterance", "speaker"):
            population = energies if normalise == "utterance" else of_speaker(name)
            energies = (energies - population.mean(axis=0)) / population.std(axis=0)
        expected.append(spliced(energies, frame))
    expected = np.array(expected)
    if normalise == "global":
        population = expected.reshape(-1, 24)
        expected = ((population - population.mean(axis=0)) / population.std(axis=0)).reshape(
            expected.shape
        )
    assert len(set(origin)) == 200
    assert samples.x == pytest.approx(expected, abs=2e-3)
    assert samples.x.dtype == np.float32


@pytest.mark.parametrize("normalise", NORMALISE)
def test_the_number_of_threads_changes_no_bit(folder, tmp_path, normalise):
    one, three = (
        drawn(tmp_path, normalise=normalise, threads=threads, hold_out=20) for threads in (1, 3)
    )
    assert np.array_equal(one.x, three.x)
    assert np.array_equal(one.x_test, three.x_test)


def test_all_samples_are_all_frames_that_a_sample_may_start_at(folder, tmp_path):
    samples = drawn(tmp_path, samples="all")
    lengths = [len(soundfile.read(path)[0]) for path in folder.rglob("*.flac")]
    assert len(samples.x) == sum(1 + (n - 400) // 160 - 3 for n in lengths)


def test_who_speaks_is_the_label_without_an_alignment(folder, tmp_path):
    samples = drawn(tmp_path, samples=300)
    names = samples.origin["utterance"].astype(str)
    assert samples.y.tolist() == [int(name.split("-")[0]) for name in names]
    assert set(samples.y) == {10, 11, 12, 13}
    assert "speaker identity" in samples.about["labels"]
    assert "ntkcond's choice" in samples.about["labels"]
    assert "4 classes" in samples.about["labels"]


def test_utterances_are_held_out_of_speakers_who_have_others(folder, tmp_path):
    for path in (folder / "13/7").glob("13-7-000[12].flac"):
        path.unlink()  # of this speaker one is left
    seen = set()
    for seed in range(8):
        everything = drawn(tmp_path, seed=seed, hold_out=20, samples="all")
        training = set(everything.origin["utterance"])
        assert len(training) == 9  # of 10
        assert len(everything.x_test) == len(everything.y_test) == 20
        assert b"13-7-0000" in training
        assert set(everything.y) == {10, 11, 12, 13}
        held_out = {path.stem.encode() for path in folder.rglob("*.flac")} - training
        assert set(everything.y_test) == {int(name.split(b"-")[0]) for name in held_out}
        seen |= held_out
    assert len(seen) > 3


def phones_of(folder: Path, path: Path, **lines: list[int] | None) -> Path:
    """Labels of every utterance, one for each frame: 0, 1, … 5, 0, …; `lines` changes some."""
    text = []
    for file in sorted(folder.rglob("*.flac")):
        frames = 1 + (len(soundfile.read(file)[0]) - 400) // 160
        labels = lines.get(file.stem.replace("-", "_"), [i % 6 for i in range(frames)])
        if labels is not None:
            text.append(f"{file.stem} {' '.join(map(str, labels))}\n")
    path.write_text("".join(text))
    return path


def test_phones_are_those_of_the_centre_frame(folder, tmp_path):
    labels = phones_of(folder, tmp_path / "phones.txt")
    samples = drawn(tmp_path, labels=labels, samples=200, hold_out=30)
    assert samples.y.tolist() == (samples.origin["frame"] % 6).tolist()
    held_out = {"10", "11", "12", "13"} - {
        name.split("-")[0] for name in samples.origin["utterance"].astype(str)
    }
    assert len(held_out) == 1  # whole speakers
    assert "phones of phones.txt (sha256 " in samples.about["labels"]
    assert "6 classes" in samples.about["labels"]
    text = labels.read_text().replace(" ", "\t", 1).replace("\n", "\r\n")
    labels.write_text(text, "utf-8-sig")  # as other systems and spreadsheets write it
    again = drawn(tmp_path, labels=labels, samples=200, hold_out=30)
    assert np.array_equal(again.y, samples.y)
    assert "speakers held out" in samples.about["test_split"]


@pytest.mark.parametrize("difference", [-2, -1, 1, 2])
def test_two_labels_more_or_fewer_are_normal(folder, tmp_path, difference):
    """10-7-0000 has 8000 + 80 × 91 samples: 94 frames. Without its last labels, its last frames are
    no centre of a sample."""
    labels = phones_of(folder, tmp_path / "phones.txt", **{"10_7_0000": [7] * (94 + difference)})
    samples = drawn(tmp_path, labels=labels, samples="all")
    its = samples.origin["frame"][samples.origin["utterance"] == b"10-7-0000"]
    # a sample has two frames before its centre and one after
    assert sorted(its) == list(range(2, min(93, 94 + difference)))
    assert set(samples.y[samples.origin["utterance"] == b"10-7-0000"]) == {7}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(place: int | None):
    """A byte of this place, or in the middle."""

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 2 if place is None else place] ^= 0xFF
        path.write_bytes(content)

    return flip


def replaced(samples: int):
    return lambda path: soundfile.write(path, voice(samples, seed=5), 16_000)


def of_length(samples: int):
    def write(path: Path) -> None:
        content = bytearray(path.read_bytes())
        packed = int.from_bytes(content[18:26], "big") >> 36 << 36 | samples
        content[18:26] = packed.to_bytes(8, "big")
        path.write_bytes(content)

    return write


def twice(path: Path) -> None:
    copy = path.parents[2] / "copy" / "11" / "7" / path.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())


BAD = {  # of those that test_speech has, one
    "truncated": (cut, "damaged", "11-7-0001.flac: "),
    "a byte flipped": (flipped(None), "damaged", "11-7-0001.flac: "),
    "another checksum": (flipped(26), "damaged", "its audio has not the md5 that its header"),
    "empty": (lambda path: path.write_bytes(b""), "unlike the corpus", "11-7-0001.flac: is empty"),
    "too short": (replaced(879), "too short for a sample", "has 3 frames, and a sample takes 4"),
    "shorter than a frame": (replaced(99), "too short for a sample", "has 0 frames, and a sample"),
    "upper case": (lambda path: path.rename(path.with_suffix(".FLAC")), "unlike the corpus",
                   "11-7-0001.FLAC: is not named like the corpus"),
    "a broken length": (of_length(2**33), "unlike the corpus", "8589934592 samples of audio, more"),
    "there twice": (twice, "unlike the corpus", "is there twice, also as 11/7/11-7-0001.flac"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "kind", "message"), BAD.values(), ids=BAD)
def test_bad_utterances_are_refused_by_name_or_skipped_and_counted(
    folder, tmp_path, caplog, spoil, kind, message
):
    caplog.set_level(logging.INFO)
    spoil(folder / "11/7/11-7-0001.flac")
    with pytest.raises(UserError) as caught:
        drawn(tmp_path, samples=500)
    assert all(words in str(caught.value) for words in (str(folder), message))
    assert "bad_utterances: skip" in str(caught.value)
    samples = drawn(tmp_path, samples=500, bad_utterances="skip")
    assert samples.left_out == {kind: 1}
    assert message in caplog.text
    assert len(samples.x) == 500
    assert spoil == twice or b"11-7-0001" not in samples.origin["utterance"]
    assert np.isfinite(samples.x).all()


def test_frames_of_others_take_the_place_of_those_of_a_damaged_utterance(folder, tmp_path):
    cut(folder / "11/7/11-7-0001.flac")
    skipped = drawn(tmp_path, bad_utterances="skip")
    (folder / "11/7/11-7-0001.flac").unlink()
    without = drawn(tmp_path)
    assert np.array_equal(skipped.x, without.x)
    assert np.array_equal(skipped.origin["frame"], without.origin["frame"])


BAD_LABELS = {
    "three too few": ({"10_7_0000": [1] * 91}, "with labels of another length",
                      "10-7-0000: has 91 labels in"),
    "three too many": ({"10_7_0000": [1] * 97}, "with labels of another length",
                       "97 labels in"),
    "none": ({"10_7_0000": None}, "without labels", "10-7-0000.flac: has no line in"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "kind", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels_are_refused_by_name_or_skipped_and_counted(
    folder, tmp_path, lines, kind, message
):
    labels = phones_of(folder, tmp_path / "phones.txt", **lines)
    with pytest.raises(UserError, match=message) as caught:
        drawn(tmp_path, labels=labels)
    assert str(labels) in str(caught.value)
    samples = drawn(tmp_path, labels=labels, bad_utterances="skip")
    assert samples.left_out == {kind: 1}
    assert b"10-7-0000" not in samples.origin["utterance"]


def test_labels_of_an_unknown_utterance_are_refused_or_skipped_and_counted(folder, tmp_path):
    labels = phones_of(folder, tmp_path / "phones.txt")
    labels.write_text(labels.read_text() + "99-7-0000 1 2 3\n99-7-0001 1 2 3\n")
    with pytest.raises(UserError, match=r"99-7-0000: has a line in .*phones\.txt, and is not in"):
        drawn(tmp_path, labels=labels)
    with pytest.raises(UserError, match="and 1 more with: labelled, but not in the corpus"):
        drawn(tmp_path, labels=labels)
    samples = drawn(tmp_path, labels=labels, bad_utterances="skip")
    assert samples.left_out == {"labelled, but not in the corpus": 2}


def test_test_samples_of_a_class_that_training_has_not_are_left_out_and_counted(folder, tmp_path):
    labels = phones_of(folder, tmp_path / "phones.txt", **{"10_7_0000": [40] * 94})
    for seed in range(20):  # until that speaker is held out
        samples = drawn(tmp_path, labels=labels, hold_out=150, samples=300, seed=seed)
        counts = samples.left_out
        if counts:
            break
    assert counts == {
        "test samples of a class that no training sample has": 150 - len(samples.x_test)
    }
    assert 40 not in samples.y_test


@pytest.mark.parametrize(
    ("options", "message"),
    [({"mel": 20}, "mel: 20 × splice: 4 makes 80 features, not the 96 of features"),
     ({"samples": 10**6}, "samples: 1000000 frames requested, 1086 available in 12 utterances"),
     ({"hold_out": 5000}, "hold_out: 5000 frames requested, 90 available in 1 utterances")],
)  # fmt: skip
def test_wrong_settings_are_refused(folder, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        drawn(tmp_path, **options)


def test_a_corpus_of_which_nothing_is_left_is_refused(folder, tmp_path):
    labels = tmp_path / "phones.txt"
    labels.write_text("", "utf-8")
    with pytest.raises(UserError, match=r"phones\.txt: 0 samples are left"):
        drawn(tmp_path, samples="all", labels=labels, bad_utterances="skip")


def test_nothing_can_be_held_out_of_single_utterances_or_of_one_speaker(tmp_path):
    few, one = tmp_path / "few", tmp_path / "one"
    write_corpus(few, utterances=1)
    with pytest.raises(UserError, match="no speaker has two utterances"):
        drawn(few, hold_out=10)
    labels = phones_of(write_corpus(one, speakers=1), tmp_path / "phones.txt")
    with pytest.raises(UserError, match="all are of one speaker"):
        drawn(one, hold_out=10, labels=labels)


def test_too_little_memory_is_said_before_the_work(folder, tmp_path, monkeypatch):
    from ntkcond.datasets.speech import extraction

    monkeypatch.setattr(extraction, "available_memory", lambda: 1000)
    with pytest.raises(UserError, match=r"samples: 60 of 96 features need .* Lower samples"):
        drawn(tmp_path)


def test_the_part_of_a_corpus_that_is_there_is_stated(folder, tmp_path, caplog):
    samples = drawn(tmp_path)
    said = "12 of the 28,539 utterances of train-clean-100, 4 of 251 speakers, 0.00 of 100.6 h"
    assert said in samples.about["source"]
    assert said in caplog.text


def test_the_schema_knows_the_ways_to_normalise():
    schema = SCHEMA["properties"]["datasets"]["additionalProperties"]["properties"]
    assert list(schema["normalise"]["enum"]) == list(NORMALISE)


def test_real_utterances_with_their_phone_labels(real_data, tmp_path):
    """Two of the six labelled utterances are among the real ones at hand."""
    alignments = real_data / "LibriSpeech/alignments/cpc_phone_labels_sample.txt"
    index = tmp_path / "corpus.h5"
    indexed(real_data, index)
    options = {**OPTIONS, "features": 768, "mel": 48, "splice": 16, "samples": "all"}
    samples = draw(index, real_data, {**options, "labels": alignments, "bad_utterances": "skip"})
    assert len(samples.x) == 1119 - 15 + 508 - 15
    assert set(samples.origin["utterance"]) == {b"4051-11218-0044", b"2911-12359-0007"}
    lines = dict(line.split(" ", 1) for line in alignments.read_text().splitlines())
    for name, frame, y in zip(*samples.origin.values(), samples.y, strict=True):
        assert y == int(lines[name.decode()].split()[frame])
    assert samples.left_out == {"labelled, but not in the corpus": 4, "without labels": 211}
