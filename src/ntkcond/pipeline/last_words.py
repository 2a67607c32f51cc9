"""What stands below all that Snakemake says: what is refused, why jobs would run, what failed.
Snakemake calls no hook after a dry run, nor where nothing is to be done: this is for the end of its
process."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ntkcond.run.record import differences

SHOWN, LONGEST = 5, 160  # of one kind; characters of a reason
ERROR = re.compile(r"^[-\d]+ [:\d]+ ntkcond: (.*)", re.M)  # of a log (ntkcond.settings.command)


def refusal(stale: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What is out of date, by rule, and how to go on."""
    yield (
        "ntkcond: results are out of date, and Snakemake has no metadata of them that says so"
        f" (.snakemake). {sum(map(len, stale.values()))} in all, of each rule one:"
    )
    yield from (f"    {some[0]}" for some in stale.values())
    rebuild = f"--forcerun {' '.join(stale)}"
    yield f"    To rebuild them, add at the end of your command: {rebuild}"
    yield f"    To keep them as they are: --touch {rebuild}"
    yield "    (rules of a module have its prefix)"


def some(words: Sequence[str]) -> str:
    """In a line: the first of them, and how many more."""
    more = [f"and {len(words) - SHOWN} more"] if len(words) > SHOWN else []
    text = "; ".join([*words[:SHOWN], *more])
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def reasons(jobs: Iterable[tuple[str, Iterable[str], Iterable[str]]]) -> Iterator[str]:
    """What differs from the last run, a line for each rule and difference. jobs: the rule of each,
    and its texts then and now."""
    groups: Counter[tuple[str, str]] = Counter()
    for rule, before, today in jobs:
        if words := differences(before, today):
            groups[rule, some(words)] += 1
    if groups:
        yield "ntkcond: what differs from the last run, from which all other jobs follow:"
        yield from (
            f"    {rule} × {n}: {words}" for (rule, words), n in groups.most_common(2 * SHOWN)
        )


def failure(logs: Path, since: float, failed: bool) -> Iterator[str]:
    """The errors of a run, each with its log, and how to resume. since: when it began; failed: as
    Snakemake says."""
    new = [log for log in logs.rglob("*.log") if log.stat().st_mtime >= since]
    said = {log: ERROR.findall(log.read_text("utf-8", "replace")) for log in new}
    errors = {lines[-1]: log for log, lines in said.items() if lines}
    if not errors and not failed:
        return
    yield (
        "ntkcond: not finished. The same command resumes: finished results are kept, training goes"
        " on from its checkpoint"
    )
    yield from [f"ntkcond: {log}: {error}" for error, log in errors.items()][:SHOWN] or [
        "ntkcond: no step says an error: the run was stopped (Ctrl-C), or a job was killed, for its"
        " memory perhaps"
    ]
