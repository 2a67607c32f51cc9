"""What a killed training run resumes from."""

import time
from argparse import Namespace

import numpy as np
import torch

from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.settings import command
from ntkcond.training.history import History


class Checkpoint:
    """What a run needs to resume, beside the output: what was measured so far, and the weights
    after `epoch` epochs of those that go on of the runs from the `first` on.

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

    def restore(self, weights: list[torch.Tensor], first: int) -> tuple[list[torch.Tensor], int]:
        """Weights of the runs from `first` on, those saved if they had begun; and the epochs that
        they have been through."""
        if not self.epoch or first != self.first:
            return weights, 0
        saved, self.weights = self.weights, []
        return [torch.from_numpy(w).to(weights[0].device) for w in saved], self.epoch

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
