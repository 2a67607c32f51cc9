"""Gradient descent at several depths, its NTK's bound, and the NTK on the way:
results/descent/{dataset}/width{width}.h5."""

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import islice

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, put, to_numpy
from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.mlp import LayerGradient
from ntkcond.ntk.closest_pair import smallest_angle
from ntkcond.ntk.eigenvalues import spectrum
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.labels import alignment
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import layer_gradients_with_error
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.fields import Training, names_of
from ntkcond.settings.memory import FLOAT64
from ntkcond.settings.step import DataSet, block
from ntkcond.steps import network_options
from ntkcond.steps.kernel import need_of_one
from ntkcond.training import descent, evolution
from ntkcond.training.descent import State
from ntkcond.training.evolution import Modes

largest = block

WATCHED = 11  # NTKs in the course of a descent: `ntkcond.training.evolution.watched`


def jobs(data: DataSet, which: str) -> list[dict[str, str]]:
    """At the data set's width; with descent/widths also at those of fig_evolution."""
    more = data.config.descent.widths if which else ()
    return [{"width": str(width)} for width in sorted({data.experiment.width, *more})]


def settings(data: DataSet, width: str) -> dict:
    """At widths of fig_evolution alone: the learning rate of each depth alone."""
    values = {key: value for key, value in vars(data.config.descent).items() if key != "widths"}
    values |= {key: value for key, value in vars(data.network).items() if key in names_of(Training)}
    rules = ["common", "own"] if int(width) == data.experiment.width else ["own"]
    return {**values, "block": data.experiment.block, "width": int(width), "rules": rules}


def need(block: int, features: int, depth: int, width: int) -> Need:
    """An NTK at the start and one on the way, with their eigenvectors."""
    ntk = need_of_one(block, block, features, depth, width)
    return ntk._replace(bytes=ntk.bytes + 6 * FLOAT64 * block**2)


ON_THE_WAY = ("change", "alignment", "min_angle_deg", "kappa", "kappa_lower", "verdict")


