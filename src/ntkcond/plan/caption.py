"""What the report says of an artefact beside its caption: settings, steps, versions, code."""

import base64
import html
from pathlib import Path

from ntkcond.artefacts.registry import SPECS
from ntkcond.plan.graph import Graph, Job
from ntkcond.run.record import short_digest

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
    artefact = graph.job(name)
    last = graph.artefact(name)[-1]
    jobs = graph.upstream(last)
    return {
        "name": name,
        "caption": SPECS[name].caption,
        "missing": artefact.settings.get("about", {}).get("missing", []),
        "made_with": _settings(jobs) or ["closed forms alone"],
        "steps": list({job.modules: _step(graph, job) for job in jobs}.values()),
        "figure": ".png" in SPECS[name].files,
        "left_out": dict(graph.left_out),
    }


def embed(picture: Path, page: Path) -> None:
    """Writes a page with nothing but the picture, if there is one."""
    if picture.is_file():
        title = html.escape(SPECS[picture.stem].title)
        data = base64.b64encode(picture.read_bytes()).decode("ascii")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'<img alt="{title}" src="data:image/png;base64,{data}">\n', "utf-8")


def _settings(jobs: list[Job]) -> list[str]:
    """Jobs that differ in network and depth alone are one line."""
    lines: dict[str, dict] = {}
    for job in jobs:
        if job.artefact:
            if values := job.settings.get("settings"):
                lines[job.rule] = dict(values)
            continue
        sweep = job.wildcards.get("sweep", "")
        words = " ".join(filter(None, [job.rule, sweep, f"``{job.wildcards['dataset']}``"]))
        line = lines.setdefault(words, {})
        for key in (key for key in ("network", "depth") if key in job.wildcards):
            line.setdefault(f"{key}s", {})[job.wildcards[key]] = None
        line |= {key: value for key, value in job.settings.items() if key not in UNSAID}
    return [
        f"{words}: {', '.join(map(_in_words, *zip(*values.items(), strict=True)))}"
        for words, values in lines.items()
        if values
    ]


def _in_words(key: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)
    return f"{key.replace('_', ' ').replace('block', 'n')} {text}"


def _step(graph: Graph, job: Job) -> str:
    source = job.settings.get("source", job.settings.get("subset"))
    made_with = graph.code(job)
    packages = ", ".join(map(" ".join, made_with["versions"].items()))
    name = f"{job.rule} ``{source}``" if source else job.rule
    return f"{name}: {packages}; code ``{short_digest(made_with['code'])}``"
