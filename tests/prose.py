"""Numbers in prose: found, read, and compared with what was measured.

A statement is a piece of a text with a name in place of each measured number: "κ is {κ at 1} at
L = 1". It holds if the text has these words, and there the values of these names, rounded as the
text rounds them. A number of a text that stands in no statement must be no result, by `SETTINGS`.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ntkcond.artefacts.registry import SPECS

compiled = functools.cache(re.compile)  # re itself keeps too few
ROOT = Path(__file__).parents[1]

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
UNITS = {  # name: what it measures, and how many of the first such unit it is
    "s": ("time", 1), "ms": ("time", 1e-3), "min": ("time", 60), "h": ("time", 3600),
    "second": ("time", 1), "minute": ("time", 60), "hour": ("time", 3600),
    "B": ("memory", 1), "KB": ("memory", 1e3), "MB": ("memory", 1e6), "GB": ("memory", 1e9),
    "TB": ("memory", 1e12), "MiB": ("memory", 2**20), "GiB": ("memory", 2**30),
    "Gflop/s": ("rate", 1), "GFLOP/s": ("rate", 1), "°": ("angle", 1), "%": ("", 0.01), "": ("", 1),
}  # fmt: skip
WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "sixty": 60,
    "half a": 0.5, "half an": 0.5,
}  # fmt: skip

POWER = "10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+"
DIGITS = rf"[+−]?(?:{POWER}|\d[\d,]*(?:\.\d+)?(?: ?· ?{POWER}|e[+-]\d+)?)"
NUMBER = rf"(?<![\w.]){DIGITS}(?<!,)(?![\w⁰¹²³⁴⁵⁶⁷⁸⁹])"
UNIT = r"(?:ms|s|min|h|[KMGT]i?B|B|G(?:flop|FLOP)/s|%|°|(?:second|minute|hour)s?)(?!\w)"
LONG_TIME = r"\d+ min \d\d s(?!\w)"
IN_WORDS = rf"\b(?:{'|'.join(WORDS)})\b"
STATED = rf"(?:{LONG_TIME}|(?:{DIGITS}|{IN_WORDS})(?: ?{UNIT})?)(?<![,])"


class Quantity(NamedTuple):
    value: float
    unit: str = ""


Value = float | str | Quantity


# Texts

GENERATED = re.compile(r"<!-- states:.*?<!-- end of states -->", re.S)


def pages() -> dict[str, str]:
    """The prose of README, docs and every other page of git, and of the captions, by name."""
    folders = (".", "docs", "config", "benchmarks")
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("*.md"))]
    paths += [ROOT / f"{folder}/README.md" for folder in ("data", "results", "studies")]
    texts = {
        path.relative_to(ROOT).as_posix(): GENERATED.sub("", path.read_text("utf-8"))
        for path in paths
    }
    captions = {f"caption of {name}": spec.caption for name, spec in SPECS.items()}
    return {name: prose(text) for name, text in (texts | captions).items()}


def prose(text: str) -> str:
    """Without code, addresses and line breaks; of code blocks the comments."""
    text = re.sub(r"^(?:```.*?^```$| {4}[^\n]*)", comments, text, flags=re.S | re.M)
    text = re.sub(r"\\ :sub:`(\w+)`", r"_\1", text)
    text = re.sub(r"``?[^`]*``?", "`…`", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return " ".join(text.split())


def comments(code: re.Match) -> str:
    return " ".join(re.findall(r"(?<!\S)# [^\n]*", code[0]))


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


def agrees(stated: str, value: Value) -> bool:
    """Whether the value, rounded as the stated one, is the stated one."""
    if isinstance(value, str):
        return stated == value
    number, half, unit = read(stated)
    exact, value_unit = value if isinstance(value, Quantity) else (value, "")
    (kind, scale), (own_kind, own_scale) = UNITS[unit or value_unit], UNITS[value_unit]
    if not value_unit and kind:  # a plain number is meant in the text's unit, but a share in %
        own_kind, own_scale = kind, scale
    difference = abs(number * scale - exact * own_scale)
    return kind == own_kind and difference <= half * scale * (1 + 1e-9)


class Found(NamedTuple):
    """A place in a text with a statement's words; spans: of its numbers."""

    spans: list[tuple[int, int]]
    wrong: list[str]  # what is stated and what was measured


def find(words: str, values: Mapping[str, Value], text: str) -> list[Found]:
    """All places with these words, whatever their numbers."""
    parts = re.split(r"\{([^{}]*)\}", prose(words))
    literal, names = parts[::2], parts[1::2]
    slots = [re.escape(v) if isinstance(v := values[name], str) else STATED for name in names]
    pattern = "".join(
        re.escape(words) + slot
        for words, slot in zip(literal, [*(f"({slot})" for slot in slots), ""], strict=True)
    )
    return [
        Found(
            [match.span(i) for i in range(1, len(names) + 1)],
            [
                f"{match[i]} stated, {show(values[name])} measured"
                for i, name in enumerate(names, 1)
                if not agrees(match[i], values[name])
            ],
        )
        for match in compiled(pattern).finditer(text)
    ]


def show(value: Value) -> str:
    if isinstance(value, Quantity):
        return f"{value.value:g} {value.unit}".strip()
    return value if isinstance(value, str) else f"{value:g}"


# No number without a statement

NOUNS = (
    "samples|images|frames|features|pixels|values|digits|neurons|filters|energies|inputs|classes|"
    "dimensions|coordinates|seeds|initialisations|threads|cores|utterances|speakers|files|directions|"
    "blocks|draws|runs|repeats|rounds|simulations|steps"
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
    r"|(?<![\w.])\d ?[+−/] ?[(\w]|[\w₀)] ?[+−/] ?\d(?![\w.])(?!,\d)",
    "a frame of speech": "25 ms every 10 ms|each 10 ms",
    "a list's item": r"(?:^|\. )\d\. ",
}


def problems(
    statements: Iterable[str], no_results: Iterable[str], values: Mapping[str, Value], text: str
) -> Iterator[str]:
    """What is wrong with a text: statements that are not in it, or false; and numbers that stand in
    no true statement and may be results. no_results: pieces of the text whose numbers are none;
    " … " in them is anything."""
    covered = [
        match.span() for rule in SETTINGS.values() for match in compiled(rule).finditer(text)
    ]
    for words in statements:
        places = find(words, values, text)
        true = [place for place in places if not place.wrong]
        if not places:
            yield f"the text does not say: {words}"
        elif not true:  # where the words stand twice, one place is enough
            wrong = min((place.wrong for place in places), key=len)
            yield f"{'; '.join(wrong)}, in: {words}"
        covered += [span for place in true or places for span in place.spans]
    for words in no_results:
        pattern = ".*?".join(re.escape(part) for part in prose(words).split(" … "))
        places = [match.span() for match in re.finditer(pattern, text)]
        if not places:
            yield f"the text does not say: {words}"
        covered += places
    for match in re.finditer(rf"{LONG_TIME}|{NUMBER}|{IN_WORDS}(?= (?:{UNIT}|times))", text):
        if not any(start <= match.start() and match.end() <= end for start, end in covered):
            before, after = text[: match.start()][-50:], text[match.end() :][:40]
            yield f"no statement has …{before}[{match[0]}]{after}…"
