"""Which learning rate is shown, and the tables made from the runs, on a table made by hand."""

import numpy as np
import pandas as pd
import pytest

from ntkcond.artefacts import fig3, table_epochs, table_generalization
from ntkcond.training.learning_rates import best_rates
from training_table import TRAINING, training


def rates(rate_for: str, table: pd.DataFrame = TRAINING) -> dict:
    best = best_rates(table, rate_for)
    return {(row.dataset, row.depth): (row.learning_rate, row.at_edge) for row in best.itertuples()}


def test_the_best_rate_of_each_depth_has_the_lowest_mean_of_final_losses():
    best = rates("depth")
    assert best["mnist", 1] == (2, "")
    assert best["mnist", 3] == (1, "lowest")  # 4 is lower for one seed and diverges for the other
    assert best["digits", 1] == (4, "highest")


def test_the_best_rate_of_a_data_set_is_one_for_all_depths():
    best = rates("dataset")
    # means of log: 1: log 0.5 + log 0.01, 2: log 0.15 + log 0.05, 4: diverges
    assert best["mnist", 1] == best["mnist", 3] == (1, "lowest")


def test_depths_that_tried_different_rates_have_none_in_common():
    final = {("mnist", 1): {1: (0.5, 0.5), 2: (0.1, 0.1)}, ("mnist", 3): {2: (0.1, 0.1)}}
    mixed = training({**final, ("digits", 1): {4: (0.2, 0.2)}, ("digits", 3): {4: (0.3, 0.3)}})
    assert rates("dataset", mixed) == {("digits", 1): (4, "only"), ("digits", 3): (4, "only")}
    table = table_epochs.table(mixed, [1.0]).set_index("dataset")
    assert list(table.rate_for["mnist"].unique()) == ["depth", "threshold"]
    assert "one rate for all" not in table_epochs.markdown(table.loc[["mnist"]].reset_index())
    alone = table_epochs.table(mixed[mixed.dataset == "mnist"], [1.0])
    assert set(alone.rate_for) == {"depth", "threshold"}


def test_the_best_of_rates_that_all_diverge_of_one_rate_and_of_a_loss_of_zero():
    for rate_for, curve in (("depth", ("digits", 3)), ("dataset", ("digits", 1))):
        assert rates(rate_for)[curve] == (pytest.approx(np.nan, nan_ok=True), "")
    only = training({("mnist", 1): {2: (0.1, 0.1)}})
    assert rates("depth", only) == {("mnist", 1): (2, "only")}
    zero = training({("mnist", 1): {1: (0.5, 0.5), 2: (1e-9, 1e-9), 4: (0.3, 0.3)}})
    zero.loc[zero.learning_rate == 2, "train_loss"] = 0.0
    assert rates("depth", zero) == rates("dataset", zero) == {("mnist", 1): (2, "")}


def stopped(final: dict, below: float) -> pd.DataFrame:
    """Runs that end in the first epoch whose loss is below."""
    runs = training(final).assign(stop_below=below)
    run = ["depth", "seed", "learning_rate"]
    first = runs[runs.train_loss < below].groupby(run).epoch.min().rename("stopped_epoch")
    runs = runs.drop(columns="stopped_epoch").merge(first.astype("Int64"), how="left", on=run)
    measured = ["train_loss", "train_accuracy", "test_loss", "test_accuracy"]
    runs.loc[(runs.epoch > runs.stopped_epoch).fillna(False), measured] = np.nan
    return runs


def test_of_runs_that_stop_below_a_loss_the_first_is_the_best_and_its_last_epoch_counts():
    # 2 gets below 0.05 in epoch 4 and 5, 4 in epoch 3; 1 ends lowest of those that do not stop
    runs = stopped({("mnist", 1): {1: (0.06, 0.06), 2: (0.01, 0.03), 4: (0.001, 0.001)}}, 0.05)
    assert rates("depth", runs) == rates("dataset", runs) == {("mnist", 1): (4, "highest")}
    (row,) = table_generalization.table(runs, "depth").itertuples()
    assert row.train_loss_mean == pytest.approx(1.6 * (0.001 / 1.6) ** 0.5)
    assert row.test_accuracy_percent_mean == pytest.approx(100 * (0.9 + 0.0165))
    texts = [
        table_generalization.markdown(table_generalization.table(runs, "depth")),
        table_epochs.markdown(table_epochs.table(runs, [1.0])),
        fig3.draw(fig3.table(runs, "depth")).subfigs[1].get_supxlabel(),
    ]
    assert all("whose runs stop first" in text for text in texts)
    drawn = fig3.table(runs[runs.learning_rate == 2], "depth")
    assert drawn.epoch.max() == 4  # where the first of two runs stops
    assert drawn.train_loss_std.notna().all()


def test_of_rates_at_which_not_all_runs_stop_that_with_the_lowest_losses_is_the_best():
    runs = stopped({("mnist", 1): {1: (0.01, 0.06), 2: (0.01, 0.055), 4: (0.3, 0.3)}}, 0.05)
    assert rates("depth", runs) == rates("dataset", runs) == {("mnist", 1): (2, "")}


