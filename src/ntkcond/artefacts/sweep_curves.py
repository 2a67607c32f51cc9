"""What the figures of sweeps share: their tables, and curves of κ and min φ with an infinite-width
line."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.run.files import read_hdf5

POINT = ["dataset", "activation", "depth", "width", "n"]


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of sweep files; the data set is in their paths: …/{dataset}/{activation}.h5."""
    tables = []
    for path in paths:
        with read_hdf5(path) as file:
            columns = {
                name: file[name].asstr()[:] if name == "verdict" else file[name][:] for name in file
            }
            own = {"dataset": path.parts[-2], "activation": file.attrs["activation"]}
            tables.append(pd.DataFrame({**own, **columns, "samples": file.attrs["samples"]}))
    return pd.concat(tables, ignore_index=True)


def table(paths: Iterable[Path]) -> pd.DataFrame:
    """Of sweep files, a row for each data set, activation, depth, width (inf: infinite) and n: the
    columns of κ of `ntkcond.artefacts.fig2.table`, min_angle_deg_mean and _std over seeds."""
    records = []
    for point, group in read(paths).groupby(POINT, sort=False):
        angles = group.drop_duplicates("seed").min_angle_deg
        records.append(
            {
                **kappa_columns(group.assign(nonzero_kappa=np.nan)),
                **dict(zip(POINT, point, strict=True)),
                "min_angle_deg_mean": angles.mean(),
                "min_angle_deg_std": angles.std(),
            }
        )
    table = pd.DataFrame(records).drop(columns="nonzero_kappa_mean")
    return table[[*POINT, *(name for name in table if name not in POINT)]]


def draw_kappa(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """κ against column x: the median, the middle 68 % shaded. Where none is resolved, a hollow
    triangle at the lower bound, or nothing where all are singular."""
    resolved = curve[curve.resolved > 0]
    axes.plot(resolved[x], resolved.kappa_median.replace(np.inf, np.nan), **look)
    low, high = resolved.kappa_q16, resolved.kappa_q84.replace(np.inf, np.nan)
    axes.fill_between(resolved[x], low, high, color=look["color"], alpha=0.15, linewidth=0)
    lost = curve[(curve.unresolved > 0) & (curve.resolved == 0)]
    bounds = {**look, "linestyle": "none", "marker": "^", "markerfacecolor": "white", "label": None}
    axes.plot(lost[x], lost.kappa_lower_bound, **bounds)


def draw_angle(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """min φ against column x: mean over seeds ± one standard deviation."""
    mean, spread = curve.min_angle_deg_mean, curve.min_angle_deg_std.fillna(0)
    axes.plot(curve[x], mean, **look)
    axes.fill_between(
        curve[x], mean - spread, mean + spread, color=look["color"], alpha=0.15, linewidth=0
    )
