"""Is a file what the config, the code and its inputs would make today?

Snakemake compares the same from run to run. This is for what it cannot see: files without its
metadata, results that travelled, files made by hand. A file's record (`ntkcond.run.record`) is
compared with the one that it would get today, and so are those of all that it was made of.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ntkcond.plan.graph import Graph, Job
from ntkcond.run.digests import PACKAGE, module_file
from ntkcond.run.errors import UserError
from ntkcond.run.record import digest, files_of, read

SHOWN = 5  # differences of one kind in a line
LONGEST = 40  # characters of a setting's value


class Difference(NamedTuple):
    """entry: of a record, or `provenance` or `content` where the file itself is not as it was;
    name: of the setting, module, package or file; before, today: None where it is not."""

    entry: str
    name: str
    before: object = None
    today: object = None


class Freshness:
    """Of the jobs of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._records: dict[str, dict | None] = {}
        self._today: dict[Job, dict] = {}
        self._differences: dict[str, list[Difference]] = {}

    def differences(self, job: Job) -> list[Difference]:
        """Why the job's outputs are out of date: empty where they are as they should be, or all
        missing. What rebuilds an input is the input's difference, not the job's."""
        name = job.outputs[0]
        if name not in self._differences:
            self._differences[name] = []  # an artefact's own files are no inputs of it
            self._differences[name] = self._compare(job)
        return self._differences[name]

    def running(self, target: Job) -> list[Job]:
        """The jobs that bring the target up to date, inputs first. As in Snakemake, a missing file
        counts where a job that runs takes it, and nowhere else."""
        graph = self.graph
        jobs = list(graph.upstream(target))
        inputs = {job: set(graph.makers(job)) for job in jobs}
        stale: set[Job] = set()
        for job in jobs:
            if self.differences(job) or inputs[job] & stale:
                stale.add(job)
        to_run, wanted = [], {target}
        for job in reversed(jobs):
            there = all(graph.at(path).exists() for path in job.outputs)
            if job in wanted and (job in stale or not there):
                to_run.append(job)
                wanted |= inputs[job]
        return to_run[::-1]

    def of_file(self, job: Job, path: str) -> tuple[bool, str]:
        """Whether a file of the job is up to date, and why: what differs anywhere upstream, or what
        the file was made with."""
        by_job = {up: self.differences(up) for up in self.graph.upstream(job)}
        stale = {output for up, differs in by_job.items() if differs for output in up.outputs}
        groups: Counter[tuple[str, str]] = Counter()
        for up, differs in by_job.items():
            words = in_words(d for d in differs if d.entry != "inputs" or d.name not in stale)
            if words:
                groups[up.rule, "; ".join(words)] += 1
        if not self.graph.at(path).exists():
            return False, f"{path} does not exist: snakemake {path} makes it"
        if stale:
            lines = (
                f"    {rule}{f' × {count}' if count > 1 else ''}: {words}"
                for (rule, words), count in groups.items()
            )
            return False, "\n".join([f"{path} is out of date:", *lines])
        made_with = _made_with(self.record(job.outputs[-1]))
        return True, "\n".join([f"{path} is up to date. It was made with:", *made_with])

    def record(self, path: str) -> dict | None:
        """A result's own, read once."""
        if path not in self._records:
            place = self.graph.at(path)
            self._records[path] = read(place, self.graph.is_whole) if place.exists() else None
        return self._records[path]

    def _digest_of(self, path: str) -> str:
        """Of the record that a result has, or will have once it is rebuilt."""
        job = self.graph.maker_of(path)
        made_with = self.record(path)
        if made_with is None or self.differences(job):
            made_with = self._expected(job)
        return digest(made_with)

    def _expected(self, job: Job) -> dict:
        """The record that the job's outputs would get today, computed once."""
        if job not in self._today:
            self._today[job] = self.graph.expected(job, self._digest_of)
        return self._today[job]

    def _compare(self, job: Job) -> list[Difference]:
        outputs = [path for path in job.outputs if self.graph.at(path).exists()]
        if not outputs:
            return []
        made_with = self.record(job.outputs[-1])
        if made_with is None:
            damaged = not self._is_whole(job.outputs[-1])
            return [Difference("content" if damaged else "provenance", job.outputs[-1])]
        today = self._expected(job)
        differences = [
            Difference(entry, *values)
            for entry in today
            for values in _entries(made_with.get(entry), today[entry], ())
        ]
        return (
            differences
            or _other_order(made_with["inputs"], today["inputs"])
            or [Difference("content", path) for path in outputs if not self._is_whole(path)]
        )

    def _is_whole(self, path: str) -> bool:
        """Whether a file is the one that its step wrote, where that is known."""
        place = self.graph.at(path)
        if path.endswith(".h5"):
            try:
                return self.graph.is_whole(place)
            except OSError as error:
                reason = error.strerror or error
                raise UserError(f"{place}: cannot be read ({reason}). Delete it, or mend") from None
        return path.endswith(".json") or files_of(place).get(place.name) == (
            self.graph.sha256_of(place)
        )