def test_test_accuracy_is_that_of_the_best_rates_last_epoch_beside_the_papers():
    table = table_generalization.table(TRAINING, "depth").set_index(["dataset", "depth"])
    row = table.loc["mnist", 1]
    assert row.test_accuracy_percent_mean == pytest.approx(100 * (0.9 + 0.0165))
    assert row.test_accuracy_percent_std == pytest.approx(np.std([0.1, 3.2], ddof=1))
    assert row.train_loss_mean == pytest.approx(0.15)
    assert (row.learning_rate, row.seeds, row.paper_test_accuracy_percent) == (2, 2, 95.98)
    assert pd.isna(table.loc["digits", 1].paper_test_accuracy_percent)
    assert pd.isna(table.loc["digits", 3].test_accuracy_percent_mean)
    text = table_generalization.markdown(table.reset_index())
    assert "| 3 | 1* | 0.01 | 91.65 ± 2.19 | 97.43 |" in text
    assert "| 3 | none | – | – |" in text


def test_without_a_test_split_the_table_says_so_and_has_the_rest():
    untested = TRAINING.assign(test_loss=np.nan, test_accuracy=np.nan, test_samples=0)
    text = table_generalization.markdown(table_generalization.table(untested, "depth"))
    assert "| 1 | 2 | 0.15 | – | 95.98 |" in text


def test_epochs_to_a_threshold_are_counted_to_the_first_epoch_below_it():
    table = table_epochs.table(TRAINING, [1.0, 0.1, 0.001])
    table = table.set_index(["dataset", "depth", "rate_for", "threshold"])
    # at rate 2 the seeds fall by (0.1/1.6)^¼ = 0.5 and (0.2/1.6)^¼ = 0.59: 1.6, 0.8 and 1.6, 0.95
    row = table.loc["mnist", 1, "depth", 1.0]
    assert (row.epochs_mean, row.epochs_std, row.seeds_below) == (2, 0, 2)
    assert row.tflop_mean == pytest.approx(2 * 0.1)
    # the last epochs are at 0.1 and 0.2: not below 0.1
    row = table.loc["mnist", 1, "depth", 0.1]
    assert np.isnan(row.epochs_mean)
    assert row.seeds_below == 0
    # by (0.01/1.6)^¼ = 0.28: 1.6, 0.45, 0.13, 0.036
    assert table.loc["mnist", 3, "depth", 0.1].epochs_mean == 4
    assert table.loc["mnist", 3, "dataset", 0.1].learning_rate == 1
    assert table.loc["digits", 3, "depth", 1.0].isna()[["learning_rate", "epochs_mean"]].all()


def test_the_fastest_rate_to_a_threshold_may_be_another_than_the_best():
    final = {("mnist", 1): {1: (0.5, 0.5), 2: (0.01, 0.02), 4: (0.2, 0.2)}}
    runs = training(final)
    fast = (runs.learning_rate == 4) & (runs.epoch == 1)
    runs.loc[fast, "train_loss"] = 0.9
    row = table_epochs.table(runs, [1.0]).set_index("rate_for").loc["threshold"]
    assert (row.learning_rate, row.epochs_mean, row.at_edge) == (4, 1, "highest")
    assert table_epochs.table(runs, [1.0]).set_index("rate_for").loc["depth"].learning_rate == 2


def test_of_equally_fast_rates_the_one_that_ends_lowest_is_named():
    runs = training({("mnist", 1): {1: (0.5, 0.5), 2: (0.01, 0.02), 4: (0.2, 0.2)}})
    runs.loc[runs.epoch == 1, "train_loss"] = 0.9
    row = table_epochs.table(runs, [1.0]).set_index("rate_for").loc["threshold"]
    assert (row.learning_rate, row.epochs_mean, row.at_edge) == (2, 1, "")


def test_a_run_that_diverges_later_is_not_the_fastest():
    runs = training({("mnist", 1): {1: (0.5, 0.5), 2: (0.1, None), 4: (0.3, 0.3)}})
    early = (runs.learning_rate == 2) & (runs.epoch == 1)
    runs.loc[early, "train_loss"] = 0.1
    table = table_epochs.table(runs, [1.0]).set_index("rate_for")
    assert table.loc["threshold"].learning_rate == 4
    assert table.loc["threshold"].at_edge == "highest"


def test_the_table_of_epochs_says_how_they_go_with_depth():
    final = {("mnist", depth): {1: (0.8 / depth,) * 2, 2: (0.9,) * 2} for depth in (1, 2, 4)}
    text = table_epochs.markdown(table_epochs.table(training(final), [1.0, 0.3, 0.1]))
    assert "| fewest at |  | L = 4 | L = 4 | – |" in text
    assert "| rank correlation |  | −1.00 | −0.87 | – |" in text
    assert "| 4 | 1* | 2 | 5 | > 5 |" in text


