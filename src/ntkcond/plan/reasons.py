"""Why jobs run, in words: kernel × 22: width 512 → 1024."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.plan.freshness import Difference, Freshness
from ntkcond.plan.graph import PATTERNS, Job
from ntkcond.run.digests import PACKAGE, module_file
from ntkcond.run.record import read

SHOWN = 5  # differences of one kind in a line
LONGEST = 40  # characters of a setting's value


def of_run(freshness: Freshness, jobs: Sequence[tuple[str, Sequence[str], Any]]) -> str:
    """A line for each rule and reason. jobs: those that will run, by rule, outputs and Snakemake's
    reason, in their order."""
    outputs = {path for _, paths, _ in jobs for path in paths}
    order = {rule: position for position, rule in enumerate([*PATTERNS, *SPECS])}
    groups = Counter(
        (rule, "; ".join(_reasons(freshness, paths, reason, outputs)))
        for rule, paths, reason in sorted(jobs, key=lambda job: order.get(job[0], -1))
    )
    return "\n".join(["Why these jobs run:", *_lines(groups)])


def _reasons(
    freshness: Freshness, paths: Sequence[str], reason: Any, will_run: Set[str]
) -> list[str]:
    if reason.incomplete_output:
        return ["the last run left it incomplete"]
    graph = freshness.graph
    if not all(graph.at(path).exists() for path in paths):
        return ["not built yet"]
    job = graph.maker(paths[0])
    differences = freshness.differences(job) if job else []
    words = in_words(d for d in differences if d.aspect != "inputs" or d.name not in will_run)
    updated = {graph.name(str(path)) or str(path) for path in reason.updated_input}
    if changed := sorted(updated - will_run):
        words.append(f"changed file {listed(changed)}")
    if job:
        rebuilt = (path for files in job.inputs.values() for path in files if path in will_run)
        if rules := dict.fromkeys(graph.maker_of(path).rule for path in rebuilt):
            words.append(f"input rebuilt: {listed(list(rules))}")
    return words or ["forced by the command line" if reason.forced else "asked for"]


def of_file(freshness: Freshness, job: Job, path: str) -> tuple[bool, str]:
    """Whether a file of the job is up to date, and why: what differs anywhere upstream, or what the
    file was made with."""
    by_job = {up: freshness.differences(up) for up in freshness.graph.upstream(job)}
    stale = {output for up, differences in by_job.items() if differences for output in up.outputs}
    groups: Counter[tuple[str, str]] = Counter()
    for up, differences in by_job.items():
        words = in_words(d for d in differences if d.aspect != "inputs" or d.name not in stale)
        if words:
            groups[up.rule, "; ".join(words)] += 1
    if not Path(path).exists():
        return False, f"{path} does not exist: snakemake {path} makes it"
    if stale:
        return False, "\n".join([f"{path} is out of date:", *_lines(groups)])
    return True, "\n".join([f"{path} is up to date. It was made with:", *_made_with(job)])


def _made_with(job: Job) -> list[str]:
    made_with = read(job.outputs[-1])
    if made_with is None:
        return ["    (no provenance in it: accepted by snakemake --touch)"]
    inputs = [name for files in made_with["inputs"].values() for name in files]
    packages = ", ".join(" ".join(entry) for entry in made_with["versions"].items())
    return [
        f"    step: ntkcond.steps.{made_with['step']}",
        f"    settings: {', '.join(f'{k}: {v}' for k, v in made_with['settings'].items())}",
        f"    inputs: {listed(inputs) or 'none'}",
        f"    code: {', '.join(made_with['code'])}",
        f"    packages: {packages}",
    ]


def _lines(groups: Counter[tuple[str, str]]) -> list[str]:
    """kernel × 22: width 512 → 1024"""
    return [
        f"    {rule}{f' × {count}' if count > 1 else ''}: {words}"
        for (rule, words), count in groups.items()
    ]


def in_words(differences: Iterable[Difference]) -> list[str]:
    """One entry for each kind of difference."""
    kinds: dict[str, list[str]] = {}
    for difference in dict.fromkeys(map(_hashable, differences)):
        kind, words = _in_words(difference)
        kinds.setdefault(kind, []).append(words)
    return [f"{kind}{listed(words)}" for kind, words in kinds.items()]


def listed(words: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _hashable(difference: Difference) -> Difference:
    return difference._replace(before=_short(difference.before), today=_short(difference.today))


def _in_words(difference: Difference) -> tuple[str, str]:
    """What kind of change it is, and which."""
    aspect, name, before, today = difference
    match aspect:
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
            return "", f"{aspect} {before} → {today}"
    raise ValueError(aspect)


def _short(value: object) -> str:
    """For a line: [1, 32] stays, a long list is cut."""
    if value is None:
        return "–"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
