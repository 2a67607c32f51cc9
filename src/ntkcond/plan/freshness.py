"""Is a result what the config, the code and its inputs would make today?

Each file's own record is compared with the one that it would get (`ntkcond.plan.graph`), aspect by
aspect. The aspects are Snakemake's rerun triggers, and `--rerun-triggers` chooses among them:
params (settings), code, software-env (versions of packages), input.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ntkcond.plan.graph import RECORDED, Graph, Job
from ntkcond.run.errors import UserError
from ntkcond.run.record import ASPECTS, digest, read, sidecar

TRIGGERS = frozenset(ASPECTS)
ACCEPTED = RECORDED / "accepted.json"


class Difference(NamedTuple):
    """aspect: a key of a record, or `provenance` or `content` where the file itself is not as it
    was; name: of the setting, module, package or file; before, today: None where it is not."""

    aspect: str
    name: str
    before: object = None
    today: object = None


class Freshness:
    """triggers: those of Snakemake's that count."""

    def __init__(self, graph: Graph, triggers: Iterable[str] = TRIGGERS) -> None:
        self.graph = graph
        self.triggers = TRIGGERS & set(triggers)
        self._records: dict[str, dict | None] = {}
        self._expected: dict[Job, dict] = {}
        self._differences: dict[str, list[Difference]] = {}
        self._accepted = _read_json(ACCEPTED)

    def differences(self, job: Job) -> list[Difference]:
        """Why the job's outputs are out of date: empty where they are as they should be, or all
        missing. What rebuilds an input is the input's difference, not the job's."""
        name = job.outputs[0]
        if name not in self._differences:
            self._differences[name] = []  # an artefact's own files are no inputs of it
            self._differences[name] = self._compare(job)
        return self._differences[name]

    def digest_of(self, path: str) -> str:
        """Of the record that a result has, or will have once it is rebuilt."""
        job = self.graph.maker_of(path)
        made_with = self._record(path)
        if made_with is None or self.differences(job):
            made_with = self._today(job)
        return digest(made_with)

    def accept(self, jobs: Iterable[Job]) -> None:
        """Takes their outputs for what they should be, as `snakemake --touch` asks."""
        jobs = set(jobs)
        inputs_first = dict.fromkeys(up for job in jobs for up in self.graph.upstream(job))
        for job in inputs_first:
            if job in jobs:
                self._expected.clear()  # of what was accepted so far, the own record counts
                made_with = self._record(job.outputs[-1])
                self._accepted[str(self.graph.at(job.outputs[0]))] = self._pair(job, made_with)
                self._differences[job.outputs[0]] = []  # its users then take it as it is
        ACCEPTED.parent.mkdir(parents=True, exist_ok=True)
        ACCEPTED.write_text(json.dumps(self._accepted, indent=1), "utf-8")

    def _record(self, path: str) -> dict | None:
        """A result's own record, read once."""
        if path not in self._records:
            place = self.graph.at(path)
            self._records[path] = read(place, self.graph.is_whole) if place.exists() else None
        return self._records[path]

    def _pair(self, job: Job, made_with: dict | None) -> list[str]:
        return [digest(made_with or {}), digest(self._today(job))]

    def _today(self, job: Job) -> dict:
        """The record that the job's outputs would get, computed once."""
        if job not in self._expected:
            self._expected[job] = self.graph.expected(job, self.digest_of)
        return self._expected[job]

    def _compare(self, job: Job) -> list[Difference]:
        outputs = [path for path in job.outputs if self.graph.at(path).exists()]
        if not self.triggers or not outputs:
            return []
        made_with = self._record(job.outputs[-1])
        accepted = self._accepted.get(str(self.graph.at(job.outputs[0])))
        if accepted and accepted == self._pair(job, made_with):
            return []
        if made_with is None:
            damaged = not self._is_whole(job.outputs[-1])
            return [Difference("content" if damaged else "provenance", job.outputs[-1])]
        today = self._today(job)
        differences = [
            Difference(entry, *values)
            for trigger in ASPECTS
            if trigger in self.triggers
            for entry in ASPECTS[trigger]
            for values in _entries(made_with.get(entry), today[entry], ())
        ]
        differences = [d for d in differences if d.aspect != "inputs" or self._other_input(d)]
        if "input" in self.triggers and not differences:
            differences = _other_order(made_with["inputs"], today["inputs"])
        return differences or [
            Difference("content", path) for path in outputs if not self._is_whole(path)
        ]

    def _other_input(self, difference: Difference) -> bool:
        """Whether the digests of an input differ in an aspect that counts: of a missing one, all
        that is known of what it would be."""
        digests = (str(difference.before).split("-"), str(difference.today).split("-"))
        if any(len(parts) != len(ASPECTS) for parts in digests):
            return True
        pairs = zip(ASPECTS, *digests, strict=True)
        return any(trigger in self.triggers and old != new for trigger, old, new in pairs)

    def _is_whole(self, path: str) -> bool:
        """Whether a file is the one that its step wrote, where that is known."""
        place = self.graph.at(path)
        if path.endswith(".h5"):
            try:
                return self.graph.is_whole(place)
            except OSError as error:
                reason = error.strerror or error
                raise UserError(f"{place}: cannot be read ({reason}). Delete it, or mend") from None
        if path.endswith(".json"):
            return True
        known = _read_json(sidecar(place)).get("files", {}).get(place.name)
        return known == self.graph.sha256_of(place)


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


def _read_json(path: Path) -> dict:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
