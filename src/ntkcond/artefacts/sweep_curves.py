"""The tables of sweeps: κ and min φ at each depth, width and n. Claims read them: without style."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts import interval
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.run.files import read_hdf5

POINT = ["dataset", "activation", "depth", "width", "n"]


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of sweep files; the data set is in their paths: …/{dataset}/{activation}.h5."""
    tables = []
    for path in paths:
        with read_hdf5(path) as file:
            settings = {name: file.attrs[name] for name in ("activation", "bias")}
            about = {"dataset": path.parts[-2], **settings}
            columns = {name: file[name][:] for name in file}
            for name in ("verdict", "grade"):
                columns[name] = file[name].asstr()[:]
            tables.append(pd.DataFrame({**about, **columns, "samples": file.attrs["samples"]}))
    return pd.concat(tables, ignore_index=True)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set, activation, depth, width (inf: infinite) and n: the columns of κ of
    `ntkcond.artefacts.fig2.table`; min_angle_deg_mean over seeds, with _low and _high, its 95 %
    interval, and _std. rows: of `read`."""
    records = []
    for point, some in rows.groupby(POINT, sort=False):
        angles = some.drop_duplicates("seed").min_angle_deg
        about = dict(zip(POINT, point, strict=True))
        kappas = kappa_columns(some.assign(nonzero_kappa=np.nan))
        records.append({**about, **kappas, **interval.angle_columns("min_angle_deg", angles)})
    return pd.DataFrame(records).drop(columns="nonzero_kappa_mean")
