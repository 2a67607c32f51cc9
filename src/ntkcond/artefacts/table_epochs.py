"""Epochs until a training loss: the meaning of "deeper trains faster" (the paper's §6)."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ntkcond.artefacts import best_rate
from ntkcond.artefacts.output import grid
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.training.learning_rates import CURVE, best_rates, edge, first_epochs

SPEC = Spec(
    title="Table, epochs to a training loss",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"thresholds": "training.thresholds"},
    files=(".csv", ".md"),
    costs=False,
    caption="""
How many epochs until the training loss is below a threshold: the meaning of "faster". A row for
each data set, depth, reading and threshold, with

- ``rate_for``, the reading: the learning rate is the one with the lowest final training loss for
  each ``depth``, or one for all depths of the ``dataset``, or the one that reaches this
  ``threshold`` first;
- ``learning_rate``, ``at_edge``: that rate, and whether it is the lowest or highest of those
  tried, or the only one;
- ``epochs_mean``, ``epochs_std``: the first epoch whose mean training loss is below
  ``threshold``, over seeds; empty unless all ``seeds`` get there in the ``epochs_trained``;
  ``seeds_below`` of them do; ``epochs_least``, ``epochs_least_std``: those that do not get there
  count with one epoch more than they were trained, so that the mean is at least this;
- ``tflop_mean``: operations in the matrix products of these epochs, in 10¹². An epoch of a deeper
  network takes more of them.

