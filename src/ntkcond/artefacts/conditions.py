"""What the numbers of a figure are of: n, blocks, width and initialisations, for its legend."""

import numpy as np
import pandas as pd

from ntkcond.artefacts import style
from ntkcond.datasets.registry import title


def in_words(numbers: pd.DataFrame, *more: str) -> str:
    """A table in words: n and blocks of each data set, the activation if it has one alone, m,
    initialisations, as far as it has these columns; and more words."""
    words: dict[str, list[str]] = {}
    if "n" in numbers and "dataset" in numbers:
        for name, rows in numbers.groupby("dataset", sort=False):
            words.setdefault(_blocks(rows), []).append(title(name))
    several = len(words) > 1
    parts = [f"{', '.join(names)}: {size}" if several else size for size, names in words.items()]
    if "activation" in numbers and numbers.activation.nunique() == 1:
        parts.append(numbers.activation.iloc[0])
    if "width" in numbers:
        numbers = numbers[np.isfinite(numbers.width)]  # of infinite width there is no random number
        parts += [f"width $m$ = {style.span(numbers.width)}"] if len(numbers) else []
    if "seeds" in numbers and numbers.seeds.notna().any():
        count = style.span(numbers.seeds.dropna())
        parts.append(f"{count} initialisation{'s' * (count != '1')}")
    return "; ".join([*parts, *filter(None, more)]) + "."


def _blocks(rows: pd.DataFrame) -> str:
    size = f"$n$ = {style.span(rows.n)}"
    if "blocks" not in rows:
        return size
    count = style.span(rows.blocks.dropna())
    return f"{count} block{'s' * (count != '1')} of {size}"
