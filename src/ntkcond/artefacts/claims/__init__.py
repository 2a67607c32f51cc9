"""What the paper states, claim by claim, and whether it holds in numbers.

formulas: what is said of the closed forms; wide_networks: of the limit of infinite width;
experiments: of data, judged from the artefacts. Each function there that takes the evidence gives
the findings of the claim that names it in the module's CLAIMS, which says what it tests.
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
        "conditioning",
        "angles",
        "fig3",
        "fig_activations",
        "fig_activations_ntk",
        "fig_width",
        "fig_infinite_depth",
        "fig_weight_scale",
        "fig_descent",
        "table_epochs",
        "table_generalization",
        "sweep/first_layer",
        "sweep/infinite",
    ),
    files=(".csv", ".md", ".html"),
    reported=(".csv", ".md", ".html"),
    caption="""
**The paper**'s claims, one by one: theorems, corollaries, propositions, lemmas and what is said of
the figures and the table, in all its versions, in our words. For each: where it stands, which
artefact tests it, what was expected and measured, with the spread, and a verdict:

- *holds*;
- *holds as corrected*: the text has a slip, and what holds instead is said;
- *does not hold in general*: not in every setting that was tried; the rows say in which it does;
- *not testable here*: with the reason.

``difference`` numbers the twelve places where the papers' text and the numbers disagree. Claims
about formulas are tested on the formulas, those about the limit of infinite width on networks of
growing width, those about data on the artefacts of this config: another config may judge them
otherwise. What is said to go on with depth has to go in the right direction on the whole by more
than the seeds' spread explains, and in no step against it by more than that (at a level of 5 % for
all steps of a curve).
""",
)

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
    `measured` says why. The evidence: tables of artefacts, by their names, and the files of two
    sweeps.
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
        findings = list(claim.test(evidence))
        overall = max((each.verdict for each in findings), key=VERDICTS.index, default=UNTESTED)
        for each in findings:
            shown = {name: getattr(each, name) for name in (*TEXTS, "verdict")}
            rows.append({**about, **shown, "overall": overall})
        if not findings:
            nothing = {**dict.fromkeys(TEXTS, ""), "measured": claim.lacking}
            rows.append({**about, **nothing, "verdict": UNTESTED, "overall": UNTESTED})
    return pd.DataFrame(rows).astype({"difference": "Int64"})


def _order(name: str) -> tuple[bool, bool, str]:
    """The first version's sections, then its appendices; the newest version's own come last."""
    return name.startswith("newest"), name[0].isalpha(), name


def markdown(numbers: pd.DataFrame) -> str:
    """A summary of the verdicts, a table of the claims, and the measurements of each."""
    claims = numbers.drop_duplicates("id")
    counts = claims.overall.value_counts()
    summary = [f"**{v}** {counts[v]}" for v in (*VERDICTS, UNTESTED) if v in counts]
    lines = [
        "# The paper's claims, one by one",
        "",
        INTRODUCTION,
        "",
        f"Of {len(claims)} claims: {', '.join(summary)}.",
        "",
        "| | the paper says | verdict | what the numbers say |",
        "|---|---|---|---|",
        *(
            f"| {_name(row)} | {row.claim} | {row.overall} | {_instead(row)} |"
            for row in claims.itertuples()
        ),
    ]
    for _, rows in numbers.groupby("id", sort=False):
        first = next(rows.itertuples())
        lines += ["", f"## {_name(first)}", "", f"{first.claim} *({first.source})* ", ""]
        lines += [f"**{first.overall}**. {_instead(first)}".strip(), ""]
        if first.overall == UNTESTED:
            lines.append(f"Not tested: {first.measured}.")
            continue
        lines += [
            f"Tested by {first.artefact}:",
            "",
            "| where | quantity | expected | measured | spread | verdict |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {' | '.join(getattr(row, name) for name in (*TEXTS, 'verdict'))} |"
            for row in rows.itertuples()
        ]
    return "\n".join(lines) + "\n"


def _name(row: tuple) -> str:
    return row.id if pd.isna(row.difference) else f"{row.id} [{row.difference}]"


def _instead(row: tuple) -> str:
    known = row.overall != HOLDS or not pd.isna(row.difference)
    return row.correction if known and row.overall != UNTESTED else ""


def html(numbers: pd.DataFrame) -> str:
    """The same as one page for the report: the claims, then every measurement."""
    claims = numbers.drop_duplicates("id")
    summary = pd.DataFrame(
        {
            "": [_name(row) for row in claims.itertuples()],
            "the paper says": claims.claim.to_list(),
            "where": claims.source.to_list(),
            "verdict": claims.overall.to_list(),
            "what the numbers say": [_instead(row) for row in claims.itertuples()],
        }
    )
    rows = numbers.assign(id=[_name(row) for row in numbers.itertuples()])
    tables = [each.to_html(index=False, border=0, na_rep="") for each in
              (summary, rows[["id", *TEXTS, "verdict", "artefact"]])]  # fmt: skip
    return "\n".join(
        [
            "<!doctype html><meta charset=utf-8><title>The paper's claims</title>",
            f"<style>{STYLE}</style>",
            "<h1>The paper's claims, one by one</h1>",
            f"<p>{INTRODUCTION}</p>{tables[0]}<h2>What was measured</h2>{tables[1]}",
        ]
    )
