"""The table of claims: what must hold does, planted falsehoods do not, nothing is lost."""

import math
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from ntkcond.artefacts import claims, fig_activations, fig_infinite_depth, fig_weight_scale
from ntkcond.artefacts.claims import formulas, kernels, optimisation, wide_networks
from ntkcond.artefacts.claims.claim import (
    CONJECTURE,
    CORRECTED,
    FAILS,
    HOLDS,
    OURS,
    UNDECIDED,
    UNTESTED,
    VACUOUS,
    VERDICTS,
    Claim,
    Finding,
    judged,
)

OF_DATA_SETS = [*kernels.CLAIMS, *optimisation.CLAIMS]
SEEDS = (1, 2, 3, 4, 5)
DEPTHS = (0, 1, 2, 3)


def rows_of(kappa, angle, activation: str, dataset: str = "mine") -> tuple[list, list]:
    """Rows of conditioning.csv and angles.csv; kappa, angle: of depth and seed."""
    about = {
        "dataset": dataset, "activation": activation, "width": 8, "trainable": "all", "samples": 40,
    }  # fmt: skip
    conditioning = [
        {
            **about, "depth": depth, "n": 20, "seed": seed, "block": block,
            "kappa": kappa(depth, seed), "kappa_lower": kappa(depth, seed), "verdict": "resolved",
            "nonzero_kappa": kappa(depth, seed), "rank_bound": 20,
            "lambda_max": 1000.0, "lambda_min": 1000.0 / kappa(depth, seed),
        }
        for depth in DEPTHS for seed in SEEDS for block in (0, 1)
    ]  # fmt: skip
    angles = [
        {**about, "depth": depth, "seed": seed, "min_angle_deg": angle(depth, seed)}
        for depth in DEPTHS
        for seed in SEEDS
    ]
    return conditioning, angles


def evidence(relu_kappa=None, relu_angle=None, linear_kappa=None) -> dict[str, pd.DataFrame]:
    """Of a data set on which everything is as the paper says, but for what is given."""

    def noise(seed: int) -> float:
        return 1 + 0.02 * (seed - 3)

    relu = rows_of(
        relu_kappa or (lambda depth, seed: 1000 * 0.3**depth * noise(seed)),
        relu_angle or (lambda depth, seed: (5 + depth) * noise(seed)),
        "relu",
    )
    linear = rows_of(
        linear_kappa or (lambda depth, seed: 1000 * noise(seed)), lambda depth, seed: 5.0, "linear"
    )
    return {
        "conditioning": pd.DataFrame(relu[0] + linear[0]),
        "angles": pd.DataFrame(relu[1] + linear[1]),
    }


def verdicts(found: dict, names: list[str] | None = None) -> dict[str, str]:
    chosen = [c for c in OF_DATA_SETS if names is None or c.id in names]
    table = claims.table(claims=chosen, **found)
    return dict(zip(table.id, table.overall, strict=True))


OF_DATA = [
    "5-separated", "5-separation-grows", "5-linear-angles", "5-better", "5-better-than-gram",
    "5-falls", "5-linear-finite", "5-linear-kappa", "5-smallest", "6-worst-case",
]  # fmt: skip


def test_data_that_is_as_the_paper_says_has_all_its_claims_hold():
    assert verdicts(evidence(), OF_DATA) == dict.fromkeys(OF_DATA, HOLDS)


def opposite(depth: int, seed: int) -> float:
    return 1000 * 2.0**depth * (1 + 0.02 * (seed - 3))


@pytest.mark.parametrize(
    ("planted", "false"),
    [
        (
            {"relu_kappa": opposite},
            {"5-better", "5-better-than-gram", "5-falls", "5-smallest", "6-worst-case"},
        ),
        (
            {"relu_angle": lambda depth, seed: 5 - depth + 0.01 * seed},
            {"5-separated", "5-separation-grows"},
        ),
        ({"linear_kappa": opposite}, {"5-linear-kappa"}),
        (  # one step up, far beyond the seeds' spread
            {"relu_kappa": lambda depth, seed: (800, 300, 100, 150)[depth] + 0.1 * seed},
            {"5-falls"},
        ),
    ],
)
def test_what_is_planted_otherwise_comes_out_as_false(planted, false):
    found = verdicts(evidence(**planted), OF_DATA)
    assert {name for name, verdict in found.items() if verdict == FAILS} == false
    assert set(found.values()) <= {HOLDS, FAILS}


def noisy(slope: float, seeds: tuple = SEEDS, sigma: float = 0.3) -> dict[str, pd.DataFrame]:
    """κ that changes by a factor with each layer from L = 1 on, seeds by e^sigma."""
    rng = np.random.default_rng(0)
    factors = {(depth, seed): np.exp(sigma * rng.standard_normal()) for depth in DEPTHS
               for seed in SEEDS}  # fmt: skip
    found = evidence(
        relu_kappa=lambda depth, seed: (
            (1e4 if depth == 0 else 100 * slope**depth) * factors[depth, seed]
        ),
        relu_angle=lambda depth, seed: (5 + depth * (1 - slope)) * factors[depth, seed] ** 0.1,
    )
    return {name: table[table.seed.isin(seeds)] for name, table in found.items()}


