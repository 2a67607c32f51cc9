"""Training at one depth, every seed and learning rate: results/training/{dataset}/depth{L}.h5.

Resumes from a killed run's checkpoint, and ends with the same numbers.
"""

import time
from argparse import Namespace
from collections.abc import Iterator

import numpy as np
import torch

from ntkcond.arrays import cuda
from ntkcond.jobs.sgd import need
from ntkcond.networks.mlp import MLP
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.steps import network_options, training_task
from ntkcond.training import sgd
from ntkcond.training.history import MEASURES, History
from ntkcond.training.sgd import Model, Run, Task


def main(arguments: Namespace) -> None:
    """Writes `ntkcond.training.history.MEASURES`, (seeds, learning_rates, epochs) float64 each, and
    diverged_epoch and stopped_epoch, (seeds, learning_rates) int64
    (`ntkcond.training.history.History`)."""
    a = arguments
    device = torch.device(resolve_device(a.device))
    use_threads(a.threads)
    training_task.make_repeatable(a.tf32)
    task = training_task.read(a.dataset, "fig3")
    samples, features = task.x.shape
    tests = 0 if task.x_test is None else len(task.x_test)
    network = network_options.network(a)
    model = Model(network, sgd.layer_factors(network, features, a.convention), a.loss)
    runs = [Run(seed, rate) for seed in a.seeds for rate in a.learning_rates]
    together = runs_together(network, a.batch, task, len(runs), device)
    history = History(len(runs), a.epochs, a.stop_below)
    checkpoint = Checkpoint(a, history, device, together)
    task = task.on(device)

    def every_epoch() -> Iterator[None]:
        for first in range(checkpoint.first, len(runs), together):
            chunk = slice(first, min(first + together, len(runs)))
            seeds = [run.seed for run in runs[chunk]]
            weights = sgd.stacked_weights(seeds, network, features, len(task.labels), device)
            numbers = range(checkpoint.restore(weights, first) + 1, a.epochs + 1)
            for epoch in sgd.epochs(task, model, weights, runs[chunk], a.batch, numbers):
                history.record(chunk, epoch)
                yield
                if history.all_ended(chunk):
                    break
                checkpoint.save_if_due(weights, first, epoch.number)

    label = f"training {a.dataset.stem} L={a.depth}"
    left = -(-(len(runs) - checkpoint.first) // together) * a.epochs - checkpoint.epoch
    for _ in progress(every_epoch(), left, label):
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
            wall_s=seconds, device=device_name(device), threads=torch.get_num_threads(),
            together=together,
        )  # fmt: skip
    checkpoint.path.unlink(missing_ok=True)


def device_name(device: torch.device) -> str:
    """cpu, or what the GPU calls itself."""
    return cuda.name_of(device) if device.type == "cuda" else device.type


def runs_together(network: MLP, batch: int, task: Task, runs: int, device: torch.device) -> int:
    """On a CPU one run at a time, as batching gains nothing there; on a GPU all that fit. Raises
    UserError if not even one does."""
    tests = 0 if task.x_test is None else len(task.x_test)

    def needed(together: int) -> Need:
        return need(*task.x.shape, tests, network.depth, network.width, batch, together)

    require_memory(needed(1), device)
    if device.type == "cpu":
        return 1
    # of all memory, not of what is free now: a resumed run has to find the same number
    half = cuda.total_memory(device) / 2
    return next(count for count in range(runs, 0, -1) if count == 1 or needed(count).bytes < half)


class Checkpoint:
    """What a run needs to resume, beside the output: what was measured so far, and the weights
    of the runs in training after `epoch` epochs, the first of them the `first` of all.

    One of other settings, data, code, versions of packages or kind of device is not used.
    """

    def __init__(self, a: Namespace, history: History, device: torch.device, together: int) -> None:
        self.path = a.output.with_suffix(".checkpoint.h5")
        self.seconds = 60 * a.checkpoint_minutes
        self.history = history
        self.first = self.epoch = 0
        self.weights: list[np.ndarray] = []
        self.identity = repr([a.record, device.type, together])
        self.saved = time.monotonic()
        if self.path.is_file():
            self._load()

    def _load(self) -> None:
        """All of it at once: another process may put a newer one in its place."""
        try:
            with read_hdf5(self.path) as file:
                if file.attrs["identity"] != self.identity:
                    command.log.warning("%s is of other settings or code: not used", self.path)
                    return
                measures = {name: file[name][:] for name in self.history.measures}
                diverged = file["diverged_epoch"][:]
                weights = [file[f"weights/{i + 1}"][:] for i in range(len(file["weights"]))]
                first, epoch = int(file.attrs["first"]), int(file.attrs["epoch"])
                threads = int(file.attrs["threads"])
        except (UserError, OSError, KeyError) as error:
            command.log.warning("%s cannot be read (%s): training starts anew", self.path, error)
            return
        if threads != torch.get_num_threads():
            command.log.warning(
                "%s was begun with %d threads, not %d: rounding may differ",
                self.path, threads, torch.get_num_threads(),
            )  # fmt: skip
        self.history.measures.update(measures)
        self.history.diverged_epoch[:] = diverged
        self.weights, self.first, self.epoch = weights, first, epoch
        command.log.info("resumes from %s: run %d, epoch %d", self.path, first + 1, epoch)

    def restore(self, weights: list[torch.Tensor], first: int) -> int:
        """Fills in the weights of the runs from `first` on if they had begun; the epochs they have
        been through."""
        if not self.epoch or first != self.first:
            return 0
        for w, saved in zip(weights, self.weights, strict=True):
            w.copy_(torch.from_numpy(saved))
        self.weights = []
        return self.epoch

    def save_if_due(self, weights: list[torch.Tensor], first: int, epoch: int) -> None:
        """Saves when the last time is long enough ago."""
        if time.monotonic() - self.saved < self.seconds:
            return
        with write_hdf5(self.path) as file:
            file.attrs.update(identity=self.identity, first=first, epoch=epoch)
            file.attrs["threads"] = torch.get_num_threads()
            for name, values in self.history.measures.items():
                file[name] = values
            file["diverged_epoch"] = self.history.diverged_epoch
            for layer, w in enumerate(weights, start=1):
                file[f"weights/{layer}"] = w.cpu().numpy()
        self.saved = time.monotonic()


if __name__ == "__main__":
    options = network_options.parser(__doc__, without=network_options.NTK_ONLY)
    options.add_argument("--convention", required=True, choices=sgd.CONVENTIONS)
    options.add_argument("--loss", required=True, choices=sgd.LOSSES)
    options.add_argument("--learning-rates", type=training_task.numbers, required=True)
    options.add_argument("--batch", type=command.at_least(1), required=True)
    options.add_argument("--epochs", type=command.at_least(1), required=True)
    options.add_argument(
        "--stop-below", type=command.at_least(0.0), required=True,
        help="training loss at which a run ends; 0: none",
    )  # fmt: skip
    options.add_argument("--tf32", type=command.truth, required=True, help="true: TF32 on a GPU")
    options.add_unrecorded("--checkpoint-minutes", type=float, default=5, help="0: each epoch")
    command.run(main, options)
