"""The best learning rate of a curve in words, of figures and tables of training."""

import pandas as pd


def shown(row: pd.Series) -> str:
    """The rate, with * at the edge of those tried; none where at every rate a run diverged."""
    if pd.isna(row.learning_rate):
        return "none"
    return f"{row.learning_rate:g}{'*' if pd.notna(row.at_edge) and row.at_edge else ''}"


def chosen(rate_for: str) -> str:
    """What one rate is for."""
    return "for each depth" if rate_for == "depth" else "for all depths"
