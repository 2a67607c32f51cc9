"""Permutation tests of rank correlations, also given other columns: against SciPy, against all
permutations one after the other, and by simulation."""

import sys
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from ntkcond.artefacts import rank_correlation
from ntkcond.artefacts.rank_correlation import PERMUTATIONS, bootstrap_interval
from workflow import ROOT

sys.path.append(str(ROOT / "benchmarks"))
import rank_correlations as simulated

SIMULATIONS = 200
NOISE = 4 * np.sqrt(0.25 / PERMUTATIONS) + 1 / PERMUTATIONS  # of a p, at most


def freedman_lane(x: np.ndarray, y: np.ndarray, columns: np.ndarray) -> tuple[float, float]:
    """As they wrote it, with all n! permutations and least squares for each."""
    a, b = stats.rankdata(x), stats.rankdata(y)
    design = np.column_stack([np.ones(len(a)), *map(stats.rankdata, columns.T)])

    def residuals(values: np.ndarray) -> np.ndarray:
        return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]

    def partial(values: np.ndarray) -> float:
        return float(np.corrcoef(residuals(a), residuals(values))[0, 1])

    rest = residuals(b)
    fit, measured = b - rest, partial(b)
    as_large = [
        abs(partial(fit + rest[list(order)])) >= abs(measured) - 1e-9
        for order in permutations(range(len(a)))
    ]
    return measured, float(np.mean(as_large))


@pytest.mark.parametrize("seed", range(6))
def test_p_is_that_of_all_permutations(seed):
    """With ties, and networks that never arrive."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(4, size=6).astype(float), rng.standard_normal(6)
    y += x
    y[y.argsort()[-2:]] = np.inf
    correlation = rank_correlation.rank_correlation(x, y)
    ranks = stats.rankdata(y)
    exact = stats.permutation_test(
        (ranks,), lambda values: abs(stats.spearmanr(x, values).statistic),
        permutation_type="pairings", alternative="greater", n_resamples=np.inf, vectorized=False,
    )  # fmt: skip
    assert correlation.rho == pytest.approx(stats.spearmanr(x, ranks).statistic)
    assert correlation.p == pytest.approx(exact.pvalue, abs=NOISE)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_partial_p_is_freedmans_and_lanes(seed, columns):
    rng = np.random.default_rng(seed)
    covariates = rng.integers(3, size=(6, columns)).astype(float)
    covariates[:2] = [[0.0], [1.0]]  # never all equal
    x = rng.standard_normal(6) + covariates[:, 0]
    y = x + 2 * covariates[:, -1] + rng.standard_normal(6)
    y[y.argsort()[-2:]] = np.inf
    correlation = rank_correlation.rank_correlation(x, y, covariates)
    assert correlation == pytest.approx(freedman_lane(x, y, covariates), abs=NOISE)
    assert correlation.rho == pytest.approx(freedman_lane(x, y, covariates)[0])


def test_the_same_numbers_give_the_same_p_and_p_is_never_zero():
    x = np.arange(15.0)
    correlation = rank_correlation.rank_correlation(x, x)
    assert correlation == rank_correlation.Correlation(pytest.approx(1), 1 / (1 + PERMUTATIONS))
    y = np.random.default_rng(0).permutation(15)
    first = rank_correlation.rank_correlation(x, y)
    rank_correlation.permutations.cache_clear()
    assert first == rank_correlation.rank_correlation(x, y)
    assert first.p == rank_correlation.rank_correlation(x, -y).p  # two-sided


def test_columns_that_say_the_same_count_once_and_constant_ones_not():
    rng = np.random.default_rng(0)
    x, y, covariate = rng.standard_normal((3, 15))
    once = rank_correlation.rank_correlation(x, y, covariate[:, None])
    many = np.stack([covariate, -covariate, np.exp(covariate), np.ones(15)], axis=1)
    assert rank_correlation.rank_correlation(x, y, many) == pytest.approx(once)
    plain = rank_correlation.rank_correlation(x, y)
    assert rank_correlation.rank_correlation(x, y, np.ones((15, 1))) == pytest.approx(plain)


@pytest.mark.parametrize("covariates", [None, np.arange(10.0)[:, None]])
def test_where_nothing_is_left_to_rank_no_correlation_exists(covariates):
    x = np.ones(10) if covariates is None else np.arange(10.0)
    y = np.random.default_rng(0).standard_normal(10)
    assert np.isnan(rank_correlation.rank_correlation(x, y, covariates)).all()
    assert np.isnan(rank_correlation.rank_correlation(y, x, covariates)).all()


@pytest.mark.parametrize(
    ("draw", "covariates"),
    [(simulated.independent, None), (simulated.independent, simulated.SIZES),
     (simulated.by_size(0), simulated.SIZES),
     (simulated.by_activation(0, 1, arrives=True), simulated.BOTH),
     (simulated.by_activation(0, 3, arrives=True), simulated.BOTH),
     (simulated.by_activation(0, 1, arrives=False), simulated.BOTH)],
)  # fmt: skip
def test_of_a_planted_null_one_in_twenty_is_decided(draw, covariates):
    """The bootstrap of partial correlations decided 1 in 300 of the third."""
    decided, _ = simulated.decided(draw, covariates, SIMULATIONS, 1)
    low, high = stats.binom.interval(0.9999, SIMULATIONS, 0.05)
    assert low <= decided * SIMULATIONS / 100 <= high


@pytest.mark.parametrize(
    ("draw", "covariates", "least"),
    [(simulated.by_size(0.5), simulated.SIZES, 40), (simulated.by_size(2), simulated.SIZES, 93),
     (simulated.by_activation(1, 1, arrives=True), simulated.BOTH, 93),
     (simulated.by_activation(1, 1, arrives=False), simulated.BOTH, 65)],
)  # fmt: skip
def test_a_planted_effect_is_found(draw, covariates, least):
    decided, _ = simulated.decided(draw, covariates, SIMULATIONS, 1)
    assert decided >= least


def test_few_of_those_decided_in_families_are_false():
    """Of tests that depend on each other."""
    false, power = simulated.false_among_decided(8)
    assert false <= 5 and power >= 40


def test_the_interval_is_scipys():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(25)
    y = x + rng.standard_normal(25)
    y[y.argsort()[-4:]] = np.inf
    expected = stats.bootstrap(
        [stats.rankdata(v) for v in (x, y)], lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True, vectorized=False, method="percentile", n_resamples=1000,
        rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert bootstrap_interval(x, y) == pytest.approx(tuple(expected), abs=0.08)
    assert np.isnan(bootstrap_interval(np.ones(25), y)).all()


def test_the_interval_contains_the_true_correlation():
    assert 91 <= simulated.coverage(0.6, 15, SIMULATIONS) <= 99


def test_what_was_not_tested_is_not_in_the_family():
    p = np.array([0.01, np.nan, 0.03, 0.02])
    assert rank_correlation.adjusted(p) == pytest.approx([0.03, np.nan, 0.03, 0.03], nan_ok=True)
    assert np.isnan(rank_correlation.adjusted(np.full(2, np.nan))).all()
