"""What the report says of an artefact beside its caption: settings, steps, versions, code."""

import base64
import html
from collections.abc import Iterable, Mapping
from pathlib import Path

from ntkcond.artefacts.registry import SPECS
from ntkcond.run.record import short_digest

# In an order that the report, which sorts, keeps: the picture first.
FORMS = {
    ".png": "as a picture (PNG)",
    ".pdf": "as vectors (PDF)",
    ".html": "as a page (HTML)",
    ".md": "as text (Markdown)",
    ".csv": "numbers (CSV)",
}
UNSAID = ("activation", "depth")


def about(name: str, records: Mapping[str, dict]) -> dict:
    """name: of an artefact; records: of all that it was made of, inputs first, by path. caption;
    made_with: a line for each group of jobs, with their settings; steps: a line for each of their
    steps, with versions of packages and the digest of its code."""
    steps = {str(record["code"]): _step(record) for record in records.values()}
    return {
        "name": name,
        "caption": SPECS[name].caption,
        "made_with": _settings(records.values()) or ["closed forms alone"],
        "steps": list(steps.values()),
        "figure": ".png" in SPECS[name].files,
    }


def embed(picture: Path, page: Path) -> None:
    """Writes a page with nothing but the picture, if there is one."""
    if picture.is_file():
        title = html.escape(SPECS[picture.stem].title)
        data = base64.b64encode(picture.read_bytes()).decode("ascii")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'<img alt="{title}" src="data:image/png;base64,{data}">\n', "utf-8")


def _settings(records: Iterable[dict]) -> list[str]:
    """Jobs that differ in network and depth alone are one line."""
    lines: dict[str, dict] = {}
    for record in records:
        job, settings = record["wildcards"], record["settings"]
        if "artefact" in settings:
            if values := settings.get("settings"):
                lines[record["rule"]] = dict(values)
            continue
        sweep = job.get("sweep", "")
        words = " ".join(filter(None, [record["rule"], sweep, f"``{job['dataset']}``"]))
        line = lines.setdefault(words, {})
        for key in (key for key in ("network", "depth") if key in job):
            line.setdefault(f"{key}s", {})[job[key]] = None
        line |= {key: value for key, value in settings.items() if key not in UNSAID}
    return [
        f"{words}: {', '.join(map(_in_words, *zip(*values.items(), strict=True)))}"
        for words, values in lines.items()
        if values
    ]


def _in_words(key: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple | dict) else str(value)
    return f"{key.replace('_', ' ').replace('block', 'n')} {text}"


def _step(record: dict) -> str:
    source = record["settings"].get("source", record["settings"].get("subset"))
    packages = ", ".join(map(" ".join, record["versions"].items()))
    name = f"{record['rule']} ``{source}``" if source else record["rule"]
    return f"{name}: {packages}; code ``{short_digest(record['code'])}``"
