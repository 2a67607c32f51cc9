"""Files that are whole or not there: written beside their place, then renamed into it."""

import contextlib
import errno
import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import h5py
from PIL import Image

from ntkcond.errors import UserError
from ntkcond.units import size


@contextlib.contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A temporary path in the same folder, renamed to `path` when the block ends well.

    A killed or failed block leaves no file at `path`, or the old one untouched. Leftovers of
    killed processes are cleared at the next write. Raises UserError when the disk is full.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with explained(path):
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _clear_leftovers(path: Path) -> None:
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        pid = re.fullmatch(r"\..*\.(\d+)\.tmp", leftover.name)
        if pid and not Path(f"/proc/{pid[1]}").exists() and Path("/proc/self").exists():
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns a full disk or a forbidden place into a UserError that names it."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py reports some failed writes as RuntimeError
        number = getattr(error, "errno", None)
        text = str(error)
        if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in text:
            free = shutil.disk_usage(path.parent).free
            raise UserError(
                f"{path}: the disk is full ({size(free)} left). Nothing was left half-written."
                " Free some space and run again; keep_kernels: false in the config keeps no kernels"
            ) from error
        if number in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(
                f"{path}: cannot be written ({os.strerror(number)}). Make its folder writable,"
                " or run elsewhere with snakemake --directory"
            ) from error
        raise


def require_space(path: Path | str, size_needed: int) -> None:
    """Raises UserError if the disk of `path` has less than `size_needed` bytes free."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < size_needed:
        raise UserError(
            f"{path}: needs {size(size_needed)} of disk, {size(free)} are free. Free some space;"
            " or lower block or samples in the config; or set keep_kernels: false, which deletes"
            " each kernel once its spectrum is there"
        )


@contextlib.contextmanager
def write_hdf5(path: Path | str, made_by: dict | None = None) -> Iterator[h5py.File]:
    """A new HDF5 file at `path`, by `replacing`. made_by: what its rule depends on, kept as the
    attribute `made_by` (see `ntkcond.provenance`)."""
    with replacing(path) as temporary, _Disk(temporary) as disk:
        with h5py.File(disk, "w") as file:
            file.attrs["made_by"] = repr(made_by) if made_by else "a step run by hand"
            yield file
        if disk.failure:
            raise disk.failure


class _Disk(io.FileIO):
    """A file for HDF5 to write to that fails once.

    HDF5 cannot close a file that it could not write, and crashes the process when it is made to.
    So the first failed write is reported, and whatever HDF5 still has to flush is let go of.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.failure: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data).cast("B")
        if self.failure:
            return len(view)
        try:
            done = 0
            while done < len(view):  # a write may be cut short, by a full disk for one
                done += super().write(view[done:])
        except OSError as error:
            self.failure = error
            raise
        return len(view)


def write_csv(path: Path | str, table) -> None:
    """A pandas table as CSV at `path`, by `replacing`; floats to the last digit."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


@contextlib.contextmanager
def read_hdf5(path: Path | str) -> Iterator[h5py.File]:
    """An HDF5 file for reading. Raises UserError if it is not there or damaged."""
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. snakemake {path} makes it") from None
    except OSError as error:
        raise UserError(
            f"{path}: damaged ({error}). Delete it and run snakemake again: it will be made anew"
        ) from error
    with file:
        yield file


def made_by_of(path: Path | str) -> str | None:
    """What an HDF5 file or a PNG says of what made it (`ntkcond.provenance`); None if it says
    nothing or cannot be read."""
    try:
        if Path(path).suffix == ".png":
            with Image.open(path) as picture:
                return picture.info.get("made_by")
        with h5py.File(path, "r") as file:
            return file.attrs.get("made_by")
    except OSError:  # also what Pillow raises for a file that is no picture
        return None


def sha256_of(path: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
