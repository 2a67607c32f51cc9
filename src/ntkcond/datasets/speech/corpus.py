"""A corpus on the disk: {folder}/{speaker}/{chapter}/{speaker}-{chapter}-{number}.flac.

Read by the Snakefile at every start: standard library only.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ntkcond.run.errors import UserError

FOLDER = "LibriSpeech"  # below data_dir, as its archives and torchaudio have it
SAMPLE_RATE = 16_000  # Hz
LONGEST = 3600 * SAMPLE_RATE  # of a published utterance: 35 s
HEADER = 42  # bytes of a FLAC file that hold the fields of `Header`
# Our download writes this note: the `contents` of the folder that it unpacked.
AS_PUBLISHED = ".as_published"

_NAME = re.compile(r"(\d+)-(\d+)-(\d+)\.flac")


class Header(NamedTuple):
    """The header of a FLAC file. samples: of audio in all; md5: of the audio, 16 zero bytes if its
    writer omitted it."""

    rate: int
    channels: int
    bits: int
    samples: int
    md5: bytes


class Utterance(NamedTuple):
    """One file. path: below the subset's folder; samples: of audio, at 16 kHz."""

    path: str
    samples: int
    md5: bytes

    @property
    def name(self) -> str:
        """Such as 19-198-0000."""
        return Path(self.path).stem

    @property
    def speaker(self) -> int:
        return int(self.name.partition("-")[0])


def files_in(folder: Path) -> Iterator[os.DirEntry]:
    """Every FLAC file below a folder but hidden ones, in no order. Raises OSError for a folder that
    cannot be read."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from files_in(Path(entry.path))
            elif entry.name.lower().endswith(".flac"):
                yield entry


def state(folder: Path) -> str:
    """The state of a subset's folder, on which all results from it depend.

    "as published" if the folder is missing, since it is then downloaded and checked, or if it is
    unchanged since a download; else its `contents`. Raises UserError for a folder without FLAC
    files, one that cannot be read, and for something that is no folder.
    """
    if not folder.exists() and not folder.is_symlink():
        return "as published"
    if not folder.is_dir():
        raise UserError(
            f"{folder}: is no folder, or a link to one that is not. Correct or remove it"
        )
    try:
        current, note = contents(folder), folder / AS_PUBLISHED
        return "as published" if note.is_file() and note.read_text("utf-8") == current else current
    except OSError as error:
        raise UserError(
            f"{error.filename or folder}: cannot be read ({error.strerror}). Correct or remove it"
        ) from error


def contents(folder: Path) -> str:
    """Number of FLAC files, and a digest of their names, sizes and headers with the md5 of the
    audio. Dates do not count. Raises UserError for a folder without any, OSError."""
    digest, count = hashlib.sha256(), 0
    for file in sorted(files_in(folder), key=lambda entry: entry.path):
        with Path(file.path).open("rb", buffering=0) as opened:
            start, size = opened.read(HEADER), os.fstat(opened.fileno()).st_size
        digest.update(os.fsencode(os.path.relpath(file.path, folder)))
        digest.update(f"\0{size}\0".encode() + start)
        count += 1
    if not count:
        raise UserError(
            f"{folder}: no FLAC file in it. Put the corpus there, or delete the folder: snakemake"
            " then downloads the corpus"
        )
    return f"{count:,} files, {digest.hexdigest()}"


def read_header(path: Path | str) -> Header:
    """From the first 42 bytes (RFC 9639, sections 6 to 8.2). soundfile does not give the md5.

    Raises ValueError with the problem for a file that is not FLAC.
    """
    with Path(path).open("rb", buffering=0) as file:
        start = file.read(HEADER)
    if not start:
        raise ValueError("is empty")
    # every file begins with a stream information block of 34 bytes
    if len(start) < HEADER or start[:4] != b"fLaC" or start[4] & 0x7F or start[5:8] != b"\0\0\x22":
        raise ValueError("is not a FLAC file")
    packed = int.from_bytes(start[18:26], "big")  # 20, 3, 5 and 36 bits
    return Header(
        rate=packed >> 44,
        channels=(packed >> 41 & 0b111) + 1,
        bits=(packed >> 36 & 0b11111) + 1,
        samples=packed & (1 << 36) - 1,
        md5=start[26:],
    )


def read_utterance(folder: Path, path: str) -> Utterance:
    """The utterance at folder/path, from its header. Raises ValueError with the problem for a file
    with another name, rate, number of channels or resolution than the corpus."""
    name = _NAME.fullmatch(Path(path).name)
    if not name:
        raise ValueError("is not named like the corpus: speaker-chapter-number.flac")
    if Path(path).parent.parts[-2:] != name.groups()[:2]:
        raise ValueError(f"is not in the folder {name[1]}/{name[2]} of its speaker and chapter")
    header = read_header(folder / path)
    if header.rate != SAMPLE_RATE:
        raise ValueError(f"has {header.rate} Hz; the corpus has {SAMPLE_RATE}")
    if header.channels != 1:
        raise ValueError(f"has {header.channels} channels; the corpus has 1")
    if header.bits != 16:
        raise ValueError(f"has {header.bits} bits a sample; the corpus has 16")
    if not header.samples:
        raise ValueError("has no audio, or does not say how much")
    if header.samples > LONGEST:
        raise ValueError(f"says that it has {header.samples} samples of audio, more than an hour")
    return Utterance(path, header.samples, header.md5)


def in_order(path: str) -> tuple:
    """The order of the corpus: by speaker, chapter and number; files with other names come last."""
    name = _NAME.fullmatch(Path(path).name)
    return (0, *map(int, name.groups()), path) if name else (1, path)
