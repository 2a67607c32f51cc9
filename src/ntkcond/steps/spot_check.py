"""Kept results against today's code, by a random sample of their numbers: checks/{dataset}.csv.

A study keeps the small files of its jobs, such as spectra, not the NTKs that these come from.
"""

import math
import random
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ntkcond.arrays.backend import Array, Device, put
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.jobs.closest_pair import need as search_need
from ntkcond.jobs.sgd import need as training_need
from ntkcond.jobs.sweep import need as ntk_need
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.closest_pair import closest_gradients, unit_gradients
from ntkcond.ntk.empirical import empirical_ntk, empirical_ntk_half
from ntkcond.ntk.rounding import KernelError, gradients_with_error
from ntkcond.ntk.spectrum import FULL_SPECTRUM_UP_TO, UNRESOLVED
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import csv_of, read_hdf5, write_artefact
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.progress import progress
from ntkcond.run.record import read as read_record
from ntkcond.steps import network_options, spectra, training_task
from ntkcond.training import sgd
from ntkcond.training.sgd import Model, Run

LARGEST = 16_384  # samples in an NTK: larger ones take hours, and are not drawn
PAIRS = 10  # closest pairs whose angle is computed again: two samples each
LAMBDA_MAX = 1e-10  # of itself: rounding moves it by far less
ANGLE = 1e-9  # degrees: rounding moves an angle by some 10⁻¹²
# Of a loss, relative to it, up to a depth. Training in float32 amplifies rounding, the more the
# deeper the network: when the last bit of every input was changed at random, the losses of two
# epochs moved by a tenth of this or less (tests/baseline.py).
LOSSES = {1: 1e-4, 3: 1e-3, 10: 3e-3}

