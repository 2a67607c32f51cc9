"""Phone labels in the format of CPC's alignments of LibriSpeech (Rivière et al., 2020): a text file
with a line for each utterance, its name and then one whole number for each 10 ms."""

from collections.abc import Container
from pathlib import Path

import numpy as np

from ntkcond.run.errors import UserError

# Alignments may count the last window of 25 ms: labels and frames differ by up to two.
TOLERANCE = 2


def read(path: Path, wanted: Container[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Labels of the wanted utterances, {name: (labels,) int32}, and the names of the others.

    Raises UserError with file and line for an unreadable file, a label that is no whole number
    from 0 on, an utterance with two lines.
    """
    labels: dict[str, np.ndarray] = {}
    others, seen = [], {}
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                name, *rest = line.split(None, 1) or [""]
                if not name:
                    continue
                where = f"{path}, line {number}"
                if seen.setdefault(name, number) != number:
                    raise UserError(f"{where}: {name} has a line already, {seen[name]}. Delete one")
                if name in wanted:
                    labels[name] = _numbers("".join(rest), where)
                else:
                    others.append(name)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. Correct the data set's labels") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as text ({error})") from error
    return labels, others


def _numbers(text: str, where: str) -> np.ndarray:
    try:
        numbers = np.array(text.split(), dtype=np.int32)
    except (ValueError, OverflowError):
        wrong = next(word for word in text.split() if not word.isdecimal() or len(word) > 9)
        raise UserError(f"{where}: {wrong!r} is no label; labels are whole numbers") from None
    if len(numbers) and numbers.min() < 0:
        raise UserError(f"{where}: {numbers.min()} is no label; labels are whole numbers from 0 on")
    return numbers