def test_one_rate_is_neither_the_best_nor_at_an_edge(caplog):
    """Of each depth, as in Table 1 at full size; of some depths only these are named."""
    runs = training({("mnist", 1): {4: (0.1, 0.2)}, ("mnist", 3): {2: (0.05, 0.1)}})
    epochs = table_epochs.markdown(table_epochs.table(runs, [1.0, 0.3]))
    accuracy = table_generalization.markdown(table_generalization.table(runs, "depth"))
    figure = fig3.draw(fig3.table(runs, "depth"))
    note = figure.subfigs[1].get_supxlabel().replace("\n", " ")
    words = " ".join(text.get_text() for text in figure.subfigs[1].axes[0].texts)
    for text in (epochs, accuracy, note, words, caplog.text):
        for false in ("lowest final", "of those", "edge", "fastest", "best", "*"):
            assert false not in text, (false, text)
    for text in (epochs, accuracy):
        assert "one at each depth, compared with no other" in text
    assert "one tried at each depth" in note
    assert epochs.count("| 1 | 4 |") == 1  # one reading, since all are the same
    mixed = training({("mnist", 1): {4: (0.1, 0.2)}, ("mnist", 3): {2: (0.05, 0.1), 1: (0.3, 0.3)}})
    text = table_generalization.markdown(table_generalization.table(mixed, "depth"))
    assert "| 1 | 4 |" in text
    assert "| 3 | 2* |" in text
    assert "compared with no other at L = 1" in text
    assert "one alone at L = 1." in note_of_fig3(mixed)
    two = {("mine", 1): {4: (0.1, 0.2), 8: (0.3, 0.3)}, ("mine", 3): {2: (0.05, 0.1)}}
    both = pd.concat([mixed, training(two)])
    assert "one alone at L = 1, 3." in note_of_fig3(both)


def note_of_fig3(runs: pd.DataFrame) -> str:
    figure = fig3.draw(fig3.table(runs, "depth"))
    return figure.subfigs[1].get_supxlabel().replace("\n", " ")


def test_fig3_draws_the_mean_of_the_best_rate_and_nothing_of_the_others():
    numbers = fig3.table(TRAINING, "depth")
    figure = fig3.draw(numbers)
    mnist, digits, *reached = figure.subfigs[0].axes  # below the curves, epochs to a loss
    assert (mnist.get_title("left"), mnist.get_yscale()) == ("MNIST\n10,000 samples", "log")
    shallow, deep = (line.get_ydata() for line in mnist.lines)
    assert shallow[-1] == pytest.approx(0.15)
    assert deep[-1] == pytest.approx(0.01)
    assert len(digits.lines) == 1  # at depth 3 every rate diverged
    to_1, to_tenth = reached[0].lines
    assert list(to_1.get_xdata()) == [1, 3] and list(to_tenth.get_xdata()) == [3]
    words = [text.get_text() for text in figure.subfigs[1].axes[0].texts]
    assert words[words.index("1") - 1 :].count("2") == 1
    assert {"1*", "4*", "none"} <= set(words)
    note = figure.subfigs[1].get_supxlabel().replace("\n", " ")
    for part in (
        "each layer is divided",
        "2 seeds",
        "from 1 to 4",
        "at the edge",
        "a run diverged",
    ):
        assert part in note


def test_fig3_says_which_convention_and_which_reading():
    mixed = TRAINING.assign(convention=TRAINING.dataset.map({"mnist": "authors"}).fillna("paper"))
    note = fig3.draw(fig3.table(mixed, "depth")).subfigs[1].get_supxlabel()
    assert "MNIST: As in the authors" in note
    assert "digits: Eq. (1) is taken" in note
    note = fig3.draw(fig3.table(TRAINING.assign(convention="paper"), "dataset")).subfigs[1]
    assert "Eq. (1) is taken literally" in note.get_supxlabel()
    assert "for all depths" in note.get_supxlabel()


@pytest.mark.filterwarnings("error")
def test_fig3_of_one_run_of_one_epoch_is_drawn(tmp_path):
    one = training({("mine", 0): {1: (0.5,)}})
    one = one[one.epoch == 1].assign(epochs=1)
    fig3.draw(fig3.table(one, "depth")).save(tmp_path / "fig3.png")


@pytest.mark.filterwarnings("error")
def test_fig3_of_nothing_but_divergence_is_drawn(tmp_path):
    none = training({("mine", 1): {1: (None, None)}, ("mine", 2): {1: (None, None)}})
    fig3.draw(fig3.table(none, "depth")).save(tmp_path / "fig3.png")


def test_a_rate_at_which_every_run_stops_is_better_than_one_at_which_the_fastest_does():
    """Of rate 2 both runs stop late, of rate 4 one early and one never."""
    runs = stopped({("mnist", 1): {2: (0.09, 0.09), 4: (0.001, 0.2)}}, below=0.1)
    assert rates("depth", runs)["mnist", 1][0] == 2
