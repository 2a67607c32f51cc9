"""One Snakemake at a time in a folder, and no lock that outlives the run that took it.

Snakemake locks files that a run makes, by notes in .snakemake/locks that do not say whose they are.
After a kill -9 or a power cut they stay, and a person has to unlock; and a second run that makes
other files is let in and at its end removes the notes of the first. Beside them, a run here holds
a lock that the kernel releases with its process (flock), and that says where it runs.
"""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from ntkcond.run.errors import UserError

_held: list[TextIO] = []  # open, and so locked, as long as this process lives


def take(folder: Path) -> None:
    """Holds the lock of a folder of Snakemake's records until this process ends. Raises UserError
    if another process holds it. Where the file system has no such locks, Snakemake's own are left.
    """
    with contextlib.suppress(OSError):
        file = (folder / "running").open("a+", encoding="utf-8")
        if not _lock(file):
            file.seek(0)
            raise UserError(
                f"another Snakemake is at work in this folder ({file.read() or 'just started'})."
                " Let it finish, or use another folder: snakemake --directory"
            )
        file.truncate(0)
        file.write(f"{socket.gethostname()}, process {os.getpid()}")
        file.flush()
        _held.append(file)


def remove_dead_locks(folder: Path) -> bool:
    """Removes the notes of a run that was killed; whether there were any.

    flock may not reach the other machines that share a file system: if the last run was on one of
    them, nothing is known, and its notes are left to `snakemake --unlock`.
    """
    notes = list((folder / "locks").glob("*.lock"))
    removed = False
    with contextlib.suppress(OSError):
        if notes:
            with (folder / "running").open("r+", encoding="utf-8") as file:
                if _lock(file) and file.read().startswith(f"{socket.gethostname()}, "):
                    for note in notes:
                        note.unlink(missing_ok=True)
                    removed = True
    return removed


def _lock(file: TextIO) -> bool:
    """Whether the file is now locked by this process alone, until it is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