def main(arguments: Namespace) -> None:
    """Writes, of every rule of --rules, depth and seed, in this order:

    residual and linearised, (…, steps + 1): ‖f(X) − y‖ before each step and after the last, and
    were the NTK constant (`ntkcond.training.evolution.linearised`); learning_rate (…). Of the NTK
    at initialisation, (depths, seeds): the record of its `Spectrum` but the eigenvalues; and
    modes/, (depths, seeds, n) each, of `ntkcond.training.evolution.Modes`. Of the NTKs at the steps
    `watched` (T,): evolution/, (…, T) each: change and alignment (`ntkcond.training.evolution`),
    min_angle_deg among different samples, kappa, kappa_lower, verdict; nan and "" after a run has
    diverged.

    X: the data set's first n samples. y: `ntkcond.training.descent.signs` of their labels. A common
    learning rate is the largest that suits all depths of a seed, 1 over their largest λ_max. Where
    all NTKs vanish it is 0: no gradient, no step.
    """
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    inputs, labels = _samples(a)
    n, features = inputs.shape
    x = put(inputs.astype(np.float64), device)
    signs = descent.signs(labels)
    y = put(signs, device)
    require_memory(need(n, features, max(a.depths), a.width), device)
    distinct = distinct_rows(inputs).index
    networks = [network_options.network(a, depth=depth) for depth in a.depths]

    def recorded(kernel: Array, state: State, i: int) -> dict[str, float | int | str]:
        """The spectrum of a kernel, but the eigenvalues."""
        _, error = layer_gradients_with_error(networks[i], state.weights)(x)
        record = spectrum(kernel, error, rank_bound(inputs, networks[i])).record
        return {name: value for name, value in record.items() if name != "eigenvalues"}

    def path(i: int, j: int, learning_rate: float) -> Iterator[State]:
        weights = networks[i].initial_weights(a.seeds[j], features, device)
        return descent.descend(x, y, weights, networks[i], learning_rate)

    def on_the_way(kernel: Array, state: State, i: int) -> dict:
        record = recorded(kernel, state, i)
        chosen = (LayerGradient(*(_rows(part, distinct) for part in g)) for g in state.gradients)
        return {name: record[name] for name in ("kappa", "kappa_lower", "verdict")} | {
            "alignment": alignment(to_numpy(kernel), signs),
            "min_angle_deg": smallest_angle(list(chosen)),
        }

    shape = len(a.depths), len(a.seeds)
    columns: dict[str, np.ndarray] = {}
    modes = Modes(*(np.empty((*shape, n)) for _ in Modes._fields))
    for i, j in np.ndindex(shape):
        with np.errstate(over="ignore", invalid="ignore"):  # raises UserError instead
            state = next(path(i, j, 0.0))
            kernel = empirical_ntk(state.gradients)
        if not np.isfinite(to_numpy(kernel)).all():
            raise UserError(
                f"the NTK at depth {a.depths[i]} is beyond the range of float64. Lower"
                " descent.depths, or scale the samples down"
            )
        for name, value in recorded(kernel, state, i).items():
            kind = object if isinstance(value, str) else type(value)
            columns.setdefault(name, np.empty(shape, kind))[i, j] = value
        modes_now = evolution.modes(to_numpy(kernel), signs, to_numpy(state.residual))
        for values, value in zip(modes, modes_now, strict=True):
            values[i, j] = value

    steps, watched = a.steps, evolution.watched(a.steps)
    lambda_max = columns["lambda_max"]
    common = np.broadcast_to(lambda_max.max(axis=0), shape)
    largest = np.stack([{"common": common, "own": lambda_max}[rule] for rule in a.rules])
    rates = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    residuals = np.full((*rates.shape, steps + 1), math.nan)
    linearised = np.empty_like(residuals)
    seen = {name: np.full((*rates.shape, len(watched)), math.nan) for name in ON_THE_WAY}
    seen["verdict"] = np.full((*rates.shape, len(watched)), "", object)

    runs = progress(np.ndindex(rates.shape), rates.size, f"descent {a.dataset.stem} m={a.width}")
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is recorded as such
        for rule, i, j in runs:
            start = Modes(*(values[i, j] for values in modes))
            linearised[rule, i, j] = evolution.linearised(start, rates[rule, i, j], steps)
            if rule and rates[rule, i, j] == rates[0, i, j]:  # the same run again
                for values in (residuals, *seen.values()):
                    values[rule, i, j] = values[0, i, j]
                continue
            for step, state in enumerate(islice(path(i, j, rates[rule, i, j]), steps + 1)):
                residuals[rule, i, j, step] = state.norm
                if not math.isfinite(state.norm):
                    break
                if step not in watched:
                    continue
                kernel = empirical_ntk(state.gradients)
                if step == 0:
                    first = to_numpy(kernel)
                if np.isfinite(to_numpy(kernel)).all():
                    now = on_the_way(kernel, state, i)
                    now["change"] = evolution.relative_change(to_numpy(kernel), first)
                    for name, value in now.items():
                        seen[name][rule, i, j, watched.index(step)] = value
    with write_hdf5(a.output, a.record) as file:
        kept = {"residual": residuals, "linearised": linearised, "learning_rate": rates, **columns}
        kept |= {f"modes/{name}": values for name, values in modes._asdict().items()}
        kept |= {"watched": watched, **{f"evolution/{name}": v for name, v in seen.items()}}
        for name, values in kept.items():
            text = name.endswith(("verdict", "grade"))
            file[name] = values.astype(h5py.string_dtype()) if text else values
        file.attrs.update(
            network_options.settings(a), depths=a.depths, seeds=a.seeds, n=n, rules=a.rules,
            steps=a.steps,
        )  # fmt: skip


def _samples(a: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The first n samples, (n, d) float32, and their labels, (n,), of at least two classes."""
    with read_hdf5(a.dataset) as file:
        if "y" not in file:
            raise UserError(f"{a.dataset.stem}: has no labels to learn; show another data set")
        n = len(file["x"]) if a.block == "all" else a.block
        x, labels = file["x"][:n], file["y"][:n]
    if len(np.unique(labels)) < 2:
        raise UserError(
            f"{a.dataset.stem}: all of its first {len(labels)} samples have the label {labels[0]}:"
            " no classes to tell apart. Raise the block of this data set, or remove it from"
            " figures.fig_descent and fig_evolution"
        )
    return x, labels


def _rows(part: Array | None, index: np.ndarray) -> Array | None:
    return None if part is None else part[put(index, part.device)]


OPTIONS = network_options.parser(__doc__, without={"depth", *network_options.NTK_ONLY})
OPTIONS.add_settings("depths", "rules", "block", "steps")

if __name__ == "__main__":
    command.run(main, OPTIONS)
