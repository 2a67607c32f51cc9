"""The descent step and its figure: κ with bound and verdict as everywhere, and targets of two signs
whatever the labels."""

import h5py
import numpy as np
import pandas as pd
import pytest

from ntkcond.artefacts import fig_descent
from ntkcond.artefacts.claims import optimisation
from ntkcond.ntk.measure import measure
from ntkcond.run.errors import UserError
from ntkcond.steps import descent
from small_descents import ALTERNATING, SEEDS, WIDTH, N, descend, gaussian
from small_networks import mlp


def repeated(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[7] = x[3]
    return x


def nearly_repeated(x: np.ndarray) -> np.ndarray:
    """Sample 7 differs from sample 3 in the last digit of one feature."""
    x = repeated(x)
    x[7, 0] = np.nextafter(x[3, 0], np.float32(9))
    return x


def words_in(panel) -> str:
    return "\n".join(text.get_text() for text in panel.texts)


def dashed(panel) -> list:
    return [line for line in panel.lines if line.get_linestyle() == "--" and len(line.get_xdata())]


def check_that_it_misleads_nowhere(table: pd.DataFrame) -> None:
    numbers = table.select_dtypes("number")
    assert not numbers.isna().any().any()
    assert not (numbers.drop(columns="log_rate_std") < 0).any().any()


@pytest.mark.parametrize("change", [lambda x: x, repeated, nearly_repeated])
def test_kappa_and_its_verdict_are_those_of_every_other_kernel(
    tmp_path, change, device, monkeypatch
):
    monkeypatch.setattr(descent, "resolve_device", lambda _: device)
    x = change(gaussian())
    path = descend(tmp_path, x, ALTERNATING, depths=[1, 6], steps=2, rules=["own"])
    with h5py.File(path) as file:
        names = ("kappa", "kappa_lower", "lambda_max", "lambda_min")
        columns = {name: file[name][:] for name in names}
        verdicts, error = file["verdict"].asstr()[:], file["lambda_min_error"][:]
    for i, depth in enumerate((1, 6)):
        expected = list(measure(x, mlp("relu", depth, WIDTH), [N], 1, SEEDS, device))
        assert [row["verdict"] for row in expected] == list(verdicts[i])
        for name, values in columns.items():
            assert values[i].tolist() == [row[name] for row in expected], name
    lost = verdicts != "resolved"
    assert (abs(columns["lambda_min"][lost]) <= error[lost]).all()
    assert (columns["lambda_min"][~lost] > error[~lost]).all()


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [(repeated, "singular", r"no bound at $L$ = 1, 2, 6: $\kappa = \infty$"),
     (nearly_repeated, "unresolved", "lost in rounding")],
)  # fmt: skip
def test_where_kappa_is_not_known_there_is_no_bound(tmp_path, change, verdict, words):
    """Of a repeated sample it is ∞; of a λ_min lost in rounding there is a lower bound of it."""
    path = descend(tmp_path, change(gaussian()), ALTERNATING)
    table = fig_descent.table([path])
    assert (table.verdict == verdict).all()
    with h5py.File(path) as file:
        lower = np.exp(np.log(file["kappa_lower"][:]).mean(axis=1))
    curves = table[table.rule == "own"].drop_duplicates("depth")
    assert curves.kappa.to_numpy() == pytest.approx(lower)
    assert np.isposinf(table.kappa).all() == (verdict == "singular")
    assert (table.bound_rate == 1).all() and (table.bound == 1).all()
    check_that_it_misleads_nowhere(table)
    figure = fig_descent.draw(table)
    for panel in figure.axes:
        assert not dashed(panel)
        assert words in words_in(panel)
    assert "bound" not in [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("first", "second", "worst"),
    [
        ("resolved", "unresolved", "unresolved"),
        ("singular", "resolved", "singular"),
        ("unresolved", "singular", "singular"),
    ],
)
def test_a_curve_has_the_worst_verdict_of_its_seeds(tmp_path, monkeypatch, first, second, worst):
    monkeypatch.setattr(fig_descent, "INFORMS", 1)
    path = descend(tmp_path, gaussian(), ALTERNATING)
    kappas = {"resolved": 100.0, "unresolved": 1e13, "singular": np.inf}
    with h5py.File(path, "r+") as file:
        file["verdict"][1] = [first, second]
        file["kappa"][1] = [kappas[first], kappas[second]]
    table = fig_descent.table([path])
    curve, others = table[table.depth == 2], table[table.depth != 2]
    assert (curve.verdict == worst).all()
    expected = np.inf if worst == "singular" else np.sqrt(100 * 1e13)
    assert curve.kappa.to_numpy() == pytest.approx(expected)
    assert (curve.bound_rate == 1).all() and (curve.bound == 1).all()
    assert (others.verdict == "resolved").all()
    assert (others.bound_rate < 1).all()
    for panel in fig_descent.draw(table).axes:
        assert len(dashed(panel)) == 2
        assert words_in(panel).startswith("no bound at $L$ = 2: ")


