"""An artefact's numbers as CSV, and tables in texts.

A data set that the config lists and that could not be had has a row with its name and nothing else.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd


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
    whole = pd.read_csv(path, skiprows=lines)
    return whole, list(numbers.dataset[empty])


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right."""
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
