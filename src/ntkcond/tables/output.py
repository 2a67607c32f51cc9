"""A table's two files: every number as .csv, and what people read first as Markdown."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from types import ModuleType

import pandas as pd

from ntkcond.storage import replacing, write_csv


def write(table: ModuleType, numbers: pd.DataFrame, arguments: Namespace) -> None:
    """Writes both beside `arguments.output`, whose suffix does not matter."""
    write_csv(arguments.output.with_suffix(".csv"), numbers)
    with replacing(arguments.output.with_suffix(".md")) as temporary:
        temporary.write_text(table.markdown(numbers), "utf-8")


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right."""
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
