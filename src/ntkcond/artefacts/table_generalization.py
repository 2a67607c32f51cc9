"""The paper's Table 1 (newest version): test accuracy against depth, after training."""

import pandas as pd

from ntkcond.artefacts import best_rate
from ntkcond.artefacts.output import grid
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.training.learning_rates import CURVE, best_rates, last_epochs, runs_at

SPEC = Spec(
    title="Table 1, test accuracy against depth",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"rate_for": "training.rate_for"},
    files=(".csv", ".md"),
    costs=False,
    caption="""
Test accuracy against depth. A row for each data set and depth, with

- ``learning_rate``: of those tried, the one with the lowest final training loss (``rate_for``: for
  each depth, or one for all depths of a data set); ``at_edge``: whether it is the lowest or
  highest of them, or the only one;
- ``last_epoch_mean``: the last epoch, where runs end below a training loss (``stop_below``);
- ``test_accuracy_percent_mean``, ``_std``: after the last epoch, mean and standard deviation over
  ``seeds``;
- ``train_loss_mean``, ``train_accuracy_mean``, ``test_loss_mean``: of the last epoch, losses in
  nats;
- ``paper_test_accuracy_percent``: that of the paper.

**The paper** (Table 1 of its newest version) has MNIST "after convergence", at L = 1, 3, 6, 8, 10,
12, without the number of seeds. It concludes that accuracy first rises with depth and then falls.
Its values are of all 60,000 samples: they compare only with runs of as many, trained as long.
""",
)

# MNIST, in per cent, at depths L: the paper's Table 1.
PAPER = {"mnist": {1: 95.98, 3: 97.43, 6: 97.57, 8: 97.52, 10: 97.39, 12: 97.19}}

MEANS = ("train_loss", "train_accuracy", "test_loss", "test_accuracy_percent")
OF_THE_PAPER = (
    "The paper's values (Table 1 of its newest version) are “after convergence” on all 60,000"
    " samples.\n"
)


def table(training: pd.DataFrame, rate_for: str) -> pd.DataFrame:
    """A row for each (dataset, depth), at the best learning rate
    (`ntkcond.training.learning_rates`).

    test_accuracy_percent_mean, _std (n − 1, empty for one seed): after the last epoch, over seeds;
    empty without a test split. paper_test_accuracy_percent: the paper's, of 60,000 samples.
    """
    rates = best_rates(training, rate_for)
    last = last_epochs(runs_at(training, rates))
    numbers = last.assign(test_accuracy_percent=100 * last.test_accuracy)
    numbers = numbers.groupby(CURVE, as_index=False, sort=False).agg(
        **{name: (name, "first") for name in ("samples", "test_samples", "epochs", "stop_below")},
        last_epoch_mean=("epoch", "mean"),
        seeds=("seed", "nunique"),
        **{f"{name}_mean": (name, "mean") for name in MEANS},
        test_accuracy_percent_std=("test_accuracy_percent", "std"),
    )
    numbers = rates.assign(rate_for=rate_for).merge(numbers, on=CURVE, how="left")
    numbers = numbers.astype(dict.fromkeys(["samples", "test_samples", "epochs", "seeds"], "Int64"))
    paper = [PAPER.get(row.dataset, {}).get(row.depth) for row in numbers.itertuples()]
    return numbers.assign(paper_test_accuracy_percent=pd.array(paper, dtype="Float64"))


def markdown(numbers: pd.DataFrame) -> str:
    """A table for each data set."""
    parts = ["# Test accuracy against depth\n"]
    for dataset, rows in numbers.groupby("dataset", sort=False):
        tried = rows.dropna(subset="learning_rate")
        parts.append(f"## {title(dataset)}\n")
        if len(tried):
            row = tried.iloc[0]
            parts.append(
                f"{row.samples:,} samples, {_epochs(row)}; {row.test_samples:,} test samples;"
                f" {_over(row.seeds)}, after the last epoch. Learning rate: {_rates(tried)}"
                + ("; none: at every rate a run diverged.\n" if len(tried) < len(rows) else ".\n")
            )
        head = ["L", "learning rate", "final training loss", "test accuracy (%)", "paper (%)"]
        cells = [_cells(row) for row in rows.itertuples()]
        if rows.paper_test_accuracy_percent.notna().any():
            parts += [grid(head, cells) + "\n", OF_THE_PAPER]
        else:
            parts.append(grid(head[:-1], [line[:-1] for line in cells]) + "\n")
    return "\n".join(parts)


def _rates(tried: pd.DataFrame) -> str:
    alone = best_rate.alone(tried)
    if (tried.at_edge == "only").all():
        return alone
    stops = bool((tried.stop_below > 0).any())
    best = f"the one {best_rate.chosen(tried.rate_for.iloc[0], stops)}"
    marked = tried.at_edge.isin(best_rate.EDGES).any()
    at_edge = " (* at the edge of those tried)" if marked else ""
    return f"{best}{at_edge}{'; ' * bool(alone)}{alone}"


def _epochs(row: pd.Series) -> str:
    if not row.stop_below:
        return f"{row.epochs} epochs"
    return f"until the training loss is below {row.stop_below:g}, at most {row.epochs} epochs"


def _over(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"


def _cells(row) -> list[str]:
    def cell(value: float, form: str, before: str = "", unknown: str = "–") -> str:
        return unknown if pd.isna(value) else f"{before}{value:{form}}"

    accuracy = cell(row.test_accuracy_percent_mean, ".2f")
    accuracy += cell(row.test_accuracy_percent_std, ".2f", before=" ± ", unknown="")
    loss, paper = cell(row.train_loss_mean, ".3g"), cell(row.paper_test_accuracy_percent, ".2f")
    return [str(row.depth), best_rate.shown(row), loss, accuracy, paper]
