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
UNPACKED = 1.05  # bytes on the disk for each of the archive's, which hardly compresses FLAC
WAY_OUT = "Free some space, or set data_dir to a larger disk"
FULL_DISK = "What was downloaded is kept. Free some space and run again, or set data_dir elsewhere"

log = logging.getLogger("ntkcond")


def obtain(subset: str, data_dir: Path, mirrors: list[str] | None = None) -> None:
    """Leaves data_dir/LibriSpeech/{subset}, from {subset}.tar.gz in data_dir or in its LibriSpeech
    folder, or from a mirror; one that is there stays as it is.

    A download that was cut off goes on where it was. Nothing appears under the subset's name before
    it is whole. Waits while another process is at it. Raises UserError for an unknown subset, a
    full disk, a failed download, an archive that is not the published one or has a path that leaves
    its folder.
    """
    home = data_dir / FOLDER
    if (home / subset).is_dir():
        return
    if subset not in SUBSETS:
        raise UserError(
            f"{home / subset}: no such folder, and LibriSpeech publishes no subset {subset}. There"
            f" is: {', '.join(SUBSETS)}"
        )
    with _alone(home / f".{subset}.lock"):
        if (home / subset).is_dir():  # by now
            return
        _clear(home, subset)
        published = SUBSETS[subset]
        for archive in (home / f"{subset}.tar.gz", data_dir / f"{subset}.tar.gz"):
            if archive.is_file():  # the user's own: it stays
                require_space(home, int(UNPACKED * published.bytes), WAY_OUT)
                _check(archive, published, "Delete it: it will be downloaded")
                _unpack(archive, home, subset, published)
                return
        archive = home / f"{subset}.tar.gz.part"
        left = published.bytes - (archive.stat().st_size if archive.is_file() else 0)
        require_space(archive, int(max(0, left) + UNPACKED * published.bytes), WAY_OUT)
        _download(archive, [f"{m.rstrip('/')}/{subset}.tar.gz" for m in mirrors or MIRRORS])
        try:
            _check(archive, published, "It is deleted; run again to download it anew")
        except UserError:
            archive.unlink()
            raise
        _unpack(archive, home, subset, published)
        archive.unlink()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits until no other process holds the lock on this file. It is left: whoever deletes it
    could let two in."""
    with explained(path, FULL_DISK):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("%s: another job is fetching it; waiting until it has", path.parent)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # some shared file systems have no locks
            log.info("%s: cannot be locked", path)
        yield


def _download(path: Path, urls: list[str]) -> None:
    """Adds to the file what is missing, from the first address that has it."""
    published = SUBSETS[path.name.partition(".")[0]]
    answers = []
    with explained(path, FULL_DISK), path.open("ab") as file:
        if _size(file) > published.bytes:  # nothing of ours
            file.truncate(0)
        for url in urls:
            if _size(file) == published.bytes:
                return
            try:
                _add(file, url, published.bytes)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                answers.append(f"{url}: {' '.join(str(error).split())}")
            except ConnectionError as error:
                answers.append(f"{url}: {error.strerror}")
        there = _size(file)
    if there != published.bytes:
        raise UserError(
            f"{path}: the download ended at {size(there)} of {size(published.bytes)}"
            f" ({'; '.join(answers) or 'the addresses had no more'}). Run again: it goes on from"
            f" there. Without a network, put {path.stem} or the unpacked corpus in {path.parent},"
            " or set data_dir to a folder that has it; or name a mirror in the data set's mirrors"
        )


def _add(file: BinaryIO, url: str, total: int) -> None:
    """Asks an address for the bytes that are missing, and adds them as they come. What is there
    stays unless the address has the whole, of the right size."""
    there = _size(file)
    # identity: the archive as it is, not unpacked on the way
    headers = {"Range": f"bytes={there}-", "Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        answer.raise_for_status()
        if answer.status_code == 206:
            if answer.headers.get("Content-Range") != f"bytes {there}-{total - 1}/{total}":
                raise requests.RequestException("it has another file")
        else:  # all or nothing
            if answer.headers.get("Content-Length") != str(total):
                raise requests.RequestException("it has another file")
            file.truncate(0)
            there = 0
        pieces = answer.raw.stream(PIECE, decode_content=False)
        label = f"download {url.rpartition('/')[2]}, MiB"
        for piece in progress(pieces, -(-(total - there) // PIECE), label):
            file.write(piece)


def _size(file: BinaryIO) -> int:
    """Bytes in a file that is added to; its position means nothing after it was emptied."""
    file.flush()
    return os.fstat(file.fileno()).st_size


def _clear(home: Path, subset: str) -> None:
    """What a killed run has unpacked."""
    shutil.rmtree(home / f".{subset}.unpacking", ignore_errors=True)


def _check(archive: Path, published: Subset, way_out: str) -> None:
    log.info("%s: md5 of %s", archive, size(archive.stat().st_size))
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "md5").hexdigest()
    if found != published.md5:
        raise UserError(
            f"{archive}: not the published archive: its md5 is {found}, not {published.md5}."
            f" {way_out}"
        )


def _unpack(archive: Path, home: Path, subset: str, published: Subset) -> None:
    """Beside its place, then renamed into it."""
    place = home / f".{subset}.unpacking"
    try:
        with explained(home / subset, FULL_DISK):
            place.mkdir()
            with tarfile.open(archive, "r|gz") as tar:
                members = _unpacked(tar, place, archive)
                for _ in progress(members, published.utterances, f"unpack {subset}"):
                    pass
            found = place / FOLDER / subset
            count = sum(1 for _ in files_in(found)) if found.is_dir() else 0
            if count != published.utterances:
                raise UserError(
                    f"{archive}: has {count} utterances in {FOLDER}/{subset}, not the"
                    f" {published.utterances} that are published. Get it from elsewhere"
                )
            (found / AS_PUBLISHED).write_text(contents(found), "utf-8")
            for text in (place / FOLDER).glob("*.TXT"):  # on the whole corpus; licence
                if not (home / text.name).exists():
                    text.rename(home / text.name)
            os.sync()  # what gets its name is to outlast a power cut
            found.rename(home / subset)
    finally:
        _clear(home, subset)


def _unpacked(tar: tarfile.TarFile, place: Path, archive: Path) -> Iterator[None]:
    """Unpacks every member; stops after each FLAC file, of which it is known how many there are."""
    for member in tar:
        try:
            if PurePosixPath(member.name).parts[:1] != (FOLDER,):
                raise tarfile.FilterError(f"it is not in {FOLDER}")
            tar.extract(member, place, filter="data")
        except tarfile.FilterError as error:
            raise UserError(
                f"{archive}: {member.name!r} would leave the folder or is no plain file ({error})."
                " Nothing of it was kept; get the archive from elsewhere"
            ) from error
        if member.name.endswith(".flac"):
            yield