def test_a_multiple_of_the_gram_matrix_has_no_larger_smallest_eigenvalue():
    found = evidence()
    table = found["conditioning"]
    table["lambda_min"] = table.depth + 1.0
    assert verdicts(found, ["5-smallest"]) == {"5-smallest": FAILS}


def test_a_step_within_the_spread_of_the_seeds_is_no_contradiction():
    rng = np.random.default_rng(0)
    factors = {(depth, seed): rng.uniform(0.5, 2) for depth in DEPTHS for seed in SEEDS}
    kappa = {0: 1000, 1: 300, 2: 301, 3: 30}
    found = evidence(relu_kappa=lambda depth, seed: kappa[depth] * factors[depth, seed])
    assert verdicts(found, ["5-falls"]) == {"5-falls": HOLDS}


@pytest.mark.parametrize(("slope", "verdict"), [(1.0, UNDECIDED), (1.1, UNDECIDED), (1.5, FAILS)])
def test_noise_confirms_nothing(slope, verdict):
    """Neither κ that does not change nor one that rises a little under noise counts as falling."""
    assert verdicts(noisy(slope), ["5-falls"]) == {"5-falls": verdict}


def test_two_seeds_are_not_more_lenient_than_five():
    names = ["5-falls", "5-separation-grows"]
    found = noisy(1.1, seeds=(1, 2), sigma=0.01)
    assert verdicts(found, names) == dict.fromkeys(names, FAILS)
    kappa = {0: 1000, 1: 300, 2: 330, 3: 30}  # a step against it, within the spread
    found = evidence(relu_kappa=lambda depth, seed: kappa[depth] * (1 + 0.4 * ((depth + seed) % 2)))
    assert verdicts(found, ["5-falls"]) == {"5-falls": HOLDS}
    table = found["conditioning"]
    found["conditioning"] = table[table.seed.isin((1, 2))]
    assert verdicts(found, ["5-falls"]) == {"5-falls": UNDECIDED}


def test_one_seed_decides_nothing():
    names = ["5-falls", "5-separation-grows"]
    found = verdicts(noisy(0.5, seeds=(1,), sigma=0.01), names)
    assert found == dict.fromkeys(names, UNDECIDED)


def leave_unresolved(found: dict, depths: list[int]) -> None:
    """κ of ReLU networks of these depths."""
    table = found["conditioning"]
    chosen = (table.activation == "relu") & table.depth.isin(depths)
    table.loc[chosen, ["verdict", "kappa_lower"]] = ["unresolved", 1.0]


@pytest.mark.parametrize(("depths", "verdict"), [([3], HOLDS), ([0, 1, 2, 3], UNDECIDED)])
def test_a_depth_with_an_unresolved_kappa_is_left_out_and_named(depths, verdict):
    found = evidence()
    leave_unresolved(found, depths)
    names = ["5-better", "5-better-than-gram", "5-falls"]
    assert verdicts(found, names) == dict.fromkeys(names, verdict)
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id in names], **found)
    expected = ", ".join(map(str, depths))
    assert rows.spread.str.contains(f"κ unresolved at L = {expected}", regex=False).all()


def test_an_unresolved_kappa_hides_no_failure_at_other_depths():
    found = evidence(relu_kappa=lambda depth, seed: (800, 100, 400, 50)[depth] + 0.1 * seed)
    leave_unresolved(found, [3])
    assert verdicts(found, ["5-falls"]) == {"5-falls": FAILS}


def test_a_linear_ntk_that_is_unresolved_may_be_finite():
    found = evidence()
    table = found["conditioning"]
    table.loc[table.activation == "linear", "verdict"] = "unresolved"
    assert verdicts(found, ["5-linear-finite"]) == {"5-linear-finite": UNDECIDED}


@pytest.mark.parametrize(("lower", "verdict"), [(10.0, UNDECIDED), (900.0, HOLDS)])
def test_a_lower_bound_of_the_linear_kappa_confirms_but_refutes_nothing(lower, verdict):
    found = evidence()
    table = found["conditioning"]
    linear = table.activation == "linear"
    table.loc[linear, "verdict"], table.loc[linear, "kappa_lower"] = "unresolved", lower
    names = ["5-better", "6-worst-case"]
    assert verdicts(found, names) == dict.fromkeys(names, verdict)
    table.loc[linear & (table.depth == 1), ["kappa", "kappa_lower"]] = 10.0
    table.loc[linear & (table.depth == 1), "verdict"] = "resolved"
    assert verdicts(found, names) == dict.fromkeys(names, FAILS)


def test_repeated_samples_are_outside_the_claims():
    """κ of their block is ∞ at every depth; that of another block of the same samples is not."""
    found = evidence()
    table = found["conditioning"]
    repeated = (table.block == 1) & (table.activation == "relu")
    table.loc[repeated, ["kappa", "kappa_lower"]] = np.inf
    table.loc[repeated, "verdict"] = "singular"
    names = ["5-better", "5-better-than-gram", "5-falls"]
    assert verdicts(found, names) == dict.fromkeys(names, UNDECIDED)
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id in names], **found)
    assert rows.spread.str.contains("repeats samples").all()


