"""A claim of the paper, the findings that test it, and the verdict.

A claim speaks of several rows: data sets, widths, depths. It is confirmed only if each row is, and
so each is tested at LEVEL, without a correction for their number. Any row can contradict it: p of a
contradiction is corrected for the number of rows (`together`; Holm, 1979).
"""

import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

VACUOUS = "vacuous here"
HOLDS = "holds"
CORRECTED = "holds as corrected"
UNCONTRADICTED = "not contradicted"
UNDECIDED = "not decided"
FAILS = "does not hold in general"
CONJECTURE = "conjecture"
UNTESTED = "not testable here"
# Of a claim that of its findings which comes last here, so that a vacuous one adds nothing and one
# failure is enough; then, if the paper only believes it, CONJECTURE, whatever the findings are.
VERDICTS = (VACUOUS, HOLDS, CORRECTED, UNCONTRADICTED, UNDECIDED, FAILS, CONJECTURE, UNTESTED)
OURS = "ours"  # begins the ids of statements that the paper does not make; and their kind

THEOREM = "theorem"  # and what follows from closed forms
EXPERIMENT = "experiment"  # on data, or on the training of networks
SLIP = "slip"  # of the text: what the paper's own proof or equations have right, or a proof needs
BELIEF = "conjecture"  # the paper's "we believe", "seems", "could"
KINDS = {
    THEOREM: "theorems and closed forms",
    EXPERIMENT: "statements about data and training",
    SLIP: "slips of the text",
    BELIEF: "conjectures",
}

LEVEL = 0.05  # of a confirmation of a row; of a contradiction of a claim
DOUBT = 0.10  # of a contradiction: below, a row is not decided

LOSS_TO_BOUND = "loss / (1 − η λ_min/2)ᵗ, largest of all t"
Evidence = Mapping[str, pd.DataFrame]  # the tables of the artefacts, by their names
SWEEPS = {
    "first_layer": "sweeps/first_layer", "infinite": "sweeps/infinite",
    "activations": "sweeps/activations", "width": "sweeps/width",
}  # fmt: skip
RELATIONS = {">": operator.gt, "<": operator.lt, "≥": operator.ge, "≤": operator.le}


class Finding(NamedTuple):
    """One measurement that tests a claim.

    setting: of the measurement, such as a data set and a width. quantity: what was measured;
    expected, measured, spread: as they are printed. as_stated: whether it agrees with the paper's
    statement; as_corrected: with the claim's `correction`, where it has one. neither: UNDECIDED,
    where the spread allows neither, UNCONTRADICTED, where it confirms the whole but not each step,
    or VACUOUS, where the statement could not have failed. p: of a contradiction, the probability of
    measurements as far from the statement if it were true; NaN without a test.
    """

    setting: str
    quantity: str
    expected: str
    measured: str
    spread: str
    as_stated: bool
    as_corrected: bool = False
    neither: str = ""
    p: float = math.nan

    @property
    def verdict(self) -> str:
        """Up to FAILS, one of VERDICTS."""
        judged = HOLDS if self.as_stated else CORRECTED if self.as_corrected else FAILS
        return self.neither or judged


TEXTS = ("id", "kind", "source", "text", "correction", "difference", "same_as")  # of a Claim
Findings = Iterator[Finding]
Test = Callable[[Evidence], Iterable[Finding]]


class Claim(NamedTuple):
    """What the paper says, in our words.

    id: unique; numbers are those of arXiv 2305.08813v1; OURS begins those of statements that extend
    the paper's. source: its place, in which versions. test: gives the findings; none without
    evidence. correction: what the findings say instead (tested as `as_corrected` only where it
    mends a slip of the text). difference: its number among the places where text and numbers
    disagree. artefact: what tests it, names in results/ without suffix. lacking: why findings may
    be missing. kind: one of KINDS, or OURS. same_as: the id of a claim that has the same test; the
    two count as one. elsewhere: the verdict of runs that are kept, and their page, for a config
    that does not test the claim itself.
    """

    id: str
    source: str
    text: str
    test: Test
    correction: str = ""
    difference: int | None = None
    artefact: str = "theory"
    lacking: str = "no artefact of this config shows it"
    kind: str = THEOREM
    same_as: str = ""
    elsewhere: tuple[str, str] | None = None


