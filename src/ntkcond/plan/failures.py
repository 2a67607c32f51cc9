"""The last words of a failed run: which job, its error and the fix, its log."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ntkcond.plan.reasons import listed

SHOWN = 10  # different errors
# Lines of a step's log (ntkcond.run.command): any, and an error.
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "
ERROR = re.compile(rf"^{STAMP}ntkcond: (.*(?:\n(?!{STAMP}).*)*)", re.M)
TRACEBACK = "\nTraceback (most recent call last)"
KILLED = (
    "it was killed (SIGKILL), as the system does when memory runs out. Run fewer jobs at a time"
    " (-j1), or lower block, samples or width in the config"
)


class Failure(NamedTuple):
    """job: dataset mine. needed_by: artefacts that were not built without it. logs: the step's,
    and others, such as Slurm's. end: what Snakemake or Slurm says of its end."""

    job: str
    needed_by: Sequence[str]
    logs: Sequence[str]
    end: str


def of_run(failures: Sequence[Failure], log: str) -> str:
    """A block for each error. log: Snakemake's own, with all of its messages."""
    errors: dict[str, list[Failure]] = {}
    for failure in failures:
        errors.setdefault(_error(failure), []).append(failure)
    count = f"{len(failures)} jobs" if len(failures) > 1 else "1 job"
    first = f", here are the first {SHOWN} errors" if len(errors) > SHOWN else ""
    return "\n".join([
        f"\nntkcond: {count} failed{first}. Snakemake's log, with the commands: {log or 'none'}",
        *(_block(error, same) for error, same in list(errors.items())[:SHOWN]),
    ])  # fmt: skip


def _block(error: str, failures: Sequence[Failure]) -> str:
    needed = dict.fromkeys(name for failure in failures for name in failure.needed_by)
    waiting = f" (needed by {listed(list(needed))})" if needed else ""
    logs = [log for log in failures[0].logs if Path(log).exists()] or ["none was written"]
    return "\n".join([
        "",
        listed([failure.job for failure in failures]) + waiting,
        *(f"    {line}" for line in error.splitlines()),
        f"    log: {', '.join(logs)}",
    ])  # fmt: skip


def _error(failure: Failure) -> str:
    """What the step says, or else how it ended."""
    for log in failure.logs:
        try:
            found = ERROR.findall(Path(log).read_text("utf-8", errors="replace"))
        except OSError:
            continue
        if found:
            error, _, traceback = found[-1].rstrip().partition(TRACEBACK)
            return f"{error}\n{traceback.splitlines()[-1]}" if traceback else error
    if "SIGKILL" in failure.end:
        return KILLED
    said = f"it ended without an error in its log: {failure.end}. " if failure.end else ""
    return f"{said}Its messages on the terminal, if any, are above"
