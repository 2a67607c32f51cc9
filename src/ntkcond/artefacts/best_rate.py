"""The learning rate of a curve in words, of figures and tables of training: the best of those
tried, or the one that was tried, which is neither best nor at an edge."""

import pandas as pd

EDGES = ("lowest", "highest")  # of several rates tried


def shown(row: pd.Series) -> str:
    """The rate, with * at the edge of several tried; none where at every rate a run diverged."""
    if pd.isna(row.learning_rate):
        return "none"
    return f"{row.learning_rate:g}{'*' if row.at_edge in EDGES else ''}"


def alone(rows: pd.DataFrame) -> str:
    """Says that one rate was tried, at each depth or at which; empty if several were everywhere."""
    only = rows.at_edge == "only"
    if not only.any():
        return ""
    if only[rows.learning_rate.notna()].all():
        return "one at each depth, compared with no other"
    return f"compared with no other at L = {', '.join(map(str, sorted(rows.depth[only].unique())))}"


def chosen(rate_for: str, stops: bool) -> str:
    """What one rate is for, and why it is the best. stops: whether runs end below a loss."""
    why = f"{'whose runs stop first, else ' * stops}with the lowest final training loss"
    return f"{why}, for {'each depth' if rate_for == 'depth' else 'all depths'}"