def test_singular_inputs_alone_are_no_repeated_samples():
    found = evidence()
    table = found["conditioning"]
    table.loc[table.depth == 0, ["kappa", "kappa_lower"]] = np.inf
    table.loc[table.depth == 0, "verdict"] = "singular"
    assert verdicts(found, ["5-better-than-gram"]) == {"5-better-than-gram": VACUOUS}
    assert verdicts(found, ["5-falls"]) == {"5-falls": HOLDS}


def test_networks_of_which_one_layer_is_trained_are_not_the_papers():
    found = evidence()
    for table in found.values():
        table["trainable"] = "first"
    assert set(verdicts(found, ["5-better", "5-falls", "5-separated"]).values()) == {UNTESTED}


def descent(rates: dict[int, float], kappas: dict[int, float], seeds: int = 5) -> dict:
    rows = [
        {"dataset": "mine", "activation": "relu", "rule": "own", "depth": depth, "seeds": seeds,
         "kappa": kappas[depth], "measured_rate": rate, "log_rate_std": 1e-4, "step": step,
         "residual": rate**step}
        for depth, rate in rates.items() for step in (0, 10, 100)
    ]  # fmt: skip
    return {"fig_descent": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("rates", "faster", "bounded"),
    [
        ({1: 0.99, 2: 0.98, 3: 0.97}, HOLDS, HOLDS),
        ({1: 0.99, 2: 0.97, 3: 0.98}, FAILS, HOLDS),
        ({1: 0.99, 2: 1.2}, FAILS, FAILS),  # diverges
        ({1: 0.99}, UNTESTED, HOLDS),
        ({1: 0.9999, 2: 0.9}, HOLDS, FAILS),
    ],
)
def test_gradient_descent(rates, faster, bounded):
    found = descent(rates, {1: 100, 2: 50, 3: 30})
    names = ["6-descent", "6-bound"]
    assert verdicts(found, names) == {"6-descent": faster, "6-bound": bounded}


@pytest.mark.parametrize(
    ("last", "seeds", "verdict"),
    [
        (0.97005, 5, HOLDS),  # slower by less than the spread explains
        (0.97005, 2, UNDECIDED),
        (0.972, 5, FAILS),
        (0.96, 2, HOLDS),
        (0.96, 1, UNDECIDED),
    ],
)
def test_the_deepest_network_descends_slower_than_the_one_before(last, seeds, verdict):
    rates = {1: 0.99, 2: 0.98, 3: 0.97, 4: last}
    found = descent(rates, {1: 100, 2: 50, 3: 30, 4: 25}, seeds)
    assert verdicts(found, ["6-descent"]) == {"6-descent": verdict}


def evolution(**ends: tuple[float, float, float]) -> dict:
    """fig_evolution of one depth at two widths: mean and interval at the end."""
    rows = [
        {"dataset": "digits", "activation": "relu", "depth": 3, "width": width, "seeds": 5,
         "own_width": width == 512, "step": step}
        for width in (64, 512) for step in (0, 500)
    ]  # fmt: skip
    table = pd.DataFrame(rows).assign(change_mean=0.1, linearised_error_mean=0.1)
    for name in ("change_power", "linearised_error_power", "kappa_ratio"):
        values = ends.get(name, (1.0, 1.0, 1.0))
        for end, value in zip(("mean", "low", "high"), values, strict=True):
            table[f"{name}_{end}"] = np.where(table.step == 500, value, np.nan)
    return {"fig_evolution": table}


@pytest.mark.parametrize(
    ("power", "verdict"),
    [((-0.5, -0.7, -0.3), HOLDS), ((-0.1, -0.3, 0.1), UNDECIDED), ((0.3, 0.1, 0.5), FAILS),
     ((-0.5, math.nan, math.nan), UNDECIDED)],
)  # fmt: skip
def test_wider_networks_are_closer_to_their_kernel_at_the_start(power, verdict):
    found = evolution(change_power=power, linearised_error_power=power)
    names = ["ours-6-change", "ours-6-prediction"]
    assert verdicts(found, names) == dict.fromkeys(names, verdict)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [((1.1, 0.9, 1.2), HOLDS), ((1.1, 0.9, 1.3), UNDECIDED), ((1.4, 1.2, 1.6), FAILS),
     ((1.1, math.nan, math.nan), UNDECIDED)],
)  # fmt: skip
def test_kappa_after_training_is_held_against_that_at_the_start(ratio, verdict):
    assert verdicts(evolution(kappa_ratio=ratio), ["ours-6-kappa"]) == {"ours-6-kappa": verdict}


@pytest.mark.parametrize(
    ("ends", "verdict"), [((0.2, 0.9), HOLDS), ((-0.1, 0.8), UNDECIDED), ((-0.9, -0.2), FAILS)]
)
def test_speed_follows_kappa_as_its_interval_says(ends, verdict):
    row = {
        "dataset": "digits", "loss": "square", "threshold": 0.1, "group": "all", "networks": 30,
        "measure": "kappa", "shown": True, "rho": sum(ends) / 2, "rho_low": ends[0],
        "rho_high": ends[1], "given_size": np.nan, "given_size_low": np.nan,
        "given_size_high": np.nan,
    }  # fmt: skip
    others = [row | {"measure": "depth", "rho_low": -1}, row | {"shown": False, "rho_high": -0.5}]
    found = {"fig_predictors": pd.DataFrame([row, *others])}
    assert verdicts(found, ["ours-6-speed"]) == {"ours-6-speed": verdict}


