"""What "deeper trains faster" (the paper's §6) comes down to: epochs until a training loss."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ntkcond.artefacts.output import grid
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.training.learning_rates import CURVE, best_rates, edge

SPEC = Spec(
    title="Table, epochs to a training loss",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"thresholds": "training.thresholds"},
    files=(".csv", ".md"),
    costs=False,
    caption="""
How many epochs until the training loss is below a threshold: what "faster" comes down to. A row
for each data set, depth, reading and threshold, with

- ``rate_for``, the reading: the learning rate is the one with the lowest final training loss for
  each ``depth``, or one for all depths of the ``dataset``, or the one that reaches this
  ``threshold`` first;
- ``learning_rate``, ``at_edge``: that rate, and whether it is the lowest or highest of those
  tried;
- ``epochs_mean``, ``epochs_std``: the first epoch whose mean training loss, in nats, is below
  ``threshold``, over seeds; empty unless all ``seeds`` got there in the ``epochs_trained``;
  ``seeds_below`` of them did;
- ``tflop_mean``: operations in the matrix products of these epochs, in 10¹². An epoch of a deeper
  network takes more of them.

**The paper** has no such table. Its §6 states that deeper networks always converge faster, from
curves. ``results/table_epochs.md`` has the same for reading, with the rank correlation of epochs
and depth.
""",
)

NAMES = {
    "depth": "the rate with the lowest final loss, for each depth",
    "dataset": "one rate for all depths, with the lowest final losses",
    "threshold": "the fastest rate for each depth and loss",
}


def table(training: pd.DataFrame, thresholds: Sequence[float]) -> pd.DataFrame:
    """A row for each (dataset, depth, reading, threshold).

    rate_for, the reading: the learning rate is that of `ntkcond.training.learning_rates`, for each
    depth or for the data set; or, "threshold", whichever reaches this threshold first, of equals
    the one that ends lowest. Runs that diverge, even later, never reach one. epochs_mean: the first
    epoch whose mean training loss, in nats, is below the threshold, mean over seeds; empty unless
    all seeds got there; epochs_std: n − 1. tflop_mean: the operations in the matrix products of
    these epochs, in 10¹². at_edge: the rate is at the edge of those tried."""
    thresholds = sorted(map(float, thresholds), reverse=True)
    reached = _over_seeds(_first_epochs(training, thresholds))
    every = pd.DataFrame({"threshold": thresholds})
    parts = []
    for reading in ("depth", "dataset"):
        rates = best_rates(training, reading).merge(every, how="cross")
        parts.append(rates.merge(reached, how="left").assign(rate_for=reading))
    parts.append(_fastest(reached))
    columns = [
        *CURVE, "rate_for", "threshold", "learning_rate", "at_edge", "epochs_trained", "seeds",
        "seeds_below", "epochs_mean", "epochs_std", "tflop_mean",
    ]  # fmt: skip
    found = pd.concat(parts, ignore_index=True)[columns]
    return found.astype(dict.fromkeys(["epochs_trained", "seeds", "seeds_below"], "Int64"))


def _first_epochs(training: pd.DataFrame, thresholds: Sequence[float]) -> pd.DataFrame:
    """For each run and threshold the first epoch below it, NaN if there is none."""
    run = [*CURVE, "seed", "learning_rate"]
    runs = training.groupby(run, as_index=False, sort=False).agg(
        epochs_trained=("epochs", "first"), flops=("flops_per_epoch", "first")
    )
    last = training[training.epoch == training.epochs].rename(columns={"train_loss": "final"})
    runs = runs.merge(last[[*run, "final"]], on=run)
    training = training[training.diverged_epoch.isna()]
    parts = []
    for threshold in thresholds:
        below = training[training.train_loss < threshold]
        reached = below.groupby(run, as_index=False).agg(first=("epoch", "min"))
        parts.append(runs.merge(reached, on=run, how="left").assign(threshold=threshold))
    return pd.concat(parts, ignore_index=True)


def _over_seeds(first: pd.DataFrame) -> pd.DataFrame:
    groups = first.groupby([*CURVE, "learning_rate", "threshold"], as_index=False, sort=False)
    found = groups.agg(
        epochs_trained=("epochs_trained", "first"),
        seeds=("seed", "nunique"),
        seeds_below=("first", "count"),
        epochs_mean=("first", "mean"),
        epochs_std=("first", "std"),
        flops=("flops", "first"),
        final=("final", "mean"),
    )
    all_there = found.seeds_below == found.seeds
    found[["epochs_mean", "epochs_std"]] = found[["epochs_mean", "epochs_std"]].where(all_there)
    return found.assign(tflop_mean=found.epochs_mean * found.flops / 1e12)


def _fastest(reached: pd.DataFrame) -> pd.DataFrame:
    """Of all rates the one with the fewest epochs, for each (dataset, depth, threshold)."""
    rows = []
    for _, of_curve in reached.groupby(CURVE, sort=False):
        for _, tried in of_curve.groupby("threshold", sort=False):
            if tried.epochs_mean.isna().all():
                row = tried.loc[tried.seeds_below.idxmax()]
                rate, at_edge = np.nan, ""
            else:
                row = tried.sort_values(["epochs_mean", "final"]).iloc[0]
                rate, at_edge = row.learning_rate, edge(row.learning_rate, tried)
            chosen = {"learning_rate": rate, "at_edge": at_edge, "rate_for": "threshold"}
            rows.append({**row, **chosen})
    return pd.DataFrame(rows)


def markdown(numbers: pd.DataFrame) -> str:
    """For each data set and reading, epochs at each depth and threshold, and how they go with
    depth."""
    return "\n".join(_lines(numbers))


def _lines(numbers: pd.DataFrame) -> Iterator[str]:
    yield "# Epochs until the training loss is below a threshold\n"
    yield (
        "Mean over seeds of the first epoch whose mean training loss (nats) is below; > n: not"
        " every seed got there in n epochs. * at the edge of the rates tried; none: at every rate"
        " a run diverged. Rank correlation with depth is Spearman's, a loss not reached counting as"
        " later than any: −1 where every added layer saves epochs, +1 where each costs some.\n"
    )
    for dataset, of_dataset in numbers.groupby("dataset", sort=False):
        yield f"## {title(dataset)}\n"
        for reading, rows in of_dataset.groupby("rate_for", sort=False):
            thresholds = sorted(rows.threshold.unique(), reverse=True)
            yield f"Learning rate: {NAMES[reading]}.\n"
            with_rate = reading != "threshold"
            head = ["L", *(["learning rate"] if with_rate else []), *(f"{t:g}" for t in thresholds)]
            body = []
            for depth, of_depth in rows.groupby("depth"):
                cells = of_depth.set_index("threshold")
                first = [_rate(of_depth.iloc[0])] if with_rate else []
                body.append([str(depth), *first, *(
                    _cell(cells.loc[t], with_rate) for t in thresholds
                )])  # fmt: skip
            blank = [""] if with_rate else []
            of_threshold = [rows[rows.threshold == t] for t in thresholds]
            if len(body) > 1:  # of one depth there is nothing to compare
                body.append(["fewest at", *blank, *map(_fewest, of_threshold)])
                body.append(["rank correlation", *blank, *map(_correlation, of_threshold)])
            yield grid(head, body) + "\n"


def _rate(row: pd.Series) -> str:
    if pd.isna(row.learning_rate):
        return "none"
    return f"{row.learning_rate:g}{'*' if row.at_edge else ''}"


def _cell(row: pd.Series, with_rate: bool) -> str:
    if pd.isna(row.epochs_mean):
        return "–" if pd.isna(row.epochs_trained) else f"> {row.epochs_trained}"
    return f"{round(row.epochs_mean, 1):g}" + ("" if with_rate else f" at {_rate(row)}")


def _fewest(rows: pd.DataFrame) -> str:
    """The depths with the fewest epochs."""
    if rows.epochs_mean.isna().all():
        return "–"
    fewest = rows.depth[rows.epochs_mean == rows.epochs_mean.min()]
    return "L = " + ", ".join(map(str, fewest))


def _correlation(rows: pd.DataFrame) -> str:
    epochs = rows.epochs_mean.fillna(np.inf).rank()
    if epochs.nunique() < 2:
        return "–"
    return f"{epochs.corr(rows.depth.rank()):+.2f}".replace("-", "−")
