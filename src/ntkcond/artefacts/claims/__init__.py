"""What the paper states, claim by claim, and whether it holds in numbers.

formulas: claims about the closed forms; wide_networks: about the limit of infinite width;
experiments: about data, judged from the artefacts. `CLAIMS.add` joins a claim to its test.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import sweep_curves
from ntkcond.artefacts.claims import experiments, formulas, wide_networks
from ntkcond.artefacts.claims.claim import HOLDS, UNTESTED, VERDICTS, Claim
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Every claim and its verdict",
    section="§ All claims",
    inputs=(
        "conditioning", "angles", "fig3", "fig_activations", "fig_activations_ntk", "fig_width",
        "fig_infinite_depth", "fig_weight_scale", "fig_descent", "table_epochs",
        "table_generalization", "sweep/first_layer", "sweep/infinite",
    ),
    files=(".csv", ".md", ".html"),
    reported=(".csv", ".md", ".html"),
    caption="""
**The paper**'s claims, one by one: theorems, corollaries, propositions, lemmas and statements about
the figures and the table, in all its versions, in our words. For each: its source, the artefact
that tests it, the expected and the measured value, with the spread, and a verdict:

- *holds*;
- *holds as corrected*: the text has a slip, and the correction is given;
- *does not hold in general*: not in every setting tried; the rows say in which it does;
- *not testable here*: with the reason.

``difference`` numbers the twelve places where the papers' text and the numbers disagree. Claims
about formulas are tested on the formulas, those about the limit of infinite width on networks of
growing width, those about data on the artefacts of this config: another config may lead to other
verdicts. What should change with depth has to go in the right direction from the first depth to the
last by more than the seeds' spread explains, and no step may go against it by more than that (at a
level of 5 % for all steps of a curve).
""",
)  # fmt: skip

CLAIMS = [*wide_networks.CLAIMS, *formulas.CLAIMS, *experiments.CLAIMS]
TEXTS = ("setting", "quantity", "expected", "measured", "spread")
INTRODUCTION = (
    "Numbers of theorems, sections and equations are those of arXiv 2305.08813v1 where no other"
    " version is named; F is the appendix of the ICLR submission, newest the newest arXiv version."
    " [n] is one of the twelve places where the papers' text and the numbers disagree. What holds"
    " in one setting and not in another does not hold in general: look at the rows."
)
STYLE = (
    "body { font: 14px/1.4 sans-serif; margin: 1.5em } table { border-collapse: collapse }"
    " td, th { text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0;"
    " border-bottom: 1px solid #ddd }"
)


def table(
    sweep_first_layer: Sequence[Path] = (),
    sweep_infinite: Sequence[Path] = (),
    claims: Iterable[Claim] = tuple(CLAIMS),
    **tables: pd.DataFrame,
) -> pd.DataFrame:
    """A row for each claim and setting, in the order of their ids.

    Columns: id, source, claim, correction, difference, artefact, those of `Finding`'s texts,
    verdict of this row, overall: of the claim, the worst of its rows. Where nothing was measured,
    `measured` says why. tables: of artefacts, by their names; sweep_…: the files of two sweeps.
    """
    evidence: dict[str, pd.DataFrame] = dict(tables)
    for name, paths in (("first_layer", sweep_first_layer), ("infinite", sweep_infinite)):
        if paths:
            evidence[name] = sweep_curves.read(paths)
    rows = []
    for claim in sorted(claims, key=lambda claim: _order(claim.id)):
        about = {
            "id": claim.id, "source": claim.source, "claim": claim.text,
            "correction": claim.correction, "difference": claim.difference,
            "artefact": claim.artefact,
        }  # fmt: skip
        findings = [
            {**dict(zip(TEXTS, finding, strict=False)), "verdict": finding.verdict}
            for finding in claim.test(evidence)
        ] or [{**dict.fromkeys(TEXTS, ""), "measured": claim.lacking, "verdict": UNTESTED}]
        overall = max((f["verdict"] for f in findings), key=(*VERDICTS, UNTESTED).index)
        rows += [{**about, **finding, "overall": overall} for finding in findings]
    return pd.DataFrame(rows).astype({"difference": "Int64"})


def _order(name: str) -> tuple[bool, bool, str]:
    """The first version's sections, then its appendices; the newest version's own come last."""
    return name.startswith("newest"), name[0].isalpha(), name


def _named(numbers: pd.DataFrame) -> pd.DataFrame:
    """With columns name, id and difference, and instead, what the numbers say."""
    known = (numbers.overall != HOLDS) | numbers.difference.notna()
    return numbers.assign(
        name=numbers.id + (" [" + numbers.difference.astype("string") + "]").fillna(""),
        instead=numbers.correction.where(known & (numbers.overall != UNTESTED), ""),
    )


def markdown(numbers: pd.DataFrame) -> str:
    """A summary of the verdicts, a table of the claims, and the measurements of each."""
    numbers = _named(numbers)
    claims = numbers.drop_duplicates("id")
    counts = claims.overall.value_counts()
    summary = [f"**{v}** {counts[v]}" for v in (*VERDICTS, UNTESTED) if v in counts]
    lines = [
        f"# The paper's claims, one by one\n\n{INTRODUCTION}\n",
        f"Of {len(claims)} claims: {', '.join(summary)}.\n",
        *_grid(
            ["", "the paper says", "verdict", "what the numbers say"],
            claims[["name", "claim", "overall", "instead"]],
        ),
    ]
    for _, rows in numbers.groupby("id", sort=False):
        first = rows.iloc[0]
        lines.append(f"\n## {first['name']}\n\n{first.claim} *({first.source})* \n")
        lines.append(f"**{first.overall}**. {first.instead}".strip() + "\n")
        if first.overall == UNTESTED:
            lines.append(f"Not tested: {first.measured}.")
        else:
            head = ["where", *TEXTS[1:], "verdict"]
            lines.append(f"Tested by {first.artefact}:\n")
            lines += _grid(head, rows[[*TEXTS, "verdict"]])
    return "\n".join(lines) + "\n"


def _grid(head: list[str], rows: pd.DataFrame) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows.itertuples(index=False))]
    return [lines[0].replace("|  |", "| |"), "|---" * len(head) + "|", *lines[1:]]


def html(numbers: pd.DataFrame) -> str:
    """The same as one page for the report: the claims, then every measurement."""
    numbers = _named(numbers)
    columns = {
        "name": "", "claim": "the paper says", "source": "where", "overall": "verdict",
        "instead": "what the numbers say",
    }  # fmt: skip
    summary = numbers.drop_duplicates("id")[[*columns]].rename(columns=columns)
    rows = numbers.assign(id=numbers["name"])[["id", *TEXTS, "verdict", "artefact"]]
    first, second = (table.to_html(index=False, border=0, na_rep="") for table in (summary, rows))
    return (
        "<!doctype html><meta charset=utf-8><title>The paper's claims</title>\n"
        f"<style>{STYLE}</style>\n<h1>The paper's claims, one by one</h1>\n"
        f"<p>{INTRODUCTION}</p>{first}<h2>What was measured</h2>{second}"
    )
