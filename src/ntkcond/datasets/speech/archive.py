"""A LibriSpeech subset from its published archive: downloaded, checked, unpacked."""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import requests
import urllib3

from ntkcond.datasets.speech.corpus import AS_PUBLISHED, FOLDER, contents, files_in
from ntkcond.datasets.speech.subsets import MIRRORS, SUBSETS, Subset
from ntkcond.run.errors import UserError
from ntkcond.run.files import explained, require_space
from ntkcond.run.progress import progress
from ntkcond.run.units import size

TIMEOUT_S = 30
PIECE = 1 << 20
UNPACKED = 1.05  # bytes on the disk per byte of the archive, which hardly compresses FLAC
HINT = "Free some space, or set data_dir to a larger disk"
FULL_DISK = "Downloaded bytes are kept. Free some space and run again, or move data_dir"

log = logging.getLogger("ntkcond")


def obtain(subset: str, data_dir: Path, mirrors: list[str] | None = None) -> None:
    """Creates data_dir/LibriSpeech/{subset}, from {subset}.tar.gz in data_dir or in its LibriSpeech
    folder, or from a mirror; an existing folder stays unchanged.

    An interrupted download resumes. The folder gets its name only when it is complete. Waits while
    another process does the same. Raises UserError for an unknown subset, a full disk, a failed
    download, an archive that is not the published one or has a path that leaves its folder.
    """
    home = data_dir / FOLDER
    if (home / subset).is_dir():
        return
    if subset not in SUBSETS:
        raise UserError(
            f"{home / subset}: no such folder, and LibriSpeech publishes no subset {subset}."
            f" Available: {', '.join(SUBSETS)}"
        )
    with _alone(home / f".{subset}.lock"):
        if (home / subset).is_dir():  # by now
            return
        _clear(home, subset)
        published = SUBSETS[subset]
        for archive in (home / f"{subset}.tar.gz", data_dir / f"{subset}.tar.gz"):
            if archive.is_file():  # the user's own: it stays
                require_space(home, int(UNPACKED * published.bytes), HINT)
                _check(archive, published, "Delete it: snakemake then downloads it")
                _unpack(archive, home, subset, published)
                return
        archive = home / f"{subset}.tar.gz.part"
        left = published.bytes - (archive.stat().st_size if archive.is_file() else 0)
        require_space(archive, int(max(0, left) + UNPACKED * published.bytes), HINT)
        _download(archive, [f"{m.rstrip('/')}/{subset}.tar.gz" for m in mirrors or MIRRORS])
        try:
            _check(archive, published, "It is deleted; run again to download it again")
        except UserError:
            archive.unlink()
            raise
        _unpack(archive, home, subset, published)
        archive.unlink()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits until no other process holds the lock on this file. The file stays: with its deletion
    two processes could hold a lock."""
    with explained(path, FULL_DISK):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s: waiting for another job that downloads it", path.parent)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # some shared file systems have no locks
            log.info("%s: cannot be locked", path)
        yield


def _download(path: Path, urls: list[str]) -> None:
    """Appends the missing bytes, from the first address that has them."""
    published = SUBSETS[path.name.partition(".")[0]]
    answers = []
    with explained(path, FULL_DISK), path.open("ab") as file:
        if _size(file) > published.bytes:  # not our download
            file.truncate(0)
        for url in urls:
            if _size(file) == published.bytes:
                return
            try:
                _add(file, url, published.bytes)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                answers.append(f"{url}: {_reason(error)}")
            except ConnectionError as error:
                answers.append(f"{url}: {error.strerror}")
        done = _size(file)
    if done != published.bytes:
        raise UserError(
            f"{path}: the download ended at {size(done)} of {size(published.bytes)}"
            f" ({'; '.join(answers) or 'the addresses had no more'}). Run again: it resumes."
            f" Without a network, put {path.stem} or the unpacked corpus in {path.parent}, or set"
            " data_dir to a folder that has it; or name a mirror in the data set's mirrors; or take"
            " the data set out of figures"
        )


def _add(file: BinaryIO, url: str, total: int) -> None:
    """Requests the missing bytes from an address and appends them. Present bytes stay unless the
    address sends a whole file of the right size."""
    start = _size(file)
    # identity: the archive unchanged, not unpacked by the transfer
    headers = {"Range": f"bytes={start}-", "Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        answer.raise_for_status()
        if answer.status_code == 206:
            if answer.headers.get("Content-Range") != f"bytes {start}-{total - 1}/{total}":
                raise requests.RequestException("it has another file")
        else:  # all or nothing
            if answer.headers.get("Content-Length") != str(total):
                raise requests.RequestException("it has another file")
            file.truncate(0)
            start = 0
        pieces = answer.raw.stream(PIECE, decode_content=False)
        label = f"download {url.rpartition('/')[2]}, MiB"
        for piece in progress(pieces, -(-(total - start) // PIECE), label):
            file.write(piece)


def _reason(error: BaseException) -> str:
    """What lies at the bottom of it: Name or service not known, 404 Client Error: Not Found."""
    while error.__context__:
        error = error.__context__
    words = getattr(error, "strerror", None) or str(error).partition(" for url")[0]
    return " ".join(words.split())


def _size(file: BinaryIO) -> int:
    """Bytes in a file opened for appending, whose position is wrong after a truncation."""
    file.flush()
    return os.fstat(file.fileno()).st_size


def _clear(home: Path, subset: str) -> None:
    """Removes what a killed run has unpacked."""
    shutil.rmtree(home / f".{subset}.unpacking", ignore_errors=True)


def _check(archive: Path, published: Subset, hint: str) -> None:
    log.info("%s: md5 of %s", archive, size(archive.stat().st_size))
    with archive.open("rb") as file:
        md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 != published.md5:
        wrong = f"its md5 is {md5}, not {published.md5}"
        raise UserError(f"{archive}: not the published archive: {wrong}. {hint}")


def _unpack(archive: Path, home: Path, subset: str, published: Subset) -> None:
    """Unpacks into a temporary folder, which then gets its name."""
    place = home / f".{subset}.unpacking"
    try:
        with explained(home / subset, FULL_DISK):
            place.mkdir()
            with tarfile.open(archive, "r|gz") as tar:
                members = _unpacked(tar, place, archive)
                for _ in progress(members, published.utterances, f"unpack {subset}"):
                    pass
            unpacked = place / FOLDER / subset
            count = sum(1 for _ in files_in(unpacked)) if unpacked.is_dir() else 0
            if count != published.utterances:
                raise UserError(
                    f"{archive}: has {count} utterances in {FOLDER}/{subset}, not the"
                    f" {published.utterances} that are published. Get it from elsewhere"
                )
            (unpacked / AS_PUBLISHED).write_text(contents(unpacked), "utf-8")
            for text in (place / FOLDER).glob("*.TXT"):  # about the whole corpus; licence
                if not (home / text.name).exists():
                    text.rename(home / text.name)
            os.sync()  # the folder must outlast a power cut once it has its name
            unpacked.rename(home / subset)
    finally:
        _clear(home, subset)


# Python before 3.11.4, such as Debian 12's, has no filters.
REFUSED: type[Exception] = getattr(tarfile, "FilterError", ValueError)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Raises REFUSED for what would leave the folder or is no plain file."""
    if hasattr(tarfile, "data_filter"):
        tar.extract(member, place, filter="data")
        return
    inside = Path(place, member.name).resolve().is_relative_to(place.resolve())
    if not (inside and (member.isfile() or member.isdir())):
        raise REFUSED("it has no place there")
    tar.extract(member, place, set_attrs=False)


def _unpacked(tar: tarfile.TarFile, place: Path, archive: Path) -> Iterator[None]:
    """Unpacks every member; yields after each FLAC file, whose number is known."""
    for member in tar:
        try:
            if PurePosixPath(member.name).parts[:1] != (FOLDER,):
                raise REFUSED(f"it is not in {FOLDER}")
            _extract(tar, member, place)
        except REFUSED as error:
            raise UserError(
                f"{archive}: {member.name!r} would leave the folder or is no plain file ({error})."
                " Nothing of it was kept. Get the archive from elsewhere"
            ) from error
        if member.name.endswith(".flac"):
            yield
