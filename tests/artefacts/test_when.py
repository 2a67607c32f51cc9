"""When ReLU helps: data sets on the map, the test of each layer's change, λ_min at finite width."""

import math
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import fixed_point
from scipy.stats import ttest_ind

from ntkcond.artefacts import claims, fig_depth_steps, fig_lambda_min, fig_when_data
from ntkcond.artefacts.theory import deep_limits, fluctuations
from ntkcond.artefacts.verdicts.claim import FAILS, HOLDS, UNDECIDED, UNTESTED
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.run.errors import UserError
from ntkcond.steps import variant
from workflow import ROOT

RNG = np.random.default_rng
RELU = ACTIVATIONS["relu"]


def run_variant(folder: Path, x: np.ndarray) -> pd.DataFrame:
    source, output = folder / "mine.h5", folder / "mine_variants.h5"
    with h5py.File(source, "w") as file:
        file["x"] = x.astype(np.float32)
    sizes = {"most": 1000, "depths": [1, 2], "width": 256, "seeds": [1, 2], "threads": 1}
    variant.main(Namespace(dataset=source, output=output, record={}, **sizes))
    return fig_when_data.table([output])


def test_data_sets_are_placed_by_the_kappa_of_their_variants(tmp_path):
    rng = RNG(0)
    scales = np.append(np.geomspace(1, 0.1, 30), 1e-4)  # the last direction does not vary
    x = rng.standard_normal((200, 31)) * scales + 1
    numbers = run_variant(tmp_path, x)
    assert set(numbers.directions) == {30}
    assert list(numbers.groupby("size").n.first()) == [3, 9, 18]
    kappas = numbers.set_index(["variant", "size", "depth"])
    shifted = kappas.loc[("as it is", 0.6, 1)]
    assert shifted.mean_cosine > 0.5 > 0.1 > kappas.loc[("whitened", 0.6, 1)].mean_cosine
    some = x[:18].astype(np.float32).astype(np.float64)
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    assert shifted.input_kappa == pytest.approx(np.linalg.cond(some) ** 2, rel=1e-6)
    kernel = infinite_width_ntk(some, MLP(RELU, 1, math.inf))
    assert shifted.kappa == pytest.approx(np.linalg.cond(kernel), rel=1e-8)
    assert shifted.rest_kappa < shifted.kappa
    half = np.eye(18) - 1 / 18
    centred = np.linalg.svd(half @ kernel @ half)[1]
    assert shifted.centred_kappa == pytest.approx(centred[0] / centred[-2], rel=1e-6)
    finite = [
        np.linalg.cond(empirical_ntk(MLP(RELU, 1, 256).initial_gradients(seed, 31)(some)))
        for seed in (1, 2)
    ]
    assert shifted.kappa_at_width == pytest.approx(np.mean(finite), rel=1e-6)


def test_whitened_samples_have_the_identity_as_covariance():
    x = RNG(1).standard_normal((500, 6)) @ RNG(2).standard_normal((6, 6)) + 3
    sets = dict(variant.variants(x))
    np.testing.assert_allclose(np.cov(sets["whitened"].T, bias=True), np.eye(6), atol=1e-10)
    np.testing.assert_allclose(sets["centred"].mean(axis=0), 0, atol=1e-12)


def test_too_few_samples_for_the_map_are_an_error_that_says_so(tmp_path):
    with pytest.raises(UserError, match=r"too few to be placed.*fig_when_data"):
        run_variant(tmp_path, np.eye(3))


@pytest.mark.parametrize("apart", [0.0, 1e-7])
def test_parallel_samples_have_no_kappa_and_no_verdict(tmp_path, apart):
    """Their κ is ∞: rounding would make any number of it, and any verdict."""
    x = RNG(8).standard_normal((300, 40))
    x[1] = 2 * x[0] + apart * x[1]
    numbers = run_variant(tmp_path, x)
    known = numbers[numbers.input_kappa.notna()]
    as_it_is = numbers[numbers.variant == "as it is"]
    assert as_it_is.input_kappa.isna().all()
    assert as_it_is.kappa.isna().all() == (apart == 0)  # ReLU separates what is not quite parallel
    assert (known.input_kappa < 1e11).all()
    rows = claims.table(only=["ours-when-data", "ours-zero-mean-data"], fig_when_data=numbers)
    assert FAILS not in set(rows.overall)
    assert "not drawn" in fig_when_data.draw(numbers).get_suptitle()


