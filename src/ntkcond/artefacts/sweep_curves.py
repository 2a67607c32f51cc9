"""The tables of sweeps; curves of min φ and κ with those at infinite width."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ntkcond.artefacts import style
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.datasets.registry import title
from ntkcond.run.files import read_hdf5

POINT = ["dataset", "activation", "depth", "width", "n"]


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of sweep files; the data set is in their paths: …/{dataset}/{activation}.h5."""
    tables = []
    for path in paths:
        with read_hdf5(path) as file:
            about = {"dataset": path.parts[-2], "activation": file.attrs["activation"]}
            columns = {name: file[name][:] for name in file}
            columns["verdict"] = file["verdict"].asstr()[:]
            tables.append(pd.DataFrame({**about, **columns, "samples": file.attrs["samples"]}))
    return pd.concat(tables, ignore_index=True)


def table(paths: Iterable[Path]) -> pd.DataFrame:
    """A row for each data set, activation, depth, width (inf: infinite) and n: the columns of κ of
    `ntkcond.artefacts.fig2.table`, min_angle_deg_mean and _std over seeds."""
    records = []
    for point, rows in read(paths).groupby(POINT, sort=False):
        angles = rows.drop_duplicates("seed").min_angle_deg
        about = dict(zip(POINT, point, strict=True))
        kappas = kappa_columns(rows.assign(nonzero_kappa=np.nan))
        spread = {"min_angle_deg_mean": angles.mean(), "min_angle_deg_std": angles.std()}
        records.append({**about, **kappas, **spread})
    return pd.DataFrame(records).drop(columns="nonzero_kappa_mean")


def draw_kappa(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """κ against column x: the median, the middle 68 % shaded. Where none is resolved, a hollow
    triangle at the lower bound, or nothing where all are singular."""
    resolved = curve[curve.resolved > 0]
    axes.plot(resolved[x], resolved.kappa_median.replace(np.inf, np.nan), **look)
    low, high = resolved.kappa_q16, resolved.kappa_q84.replace(np.inf, np.nan)
    style.shade(axes, resolved[x], low, high, look["color"])
    lost = curve[(curve.unresolved > 0) & (curve.resolved == 0)]
    bounds = {**look, "linestyle": "none", "marker": "^", "markerfacecolor": "white", "label": None}
    axes.plot(lost[x], lost.kappa_lower_bound, **bounds)


def draw_angle(axes: Axes, x: str, curve: pd.DataFrame, look: dict) -> None:
    """min φ against column x: mean over seeds ± one standard deviation."""
    mean, spread = curve.min_angle_deg_mean, curve.min_angle_deg_std.fillna(0)
    axes.plot(curve[x], mean, **look)
    style.shade(axes, curve[x], mean - spread, mean + spread, look["color"])


def draw_rows(
    numbers: pd.DataFrame,
    heights: tuple[float, float],
    draw: Callable[[Axes, Axes, pd.DataFrame], None],
) -> tuple[style.Picture, np.ndarray]:
    """A row of two panels for each data set: min φ and κ, which draw(left, right, rows) draws.
    heights: of the figure without rows, and of each row, in inches."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=heights[0] + heights[1] * len(datasets))
    panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True)
    for (left, right), (dataset, rows) in zip(panels, datasets, strict=True):
        draw(left, right, rows)
        left.set_title(f"{title(dataset)}: separation")
        left.set_ylabel("smallest gradient angle\n" r"$\min\,\phi$ (degrees)")
        left.set_ylim(bottom=0)
        right.set_title(f"{title(dataset)}: conditioning")
        right.set_ylabel(rf"$\kappa$ of $n$ = {rows.n.iloc[0]:,} samples")
        right.set_yscale("log")
    return figure, panels