**The paper** has no such table. Its §6 states that deeper networks always converge faster, from
curves. ``results/table_epochs.md`` is easier to read and has the rank correlation of epochs and
depth.
""",
)

NAMES = {
    "depth": "the rate whose runs stop first, else with the lowest final loss, for each depth",
    "dataset": "one rate for all depths, whose runs stop first, else with the lowest final losses",
    "threshold": "the fastest rate for each depth and loss",
}

INTRODUCTION = (
    "Mean over seeds of the first epoch whose mean training loss is below; > n: not"
    " every seed got there in n epochs. none: at every rate a run diverged. Rank correlation with"
    " depth is Spearman's, a loss not reached counting as later than any: −1 where every"
    " added layer saves epochs, +1 where each costs some."
)


def table(training: pd.DataFrame, thresholds: Sequence[float]) -> pd.DataFrame:
    """A row for each (dataset, depth, reading, threshold).

    rate_for, the reading: the learning rate is that of `ntkcond.training.learning_rates`, for each
    depth or, where all depths tried the same rates, for the data set; or, "threshold", whichever
    reaches this threshold first, of equals the one that ends lowest. Runs that diverge, even later,
    never reach one. epochs_mean: the first epoch whose mean training loss is below the threshold,
    mean over seeds; empty unless all seeds got there; epochs_std: n − 1;
    epochs_least, epochs_least_std: a run that does not get there counted with one epoch more than
    it was trained. tflop_mean: the operations in the matrix products of these epochs, in 10¹².
    at_edge: the rate is at the edge of those tried."""
    reached = _over_seeds(first_epochs(training, sorted(map(float, thresholds), reverse=True)))
    every = reached[["threshold"]].drop_duplicates()
    readings = [
        best_rates(training, reading).merge(every, how="cross").assign(rate_for=reading)
        for reading in ("depth", "dataset")
    ]
    parts = [rates.merge(reached, how="left") for rates in readings if len(rates)]
    parts.append(_fastest(reached))
    columns = [
        *CURVE, "rate_for", "threshold", "learning_rate", "at_edge", "epochs_trained", "seeds",
        "seeds_below", "epochs_mean", "epochs_std", "epochs_least", "epochs_least_std",
        "tflop_mean",
    ]  # fmt: skip
    numbers = pd.concat(parts, ignore_index=True)[columns]
    return numbers.astype(dict.fromkeys(["epochs_trained", "seeds", "seeds_below"], "Int64"))


def _over_seeds(first: pd.DataFrame) -> pd.DataFrame:
    first = first.assign(least=first["first"].fillna(first.epochs_trained + 1))
    groups = first.groupby([*CURVE, "learning_rate", "threshold"], as_index=False, sort=False)
    numbers = groups.agg(
        epochs_trained=("epochs_trained", "first"),
        seeds=("seed", "nunique"),
        seeds_below=("first", "count"),
        epochs_mean=("first", "mean"),
        epochs_std=("first", "std"),
        epochs_least=("least", "mean"),
        epochs_least_std=("least", "std"),
        flops=("flops", "first"),
        final=("final", "mean"),
    )
    means = numbers[["epochs_mean", "epochs_std"]]
    numbers[[*means]] = means.where(numbers.seeds_below == numbers.seeds)
    return numbers.assign(tflop_mean=numbers.epochs_mean * numbers.flops / 1e12)


def _fastest(reached: pd.DataFrame) -> pd.DataFrame:
    """The rate with the fewest epochs, for each (dataset, depth, threshold)."""
    rows = []
    for _, curve in reached.groupby(CURVE, sort=False):
        for _, tried in curve.groupby("threshold", sort=False):
            row = tried.sort_values(["epochs_mean", "final"]).iloc[0]
            rate, at_edge = row.learning_rate, edge(row.learning_rate, tried)
            if tried.epochs_mean.isna().all():
                row, rate, at_edge = tried.loc[tried.seeds_below.idxmax()], np.nan, ""
            chosen = {"learning_rate": rate, "at_edge": at_edge, "rate_for": "threshold"}
            rows.append({**row, **chosen})
    return pd.DataFrame(rows)


def markdown(numbers: pd.DataFrame) -> str:
    """For each data set and reading, epochs at each depth and threshold, and their trend with
    depth."""
    return "\n".join(_lines(numbers))


def _lines(numbers: pd.DataFrame) -> Iterator[str]:
    marked = numbers.at_edge.isin(best_rate.EDGES).any()
    at_edge = " * at the edge of the rates tried." if marked else ""
    yield f"# Epochs until the training loss is below a threshold\n\n{INTRODUCTION}{at_edge}\n"
    for dataset, readings in numbers.groupby("dataset", sort=False):
        yield f"## {title(dataset)}\n"
        alone = best_rate.alone(readings)
        if alone and readings.at_edge[readings.learning_rate.notna()].eq("only").all():
            rows = readings[readings.rate_for == "depth"]  # all readings are one
            yield f"Learning rate: {alone}.\n\n{_grid(rows, True)}\n"
            continue
        for reading, rows in readings.groupby("rate_for", sort=False):
            words = f"{NAMES[reading]}{'; ' * bool(alone)}{alone}"
            yield f"Learning rate: {words}.\n\n{_grid(rows, reading != 'threshold')}\n"


def _grid(rows: pd.DataFrame, with_rate: bool) -> str:
    """with_rate: a column has the learning rate; otherwise each cell."""
    columns = sorted(rows.groupby("threshold"), key=lambda column: -column[0])
    head = ["L", "learning rate", *(f"{threshold:g}" for threshold, _ in columns)]
    body = []
    for depth, cells in rows.groupby("depth"):
        cells = cells.sort_values("threshold", ascending=False)
        words = [_cell(row, with_rate) for row in cells.itertuples()]
        body.append([str(depth), best_rate.shown(cells.iloc[0]), *words])
    if len(body) > 1:  # one depth alone compares with nothing
        for name, trend in (("fewest at", _fewest), ("rank correlation", _correlation)):
            body.append([name, "", *(trend(column) for _, column in columns)])
    lines = [head, *body] if with_rate else [line[:1] + line[2:] for line in (head, *body)]
    return grid(lines[0], lines[1:])


def _cell(row, with_rate: bool) -> str:
    if pd.isna(row.epochs_mean):
        return "–" if pd.isna(row.epochs_trained) else f"> {row.epochs_trained}"
    return f"{round(row.epochs_mean, 1):g}" + ("" if with_rate else f" at {best_rate.shown(row)}")


def _fewest(rows: pd.DataFrame) -> str:
    """The depths with the fewest epochs."""
    fewest = rows.depth[rows.epochs_mean == rows.epochs_mean.min()]
    return f"L = {', '.join(map(str, fewest))}" if len(fewest) else "–"


def _correlation(rows: pd.DataFrame) -> str:
    epochs = rows.epochs_mean.fillna(np.inf).rank()
    if epochs.nunique() < 2:
        return "–"
    return f"{epochs.corr(rows.depth.rank()):+.2f}".replace("-", "−")
