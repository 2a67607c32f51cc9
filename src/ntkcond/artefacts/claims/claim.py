"""A claim of the paper, the findings that test it, and the verdict."""

import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

VACUOUS = "vacuous here"
HOLDS = "holds"
CORRECTED = "holds as corrected"
UNDECIDED = "not decided"
FAILS = "does not hold in general"
CONJECTURE = "conjecture"
UNTESTED = "not testable here"
# Of a claim that of its findings which comes last here, so that a vacuous one adds nothing and one
# failure is enough; then, if the paper only believes it, CONJECTURE, whatever the findings are.
VERDICTS = (VACUOUS, HOLDS, CORRECTED, UNDECIDED, FAILS, CONJECTURE, UNTESTED)
OURS = "ours"  # begins the ids of statements that the paper does not make

Evidence = Mapping[str, pd.DataFrame]  # the tables of the artefacts, by their names
SWEEPS = {"first_layer": "sweeps/first_layer", "infinite": "sweeps/infinite"}
RELATIONS = {">": operator.gt, "<": operator.lt, "≥": operator.ge, "≤": operator.le}


class Finding(NamedTuple):
    """One measurement that tests a claim.

    setting: of the measurement, such as a data set and a width. quantity: what was measured;
    expected, measured, spread: as they are printed. as_stated: whether it agrees with the paper's
    statement; as_corrected: with the claim's `correction`, where it has one. neither: UNDECIDED,
    where the spread allows neither, or VACUOUS, where the statement could not have failed.
    """

    setting: str
    quantity: str
    expected: str
    measured: str
    spread: str
    as_stated: bool
    as_corrected: bool = False
    neither: str = ""

    @property
    def verdict(self) -> str:
        """Up to FAILS, one of VERDICTS."""
        judged = HOLDS if self.as_stated else CORRECTED if self.as_corrected else FAILS
        return self.neither or judged


Findings = Iterator[Finding]
Test = Callable[[Evidence], Iterable[Finding]]


class Claim(NamedTuple):
    """What the paper says, in our words.

    id: unique; numbers are those of arXiv 2305.08813v1; OURS begins those of statements that extend
    the paper's. source: its place, in which versions. test: gives the findings; none without
    evidence. correction: what the findings say instead (tested as `as_corrected` only where it
    mends a slip of the text). difference: its number among the places where text and numbers
    disagree. artefact: what tests it, names in results/ without suffix. lacking: why findings may
    be missing. conjecture: whether the paper puts it as its belief.
    """

    id: str
    source: str
    text: str
    test: Test
    correction: str = ""
    difference: int | None = None
    artefact: str = "claims"
    lacking: str = "no artefact of this config shows it"
    conjecture: bool = False


class Claims(list[Claim]):
    """The claims of a module."""

    def add(self, id: str, source: str, text: str, *more, **about) -> Callable:
        """The decorator of the function that tests a claim; more, about: further fields of `Claim`.
        The function's parameters name the tables that it needs; those with a default may be
        missing. If no artefact is given, it is these tables."""

        def decorate(test: Callable[..., Findings]) -> Callable[..., Findings]:
            names = inspect.signature(test).parameters
            needed = {name for name, p in names.items() if p.default is p.empty}
            shown = ", ".join(SWEEPS.get(name, name) for name in names) or "claims"

            def on(evidence: Evidence) -> Iterable[Finding]:
                tables = {name: evidence[name] for name in names if name in evidence}
                return test(**tables) if needed <= tables.keys() else ()

            self.append(Claim(id, source, text, on, *more, **{"artefact": shown, **about}))
            return test

        return decorate


def judged(
    setting: str, quantity: str, expected: str, measured: str, spread: str, verdict: str
) -> Finding:
    """A finding with a verdict that is known: HOLDS, FAILS, UNDECIDED or VACUOUS."""
    neither = verdict if verdict in (UNDECIDED, VACUOUS) else ""
    return Finding(setting, quantity, expected, measured, spread, verdict == HOLDS, neither=neither)


def short(value: float) -> str:
    """Four digits, or ∞; – for a value that is undefined, as ∞/∞."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")


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