def test_where_every_kappa_is_resolved_the_bound_is_that_of_kappa(tmp_path):
    table = fig_descent.table([descend(tmp_path, gaussian(), ALTERNATING, seeds=[1])])
    assert (table.verdict == "resolved").all()
    rows = table[table.rule == "own"]
    assert rows.bound_rate.to_numpy() == pytest.approx((1 - 1 / rows.kappa).to_numpy())
    assert rows.bound.to_numpy() == pytest.approx((rows.bound_rate**rows.step).to_numpy())
    table["bound"] = table.bound.where(table.depth != 2, 1 - table.step * 1e-4)
    table.loc[(table.depth != 2) & (table.step > 0), "bound"] = 0.5
    for panel in fig_descent.draw(table).axes:
        assert len(dashed(panel)) == 2
        assert words_in(panel) == "bound at $L$ = 2: above 0.9 to the end"


@pytest.mark.parametrize(
    ("labels", "expected"), [([0, 1, 1], [-1, 1, 1]), ([0, 0, 7], [-1, -1, 1])]
)
def test_labels_of_which_most_are_the_largest_are_told_apart(tmp_path, labels, expected):
    x = gaussian()
    path = descend(tmp_path, x, np.tile(labels, N // 3))
    with h5py.File(path) as file:
        start = file["residual"][0, 0, 0, 0]
    weights = mlp("relu", 1, WIDTH).weights(SEEDS[0], 5)
    outputs = np.sqrt(2 / WIDTH) * np.maximum(x @ weights[0].T, 0) @ weights[1][0]
    assert start == pytest.approx(np.linalg.norm(outputs - np.tile(expected, N // 3)))


def test_labels_of_one_class_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"mine: .* label 3: .* Raise the block .*fig_descent"):
        descend(tmp_path, gaussian(), np.full(N, 3))


def test_samples_without_a_gradient_are_left_as_they_are(tmp_path):
    path = descend(tmp_path, 0 * gaussian(), ALTERNATING)
    with h5py.File(path) as file:
        assert (file["learning_rate"][:] == 0).all()
        assert (file["residual"][:] == np.sqrt(N)).all()
    table = fig_descent.table([path])
    assert (table.verdict == "singular").all()
    assert (table.measured_rate == 1).all()
    check_that_it_misleads_nowhere(table)


def test_a_kernel_beyond_float64_is_named(tmp_path):
    with pytest.raises(UserError, match=r"depth 6 is beyond the range of float64. Lower"):
        descend(tmp_path, 1e20 * gaussian(), ALTERNATING, activation="relu2")


def test_the_measured_rate_is_that_of_the_steps_above_rounding():
    """A factor of ½ a step; from step 50 on, rounding."""
    falling = np.log(0.5) * np.arange(501.0)
    assert fig_descent._late_rate(falling[:31]) == pytest.approx(np.log(0.5))
    stalled = np.maximum(falling, np.log(1e-15))
    assert fig_descent._late_rate(stalled) == pytest.approx(np.log(0.5))
    at_once = np.array([0.0, *np.full(20, np.log(1e-15))])
    assert fig_descent._late_rate(at_once) == pytest.approx(np.log(1e-15))
    assert optimisation.FLOOR == fig_descent.FLOOR  # where the claims stop too
