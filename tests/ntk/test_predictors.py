"""Measures of the NTK at the start, the step that trains many networks, and its two artefacts:
against linear algebra, autograd and SciPy."""

from argparse import Namespace
from itertools import product
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.markers import MarkerStyle
from scipy import stats

from ntkcond.artefacts import fig_predictors, fig_speed
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import predictors
from ntkcond.run.errors import UserError
from ntkcond.steps import speed
from ntkcond.training import sgd

RNG = np.random.default_rng(0)
FACTOR = RNG.standard_normal((9, 14))
KERNEL = FACTOR @ FACTOR.T + 5
KAPPA = np.linalg.cond(KERNEL)
LABELS = np.array([3, 1, 1, 7, 3, 3, 7, 1, 3])
Y = predictors.class_columns(LABELS)
N, SEEDS, DEPTHS, WIDTH = 12, [1, 32], [1, 3], 16
X, CLASSES = RNG.standard_normal((2 * N, 5)).astype(np.float32), np.arange(2 * N) % 3


def test_columns_of_classes_are_centred():
    assert Y.shape == (9, 3)
    assert np.abs(Y.sum(axis=0)).max() < 1e-14
    assert (Y.argmax(axis=1) == np.searchsorted([1, 3, 7], LABELS)).all()


def test_measures_are_those_of_linear_algebra():
    measures = predictors.predictors(KERNEL, Y, KAPPA)
    values = np.linalg.eigvalsh(KERNEL)
    assert measures.kappa_without_first == pytest.approx(values[-2] / values[0])
    assert measures.largest_share == pytest.approx(values[-1] / np.trace(KERNEL))
    squared = (Y**2).sum()
    assert measures.label_rate == pytest.approx(np.trace(Y.T @ KERNEL @ Y) / values[-1] / squared)
    inverse = np.trace(Y.T @ np.linalg.solve(KERNEL, Y)) / squared
    assert measures.label_complexity == pytest.approx(inverse * np.trace(KERNEL) / 9)
    centre = np.eye(9) - 1 / 9
    one, other = centre @ KERNEL @ centre, Y @ Y.T
    cosine = (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)
    assert measures.alignment == pytest.approx(cosine)


def test_predicted_steps_are_those_of_the_descent():
    steps = predictors.predictors(KERNEL, Y, KAPPA).predicted_steps
    contraction = np.eye(9) - KERNEL / np.linalg.eigvalsh(KERNEL)[-1]

    def left(t: int) -> float:
        residual = np.linalg.matrix_power(contraction, t) @ Y
        return (residual**2).sum() / (Y**2).sum()

    assert steps > 2
    assert left(int(steps)) > predictors.LEFT > left(int(steps) + 1)


def test_what_divides_by_the_smallest_eigenvalue_is_known_as_far_as_it_is():
    for kappa in (np.inf, np.nan):
        measures = predictors.predictors(KERNEL, Y, kappa)
        assert [measures.kappa_without_first, measures.label_complexity] == pytest.approx(
            [kappa, kappa], nan_ok=True
        )
        assert np.isfinite(measures.predicted_steps)


def test_one_rate_has_a_closed_form():
    for rate in (1e-9, 0.25, 0.9999):  # the last in less than a step
        expected = np.log(0.1) / (2 * np.log1p(-rate))
        assert predictors.steps_until(0.1, np.array([rate]), np.ones(1)) == pytest.approx(expected)


def test_labels_that_are_never_learned():
    shares = np.array([0.3, 0.7])
    assert predictors.steps_until(0.1, np.array([0.0, 1.0]), shares) == np.inf
    assert predictors.steps_until(0.1, np.array([-1e-17, 1.0]), shares) == np.inf
    assert predictors.steps_until(0.5, np.array([0.0, 1.0]), shares) < 1e-5
    t = predictors.steps_until(0.1, np.array([0.25, 1.0]), shares)
    assert 0.3 * 0.75 ** (2 * t) == pytest.approx(0.1)


