"""What the paper states, claim by claim, and whether it holds in numbers.

formulas: claims about the closed forms; wide_networks: about the limit of infinite width;
descents: about training, by small descents; kernels and optimisation: about data, judged from the
artefacts. trend: whether a curve is monotone. `CLAIMS.add` joins a claim to its test.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import sweep_curves
from ntkcond.artefacts.claims import descents, formulas, kernels, optimisation, wide_networks
from ntkcond.artefacts.claims.claim import (
    CONJECTURE,
    CORRECTED,
    FAILS,
    HOLDS,
    OURS,
    UNDECIDED,
    UNTESTED,
    VACUOUS,
    VERDICTS,
    Claim,
)
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Every claim and its verdict",
    section="§ All claims",
    inputs=(
        "conditioning", "angles", "fig3", "fig_activations", "fig_activations_ntk", "fig_width",
        "fig_architectures", "fig_infinite_depth", "fig_weight_scale", "fig_descent",
        "fig_evolution", "fig_predictors", "table_epochs", "table_generalization",
        "sweep/first_layer", "sweep/infinite",
    ),
    files=(".csv", ".md", ".html"),
    reported=(".csv", ".md", ".html"),
    caption="""
**The paper**'s claims, one by one: theorems, corollaries, propositions, lemmas and statements about
the figures and the table, in all its versions, in our words. For each: its source, the artefact
that tests it, the expected and the measured value, with the spread, and a verdict:

- *holds*;
- *holds as corrected*: the text has a slip, and the correction is given;
- *not decided*: the spread of the seeds, or a κ that rounding leaves open, allows neither;
- *does not hold in general*: not in every setting tried; the rows say in which it does;
- *conjecture*: the paper puts it as its belief; the row says whether the numbers support it;
- *vacuous here*: it could not have failed, as κ < κ₀ where κ₀ = ∞;
- *not testable here*: with the reason.

Of the rows of a claim the worst counts, in this order: vacuous here, holds, holds as corrected, not
decided, does not hold in general. Rows named *ours* extend the paper's statements and are not
counted as its claims.

``difference`` numbers the places where the papers' text and the numbers disagree, 1 to 13; 12 was
a misreading of ours and is not used. Claims about formulas are tested on the formulas, those about
the limit of infinite width on networks of growing width, those about data on the artefacts of this
config: another config may lead to other verdicts.

