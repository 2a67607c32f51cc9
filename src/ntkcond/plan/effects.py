"""Which of the settings that were given change nothing.

The graph itself is asked: a setting has an effect if another value would change a job, its settings
or its inputs. So no list of what reads which setting has to be kept.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.plan.graph import Graph, Job

# Settings of how, not what, is computed: in no job's settings.
UNRECORDED = (
    "data_dir", "device", "keep_kernels", "checkpoint_minutes", "mirrors", "missing", "ranks",
)  # fmt: skip

Path = tuple[str, ...]


def unused(
    graph: Graph, default: dict, given: dict, command_line: dict, run: Sequence[Job]
) -> list[str]:
    """A line for each given setting without effect. Those of the command line, typed for one run,
    are judged by its jobs, up to date or not; others, of files, by all that the config can make,
    where they are not the default anyway."""
    typed = set(_leaves(command_line))
    written = {
        path
        for path in set(_leaves(given)) - typed
        if _at(graph.config, path) != _at(default, path)
    }
    everything = [job for name in SPECS for job in graph.upstream(graph.job(name))]
    possible = list(dict.fromkeys([*run, *everything]))
    lines = [
        *_lines(graph, sorted(typed), run, "nothing in this run depends on it"),
        *_lines(graph, sorted(written), possible, "no figure depends on it"),
    ]
    return list(dict.fromkeys(lines)) if run else []


def _leaves(settings: dict, above: Path = ()) -> Iterator[Path]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        elif key not in UNRECORDED:
            yield (*above, key)


def _lines(graph: Graph, paths: Iterable[Path], jobs: Sequence[Job], why: str) -> Iterator[str]:
    for path in paths:
        value = _at(graph.config, path)
        if value is None or _has_effect(graph, path, jobs):  # None: taken back by null
            continue
        if path[0] == "datasets" and path[1] not in _datasets(jobs):
            yield f"{'.'.join(path[:2])} has no effect: {why}"
        elif overriding := _overriding(graph, path, jobs):
            if set(map(str, overriding.values())) != {str(value)}:
                words = ", ".join(f"{'.'.join(place)}: {own}" for place, own in overriding.items())
                yield f"{'.'.join(path)}: {value} has no effect, overridden by {words}"
        else:
            yield f"{'.'.join(path)}: {value} has no effect: {why}"


def _has_effect(graph: Graph, path: Path, jobs: Sequence[Job]) -> bool:
    config = copy.deepcopy(graph.config)
    _at(config, path[:-1])[path[-1]] = _another(_at(config, path))
    other = Graph(config, graph.project, folder=graph.folder)
    try:
        return any(_what(job) != _what(other.job(job.rule, **job.wildcards)) for job in jobs)
    except Exception:  # whatever a senseless value breaks is an effect, too
        return True


def _what(job: Job) -> tuple:
    return job.rule, job.inputs, job.settings, job.chosen, job.raw


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case list():
            return [_another(value[0]), *value[1:]] if value else ["?"]
    return f"{value}?"


def _at(config: dict, path: Path) -> Any:
    """The value there; None if it is not set."""
    here: Any = config
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    return here


def _overriding(graph: Graph, path: Path, jobs: Sequence[Job]) -> dict[Path, object]:
    """The data sets' own settings that the jobs take in place of the one at `path`."""
    places = [("datasets", name, *path) for name in sorted(_datasets(jobs))]
    own = {place: _at(graph.config, place) for place in places}
    return {
        place: value
        for place, value in own.items()
        if value is not None and _has_effect(graph, place, jobs)
    }


def _datasets(jobs: Iterable[Job]) -> set[str]:
    return {job.wildcards["dataset"] for job in jobs if "dataset" in job.wildcards}
