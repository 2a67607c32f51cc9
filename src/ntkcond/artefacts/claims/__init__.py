"""What the paper states, claim by claim, and whether it holds in numbers.

kernels and optimisation: claims about data, judged from the tables of the artefacts. Those about
the theory are tested in `ntkcond.artefacts.theory`, by a job of its own; here they are judged.
"""

import math
from collections.abc import Collection, Iterable, Iterator

import pandas as pd

from ntkcond.artefacts.claims import kernels, optimisation
from ntkcond.artefacts.claims.measured import in_words
from ntkcond.artefacts.claims.page import page
from ntkcond.artefacts.spec import Spec
from ntkcond.artefacts.verdicts.claim import (
    BELIEF,
    CONJECTURE,
    CORRECTED,
    FAILS,
    HOLDS,
    KINDS,
    OURS,
    UNCONTRADICTED,
    UNDECIDED,
    UNTESTED,
    VACUOUS,
    VERDICTS,
    Claim,
    Evidence,
    Finding,
    from_file,
    together,
)

SPEC = Spec(
    title="Every claim and its verdict",
    section="§ All claims",
    inputs=(
        "theory", "conditioning", "angles", "fig3", "fig_activations", "fig_architectures",
        "fig_infinite_depth", "fig_weight_scale", "fig_descent", "fig_evolution",
        "fig_predictors", "fig_depth_steps", "fig_when_data", "table_depth",
        "table_generalization", "sweep_first_layer", "sweep_infinite", "sweep_activations",
        "sweep_width",
    ),
    settings={"datasets": "keep.datasets"},
    files=(".csv", ".md", ".html"),
    reported=(".csv", ".md", ".html"),
    caption="""
**The paper**'s claims, one by one: theorems, corollaries, propositions, lemmas and statements about
the figures and the table, in all its versions, in our words. For each: its source, the artefact
that tests it, the expected and the measured value, with the spread, and a verdict:

- *holds*: confirmed, by a formula, a bound, an exact curve, or a test at 5 %;
- *holds as corrected*: so with the correction that is given;
- *not contradicted*: confirmed as a whole, as from the first depth to the last, but not at each
  depth or step, and none contradicts it;
- *not decided*: the spread of the seeds, or a κ that rounding leaves open, allows neither; one seed
  decides nothing;
- *does not hold in general*: not in every setting tried; the rows say in which it does;
- *conjecture*: the paper puts it as its belief; the row says whether the numbers support it;
- *vacuous here*: it could not have failed, as κ < κ₀ where κ₀ = ∞;
- *not testable here*: with the reason. A verdict that runs at full size reached is given, with
  their page.

Of the rows of a claim the worst counts, in this order: vacuous here, holds, holds as corrected, not
contradicted, not decided, does not hold in general. ``judged`` says how many rows are tests. As any
of them can contradict the claim, their p are corrected for their number (Holm); as all must confirm
it, confirmations are not.

``kind``: theorems and closed forms, statements about data and training, slips of the text, and
conjectures are counted apart. A claim with the test of another (``same_as``) is not counted, nor is
one named *ours*, which extends the paper's statements.

``difference`` numbers the places where the papers' text and the numbers disagree, 1 to 14; 12 was
a misreading of ours and is not used. Claims about formulas are tested on the formulas, those about
the limit of infinite width on networks of growing width, those about data on the artefacts of this
config: another config may lead to other verdicts.

What is said of each depth is tested seed by seed (Student's t). A curve that should be monotone in
depth is held against the nearest monotone one (isotonic regression, weighted by the spread at each
depth). It fails at p < 5 %, is not decided up to 10 %, holds if each step is confirmed, and is not
contradicted if it changes from the first depth to the last by more than the spread explains. These
levels are not exact: in simulations up to 12 of 100 curves that level off are rejected. A violation
of 2.5 standard deviations of five seeds is not contradicted in at most 6 of 100. With fewer than
five seeds, means that are not monotone decide nothing unless they are rejected.
""",
)  # fmt: skip

CLAIMS = [*kernels.CLAIMS, *optimisation.CLAIMS]
TEXTS = ("setting", "quantity", "expected", "measured", "spread")
INTRODUCTION = (
    "Numbers of theorems, sections and equations are those of arXiv 2305.08813v1 where no other"
    " version is named; F is the appendix of the ICLR submission, newest the newest arXiv version."
    " [n] numbers the places where the papers' text and the numbers disagree (12 is not used). What"
    " holds in one setting and not in another does not hold in general: look at the rows. Not"
    " contradicted: confirmed as a whole, but not at each step. A conjecture is what the paper puts"
    " as its belief. Rows named ours extend the paper's statements."
)
SECTIONS = {**KINDS, OURS: "ours"}
SUPPORT = {
    VACUOUS: "It could not have failed here.",
    HOLDS: "The numbers support it.",
    CORRECTED: "The numbers support it as corrected.",
    UNCONTRADICTED: "The numbers do not contradict it.",
    UNDECIDED: "The numbers decide neither way.",
    FAILS: "The numbers do not support it in general.",
}  # of a conjecture, by the worst of its rows
SUPPORTED = {
    SUPPORT[HOLDS]: "supported", SUPPORT[CORRECTED]: "supported as corrected",
    SUPPORT[UNCONTRADICTED]: UNCONTRADICTED, SUPPORT[UNDECIDED]: UNDECIDED,
    SUPPORT[FAILS]: "not supported", SUPPORT[VACUOUS]: VACUOUS,
}  # fmt: skip


