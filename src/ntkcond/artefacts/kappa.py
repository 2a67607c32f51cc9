"""κ of many kernels as one point of a figure: never an average of ∞, or of a bound."""

import numpy as np
import pandas as pd

_VERDICTS = ("resolved", "singular", "unresolved")
_GRADES = ("proved", "model", "estimated")  # from the strongest


def kappa_columns(rows: pd.DataFrame) -> dict:
    """Mean and spread of κ over the rows (seeds and blocks) of one curve and depth, as
    `ntkcond.artefacts.fig2.table` describes them."""
    counts = {name: int((rows.verdict == name).sum()) for name in _VERDICTS}
    verdicts = [name for name, count in counts.items() if count]
    resolved = rows.kappa[rows.verdict == "resolved"]
    between = "linear" if np.isfinite(rows.kappa).all() else "lower"  # ∞ has no halfway
    low, median, high = rows.kappa.quantile([0.16, 0.5, 0.84], interpolation=between)
    return {
        "width": rows.width.iloc[0],
        "n": rows.n.iloc[0],
        "samples": rows.samples.iloc[0],
        "seeds": rows.seed.nunique(),
        "blocks": rows.block.nunique(),
        "kappa_mean": np.inf if verdicts == ["singular"] else resolved.mean(),
        "kappa_std": resolved.std(),
        "kappa_median": median,
        "kappa_q16": low,
        "kappa_q84": high,
        "kappa_lower_bound": rows.kappa_lower[rows.verdict == "unresolved"].min(),
        "kappa_verdict": verdicts[0] if len(verdicts) == 1 else "mixed",
        "kappa_grade": max(rows.grade, key=_GRADES.index),
        **counts,
        "nonzero_kappa_mean": rows.nonzero_kappa.mean(),
    }
