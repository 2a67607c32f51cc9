"""One Snakemake at a time in a folder, and no lock that outlives its run.

Snakemake locks the outputs of a run by notes in .snakemake/locks that do not name the run. After a
kill -9 or a power cut they stay until a user unlocks the folder. A second run with other outputs
may start, and at its end removes the notes of the first. So a run here also holds a lock that names
its machine and process, and that the kernel releases with the process (flock).
"""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from ntkcond.run.errors import UserError

_held: list[TextIO] = []  # open, and so locked, while this process lives


def take(folder: Path) -> None:
    """Holds the lock of a folder of Snakemake's records until this process ends. Raises UserError
    if another process holds it. On a file system without locks, only Snakemake's remain."""
    with contextlib.suppress(OSError):
        file = (folder / "running").open("a+", encoding="utf-8")
        if not _lock(file):
            file.seek(0)
            raise UserError(
                f"another Snakemake is at work in this folder ({file.read() or 'just started'})."
                " Wait until it ends, or use another folder: snakemake --directory"
            )
        file.truncate(0)
        file.write(f"{socket.gethostname()}, process {os.getpid()}")
        file.flush()
        _held.append(file)


def remove_dead_locks(folder: Path) -> bool:
    """Removes the notes of a killed run of this machine. Returns whether it removed any.

    flock may not act across machines that share a file system: the notes of a run on another
    machine stay for `snakemake --unlock`.
    """
    notes = list((folder / "locks").glob("*.lock"))
    with contextlib.suppress(OSError):
        if notes:
            with (folder / "running").open("r+", encoding="utf-8") as file:
                if _lock(file) and file.read().startswith(f"{socket.gethostname()}, "):
                    for note in notes:
                        note.unlink(missing_ok=True)
                    return True
    return False


def _lock(file: TextIO) -> bool:
    """Locks the file until it is closed. Returns whether that succeeded."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
