"""An artefact's files: its numbers as .csv, pictures, texts; and its provenance.

All of them name the data sets that the config lists and that could not be had. In a table, such a
data set has a row with its name and nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

from ntkcond.datasets.registry import title
from ntkcond.run.files import write_csv, write_provenance, write_text


def write(
    module: ModuleType,
    numbers: pd.DataFrame,
    path: Path,
    suffixes: Iterable[str],
    record: dict | None = None,
    missing: Sequence[str] = (),
) -> None:
    """Writes a file for each suffix beside `path`, and its provenance in provenance/{name}.json.

    missing: data sets, for which the numbers of a figure get a row each, and texts a last line."""
    pictured = ".png" in suffixes
    write_csv(path.with_suffix(".csv"), with_missing(numbers, missing) if pictured else numbers)
    drawn = draw(module, numbers, missing) if pictured else None
    files = [path.with_suffix(suffix) for suffix in suffixes]
    for file in files:
        if file.suffix in (".pdf", ".png"):
            drawn.save(file, record)
        elif file.suffix != ".csv":
            text: Callable[[pd.DataFrame], str] = getattr(module, TEXTS[file.suffix])
            note = LAST_LINES[file.suffix].format(missing_in_words(missing)) if missing else ""
            write_text(file, text(numbers) + note)
    if record is not None:
        write_provenance(files, record)


TEXTS = {".md": "markdown", ".html": "html"}  # the module's function for each
LAST_LINES = {".md": "\n{}\n", ".html": "\n<p>{}</p>\n"}


def draw(module: ModuleType, numbers: pd.DataFrame, missing: Sequence[str] = ()):
    """The picture (`ntkcond.artefacts.style.Picture`) of an artefact's numbers. missing: data sets
    that it names as such."""
    drawn = module.draw(numbers)
    if missing:
        drawn.note(missing_in_words(missing))
    return drawn


def missing_in_words(datasets: Iterable[str]) -> str:
    """For readers of a figure or text."""
    return f"Missing: {', '.join(map(title, datasets))}, whose raw files were not available."


def with_missing(numbers: pd.DataFrame, datasets: Sequence[str]) -> pd.DataFrame:
    """With a last row for each of these data sets; a table without data sets stays as it is. Whole
    numbers stay whole beside what is empty."""
    if not datasets or "dataset" not in numbers:
        return numbers
    kinds = {"integer": "Int64", "bool": "boolean"}
    types = {name: kind for dtype, kind in kinds.items() for name in numbers.select_dtypes(dtype)}
    rows = range(len(numbers) + len(datasets))
    longer = numbers.astype(types).reset_index(drop=True).reindex(rows)
    longer.loc[len(numbers) :, "dataset"] = list(datasets)
    return longer


def read(path: Path | str) -> tuple[pd.DataFrame, list[str]]:
    """An artefact's CSV: its numbers, and the data sets that are missing from it."""
    numbers = pd.read_csv(path)
    if "dataset" not in numbers:
        return numbers, []
    empty = numbers.drop(columns="dataset").isna().all(axis=1)
    if not empty.any():
        return numbers, []
    # Once more without them: beside an empty cell a whole number is read as a float.
    lines = [1 + row for row in numbers.index[empty]]
    return pd.read_csv(path, skiprows=lines), list(numbers.dataset[empty])


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right."""
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
