"""Results of single jobs, in tests/reference/baseline: later code is held against them.

    .venv/bin/python tests/baseline.py check                 recomputes a sample, and compares
    .venv/bin/python tests/baseline.py check --sample 60 --seed 2 --datasets mnist
    .venv/bin/python tests/baseline.py grades                of what grade today's verdicts are
    .venv/bin/python tests/baseline.py record                recomputes all, and writes the CSVs

Real files are read from the folder NTKCOND_TEST_DATA; data sets that it lacks are left out. A job
is what a job of the workflow computes: `main` of its step, on one thread.
"""

import argparse
import hashlib
import math
import os
import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from ntkcond.checks import ANGLE, LAMBDA_MAX, compared, loss_tolerance, run_step
from ntkcond.datasets.samples import Samples
from ntkcond.steps import closest_pair, corpus, dataset, sgd, spectrum

FOLDER = Path(__file__).parent / "reference/baseline"
PIXELS = {"samples": 10_000, "scale": (-1.0, 1.0)}
DATASETS: dict[str, dict[str, Any]] = {  # settings as in config.yaml, with fewer samples
    "synthetic": {"samples": 10_000, "features": 5},
    "digits": {"samples": "all", "scale": (-1.0, 1.0)},
    "mnist": PIXELS,
    "fashion_mnist": PIXELS,
    "librispeech": {
        "samples": 10_000, "hold_out": 2000, "subset": "train-clean-100", "features": 768,
        "mel": 48, "splice": 16, "normalise": "global", "bad_utterances": "refuse",
    },
}  # fmt: skip
FILES = {  # the folders that must be in NTKCOND_TEST_DATA
    "mnist": "MNIST/raw",
    "fashion_mnist": "FashionMNIST/raw",
    "librispeech": "LibriSpeech/train-clean-100",
}
HELD_OUT = {"digits": 360}  # in training only; the others have test samples, or no labels
SEEDS = (1, 32, 111, 555, 666)  # the authors'
TRAINING: dict[str, Any] = {
    "convention": "authors", "loss": "cross_entropy", "epochs": 2, "stop_below": 0.0,
    "tf32": False, "checkpoint_minutes": 60.0,
}  # fmt: skip

RATES = {1: 8.0, 3: 2.0, 10: 0.5}  # by depth: at higher ones training amplifies rounding more
LIMITS = ("lambda_max", "lambda_min", "lambda_min_error")
MEASURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")

Row = dict[str, Any]


@cache
def samples_of(name: str, hold_out: int | None = None) -> Samples:
    """By the data set's step; hold_out: in place of the setting."""
    unused = ("scale", "features", "hold_out", "file", "corpus", "labels")
    folder = Path(os.environ.get("NTKCOND_TEST_DATA", ""))
    arguments = {**dict.fromkeys(unused), **DATASETS[name], "source": name, "seed": 0, "threads": 1}
    arguments |= {"data_dir": folder} | ({"hold_out": hold_out} if hold_out else {})
    if name != "librispeech":
        return dataset.choose(Namespace(**arguments))
    with tempfile.TemporaryDirectory(prefix="ntkcond-") as place:
        index = Path(place, "corpus.h5")
        words = [f"--subset={arguments['subset']}", f"--data-dir={folder}", f"--output={index}"]
        corpus.main(Namespace(**vars(corpus.OPTIONS.parse_args(words)), record=None))
        return dataset.choose(Namespace(**{**arguments, "corpus": index}))


def digest(job: Row) -> list[Row]:
    """What samples the other kinds have: with others, their numbers differ."""
    x = samples_of(job["dataset"]).x
    sha256 = hashlib.sha256(x.tobytes()).hexdigest()
    return [{**job, "samples": len(x), "features": x.shape[1], "sha256": sha256}]


def conditioning(job: Row) -> list[Row]:
    """Both ends of the spectrum of a block of n samples, the bound on their error, the verdict."""
    n, block = job["n"], job["block"]
    x = samples_of(job["dataset"]).x[block * n : (block + 1) * n]
    options = {name: job[name] for name in ("activation", "depth")}
    values = run_step(spectrum.main, {"x": x}, seeds=[job["seed"]], **options)
    row = {name: float(values[name][0, 0]) for name in LIMITS}
    return [{**job, **row, "verdict": values["verdict"][0, 0].decode()}]