def measured(folder: Path, x: np.ndarray = X, y: np.ndarray = CLASSES, **changes: object) -> Path:
    """The step's file for this data set, mine."""
    loss = changes.get("loss", "square")
    output = folder / f"speed/mine/{loss}/width{WIDTH}.h5"
    output.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / "mine.h5", "w") as file:
        file["x"], file["y"] = x, y
    options = {
        "dataset": folder / "mine.h5", "activations": ["relu", "tanh"], "depths": DEPTHS,
        "width": WIDTH, "bias": 0.0, "convention": "authors", "loss": loss, "seeds": SEEDS,
        "learning_rates": [0.25, 0.5], "thresholds": [0.7, 0.1], "samples": "all", "block": N,
        "batch": 2 * N, "epochs": 4, "device": "cpu", "threads": 1, "record": None,
        "output": output,
    }  # fmt: skip
    speed.main(Namespace(**options | changes))
    return output


@pytest.mark.parametrize(("convention", "bias"), [("authors", 0.3), ("paper", 0.0)])
def test_the_ntk_is_that_of_the_network_which_is_trained(convention, bias, tmp_path):
    """Of its first output, by autograd."""
    with h5py.File(measured(tmp_path, convention=convention, bias=bias)) as file:
        largest = file["ntk/lambda_max"][1, 1, 0]
        rates = file["learning_rate"][1, 1, 0]
    network = MLP(ACTIVATIONS["tanh"], depth=3, width=WIDTH, bias=bias)
    model = sgd.Model(network, sgd.layer_factors(network, 5, convention))
    weights = [w.double().requires_grad_() for w in sgd.stacked_weights([1], network, 5, 1)]
    f = sgd.logits(weights, torch.tensor(X[:N]).double()[None], model)[0, :, 0]
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(v, weights, retain_graph=True)])
            for v in f]  # fmt: skip
    jacobian = torch.stack(rows).numpy()
    expected = np.linalg.eigvalsh(jacobian @ jacobian.T)[-1]
    assert largest == pytest.approx(expected, rel=1e-6)  # float32 weights in training
    assert rates == pytest.approx(np.array([0.25, 0.5]) * N / largest, rel=1e-12)


@pytest.mark.parametrize("loss", sgd.LOSSES)
def test_networks_are_trained_as_autograd_does(loss, tmp_path):
    """Two steps with all samples in a batch: the loss of an epoch is that before its step."""
    with h5py.File(measured(tmp_path, loss=loss)) as file:
        losses, rate = file["train_loss"][0, 1, 1, 1], file["learning_rate"][0, 1, 1, 1]
        start = file["start_loss"][0, 1, 1]
    network = MLP(ACTIVATIONS["relu"], depth=3, width=WIDTH)
    model = sgd.Model(network, sgd.layer_factors(network, 5, "authors"), loss)
    weights = [w.requires_grad_() for w in sgd.stacked_weights([32], network, 5, 3)]
    inputs, target = torch.tensor(X)[None], torch.tensor(CLASSES)
    optimiser = torch.optim.SGD(weights, lr=rate)
    by_autograd = []
    for _ in range(3):
        f = sgd.logits(weights, inputs, model)[0]
        if loss == "square":
            hot = torch.nn.functional.one_hot(target, 3).float()
            value = 0.5 * (f - hot).square().sum() / len(f)
        else:
            value = torch.nn.functional.cross_entropy(f, target)
        by_autograd.append(value.item())
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    assert losses[:3] == pytest.approx(by_autograd, rel=1e-4)
    assert start == pytest.approx(by_autograd[0], rel=1e-5)


def test_a_block_of_one_class_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"first 12 samples have the same label\. Raise the block"):
        measured(tmp_path, y=(np.arange(2 * N) >= N).astype(int))
    with pytest.raises(UserError, match=r"every label is 4: .*out of figures\.fig_speed"):
        measured(tmp_path, y=np.full(2 * N, 4))


