"""Speech: files of a corpus, frames chosen, log-mel energies against Kaldi's, phone labels."""

import os
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import pytest
import soundfile

from ntkcond.datasets.speech import corpus, frames, phones
from ntkcond.datasets.speech.log_mel import log_mel, mel_filters
from ntkcond.run.errors import UserError
from speech import voice, write_corpus


def kaldi_fbank(audio: np.ndarray, filters: int) -> np.ndarray:
    """What Kaldi's own code makes of it, in float32: (frames, filters)."""
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = filters
    options.energy_floor = 0
    fbank = kaldi_native_fbank.OnlineFbank(options)
    fbank.accept_waveform(16_000, audio.astype(np.float32).tolist())
    fbank.input_finished()
    return np.array([fbank.get_frame(i) for i in range(fbank.num_frames_ready)])


@pytest.mark.parametrize(("samples", "filters"), [(400, 48), (559, 23), (560, 80), (16_123, 48)])
def test_energies_are_kaldis(samples, filters):
    audio = voice(samples, seed=samples)
    ours = log_mel(audio, filters, np.arange(frames.frame_count(samples))).numpy()
    assert ours == pytest.approx(kaldi_fbank(audio, filters), abs=5e-4)


def test_energies_are_kaldis_on_real_speech(real_data):
    """Its float32 differs most where there is next to no sound in a filter. Of every eighth file;
    NTKCOND_TEST_EVERY=1: of all."""
    every = int(os.environ.get("NTKCOND_TEST_EVERY", "8"))
    files = sorted((real_data / "LibriSpeech").rglob("*.flac"))[::every]
    assert len(files) > 20
    largest, count = [], 0
    for path in files:
        audio, _ = soundfile.read(path, dtype="int16")
        ours = log_mel(audio, 48, np.arange(frames.frame_count(len(audio)))).numpy()
        largest.append(np.abs(ours - kaldi_fbank(audio, 48)).max())
        count += len(ours)
    print(f"{len(files)} files, {count} frames: largest difference {max(largest):.3g},", end=" ")
    print(f"in the median file {np.median(largest):.3g}")
    assert max(largest) < 0.01
    assert np.median(largest) < 5e-4


def test_silence_has_the_energy_of_the_floor():
    silence = log_mel(np.zeros(400, np.int16), 48, np.arange(1)).numpy()
    assert silence == pytest.approx(kaldi_fbank(np.zeros(400), 48), abs=1e-6)
    assert silence == pytest.approx(np.log(2.0**-23))


def test_a_frame_does_not_depend_on_the_others_asked_for():
    audio = voice(16_000, seed=1)
    everything = log_mel(audio, 48, np.arange(98))
    some = np.array([0, 5, 6, 97])
    assert log_mel(audio, 48, some).numpy() == pytest.approx(everything[some].numpy(), rel=1e-13)


def test_filters_that_hold_no_frequency_are_refused():
    assert mel_filters(48).shape == (257, 48)
    with pytest.raises(UserError, match=r"mel: of 128 filters \d+ are too narrow"):
        mel_filters(128)


def test_frames_are_those_that_the_published_labels_count():
    assert [frames.frame_count(n) for n in (0, 399, 400, 559, 560)] == [0, 0, 1, 1, 2]
    # 4051-11218-0044 and 2911-12359-0007 of CPC's alignments
    assert (frames.frame_count(179_360), frames.frame_count(81_520)) == (1119, 508)


NAMES = [f"{speaker}-1-{number:04d}" for speaker in range(7) for number in range(30)]
COUNTS = [50 + 3 * (i % 40) for i in range(len(NAMES))]


def chosen(names: list[str], counts: list[int], count: int, seed: int = 0) -> list[tuple[str, int]]:
    utterances, places = frames.choose(names, counts, count, seed)
    return [(names[u], int(place)) for u, place in zip(utterances, places, strict=True)]


def test_the_choice_is_the_same_everywhere():
    """Philox and SeedSequence keep their streams; these were drawn once."""
    assert chosen(NAMES[:3], [100, 100, 100], 4) == DRAWN