def smallest_angle(job: Row) -> list[Row]:
    """min φ among the first n samples, and the pair."""
    x = samples_of(job["dataset"]).x[: job["n"]]
    options = {name: job[name] for name in ("activation", "depth")}
    values = run_step(closest_pair.main, {"x": x}, seeds=[job["seed"]], **options)
    first, second = (int(i) for i in values["closest_pair"][0])
    angle = float(values["min_angle_deg"][0])
    return [{**job, "min_angle_deg": angle, "first": first, "second": second}]


def training(job: Row) -> list[Row]:
    """A row for each epoch of SGD."""
    samples = samples_of(job["dataset"], HELD_OUT.get(job["dataset"]))
    arrays = {name: getattr(samples, name) for name in ("x", "y", "x_test", "y_test")}
    options = {name: job[name] for name in ("activation", "depth", "batch")}
    lists = {"seeds": [job["seed"]], "learning_rates": [job["learning_rate"]]}
    values = run_step(sgd.main, arrays, **TRAINING, **options, **lists)
    torch.set_flush_denormal(False)  # sgd.main sets it for the whole process
    return [
        {**job, "epoch": i + 1, **{name: float(values[name][0, 0, i]) for name in MEASURES}}
        for i in range(TRAINING["epochs"])
    ]


def conditioning_tolerances(old: Row, new: Row) -> Row:
    """λ_min: twice the recorded error, which was an estimate; a proved one may be far larger."""
    return {
        "lambda_max": LAMBDA_MAX * old["lambda_max"],
        "lambda_min": 2 * old["lambda_min_error"],
        "lambda_min_error": math.inf,
    }


def angle_tolerances(old: Row, new: Row) -> Row:
    """The pair is the same, and its angle exact to rounding."""
    return {"min_angle_deg": ANGLE}


def training_tolerances(old: Row, new: Row) -> Row:
    """When the last bit of every input was changed at random, losses moved by a tenth of their
    tolerance or less, and of 10,000 test samples 8 were classified otherwise; 0.005 is one of 360.
    """
    tolerance = loss_tolerance(old["depth"])
    losses = {name: tolerance * old[name] for name in ("train_loss", "test_loss")}
    return {**losses, "train_accuracy": 0.005, "test_accuracy": 0.005}


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind: each is a row of settings; and what is compared of their results."""

    jobs: Sequence[Row]
    compute: Callable[[Row], list[Row]]
    tolerances: Callable[[Row, Row], Row]

    @property
    def settings(self) -> list[str]:
        """The columns that name a job."""
        return list(self.jobs[0])


ONE = {"activation": "relu", "seed": SEEDS[0]}
KERNELS = [
    {"dataset": name, "depth": depth, "activation": sigma, "seed": seed, "block": i % 3, "n": 512}
    for name in DATASETS  # 1,797 digits have three blocks
    for depth in (1, 2, 3, 4, 6, 10)
    for sigma in ("relu", "linear")
    for i, seed in enumerate(SEEDS)
]
LARGE = [
    {"dataset": name, "depth": 3, **ONE, "block": 0, "n": 8192}
    for name in DATASETS
    if name != "digits"
]
ANGLES = [
    {"dataset": name, "depth": depth, **ONE, "n": 1797 if name == "digits" else 10_000}
    for name in DATASETS
    for depth in (1, 3, 10)
]
RUNS = [
    {"dataset": name, "depth": depth, **ONE, "batch": 500, "learning_rate": rate}
    for name in DATASETS
    if name != "synthetic"  # no labels
    for depth, rate in RATES.items()
]
KINDS = {  # by the name of their CSV
    "samples": Kind([{"dataset": name} for name in DATASETS], digest, lambda old, new: {}),
    "kernels": Kind(KERNELS, conditioning, conditioning_tolerances),
    "large_kernels": Kind(LARGE, conditioning, conditioning_tolerances),
    "angles": Kind(ANGLES, smallest_angle, angle_tolerances),
    "training": Kind(RUNS, training, training_tolerances),
}


def record(names: Iterable[str], folder: Path) -> None:
    """Writes a CSV for each of these kinds."""
    for name in names:
        started = time.perf_counter()
        rows = [row for job in KINDS[name].jobs for row in KINDS[name].compute(job)]
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
        print(f"{name}: {len(rows)} rows in {time.perf_counter() - started:.0f} s", flush=True)


def recorded(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """The CSV of a kind; pandas reads every digit."""
    return pd.read_csv(folder / f"{name}.csv")


def in_tolerances(kind: Kind, old: Row, new: Row) -> dict[str, float]:
    """Each column's difference in units of its tolerance; of columns without one 0 or ∞."""
    tolerances = kind.tolerances(old, new)
    return {
        name: compared(old[name], new[name], tolerances[name])
        if name in tolerances
        else 0.0 if new[name] == old[name] else math.inf
        for name in old
    }  # fmt: skip