def test_the_bound_is_judged_where_kappa_is_resolved_and_the_order_of_descents_everywhere():
    found = descent({1: 0.99, 2: 0.98, 3: 0.999}, {1: 100, 2: 50, 3: 1})
    table = found["fig_descent"]
    names = ["6-descent", "6-bound"]
    assert verdicts(found, names) == dict.fromkeys(names, FAILS)
    table["verdict"] = np.where(table.depth == 3, "unresolved", "resolved")
    assert verdicts(found, names) == {"6-descent": FAILS, "6-bound": UNDECIDED}
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id == "6-bound"], **found)
    assert list(rows.verdict) == [HOLDS, HOLDS, UNDECIDED]
    assert rows.spread.iloc[-1] == "κ unresolved: no bound"
    table["verdict"] = "singular"
    assert verdicts(found, names) == {"6-descent": FAILS, "6-bound": VACUOUS}


def test_a_residual_that_has_reached_rounding_breaks_no_bound():
    found = descent({1: 0.5}, {1: 2})
    table = found["fig_descent"]
    table.loc[table.step == 100, "residual"] = 1e-15  # 0.5¹⁰⁰ is 8e-31
    names = ["6-bound", "ours-6-residual"]
    assert verdicts(found, names) == dict.fromkeys(names, HOLDS)
    table.loc[table.step == 10, "residual"] = 0.1
    assert verdicts(found, names) == dict.fromkeys(names, FAILS)


def test_the_bound_on_the_loss_has_a_square_of_slack():
    found = descent({1: 0.9949}, {1: 100})  # (1 − 1/κ)^½: the bound on the loss just holds
    names = ["6-bound", "ours-6-residual"]
    assert verdicts(found, names) == {"6-bound": HOLDS, "ours-6-residual": FAILS}


@pytest.mark.parametrize(
    ("epochs", "verdict"),
    [
        ([20, 15, 10, 5], HOLDS),
        ([np.nan, np.nan, 10, 5], HOLDS),  # never in time: later than any, and no contradiction
        ([20, 15, 15, 10], HOLDS),
        ([20, 20, 20, 20], FAILS),  # a tie at all depths
        ([5, 10, 15, 20], FAILS),
        ([20, 15, 19, 5], FAILS),
        ([20, 10, 12, 13], FAILS),  # a slow rise after a fall
        ([20, 15, 10, np.nan], FAILS),
        ([np.nan] * 4, UNTESTED),
    ],
)
def test_epochs_to_a_loss(epochs, verdict):
    table = pd.DataFrame(
        {"dataset": "mine", "depth": [1, 2, 3, 4], "rate_for": "depth", "threshold": 0.1,
         "epochs_mean": epochs, "epochs_std": 0.5, "seeds": 2, "epochs_trained": 40}
    )  # fmt: skip
    figure = pd.DataFrame({"dataset": ["mine"], "activation": ["relu"]})
    found = {"table_epochs": table, "fig3": figure}
    assert verdicts(found, ["6-training"]) == {"6-training": verdict}
    found["fig3"] = figure.assign(activation="tanh")
    assert verdicts(found, ["6-training"]) == {"6-training": UNTESTED}


def accuracies(values: list, depths: list, stated=np.nan, samples: int = 99) -> dict:
    return {"table_generalization": pd.DataFrame({
        "dataset": "mine", "depth": depths, "test_accuracy_percent_mean": values, "seeds": 3,
        "test_accuracy_percent_std": 0.1, "paper_test_accuracy_percent": stated,
        "samples": samples, "test_samples": 10_000, "epochs": 500,
    })}  # fmt: skip


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        ([95, 98, 97], HOLDS),
        ([95, 96, 98], FAILS),
        ([98, 97, 95], FAILS),
        ([97, 98, 97.9], UNDECIDED),
        ([97.9, 98, 97], UNDECIDED),
        ([97, 97.9, 98], UNDECIDED),
    ],
)
def test_accuracies_against_depth(accuracy, verdict):
    assert verdicts(accuracies(accuracy, [1, 6, 12]), ["6-tradeoff"]) == {"6-tradeoff": verdict}


TABLE_1 = [95.98, 97.43, 97.57, 97.52, 97.39, 97.19]


@pytest.mark.parametrize(
    ("found", "stated", "verdict"),
    [
        ([97.5] * 4, TABLE_1[1:5], UNDECIDED),  # a flat line is near each value and shows no best
        ([96, 97.45, 99, 97.5], [96, 97.4, 99, 97.5], HOLDS),
        ([96, 97.45, 98, 97.5], [96, 97.4, 99, 97.5], FAILS),
    ],
)
def test_table_1(found, stated, verdict):
    table = accuracies(found, [1, 3, 6, 8], stated, 60_000)
    assert verdicts(table, ["6-table-1"]) == {"6-table-1": verdict}
    assert verdicts(accuracies(found, [1, 3, 6, 8], stated), ["6-table-1"]) == {
        "6-table-1": UNTESTED
    }