A curve that should be monotone in depth is held against the nearest monotone one (isotonic
regression, weighted by the spread at each depth). It fails at p < 5 %, is not decided up to 10 %,
and must change from the first depth to the last by more than the spread explains. These levels are
not exact: in simulations up to 12 of 100 curves that level off are rejected. A violation of 2.5
standard deviations of five seeds passes in at most 6 of 100. With fewer than five seeds, means that
are not monotone decide nothing unless they are rejected.
""",
)  # fmt: skip

CLAIMS = [
    *wide_networks.CLAIMS, *formulas.CLAIMS, *descents.CLAIMS, *kernels.CLAIMS,
    *optimisation.CLAIMS,
]  # fmt: skip
TEXTS = ("setting", "quantity", "expected", "measured", "spread")
INTRODUCTION = (
    "Numbers of theorems, sections and equations are those of arXiv 2305.08813v1 where no other"
    " version is named; F is the appendix of the ICLR submission, newest the newest arXiv version."
    " [n] numbers the places where the papers' text and the numbers disagree (12 is not used). What"
    " holds in one setting and not in another does not hold in general: look at the rows. A"
    " conjecture is what the paper puts as its belief. Rows named ours extend the paper's"
    " statements."
)
SUPPORT = {
    VACUOUS: "It could not have failed here.",
    HOLDS: "The numbers support it.",
    CORRECTED: "The numbers support it as corrected.",
    UNDECIDED: "The numbers decide neither way.",
    FAILS: "The numbers do not support it in general.",
}  # of a conjecture, by the worst of its rows
STYLE = (
    "body { font: 14px/1.4 sans-serif; margin: 1.5em } table { border-collapse: collapse }"
    " td, th { text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0;"
    " border-bottom: 1px solid #ddd }"
)


def table(
    sweep_first_layer: Sequence[Path] = (),
    sweep_infinite: Sequence[Path] = (),
    claims: Iterable[Claim] = tuple(CLAIMS),
    only: Collection[str] = (),
    **tables: pd.DataFrame,
) -> pd.DataFrame:
    """A row for each claim and setting, in the order of their ids.

    Columns: id, source, claim, correction, difference, artefact, those of `Finding`'s texts,
    verdict of this row; overall: of the claim, by VERDICTS; support: of a conjecture, in words.
    Where nothing was measured, `measured` says why. only: ids, if not all claims. tables: of
    artefacts, by their names; sweep_…: the files of two sweeps.
    """
    evidence: dict[str, pd.DataFrame] = dict(tables)
    for name, paths in (("first_layer", sweep_first_layer), ("infinite", sweep_infinite)):
        if paths:
            evidence[name] = sweep_curves.read(paths)
    for name, found in evidence.items():
        if "bias" in found:  # the paper's networks have none
            evidence[name] = found[found.bias == 0]
    rows = []
    for claim in sorted(claims, key=lambda claim: _order(claim.id)):
        if only and claim.id not in only:
            continue
        about = {
            "id": claim.id, "source": claim.source, "claim": claim.text,
            "correction": claim.correction, "difference": claim.difference,
            "artefact": claim.artefact,
        }  # fmt: skip
        findings = [
            {**dict(zip(TEXTS, finding, strict=False)), "verdict": finding.verdict}
            for finding in claim.test(evidence)
        ] or [{**dict.fromkeys(TEXTS, ""), "measured": claim.lacking, "verdict": UNTESTED}]
        overall = max((f["verdict"] for f in findings), key=VERDICTS.index)
        support = ""
        if claim.conjecture and overall != UNTESTED:
            overall, support = CONJECTURE, SUPPORT[overall]
        rows += [{**about, **found, "overall": overall, "support": support} for found in findings]
    return pd.DataFrame(rows).astype({"difference": "Int64"})


def _order(name: str) -> tuple[bool, bool, bool, str]:
    """The first version's sections, then its appendices, the newest version's own, and ours."""
    return name.startswith(OURS), name.startswith("newest"), name[0].isalpha(), name


def _named(numbers: pd.DataFrame) -> pd.DataFrame:
    """With columns name, id and difference, and instead, what the numbers say."""
    known = (numbers.overall != HOLDS) | numbers.difference.notna()
    correction = numbers.correction.where(known & (numbers.overall != UNTESTED), "")
    return numbers.assign(
        name=numbers.id + (" [" + numbers.difference.astype("string") + "]").fillna(""),
        instead=(numbers.support + " " + correction).str.strip(),
    )


def counts(numbers: pd.DataFrame) -> dict[str, int]:
    """How many claims of the paper have each verdict, in the order of VERDICTS."""
    claims = numbers[~numbers.id.str.startswith(OURS)].drop_duplicates("id")
    found = claims.overall.value_counts()
    return {verdict: int(found[verdict]) for verdict in VERDICTS if verdict in found}


def markdown(numbers: pd.DataFrame) -> str:
    """A summary of the verdicts, a table of the claims, and the measurements of each."""
    numbers = _named(numbers)
    claims = numbers.drop_duplicates("id")
    of_the_paper = counts(numbers)
    summary = [f"**{verdict}** {count}" for verdict, count in of_the_paper.items()]
    lines = [
        f"# The paper's claims, one by one\n\n{INTRODUCTION}\n",
        f"Of {sum(of_the_paper.values())} claims of the paper: {', '.join(summary)}.\n",
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
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows.itertuples(index=False)]
    lines = [f"| {' | '.join(row)} |" for row in (head, *cells)]
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
