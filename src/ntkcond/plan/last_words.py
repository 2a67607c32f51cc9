"""What stands below all that Snakemake says: what changed, what is up to date now, what has no
effect, what failed. Snakemake calls no hook after a dry run, nor where nothing is to be done: this
is for the end of its process."""

import difflib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ntkcond.artefacts.registry import SPECS
from ntkcond.jobs.registry import STEPS
from ntkcond.jobs.settings import Entry
from ntkcond.plan.freshness import Freshness
from ntkcond.plan.graph import Graph, Job

if TYPE_CHECKING:
    from ntkcond.plan.workflow import Plan

SHOWN, LONGEST = 10, 160  # of one kind; characters of a reason
# Lines of a step's log (ntkcond.run.command): its error; of a data set, what makes κ infinite.
ERROR = re.compile(r"^[-\d]+ [:\d]+ ntkcond: (.*)", re.M)
SINGULAR = re.compile(r"^[-\d]+ [:\d]+ (.*κ = ∞.*)", re.M)
TRAINED = ("sgd", "speed")  # the rules that take `training`


def of_run(plan: "Plan", since: float, compares: bool) -> Iterator[str]:
    """Lines. since: when the run began. compares: whether it was a dry one that compares all."""
    graph = plan.graph
    freshness = Freshness(graph)  # of what lies there now
    needed = {maker for job in plan.planned for maker in graph.makers(job)}
    targets = [job for job in plan.planned if job not in needed]
    jobs = graph.upstream(*targets)
    if not jobs and graph.folder == Path():  # else, other modules may have some
        yield from _misspelt(graph)
    elif compares:
        yield from _changes(freshness, targets)
    made: dict[bool, list[str]] = {True: [], False: []}
    for job in targets:
        places = [graph.at(path) for path in job.outputs]
        new = [str(p) for p in places if p.parent.name != "provenance" and _is_new(p, since)]
        if new:
            made[not freshness.reasons(job)] += new
    if made[True]:
        yield f"ntkcond: up to date now: {', '.join(_first(made[True]))}"
    if made[False]:
        yield (
            f"ntkcond: made of results that are out of date: {', '.join(_first(made[False]))}."
            f" `python -m ntkcond.why {made[False][0]}`, with the same settings, says which"
        )

    yield from _overridden("", plan.given, _entries(graph, jobs))
    trained = _entries(graph, (job for job in jobs if job.rule in TRAINED))
    of_training = {name: entry.training for name, entry in trained.items()}
    yield from _overridden("training.", plan.given.get("training"), of_training)
    yield from _singular(graph, jobs)
    logs = [log for log in graph.at("results/logs").rglob("*.log") if _is_new(log, since)]
    said = {log: ERROR.findall(log.read_text("utf-8", "replace")) for log in logs}
    errors = {lines[-1]: log for log, lines in said.items() if lines}
    if plan.failed or errors:
        yield from _failure(graph, jobs, errors)


def _entries(graph: Graph, jobs: Iterable[Job]) -> dict[str, Entry]:
    """The data sets of these jobs, by name."""
    names = dict.fromkeys(job.wildcards.get("dataset", "") for job in jobs)
    return {name: graph.config.datasets[name] for name in names if name}


def _first(lines: list[str]) -> list[str]:
    return lines[:SHOWN] + [f"and {len(lines) - SHOWN} more"] * (len(lines) > SHOWN)


def _is_new(path: Path, since: float) -> bool:
    return path.exists() and path.stat().st_mtime >= since


def _misspelt(graph: Graph) -> Iterator[str]:
    known = {Path(p).name: p for name in SPECS for job in graph.artefact(name) for p in job.outputs}
    for word in sys.argv[1:]:
        is_result = word.startswith("results/") or Path(word).suffix in (".pdf", ".png", ".csv")
        if is_result and not Path(word).exists() and not graph.maker(word):
            for name in difflib.get_close_matches(Path(word).name, known, n=1):
                yield f"ntkcond: {word} is no result of ours. Did you mean {known[name]}?"


def _changes(freshness: Freshness, targets: Iterable[Job]) -> Iterator[str]:
    """What `ntkcond.why` says, a line for each rule and difference; then what is missing."""
    lines = freshness.reasons(*targets)
    running = freshness.running(*targets)
    missing = Counter(job.rule for job in running if not freshness.differences(job))
    if missing:
        counts = (f"{rule} × {n}" if n > 1 else rule for rule, n in missing.items())
        lines.append(f"missing: {', '.join(counts)}")
    if lines:
        yield "ntkcond: reasons, from which all other jobs follow:"
        yield from (f"    {line[:LONGEST]}{'…' * (len(line) > LONGEST)}" for line in _first(lines))


def _overridden(section: str, given: object, entries: Mapping[str, object]) -> Iterator[str]:
    """Given settings that each of these data sets has of its own."""
    for key in given if isinstance(given, dict) else ():
        own = [name for name in entries if getattr(entries[name], key, None) is not None]
        if own and len(own) == len(entries) and key != "training":
            paths = ", ".join(f"datasets.{name}.{section}{key}" for name in own)
            yield f"ntkcond: {section}{key} changes nothing here: set by {paths}"


def _singular(graph: Graph, jobs: Iterable[Job]) -> Iterator[str]:
    """Repeated and zero samples, also of an earlier run."""
    for name, entry in _entries(graph, jobs).items():
        log = graph.at(f"results/logs/dataset/{name}.log")
        if log.exists() and not entry.distinct:
            for words in SINGULAR.findall(log.read_text("utf-8", "replace")):
                fix = f"datasets: {{{name}: {{distinct: true}}}}, block ≤ what is left"
                yield f"ntkcond: {words}. Fix: {fix}"


def _failure(graph: Graph, jobs: Iterable[Job], errors: Mapping[str, Path]) -> Iterator[str]:
    """From when the same command resumes; last the errors, each with its log."""
    steps = {job: STEPS[job.rule] for job in jobs if job.rule in STEPS}
    runs = [
        graph.at(job.outputs[0])
        for job, step in steps.items()
        if "checkpoint_minutes" in step.unrecorded
    ]
    saved = [path for run in runs if (path := run.with_suffix(".checkpoint.h5")).exists()]
    times = _first([f"{path} of {time.ctime(path.stat().st_mtime)}" for path in saved])
    training = f", training from {', '.join(times)}" if times else ""
    yield (
        f"ntkcond: not finished. {'Once mended, the' if errors else 'The'} same command resumes:"
        " finished results are kept, other jobs"
        f" start anew{training or ' (no checkpoint yet)' * bool(runs)}"
    )
    yield from _first([f"ntkcond: {log}: {error}" for error, log in errors.items()]) or [
        "ntkcond: no step says an error: the run was stopped (Ctrl-C), or a job was killed, for its"
        " memory perhaps"
    ]