KEPT = {  # by the option that takes such files: arrays and attributes that a check needs
    "spectra": (
        ("lambda_max", "lambda_min", "lambda_min_error", "kinks", "verdict"),
        ("seeds", "block", "samples", "features"),
    ),
    "angles": (("min_angle_deg", "closest_pair"), ("seeds", "samples")),
    "training": (
        ("train_loss", "test_loss", "diverged_epoch"),
        ("seeds", "learning_rates", "batch", "convention", "loss", "tf32", "device", "samples",
         "features", "test_samples"),
    ),
}  # fmt: skip
NONZERO = ("nonzero_lambda_min", "nonzero_lambda_min_error")  # of linear networks
COLUMNS = [
    "dataset", "file", "what", "number", "seed", "block", "learning_rate", "kept", "now",
    "difference", "unit", "ratio", "kept_finding", "finding", "agrees",
]  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """A kept file. about: its attributes; values: those of its arrays that checks need."""

    path: Path
    network: MLP
    about: Namespace
    values: dict[str, np.ndarray]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Each seed and block of a spectrum file, by their numbers."""
        blocks = self.about.samples // self.about.block
        return [(s, b) for s in range(len(self.about.seeds)) for b in range(blocks)]

    def row(self, what: str, number: str, s: int) -> dict[str, object]:
        """What a check is of."""
        parts = self.path.parts
        if "results" in parts[:-1]:
            parts = parts[parts.index("results") :]
        place = Path(*parts).as_posix()
        return {"file": place, "what": what, "number": number, "seed": self.about.seeds[s]}


def main(arguments: Namespace) -> None:
    """Writes a row for each number that is compared: kept and now, their difference, its unit (the
    errors of both, or a tolerance), their ratio, and whether they agree: a ratio up to 1. Findings:
    verdicts, which agree with λ_min; pairs, with the angle of a search."""
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][:]
    kept = {
        kind: [read(path, kind, a.dataset, x.shape) for path in sorted(getattr(a, kind) or [])]
        for kind in KEPT
    }
    rng = random.Random(a.draw_seed)
    checks = [
        *(partial(check_kernel, *place, x, device) for place in kernels(a, kept["spectra"], rng)),
        *(partial(check_pair, *place, x, device) for place in pairs(kept["angles"], rng)),
        *(partial(check_search, *place, x, device) for place in search(kept["angles"], rng)),
        # at the end: it sets how the processor treats subnormal numbers
        *(partial(check_epoch, *run, a.dataset, device) for run in epoch(a, kept, rng, device)),
    ]
    if not checks:
        raise UserError("nothing to check. Give files after --spectra, --angles or --training")
    label = f"spot check {a.dataset.stem}"
    rows = [row for check in progress(checks, len(checks), label) for row in check()]
    table = pd.DataFrame(rows).assign(dataset=a.dataset.stem).reindex(columns=COLUMNS)
    table = table.astype({"block": "Int64"})
    write_artefact({a.output: csv_of(table)}, a.record)
    command.log.info("%s: of %d numbers, the largest ratio is %.3g", label, len(table),
                     table.ratio.max())  # fmt: skip
    wrong = table[~table.agrees]
    if len(wrong):
        command.log.warning(
            "%s: %d of %d numbers disagree with those kept, the largest ratio is %.3g: %s",
            label, len(wrong), len(table), wrong.ratio.max(), ", ".join(wrong.file.unique()),
        )  # fmt: skip


def read(path: Path, kind: str, dataset: Path, shape: tuple[int, int]) -> Kept:
    """A kept file of the data set. kind: of KEPT. shape: of the data set's x. Raises UserError for
    a file that is none, or of another data set."""
    arrays, attributes = KEPT[kind]
    with read_hdf5(path) as file:
        lacks = [name for name in arrays if name not in file]
        lacks += [name for name in attributes if name not in file.attrs]
        if lacks:
            raise UserError(f"{path}: has no {', '.join(lacks)}: no file for --{kind}. Remove it")
        values = {name: file[name] for name in (*arrays, *NONZERO) if name in file}
        values = {
            name: data.asstr()[:] if data.dtype.kind == "O" else data[:]
            for name, data in values.items()
        }
        about = Namespace(**{
            name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            for name, value in file.attrs.items()
        })  # fmt: skip
    made_with = read_record(path) or {}
    names = [Path(name).stem for name in made_with.get("inputs", {}).get("dataset", {})]
    if names and dataset.stem not in names:
        raise UserError(f"{path}: is of {names[0]}, not of {dataset.stem}. Remove it")
    samples, features = about.samples, getattr(about, "features", shape[1])
    if (samples, features) != shape:
        raise UserError(
            f"{path}: is of {samples} samples of {features} features, not of the {shape[0]} of"
            f" {shape[1]} of {dataset}. Remove it"
        )
    try:
        network = network_options.network(about)
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: its network is unknown here ({error}). Remove it") from None
    return Kept(path, network, about, values)


def draw(
    places: Sequence[tuple[Kept, list[tuple[int, ...]]]], count: int, rng: random.Random
) -> list[tuple]:
    """So many places, spread over the files: each has one before any has two."""
    shuffled = [[(kept, *p) for p in rng.sample(of_it, len(of_it))] for kept, of_it in places]
    rng.shuffle(shuffled)
    rounds = zip_longest(*shuffled)
    return [place for one in rounds for place in one if place is not None][:count]


def kernels(a: Namespace, files: list[Kept], rng: random.Random) -> list[tuple]:
    """The NTKs to check: file, seed and block."""
    small = [kept for kept in files if kept.about.block <= LARGEST]
    if small and len(small) < len(files):
        command.log.info(
            "%s: %d of %d spectrum files have blocks of more than %d samples: not drawn",
            a.dataset.stem, len(files) - len(small), len(files), LARGEST,
        )  # fmt: skip
    return draw([(kept, kept.places) for kept in small or files], a.kernels, rng)


def pairs(angles: list[Kept], rng: random.Random) -> list[tuple]:
    """The kept pairs to check: file and seed."""
    every = [(kept, [(s,) for s in range(len(kept.about.seeds))]) for kept in angles]
    return draw(every, PAIRS, rng)


def search(angles: list[Kept], rng: random.Random) -> list[tuple]:
    """One file and seed, of the smallest depth above 0."""

    def cost(kept: Kept) -> tuple[bool, int, float]:
        return kept.network.depth == 0, kept.network.depth, kept.network.width

    cheapest = [kept for kept in angles if cost(kept) == min(map(cost, angles))]
    return pairs(cheapest, rng)[:1]


def epoch(
    a: Namespace, kept: dict[str, list[Kept]], rng: random.Random, device: Device
) -> list[tuple]:
    """One file, seed and learning rate that did not diverge, the lowest: at higher ones training
    amplifies rounding more."""

    def runs(training: Kept) -> list[tuple[int, int]]:
        rates = training.about.learning_rates
        converged = training.values["diverged_epoch"] == 0
        lowest = [
            min((r for r in range(len(rates)) if of_seed[r]), key=rates.__getitem__, default=None)
            for of_seed in converged
        ]
        return [(s, r) for s, r in enumerate(lowest) if r is not None]

    def has_its_precision(training: Kept) -> bool:
        on_cpu = training.about.device == "cpu", device == "cpu"
        return not training.about.tf32 or on_cpu[0] == on_cpu[1]

    here = [training for training in kept["training"] if has_its_precision(training)]
    if len(here) < len(kept["training"]):
        command.log.info("%s: training in TF32 is left out, on another device", a.dataset.stem)
    return draw([(training, runs(training)) for training in here], 1, rng)


def check_kernel(kept: Kept, s: int, b: int, x: np.ndarray, device: Device) -> Iterator[dict]:
    """λ_max, λ_min and its verdict of one block of samples, and of a linear network the smallest
    non-zero eigenvalue."""
    now = spectrum_now(kept, s, b, x, device)
    was = {name: values[s, b] for name, values in kept.values.items()}
    error = was["lambda_min_error"] + now["lambda_min_error"]
    units = {"lambda_max": LAMBDA_MAX * abs(was["lambda_max"]), "lambda_min": error}
    if was["kinks"] or now["kinks"]:  # the jump of a slope, of which λ_min's error has its part
        units["lambda_max"] += error
    if kept.network.is_linear and all(name in was for name in NONZERO):
        units[NONZERO[0]] = was[NONZERO[1]] + now[NONZERO[1]]
    for number, unit in units.items():
        row = kept.row("kernel", number, s) | compared(was[number], now[number], unit)
        if number == "lambda_min":
            verdicts = was["verdict"], now["verdict"]
            row |= {"kept_finding": verdicts[0], "finding": verdicts[1]}
            # an unresolved one proves less, and contradicts nothing
            row["agrees"] &= verdicts[0] == verdicts[1] or UNRESOLVED in verdicts
        yield row | {"block": b}


def spectrum_now(kept: Kept, s: int, b: int, x: np.ndarray, device: Device) -> dict:
    """The record of the NTK of a seed and block, as the steps kernel and spectrum compute it."""
    n, features, network = kept.about.block, x.shape[1], kept.network
    require_memory(ntk_need(n, 1, n, features, network.depth, int(network.width)), device)
    samples, seed = x[b * n : (b + 1) * n], kept.about.seeds[s]

    def kernel(_s: int, _b: int) -> tuple[Array | Symmetric, KernelError]:
        gradients = gradients_with_error(network, network.initial_weights(seed, features, device))
        factors, error = gradients(put(samples.astype(np.float64), device))
        large = n > FULL_SPECTRUM_UP_TO
        return empirical_ntk_half(factors) if large else empirical_ntk(factors), error

    one = Namespace(seeds=[seed], prove_smallest=False)
    records = spectra.records(
        one, network, (1, features), lambda _: samples, device, kernel, lambda *_: math.nan
    )
    with np.errstate(over="ignore", invalid="ignore"):
        return next(records)


def check_pair(kept: Kept, s: int, x: np.ndarray, device: Device) -> Iterator[dict]:
    """The angle of the kept pair, from the gradients of these two samples."""
    was, now = kept.values["min_angle_deg"][s], angle_of(kept, s, x, device)[0]
    yield kept.row("pair", "min_angle_deg", s) | compared(was, now, ANGLE)


def angle_of(kept: Kept, s: int, x: np.ndarray, device: Device) -> tuple[float, float]:
    """The angle of the kept pair in degrees, and a bound on the error of a cosine of its gradients.
    NaN if there are no two such samples with a gradient."""
    pair = kept.values["closest_pair"][s]
    if not 0 <= pair[0] < pair[1] < len(x):
        return math.nan, math.nan
    gradients = kept.network.initial_gradients(kept.about.seeds[s], x.shape[1], device)
    unit = unit_gradients(gradients(put(x[pair].astype(np.float64), device)))
    if len(unit.index) < 2:
        return math.nan, math.nan
    return math.degrees(unit.angle(0, 1)), unit.cosine_error("float64")


def check_search(kept: Kept, s: int, x: np.ndarray, device: Device) -> Iterator[dict]:
    """The closest pair among all samples. Of pairs whose cosines rounding does not distinguish the
    search may find any: if it finds another, the difference is that of the kept pair's angle, as
    kept or as it is now, whichever is larger, in units of what cosines distinguish."""
    was, network = kept.values["min_angle_deg"][s], kept.network
    require_memory(search_need(*x.shape, network.depth, int(network.width)), device)
    distinct = distinct_rows(x).index
    gradients = network.initial_gradients(kept.about.seeds[s], x.shape[1], device)
    found = closest_gradients(gradients(put(x[distinct].astype(np.float64), device)))
    pair, kept_pair = distinct[[found.first, found.second]], kept.values["closest_pair"][s]
    row = compared(was, found.angle_deg, ANGLE)
    if (pair != kept_pair).any():
        angle, error = angle_of(kept, s, x, device)
        cosine = math.cos(math.radians(found.angle_deg))
        unit = math.degrees(math.acos(max(cosine - 2 * error, -1.0))) - found.angle_deg
        rows = [compared(was, found.angle_deg, unit), compared(angle, found.angle_deg, unit)]
        row = max(rows, key=lambda row: math.inf if math.isnan(row["ratio"]) else row["ratio"])
        row["kept"] = was
    row |= {"kept_finding": "{} {}".format(*kept_pair), "finding": "{} {}".format(*pair)}
    yield kept.row("search", "min_angle_deg", s) | row


def check_epoch(kept: Kept, s: int, r: int, dataset: Path, device: Device) -> Iterator[dict]:
    """The losses of the first epoch of a run."""
    about, network = kept.about, kept.network
    training_task.make_repeatable(about.tf32)
    task = training_task.read(dataset, "fig3")
    samples, features = task.x.shape
    depth, width = network.depth, int(network.width)
    require_memory(
        training_need(samples, features, about.test_samples, depth, width, about.batch), device
    )
    model = Model(network, sgd.layer_factors(network, features, about.convention), about.loss)
    run, place = Run(about.seeds[s], about.learning_rates[r]), torch.device(device)
    weights = sgd.stacked_weights([run.seed], network, features, len(task.labels), place)
    [first] = sgd.epochs(task.on(place), model, weights, [run], about.batch, range(1, 2))
    for number in ("train_loss", "test_loss")[: 2 if about.test_samples else 1]:
        was, now = kept.values[number][s, r, 0], getattr(first, number)[0]
        row = kept.row("epoch", number, s) | {"learning_rate": run.learning_rate}
        yield row | compared(was, now, loss_tolerance(depth) * abs(was))


def loss_tolerance(depth: int) -> float:
    """The tolerance for a loss of a network of this depth, relative to it."""
    return next((LOSSES[most] for most in LOSSES if depth <= most), max(LOSSES.values()))


def compared(kept: float, now: float, unit: float) -> dict[str, float | bool]:
    """Compares two numbers. unit: of their difference; NaN, as of a bound that overflowed, bounds
    nothing."""
    same = kept == now or (math.isnan(kept) and math.isnan(now))
    difference = 0.0 if same else abs(float(now) - float(kept))
    unit = math.inf if math.isnan(unit) else float(unit)
    ratio = difference if same else difference / unit if unit else math.inf
    return {
        "kept": float(kept), "now": float(now), "difference": difference, "unit": unit,
        "ratio": ratio, "agrees": ratio <= 1,
    }  # fmt: skip


def parser() -> command.StepParser:
    """The command line."""
    options = command.parser(__doc__)
    options.add_input("--dataset", required=True, help="results/datasets/*.h5")
    for kind in KEPT:
        options.add_input(f"--{kind}", nargs="+", metavar="FILE", help=f"results/{kind}/…/*.h5")
    options.add_argument(
        "--kernels", type=command.at_least(1), default=50, help="seeds and blocks to draw"
    )
    # not --seed, which data sets have too: a step's settings are those of its inputs
    options.add_argument("--draw-seed", type=int, default=0, help="of what is drawn")
    command.add_computing(options)
    return options


if __name__ == "__main__":
    command.run(main, parser())