def table(
    claims: Iterable[Claim] = tuple(CLAIMS),
    only: Collection[str] = (),
    theory: pd.DataFrame | None = None,
    datasets: Collection[str] = (),
    **tables: pd.DataFrame,
) -> pd.DataFrame:
    """A row for each claim and setting, in the order of their ids.

    Columns: id, kind, source, claim, correction, difference, artefact, those of `Finding`'s texts,
    verdict of this row; p: of a contradiction, before the correction for several rows; overall: of
    the claim, by VERDICTS; judged: exact, or how its tests are corrected; support: of a conjecture,
    in words, or where the verdict was reached; same_as: the claim that has the same test. Where
    nothing was measured, `measured` says why. only: ids, if not all claims. datasets:
    those that count, if not all. tables: of artefacts, by their names.
    """
    evidence = {name.removeprefix("sweep_"): rows for name, rows in tables.items()}
    if datasets:
        own = {
            name: rows[rows.dataset.isin(datasets)] if "dataset" in rows else rows
            for name, rows in evidence.items()
        }
        evidence = {name: rows for name, rows in own.items() if len(rows)}
    for name, numbers in evidence.items():
        if "bias" in numbers:  # the paper's networks have none
            evidence[name] = numbers[numbers.bias == 0]
    if theory is not None:
        claims = [*claims, *from_file(theory)]
    rows = []
    for claim in sorted(claims, key=lambda claim: _order(claim.id)):
        if only and claim.id not in only:
            continue
        about = {
            "id": claim.id, "kind": claim.kind, "source": claim.source, "claim": claim.text,
            "correction": claim.correction, "difference": claim.difference,
            "artefact": claim.artefact, "same_as": claim.same_as,
        }  # fmt: skip
        rows += [{**about, **row} for row in _rows(claim, evidence)]
    columns = [
        "id", "kind", "source", "claim", "correction", "difference", "artefact", *TEXTS, "verdict",
        "p", "overall", "judged", "support", "same_as",
    ]  # fmt: skip
    return pd.DataFrame(rows)[columns].astype({"difference": "Int64"})


def _rows(claim: Claim, evidence: Evidence) -> list[dict]:
    """The columns of `table` that depend on the evidence."""
    findings = together(_findings(claim, evidence))
    if not findings:
        verdict, where = claim.elsewhere or (UNTESTED, "")
        support = f"By runs that are kept: {where}." if where else ""
        measured = f"{claim.lacking}: {where}" if where else claim.lacking
        empty = {**dict.fromkeys(TEXTS, ""), "measured": measured, "p": math.nan}
        return [{**empty, "verdict": verdict, "overall": verdict, "judged": "", "support": support}]
    overall, support = max((f.verdict for f in findings), key=VERDICTS.index), ""
    if claim.kind == BELIEF:
        overall, support = CONJECTURE, SUPPORT[overall]
    shared = {"overall": overall, "judged": _judged(findings), "support": support}
    if claim.same_as:
        row = {**dict.fromkeys(TEXTS, ""), "measured": f"as {claim.same_as}", "p": math.nan}
        return [{**row, "verdict": overall, **shared}]
    return [
        {
            **dict(zip(TEXTS, finding, strict=False)),
            "verdict": finding.verdict, "p": finding.p, **shared,
        }
        for finding in findings
    ]  # fmt: skip


def _findings(claim: Claim, evidence: Evidence) -> Iterator[Finding]:
    yield from claim.test(evidence)
    if claim.id == "6-smallest" and "fig_descent" in evidence:
        yield from optimisation.within_the_bound(evidence["fig_descent"])


def _judged(findings: list[Finding]) -> str:
    tests = sum(not math.isnan(finding.p) for finding in findings)
    if not tests:
        return "exact, or without a test"
    if tests == 1:
        return "one test"
    return f"{tests} tests: any can contradict (Holm), all must confirm (no correction)"


def _order(name: str) -> tuple[bool, bool, bool, str]:
    """The first version's sections, then its appendices, the newest version's own, and ours."""
    return name.startswith(OURS), name.startswith("newest"), name[0].isalpha(), name