def conditioning(kappas: dict[str, np.ndarray], seeds: dict[str, range]) -> pd.DataFrame:
    """kappas: of a data set, (seeds, depths from 1 on)."""
    rows = [
        {"dataset": name, "depth": depth, "seed": seed, "block": 0, "kappa": kappa}
        for name, values in kappas.items()
        for seed, of_seed in zip(seeds[name], values, strict=True)
        for depth, kappa in enumerate(of_seed, start=1)
    ]
    about = {"activation": "relu", "trainable": "all", "bias": 0, "width": 8, "n": 4}
    return pd.DataFrame(rows).assign(**about, verdict="resolved")


def test_a_step_of_depth_is_tested_by_welch():
    values = np.exp(RNG(3).standard_normal((20, 2)) * [0.2, 0.4] + [1, 0.9])
    step = fig_depth_steps.table(conditioning({"a": values}, {"a": range(20)})).iloc[1]
    logs = np.log(values)
    test = ttest_ind(logs[:, 1], logs[:, 0], equal_var=False)
    low, high = test.confidence_interval(0.95)
    assert [step.change_mean, step.change_low, step.change_high] == pytest.approx(
        np.exp([logs[:, 1].mean() - logs[:, 0].mean(), low, high])
    )
    assert 2 * min(step.p_fall, step.p_rise) == pytest.approx(test.pvalue)
    assert step.before == 1 and step.seeds == 20


def test_the_power_is_that_of_the_normal_test():
    """As found from the noncentral distribution, nearly normal here."""
    spread, seeds = 0.2, 200
    values = np.exp(RNG(4).standard_normal((seeds, 2)) * spread)
    step = fig_depth_steps.table(conditioning({"a": values}, {"a": range(seeds)})).iloc[1]
    away = math.log(1.05) / (spread * math.sqrt(2 / seeds)) - 1.645
    expected = 0.5 * (1 + math.erf(away / math.sqrt(2)))
    assert step.power == pytest.approx(expected, abs=0.08)


def test_data_sets_count_together_only_where_they_share_no_initialisation():
    values = np.exp(RNG(5).standard_normal((10, 2)) * 0.1)
    both = {"a": values, "b": values * 5}
    apart = fig_depth_steps.table(conditioning(both, {"a": range(10), "b": range(10, 20)}))
    shared = fig_depth_steps.table(conditioning(both, {"a": range(10), "b": range(9, 19)}))
    assert set(apart.dataset) == {"a", "b", "all"} and set(shared.dataset) == {"a", "b"}
    one, _, whole = (apart[apart.dataset == name].iloc[1] for name in ("a", "b", "all"))
    assert whole.change_mean == pytest.approx(one.change_mean)
    narrower = math.log(whole.change_high / whole.change_low)
    assert narrower < 0.75 * math.log(one.change_high / one.change_low)
    assert fig_depth_steps.draw(apart).axes and fig_depth_steps.draw(shared).axes


def test_one_seed_has_no_interval_and_an_unresolved_depth_no_row():
    table = conditioning({"a": np.array([[3.0, 2.0, 1.0]])}, {"a": range(1)})
    assert fig_depth_steps.table(table).change_mean.isna().all()
    table.loc[table.depth == 2, "verdict"] = "unresolved"
    assert list(fig_depth_steps.table(table).depth) == [1, 3]


