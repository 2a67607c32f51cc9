"""The best learning rate of those tried: the one with the lowest final training loss, or, of those
at which every run stops below a loss, the one that gets there first."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

CURVE = ["dataset", "depth"]
READINGS = ("depth", "dataset")
SCORES = ["score", "tie"]  # the second decides between equal ones


def best_rates(training: pd.DataFrame, rate_for: str) -> pd.DataFrame:
    """The best learning rate of each (dataset, depth), from the table of all training runs.

    Best is the lowest training loss of the last epoch, mean over seeds; a rate at which any seed
    diverged is excluded. The loss of a run that stopped counts as stop_below, times the share of
    all epochs that it took: less than that of any other, and less the earlier it stopped; a rate at
    which not all runs stopped counts as stop_below at least. rate_for:
    "depth" chooses a rate for each depth; "dataset" one for all depths of a data set, by the mean
    over depths of the loss's logarithm, since their losses are decades apart; data sets whose
    depths tried different rates have no rows then. Columns dataset, depth, learning_rate (NaN if a
    run diverged at every rate) and at_edge: lowest, highest or only, else empty. Beyond the edge a
    better rate may exist.
    """
    last = last_epochs(training)
    share = last.stop_below * last.epoch / last.epochs
    loss = share.where(last.stopped_epoch.notna(), last.train_loss).fillna(np.inf)
    # where not all runs stopped, no better than any rate at which they did
    last = last.assign(loss=loss, floor=last.stop_below.where(last.stopped_epoch.isna(), 0.0))
    tried = last.groupby([*CURVE, "learning_rate"], sort=False)
    mean = tried.loss.mean()
    losses = pd.DataFrame({"score": mean.clip(lower=tried.floor.max()), "tie": mean})
    # the logarithm of a loss of 0 is finite here
    losses = np.log(losses.clip(lower=np.finfo(np.float64).tiny)).reset_index()
    if rate_for == "dataset":
        losses = losses.groupby("dataset").filter(_tried_alike)
        of_rate = losses.groupby(["dataset", "learning_rate"])[SCORES]
        losses[SCORES] = of_rate.transform("mean")
    rows = [
        {**dict(zip(CURVE, curve, strict=True)), **_best(tried)}
        for curve, tried in losses.groupby(CURVE, sort=False)
    ]
    return pd.DataFrame(rows, columns=[*CURVE, "learning_rate", "at_edge"])


def _tried_alike(of_data_set: pd.DataFrame) -> bool:
    """Whether all depths tried the same rates."""
    return of_data_set.groupby("depth").learning_rate.agg(frozenset).nunique() == 1


def last_epochs(training: pd.DataFrame) -> pd.DataFrame:
    """The row of each run's last epoch: the one in which it stopped, or the last of all."""
    return training[training.epoch == training.stopped_epoch.fillna(training.epochs)]


def _best(tried: pd.DataFrame) -> dict:
    best = tried.sort_values(SCORES, kind="stable").iloc[0]
    if np.isinf(best.score):
        return {"learning_rate": np.nan, "at_edge": ""}
    return {"learning_rate": best.learning_rate, "at_edge": edge(best.learning_rate, tried)}


def edge(rate: float, tried: pd.DataFrame) -> str:
    """Where a rate lies among those tried: lowest, highest, only, or empty for in between."""
    lowest, highest = tried.learning_rate.min(), tried.learning_rate.max()
    if lowest == highest:
        return "only"
    return {lowest: "lowest", highest: "highest"}.get(rate, "")


def runs_at(training: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """The rows of all runs at the rates of `best_rates`, with at_edge."""
    return training.merge(rates, on=[*CURVE, "learning_rate"], how="inner")


def first_epochs(training: pd.DataFrame, thresholds: Sequence[float]) -> pd.DataFrame:
    """For each run and threshold the first epoch whose mean loss is below it, NaN without one."""
    run = [*CURVE, "seed", "learning_rate"]
    runs = training.groupby(run, as_index=False, sort=False).agg(
        epochs_trained=("epochs", "first"), flops=("flops_per_epoch", "first")
    )
    last = last_epochs(training).rename(columns={"train_loss": "final"})
    runs = runs.merge(last[[*run, "final"]], on=run)
    training = training[training.diverged_epoch.isna()]
    parts = []
    for threshold in thresholds:
        below = training[training.train_loss < threshold]
        reached = below.groupby(run, as_index=False).agg(first=("epoch", "min"))
        parts.append(runs.merge(reached, on=run, how="left").assign(threshold=threshold))
    return pd.concat(parts, ignore_index=True)
