"""Is a file what the config, the code and its inputs would make today?

Snakemake compares the same from run to run. This is for what it cannot see: files without its
metadata, results that travelled, files made by hand. A file's record (`ntkcond.run.record`) is
compared with the one that it would get today, and so are those of all that it was made of.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ntkcond.plan.graph import Graph, Job
from ntkcond.run.errors import UserError
from ntkcond.run.record import agree, digest, files_of, read, result_digest, upstream

SHOWN = 5  # differences in a line
LONGEST = 40  # characters of a setting's value


class Difference(NamedTuple):
    """words: width 512 → 1024; of an input, its name too; kind: the entry of the record."""

    words: str
    input: str = ""
    kind: str = ""


class Freshness:
    """Freshness of the jobs of a graph. A file that is gone, such as a kernel that was not to be
    kept, counts by the record that later files have of it (`survey`)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._gone: dict[str, dict] = {}
        self._surveyed: set[str] = set()
        self.record = functools.cache(self._read)
        self.differences = functools.cache(self._compare)
        self._today = functools.cache(self._expected)

    def survey(self, *targets: Job) -> list[Job]:
        """These jobs and all upstream, inputs first; reads their records, and those of files that
        are gone."""
        jobs = self.graph.upstream(*targets)
        for job in reversed(jobs):
            path = job.outputs[-1]
            if path not in self._surveyed and path.endswith(".h5") and self.record(path):
                self._gone |= upstream(self.graph.at(path))
            self._surveyed.add(path)
        return jobs

    def running(self, *targets: Job) -> list[Job]:
        """The jobs that bring the targets up to date, inputs first. As in Snakemake, a missing file
        counts where a job that runs takes it, and nowhere else."""
        graph, to_run, wanted = self.graph, [], set(targets)
        for job in reversed(graph.upstream(*targets)):
            there = all(graph.at(path).exists() for path in job.outputs)
            if job in wanted and (not there or self.differences(job)):
                to_run.append(job)
                wanted |= set(graph.makers(job))
        return to_run[::-1]

    def of_file(self, job: Job, path: str) -> tuple[bool, str]:
        """Whether a file of the job is up to date, and why: what differs anywhere upstream, or what
        the file was made with."""
        reasons = self.reasons(job)
        if not self.graph.at(path).exists():
            return False, f"{path} does not exist: snakemake {path} makes it"
        if reasons:
            return False, "\n    ".join([f"{path} is out of date:", *reasons])
        made_with = self.record(job.outputs[-1]) or {}
        lines = (f"    {entry}: {_listed(made_with[entry])}" for entry in made_with)
        return True, "\n".join([f"{path} is up to date. It was made with:", *lines])

    def reasons(self, *targets: Job) -> list[str]:
        """What differs for these and all upstream, a line for each rule and difference; of a job
        that differs only since its inputs do, nothing."""
        by_job = {job: self.differences(job) for job in self.survey(*targets)}
        stale = {
            output for up, differences in by_job.items() if differences for output in up.outputs
        }
        groups = Counter(
            (up.rule, in_words(first))
            for up, differences in by_job.items()
            if (first := [one for one in differences if one.input not in stale])
        )
        return [
            f"{rule}{f' × {count}' if count > 1 else ''}: {words}"
            for (rule, words), count in groups.items()
        ]

    def _read(self, path: str) -> dict | None:
        """The record in a result."""
        place = self.graph.at(path)
        return read(place, self.graph.is_whole) if place.exists() else self._gone.get(path)

    def digest_of(self, path: str) -> str:
        """The digest of a result that is up to date (`result_digest`); else of the record that it
        will have once it is rebuilt."""
        job = self.graph.maker(path)
        assert job, f"no rule makes {path}"
        made_with = self.record(job.outputs[-1])  # a table may be gone: its provenance has its sum
        if made_with is None or self.differences(job):
            return digest(self._today(job))
        return result_digest(self.graph.at(path), made_with)

    def _expected(self, job: Job) -> dict:
        """The record that the job's outputs would get today."""
        today = self.graph.expected(job, self.digest_of)
        before = self.record(job.outputs[-1])
        if job.folder and not job.folder.exists() and before:  # nobody can tell
            today["inputs"] |= before["inputs"]
        return today

    def _compare(self, job: Job) -> list[Difference]:
        """Why the job's outputs are out of date: empty where they are as they should be, or all
        missing."""
        outputs = [path for path in job.outputs if self.graph.at(path).exists()]
        before = self.record(job.outputs[-1])
        if not outputs and not before:
            return []
        today = self._today(job)
        if before is None:
            is_whole = self._is_whole(job.outputs[-1])
            return [Difference("no provenance in the file" if is_whole else "the file is damaged")]
        return (
            list(_compare(before, today))
            or [
                Difference(f"other order of {option}")
                for option, paths in today["inputs"].items()
                if list(before["inputs"][option]) != list(paths)
            ]
            or [Difference(f"{path} was changed") for path in outputs if not self._is_whole(path)]
        )

    def _is_whole(self, path: str) -> bool:
        """Whether a file is the one that its step wrote, where that is known."""
        place = self.graph.at(path)
        try:
            if path.endswith(".h5"):
                return self.graph.is_whole(place)
            digests = files_of(place)
            return path.endswith(".json") or digests.get(place.name) == self.graph.sha256_of(place)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{place}: cannot be read ({reason}). Delete it, or mend") from None


def _compare(before: Mapping, today: Mapping) -> Iterator[Difference]:
    """The entries that differ, of records."""
    old, new = dict(_entries(before)), dict(_entries(today))
    for path in dict.fromkeys([*old, *new]):
        kind, name, was, would = path[0], path[-1], old.get(path), new.get(path)
        if was == would or (kind == "inputs" and was and would and agree(str(was), str(would))):
            continue
        if kind in ("code", "inputs"):
            change = "changed" if path in old and path in new else "new" if path in new else "gone"
            yield Difference(f"{kind} {name} {change}", name if kind == "inputs" else "", kind)
        else:
            yield Difference(f"{name} {_short(was)} → {_short(would)}", kind=kind)


def _entries(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each value of dicts within dicts, with its keys."""
    if isinstance(value, dict):
        for key in value:
            yield from _entries(value[key], (*path, key))
    else:
        yield path, value


def in_words(differences: Sequence[Difference]) -> str:
    """In a line: the first of them, and how many more."""
    words = list(dict.fromkeys(one.words for one in differences))
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return "; ".join(words[:SHOWN]) + more


def _listed(entry: object) -> str:
    """An entry of a record: each name with its value or digest."""
    if not isinstance(entry, dict):
        return str(entry)
    names = (f"{path[-1]} {value}" for path, value in _entries(entry))
    return ", ".join(names) or "none"


def _short(value: object) -> str:
    """For a line: [1, 32] stays, a long list is cut."""
    text = "–" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
