"""An artefact's files: its numbers as .csv, pictures, texts; and its provenance."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

from ntkcond.run.files import write_csv, write_provenance, write_text


def write(
    module: ModuleType,
    numbers: pd.DataFrame,
    path: Path,
    suffixes: Iterable[str],
    record: dict | None = None,
) -> None:
    """Writes a file for each suffix beside `path`, and its provenance in provenance/{name}.json."""
    write_csv(path.with_suffix(".csv"), numbers)
    drawn = module.draw(numbers) if ".png" in suffixes else None
    files = [path.with_suffix(suffix) for suffix in suffixes]
    for file in files:
        if file.suffix in (".pdf", ".png"):
            drawn.save(file, record)
        elif file.suffix != ".csv":
            text: Callable[[pd.DataFrame], str] = getattr(module, TEXTS[file.suffix])
            write_text(file, text(numbers))
    if record is not None:
        write_provenance(files, record)


TEXTS = {".md": "markdown", ".html": "html"}  # the module's function for each


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right."""
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