def of_activations(**kappas: list) -> dict[str, pd.DataFrame]:
    rows = [
        {"dataset": "mine", "activation": name, "depth": depth, "width": width, "n": 20,
         "kappa_median": value, "unresolved": 0, "kappa_lower_bound": np.nan}
        for name, values in kappas.items()
        for depth, value in enumerate(values, start=1)
        for width in ((np.inf,) if name == "linear" else (64, np.inf))
    ]  # fmt: skip
    return {"fig_activations_ntk": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("tanh", "sigmoid", "gram", "verdict"),
    [
        ([50, 20], [200, 400], 100, (HOLDS, HOLDS, "not support")),
        ([20, 50], [400, 200], 100, (FAILS, FAILS, "not support")),
        ([200, 20], [50, 400], 100, (CORRECTED, CORRECTED, "not support")),
        ([50, 20], [40, 30], 100, (HOLDS, FAILS, "support")),
        ([50, 20], [40, 30], np.inf, (VACUOUS, FAILS, "could not have failed")),
    ],
)
def test_other_activations(tanh, sigmoid, gram, verdict):
    found = of_activations(linear=[gram] * 2, tanh=tanh, sigmoid=sigmoid)
    names = ["F-tanh", "F-sigmoid", "7-others"]
    chosen = [claim for claim in OF_DATA_SETS if claim.id in names]
    rows = claims.table(claims=chosen, **found).drop_duplicates("id").set_index("id")
    assert (*rows.overall[names[:2]], rows.overall["7-others"]) == (*verdict[:2], CONJECTURE)
    assert verdict[2] in rows.support["7-others"]
    assert ("not" in verdict[2]) == ("not" in rows.support["7-others"])
    table = found["fig_activations_ntk"]
    without = {"fig_activations_ntk": table[table.activation != "linear"]}
    assert set(verdicts(without, names).values()) == {UNTESTED}


def test_lower_bounds_of_kappa_are_no_values():
    found = of_activations(linear=[100] * 3, tanh=[50, 20, 30], sigmoid=[200, 400, 90])
    names = ["F-tanh", "F-sigmoid"]
    assert verdicts(found, names) == dict.fromkeys(names, FAILS)
    table = found["fig_activations_ntk"]
    last = (table.depth == 3) & (table.activation != "linear")
    table.loc[last, ["unresolved", "kappa_lower_bound"]] = [1, 30]
    assert verdicts(found, [*names, "7-others"]) == {
        **dict.fromkeys(names, HOLDS), "7-others": CONJECTURE
    }  # fmt: skip
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id in ("F-tanh", "7-others")], **found)
    assert set(rows.verdict[rows.id == "7-others"]) == {UNDECIDED}
    assert rows.spread[rows.id == "F-tanh"].str.contains("unresolved at L = 3").all()


def test_sigmoid_cannot_raise_an_infinite_kappa():
    found = of_activations(linear=[np.inf] * 3, tanh=[50, 20, 10], sigmoid=[50, 400, 900])
    names = ["F-tanh", "F-sigmoid"]
    assert verdicts(found, names) == {"F-tanh": VACUOUS, "F-sigmoid": UNDECIDED}


def test_a_lower_bound_of_kappa_0_refutes_no_activation():
    found = of_activations(linear=[10] * 3, tanh=[50, 20, 15], sigmoid=[5, 7, 9])
    table = found["fig_activations_ntk"]
    table.loc[table.activation == "linear", "unresolved"] = 1
    names = ["F-tanh", "F-sigmoid"]
    assert verdicts(found, names) == dict.fromkeys(names, UNDECIDED)
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id == "7-others"], **found)
    assert set(rows.verdict) == {UNDECIDED}


def of_architectures(relu: list[float], linear: list[float], name: str) -> dict:
    """Depths 0, 1, …; L = 0 is the linear model in both."""
    rows = [
        {"dataset": "mine", "architecture": name, "activation": activation, "depth": depth,
         "width": 8, "n": 20, "kappa_median": kappa, "unresolved": 0}
        for activation, kappas in (("relu", relu), ("linear", linear))
        for depth, kappa in enumerate(kappas)
    ]  # fmt: skip
    return {"fig_architectures": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("relu", "better", "falls", "others"),
    [
        ([90, 50, 20, 10], HOLDS, HOLDS, "do not support"),
        ([90, 50, 20, 60], HOLDS, FAILS, "support it"),
        ([90, 500, 20, 10], FAILS, HOLDS, "support it"),
    ],
)
def test_networks_beside_the_papers(relu, better, falls, others):
    found = of_architectures(relu, [90, 100, 110, 120], "biases")
    names = ["ours-networks-better", "ours-networks-falls", "newest-2.1"]
    assert verdicts(found, names) == dict(zip(names, (better, falls, CONJECTURE), strict=True))
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id == "newest-2.1"], **found)
    assert others in rows.support.item()
    found = of_architectures(relu, [90, 100, 110, 120], "residual")  # of which the remark is not
    assert verdicts(found, names)["newest-2.1"] == UNTESTED


