"""Complete files or none: each is written under a temporary name, then renamed."""

import contextlib
import errno
import glob
import hashlib
import io
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import psutil

from ntkcond.run.errors import UserError
from ntkcond.run.record import sidecar
from ntkcond.run.seal import is_whole, seal
from ntkcond.run.units import size

FULL_DISK = "No partial file is left. Free some space, or set keep_kernels: false, and run again"


@contextlib.contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A temporary path in the same folder, renamed to `path` when the block succeeds.

    A killed or failed block leaves no file at `path`, or the old one unchanged. The next write
    removes leftovers of killed processes. Raises UserError when the disk is full.
    """
    path = Path(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(path)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    try:
        with explained(path):
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _clear_leftovers(path: Path) -> None:
    """Leftovers of dead processes of this machine, also of the checkpoint before a finished file;
    those of other machines may be alive."""
    for name in (path.name, f"{path.stem}.checkpoint{path.suffix}"):
        prefix = f".{name}.{socket.gethostname()}."
        for leftover in path.parent.glob(f"{glob.escape(prefix)}*.tmp"):
            pid = leftover.name.removeprefix(prefix).removesuffix(".tmp")
            if pid.isdecimal() and not psutil.pid_exists(int(pid)):
                leftover.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Makes the new name, too, outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explained(path: Path, full_disk_hint: str = FULL_DISK) -> Iterator[None]:
    """Turns a full disk or a write-protected folder into a UserError that names it."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py reports some failed writes as RuntimeError
        number = getattr(error, "errno", None)
        text = str(error)
        if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in text:
            folder = next(folder for folder in path.absolute().parents if folder.is_dir())
            left = size(shutil.disk_usage(folder).free)
            raise UserError(f"{path}: the disk is full ({left} left). {full_disk_hint}") from error
        if number in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(
                f"{path}: cannot be written ({os.strerror(number)}). Make its folder writable,"
                " or run elsewhere with snakemake --directory"
            ) from error
        raise


def require_space(path: Path | str, size_needed: int, hint: str) -> None:
    """Raises UserError, with the hint, if fewer than `size_needed` bytes are free for `path`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < size_needed:
        raise UserError(f"{path}: needs {size(size_needed)} of disk, {size(free)} are free. {hint}")


@contextlib.contextmanager
def write_hdf5(path: Path | str, record: dict | None = None) -> Iterator[h5py.File]:
    """A new HDF5 file at `path`, by `replacing`, with a seal (`ntkcond.run.seal`). record: its
    provenance (`ntkcond.run.record`), kept as the attribute `provenance`."""
    with replacing(path) as temporary:
        with _Disk(temporary) as disk:
            try:
                with h5py.File(disk, "w") as file:
                    if record is not None:
                        file.attrs["provenance"] = json.dumps(record)
                    yield file
            finally:
                if disk.failure:  # h5py may then raise anything, such as an AttributeError
                    raise disk.failure
        seal(temporary)


class _Disk(io.FileIO):
    """A file for HDF5 whose writes fail only once.

    HDF5 crashes the process when it closes a file after a failed write. So only the first failure
    is reported, and later writes are dropped.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self.failure:
            return len(view)
        try:
            done = 0
            while done < len(view):  # a write may be partial, for example on a full disk
                done += super().write(view[done:])
        except OSError as error:
            self.failure = error
            raise
        return len(view)


def csv_of(table) -> bytes:
    """A pandas table as CSV; floats with all digits."""
    return table.to_csv(index=False, lineterminator="\n").encode()


@contextlib.contextmanager
def read_hdf5(path: Path | str) -> Iterator[h5py.File]:
    """An HDF5 file for reading. Raises UserError if it is missing or damaged."""
    try:
        if not is_whole(path):
            raise OSError("its content has changed since it was written")
        file = h5py.File(path, "r", locking=False)  # whole, under its name
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. snakemake {path} makes it") from None
    except OSError as error:
        raise UserError(
            f"{path}: damaged ({error}). Delete it and run snakemake again, which rebuilds it"
        ) from error
    with file:
        yield file


def write_text(path: Path | str, text: str) -> None:
    """A text in UTF-8 at `path`, by `replacing`."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


def write_artefact(contents: Mapping[Path, bytes], record: dict | None) -> None:
    """The files of an artefact, after their provenance: its record (`ntkcond.run.record`) and
    the sha256 of each file by its name. A job that is killed in between leaves no file without."""
    if record is not None:
        digests = {
            path.name: hashlib.sha256(content).hexdigest() for path, content in contents.items()
        }
        text = json.dumps({"record": record, "files": digests}, indent=1, ensure_ascii=False)
        write_text(sidecar(next(iter(contents))), text + "\n")
    for path, content in contents.items():
        with replacing(path) as temporary:
            temporary.write_bytes(content)
