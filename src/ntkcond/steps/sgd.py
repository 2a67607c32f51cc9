"""Training from one seed at all learning rates: results/training/{dataset}/depth{L}/seed{S}.h5.

Resumes from a killed run's checkpoint, and ends with the same numbers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ntkcond.networks.mlp import MLP
from ntkcond.run.files import write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT32, FLOAT64, INTERPRETER, TORCH
from ntkcond.settings.step import DataSet
from ntkcond.steps import network_options, training_task
from ntkcond.training.history import MEASURES, History

if TYPE_CHECKING:
    import torch

    from ntkcond.training.sgd import Task

TEST_ROWS = 2000  # test samples that pass through the networks at once


def jobs(data: DataSet, which: str = "") -> list[dict[str, str]]:
    training = data.training
    return [{"depth": str(L), "seed": str(S)} for L in training.depths for S in training.seeds]


def settings(data: DataSet, depth: str, seed: str) -> dict:
    values = {key: value for key, value in vars(data.training).items() if key != "depths"}
    rates = data.training.learning_rates
    chosen = rates[int(depth)] if isinstance(rates, Mapping) else rates
    return {"depth": int(depth), **values, "seeds": [int(seed)], "learning_rates": chosen}


def need(
    samples: int, features: int, test_samples: int, depth: int, width: int, batch: int,
    together: int = 1,
) -> Need:  # fmt: skip
    """All samples, twice while they are read; of each network weights, in float64 at first, a
    batch's activations and slopes, and a few layers of test samples."""
    weights = width * features + depth * width**2  # at most as many outputs as neurons
    per_batch = batch * (2 * features + (2 * depth + 4) * width)
    per_run = FLOAT32 * (per_batch + 4 * TEST_ROWS * width) + (FLOAT32 + 2 * FLOAT64) * weights
    read = 2 * FLOAT32 * (samples + test_samples) * features
    return Need(
        f"training {together} networks of depth {depth}, width {width} on {samples} samples",
        INTERPRETER + TORCH + read + together * per_run,
        "Lower samples, batch or width in the config",
    )


def side_by_side(data: DataSet) -> int:
    """All jobs of figure 3."""
    return sum(len(jobs(data.other(name))) for name in data.config.figures["fig3"])


def main(arguments: Namespace) -> None:
    """Writes `ntkcond.training.history.MEASURES`, (seeds, learning_rates, epochs) float64 each, and
    diverged_epoch and stopped_epoch, (seeds, learning_rates) int64
    (`ntkcond.training.history.History`)."""
    import torch

    from ntkcond.arrays import cuda
    from ntkcond.steps.checkpoint import Checkpoint
    from ntkcond.training import sgd

    a = arguments
    device = torch.device(resolve_device(a.device))
    use_threads(a.threads)
    training_task.make_repeatable(a.tf32)
    task = training_task.read(a.dataset, "fig3")
    samples, features = task.x.shape
    tests = 0 if task.x_test is None else len(task.x_test)
    network = network_options.network(a)
    model = sgd.Model(network, sgd.layer_factors(network, features, a.convention), a.loss)
    runs = [sgd.Run(seed, rate) for seed in a.seeds for rate in a.learning_rates]
    together = runs_together(network, a.batch, task, len(runs), device)
    history = History(len(runs), a.epochs, a.stop_below)
    checkpoint = Checkpoint(a, history, device, together)
    task = task.on(device)

    def every_epoch() -> Iterator[None]:
        for first in range(checkpoint.first, len(runs), together):
            chunk = {i: runs[i] for i in range(first, min(first + together, len(runs)))}
            seeds = [run.seed for run in chunk.values()]
            drawn = sgd.stacked_weights(seeds, network, features, len(task.labels), device)
            weights, done = checkpoint.restore(drawn, first)
            trained = sgd.until_ended(task, model, weights, chunk, a.batch, history, done)
            for weights, done in trained:
                yield
                checkpoint.save_if_due(weights, first, done)

    label = f"training {a.dataset.stem} L={a.depth}"
    most = -(-(len(runs) - checkpoint.first) // together) * a.epochs - checkpoint.epoch
    for _ in progress(every_epoch(), most, label):
        pass

    flops = sgd.flops_per_epoch(samples, tests, network, features, len(task.labels))
    wall_s = history.measures["wall_s"]
    ran, seconds = int(np.isfinite(wall_s).sum()), float(np.nansum(wall_s))
    command.log.info(
        "%s: %d runs, %d diverged, %d stopped; %d epochs in %.1f s, %.1f Gflop/s",
        label, len(runs), (history.diverged_epoch > 0).sum(),
        (history.stopped_epoch > 0).sum(), ran, seconds,
        ran * sum(flops) / seconds / 1e9,
    )  # fmt: skip
    device_name = cuda.name_of(device) if device.type == "cuda" else device.type
    with write_hdf5(a.output, a.record) as file:
        grid = (len(a.seeds), len(a.learning_rates))
        for name in MEASURES:
            file[name] = history.measures[name].reshape(*grid, a.epochs)
        file["diverged_epoch"] = history.diverged_epoch.reshape(grid)
        file["stopped_epoch"] = history.stopped_epoch.reshape(grid)
        file["labels"] = task.labels
        file.attrs.update(
            network_options.settings(a), convention=a.convention, loss=a.loss, seeds=a.seeds,
            learning_rates=a.learning_rates, batch=a.batch, epochs=a.epochs,
            stop_below=a.stop_below, tf32=a.tf32,
            samples=samples, features=features, test_samples=tests,
            flops_per_epoch=flops[0], test_flops_per_epoch=flops[1], flops=ran * sum(flops),
            wall_s=seconds, device=device_name, threads=torch.get_num_threads(),
            together=together,
        )  # fmt: skip
    checkpoint.path.unlink(missing_ok=True)


def runs_together(network: MLP, batch: int, task: Task, runs: int, device: torch.device) -> int:
    """On a CPU one run at a time, as batching gains nothing there; on a GPU all that fit. Raises
    UserError if not even one does."""
    tests = 0 if task.x_test is None else len(task.x_test)

    def needed(together: int) -> Need:
        return need(*task.x.shape, tests, network.depth, network.width, batch, together)

    require_memory(needed(1), device)
    if device.type == "cpu":
        return 1
    from ntkcond.arrays import cuda

    # of all memory, not of what is free now: a resumed run has to find the same number
    half = cuda.total_memory(device) / 2
    return next(count for count in range(runs, 0, -1) if count == 1 or needed(count).bytes < half)


OPTIONS = network_options.parser(__doc__, without=network_options.NTK_ONLY)
OPTIONS.add_settings(
    "convention", "loss", "learning_rates", "batch", "epochs", "stop_below", "tf32"
)
OPTIONS.add_unrecorded("--checkpoint-minutes", type=float, default=5, help="0: each epoch")

if __name__ == "__main__":
    command.run(main, OPTIONS)