def _with_texts(numbers: pd.DataFrame) -> pd.DataFrame:
    """As `table` gave them: read from a CSV, an empty text is missing."""
    texts = numbers.columns.difference(["p", "difference"])
    return numbers.astype({"difference": "Int64"}).assign(
        **{name: numbers[name].astype(object).fillna("").astype(str) for name in texts}
    )


def _named(numbers: pd.DataFrame) -> pd.DataFrame:
    """With columns name, id and difference; and what the numbers say: instead, what holds in place
    of the claim, and measurement."""
    known = ~numbers.overall.isin([HOLDS, UNCONTRADICTED]) | numbers.difference.notna()
    known |= numbers.same_as != ""
    correction = numbers.correction.where(known & (numbers.overall != UNTESTED), "")
    words = {name: in_words(rows) for name, rows in numbers.groupby("id", sort=False)}
    return numbers.assign(
        name=numbers.id + (" [" + numbers.difference.astype("string") + "]").fillna(""),
        instead=(numbers.support + " " + correction).str.strip(),
        measurement=numbers.id.map(words),
    )


def counts(numbers: pd.DataFrame) -> dict[str, dict[str, int]]:
    """For each of KINDS, how many claims of the paper have each verdict, in the order of VERDICTS;
    of conjectures, how many are supported and so on. Claims with the test of another count once."""
    claims = numbers[~numbers.id.str.startswith(OURS)].drop_duplicates("id")
    claims = claims[claims.same_as == ""]
    words = claims.overall.where(claims.overall != CONJECTURE, claims.support.map(SUPPORTED))
    counted: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        verdicts = words[claims.kind == kind].value_counts()
        order = [*SUPPORTED.values(), UNTESTED] if kind == BELIEF else VERDICTS
        if len(verdicts):
            counted[kind] = {v: int(verdicts[v]) for v in order if v in verdicts}
    return counted


def _summary(numbers: pd.DataFrame) -> str:
    sentences = []
    for kind, verdicts in counts(numbers).items():
        words = ", ".join(f"**{verdict}** {count}" for verdict, count in verdicts.items())
        sentences.append(f"Of {sum(verdicts.values())} {KINDS[kind]}: {words}.")
    return " ".join(sentences)


def markdown(numbers: pd.DataFrame) -> str:
    """A summary of the verdicts, a table of the claims of each kind, and the measurements of
    each."""
    numbers = _named(_with_texts(numbers))
    claims = numbers.drop_duplicates("id")
    said = claims.instead + " " + claims.measurement.str.replace("\n", " ")
    claims = claims.assign(said=said.str.strip())
    lines = [
        f"# The paper's claims, one by one\n\n{INTRODUCTION}\n",
        f"{_summary(numbers)}\n",
    ]
    for kind, words in SECTIONS.items():
        of_kind = claims[claims.kind == kind]
        if len(of_kind):
            lines.append(f"\n**{words[0].upper()}{words[1:]}**\n")
            lines += _grid(
                ["", "the paper says", "verdict", "what the numbers say"],
                of_kind[["name", "claim", "overall", "said"]],
            )
    for _, rows in numbers.groupby("id", sort=False):
        first = rows.iloc[0]
        lines.append(f"\n## {first['name']}\n\n{first.claim} *({first.source})* \n")
        lines.append(f"**{first.overall}**. {first.instead}".strip() + "\n")
        if not first.quantity:
            lines.append(f"Not tested here: {first.measured}.")
        else:
            head = ["where", *TEXTS[1:], "verdict"]
            lines.append(f"Tested by {first.artefact} ({first.judged}):\n")
            lines += _grid(head, rows[[*TEXTS, "verdict"]])
    return "\n".join(lines) + "\n"


def _grid(head: list[str], rows: pd.DataFrame) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows.itertuples(index=False)]
    lines = [f"| {' | '.join(row)} |" for row in (head, *cells)]
    return [lines[0].replace("|  |", "| |"), "|---" * len(head) + "|", *lines[1:]]


def html(numbers: pd.DataFrame) -> str:
    """The same as one page for the report, with links, and a colour for each verdict."""
    numbers = _named(_with_texts(numbers))
    supported = numbers.support.map(SUPPORTED)
    numbers["shown"] = numbers.overall.where(
        numbers.overall != CONJECTURE, "conjecture, " + supported
    )
    verdicts = {SUPPORTED[words]: verdict for verdict, words in SUPPORT.items()}
    counted = {
        kind: {verdicts.get(word, word): count for word, count in words.items()}
        for kind, words in counts(numbers).items()
    }
    headings = {kind: words[0].upper() + words[1:] for kind, words in SECTIONS.items()}
    return page(numbers, INTRODUCTION, headings, counted)
