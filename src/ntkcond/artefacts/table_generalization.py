"""The paper's Table 1 (newest version): test accuracy against depth, after training."""

import pandas as pd

from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.artefacts.output import grid
from ntkcond.training.learning_rates import CURVE, best_rates, runs_at

SPEC = Spec(
    title="Table 1, test accuracy against depth",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"rate_for": "training.rate_for"},
    files=(".csv", ".md"),
    costs=False,
    caption="""
Test accuracy against depth. A row for each data set and depth, with

- ``learning_rate``: the one with the lowest final training loss of those tried (``rate_for``: for
  each depth, or one for all depths of a data set); ``at_edge``: whether it is the lowest or
  highest of them;
- ``test_accuracy_percent_mean``, ``_std``: after the last epoch, mean and standard deviation over
  ``seeds``;
- ``train_loss_mean``, ``train_accuracy_mean``, ``test_loss_mean``: of the last epoch, losses in
  nats;
- ``paper_test_accuracy_percent``: what the paper has.

**The paper** (Table 1 of its newest version) has MNIST "after convergence", at L = 1, 3, 6, 8, 10,
12, without saying over how many seeds; it reads from it that accuracy rises with depth at first
and then falls. Its values are of all 60,000 samples: they compare only with runs of as many,
trained as long.
""",
)

# MNIST, in per cent, at depths L: its Table 1.
PAPER = {"mnist": {1: 95.98, 3: 97.43, 6: 97.57, 8: 97.52, 10: 97.39, 12: 97.19}}


def table(training: pd.DataFrame, rate_for: str) -> pd.DataFrame:
    """A row for each (dataset, depth), at the best learning rate
    (`ntkcond.training.learning_rates`).

    test_accuracy_percent_mean, _std (n − 1, empty for one seed): after the last epoch, over seeds;
    empty without a test split. paper_test_accuracy_percent: what the paper has, of 60,000 samples.
    """
    rates = best_rates(training, rate_for)
    last = runs_at(training, rates)
    last = last[last.epoch == last.epochs]
    last = last.assign(percent=100 * last.test_accuracy)
    found = last.groupby(CURVE, as_index=False, sort=False).agg(
        samples=("samples", "first"),
        test_samples=("test_samples", "first"),
        epochs=("epochs", "first"),
        seeds=("seed", "nunique"),
        train_loss_mean=("train_loss", "mean"),
        train_accuracy_mean=("train_accuracy", "mean"),
        test_loss_mean=("test_loss", "mean"),
        test_accuracy_percent_mean=("percent", "mean"),
        test_accuracy_percent_std=("percent", "std"),
    )
    found = rates.assign(rate_for=rate_for).merge(found, on=CURVE, how="left")
    whole = ["samples", "test_samples", "epochs", "seeds"]
    found = found.astype(dict.fromkeys(whole, "Int64"))
    paper = [PAPER.get(row.dataset, {}).get(row.depth) for row in found.itertuples()]
    return found.assign(paper_test_accuracy_percent=pd.array(paper, dtype="Float64"))


def markdown(numbers: pd.DataFrame) -> str:
    """A table for each data set."""
    parts = ["# Test accuracy against depth\n"]
    for dataset, rows in numbers.groupby("dataset", sort=False):
        tried = rows.dropna(subset="learning_rate")
        parts.append(f"## {title(dataset)}\n")
        if len(tried):
            row = tried.iloc[0]
            parts.append(
                f"{row.samples:,} samples, {row.epochs} epochs; {row.test_samples:,} test samples;"
                f" {_over(row.seeds)}, after the last epoch. Learning rate:"
                " the one with the lowest final training loss"
                f" {'for each depth' if row.rate_for == 'depth' else 'for all depths'}"
                + (" (* at the edge of those tried)" if (tried.at_edge != "").any() else "")
                + ("; none: at every rate a run diverged.\n" if len(tried) < len(rows) else ".\n")
            )
        head = ["L", "learning rate", "final training loss", "test accuracy (%)"]
        with_paper = rows.paper_test_accuracy_percent.notna().any()
        parts.append(
            grid(
                [*head, "paper (%)"] if with_paper else head,
                [_line(row, with_paper) for row in rows.itertuples()],
            )
            + "\n"
        )
        if with_paper:
            parts.append(
                "The paper's values (Table 1 of its newest version) are “after convergence” on all"
                " 60,000 samples.\n"
            )
    return "\n".join(parts)


def _over(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"


def _line(row, with_paper: bool) -> list[str]:
    paper = row.paper_test_accuracy_percent
    tail = ["–" if pd.isna(paper) else f"{paper:.2f}"] if with_paper else []
    if pd.isna(row.learning_rate):
        return [str(row.depth), "none", "–", "–", *tail]
    accuracy = "–"
    if pd.notna(row.test_accuracy_percent_mean):
        accuracy = f"{row.test_accuracy_percent_mean:.2f}"
        if pd.notna(row.test_accuracy_percent_std):
            accuracy += f" ± {row.test_accuracy_percent_std:.2f}"
    rate = f"{row.learning_rate:g}{'*' if row.at_edge else ''}"
    return [str(row.depth), rate, f"{row.train_loss_mean:.3g}", accuracy, *tail]
