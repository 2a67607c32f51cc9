"""A LibriSpeech subset from its published archive: downloaded, checked, unpacked."""

import contextlib
import fcntl
import hashlib
import logging
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import requests
import urllib3

from ntkcond.errors import UserError
from ntkcond.progress import progress
from ntkcond.speech.corpus import AS_PUBLISHED, FOLDER, files_in
from ntkcond.speech.subsets import MIRRORS, SUBSETS, Subset
from ntkcond.storage import explained, require_space
from ntkcond.units import size

TIMEOUT_S = 30
PIECE = 1 << 20
UNPACKED = 1.05  # bytes on the disk for each of the archive's, which hardly compresses FLAC

log = logging.getLogger("ntkcond")


def obtain(subset: str, data_dir: Path, mirrors: list[str] | None = None) -> None:
    """Leaves data_dir/LibriSpeech/{subset}, from {subset}.tar.gz in data_dir or in its LibriSpeech
    folder, or from a mirror; one that is there stays as it is.

    A download that was cut off goes on where it was. Nothing appears under the subset's name before
    it is whole. Raises UserError for an unknown subset, a full disk, a failed download, an archive
    that is not the published one or has a path that leaves its folder.
    """
    home = data_dir / FOLDER
    if (home / subset).is_dir():
        return
    if subset not in SUBSETS:
        raise UserError(
            f"{home / subset}: no such folder, and LibriSpeech publishes no subset {subset}. There"
            f" is: {', '.join(SUBSETS)}"
        )
    published = SUBSETS[subset]
    for archive in (home / f"{subset}.tar.gz", data_dir / f"{subset}.tar.gz"):
        if archive.is_file():  # the user's own: it stays
            require_space(home, int(UNPACKED * published.bytes), WAY_OUT)
            _check(archive, published, "Delete it: it will be downloaded")
            _unpack(archive, home, subset, published)
            return
    archive = home / f"{subset}.tar.gz.part"
    with _for_this_run_alone(archive) as file:
        left = max(0, published.bytes - archive.stat().st_size)
        require_space(archive, int(left + UNPACKED * published.bytes), WAY_OUT)
        _download(file, archive, [f"{m.rstrip('/')}/{subset}.tar.gz" for m in mirrors or MIRRORS])
        try:
            _check(archive, published, "It is deleted; run again to download it anew")
        except UserError:
            archive.unlink()
            raise
        _unpack(archive, home, subset, published)
        archive.unlink()


WAY_OUT = "Free some space, or set data_dir to a larger disk"


@contextlib.contextmanager
def _for_this_run_alone(path: Path) -> Iterator[BinaryIO]:
    """A file to be added to. Raises UserError while another run adds to it."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{path}: another run is downloading it. Wait until it has") from None
        yield file


def _download(file: BinaryIO, path: Path, urls: list[str]) -> None:
    """Adds what is missing, from the first address that has it."""
    published = SUBSETS[path.name.partition(".")[0]]
    if file.tell() > published.bytes:
        file.truncate(0)  # nothing of ours
    answers = []
    for url in urls:
        if file.tell() == published.bytes:
            return
        try:
            with explained(path):
                _add(file, url, published.bytes)
        except (requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError) as error:
            answers.append(f"{url}: {' '.join(str(error).split())}")
    there = file.tell()
    if there != published.bytes:
        raise UserError(
            f"{path}: the download ended at {size(there)} of {size(published.bytes)}"
            f" ({'; '.join(answers) or 'the addresses had no more'}). Run again: it goes on from"
            f" there. Without a network, put {path.stem} or the unpacked corpus in {path.parent},"
            " or set data_dir to a folder that has it; or name a mirror in the data set's mirrors"
        )


def _add(file: BinaryIO, url: str, total: int) -> None:
    """Asks an address for the bytes that are missing, and adds them as they come."""
    there = file.tell()
    # identity: the archive as it is, not unpacked on the way
    headers = {"Range": f"bytes={there}-", "Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        answer.raise_for_status()
        if answer.status_code != 206:  # it gives all or nothing
            file.truncate(0)
            there = 0
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {there}-"):
            raise requests.RequestException("it answers with another part than was asked for")
        pieces = answer.raw.stream(PIECE, decode_content=False)
        left = -(-(total - there) // PIECE)
        for piece in progress(pieces, left, f"download {url.rpartition('/')[2]}, MiB"):
            file.write(piece)
            if file.tell() > total:
                file.truncate(0)
                raise requests.RequestException("it has another file, a larger one")
    file.flush()


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
    shutil.rmtree(place, ignore_errors=True)  # of a run that was killed
    try:
        with explained(home / subset):
            place.mkdir(parents=True)
            with tarfile.open(archive, "r|gz") as tar:
                members = _unpacked(tar, place, archive)
                for _ in progress(members, published.utterances, f"unpack {subset}"):
                    pass
            found = place / FOLDER / subset
            if not found.is_dir():
                raise UserError(f"{archive}: has no folder {FOLDER}/{subset}")
            count = sum(1 for _ in files_in(found))
            (found / AS_PUBLISHED).write_text(f"archive with md5 {published.md5}, files: {count}\n")
            for text in (place / FOLDER).glob("*.TXT"):  # on the whole corpus; licence
                if not (home / text.name).exists():
                    text.rename(home / text.name)
            found.rename(home / subset)
    finally:
        shutil.rmtree(place, ignore_errors=True)


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
