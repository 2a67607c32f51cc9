"""What the report says of an artefact beside its caption: settings, steps, versions, code."""

import base64
import functools
import html
from pathlib import Path

from ntkcond.artefacts.registry import SPECS
from ntkcond.plan.graph import Graph, Job
from ntkcond.run.record import record, short_digest

# In an order that the report, which sorts, keeps: the picture first.
FORMS = {
    ".png": "as a picture (PNG)",
    ".pdf": "as vectors (PDF)",
    ".html": "as a page (HTML)",
    ".md": "as text (Markdown)",
    ".csv": "numbers (CSV)",
}
# Settings of a step that say nothing of a result's numbers, or that its artefact's name says.
UNSAID = ("activation", "depth", "artefact", "settings", "about")


def about(graph: Graph, name: str) -> dict:
    """name: of an artefact. caption; missing: data sets that it lacks; made_with: a line for each
    group of jobs that it depends on, with their settings; steps: a line for each of their steps,
    with versions of packages and the digest of its code; left_out: what each figure lacks."""
    jobs = list(graph.upstream(graph.job(name)))
    return {
        "name": name,
        "caption": SPECS[name].caption,
        "missing": graph.job(name).settings.get("about", {}).get("missing", []),
        "made_with": _settings(graph, jobs) or ["closed forms alone"],
        "steps": _steps(jobs),
        "figure": ".png" in SPECS[name].files,
        "all_steps": steps_of_all(graph),
        "left_out": dict(graph.left_out),
    }


def embed(picture: Path, page: Path) -> None:
    """Writes a page with nothing but the picture, if there is one."""
    if picture.is_file():
        title = html.escape(SPECS[picture.stem].title)
        data = base64.b64encode(picture.read_bytes()).decode("ascii")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'<img alt="{title}" src="data:image/png;base64,{data}">\n', "utf-8")


@functools.cache
def steps_of_all(graph: Graph) -> list[tuple[str, str, str]]:
    """For each step of the whole workflow its name, code digest and packages."""
    by_modules: dict[tuple[str, ...], tuple[str, str, str]] = {}
    for name in SPECS:
        for job in graph.upstream(graph.job(name)):
            by_modules.setdefault(job.modules, _step(job))
    return sorted(by_modules.values())


def _settings(graph: Graph, jobs: list[Job]) -> list[str]:
    """Jobs that differ in network and depth alone are one line."""
    lines: dict[str, dict] = {}
    for job in jobs:
        if job.rule in SPECS:
            if values := job.settings.get("settings"):
                lines[job.rule] = dict(values)
            continue
        dataset, sweep = job.wildcards["dataset"], job.wildcards.get("sweep", "")
        words = " ".join(filter(None, [job.rule, sweep, f"``{dataset}``"]))
        line = lines.setdefault(words, {})
        for key in ("network", "depth"):
            if key in job.wildcards:
                line.setdefault(f"{key}s", {})[job.wildcards[key]] = None
        line |= {key: value for key, value in job.settings.items() if key not in UNSAID}
    return [f"{words}: {_in_words(values)}" for words, values in lines.items()]


def _in_words(values: dict) -> str:
    return ", ".join(
        f"{key.replace('_', ' ').replace('block', 'n')} {_listed(value)}"
        for key, value in values.items()
    )


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)


def _steps(jobs: list[Job]) -> list[str]:
    by_modules = {job.modules: _step(job) for job in jobs}
    return [f"{name}: {packages}; code ``{code}``" for name, code, packages in by_modules.values()]


def _step(job: Job) -> tuple[str, str, str]:
    source = job.settings.get("source", job.settings.get("subset"))
    name = f"{job.rule} ``{source}``" if source else job.rule
    made_with = record(job.modules, {}, {})
    packages = ", ".join(" ".join(entry) for entry in made_with["versions"].items())
    return name, short_digest(made_with["code"]), packages
