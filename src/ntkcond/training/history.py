"""Losses, accuracies and times of training runs, epoch by epoch."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

MEASURES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy", "wall_s")


class Epoch(NamedTuple):
    """The measures of an epoch, for each of R runs: float64 (R,).

    train_loss, train_accuracy: mean over the epoch's samples, each before its step. test_loss,
    test_accuracy: after the epoch, NaN without a test split. Losses are those of
    `ntkcond.training.sgd.LOSSES`, a cross entropy in nats, accuracies between
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

    A run diverges in the first epoch that ends with a loss that is not finite, and stops in the
    first whose training loss is below stop_below. wall_s is an epoch's time divided by the runs
    that were trained together.
    """

    def __init__(self, runs: int, epochs: int, stop_below: float = 0.0) -> None:
        self.stop_below = stop_below
        self.measures = {name: np.full((runs, epochs), np.nan) for name in MEASURES}
        self.diverged_epoch = np.zeros(runs, dtype=np.int64)

    def record(self, runs: Sequence[int], epoch: Epoch) -> None:
        """Stores an epoch of these runs, which have not ended."""
        tested = ~np.isnan(epoch.test_accuracy)
        finite = np.isfinite(epoch.train_loss) & (np.isfinite(epoch.test_loss) | ~tested)
        self.diverged_epoch[runs] = np.where(finite, 0, epoch.number)
        for name in MEASURES[:-1]:
            kept = np.where(finite, getattr(epoch, name), np.nan)
            self.measures[name][runs, epoch.number - 1] = kept
        self.measures["wall_s"][runs, epoch.number - 1] = epoch.wall_s / len(runs)

    @property
    def stopped_epoch(self) -> np.ndarray:
        """(runs,) int64, 0 for a run that did not stop."""
        below = self.measures["train_loss"] < self.stop_below
        return np.where(below.any(1), 1 + below.argmax(1), 0)

    def going_on(self, runs: Iterable[int]) -> list[int]:
        """Those that have neither diverged nor stopped."""
        ended = (self.diverged_epoch > 0) | (self.stopped_epoch > 0)
        return [run for run in runs if not ended[run]]
