"""One Snakemake at a time in a folder.

Snakemake 9.27 locks the outputs of a run; but each other run in the folder, also one with nothing
to do, removes these locks at its end. So a run here also holds a lock that the kernel releases with
the process (flock). It is no lock of Snakemake's: after a kill, that asks for --unlock.
"""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from ntkcond.run.errors import UserError

RUNNING = Path(".snakemake/ntkcond/running")

_held: list[TextIO] = []  # open, and so locked, while this process lives


def take(path: Path = RUNNING) -> None:
    """Holds the lock until this process ends. Raises UserError if another process holds it. On a
    file system without locks, only Snakemake's remain."""
    if _held:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"another Snakemake is at work in this folder ({file.read() or 'just started'})."
                " Wait until it ends, or use another folder: snakemake --directory"
            ) from None
        file.truncate(0)
        file.write(f"{socket.gethostname()}, process {os.getpid()}")
        file.flush()
        _held.append(file)
