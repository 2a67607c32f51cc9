"""Does depth make training faster? The verdicts, on runs made by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from ntkcond.artefacts import table_depth
from ntkcond.artefacts.verdicts.claim import FAILS, HOLDS, UNDECIDED

FALLS = [[40, 30, 22, 15, 10], [42, 31, 20, 16, 11], [41, 33, 23, 14, 9]]  # by seed and depth
LAST_COSTS = [[*seed[:4], 30] for seed in FALLS]


def training(epochs: list[list[float]], rates=(4.0, 8.0, 16.0), dataset="mnist") -> pd.DataFrame:
    """Runs of 50 epochs whose loss is below 0.1 from the given one on (nan: never), and half as
    large again at all rates but 8."""
    number = np.arange(1, 51)
    runs = [
        {
            "dataset": dataset, "activation": "relu", "depth": depth, "seed": seed,
            "learning_rate": rate, "epoch": number, "epochs": 50, "stop_below": 0.0,
            "flops_per_epoch": 1.0,
            "train_loss": np.where(number >= epoch, 0.05, 1 + 1 / number) * (1.5 - (rate == 8) / 2),
            "diverged_epoch": pd.NA, "stopped_epoch": pd.NA,
        }
        for seed, of_depths in enumerate(epochs, 1)
        for depth, epoch in enumerate(of_depths, 1)
        for rate in rates
    ]  # fmt: skip
    whole = dict.fromkeys(["diverged_epoch", "stopped_epoch"], "Int64")
    return pd.concat(map(pd.DataFrame, runs)).astype(whole)


@pytest.mark.parametrize(
    ("epochs", "rates", "verdict"),
    [
        (FALLS, (4.0, 8.0, 16.0), HOLDS),
        (LAST_COSTS, (4.0, 8.0, 16.0), FAILS),
        ([list(reversed(seed)) for seed in FALLS], (4.0, 8.0, 16.0), FAILS),
        (FALLS, (8.0, 16.0), UNDECIDED),  # a better rate may lie beyond the edge
        (FALLS, (8.0,), UNDECIDED),
        (FALLS[:1], (4.0, 8.0, 16.0), UNDECIDED),  # one seed
        ([[20, 21, 20, 19, 20], [20, 19, 21, 20, 20]], (4.0, 8.0, 16.0), UNDECIDED),
    ],
)  # fmt: skip
def test_a_verdict_takes_a_trend_no_layer_that_costs_and_rates_with_worse_on_both_sides(
    epochs, rates, verdict
):
    [row] = table_depth.table(training(epochs, rates)).to_dict("records")
    assert (row["threshold"], row["depths"], row["seeds"]) == (0.1, 5, len(epochs))
    assert row["verdict"] == verdict
    assert row["rates_inside"] == (len(rates) == 3)
    assert row["verdict"] in table_depth.markdown(table_depth.table(training(epochs, rates)))


def test_a_run_that_does_not_get_there_counts_as_later_than_all():
    late = [[math.nan, 30, 22, 15, 10], [math.nan, 31, 20, 16, 11], [math.nan, 33, 23, 14, 9]]
    [row] = table_depth.table(training(late)).to_dict("records")
    assert (row["epochs_first"], row["reached"], row["runs"]) == (51, 12, 15)
    assert row["verdict"] == HOLDS
    cut = [[*seed[:4], math.nan] for seed in FALLS]
    assert table_depth.table(training(cut)).verdict.item() == FAILS


def test_a_depth_at_which_every_rate_diverged_leaves_it_undecided():
    """Nothing is known of its speed."""
    runs = training(FALLS)
    runs.loc[(runs.depth == 3) & (runs.seed == 1), "train_loss"] = math.nan
    runs.loc[(runs.depth == 3) & (runs.seed == 1), "diverged_epoch"] = 1
    [row] = table_depth.table(runs).to_dict("records")
    assert (row["depths"], row["rates_inside"], row["verdict"]) == (4, False, UNDECIDED)


def test_rows_are_corrected_together():
    """By Holm: of six alike each p counts six times."""
    sets = pd.concat([training(FALLS, dataset=f"set {i}") for i in range(6)])
    numbers = table_depth.table(sets)
    alone = table_depth.table(training(FALLS))
    assert numbers.page_p_corrected.to_list() == pytest.approx(6 * [6 * alone.page_p.item()])
    assert (numbers.order_p_corrected == 1).all()
    [planned] = table_depth.table(training(FALLS), planned_tests=6).to_dict("records")
    assert planned["page_p_corrected"] == pytest.approx(6 * planned["page_p"])


def test_the_p_of_a_trend_is_that_of_all_orders_within_the_seeds():
    """Page's L of three seeds and four depths, by all (4!)³ of them."""
    epochs = np.array([[9, 7, 8, 3], [9, 8, 5, 4], [6, 9, 5, 2]])
    ranks = np.array([np.argsort(np.argsort(-seed)) + 1 for seed in epochs])
    weights = np.arange(1, 5)
    orders = np.array(list(itertools.permutations(weights))) @ weights
    sums = (orders[:, None, None] + orders[None, :, None] + orders[None, None, :]).ravel()
    expected = (sums >= (ranks @ weights).sum()).mean()
    runs = pd.DataFrame(epochs, columns=[1, 2, 3, 4]).melt(var_name="depth", value_name="epoch")
    runs = runs.assign(seed=np.tile([1, 2, 3], 4), first=runs.epoch)
    found = table_depth.tested(runs, pd.Series("", index=[1, 2, 3, 4]))
    assert found["page_p"] == pytest.approx(expected, rel=1e-12)
