"""Raw files at large, damaged at random: each is read whole or refused in one line that names it,
and nothing else is written.

`pytest --thorough` damages 400 of each format.
"""

import argparse
import gzip
import hashlib
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from test_librispeech import phones_of

from ntkcond.datasets.speech.corpus import FOLDER
from ntkcond.datasets.torchvision_data import datasets
from ntkcond.run.errors import UserError
from ntkcond.steps import corpus as corpus_step
from ntkcond.steps import dataset as dataset_step
from speech import SUBSET, write_corpus
from thoroughness import how_many

FILES = how_many("FILES", few=15, thorough=400)
X = np.arange(60.0).reshape(12, 5)
Y = np.arange(12) % 3
ALPHABET = np.frombuffer(b" \n\t-+.,0123456789abcLx(){}[]'", np.uint8)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, added, removed or cut off, most near the beginning; or noise."""
    if rng.random() < 0.03:
        return rng.bytes(rng.integers(300))
    data, kind = bytearray(content), rng.integers(7)
    near = (len(data), 128, 400, 4000)[rng.integers(4)]
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not data:
            break
        i = int(rng.integers(min(near, len(data))))
        some = int(rng.integers(1, 9))
        extreme = (b"\0" * 4, b"\xff" * 4, b"\0\0\0\x80")[rng.integers(3)]
        match kind:
            case 0:
                del data[i:]
            case 1:
                del data[i : i + some]
            case 2:
                data[i] ^= 1 << int(rng.integers(8))
            case 3:
                data[i : i + 8] = rng.bytes(8)
            case 4:
                data[i : i + 4] = extreme
            case 5:
                data[i : i + 1] = rng.choice(ALPHABET, 1).tobytes()
            case 6:
                data[i:i] = rng.choice(ALPHABET, some).tobytes()
    return bytes(data)


def of_npy(folder: Path) -> dict:
    np.save(folder / "mine.npy", X)
    return {"source": "custom", "file": folder / "mine.npy"}


def of_npz(folder: Path) -> dict:
    np.savez_compressed(folder / "mine.npz", x=X.astype(">f4"), y=Y)
    return {"source": "custom", "file": folder / "mine.npz", "hold_out": 3}


def of_hdf5(folder: Path, libver: str = "earliest", **options) -> dict:
    with h5py.File(folder / "mine.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=X, **options)
        file["y"] = Y
    return {"source": "custom", "file": folder / "mine.h5", "unit_norm": True}


def of_mnist(folder: Path) -> dict:
    raw = folder / "MNIST/raw"
    raw.mkdir(parents=True)
    for name, _ in datasets.MNIST.resources:
        count = 7 if name.startswith("train") else 3
        shape = (count, 28, 28) if "images" in name else (count,)
        header = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
        (raw / name).write_bytes(
            gzip.compress(header + np.ones(shape, np.uint8).tobytes(), mtime=0)
        )
    return {"source": "mnist", "scale": (-1, 1)}


def of_svhn(folder: Path) -> dict:
    (folder / "SVHN").mkdir()
    for split, count in (("train", 7), ("test", 3)):
        arrays = {"X": np.ones((32, 32, 3, count), np.uint8), "y": np.ones((count, 1), np.uint8)}
        scipy.io.savemat(folder / "SVHN" / f"{split}_32x32.mat", arrays)
    return {"source": "svhn"}


def of_speech(folder: Path, **options) -> dict:
    write_corpus(folder, speakers=2, utterances=2)
    recipe = {"subset": SUBSET, "mel": 12, "splice": 2, "features": 24, "normalise": "speaker"}
    return {"source": "librispeech", "bad_utterances": "refuse", **recipe, **options}


def of_phones(folder: Path) -> dict:
    options = of_speech(folder, bad_utterances="skip")
    return {**options, "labels": phones_of(folder / FOLDER / SUBSET, folder / "phones.txt")}


PACKED = {"libver": "latest", "chunks": (4, 5), "maxshape": (None, 5), "compression": "gzip"}
SKIPPING = {"bad_utterances": "skip", "normalise": "global", "hold_out": 5}
FORMATS: dict[str, Callable[[Path], dict]] = {
    "npy": of_npy, "npz": of_npz, "hdf5": of_hdf5, "newer hdf5": partial(of_hdf5, **PACKED),
    "gzip idx": of_mnist, "mat": of_svhn, "FLAC": of_speech,
    "FLAC, skipped": partial(of_speech, **SKIPPING), "phone labels": of_phones,
}  # fmt: skip


def publish(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    """The md5 of the files in data_dir count as the published ones."""
    md5 = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in data_dir.rglob("*.*")}
    images = [(name, md5.get(name, known)) for name, known in datasets.MNIST.resources]
    monkeypatch.setattr(datasets.MNIST, "resources", images)
    digits = {
        split: [url, name, md5.get(name, known)]
        for split, (url, name, known) in datasets.SVHN.split_list.items()
    }
    monkeypatch.setattr(datasets.SVHN, "split_list", digits)


def make(options: dict, data_dir: Path, output: Path) -> None:
    """What Snakemake's jobs do."""
    arguments = dict.fromkeys(
        ("scale", "unit_norm", "distinct", "features", "hold_out", "file", "corpus", "labels",
         "subset", "mel", "splice", "normalise", "bad_utterances", "record")
    )  # fmt: skip
    arguments |= {"samples": "all", "seed": 0, "threads": 1, "data_dir": data_dir, **options}
    if options["source"] == "librispeech":
        arguments["corpus"] = output.with_name("corpus.h5")
        words = [f"--subset={SUBSET}", f"--data-dir={data_dir}", f"--output={arguments['corpus']}"]
        indexing = corpus_step.OPTIONS.parse_args(words)
        indexing.record = None
        corpus_step.main(indexing)
    dataset_step.main(argparse.Namespace(output=output, **arguments))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_damaged_file_is_read_or_refused_by_name(kind, tmp_path, monkeypatch):
    data, results, temporary = (tmp_path / name for name in ("data", "results", "temporary"))
    for folder in (data, results, temporary):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    options, output = FORMATS[kind](data), results / "samples.h5"
    publish(monkeypatch, data)
    whole = contents(data)
    make(options, data, output)
    targets = [options["labels"]] if "labels" in options else sorted(whole)
    refused = 0
    for case in range(FILES):
        output.unlink(missing_ok=True)
        rng = np.random.default_rng(case)
        chosen = targets if rng.random() < 0.1 else [targets[rng.integers(len(targets))]]
        for path in chosen:
            path.write_bytes(damaged(whole[path], rng))
        before = contents(data)
        try:
            make(options, data, output)
        except UserError as error:
            message = str(error)
            assert message.isprintable(), f"case {case}: {message!r} is more than a line"
            named = any(path.name in message for path in chosen)
            # what is left may be too little for a setting
            named |= message.partition(":")[0] in {"samples", *options}
            assert named, f"case {case}: {message}"
            assert not output.exists()
            refused += 1
        else:
            with h5py.File(output) as file:
                assert np.isfinite(file["x"][:]).all()
        assert contents(data) == before
        assert {path.name for path in results.iterdir()} <= {"samples.h5", "corpus.h5"}
        assert not list(temporary.iterdir())
        for path in chosen:
            path.write_bytes(whole[path])
    print(f"{kind}: {refused} of {FILES} refused")
    assert refused