def test_lambda_min_is_held_against_that_of_the_same_samples(tmp_path):
    path = tmp_path / "mnist" / "relu.h5"
    path.parent.mkdir()
    rows = [
        (1, width, 8, seed, block, factor * (1 + block))
        for block in (0, 1)
        for width, seed, factor in [(math.inf, -1, 2), (4, 1, 1.0), (4, 2, 0.25), (8, 1, 2)]
    ]
    names = ("depth", "width", "n", "seed", "block", "lambda_min")
    with h5py.File(path, "w") as file:
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            file[name] = values
        for name, word in (("verdict", "resolved"), ("grade", "model")):
            file[name] = [word] * len(rows)
        file.attrs.update(activation="relu", bias=0.0, samples=16)
    numbers = fig_lambda_min.table([path]).set_index("width")
    assert numbers.ratio_mean.to_dict() == pytest.approx({4: 0.25, 8: 1})
    assert numbers.seeds.to_dict() == {4: 2, 8: 1} and set(numbers.blocks) == {2}
    assert fig_lambda_min.draw(numbers.reset_index()).axes
    with h5py.File(path, "a") as file:
        file["verdict"][2] = "unresolved"  # m = 4
    assert list(fig_lambda_min.table([path]).width) == [8]  # the other seeds would flatter it


def test_diagonal_entries_drawn_by_layers_are_those_of_whole_networks():
    x, depth, width = np.eye(1, 3), 3, 16
    whole = np.array([
        empirical_ntk(MLP(RELU, depth, width).initial_gradients(seed, 3)(x)).item()
        for seed in range(3000)
    ]) / (depth + 1)  # fmt: skip
    drawn = fluctuations.diagonal_entries(depth, width, 20_000, RNG(6))
    for level in (0.1, 0.5, 0.9):
        assert np.quantile(drawn, level) == pytest.approx(np.quantile(whole, level), rel=0.08)
    assert drawn.mean() == pytest.approx(1, abs=0.02)  # exactly 1 at every width


def test_the_edge_between_the_phases_is_that_of_another_quadrature():
    """χ₁ = 1 where q* is a fixed point, by scipy's adaptive quadrature."""
    weights = deep_limits.critical(deep_limits.TANH)

    def mean(function: Callable[[float], float]) -> float:
        density = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
        return quad(lambda z: function(z) * density(z), -12, 12, epsabs=1e-12)[0]

    scale = weights / mean(lambda z: math.tanh(z) ** 2)

    def after(q: float) -> float:
        return scale * mean(lambda z: math.tanh(math.sqrt(q) * z) ** 2) + deep_limits.BIAS**2

    q = fixed_point(after, 1.0).item()
    chi = scale * mean(lambda z: math.cosh(math.sqrt(q) * z) ** -4)
    assert chi == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("change", "verdict"), [(-0.2, HOLDS), (0.0, UNDECIDED), (0.2, FAILS)])
def test_whether_kappa_falls_with_every_layer_is_judged_from_many_seeds(change, verdict):
    logs = RNG(7).standard_normal((2, 40, 3)) * 0.1 + change * np.arange(3)
    seeds = {"a": range(40), "b": range(40, 80)}
    steps = fig_depth_steps.table(conditioning(dict(zip(seeds, np.exp(logs), strict=True)), seeds))
    rows = claims.table(only=["ours-every-layer"], fig_depth_steps=steps)
    assert set(rows.overall) == {verdict}
    few = steps.assign(seeds=5)
    untested = claims.table(only=["ours-every-layer"], fig_depth_steps=few).iloc[0]
    assert untested.overall == UNTESTED and "docs/when.md" in untested.measured


def test_the_kept_study_confirms_that_kappa_falls_with_every_layer():
    kept = pd.read_csv(ROOT / "studies/when/fig_depth_steps.csv")
    rows = claims.table(only=["ours-every-layer"], fig_depth_steps=kept)
    assert set(rows.overall) == {HOLDS}


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, HOLDS), (2.0, FAILS)])
def test_the_rule_is_judged_on_data(factor, verdict):
    numbers = pd.DataFrame({
        "dataset": "digits", "width": 512, "input_kappa": [40.0, 4.0], "lowers_above": 10.0,
        "kappa": [40 * factor, 4 / factor], "kappa_at_width": [40 * factor, 4 / factor],
        "zero_mean_kappa": [40 * factor, 4 * factor],
    })  # fmt: skip
    rows = claims.table(only=["ours-when-data", "ours-zero-mean-data"], fig_when_data=numbers)
    assert set(rows.overall) == {verdict}
