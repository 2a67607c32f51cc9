"""Rows of kept tables, recomputed by today's code: a random sample, held against what is kept.

Each row is recomputed as a job of the workflow would: by `main` of its step, on one thread. Two
numbers agree within the errors that both state, or within what rounding moves. Of training only the
first two epochs are compared: on another machine, or with another number of threads, later ones
agree in distribution alone.
"""

import functools
import math
import random
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ntkcond.networks.architectures import ARCHITECTURES
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.steps import architecture, closest_pair, kernel, sgd, spectrum, sweep

LARGEST = 16_384  # samples in an NTK: larger ones take hours, and are not drawn
LAMBDA_MAX = 1e-10  # of itself: rounding moves it by far less
ANGLE = 1e-9  # degrees: rounding moves an angle by some 10⁻¹²
FIRST = 2  # epochs of a run that are compared
# Training in float32 amplifies rounding: little at low rates, up to percents of a loss at the
# highest that do not diverge. How much is found out, by inputs that are changed at random by what
# rounding does to a product of 784 terms; a loss may differ by so many times the largest move.
CHANGED, DRAWS, MOVES = 3e-6, 4, 5
NETWORK = {"width": 512, "trainable": "all", "bias": 0.0, "device": "cpu", "threads": 1}
OF_NETWORK = ("activation", "depth", "width", "bias", "trainable")

Row = Mapping[str, Any]


def run_step(main: Callable[[Namespace], None], x: Mapping, **options: object) -> dict:
    """The arrays that a step writes. x: those of its data set's file; options: of its command line,
    over `NETWORK`."""
    with tempfile.TemporaryDirectory(prefix="ntkcond-") as name:
        place = Path(name)
        with write_hdf5(place / "data.h5") as file:
            file.update({key: values for key, values in x.items() if values is not None})
        arguments = {**NETWORK, **options, "dataset": place / "data.h5", "record": None}
        if main is spectrum.main:
            arguments |= {"kernel": place / "kernel.h5", "block": len(x["x"])}
            kernel.main(Namespace(**arguments, output=arguments["kernel"]))
        main(Namespace(**arguments, output=place / "output.h5", prove_smallest=False))
        with read_hdf5(place / "output.h5") as file:
            return {key: values[()] for key, values in file.items()}


def of_kernel(row: Row, arrays: Mapping) -> dict[str, tuple[float, float]]:
    """A row of conditioning.csv: each number now, and its tolerance."""
    n, block = int(row["n"]), int(row["block"])
    x = arrays["x"][block * n : (block + 1) * n]
    options = {name: row[name] for name in OF_NETWORK if name in row}
    now = run_step(spectrum.main, {"x": x}, seeds=[int(row["seed"])], **options)
    error = float(row["lambda_min_error"]) + float(now["lambda_min_error"][0, 0])
    largest = LAMBDA_MAX * row["lambda_max"] + (error if row.get("kinks", 0) else 0)
    return {
        "lambda_max": (float(now["lambda_max"][0, 0]), largest),
        "lambda_min": (float(now["lambda_min"][0, 0]), error),
    }


def of_pair(row: Row, arrays: Mapping) -> dict[str, tuple[float, float]]:
    """A row of angles.csv: the angle of the pair that was found, of the two samples alone."""
    pair = arrays["x"][[int(row["first"]), int(row["second"])]]
    options = {name: row[name] for name in OF_NETWORK}
    now = run_step(closest_pair.main, {"x": pair}, seeds=[int(row["seed"])], **options)
    return {"min_angle_deg": (float(now["min_angle_deg"][0]), ANGLE)}


def of_sweep(row: Row, arrays: Mapping) -> dict[str, tuple[float, float]]:
    """A row of a table of sweeps, with its job's settings: λ_max, and κ if both are resolved."""
    n, block = int(row["n"]), int(row["block"])
    x = arrays["x"][block * n : (block + 1) * n]
    options = {name: row[name] for name in ("activation", "bias")}
    options |= {"trainable": row["settings"].get("trainable", "all"), "sizes": [n], "blocks": 1}
    options |= {"depths": [int(row["depth"])], "widths": [row["width"]]}
    now = run_step(sweep.main, {"x": x}, seeds=[int(row["seed"])], **options)
    found = {"lambda_max": (float(now["lambda_max"][0]), LAMBDA_MAX * row["lambda_max"])}
    if {row["verdict"], now["verdict"][0].decode()} == {"resolved"}:
        spread = abs(row["kappa"] - row["kappa_lower"]) + abs(
            now["kappa"][0] - now["kappa_lower"][0]
        )
        found["kappa"] = (float(now["kappa"][0]), 2 * spread + LAMBDA_MAX * row["kappa"])
    return found


