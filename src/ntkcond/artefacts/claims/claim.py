"""A claim of the paper, what was measured of it, and the verdict."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pandas as pd

HOLDS = "holds"
CORRECTED = "holds as corrected"
FAILS = "does not hold in general"
UNTESTED = "not testable here"
VERDICTS = (HOLDS, CORRECTED, FAILS)  # of several findings the last of these counts

Evidence = Mapping[str, pd.DataFrame]  # the tables of the artefacts, by their names


class Finding(NamedTuple):
    """One measurement that bears on a claim.

    setting: where it was made, such as a data set and a width. quantity: what was measured;
    expected, measured, spread: as they are printed. as_stated: whether it agrees with the paper's
    statement; as_corrected: with the claim's `correction`, where it has one.
    """

    setting: str
    quantity: str
    expected: str
    measured: str
    spread: str
    as_stated: bool
    as_corrected: bool = False

    @property
    def verdict(self) -> str:
        """One of VERDICTS."""
        if self.as_stated:
            return HOLDS
        return CORRECTED if self.as_corrected else FAILS


class Claim(NamedTuple):
    """What the paper says, in our words.

    id: unique; numbers are those of arXiv 2305.08813v1. source: where it stands, in which versions.
    test: gives the findings; none, where the evidence is not there. correction: what the findings
    say instead (tested as `as_corrected` only where it mends a slip of the text). difference: its
    number among the twelve places where text and numbers disagree. artefact: what tests it, names
    in results/ without suffix. lacking: why there may be no finding.
    """

    id: str
    source: str
    text: str
    test: Callable[[Evidence], Iterable[Finding]]
    correction: str = ""
    difference: int | None = None
    artefact: str = "claims"
    lacking: str = "no artefact of this config shows it"


def short(value: float) -> str:
    """Four digits, or ∞; – where there is no number, as of ∞/∞."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")


def interval(values: Iterable[float]) -> str:
    """Smallest and largest of some numbers, or the one that all are."""
    low, high = min(values), max(values)
    return short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"