class Claims(list[Claim]):
    """The claims of a module. kind: that of those without one of their own."""

    def __init__(self, claims: Iterable[Claim] = (), kind: str = THEOREM) -> None:
        super().__init__(claims)
        self.kind = kind

    def add(self, id: str, source: str, text: str, *more, **about) -> Callable:
        """The decorator of the function that tests a claim; more, about: further fields of `Claim`.
        The function's parameters name the tables that it needs; those with a default may be
        missing. If no artefact is given, it is these tables."""

        def decorate(test: Callable[..., Findings]) -> Callable[..., Findings]:
            names = inspect.signature(test).parameters
            needed = {name for name, p in names.items() if p.default is p.empty}
            shown = ", ".join(SWEEPS.get(name, name) for name in names) or "theory"

            def on(evidence: Evidence) -> Iterable[Finding]:
                tables = {name: evidence[name] for name in names if name in evidence}
                return test(**tables) if needed <= tables.keys() else ()

            kind = OURS if id.startswith(OURS) else self.kind
            self.append(
                Claim(id, source, text, on, *more, **{"artefact": shown, "kind": kind, **about})
            )
            return test

        return decorate


def from_file(rows: pd.DataFrame) -> list[Claim]:
    """The claims of `results/theory.csv`, whose tests give the findings that were made there."""
    texts = [*TEXTS, "setting", "quantity", "expected", "measured", "spread", "neither"]
    words = rows[texts].drop(columns="difference").astype(object).fillna("")
    rows = rows.assign(**words, difference=rows.difference.astype(object))
    claims = []
    for _, of_claim in rows.groupby("id", sort=False):
        about = of_claim.iloc[0][[*TEXTS]].to_dict()
        if pd.isna(about["difference"]):
            about["difference"] = None
        findings = [Finding(*row) for row in of_claim[[*Finding._fields]].itertuples(index=False)]
        claims.append(Claim(test=lambda _, found=findings: found, **about))
    return claims


def judged(
    setting: str,
    quantity: str,
    expected: str,
    measured: str,
    spread: str,
    verdict: str,
    p: float = math.nan,
) -> Finding:
    """A finding with a verdict that is known, up to FAILS."""
    holds, corrected = verdict == HOLDS, verdict == CORRECTED
    neither = "" if holds or corrected or verdict == FAILS else verdict
    return Finding(
        setting, quantity, expected, measured, spread, holds, corrected, neither=neither, p=p
    )


def holm(p: Sequence[float]) -> np.ndarray:
    """Probabilities of a number of tests, of which any one would do, corrected for their number."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    factors = len(values) - np.arange(len(values))
    corrected = np.minimum(np.maximum.accumulate(values[order] * factors), 1)
    return corrected[np.argsort(order)]


def together(findings: Iterable[Finding]) -> list[Finding]:
    """All rows of a claim. One that fails by a test is not decided if its p, corrected for the
    number of tests, does not reach LEVEL: one of so many rows may be so far off by chance."""
    rows = list(findings)
    tested = [i for i, row in enumerate(rows) if not math.isnan(row.p)]
    corrected = dict(zip(tested, holm([rows[i].p for i in tested]), strict=True))
    return [
        _corrected(row, corrected[i], len(tested)) if i in corrected and len(tested) > 1 else row
        for i, row in enumerate(rows)
    ]


def _corrected(row: Finding, p: float, count: int) -> Finding:
    if row.verdict != FAILS:
        return row
    note = f"{chance(p)} for {count} tests (Holm)"
    spread = f"{row.spread}; {note}" if row.spread else note
    return row._replace(spread=spread, neither=row.neither if p < LEVEL else UNDECIDED)


def short(value: float) -> str:
    """Four digits, or ∞; – for a value that is undefined, as ∞/∞."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")


def chance(p: float, largest: bool = False) -> str:
    """A probability as p = …, with two digits; p ≤ … if it is the largest of several."""
    if p < 1e-4:
        return "p < 0.0001"
    return f"p {'≤' if largest else '='} {p:.2g}"


def interval(values: ArrayLike) -> str:
    """Smallest and largest of some numbers, or the one that all are."""
    low, high = (short(end(np.ravel(values))) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def bounded(
    setting: str, quantity: str, values: ArrayLike, expected: str, spread: str = ""
) -> Finding:
    """Whether all values are as expected, such as "> 1"."""
    sign, bound = expected.split()
    holds = RELATIONS[sign](np.asarray(values), float(bound)).all()
    return Finding(setting, quantity, expected, interval(values), spread, holds)