def test_epochs_until_a_loss():
    losses = np.array([
        [2.0, 1.0, 0.5, 0.25], [0.5, 0.4, 0.3, 0.2], [2.0, 0.9, np.nan, np.nan],
        [1.0, 1.0, 1.0, 1.0], [np.nan] * 4,
    ])  # fmt: skip
    epochs = fig_speed.epochs_until(losses, np.sqrt(0.5))
    assert epochs == pytest.approx([2.5, 1, np.nan, np.nan, np.nan], nan_ok=True)


def test_the_table_takes_the_first_rate_at_which_all_seeds_arrive(tmp_path):
    path = measured(tmp_path)
    with h5py.File(path, "r+") as file:
        losses = np.ones_like(file["train_loss"])
        losses[0, 0, :, 0, 3] = 0.5  # both seeds in the last epoch; at the other rate one, early
        losses[0, 0, 0, 1, 1] = 0.5
        file["train_loss"][...] = losses
        file["ntk/verdict"][0, 1, 0] = "unresolved"
        file["ntk/kappa"][1, 0] = np.inf
        kappa = file["ntk/kappa"][0, 0]
    rows = fig_speed.table([path]).set_index(["activation", "depth", "threshold"])
    assert 3 < rows.epochs["relu", 1, 0.7] < 4
    assert rows.learning_rate["relu", 1, 0.7] == 0.25 and rows.at_edge["relu", 1, 0.7] == "lowest"
    assert rows.epochs.notna().sum() == 1 and not rows.shown.any()
    assert rows.kappa["relu", 1, 0.7] == pytest.approx(np.sqrt(kappa.prod()))
    assert np.isnan(rows.kappa["relu", 3, 0.7]) and rows.kappa["tanh", 1, 0.7] == np.inf
    fig_speed.draw(rows.reset_index())


def test_the_edge_is_that_of_the_rates_tried(tmp_path):
    path = measured(tmp_path, learning_rates=[0.125, 0.25, 0.5])
    with h5py.File(path, "r+") as file:
        losses = np.ones_like(file["train_loss"])
        for activation, depth, first in ((0, 0, 0), (0, 1, 1), (1, 0, 2)):
            losses[activation, depth, :, first, 1:] = 0.5
        file["train_loss"][...] = losses
    rows = fig_speed.table([path]).query("threshold == 0.7").set_index(["activation", "depth"])
    assert rows.at_edge.to_dict() == {
        ("relu", 1): "lowest", ("relu", 3): "", ("tanh", 1): "highest", ("tanh", 3): "",
    }  # fmt: skip
    numbers = rows.reset_index()
    assert numbers.shown.all()
    panel = fig_speed.draw(numbers).axes[0]
    for edge, network, side in (("lowest", ("relu", 1), -1), ("highest", ("tanh", 1), 1)):
        marker = fig_speed.TIPS[edge]["marker"]
        look = MarkerStyle(marker)
        heights = look.get_path().transformed(look.get_transform()).vertices[:, 1]
        assert np.sign(heights[np.abs(heights).argmax()]) == side  # of the point
        drawn = [line.get_xydata() for line in panel.lines if line.get_marker() == marker]
        points = np.concatenate(drawn)
        assert points == pytest.approx(rows.loc[[network], ["kappa", "epochs"]].to_numpy())
    only = fig_speed.table([measured(tmp_path, learning_rates=[0.25], thresholds=[100.0])])
    assert set(only.at_edge) == {"only"}  # of one rate nothing is at an edge
    markers = {line.get_marker() for line in fig_speed.draw(only).axes[0].lines}
    assert not markers & {tip["marker"] for tip in fig_speed.TIPS.values()}


