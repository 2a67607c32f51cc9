"""Every claim of the paper with what was measured of it and the verdict."""

from collections.abc import Iterable

import pandas as pd

from ntkcond.claims import experiments, formulas, wide_networks
from ntkcond.claims.claim import HOLDS, UNTESTED, VERDICTS, Claim, Evidence

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


def table(evidence: Evidence, claims: Iterable[Claim] = tuple(CLAIMS)) -> pd.DataFrame:
    """A row for each claim and setting, in the order of their ids.

    Columns: id, source, claim, correction, difference, artefact, those of `Finding`'s texts,
    verdict of this row, overall: of the claim, the worst of its rows. Where nothing was measured,
    `measured` says why.
    """
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
