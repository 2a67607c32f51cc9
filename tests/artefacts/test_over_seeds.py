"""What seeds confirm and contradict, against SciPy, permutations and simulations."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_ind_from_stats

from ntkcond.artefacts.verdicts.claim import FAILS, HOLDS, UNCONTRADICTED, UNDECIDED
from ntkcond.artefacts.verdicts.over_seeds import above_zero, difference, one_sided, within


def test_one_sided_is_scipys():
    rng = np.random.default_rng(0)
    for seeds in (2, 3, 5, 20):
        values = rng.standard_normal((seeds, 7)) + 0.5
        above, below = one_sided(values, 0.2)
        assert above == pytest.approx(ttest_1samp(values, 0.2, alternative="greater").pvalue)
        assert below == pytest.approx(ttest_1samp(values, 0.2, alternative="less").pvalue)


def test_one_sided_agrees_with_permutations_of_signs():
    """All 2¹² of them: near Student's p, of normal values."""
    rng = np.random.default_rng(1)
    signs = np.array(list(itertools.product((-1, 1), repeat=12)))
    for shift in (0.1, 0.4, 0.8):
        values = rng.standard_normal(12) + shift
        exact = (signs @ values >= values.sum() - 1e-12).mean()
        assert float(one_sided(values)[0]) == pytest.approx(exact, abs=0.02)


def test_values_without_spread_are_exact():
    above, below = one_sided([[1.0, -1.0, 0.0, np.inf, -np.inf]] * 3)
    assert list(above) == [0, 1, 1, 0, 1]
    assert list(below) == [1, 0, 0, 1, 0]


def table(*columns) -> pd.DataFrame:
    return pd.DataFrame(dict(enumerate(columns, start=1)))


UP, WIDE, DOWN = (
    [0.9, 1.0, 1.1, 1.2, 0.8],
    [0.25, 0.1, 0.3, 0.12, -0.17],
    [-1, -1.1, -0.9, -1.2, -1],
)
LOW = [-0.3, -0.1, 0.05, -0.2, -0.15]


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ([UP, UP], HOLDS),
        ([UP, WIDE], UNCONTRADICTED),  # one of five seeds reversed, at one depth
        ([WIDE], UNDECIDED),
        ([UP, DOWN], FAILS),
        ([UP, UP, UP, LOW], UNCONTRADICTED),  # p = 0.03, four times for four depths
        ([UP, LOW], UNDECIDED),  # 0.07: in doubt
        ([LOW], FAILS),
        ([[1.0], [2.0]], UNDECIDED),  # one seed
        ([UP, [-np.inf] * 5], FAILS),
        ([UP, [np.nan] * 5], HOLDS),  # nothing was measured there
    ],
)
def test_what_should_be_above_zero(columns, verdict):
    tested = above_zero(table(*columns))
    assert tested.verdict == verdict
    if columns == [UP, WIDE]:
        p = ttest_1samp(WIDE, 0, alternative="greater").pvalue
        assert p > 0.05 and f"not confirmed at L = 2 (p = {p:.2g})" in tested.words


def test_a_bound_contradicts_nothing():
    assert above_zero(table(UP, DOWN), bounds=[2]).verdict != FAILS
    assert above_zero(table(UP, DOWN), bounds=[1]).verdict == FAILS


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ([[0.01, -0.01, 0.02, 0.0, -0.02]] * 2, HOLDS),
        ([[0.01, -0.01, 0.02, 0.0, -0.02], [0.5, 0.6, 0.55, 0.52, 0.58]], FAILS),
        ([[0.01, -0.01, 0.02, 0.0, -0.02], [0.3, -0.3, 0.25, -0.2, 0.1]], UNCONTRADICTED),
        ([[0.3, -0.3, 0.25, -0.2, 0.1]], UNDECIDED),
        ([[0.4, 0.4]], FAILS),
        ([[0.4]], UNDECIDED),
    ],
)
def test_what_should_be_zero_within_a_margin(columns, verdict):
    assert within(table(*columns), -0.15, 0.15).verdict == verdict


def test_what_is_true_is_contradicted_in_at_most_five_of_a_hundred_cases():
    """At the least favourable means, 0 at each of ten depths; and what is not is confirmed in at
    most five, where all other depths are far above."""
    rng = np.random.default_rng(0)
    outcomes = [above_zero(pd.DataFrame(rng.standard_normal((5, 10)))).verdict for _ in range(1000)]
    assert outcomes.count(FAILS) <= 65
    assert outcomes.count(HOLDS) == 0
    others = np.array([0, *[9] * 9])
    outcomes = [
        above_zero(pd.DataFrame(others + rng.standard_normal((5, 10)))).verdict for _ in range(1000)
    ]
    assert 35 <= outcomes.count(HOLDS) <= 65


def test_differences_of_known_means_are_welchs():
    for means, deviations in (((1.0, 1.5), (0.4, 0.3)), ((2.0, 1.5), (0.1, 0.9))):
        below, above, _ = difference(means, deviations, 5)
        first, second = ((mean, std, 5) for mean, std in zip(means, deviations, strict=True))
        for side, p in (("less", below), ("greater", above)):
            expected = ttest_ind_from_stats(*first, *second, equal_var=False, alternative=side)
            assert p == pytest.approx(expected.pvalue)
    assert difference((1.0, 2.0), (0.0, 0.0), 5)[:2] == (0.0, 1.0)
    assert difference((2.0, 1.0), (0.0, 0.0), 5)[:2] == (1.0, 0.0)
