"""An artefact's numbers as CSV, and tables in texts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd


def read(path: Path | str) -> pd.DataFrame:
    """An artefact's CSV, each number as it was written."""
    return pd.read_csv(path)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right."""
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