def test_an_unresolved_kappa_of_another_network_decides_nothing():
    found = of_architectures([90, 500, 20, 10], [90, 100, 110, 120], "normalised")
    table = found["fig_architectures"]
    table.loc[(table.activation == "relu") & (table.depth == 1), "unresolved"] = 1
    names = ["ours-networks-better", "ours-networks-falls"]
    assert verdicts(found, names) == dict.fromkeys(names, HOLDS)
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id == names[0]], **found)
    assert rows.spread.str.contains("unresolved at L = 1").all()


@pytest.mark.parametrize(
    ("kappas", "verdict"),
    [
        ([300, 150, 103], HOLDS),
        ([300, 150, 250], FAILS),
        ([90], UNTESTED),
        ([np.inf, 150], UNTESTED),
    ],
)
def test_finite_widths(kappas, verdict):
    widths = [64 * 2**i for i in range(len(kappas))]
    rows = pd.DataFrame(
        {"dataset": "mine", "activation": "relu", "depth": 1, "n": 20, "width": [*widths, np.inf],
         "unresolved": 0, "kappa_median": [*kappas, 100.0],
         "min_angle_deg_mean": [*(k / 10 for k in kappas), 10.0]}
    )  # fmt: skip
    assert verdicts({"fig_width": rows}, ["7-finite-width"]) == {"7-finite-width": verdict}


@pytest.mark.parametrize(
    ("kappas", "angles", "support"),
    [
        ([300, 100, 50], [5, 10, 15], HOLDS),
        ([300, 100, 150], [5, 10, 15], FAILS),
        ([300, 100, 50], [5, 10, 9], FAILS),
        ([300, 100, None], [5, 10, 15], HOLDS),  # None: unresolved
        ([300, 100, None], [5, 10, 9], FAILS),
        ([100, 300, None], [5, 10, 15], FAILS),
        ([300, None, None], [5, 10, 15], UNDECIDED),
    ],
)
def test_the_main_results_at_large_width(kappas, angles, support):
    """At the largest finite width: the narrow one and the infinite one are as they should be."""
    good, rows = ([300, 100, 50], [5, 10, 15]), []
    for width, (values, degrees) in ((64, good), (4096, (kappas, angles)), (np.inf, good)):
        rows += [
            {"dataset": "mine", "activation": "relu", "depth": depth, "n": 20, "width": width,
             "unresolved": int(value is None), "kappa_median": value or np.nan,
             "min_angle_deg_mean": angle}
            for depth, value, angle in zip((1, 3, 10), values, degrees, strict=True)
        ]  # fmt: skip
    chosen = [claim for claim in OF_DATA_SETS if claim.id == "7-large-width"]
    table = claims.table(claims=chosen, fig_width=pd.DataFrame(rows))
    assert set(table.overall) == {CONJECTURE}
    assert set(table.support) == {claims.SUPPORT[support]}


@pytest.mark.parametrize(
    ("kappa", "verdict"),
    [(500.0, HOLDS), (2000.0, FAILS), ("unresolved", UNDECIDED), ("κ₀ = ∞", VACUOUS)],
)
def test_the_first_layer_on_data(kappa, verdict):
    found = evidence()
    resolved = "resolved"
    if kappa == "unresolved":
        kappa, resolved = 500.0, "unresolved"
    elif kappa == "κ₀ = ∞":
        kappa = 500.0
        found["conditioning"].loc[found["conditioning"].depth == 0, "kappa"] = np.inf
    found["first_layer"] = pd.DataFrame(
        {"dataset": "mine", "activation": "relu", "width": 8.0, "n": 20, "seed": SEEDS, "block": 0,
         "kappa": kappa, "kappa_lower": kappa, "verdict": resolved}
    )  # fmt: skip
    names = ["5.1-data", "ours-5.1-width"]
    assert verdicts(found, names) == {names[0]: UNTESTED, names[1]: verdict}
    found["first_layer"]["width"] = np.inf  # of which alone the theorem speaks
    assert verdicts(found, names) == {names[0]: verdict, names[1]: UNTESTED}


@pytest.mark.parametrize(("kappa", "verdict"), [(500.0, UNDECIDED), (5.0, HOLDS)])
def test_a_lower_bound_of_kappa_0_refutes_nothing(kappa, verdict):
    found = evidence()
    gram = found["conditioning"].depth == 0
    found["conditioning"].loc[gram, "verdict"] = "unresolved"
    found["conditioning"].loc[gram, "kappa_lower"] = 10.0
    found["first_layer"] = pd.DataFrame(
        {"dataset": "mine", "activation": "relu", "width": np.inf, "n": 20, "seed": SEEDS,
         "block": 0, "kappa": kappa, "kappa_lower": kappa, "verdict": "resolved"}
    )  # fmt: skip
    assert verdicts(found, ["5.1-data"]) == {"5.1-data": verdict}