def test_correlations_are_given_size_and_activation():
    size = np.stack([np.repeat([1, 2, 3, 6, 10], 5), np.tile([8, 16, 32, 64, 128], 5)], axis=1)
    names = (np.arange(25) % 3)[:, None] == np.arange(3)
    x = RNG.standard_normal(25)
    y = x + RNG.standard_normal(25) + size @ [0.2, 0.01] + names @ [0, 3, 1]
    y[:4] = np.inf  # those that never arrive
    coefficients = fig_predictors.correlations(x, y, size, names)
    ranks = [stats.rankdata(v) for v in (x, y, *size.T)]
    assert coefficients["rho"] == pytest.approx(stats.spearmanr(ranks[0], ranks[1]).statistic)
    for name, columns in (("given_size", ranks[2:]), ("given_activation", names[:, 1:].T)):
        design = np.stack([np.ones(25), *columns], axis=1)
        rest = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in ranks[:2]]
        assert coefficients[name] == pytest.approx(np.corrcoef(*rest)[0, 1])
    for column in size.T:
        of_itself = fig_predictors.correlations(column, y, size, None)
        assert np.isnan(of_itself["given_size"]) and np.isfinite(of_itself["rho"])
        assert np.isnan(of_itself["given_activation"])
    few = fig_predictors.correlations(x[:4], y[:4], size[:4], None)
    assert np.isnan(list(few.values())).all()
    assert np.isnan(list(fig_predictors.correlations(np.ones(25), y, size, None).values())).all()


def planted(rng: np.random.Generator, cases: int) -> pd.DataFrame:
    """Networks whose epochs are those of their activation, but for a small part of label_rate.
    kappa: of the activation and noise; largest_share: noise."""
    rows = []
    for case, activation, width, depth in product(
        range(cases), ("relu", "linear"), (8, 16, 32), (1, 2, 3, 6, 10)
    ):
        signal, noise, other = rng.standard_normal(3)
        second = activation == "linear"
        rows.append({
            "dataset": f"mine{case}", "loss": "square", "threshold": 0.1, "activation": activation,
            "width": width, "depth": depth, "epochs": np.exp(3 * second + signal),
            "n": 48, "seeds": 5,
            **dict.fromkeys(fig_speed.MEASURES, 1.0),
            "label_rate": signal + 0.1 * noise, "kappa": np.exp(3 * second + other),
            "largest_share": noise,
        })  # fmt: skip
    return pd.DataFrame(rows)


def test_a_planted_effect_is_decided_and_a_planted_label_is_not_taken_for_kappa():
    numbers = fig_predictors.table(planted(np.random.default_rng(5), cases=3))
    cases = numbers[numbers.shown].set_index(["group", "measure"]).sort_index()
    everywhere = cases.groupby(["group", "measure"])[
        [f"{name}_decided" for name in fig_predictors.CORRELATIONS]
    ].mean()
    rho, size, activation = (everywhere[f"{name}_decided"] for name in fig_predictors.CORRELATIONS)
    assert rho["all", "activation"] == size["all", "activation"] == 1
    assert rho["all", "kappa"] == size["all", "kappa"] == 1  # as the label it goes with
    assert activation["all", "kappa"] == 0  # and nothing beyond it
    assert rho["relu", "kappa"] == rho["linear", "kappa"] == 0
    assert activation["all", "label_rate"] == size["relu", "label_rate"] == 1
    assert rho["all", "largest_share"] == size["relu", "largest_share"] == 0
    for name in ("rho", "given_size", "given_activation"):  # the activation is none within a group
        assert cases.loc[("relu", "activation"), name].isna().all()
    assert cases.loc[("relu", "kappa"), "given_activation"].isna().all()
    for measure in ("width", "depth"):  # nothing beyond themselves
        assert cases.loc[("relu", measure), "given_size"].isna().all()


