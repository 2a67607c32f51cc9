"""What pages state of results that git keeps: tables, numbers in sentences, pictures.

    python docs/pages.py          what differs from the results
    python docs/pages.py --write  writes today's

A table stands between two marker lines; docs/tables.py has its function. A number in a sentence
has a row in docs/numbers.csv: `words` around it, with {} in its place and # for another number;
`csv`; `column`, or an expression of columns; `rows`, as for `pandas.DataFrame.query`: they have one
value, or `take` says min, max or count. `over`: their values are divided by those of these rows.
A picture has digests of its numbers and of the code that drew it (docs/pictures.py).
"""

import csv
import difflib
import functools
import re
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np

import pictures
import tables

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- table (\w+) -->\n)(.*?)(<!-- end of table -->)", re.S)
NUMBER = r"(?:[+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:·10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?)"


Number = namedtuple("Number", "page words csv column rows take over")
with Path(__file__).with_name("numbers.csv").open(encoding="utf-8", newline="") as file:
    NUMBERS = [Number(**row) for row in csv.DictReader(file)]


@functools.cache
def texts() -> dict[str, str]:
    """Every page in git, and captions that have a number, by their paths."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/README.md")]
    found += [ROOT / "docs/measured/README.md", ROOT / "paper/paper.md"]
    names = {path.relative_to(ROOT).as_posix() for path in found} | {n.page for n in NUMBERS}
    return {name: (ROOT / name).read_text("utf-8") for name in sorted(names)}


@functools.cache
def value(of: Number) -> float:
    """What the results say. Raises ValueError if the rows do not give one number."""
    everything = tables.kept(of.csv.removesuffix(".csv"))
    rows = everything.query(of.rows) if of.rows else everything
    if of.take == "count":
        return len(rows)
    cells = rows.eval(of.column).to_numpy()
    if of.over:
        cells = cells / everything.query(of.over).eval(of.column).to_numpy()
    if of.take:
        return float({"min": np.nanmin, "max": np.nanmax}[of.take](cells))
    if len(set(cells)) != 1:
        raise ValueError(f"{of.csv}: {len(set(cells))} values of {of.column} in: {of.rows}")
    return float(cells[0])


def like(stated: str, number: float) -> str:
    """A number in the form of a stated one: as many decimals, or a power of ten."""
    sign = "−" if number < 0 else "+" if stated.startswith("+") else ""
    mantissa, times, _ = stated.partition("·")
    decimals = len(mantissa.partition(".")[2])
    if times:
        return sign + tables.power(abs(number), decimals)
    if not decimals and abs(number) >= 1000:
        return sign + tables.digits(abs(number), max(3, len(mantissa.replace(",", "").rstrip("0"))))
    return f"{sign}{abs(number):,.{decimals}f}"


def place(text: str, words: str) -> tuple[int, int]:
    """Where the number of these words stands in a text. Raises ValueError if not just once."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    pattern = pattern.replace(r"\#", NUMBER).replace(r"\{\}", f"(?P<this>{NUMBER})")
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise ValueError(f"{len(found)} times, not once: {words}")
    return found[0].span("this")


def todays(name: str, text: str) -> tuple[str, list[str]]:
    """A page as it should be; and rows of docs/numbers.csv that say nothing."""
    problems, places = [], []
    for of in (of for of in NUMBERS if of.page == name):
        try:
            start, end = place(text, of.words)
            places.append((start, end, like(text[start:end], value(of))))
        except (ValueError, KeyError, NameError, SyntaxError, OSError) as error:
            problems.append(f"{name}: {error}")
    for start, end, number in sorted(places, reverse=True):
        text = text[:start] + number + text[end:]

    def made(match: re.Match) -> str:
        if not hasattr(tables, match[2]):
            problems.append(f"{name}: docs/tables.py has no {match[2]}")
            return match[0]
        return f"{match[1]}\n{tables.markdown(getattr(tables, match[2])())}\n\n{match[4]}"

    return TABLE.sub(made, text), problems


def differences(name: str, text: str) -> list[str]:
    """Lines in which a page differs from what it should be, and rows that say nothing."""
    should, problems = todays(name, text)
    lines = difflib.unified_diff(text.splitlines(), should.splitlines(), name, name, "", "", 0, "")
    return [*problems, *lines]


def main(write: bool) -> int:
    """The exit status: whether anything differs and is not written."""
    found = [line for name, text in texts().items() for line in differences(name, text)]
    old = [name for name in pictures.NAMES if not pictures.is_todays(name)]
    found += [f"docs/{name}.png: of other numbers, or drawn by other code" for name in old]
    print("\n".join(found), end="\n" * bool(found))
    for name in old * write:
        pictures.draw(name)
    for name in texts().keys() if write else ():
        (ROOT / name).write_text(todays(name, texts()[name])[0], "utf-8")
    return int(bool(found) and not write)


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv))
