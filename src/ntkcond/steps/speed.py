"""How fast many networks of a width train, and their NTKs at the start:
results/speed/{dataset}/{loss}/width{width}.h5."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

import h5py
import numpy as np

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import UNRESOLVED, diagonal, spectrum
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.predictors import class_columns, predictors
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import UNIT_ROUNDOFF, gradients_with_error
from ntkcond.run.errors import UserError
from ntkcond.run.files import write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.fields import Config, SpeedOnLoss, set_values
from ntkcond.settings.memory import FLOAT64, INTERPRETER
from ntkcond.settings.step import DataSet
from ntkcond.steps import network_options, training_task
from ntkcond.steps.kernel import need_of_one
from ntkcond.steps.sgd import need as training_need
from ntkcond.training.history import History

if TYPE_CHECKING:
    import torch

    from ntkcond.training.sgd import Model, Run, Task


def losses(config: Config) -> dict[str, SpeedOnLoss]:
    """Those that networks of fig_speed are trained on."""
    values = set_values(config.speed)
    return {key: values[key] for key in values if isinstance(values[key], SpeedOnLoss)}


def jobs(data: DataSet, which: str) -> list[dict[str, str]]:
    widths = data.config.speed.widths
    return [{"loss": loss, "width": str(m)} for loss in losses(data.config) for m in widths]


def settings(data: DataSet, loss: str, width: str) -> dict:
    """Thresholds in descending order."""
    chosen, others = losses(data.config), {"widths", *losses(data.config)}
    return {
        **{key: value for key, value in set_values(data.config.speed).items() if key not in others},
        "learning_rates": sorted(map(float, chosen[loss].learning_rates)),
        "thresholds": sorted(map(float, chosen[loss].thresholds), reverse=True),
        "convention": data.training.convention,
        "bias": data.training.bias,
        "block": data.experiment.block,
        "loss": loss,
        "width": int(width),
    }


def largest(data: DataSet, **wildcards: str) -> int | None:
    """Those that it trains on."""
    samples = data.config.speed.samples
    if not isinstance(samples, int):
        return data.samples
    return samples if data.samples is None else min(data.samples, samples)


def sizes(data: DataSet, loss: str, width: str) -> dict:
    trained = largest(data)
    assert trained and data.block
    return {"samples": trained, "block": min(data.block, trained)}


def need(
    block: int, samples: int, features: int, depth: int, width: int, batch: int, seeds: int
) -> Need:
    """Training of all seeds together; NTKs before it, with their eigenvectors."""
    ntk = need_of_one(block, samples, features, depth, width).bytes + 6 * FLOAT64 * block**2
    training = training_need(samples, features, 0, depth, width, batch, seeds)
    return training._replace(bytes=training.bytes + ntk - INTERPRETER)


OF_SPECTRUM = ("kappa", "lambda_max", "lambda_min", "verdict")


def main(arguments: Namespace) -> None:
    """Writes, of every activation, depth and seed, in this order:

    ntk/, (…) each, of the NTK at the start: `OF_SPECTRUM` of its record, and
    `ntkcond.ntk.predictors.Predictors`. start_loss (…): of all samples, before training. Of
    every learning rate, in their order: learning_rate (…, rates), train_loss (…, rates, epochs),
    diverged_epoch and stopped_epoch (…, rates) (`ntkcond.training.history.History`).

    The networks learn the data set's first --samples; a run ends below the lowest of --thresholds.
    The NTK is that of the first --block of them, of one output, scaled as the network is
    (`ntkcond.training.sgd.scales`). --learning-rates are in units of n/λ_max, n = --block: what
    1/λ_max is for the sum of the losses is this for their mean. Where K vanishes they are 0.
    """
    import torch

    from ntkcond.training import sgd

    a = arguments
    device = torch.device(resolve_device(a.device))
    use_threads(a.threads)
    training_task.make_repeatable(tf32=False)
    task = training_task.read(a.dataset, "fig_speed", None if a.samples == "all" else a.samples)
    samples, features = task.x.shape
    n = samples if a.block == "all" else min(a.block, samples)
    sizes = n, samples, features, max(a.depths), a.width, a.batch, len(a.seeds)
    require_memory(need(*sizes), device)
    x, y = task.x[:n].numpy(), class_columns(task.y[:n].numpy())
    if not y.any():
        raise UserError(
            f"{a.dataset.stem}: all of its first {n} samples have the same label. Raise the block"
            " of this data set, or remove it from figures.fig_speed"
        )
    task = task.on(device)

    shape = (len(a.activations), len(a.depths), len(a.seeds))
    rates = np.zeros((*shape, len(a.learning_rates)))
    start_loss, train_loss = np.empty(shape), np.empty((*rates.shape, a.epochs))
    diverged, stopped = (np.zeros(rates.shape, np.int64) for _ in range(2))
    ntk: dict[str, np.ndarray] = {}
    networks = list(np.ndindex(shape[:2]))
    for i, j in progress(networks, len(networks), f"speed {a.dataset.stem} m={a.width}, {a.loss}"):
        network = network_options.network(a, activation=a.activations[i], depth=a.depths[j])
        model = sgd.Model(network, sgd.layer_factors(network, features, a.convention), a.loss)
        for k, seed in enumerate(a.seeds):
            record = _at_start(x, y, network, seed, a.convention, str(device))
            for name, value in record.items():
                kind = object if isinstance(value, str) else np.float64
                ntk.setdefault(name, np.empty(shape, kind))[i, j, k] = value
            if record["lambda_max"] > 0:
                rates[i, j, k] = np.multiply(a.learning_rates, n / record["lambda_max"])
        initial = sgd.stacked_weights(a.seeds, network, features, len(task.labels), device)
        start_loss[i, j] = sgd.evaluate(initial, task.x, task.y, model)[0].cpu()
        for r in range(len(a.learning_rates)):
            weights = [w.clone() for w in initial]
            runs = [sgd.Run(*run) for run in zip(a.seeds, rates[i, j, :, r], strict=True)]
            history = _train(task, model, weights, runs, a)
            train_loss[i, j, :, r] = history.measures["train_loss"]
            diverged[i, j, :, r] = history.diverged_epoch
            stopped[i, j, :, r] = history.stopped_epoch

    with write_hdf5(a.output, a.record) as file:
        kept = {f"ntk/{name}": values for name, values in ntk.items()}
        kept |= {"start_loss": start_loss, "learning_rate": rates, "train_loss": train_loss}
        kept |= {"diverged_epoch": diverged, "stopped_epoch": stopped}
        for name, values in kept.items():
            file[name] = values.astype(h5py.string_dtype()) if values.dtype == object else values
        file.attrs.update(
            network_options.settings(a), activations=a.activations, depths=a.depths, loss=a.loss,
            convention=a.convention, seeds=a.seeds, n=n, samples=samples, batch=a.batch,
            learning_rates=a.learning_rates, thresholds=a.thresholds, epochs=a.epochs,
        )  # fmt: skip


def _at_start(
    x: np.ndarray, y: np.ndarray, network: MLP, seed: int, convention: str, device: str
) -> dict[str, float | str]:
    """Measures of the NTK of the samples x (n, d) float32 with the labels y (n, C)."""
    from ntkcond.training import sgd

    features = x.shape[1]
    inside, outside = sgd.scales(network, features, convention)
    weights = network.initial_weights(seed, features, device)
    gradients = gradients_with_error(network, weights)
    factors, error = gradients(put(inside * x.astype(np.float64), device))
    kernel = empirical_ntk(factors)
    kernel = outside**2 * kernel + (1 - outside**2) * network.bias**2  # β² is of f's own biases
    trace = float(diagonal(kernel).sum()) + len(x) * network.bias**2
    error = error.scaled(outside**2, added=4 * UNIT_ROUNDOFF * trace)
    record = spectrum(kernel, error, rank_bound(x, network)).record
    kappa = np.nan if record["verdict"] == UNRESOLVED else record["kappa"]
    measures = predictors(to_numpy(kernel), y, kappa)
    return {name: record[name] for name in OF_SPECTRUM} | measures._asdict()


def _train(
    task: Task, model: Model, weights: list[torch.Tensor], runs: list[Run], a: Namespace
) -> History:
    """Until all runs have ended, or through all epochs."""
    from ntkcond.training import sgd

    history = History(len(runs), a.epochs, min(a.thresholds))
    for _ in sgd.until_ended(task, model, weights, dict(enumerate(runs)), a.batch, history):
        pass
    return history


OPTIONS = network_options.parser(
    __doc__, without={"activation", "depth", *network_options.NTK_ONLY}
)
OPTIONS.add_settings("activations", "depths", "convention", "loss", "learning_rates", "thresholds")
OPTIONS.add_settings("samples", "block", "batch", "epochs")

if __name__ == "__main__":
    command.run(main, OPTIONS)
