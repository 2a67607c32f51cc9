"""claims.html: one page without scripts or other files, that reads on a narrow window, too.

Colours are Okabe & Ito's, told apart in every common form of colour blindness; a sign and the words
say the same.
"""

import re
from collections.abc import Iterable, Mapping
from html import escape

import pandas as pd

from ntkcond.artefacts.claims.measured import worst
from ntkcond.artefacts.verdicts.claim import (
    CORRECTED,
    FAILS,
    HOLDS,
    UNCONTRADICTED,
    UNDECIDED,
    UNTESTED,
    VACUOUS,
)

# Of each verdict: the colour, the sign, what it means.
LEGEND = {
    HOLDS: (
        "#009E73", "✓",
        "Confirmed: by a formula, a bound, an exact curve, or a test at 5 %. Of a conjecture:"
        " supported.",
    ),
    CORRECTED: ("#56B4E9", "✓*", "Confirmed, with the correction that is given."),
    UNCONTRADICTED: (
        "#0072B2", "○",
        "Confirmed as a whole, but not at each depth or step. Nothing contradicts it.",
    ),
    UNDECIDED: (
        "#E69F00", "?",
        "The spread of the seeds, or a κ that rounding leaves open, allows neither.",
    ),
    FAILS: (
        "#D55E00", "✗",
        "Not in every setting tried; the rows say in which it does. Of a conjecture: not"
        " supported.",
    ),
    VACUOUS: ("#999999", "∅", "It could not have failed here, as κ < κ₀ where κ₀ = ∞."),
    UNTESTED: ("#999999", "–", "The reason is given."),
}  # fmt: skip
STYLE = """
body { font: 15px/1.45 sans-serif; color: #111; background: #fff }
body { margin: 1.5em auto; padding: 0 1em; max-width: 80em }
h2 { margin-top: 2em }
h3 { margin: 2.5em 0 0.3em }
p { max-width: 50em }
a { color: #0645ad }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; border-bottom: 1px solid #ddd }
td, th { padding: 0.35em 0.8em 0.35em 0 }
td { overflow-wrap: anywhere }
.verdicts th:first-child { width: 17em }
.measured th:nth-child(-n+2) { width: 23% }
.claims th:first-child { width: 11em }
.claims th:nth-child(3) { width: 12em }
.claims th:last-child { width: 42% }
small { color: #555 }
.verdict { display: inline-block; border-left: 0.4em solid; padding: 0 0.4em }
tr:target, :target h3 { background: #fff3a3 }
@media (max-width: 50em) {
  thead { display: none }
  tr, td { display: block; border: 0; padding: 0.1em 0 }
  tr { border-bottom: 1px solid #aaa; padding: 0.6em 0 }
  td:empty { display: none }
  .verdicts td[data-label] { display: inline; margin-right: 1em }
  td[data-label]::before { content: attr(data-label) ": "; color: #555 }
}
@media print { input { display: none } }
"""


def page(
    numbers: pd.DataFrame,
    introduction: str,
    sections: Mapping[str, str],
    counts: Mapping[str, Mapping[str, int]],
) -> str:
    """A table of the verdicts, with what each means; the claims of each kind; what was measured.

    numbers: of `ntkcond.artefacts.claims.table`, with name, shown (the verdict in words), instead
    and measurement (what the numbers say). sections: the heading of each kind. counts: for each of
    the paper's kinds, how many claims have each verdict.
    """
    claims = dict(iter(numbers.groupby("id", sort=False)))
    parts = [
        f"<h1>The paper's claims, one by one</h1>\n<p>{escape(introduction)}</p>",
        _legend(sections, counts),
    ]
    for kind, heading in sections.items():
        of_kind = [rows for rows in claims.values() if rows.kind.iloc[0] == kind]
        if of_kind:
            head = ["claim", "the paper says", "verdict", "what the numbers say"]
            rows = [_claim(rows, claims) for rows in of_kind]
            parts.append(f'<h2 id="{_id(kind)}">{heading}</h2>\n{_table("claims", head, rows)}')
    parts.append("<h2>What was measured</h2>")
    parts += [_measured(rows, claims) for rows in claims.values()]
    body = "\n".join(parts)
    # The end tags of body and html may be left out: a line about missing data may follow.
    # A browser asks a server for a picture of the page unless it names one: here, an empty one.
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>The paper's claims</title>\n<style>{_style()}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n"
    )


def _style() -> str:
    """Also the filter: a box without its tick hides the claims with this verdict."""
    rules = [STYLE.strip()]
    for verdict, (colour, _, _) in LEGEND.items():
        name = _id(verdict)
        rules.append(f".verdict.{name} {{ border-color: {colour}; background: {colour}2b }}")
        rules.append(f"body:has(#show-{name}:not(:checked)) .claim.{name} {{ display: none }}")
    return "\n".join(rules)