def _other_order(before: dict, today: dict) -> list[Difference]:
    return [
        Difference("inputs", f"order of {option}", list(before[option]), list(paths))
        for option, paths in today.items()
        if list(before[option]) != list(paths)
    ]


def _entries(before: object, today: object, path: tuple[str, ...]) -> Iterable[tuple]:
    """(name, before, today) of the entries that differ, of dicts within dicts."""
    if before == today:
        return
    if isinstance(before, dict) and isinstance(today, dict):
        for key in dict.fromkeys([*before, *today]):
            yield from _entries(before.get(key), today.get(key), (*path, key))
    else:
        yield path[-1] if path else "", before, today


def _made_with(record: dict | None) -> list[str]:
    assert record
    inputs = [name for files in record["inputs"].values() for name in files]
    return [
        f"    step: ntkcond.steps.{record['step']}",
        f"    settings: {', '.join(f'{k}: {v}' for k, v in record['settings'].items())}",
        f"    inputs: {listed(inputs) or 'none'}",
        f"    code: {', '.join(record['code'])}",
        f"    packages: {', '.join(' '.join(entry) for entry in record['versions'].items())}",
    ]


def in_words(differences: Iterable[Difference]) -> list[str]:
    """One entry for each kind of difference: width 512 → 1024."""
    kinds: dict[str, list[str]] = {}
    for entry, name, before, today in differences:
        kind, words = _in_words(entry, name, _short(before), _short(today))
        if words not in kinds.setdefault(kind, []):
            kinds[kind].append(words)
    return [f"{kind}{listed(words)}" for kind, words in kinds.items()]


def listed(words: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _in_words(entry: str, name: str, before: str, today: str) -> tuple[str, str]:
    """What kind of change it is, and which."""
    match entry:
        case "settings" | "versions":
            if before == "–":
                return "", f"{name} {today} added"
            if today == "–":
                return "", f"{name} {before} removed"
            return "", f"{name} {before} → {today}"
        case "code":
            file = module_file(f"{PACKAGE}.{name}")
            package = file is not None and file.name == "__init__.py"
            words = f"{name.replace('.', '/')}{'/__init__' if package else ''}.py"
            kind = "new code in " if before == "–" else "code changed in "
            return ("code no longer used: " if today == "–" else kind), words
        case "inputs":
            kind = "new input " if before == "–" else "changed input "
            return ("input no longer used: " if today == "–" else kind), name
        case "provenance":
            return "", "no provenance in the file: another program or version wrote it"
        case "content":
            return "not the file that the step wrote: ", name
        case "step" | "format":
            return "", f"{entry} {before} → {today}"
    raise ValueError(entry)


def _short(value: object) -> str:
    """For a line: [1, 32] stays, a long list is cut."""
    if value is None:
        return "–"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
