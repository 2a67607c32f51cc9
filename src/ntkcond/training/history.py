"""Losses, accuracies and times of training runs, epoch by epoch."""

from typing import NamedTuple

import numpy as np

MEASURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "wall_s")


class Epoch(NamedTuple):
    """The measures of an epoch, for each of R runs: float64 (R,).

    train_loss, train_accuracy: mean over the epoch's samples, each before its step. test_loss,
    test_accuracy: after the epoch, NaN without a test split. Losses are in nats, accuracies between
    0 and 1. wall_s: seconds for all R, testing included.
    """

    number: int
    train_loss: np.ndarray
    train_accuracy: np.ndarray
    test_loss: np.ndarray
    test_accuracy: np.ndarray
    wall_s: float


class History:
    """For each of MEASURES an array (runs, epochs) float64, NaN where nothing was measured;
    diverged_epoch (runs,) int64, 0 for a run that did not diverge.

    A run diverges in the first epoch that ends with a loss that is not finite; from then on only
    the time is kept. wall_s is an epoch's time divided by the runs that were trained together.
    """

    def __init__(self, runs: int, epochs: int) -> None:
        self.measures = {name: np.full((runs, epochs), np.nan) for name in MEASURES}
        self.diverged_epoch = np.zeros(runs, dtype=np.int64)

    def record(self, chunk: slice, epoch: Epoch) -> None:
        """Stores an epoch of the runs of a chunk."""
        tested = ~np.isnan(epoch.test_accuracy)
        finite = np.isfinite(epoch.train_loss) & (np.isfinite(epoch.test_loss) | ~tested)
        diverged = self.diverged_epoch[chunk]  # a view
        diverged[~finite & (diverged == 0)] = epoch.number
        for name in MEASURES[:-1]:
            kept = np.where(diverged == 0, getattr(epoch, name), np.nan)
            self.measures[name][chunk, epoch.number - 1] = kept
        self.measures["wall_s"][chunk, epoch.number - 1] = epoch.wall_s / len(diverged)

    def all_diverged(self, chunk: slice) -> bool:
        """Whether every run of the chunk has diverged."""
        return bool(self.diverged_epoch[chunk].all())
