"""The last words of a failed run: which job, its error and the fix, its log."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ntkcond.plan.reasons import listed

SHOWN = 10  # different errors
SMALL_FILE = 100_000  # bytes: on a disk with less, a step may not even have written its log
# Lines of a step's log (ntkcond.run.command): any, and an error.
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "
ERROR = re.compile(rf"^{STAMP}ntkcond: (.*(?:\n(?!{STAMP}).*)*)", re.M)
SLURM = re.compile(r"^slurmstepd\S*: error: (.*)", re.M)  # exceeded memory limit
TRACEBACK = "\nTraceback (most recent call last)"
KILLED = (
    "it was killed (SIGKILL), as the system does when memory runs out. Run fewer jobs at a time"
    " (-j1), or lower block, samples or width in the config"
)


class Failure(NamedTuple):
    """job: dataset mine. needed_by: artefacts that were not built without it. folder: where it ran.
    logs: the step's, and others, such as Slurm's. end: what Snakemake or Slurm says of its end."""

    job: str
    needed_by: Sequence[str]
    folder: Path
    logs: Sequence[str]
    end: str


def of_run(failures: Sequence[Failure]) -> str:
    """A block for each error. Jobs that failed by the same share one."""
    errors: dict[str, list[Failure]] = {}
    for failure in failures:
        errors.setdefault(_error(failure), []).append(failure)
    blocks = [_block(error, same) for error, same in list(errors.items())[:SHOWN]]
    if len(errors) > SHOWN:
        blocks.insert(0, f"ntkcond: {len(failures)} jobs failed. The first {SHOWN} errors:")
    return "\n\n".join(blocks)


def _block(error: str, failures: Sequence[Failure]) -> str:
    needed = dict.fromkeys(name for failure in failures for name in failure.needed_by)
    waiting = f" (needed by {listed(list(needed))})" if needed else ""
    paths = (failures[0].folder / log for log in failures[0].logs)
    logs = [from_here(path) for path in paths if path.exists()] or ["none was written"]
    return "\n".join([
        f"ntkcond: {listed([failure.job for failure in failures])} failed{waiting}",
        *(f"    {line}" for line in error.splitlines()),
        f"    log: {', '.join(logs)}",
    ])  # fmt: skip


def from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _error(failure: Failure) -> str:
    """What the step says, or else how it ended."""
    said_by_slurm: list[str] = []
    for log in failure.logs:
        try:
            text = (failure.folder / log).read_text("utf-8", errors="replace")
        except OSError:
            continue
        said_by_slurm += SLURM.findall(text)
        if found := ERROR.findall(text):
            error, _, traceback = found[-1].rstrip().partition(TRACEBACK)
            return f"{error}\n{traceback.splitlines()[-1]}" if traceback else error
    if "SIGKILL" in failure.end:
        return KILLED
    if shutil.disk_usage(failure.folder).free < SMALL_FILE:
        return f"the disk of {failure.folder} is full. Free some space and run again"
    slurm = "".join(f". Slurm: {line}" for line in said_by_slurm[-1:])
    return f"its log has no error. {failure.end}{slurm}"
