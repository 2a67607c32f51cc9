"""The lock that a killed Snakemake leaves behind, removed when it is certain that nobody holds it.

Snakemake locks a folder by files in .snakemake/locks that do not say whose they are: after a
kill -9 or a power cut it refuses to run until a person unlocks it. Beside them we keep a lock that
the kernel releases with its process (flock), shared by every Snakemake at work in the folder.
Whoever gets it for itself alone knows that no other is alive.
"""

import contextlib
import fcntl
import socket
from pathlib import Path
from typing import TextIO

_held: list[TextIO] = []  # open, and so locked, as long as this process lives


def remove_dead_locks(folder: Path) -> bool:
    """Joins those at work in the folder of a Snakemake's records; whether dead locks were removed.

    Where flock does not reach all machines that share a file system, being alone proves nothing
    about the others: only locks of this machine are removed, the rest left to snakemake --unlock.
    """
    host, dead = socket.gethostname(), []
    # a file system may forbid writing, or know no flock: then Snakemake's own way is left
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "at_work").open("a+", encoding="utf-8")
        _held.append(file)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left = list((folder / "locks").glob("*.lock"))
            file.seek(0)
            last_host = file.read()
            if left and last_host == host:
                dead = left
            if not left or dead:
                for path in dead:
                    path.unlink(missing_ok=True)
                file.truncate(0)
                file.write(host)
                file.flush()
        fcntl.flock(file, fcntl.LOCK_SH)
    return bool(dead)