DRAWN = [("0-1-0001", 73), ("0-1-0002", 13), ("0-1-0002", 80), ("0-1-0002", 1)]


def test_no_frame_is_chosen_twice_and_fewer_are_the_first_of_more():
    everything = chosen(NAMES, COUNTS, sum(COUNTS))
    assert sorted(everything) == sorted(
        (name, i) for name, count in zip(NAMES, COUNTS, strict=True) for i in range(count)
    )
    assert chosen(NAMES, COUNTS, 1000) == everything[:1000]
    assert chosen(NAMES, COUNTS, 1000, seed=1) != everything[:1000]


def test_the_choice_does_not_depend_on_how_candidates_are_sorted_in(monkeypatch):
    at_once = chosen(NAMES, COUNTS, 500)
    monkeypatch.setattr(frames, "PENDING", 100)
    assert chosen(NAMES, COUNTS, 500) == at_once


def test_of_a_corpus_that_lacks_files_the_same_frames_are_chosen():
    everything = chosen(NAMES, COUNTS, sum(COUNTS))
    present = [i for i in range(len(NAMES)) if i % 3]
    names = [NAMES[i] for i in present]
    part = chosen(names, [COUNTS[i] for i in present], 800)
    assert part == [(name, i) for name, i in everything if name in set(names)][:800]


def test_every_frame_is_as_likely():
    """χ² over 210 utterances of equal length, 20 seeds: mean 209, standard deviation 20.4."""
    counts = [400] * len(NAMES)
    for position, bins in ((0, len(NAMES)), (1, 400)):
        total = np.zeros(bins)
        for seed in range(20):
            total += np.bincount(frames.choose(NAMES, counts, 2000, seed)[position], minlength=bins)
        expected = 20 * 2000 / bins
        chi2 = ((total - expected) ** 2 / expected).sum()
        assert abs(chi2 - (bins - 1)) < 5 * np.sqrt(2 * (bins - 1))


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_corpus(tmp_path)


def test_headers_say_what_soundfile_says(folder):
    utterance = corpus.read_utterance(folder, "12/7/12-7-0001.flac")
    assert (utterance.name, utterance.speaker) == ("12-7-0001", 12)
    import hashlib

    for entry in corpus.files_in(folder):
        header = corpus.read_header(entry.path)
        known = soundfile.info(entry.path)
        assert (header.rate, header.channels, header.samples, header.bits) == (
            known.samplerate, known.channels, known.frames, 16,
        )  # fmt: skip
        audio, _ = soundfile.read(entry.path, dtype="int16")
        assert header.md5 == hashlib.md5(audio.astype("<i2").tobytes()).digest()


def test_files_come_in_the_corpus_own_order():
    paths = ["26/496/26-496-0010.flac", "103/1/103-1-0000.flac", "26/95/26-95-0001.flac", "x.flac"]
    assert sorted(paths, key=corpus.in_order) == [paths[2], paths[0], paths[1], paths[3]]


# 16 kHz, one channel, 16 bits, 0 samples
UNKNOWN_LENGTH = (
    b"fLaC\x80\0\0\x22" + bytes(10) + (16_000 << 44 | 15 << 36).to_bytes(8, "big") + bytes(16)
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("10-7-0009.flac", b"", "is empty"),
        ("10-7-0009.flac", b"RIFF" + bytes(100), "is not a FLAC file"),
        ("10-7-0009.flac", b"fLaC\0\0\0\x22", "is not a FLAC file"),
        ("10-7-0009.flac", {"samplerate": 8000}, "has 8000 Hz; the corpus has 16000"),
        ("10-7-0009.flac", {"data": np.zeros((800, 2), np.int16)}, "has 2 channels"),
        ("10-7-0009.flac", {"subtype": "PCM_24"}, "has 24 bits a sample"),
        ("10-7-0009.flac", UNKNOWN_LENGTH, "has no audio, or does not say how much"),
        ("10-8-0000.flac", {}, "is not in the folder 10/8 of its speaker and chapter"),
        ("song.flac", {}, "is not named like the corpus"),
    ],
)
def test_a_file_unlike_the_corpus_is_told(folder, name, content, message):
    path = f"10/7/{name}"
    if isinstance(content, bytes):
        (folder / path).write_bytes(content)
    else:
        arguments = {"data": voice(800, 0), "samplerate": 16_000, "subtype": "PCM_16", **content}
        soundfile.write(folder / path, **arguments)
    with pytest.raises(ValueError, match=message):
        corpus.read_utterance(folder, path)


