"""Numbers in pages, each beside its source; today's values are written into the pages.

    κ is 4,270<!-- full_size/fig2 kappa_mean mnist relu depth=10 --> at L = 10

    python docs/stated.py            what differs from the files
    python docs/stated.py --write    writes it into the pages

A source is, in this order:

- `-`: no result, but a setting, a definition, another's number. It is for all numbers in the 30
  characters before it; in the caption of a figure for the last one;
- a name: a `quantity` of docs/measured/*.csv, or one of docs/derived.py;
- a CSV, a column and conditions: `most whole/fig_whole kappa_mean/infinite_kappa_mean mnist n=512`.
  A folder is one of studies; without one, of tests/reference/default or docs/measured. `a/b`: the
  ratio of two columns. A bare word is the cell of any column. Before the CSV, `least` and `most` of
  many rows, `count` of rows. After a colon, two sets of conditions and the ratio of their rows:
  `least full_size/fig2 kappa_mean relu: depth=1 / depth=10`;
- the same with `vs` in place of `/`, or with `steps` before it, or `NAME vs NAME`, behind a word
  that compares: `falls`, `larger`. Each row of the first set is below (above) its row of the
  second; with `steps`, each row is below (above) the one before it.

docs/page_tables.py writes tables, between `<!-- table NAME -->` and `<!-- end of table -->`.
"""

import argparse
import difflib
import functools
import math
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs/measured"
FOLDERS = ("studies", "tests/reference/default", "docs/measured")

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
UNITS = {  # name: what it measures, and how many of the first such unit it is
    "s": ("time", 1), "ms": ("time", 1e-3), "min": ("time", 60), "h": ("time", 3600),
    "second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600),
    "B": ("memory", 1), "KB": ("memory", 1e3), "MB": ("memory", 1e6), "GB": ("memory", 1e9),
    "TB": ("memory", 1e12), "MiB": ("memory", 2**20), "GiB": ("memory", 2**30),
    "Gflop/s": ("rate", 1), "GFLOP/s": ("rate", 1), "°": ("angle", 1), "%": ("", 0.01), "": ("", 1),
}  # fmt: skip
WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "nineteen": 19, "twenty": 20, "thirty": 30,
    "sixty": 60, "half a": 0.5, "half an": 0.5,
}  # fmt: skip

POWER = "10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+"
DIGITS = rf"[+−]?(?:{POWER}|\d[\d,]*(?:\.\d+)?(?: ?· ?{POWER}|e[+-]\d+)?)"
NUMBER = rf"(?<![\w.]){DIGITS}(?<!,)(?![\w⁰¹²³⁴⁵⁶⁷⁸⁹])"
UNIT = r"(?:ms|s|min|h|[KMGT]i?B|B|G(?:flop|FLOP)/s|%|°|(?:second|minute|hour)s?)(?!\w)"
LONG_TIME = r"\d+ min \d\d s(?!\w)"
IN_WORDS = rf"\b(?:{'|'.join(WORDS)})\b"
STATED = rf"(?:{LONG_TIME}|(?:{DIGITS}|{IN_WORDS})(?: ?{UNIT})?)(?<![,])"

BELOW = "falls|fall|fell|lowers|lower|lowered|smaller|less|fewer|faster|reduces"
ABOVE = "grows|grow|grew|rises|rise|rose|raises|raise|raised|larger|higher|more|slower|triples"
COMPARED = rf"(?<![\w-])(?:{BELOW}|{ABOVE})(?![\w-])"

