"""What the numbers say of a claim, in short: the measurements on which its verdict rests."""

import re

import pandas as pd

from ntkcond.artefacts.verdicts.claim import VERDICTS

MOST = 2  # quantities that are told; the others stand with the measurements
NUMBER = r"[+−]?(?:\d[\d.]*(?:e[+−]?\d+)?|∞)"
RANGE = re.compile(rf"({NUMBER})(?: to ({NUMBER}))?")


def worst(rows: pd.DataFrame) -> str:
    """Among a claim's rows, the verdict that counts."""
    return max(rows.verdict, key=VERDICTS.index)


def in_words(rows: pd.DataFrame) -> str:
    """A line for each quantity. rows: those of one claim, of `ntkcond.artefacts.claims.table`,
    without missing texts."""
    first = rows.iloc[0]
    if not first.quantity:
        if first.same_as:
            return f"Measured {first.measured}."
        return "" if first.support else f"Not tested here: {first.measured}."
    deciding = rows[rows.verdict == worst(rows)]
    groups = [group for _, group in deciding.groupby(["quantity", "expected"], sort=False)]
    told = [_told(group) for group in groups[:MOST]]
    if len(groups) > MOST:
        told.append(f"And {len(groups) - MOST} more.")
    return "\n".join(told)


def _told(rows: pd.DataFrame) -> str:
    """Rows of one quantity that expect the same."""
    first = rows.iloc[0]
    ends = [RANGE.fullmatch(text) for text in rows.measured]
    settings = rows.setting.unique()
    measured, where = first.measured, first.setting
    if len(rows) > 1 and all(ends):
        values = [end for match in ends if match for end in match.groups() if end]
        low, high = (extreme(values, key=_value) for extreme in (min, max))
        measured = low if _value(low) == _value(high) else f"{low} to {high}"
        where = f"{len(settings)} settings" if len(settings) > 1 else where
    elif len(rows) > 1:
        where += f"; and {len(rows) - 1} more"
    bounds = [text for text in rows.spread if "unresolved" in text]  # what is told may be a bound
    if bounds:
        where += f"; {bounds[0]}" + (f"; {len(bounds)} such settings" if len(bounds) > 1 else "")
    return f"{first.quantity}: {measured}; expected: {first.expected} ({where})."


def _value(number: str) -> float:
    return float(number.replace("−", "-").replace("∞", "inf"))