def test_the_state_of_a_corpus_is_its_files(folder):
    before = corpus.state(folder)
    for entry in corpus.files_in(folder):
        os.utime(entry.path)
    (folder / "10/7/10-7.trans.txt").write_text("A TRANSCRIPT")
    (folder / "10/7/._10-7-0000.flac").write_text("left by another system")
    assert corpus.state(folder) == before
    moved = folder / "10/7/10-7-0000.flac"
    content = moved.read_bytes()
    moved.write_bytes(content[:-1])
    assert corpus.state(folder) != before
    moved.write_bytes(content)
    assert corpus.state(folder) == before
    moved.write_bytes(content[:30] + bytes(4) + content[34:])  # another md5, the same size
    assert corpus.state(folder) != before
    moved.unlink()
    assert corpus.state(folder) != before


def test_a_corpus_as_published_is_known_by_the_note_of_its_download(folder):
    assert corpus.state(folder / "absent") == "as published"
    (folder / corpus.AS_PUBLISHED).write_text(corpus.contents(folder))
    assert corpus.state(folder) == "as published"
    (folder / "10/7/10-7-0000.flac").unlink()
    assert corpus.state(folder) != "as published"


def test_a_folder_without_flac_is_refused(tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path}: no FLAC file in it. Put the corpus there"):
        corpus.state(tmp_path)


def test_what_cannot_be_read_of_a_corpus_is_named(folder):
    gone = folder / "10/7/10-7-0009.flac"
    gone.symlink_to("nowhere.flac")
    with pytest.raises(UserError, match=r"10-7-0009\.flac: cannot be read \(No such file"):
        corpus.state(folder)
    gone.unlink()
    (folder / "10/7/round").symlink_to(folder / "10/7/round")
    with pytest.raises(UserError, match=r"7/round: cannot be read \(Too many levels of symbolic"):
        corpus.state(folder)
    link = folder.with_name("elsewhere")
    link.symlink_to("not-mounted")
    with pytest.raises(UserError, match="elsewhere: is no folder, or a link to one that is not"):
        corpus.state(link)


def test_labels_of_the_wanted_are_read(tmp_path):
    path = tmp_path / "phones.txt"
    path.write_text("19-1-0000 0 0 35\n26-1-0000 3 40\n\n27-1-0000 7\n")
    labels, others = phones.read(path, {"19-1-0000", "27-1-0000", "30-1-0000"})
    assert {name: values.tolist() for name, values in labels.items()} == {
        "19-1-0000": [0, 0, 35],
        "27-1-0000": [7],
    }
    assert others == ["26-1-0000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1\nb 2\na 3\n", "line 3: a has a line already, 1. Delete one"),
        ("a 1\nb 2 x 3\n", "line 2: 'x' is no label; labels are whole numbers"),
        ("a 1.5\n", "line 1: '1.5' is no label"),
        ("a 1 -2\n", "line 1: -2 is no label; labels are whole numbers from 0 on"),
        ("a 99999999999\n", "line 1: '99999999999' is no label"),
        (b"\xff\xfe\x00", "cannot be read as text"),
        (None, "no such file. Correct the data set's labels"),
    ],
)
def test_bad_labels_are_refused_by_file_and_line(tmp_path, text, message):
    path = tmp_path / "phones.txt"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as caught:
        phones.read(path, {"a", "b"})
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
