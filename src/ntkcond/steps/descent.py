"""Gradient descent at several depths and its NTK's bound: results/descent/{dataset}.h5."""

import math
from argparse import Namespace
from itertools import islice

import h5py
import numpy as np

from ntkcond.arrays.backend import Array, put, xp
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.spectrum import diagonal, rounding, spectrum_record
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.needs import kernel_need
from ntkcond.run.progress import progress
from ntkcond.steps import network_options
from ntkcond.training import descent

RULES = ("common", "own")  # one learning rate for all depths, or 1/λ_max for each


def main(arguments: Namespace) -> None:
    """Writes residual (rules, depths, seeds, steps + 1), ‖f(X) − y‖ before each step and after the
    last; learning_rate (rules, depths, seeds); and of the NTK at initialisation each entry of
    `spectrum_record` but the eigenvalues, (depths, seeds).

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
    y = put(descent.signs(labels), device)
    require_memory(kernel_need(n, n, features, max(a.depths), a.width), device)
    networks = [network_options.network(a, depth=depth) for depth in a.depths]
    spectra = [
        _spectrum(inputs, x, network, network.initial_weights(seed, features, device))
        for network in networks
        for seed in a.seeds
    ]
    shape = len(a.depths), len(a.seeds)
    columns = {
        name: np.array([spectrum[name] for spectrum in spectra]).reshape(shape)
        for name in spectra[0]
    }
    largest = columns["lambda_max"]
    largest = np.stack([np.broadcast_to(largest.max(axis=0), shape), largest])
    rates = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    residuals = np.full((len(RULES), len(a.depths), len(a.seeds), a.steps + 1), math.nan)

    runs = progress(
        np.ndindex(residuals.shape[:3]), residuals[..., 0].size, f"descent {a.dataset.stem}"
    )
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is recorded as such
        for rule, i, j in runs:
            if rule and rates[rule, i, j] == rates[0, i, j]:  # the same run again
                residuals[rule, i, j] = residuals[0, i, j]
                continue
            weights = networks[i].initial_weights(a.seeds[j], features, device)
            path = descent.descend(x, y, weights, networks[i], rates[rule, i, j])
            for step, residual in enumerate(islice(path, a.steps + 1)):
                residuals[rule, i, j, step] = residual
                if not math.isfinite(residual):
                    break
    with write_hdf5(a.output, a.record) as file:
        file["residual"] = residuals
        file["learning_rate"] = rates
        for name, values in columns.items():
            file[name] = values.astype(h5py.string_dtype()) if name == "verdict" else values
        file.attrs.update(
            network_options.settings(a), depths=a.depths, seeds=a.seeds, n=n, rules=RULES,
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
            " figures.fig_descent"
        )
    return x, labels


@np.errstate(over="ignore", invalid="ignore")  # told as a UserError
def _spectrum(
    inputs: np.ndarray, x: Array, network: MLP, weights: list[Array]
) -> dict[str, float | int | str]:
    """The spectrum's record of one NTK. inputs: x as the data set has it, on the host."""
    kernel = empirical_ntk(network.layer_gradients(x, weights))
    if not xp(kernel).isfinite(kernel).all():
        raise UserError(
            f"the NTK at depth {network.depth} is beyond the range of float64. Lower"
            " descent.depths, or scale the samples down"
        )
    # |δK_ij| ≤ e √(K_ii K_jj), so ‖δK‖ ≤ e tr K
    error = rounding(network, x.shape[1]) * float(diagonal(kernel).sum())
    record = spectrum_record(kernel, rank_bound(inputs, network), error)
    return {name: value for name, value in record.items() if name != "eigenvalues"}


if __name__ == "__main__":
    options = network_options.parser(__doc__, without={"depth", *network_options.NTK_ONLY})
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument("--block", type=command.count_or_all, required=True, help="n, or all")
    options.add_argument("--steps", type=command.at_least(1), required=True)
    command.run(main, options)