def of_architecture(row: Row, arrays: Mapping) -> dict[str, tuple[float, float]]:
    """A row of fig_architectures.csv, with its job's settings: the median of κ over initialisations
    and blocks."""
    options = {"shape": None, "bias": 0.0, "file": None, **row["settings"]}
    options |= {"activations": [row["activation"]], "depths": [int(row["depth"])]}
    now = run_step(architecture.main, {"x": arrays["x"]}, **options)
    errors = (now["kappa"] - now["kappa_lower"]) / now["kappa"]
    tolerance = (2 * float(errors.max()) + LAMBDA_MAX) * row["kappa_median"]
    return {"kappa_median": (float(np.median(now["kappa"])), tolerance)}


def of_epoch(row: Row, arrays: Mapping) -> dict[str, tuple[float, float]]:
    """A row of training.csv, of one of the first epochs."""
    epoch = int(row["epoch"])
    names = ("activation", "depth", "width", "batch", "convention", "loss")
    options = {name: row[name] for name in names} | {"bias": row.get("bias", 0.0), "epochs": epoch}
    options |= {"stop_below": 0.0, "tf32": False, "checkpoint_minutes": 60.0}
    lists = {"seeds": [int(row["seed"])], "learning_rates": [float(row["learning_rate"])]}
    now, *draws = (
        float(run_step(sgd.main, x, **options, **lists)["train_loss"][0, 0, epoch - 1])
        for x in (arrays, *map(functools.partial(changed_at_random, arrays), range(DRAWS)))
    )
    moves = filter(math.isfinite, (abs(draw - now) for draw in draws))
    return {"train_loss": (now, MOVES * max(moves, default=0.0))}


def changed_at_random(arrays: Mapping, seed: int) -> dict:
    """The arrays of a data set, each number of x changed by some `CHANGED` of itself."""
    x = arrays["x"]
    noise = np.random.default_rng(seed).standard_normal(x.shape, np.float32)
    return {**arrays, "x": (x * (1 + CHANGED * noise)).astype(x.dtype)}


def _small(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.n <= LARGEST]


def _first_epochs(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs that did not diverge, at the lowest rate: there rounding is amplified least."""
    rows = rows[(rows.epoch <= FIRST) & rows.diverged_epoch.isna() & ~rows.tf32.astype(bool)]
    lowest = rows.groupby(["dataset", "depth", "seed"]).learning_rate.transform("min")
    return rows[rows.learning_rate == lowest]


def _quick(rows: pd.DataFrame) -> pd.DataFrame:
    """Networks of this package, of which each κ is resolved; the convolutional one takes hours."""
    names = [name for name in ARCHITECTURES if name != "convolutional"]
    return rows[rows.architecture.isin(names) & (rows.resolved == rows.seeds * rows.blocks)]


# Tables whose rows can be recomputed: the rule of their jobs, how, which rows, how many at most.
TABLES: dict[str, tuple[str, Callable, Callable, int]] = {
    "conditioning": ("spectrum", of_kernel, _small, 40),
    "angles": ("closest_pair", of_pair, lambda rows: rows, 20),
    **{
        f"sweep_{name}": ("sweep", of_sweep, _small, 8)
        for name in ("activations", "first_layer", "infinite", "width")
    },
    "fig_architectures": ("architecture", of_architecture, _quick, 4),
    "training": ("sgd", of_epoch, _first_epochs, 3),
}


def sample(
    tables: Mapping[str, pd.DataFrame], samples: Callable[[str], Mapping], seed: int = 0
) -> pd.DataFrame:
    """A row for each number of these tables that is compared: kept and now, their difference in
    units of its tolerance (`ratio`), and whether they agree: a ratio up to 1. samples: the arrays
    of a data set, by its name."""
    found = []
    for name, table in tables.items():
        rule, recompute, drawable, count = TABLES[name]
        rows = drawable(table)
        chosen = random.Random(seed).sample(range(len(rows)), min(count, len(rows)))
        for row in rows.iloc[sorted(chosen)].to_dict("records"):
            job = {key: row.get(key) for key in ("dataset", "activation", "depth", "seed")}
            for number, (now, tolerance) in recompute(row, samples(row["dataset"])).items():
                ratio = compared(row[number], now, tolerance)
                about = {"table": name, "rule": rule, **job, "number": number}
                values = {"kept": row[number], "now": now, "ratio": ratio, "agrees": ratio <= 1}
                found.append(about | values)
    return pd.DataFrame(found)


def compared(kept: float, now: float, tolerance: float) -> float:
    """The difference in units of its tolerance; NaN, as of a bound that overflowed, bounds
    nothing."""
    if math.isnan(now) != math.isnan(kept):
        return math.inf
    if kept == now or (math.isnan(kept) and math.isnan(now)) or math.isnan(tolerance):
        return 0.0
    return abs(float(now) - float(kept)) / tolerance if tolerance else math.inf


def arrays_of(path: Path, names: Iterable[str] = ("x", "y", "x_test", "y_test")) -> dict:
    """The arrays of a data set's file."""
    with read_hdf5(path) as file:
        return {name: np.asarray(file[name]) for name in names if name in file}