def test_a_singular_linear_ntk_is_not_a_finite_one():
    found = evidence()
    table = found["conditioning"]
    linear = table.activation == "linear"
    table.loc[linear, ["kappa", "kappa_lower"]] = np.inf
    table.loc[linear, ["verdict", "rank_bound", "lambda_min"]] = ["singular", 3, -1e-13]
    below = ("5-better", "6-worst-case")  # κ is below ∞ whatever it is
    expected = {
        **dict.fromkeys(OF_DATA, HOLDS), "5-linear-finite": FAILS, **dict.fromkeys(below, VACUOUS)
    }  # fmt: skip
    assert verdicts(found, OF_DATA) == expected
    rows = claims.table(claims=[c for c in OF_DATA_SETS if c.id == "5-linear-finite"], **found)
    assert rows.measured.str.contains("of rank ≤ 3").all()
    assert rows.measured.str.contains("−1e+16", regex=False).all()


def test_without_evidence_nothing_is_claimed():
    found = verdicts({})
    assert set(found.values()) == {UNTESTED}
    table = claims.table(claims=OF_DATA_SETS)
    assert (table.measured != "").all()


def test_odd_data_give_a_table_as_well():
    """κ that is ∞ everywhere, no hidden layer, one seed, one depth, nothing measured."""
    found = evidence(relu_kappa=lambda depth, seed: np.inf, relu_angle=lambda depth, seed: np.nan)
    verdict = verdicts(found, OF_DATA)
    assert verdict["5-falls"] == verdict["5-better"] == FAILS
    assert verdict["5-separated"] == UNTESTED
    assert "nan" not in claims.markdown(claims.table(claims=OF_DATA_SETS, **found))
    for depths, hold in (([1], {"5-better"}), ([0], set()), ([0, 1], set(OF_DATA) - {"5-falls"})):
        some = {name: table[table.depth.isin(depths)] for name, table in evidence().items()}
        found = verdicts(some, OF_DATA)
        assert {name for name in OF_DATA if found[name] == HOLDS} >= hold
        assert FAILS not in found.values()
    alone = {name: table[table.activation == "relu"] for name, table in evidence().items()}
    assert verdicts(alone, ["5-better", "5-falls"]) == {"5-better": UNTESTED, "5-falls": HOLDS}
    one = {name: table[table.seed == 1] for name, table in evidence().items()}
    trends = ("5-falls", "5-separation-grows")
    expected = {**dict.fromkeys(OF_DATA, HOLDS), **dict.fromkeys(trends, UNDECIDED)}
    assert verdicts(one, OF_DATA) == expected


@pytest.fixture(scope="module")
def theory() -> pd.DataFrame:
    """All claims of formulas and limits, and those of figures without data."""
    found = {
        "fig_infinite_depth": fig_infinite_depth.table(),
        "fig_weight_scale": fig_weight_scale.table(fig_weight_scale.DEPTH),
        "fig_activations": fig_activations.table(["relu2", "gelu", "tanh"], [1, 2, 5, 10]),
    }
    return claims.table(**found)


def test_the_verdicts_on_theory(theory):
    """The differences that a reading of the papers found by other means are found, the theorems
    hold."""
    found = theory[theory.overall != UNTESTED].drop_duplicates("id").set_index("id").overall
    slips = {
        "2-gram", "2.2-proof", "3.1-gradient", "3.2-kernel", "4.4-norm", "4.4-proof", "4.5-proof",
        "4.6", "5.1", "5.1-proof", "5.2-normalised", "5.2-proof", "C.1-proof", "newest-3.3",
        "newest-4.2", "newest-4.3", "newest-4.3-data", "newest-4.3-proof", "newest-E.4",
    }  # fmt: skip
    wrong = {"5-generic", "6-faster", "ours-6-constant"}
    believed = {"7-kappa-1", "7-orthogonal", "newest-tradeoff"}
    assert {name for name in found.index if found[name] == CORRECTED} == slips
    assert {name for name in found.index if found[name] == FAILS} == wrong
    assert {name for name in found.index if found[name] == CONJECTURE} == believed
    assert set(found.drop([*slips, *wrong, *believed])) == {HOLDS}
    support = theory.drop_duplicates("id").set_index("id").support
    assert "not support" in support["7-kappa-1"]
    assert "not support" in support["7-orthogonal"]
    assert support["newest-tradeoff"] == "The numbers support it."


def test_each_of_the_numbered_differences_is_a_row(theory):
    assert set(theory.difference.dropna()) == {*range(1, 12), 13}


def test_the_scale_of_the_weights_is_held_against_what_the_paper_says(theory):
    """That similar inputs are separated better at each scale; not that the scales differ."""
    rows = theory[theory.id == "newest-fig-6"]
    assert len(rows) == len(fig_weight_scale.VARIANCES)
    assert set(rows.overall) == {HOLDS}