def check(
    names: Iterable[str], datasets: Iterable[str], sample: int, seed: int, folder: Path = FOLDER
) -> list[str]:
    """Recomputes `sample` jobs of each kind, fewer if there are not as many. Prints a line for each
    kind; returns one for each number that is off."""
    wrong = []
    for name in names:
        kind, started = KINDS[name], time.perf_counter()
        table = recorded(name, folder)
        groups = table[table.dataset.isin(list(datasets))].groupby(kind.settings, sort=False)
        jobs = [rows.to_dict("records") for _, rows in groups]
        chosen = random.Random(seed).sample(jobs, min(sample, len(jobs)))
        differences = []
        for rows in chosen:
            again = kind.compute({column: rows[0][column] for column in kind.settings})
            for old, new in zip(rows, again, strict=True):
                words = " ".join(str(old[column]) for column in kind.settings)
                for column, size in in_tolerances(kind, old, new).items():
                    what = f"{name}, {words}: {column} {new[column]}, was {old[column]}"
                    differences.append((math.inf if math.isnan(size) else size, what))
        wrong += [
            f"{what}: {size:.3g} times the tolerance" for size, what in differences if size > 1
        ]
        largest, seconds = max(differences, default=(0.0, ""))[0], time.perf_counter() - started
        print(
            f"{name}: {len(chosen)} of {len(jobs)} jobs in {seconds:.0f} s;"
            f" largest difference {largest:.2g} of its tolerance",
            flush=True,
        )
    return wrong


def grades(datasets: Iterable[str]) -> pd.DataFrame:
    """How many of the kernels of n = 512 have which verdict and grade, with the largest error of
    λ_min in units of it, by data set, activation and depth."""
    rows = []
    for job in KINDS["kernels"].jobs:
        if job["dataset"] in datasets:
            block = slice(job["block"] * job["n"], (job["block"] + 1) * job["n"])
            x = samples_of(job["dataset"]).x[block]
            options = {name: job[name] for name in ("activation", "depth")}
            values = run_step(spectrum.main, {"x": x}, seeds=[job["seed"]], **options)
            verdict, grade = (values[name][0, 0].decode() for name in ("verdict", "grade"))
            error = values["lambda_min_error"][0, 0] / abs(values["lambda_min"][0, 0])
            rows.append({**job, "verdict": verdict, "grade": grade, "relative_error": error})
    columns = ["dataset", "activation", "depth", "verdict", "grade"]
    groups = pd.DataFrame(rows).groupby(columns, sort=False)
    return groups.relative_error.agg(["size", "max"]).reset_index()


def available(datasets: Iterable[str]) -> list[str]:
    """The data sets whose files are at hand; prints a line on the others."""
    folder = os.environ.get("NTKCOND_TEST_DATA", "")
    missing = {name for name, path in FILES.items() if not (folder and Path(folder, path).is_dir())}
    if left_out := [name for name in datasets if name in missing]:
        print(f"left out, not in the folder NTKCOND_TEST_DATA: {', '.join(left_out)}")
    return [name for name in datasets if name not in missing]


def main(words: Sequence[str] | None = None) -> int:
    """The command line; its exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("command", choices=["record", "check", "grades"])
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    options.add_argument("--sample", type=int, default=8, help="jobs of each kind")
    options.add_argument("--seed", type=int, default=0, help="of the sample")
    a = options.parse_args(words)
    datasets = available(a.datasets)
    if a.command == "record":
        if datasets != list(DATASETS):
            return 1
        record(a.kinds, FOLDER)
        return 0
    if a.command == "grades":
        print(grades(datasets).to_csv(index=False), end="")
        return 0
    wrong = check(a.kinds, datasets, a.sample, a.seed, FOLDER)
    print("\n".join(wrong) or "all within their tolerances")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
