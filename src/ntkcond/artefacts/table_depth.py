"""Does depth make training faster? A verdict for each data set and training loss."""

import math

import pandas as pd
from scipy.stats import page_trend_test, spearmanr

from ntkcond.artefacts.output import grid
from ntkcond.artefacts.spec import Spec
from ntkcond.artefacts.verdicts import trend
from ntkcond.artefacts.verdicts.claim import FAILS, HOLDS, LEVEL, UNDECIDED, chance, holm
from ntkcond.datasets.registry import title
from ntkcond.training.learning_rates import best_rates, first_epochs, runs_at

SPEC = Spec(
    title="Table, does depth make training faster",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"planned_tests": "training.planned_tests"},
    files=(".csv", ".md"),
    costs=False,
    caption="""
Whether deeper networks need fewer epochs to a training loss of 0.1 and of 0.01. A row for each data
set and loss, at the best learning rate of each depth (the lowest final loss). Two questions, apart:

- ``page_p``: is there a trend? Page's test over all depths, with seeds as blocks;
- ``order_p``: does any added layer cost epochs? The distance of the means from the nearest falling
  curve, against its distribution under that curve (as of the claims).

``page_p_corrected``, ``order_p_corrected``: by Holm, for all rows, or for as many as were planned
(``training.planned_tests``), those that are not there last. ``verdict``: *does not hold* if
an order is contradicted (``order_p_corrected`` below 5 %); *holds* if there is a trend
(``page_p_corrected`` below 5 %), no order is contradicted (``order_p`` at 5 % or more) and each
best rate has a worse one on both sides (``rates_inside``); else *not decided*. A run that does not
get to the loss counts as one epoch later than all. ``epochs_first``, ``epochs_last``: means at the
least and the greatest depth; ``fewest_at``: the depth with the fewest; ``rank_correlation``: of
depth and the mean epochs. A run on another machine is another draw, as one of another seed.

**The paper** (§6) states from curves of one seed that deeper networks always train faster.
""",
)
LOSSES = (0.1, 0.01)
ROUNDED = 1 / 12  # variance of what is rounded up to an epoch


def table(training: pd.DataFrame, planned_tests: int = 0) -> pd.DataFrame:
    """A row for each data set and loss that any run reaches, corrected for this many tests, or for
    its rows if they are more."""
    rates = best_rates(training, "depth")
    activation = training.drop_duplicates("dataset").set_index("dataset").activation
    first = first_epochs(runs_at(training, rates), LOSSES)
    first = first.assign(epoch=first["first"].fillna(first.epochs_trained + 1))
    rows = [
        {
            "dataset": dataset, "activation": activation[dataset], "threshold": loss,
            **tested(runs, rates[rates.dataset == dataset].set_index("depth").at_edge),
        }
        for (dataset, loss), runs in first.groupby(["dataset", "threshold"], sort=False)
        if runs["first"].notna().any() and runs.depth.nunique() > 1
    ]  # fmt: skip
    columns = [
        "dataset", "activation", "threshold", "depths", "seeds", "runs", "reached", "epochs_first",
        "epochs_last", "fewest_at", "rank_correlation", "rates_inside", "page_p", "order_p",
    ]  # fmt: skip
    numbers = pd.DataFrame(rows, columns=columns)
    others = [1.0] * (planned_tests - len(numbers))
    for name in ("page_p", "order_p"):
        corrected = holm([*numbers[name].fillna(1.0), *others])
        numbers[f"{name}_corrected"] = corrected[: len(numbers)]
    return numbers.assign(verdict=[verdict(**row) for row in numbers.to_dict("records")])


def tested(runs: pd.DataFrame, at_edge: pd.Series) -> dict:
    """A row of the table, from the runs of a data set to a loss: depth, seed, first, NaN if it is
    not reached, and epoch, which is then one later than all. at_edge: of each depth's best rate."""
    epochs = runs.pivot(index="seed", columns="depth", values="epoch").dropna(axis=1)
    reached = runs.pivot(index="seed", columns="depth", values="first")[epochs.columns].notna()
    means, edge = epochs.mean(), at_edge[epochs.columns].fillna("") != ""
    page, order = math.nan, math.nan
    if len(epochs) > 1 and len(means) > 2:
        page = page_trend_test(-epochs.to_numpy(float)).pvalue
        variances, freedom = trend.by_depth(epochs.to_numpy(float))
        variances = variances + ROUNDED / len(epochs)
        order = trend.rising(
            -means, len(epochs), variances, freedom, at_most=~reached.all(), at_least=edge
        ).p
    return {
        "depths": len(means), "seeds": len(epochs), "runs": epochs.size,
        "reached": int(reached.to_numpy().sum()),
        "epochs_first": means.iloc[0], "epochs_last": means.iloc[-1], "fewest_at": means.idxmin(),
        "rank_correlation": spearmanr(means.index, means).statistic if means.nunique() > 1 else 0.0,
        # of a depth at which every rate diverged nothing is known
        "rates_inside": not edge.any() and set(means.index) == set(at_edge.index),
        "page_p": page, "order_p": order,
    }  # fmt: skip


def verdict(
    page_p_corrected: float, order_p: float, order_p_corrected: float, rates_inside: bool, **others
) -> str:
    """The verdict of a row."""
    if order_p_corrected < LEVEL:
        return FAILS
    trend_found = page_p_corrected < LEVEL and order_p >= LEVEL
    return HOLDS if trend_found and rates_inside else UNDECIDED


def markdown(numbers: pd.DataFrame) -> str:
    lines = [
        [
            title(row.dataset), f"{row.threshold:g}", f"{row.seeds}, {row.depths}",
            f"{row.epochs_first:g} → {row.epochs_last:g}", f"L = {row.fewest_at}",
            f"{row.rank_correlation:+.2f}".replace("-", "−"), _chance(row.page_p),
            _chance(row.order_p), "yes" if row.rates_inside else "no", row.verdict,
        ]
        for row in numbers.itertuples()
    ]  # fmt: skip
    head = ["", "loss", "seeds, depths", "epochs, least to greatest L", "fewest at",
            "rank correlation", "trend", "order", "rates inside", "verdict"]  # fmt: skip
    said = "Trend: Page's test; order: contradicted if p < 5 %, corrected (Holm)."
    return f"# Does depth make training faster?\n\n{said}\n\n{grid(head, lines)}\n"


def _chance(p: float) -> str:
    return "–" if math.isnan(p) else chance(p)