KEY = re.compile(r"<!-- (.*?) -->", re.S)
TABLE = re.compile(r"(<!-- table (\S+) -->\n)(.*?)(\n<!-- end of table -->)", re.S)
CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*|``?[^`\n]*``?|\]\([^)\n]*\)", re.S | re.M)
GENERATED = re.compile(
    r"<!-- (states|settings|no results)\b.*?<!-- end[^>]*-->|<!-- table .*?<!-- end of table -->"
    r"|\A---\n.*?\n---\n",
    re.S,
)
CAPTION = re.compile(r"^!\[[^\n]*\n\s+(\*[^*\n].*?\*)$", re.S | re.M)  # without GENERATED


class Quantity(NamedTuple):
    value: float
    unit: str = ""


Value = float | str | Quantity


# Sources


@functools.cache
def table(path: str) -> pd.DataFrame:
    """A committed CSV by its path, from the root or from one of FOLDERS, with or without `.csv`."""
    path = path.removesuffix(".csv") + ".csv"
    paths = [ROOT / folder / path for folder in (".", *FOLDERS)]
    path_here = next((path for path in paths if path.is_file()), paths[0])
    return pd.read_csv(path_here, keep_default_na=False, na_values=[""])


class Values(dict):
    """The value of each source."""

    def __missing__(self, source: str) -> Value:
        return select(source)


@functools.cache
def values() -> Values:
    from derived import derived

    quantities = Values(derived())
    for path in sorted(MEASURED.glob("*.csv")):
        rows = table(path.name)
        if "quantity" in rows:
            for row in rows.itertuples():
                assert row.quantity not in quantities, f"{path.name}: {row.quantity} has two rows"
                unit = row.unit if isinstance(row.unit, str) else ""
                quantities[row.quantity] = Quantity(float(row.value), unit)
    return quantities


COMPARISONS: dict[str, Callable] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "=": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def where(rows: pd.DataFrame, conditions: str) -> pd.DataFrame:
    """The rows that meet all conditions: `depth=10`, or `relu` for the cell of any column."""
    for condition in conditions.split():
        if match := re.fullmatch(r"(\w+)(>=|<=|!=|=|>|<)(\S+)", condition):
            name, sign, wanted = match.groups()
            try:
                rows = rows[COMPARISONS[sign](rows[name].astype(float), float(wanted))]
            except ValueError:
                cells = rows[name].astype(str).str.replace(" ", "_")
                rows = rows[COMPARISONS[sign](cells, wanted)]
        else:
            words = rows.select_dtypes(["object", "str", "bool"])
            rows = rows[(words.astype(str) == condition).any(axis=1)]
    if rows.empty:
        raise KeyError(f"no row has: {conditions}")
    return rows


def column(rows: pd.DataFrame, name: str) -> np.ndarray:
    """A column, or the ratio of two."""
    above, _, below = name.partition("/")
    return (rows[above] / rows[below] if below else rows[above]).to_numpy()


def pairs(source: str) -> tuple[np.ndarray, np.ndarray]:
    """What shall be below (above), and what it is compared with."""
    if ":" not in source and " vs " in source:
        numbers = (values()[name] for name in source.split(" vs "))
        return tuple(np.array([getattr(x, "value", x)]) for x in numbers)
    shared, _, two = source.partition(":")
    steps, path, name, *conditions = re.fullmatch(
        r"(steps )?(\S+) (\S+)((?: \S+)*)", shared.strip()
    ).groups()
    rows = where(table(path), " ".join(conditions))
    if steps:
        numbers, depths = column(rows, name), rows.depth.to_numpy()
        later = np.flatnonzero(np.diff(depths) > 0)
        return numbers[later + 1], numbers[later]
    first, second = (column(where(rows, part), name) for part in re.split(" vs | / ", two))
    if len(first) != len(second):
        raise KeyError(f"{source}: {len(first)} rows and {len(second)}")
    return first, second


def select(source: str) -> Value:
    """The value of a source that is no name."""
    how, rest = re.fullmatch(r"(?:(least|most|count) )?(.*)", source).groups()
    if not re.match(r"\S+ \S+", rest):
        raise KeyError(f"{source}: neither a name, nor a CSV, a column and conditions")
    if ":" in rest:
        first, second = pairs(rest)
        cells = first / second
    else:
        path, name, *conditions = rest.split()
        rows = where(table(path), " ".join(conditions))
        if how == "count":
            return len(rows)
        cells = column(rows, name)
    if how:
        return float(min(cells) if how == "least" else max(cells))
    if len(set(cells)) != 1:
        raise KeyError(f"{source}: {len(set(cells))} values")
    return Quantity(float(cells[0]), "%") if "percent" in name else cells[0]


# Stated against measured


def read(stated: str) -> tuple[float, float, str]:
    """A number as it stands in a text: its value, half of its last digit, its unit."""
    if match := re.fullmatch(r"(\d+) min (\d\d) s", stated):
        return 60 * int(match[1]) + int(match[2]), 0.5, "s"
    unit = (re.search(rf" ?({UNIT})$", stated) or [""])[0]
    number, unit = stated.removesuffix(unit), unit.strip()
    unit = unit if unit in UNITS else unit.removesuffix("s")
    if number in WORDS:
        return WORDS[number], min(0.5, WORDS[number] / 2), unit
    number = re.sub(rf"^([+−]?)(?={POWER})", r"\g<1>1·", number).replace("−", "-")
    mantissa, _, exponent = number.replace(",", "").replace(" ", "").partition("·10")
    mantissa, _, e = mantissa.partition("e")
    scale = 10.0 ** int(exponent.translate(SUPERSCRIPTS) or e or 0)
    value, digits = float(mantissa), mantissa.lstrip("+-")
    if "." in digits:
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    else:  # 532,000 has three digits or more
        zeros = len(digits) - len(digits.rstrip("0"))
        half = max(0.5, min(0.5 * 10**zeros, 0.005 * abs(value)))
    return value * scale, half * scale, unit


def in_unit(value: Value, unit: str) -> float | None:
    """The number of these units; None, if the value is of another kind."""
    exact, own = value if isinstance(value, Quantity) else (value, "")
    (kind, scale), (own_kind, own_scale) = UNITS[unit or own], UNITS[own]
    if not own and kind:  # a plain number is meant in the text's unit, but a share in %
        own_kind, own_scale = kind, scale
    return exact * own_scale / scale if kind == own_kind else None


def agrees(stated: str, value: Value) -> bool:
    """Whether the value, rounded as the stated one, is the stated one."""
    if isinstance(value, str):
        return stated == value
    number, half, unit = read(stated)
    exact = in_unit(value, unit)
    return exact is not None and abs(number - exact) <= half * (1 + 1e-9)


def restated(stated: str, value: Value) -> str:
    """The value in the form of the stated one: as many digits, the same unit."""
    if isinstance(value, str):
        return value
    number, half, unit = read(stated)
    exact = in_unit(value, unit)
    if exact is None or (number and abs(math.log(abs(exact / number) or 1)) > math.log(50)):
        raise KeyError(f"{stated}, but {value} measured: a person must look")
    if re.fullmatch(LONG_TIME, stated):
        return f"{round(exact) // 60} min {round(exact) % 60:02d} s"
    suffix = (re.search(rf" ?{UNIT}$", stated) or [""])[0]
    digits = stated.removesuffix(suffix).lstrip("+−")
    sign = "−" if exact < 0 else "+" if stated.startswith("+") else ""
    size = abs(exact)
    if "·" in digits or re.fullmatch(POWER, digits):
        decimals = len(digits.partition("·")[0].partition(".")[2])
        return sign + power(size, decimals) + suffix
    decimals = len(digits.partition(".")[2])
    if not decimals and half > 0.5 and size:
        kept = len(digits.replace(",", "").rstrip("0"))
        size = round(size, max(kept, 2) - 1 - math.floor(math.log10(size)))
    return f"{sign}{size:,.{decimals}f}{suffix}"


def power(size: float, decimals: int) -> str:
    """4.3·10⁸."""
    mantissa, exponent = f"{size:.{decimals}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPT)}"


# Pages


def pages() -> dict[str, str]:
    """README, docs and every other page in git, by their paths."""
    folders = (".", "docs", "config", "benchmarks")
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("*.md"))]
    paths += [ROOT / f"{folder}/README.md" for folder in ("data", "results", "studies")]
    paths += [MEASURED / "README.md", ROOT / "paper/paper.md"]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def keyed(text: str) -> Iterator[tuple[int, int, str]]:
    """Each source in a text: where the number before it begins and ends, and the source. Without a
    number (a word, a table) both are where the source begins."""
    code = [match.span() for match in CODE.finditer(text)]
    for match in KEY.finditer(text):
        if any(start <= match.start() < end for start, end in code):
            continue
        source = " ".join(match[1].split())
        if re.match(r"(states|end|settings|table|no results)\b", source):
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        number = re.search(rf"(?<![\w.]){STATED}$", before)
        start = match.start() - len(number[0]) if number else match.start()
        yield start, match.start(), source


def is_comparison(source: str) -> bool:
    return " vs " in source or source.startswith("steps ")


def wrong(text: str, values: Mapping[str, Value]) -> Iterator[tuple[int, int, str, str]]:
    """Numbers that differ from their source: where, what it should be (nothing, if that is for a
    person to say), and why."""
    for start, end, source in keyed(text):
        if source == "-":
            continue
        stated = text[start:end]
        try:
            if is_comparison(source):
                word = re.findall(COMPARED, text[max(0, start - 80) : start])[-1:]
                if not word:
                    yield start, end, "", f"no word that compares before {source}"
                    continue
                first, second = pairs(source)
                true = first < second if re.fullmatch(BELOW, word[0]) else first > second
                if not true.all():
                    yield start, end, "", f"{word[0]}: not so in {source}"
            elif not stated:
                yield start, end, "", f"no number before {source}"
            elif not agrees(stated, values[source]):
                should = restated(stated, values[source])
                yield start, end, should, f"{stated} stated, {should} measured: {source}"
        except (KeyError, AttributeError, TypeError, OSError) as error:
            yield start, end, "", f"{source}: {error}"


def tables(text: str) -> Iterator[tuple[int, int, str]]:
    """Generated tables that differ from what they should be."""
    import page_tables

    for match in TABLE.finditer(text):
        should = "\n".join(["", *getattr(page_tables, match[2])(), ""])
        if match[3] != should:
            yield match.start(3), match.end(3), should


def written(text: str) -> str:
    """A page with today's values."""
    for start, end, should, _ in sorted(wrong(text, values()), reverse=True):
        if should:
            text = text[:start] + should + text[end:]
    for start, end, should in reversed(list(tables(text))):
        text = text[:start] + should + text[end:]
    return text


# No number without a source

NOUNS = (
    "samples|images|frames|features|pixels|values|digits|neurons|filters|energies|inputs|classes|"
    "dimensions|coordinates|seeds|initialisations|threads|cores|utterances|speakers|files|directions|"
    "blocks|draws|runs|repeats|rounds|simulations|steps|networks|questions"
)
NO_ADJECTIVE = "of|on|in|at|for|with|to|and|or|by|from|as|is|are|has|have|per|a|the|each|more|fewer"
INTEGER = r"(?:(?<![\w.])\d[\d,]*(?<!,)(?![\w°⁰¹²³⁴⁵⁶⁷⁸⁹]|\.\d| ?·))"
DEPTH = r"(?:(?<![\w.])(?:1[0-2]|\d|1,?000?)(?![\w°]|[.,]\d))"
AND = "(?:,? (?:to|and|or|·) |, |–)"
SETTINGS = {  # numbers that are no results, by what stands around them
    "a depth": rf"(?<!\w)L (?:=|from|up to) {DEPTH}(?:{AND}{DEPTH}(?! at\b))*",
    "a size": rf"(?<!\w)[nmd] (?:=|≤|from) (?:{POWER}|{INTEGER}(?:{AND}{INTEGER}(?! at\b))*)",
    "an angle, a rate": rf"(?<!\w)(?:θ(?:_in)?|η|p) [<=] {INTEGER}|p < {NUMBER}",
    "a variance": rf"σ_w² = {NUMBER}(?:{AND}{NUMBER})*",
    "a setting": rf"\b(?:[Dd]epths?|rates?|widths?|blocks? of) {INTEGER}(?:{AND}{INTEGER})*"
    r"|\b(?:mean 0|variance 1|norm 1|rank \d)\b",
    "how many went in": rf"{INTEGER}(?:{AND}{INTEGER})*(?! {UNIT})"
    rf"(?: (?!(?:{NO_ADJECTIVE})\b)[A-Za-z-]+){{0,2}} (?:{NOUNS})\b",
    "epochs of a config": r"\b(?:20|40|500|2,000) epochs",
    "a place": r"(?:[Ff]igures?|Fig\.|Theorems?|Thms|Cor\.|Lemma|Proposition|Eqs?\.|Table|"
    rf"[Nn]umber|disagreement|§) ?\(?\d+(?:\.\d)?(?:{AND}\d\.\d)*(?! {UNIT})",
    "a version, a year": r"\d+\.\d+\.\d+\S*|Python 3\.\d+|\((?:[\w &]+, )?20\d\d\)|arXiv [\d.]+",
    "an interval": rf"\[{NUMBER}, {NUMBER}\]|middle 68 %|95 % (?:t |bootstrap )?intervals?"
    r"|\b\d+ to 255\b",
    "a formula": r"(?<![\d.,])\d+ ?[nmdDLuσ][²³]?(?!\w)|\b\d/\d\b|→ (?:0|1|90)\b"
    r"|(?<![\w.])\d ?[+−/] ?[(\w√]|[\w₀)] ?[+−/] ?\d(?![\w.])(?!,\d)",
    "a frame of speech": "25 ms every 10 ms|each 10 ms",
}


CAPTIONED = ("a place", "an interval", "a formula")  # the rules that hold in captions, too


def comments(code: re.Match) -> str:
    """The comments in a block of code; `…` in place of other code and addresses."""
    block = code[0].startswith(("```", "    "))
    return " ".join(re.findall(r"(?<!\S)# [^\n]*", code[0])) if block else "`…`"


def prose(text: str) -> str:
    """Without code, addresses and line breaks; of code blocks the comments."""
    text = re.sub(r"\\ :sub:`(\w+)`", r"_\1", text)
    return " ".join(CODE.sub(comments, text).split())


def bare(text: str) -> Iterator[str]:
    """Numbers of a page that may be results and have no source."""
    text = GENERATED.sub("", text)
    captions = [match[1] for match in CAPTION.finditer(text)]
    for part in captions:
        text = text.replace(part, "")
    yield from bare_numbers(without_keyed(text), SETTINGS.values())
    for part in captions:
        yield from bare_numbers(without_keyed(part, near=0), [SETTINGS[name] for name in CAPTIONED])


def without_keyed(text: str, near: int = 30) -> str:
    """With ◊ in place of each number that has a source. near: how many characters `-` is for."""
    for start, end, source in sorted(keyed(text), reverse=True):
        before = text[:start]
        if source == "-" and near:
            last = max(before.rfind(mark) for mark in ("-->", ". ", "| ", ": "))
            start = max(last, before.rfind(" ", 0, len(before) - near), 0)
            covered = re.sub(rf"{NUMBER}|{IN_WORDS}", "◊", text[start:end])
            text = f"{text[:start]}{covered}{text[end:]}"
        else:
            text = f"{before}◊{text[end:]}"
    return prose(re.sub(r"^\d\. ", "", KEY.sub("", text), flags=re.M))


def bare_numbers(text: str, rules, covered=()) -> Iterator[str]:
    """The numbers of a prose that no rule and no span covers."""
    spans = [*covered, *(m.span() for rule in rules for m in re.finditer(rule, text))]
    counted = IN_WORDS if len(list(rules)) < len(SETTINGS) else rf"{IN_WORDS}(?= (?:{UNIT}|times))"
    for match in re.finditer(rf"{LONG_TIME}|{NUMBER}|{counted}", text):
        if not any(start <= match.start() and match.end() <= end for start, end in spans):
            before, after = text[: match.start()][-50:], text[match.end() :][:40]
            yield f"no source for …{before}[{match[0]}]{after}…"


def uncompared(text: str) -> Iterator[str]:
    """Words of comparison in a page without a source in the same sentence, before the next such."""
    text = GENERATED.sub("", text)
    text = KEY.sub(lambda match: "◆" if match[1] == "-" or is_comparison(match[1]) else "", text)
    text = prose(text)
    for match in re.finditer(COMPARED, text):
        rest = re.split(rf"(?<=[a-zκL)])[.:;](?: |$)|{COMPARED}", text[match.end() :])[0]
        if "◆" not in rest:
            yield f"no source for …{text[: match.start()][-50:]}[{match[0]}]{rest[:40]}…"


CHECKED_WORDS = ("README.md", "docs/results.md")


def problems(page: str, text: str, values: Mapping[str, Value]) -> list[str]:
    """All that is wrong with a page."""
    found = [why for *_, why in wrong(text, values)]
    found += [f"another table: {text[start : start + 60]}…" for start, *_ in tables(text)]
    found += bare(text)
    return found + list(uncompared(text)) * (page in CHECKED_WORDS)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--write", action="store_true", help="writes today's values into pages")
    options.add_argument("pages", nargs="*", help="pages by their paths; all, if none is named")
    arguments = options.parse_args()
    left = 0
    for page, text in pages().items():
        if arguments.pages and page not in arguments.pages:
            continue
        new = written(text)
        lines = difflib.unified_diff(text.splitlines(), new.splitlines(), page, page, "", "", 0, "")
        print("\n".join(lines), end="\n" if new != text else "")
        if arguments.write:
            (ROOT / page).write_text(new, "utf-8")
        for problem in problems(page, new if arguments.write else text, values()):
            left += 1
            print(f"{page}: {problem}")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    sys.modules["stated"] = sys.modules["__main__"]  # which derived.py imports
    main()