def _legend(sections: Mapping[str, str], counts: Mapping[str, Mapping[str, int]]) -> str:
    kinds = [kind for kind in sections if kind in counts]
    head = ["verdict", "means", *(f'<a href="#{_id(kind)}">{sections[kind]}</a>' for kind in kinds)]
    rows = []
    for verdict, (_, _, meaning) in LEGEND.items():
        box = (
            f'<label><input type="checkbox" id="show-{_id(verdict)}" checked>'
            f" {_chip(verdict, verdict)}</label>"
        )
        numbers = [str(counts[kind].get(verdict, "–")) for kind in kinds]
        rows.append(
            _row([box, escape(meaning), *numbers], [None, None, *(sections[k] for k in kinds)])
        )
    return (
        "<h2>Verdicts</h2>\n<p>How many claims of the paper have each. Without the tick, the claims"
        f" with a verdict are hidden.</p>\n{_table('verdicts', head, rows)}"
    )


def _claim(rows: pd.DataFrame, ids: Iterable[str]) -> str:
    first = rows.iloc[0]
    lines = [first.instead, *first.measurement.split("\n")]
    said = "<br>\n".join(_text(line, ids) for line in lines if line)
    cells = [
        f'<a href="#measured-{_id(first.id)}">{escape(first["name"])}</a>',
        f"{escape(first.claim)} <small>{escape(first.source)}</small>",
        _chip(worst(rows), first.shown),
        f'{said} <a href="#measured-{_id(first.id)}">{_tally(rows)}</a>',
    ]
    labels = [None, "the paper says", None, "what the numbers say"]
    return _row(cells, labels, f' id="{_id(first.id)}" class="claim {_id(worst(rows))}"')


def _tally(rows: pd.DataFrame) -> str:
    """How many measurements have which verdict, if they differ."""
    if not rows.quantity.iloc[0]:
        return "more"
    count = f"{len(rows)}&nbsp;measurement{'s' * (len(rows) > 1)}"
    verdicts = rows.verdict.value_counts()
    if len(verdicts) == 1:
        return count
    return f"{count}: {', '.join(f'{v} {verdicts[v]}' for v in LEGEND if v in verdicts)}"


def _measured(rows: pd.DataFrame, ids: Iterable[str]) -> str:
    first = rows.iloc[0]
    head = ["where", "quantity", "expected", "measured", "spread"]
    if first.quantity:
        texts = rows[["setting", *head[1:], "verdict"]].itertuples(index=False)
        cells = [[*map(escape, row[:-1]), _chip(row[-1], row[-1])] for row in texts]
        table = _table(
            "measured", [*head, "verdict"], [_row(each, [*head, None]) for each in cells]
        )
        tested = f"<p>Tested by {escape(first.artefact)} ({escape(first.judged)}):</p>\n{table}"
    else:
        tested = f"<p>{_text(first.measured, ids)}</p>"
    name = _id(first.id)
    said = f"<p>{_chip(worst(rows), first.shown)} {_text(first.instead, ids)}</p>"
    return (
        f'<section id="measured-{name}" class="claim {_id(worst(rows))}">\n'
        f"<h3>{escape(first['name'])}</h3>\n"
        f"<p>{escape(first.claim)} <small>{escape(first.source)}</small>"
        f' <a href="#{name}">back to the claims</a></p>\n{said}\n{tested}\n</section>'
    )


def _table(name: str, head: Iterable[str], rows: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "\n".join(rows)
    return (
        f'<table class="{name}">\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n'
        "</tbody>\n</table>"
    )


def _row(cells: Iterable[str], labels: Iterable[str | None], attributes: str = "") -> str:
    """labels: of the cells in a narrow window, where they lie below each other."""
    named = [
        f'<td data-label="{escape(label)}">{cell}</td>' if label and cell else f"<td>{cell}</td>"
        for cell, label in zip(cells, labels, strict=True)
    ]
    return f"<tr{attributes}>{''.join(named)}</tr>"


def _chip(verdict: str, words: str) -> str:
    _, sign, _ = LEGEND[verdict]
    return (
        f'<span class="verdict {_id(verdict)}"><span aria-hidden="true">{sign}</span>'
        f" {escape(words)}</span>"
    )


def _text(words: str, ids: Iterable[str]) -> str:
    """With links where it names other claims, in backquotes or as those of the same test."""

    def link(match: re.Match) -> str:
        name = match[1] or match[2]
        return f'<a href="#{_id(name)}">{name}</a>' if name in ids else match[0]

    return re.sub(r"`([^`]+)`|(?<=as )(\S+?)(?=$|\.$)", link, escape(words))


def _id(words: str) -> str:
    return words.replace(" ", "-")