STATEMENTS = {
    "§2": ["2-gram", "6-constant"], "Remark 2.1": ["newest-2.1"],
    "Thm 2.3": ["3.1-gradient", "3.1-phi", "3.1-embedding"],
    "Cor. 2.4": ["3.2-kernel", "3.2-kappa"],
    "Lemma 3.1": ["4.4-phi", "4.4-norm"], "Fig. 1": ["4-separated", "4-deeper", "4-large"],
    "Thm 3.2": ["newest-3.2"], "Cor. 3.3": ["newest-3.3", "4.5"], "Remark 3.4": ["4.6"],
    "Thm 3.5": ["newest-3.5", "newest-3.5-proof"], "Fig. 2": ["newest-fig-2", "newest-fig-2-limit"],
    "§4": ["5-generic", "2.2"], "Prop. 4.1": ["2.2", "2.2-proof"], "Thm 4.2": ["newest-4.2"],
    "Thm 4.3": ["newest-4.3", "newest-4.3-proof"],
    "Fig. 3": ["5-separated", "5-better", "5-falls", "5-separation-grows"],
    "§5": ["6-bound", "6-worst-case", "6-constant", "6-descent", "newest-tradeoff"],
    "Fig. 4": ["6-training"], "Table 1": ["6-table-1", "6-tradeoff"], "Prop. A.1": ["A.1", "A.2"],
    "Thm A.2": ["A.2"], "Fig. 5": ["4-identity", "A.1"], "Fig. 6": ["newest-fig-6"],
    "Lemma E.4": ["newest-E.4"], "Lemma E.6": ["4.3"], "Thm F.1": ["5.2", "5.2-normalised"],
    "conclusion": ["7-others"],
}  # fmt: skip


def test_every_statement_of_the_newest_version_is_a_row_or_named_in_one():
    sources = {claim.id: claim.source for claim in claims.CLAIMS}
    for place, names in STATEMENTS.items():
        for name in names:
            newest = sources[name].split("newest", 1)[1]
            assert place in newest, (place, name, sources[name])


def test_numbers_that_are_known_by_other_means(theory):
    measured = theory.set_index("id").measured
    assert measured["5.2-proof"] == "0.1913 and 5.909"
    assert measured["4-separated"].iloc[0].startswith("66.78 to")
    assert measured["newest-3.3"] == "0.8649, 0.8651"
    assert measured["newest-4.3"] == "2.334, 6.337, 22.35"
    assert measured["4.5"] == "0.1592"  # 1/2π


def wrong_limit(_: dict) -> Iterator[Finding]:
    """A planted claim: gradients of linear networks would have norm ‖x‖."""
    draws = wide_networks._measured()["linear gradient norm"]
    yield wide_networks._tends("planted", "‖∇f‖/‖x‖", draws, np.ones(1))


def other_expansion(_: dict) -> Iterator[Finding]:
    """Another: cos φ = (1 − L θ/π + o(θ)) cos θ."""
    slopes = formulas._slopes()
    yield Finding("planted", "slope", "1/π", "", "", max(abs(s * np.pi - 1) for s in slopes) < 1e-3)


@pytest.mark.parametrize("test", [wrong_limit, other_expansion])
def test_planted_false_claims_of_theory_come_out_as_false(test):
    planted = Claim("0", "nowhere", "A falsehood.", test)
    assert set(claims.table(claims=[planted]).overall) == {FAILS}


@pytest.mark.parametrize(
    ("rows", "overall"),
    [
        ([HOLDS, CORRECTED, HOLDS], CORRECTED),
        ([HOLDS, VACUOUS], HOLDS),
        ([VACUOUS, VACUOUS], VACUOUS),
        ([CORRECTED, UNDECIDED], UNDECIDED),
        ([UNDECIDED, FAILS, HOLDS], FAILS),
        ([], UNTESTED),
    ],
)
@pytest.mark.parametrize("conjecture", [False, True])
def test_the_worst_row_decides(rows, overall, conjecture):
    """Unless the paper only believes it; what the rows say then stands beside the verdict."""

    def mixed(_: dict) -> Iterator[Finding]:
        for verdict in rows:
            if verdict == CORRECTED:
                yield Finding("somewhere", "x", "1", "1", "", False, True)
            else:
                yield judged("somewhere", "x", "1", "1", "", verdict)

    table = claims.table(claims=[Claim("0", "", "", mixed, conjecture=conjecture)])
    believed = conjecture and rows
    assert set(table.overall) == {CONJECTURE if believed else overall}
    assert set(table.support) == {claims.SUPPORT[overall] if believed else ""}
    text = claims.markdown(table)
    assert f"**{CONJECTURE if believed else overall}** 1." in text
    if believed:
        assert f"**{CONJECTURE}**. {claims.SUPPORT[overall]}" in text


def test_our_own_statements_are_not_counted_as_the_papers(theory):
    found = claims.counts(theory)
    ours = theory[theory.id.str.startswith(OURS)].id.nunique()
    assert ours >= 3
    assert sum(found.values()) == theory.id.nunique() - ours
    assert list(found) == [verdict for verdict in VERDICTS if verdict in found]
    assert f"Of {sum(found.values())} claims of the paper" in claims.markdown(theory)


def test_ids_are_unique_and_every_claim_is_complete():
    ids = [claim.id for claim in claims.CLAIMS]
    assert len(ids) == len(set(ids))
    for claim in claims.CLAIMS:
        assert claim.source
        assert claim.text.endswith(".")


def test_the_page_to_read_has_every_row(theory):
    text = claims.markdown(theory)
    for name in theory.id.unique():
        assert re.search(rf"^## {re.escape(name)}( \[\d+\])?$", text, re.M)
    for row in theory.itertuples():
        assert row.measured in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert columns == {5, 7}  # also where a cell has a | of its own
    page = claims.html(theory)
    assert page.count("<tr") == len(theory) + theory.id.nunique() + 2
