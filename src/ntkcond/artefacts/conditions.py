"""What the numbers of a figure are of: n, blocks, width and initialisations, for its legend."""

import numpy as np
import pandas as pd

from ntkcond.artefacts import style
from ntkcond.datasets import registry
from ntkcond.networks.activations import ACTIVATIONS

VARIANTS = {"unit": "norm 1"}  # what follows a source's name, in words
STUDIES = {"gaussian": "Gaussian"}  # names in studies


def title(name: str) -> str:
    """The name of a data set in figures: its source's, and what a name such as mnist_4000 or
    digits_unit adds. A user's own name stays."""
    for source in sorted(registry.SOURCES, key=len, reverse=True):
        more = name.removeprefix(f"{source}_")
        if more != name:
            words = f"{int(more):,} samples" if more.isdecimal() else VARIANTS.get(more)
            return f"{registry.title(source)}, {words}" if words else name
    return STUDIES.get(name) or registry.title(name)


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
        parts.append(ACTIVATIONS[numbers.activation.iloc[0]].title)
    if "width" in numbers:
        numbers = numbers[np.isfinite(numbers.width)]  # of infinite width there is no random number
        parts += [f"width $m$ = {style.span(numbers.width)}"] if len(numbers) else []
    if "seeds" in numbers and numbers.seeds.notna().any():
        parts.append(_initialisations(numbers[numbers.seeds.notna()]))
    return "; ".join([*parts, *filter(None, more)]) + "."


def _initialisations(numbers: pd.DataFrame) -> str:
    """How many; of which data set, where they differ and each has one number."""
    names: dict[str, list[str]] = {}
    if "dataset" in numbers and (numbers.groupby("dataset").seeds.nunique() == 1).all():
        for name, rows in numbers.groupby("dataset", sort=False):
            names.setdefault(style.span(rows.seeds), []).append(title(name))
    if len(names) < 2:
        return _counted(style.span(numbers.seeds), "initialisation")
    return ", ".join(
        f"{_counted(count, 'initialisation')} of {' and '.join(some)}"
        for count, some in names.items()
    )


def _counted(count: str, what: str) -> str:
    return f"{count} {what}{'s' * (count != '1')}"


def _blocks(rows: pd.DataFrame) -> str:
    size = f"$n$ = {style.span(rows.n)}"
    count = style.span(rows.blocks.dropna()) if "blocks" in rows else "1"
    return size if count == "1" else f"{_counted(count, 'block')} of {size}"