def test_the_family_of_the_correction_is_all_that_a_column_of_panels_shows():
    """Step by step, as Benjamini and Hochberg write it."""
    few = planted(np.random.default_rng(6), cases=1)
    lower = few.assign(threshold=0.01, epochs=few.epochs.where(few.width == 8))
    numbers = fig_predictors.table(pd.concat([few, lower], ignore_index=True))
    others = numbers[numbers.threshold == 0.01]
    assert not others.shown.any() and others.rho_p.notna().any()  # tested, and not in the family
    for name in fig_predictors.CORRELATIONS:
        p = numbers.loc[numbers.shown, f"{name}_p"].dropna().sort_values()
        smallest, expected = 1.0, {}
        for rank in range(len(p), 0, -1):
            smallest = min(smallest, p.iloc[rank - 1] * len(p) / rank)
            expected[p.index[rank - 1]] = smallest
        adjusted = numbers[f"{name}_p_adjusted"].dropna()
        assert adjusted.to_dict() == pytest.approx(expected)
        decided = numbers.index[numbers[f"{name}_decided"]]
        assert set(decided) == {row for row, value in expected.items() if value <= 0.05}


def test_decided_correlations_have_a_coloured_field_and_others_have_not():
    numbers = fig_predictors.table(planted(np.random.default_rng(5), cases=1))
    shown, drawn = numbers[numbers.shown], {True: [], False: []}
    for panel in fig_predictors.draw(numbers).axes:
        fields = {(p.get_x() + 0.48, p.get_y() + 0.46) for p in panel.patches}
        for text in panel.texts:
            if text.get_position()[1] < 1 and text.get_rotation() == 0:
                drawn[tuple(np.round(text.get_position())) in {*map(_rounded, fields)}].append(
                    float(text.get_text().replace("−", "-"))
                )
    for decided, values in drawn.items():
        expected = [
            rho
            for name in fig_predictors.CORRELATIONS
            for rho in shown.loc[shown[f"{name}_decided"] == decided, name].dropna()
        ]
        assert len(expected) > 5
        assert sorted(values) == pytest.approx(sorted(expected), abs=0.006)


def _rounded(place: tuple[float, float]) -> tuple[float, ...]:
    return tuple(np.round(place))


def test_three_activations_have_no_order():
    rows = planted(np.random.default_rng(7), cases=1)
    third = rows[rows.activation == "relu"].assign(activation="tanh")
    numbers = fig_predictors.table(pd.concat([rows, third], ignore_index=True))
    of_all = numbers[numbers.group == "all"].set_index("measure")
    assert np.isnan(of_all.rho["activation"]) and of_all.networks["activation"] == 0
    assert np.isfinite(of_all.given_activation["kappa"])
    fig_predictors.draw(numbers)


def test_the_loss_shown_is_the_lowest_that_half_of_the_group_reaches():
    rows = [
        {"dataset": "mine", "loss": "square", "threshold": threshold, "activation": activation,
         "width": width, "depth": depth, "epochs": depth * width if reached else np.nan,
         "n": 48, "seeds": 5, **{name: float(width) for name in fig_speed.MEASURES}}
        for threshold, reaching in ((0.5, ("relu", "linear")), (0.1, ("relu",)), (0.01, ()))
        for activation in ("relu", "linear") for width in (8, 16, 32) for depth in (1, 2)
        for reached in [activation in reaching and (threshold == 0.5 or width > 8)]
    ]  # fmt: skip
    numbers = fig_predictors.table(pd.DataFrame(rows))
    shown = numbers[numbers.shown].drop_duplicates("group").set_index("group")
    assert shown.threshold.to_dict() == {"all": 0.5, "relu": 0.1, "linear": 0.5}
    assert shown.reached.to_dict() == {"all": 12, "relu": 4, "linear": 6}
    width = numbers[(numbers.group == "relu") & (numbers.measure == "width")].set_index("threshold")
    assert width.rho[0.5] > 0  # slower, the wider; at 0.1 the narrow ones never arrive
    assert width.rho[0.1] < width.rho[0.5]
    fig_predictors.draw(numbers)
