"""Claims about optimisation and generalisation on data, judged from the tables of trained networks.

All are ReLU networks. What should fall with depth is judged as in
`ntkcond.artefacts.verdicts.trend`; accuracies by Student's t, with the spread of the seeds pooled
over depths.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import t

from ntkcond.artefacts.verdicts import trend
from ntkcond.artefacts.verdicts.claim import (
    EXPERIMENT,
    FAILS,
    HOLDS,
    LEVEL,
    LOSS_TO_BOUND,
    THEOREM,
    UNCONTRADICTED,
    UNDECIDED,
    VACUOUS,
    Claims,
    Findings,
    bounded,
    chance,
    judged,
    short,
)
from ntkcond.datasets.registry import title

# of the relative residual, as in fig_descent, of whose code and look this is no part
FLOOR = 1e-12
QUARTER = 1.25  # by which κ may change
Table = pd.DataFrame
CLAIMS = Claims(kind=EXPERIMENT)


@CLAIMS.add(
    "6-training", "v1 and ICLR §6 and Fig. 3, newest Fig. 4",
    "On each data set, deeper networks always train faster than shallower ones.",
)  # fmt: skip
def trains_faster(table_depth: Table) -> Findings:
    """As `table_depth` tests it: a trend, and no layer that costs epochs."""
    for row in table_depth[table_depth.activation == "relu"].itertuples():
        words = (
            f"epochs {short(row.epochs_first)} at the least L, {short(row.epochs_last)} at the"
            f" greatest, fewest at L = {row.fewest_at}; {row.seeds} seeds"
        )
        if not math.isnan(row.page_p):
            words += f"; trend {chance(row.page_p)}, order {chance(row.order_p)}"
        if not row.rates_inside:
            words += "; best rates at the edge of those tried, or alone"
        yield judged(
            f"{title(row.dataset)}, to a loss of {row.threshold:g}",
            "rank correlation of epochs with depth", "−1",
            f"{row.rank_correlation:+.2f}".replace("-", "−"), words, row.verdict, row.order_p,
        )  # fmt: skip


def _descents(fig_descent: Table) -> Iterator[tuple[str, Table]]:
    """Each data set and its curves at 1/λ_max, where κ alone bounds the rate."""
    rows = fig_descent[(fig_descent.rule == "own") & (fig_descent.activation == "relu")]
    for dataset, curves in rows.groupby("dataset", sort=False):
        yield dataset, curves.sort_values(["depth", "step"])


def _within_bound(fig_descent: Table, power: int, quantity: str) -> Findings:
    """Whether the residual to a power is below (1 − 1/κ)ᵗ after each number of steps t, up to where
    rounding stops its fall. There is no bound without a resolved κ."""
    for dataset, curves in _descents(fig_descent):
        for depth, rows in curves[curves.step > 0].groupby("depth"):
            kappa = rows.verdict.iloc[0] if "verdict" in rows else "resolved"
            above = rows.residual.le(FLOOR).cumsum() == 0
            if kappa != "resolved" or not above.any():
                lacks = f"κ {kappa}: no bound" if kappa != "resolved" else "lost in rounding"
                yield judged(
                    f"{title(dataset)}, L = {depth}, η = 1/λ_max",
                    f"{quantity} / (1 − 1/κ)ᵗ, largest of all t", "≤ 1", "–", lacks,
                    VACUOUS if kappa == "singular" else UNDECIDED,
                )  # fmt: skip
                continue
            rows = rows[above]
            ratio = rows.residual**power / (1 - 1 / rows.kappa) ** rows.step
            where = f"{title(dataset)}, L = {depth}, η = 1/λ_max, {rows.step.max()} steps"
            factor, known = rows.measured_rate.iloc[0] ** power, 1 - 1 / rows.kappa.iloc[0]
            yield bounded(
                where, f"{quantity} / (1 − 1/κ)ᵗ, largest of all t", ratio.max(), "≤ 1",
                f"factor a step {factor:.5f} at the end, {known:.5f} of the bound",
            )  # fmt: skip


@CLAIMS.add(
    "6-bound", "v1 §6, Eq. 13; ICLR §6, Eq. 11; newest §5",
    "Gradient descent on the square loss leaves at most (1 − 1/κ)ᵗ of it after t steps.",
    kind=THEOREM,
)  # fmt: skip
def bounded_by_kappa(fig_descent: Table) -> Findings:
    """The loss is the square of the residual: with a constant NTK (1 − 1/κ)²ᵗ would do."""
    return _within_bound(fig_descent, 2, "loss")


@CLAIMS.add(
    "ours-6-residual", "ours: what Eq. 13 becomes if the NTK is constant",
    "Gradient descent leaves at most (1 − 1/κ)ᵗ of the residual, the root of the loss.",
)  # fmt: skip
def residual_bounded_by_kappa(fig_descent: Table) -> Findings:
    return _within_bound(fig_descent, 1, "residual")


@CLAIMS.add(
    "6-descent", "v1 and ICLR §6 (b), newest §5 (b)",
    "Deeper wide ReLU networks converge faster under gradient descent.",
)  # fmt: skip
def descends_faster(fig_descent: Table) -> Findings:
    """By the contraction a step over the last half of the steps. It needs no κ."""
    for dataset, curves in _descents(fig_descent):
        rows = curves.drop_duplicates("depth")
        if len(rows) < 2:
            continue
        with np.errstate(divide="ignore"):
            logs = -np.log(rows.measured_rate.to_numpy())
        seeds, count = int(rows.seeds.min()), len(rows) - 1
        variances = np.square(rows.log_rate_std.fillna(0).to_numpy()) / seeds
        words = [f"factor a step {', '.join(f'{rate:.5f}' for rate in rows.measured_rate)}"]
        words.append(f"{seeds} seeds" if seeds > 1 else "one seed")
        verdict, p, confirmed = trend.rising(logs, seeds, variances, seeds - 1)
        if not math.isnan(p) and (np.diff(logs) < 0).any():
            words.append(chance(p))
        if verdict == UNCONTRADICTED:
            words.append(f"{sum(step < LEVEL for step in confirmed)} steps confirmed")
        depths = ", ".join(map(str, rows.depth))
        yield judged(
            f"{title(dataset)}, η = 1/λ_max of each, L = {depths}",
            "steps in depth with which the residual falls faster", f"{count} of {count}",
            f"{(np.diff(logs) > 0).sum()} of {count}", ", ".join(words), verdict, p,
        )  # fmt: skip


def _falls_with_width(fig_evolution: Table, name: str, quantity: str) -> Findings:
    """At the end of training, by the 95 % interval of its power of m."""
    last = fig_evolution.dropna(subset=f"{name}_power_mean")
    for (dataset, depth), rows in last.groupby(["dataset", "depth"], sort=False):
        rows = rows.sort_values("width")
        power, low, high = (rows[f"{name}_power_{end}"].iloc[0] for end in ("mean", "low", "high"))
        yield judged(
            f"{title(dataset)}, L = {depth}, m = {', '.join(map(str, rows.width))}", quantity,
            "falls", ", ".join(map(short, rows[f"{name}_mean"])),
            f"as m to the power {short(power)} ({short(low)} to {short(high)})",
            *_sign(-power, -high, -low, int(rows.seeds.iloc[0])),
        )  # fmt: skip


def _sign(mean: float, low: float, high: float, seeds: int) -> tuple[str, float]:
    """Whether a value is above 0, by its 95 % t interval, and p of a contradiction."""
    if math.isnan(low):
        return UNDECIDED, math.nan
    half, error = t.ppf(0.975, seeds - 1), (high - low) / 2
    p = float(t.cdf(mean / error * half, seeds - 1)) if error else float(mean < 0)
    return HOLDS if low > 0 else FAILS if high < 0 else UNDECIDED, p


@CLAIMS.add(
    "ours-6-change", "ours; on v1 and ICLR §6; newest §2 and §5",
    "On data, the wider the network, the less its NTK changes in training.",
)  # fmt: skip
def changes_less(fig_evolution: Table) -> Findings:
    return _falls_with_width(fig_evolution, "change", "‖K − K₀‖/‖K₀‖ after training")


@CLAIMS.add(
    "ours-6-prediction", "ours; on v1 and ICLR §6; newest §2 and §5",
    "The wider the network, the closer gradient descent is to what its NTK at the start predicts.",
)  # fmt: skip
def is_predicted(fig_evolution: Table) -> Findings:
    return _falls_with_width(fig_evolution, "linearised_error", "largest error of the residual")


@CLAIMS.add(
    "ours-6-kappa", "ours; on v1 and ICLR §6; newest §2 and §5",
    "At the data set's width, κ after training is within a quarter of κ at the start.",
)  # fmt: skip
def keeps_kappa(fig_evolution: Table) -> Findings:
    """By its 95 % interval."""
    at_own_width = fig_evolution[fig_evolution.own_width]
    last = at_own_width[at_own_width.step == at_own_width.groupby("dataset").step.transform("max")]
    for row in last.dropna(subset="kappa_ratio_mean").itertuples():
        low, mean, high = row.kappa_ratio_low, row.kappa_ratio_mean, row.kappa_ratio_high
        inside = 1 / QUARTER <= low <= high <= QUARTER
        p = _outside(mean, low, high, row.seeds)
        yield judged(
            f"{title(row.dataset)}, L = {row.depth}, m = {row.width}, {row.step} steps",
            "κ after training, in units of κ at the start", f"{1 / QUARTER:g} to {QUARTER:g}",
            short(mean), f"95 % interval {short(low)} to {short(high)}, {row.seeds} seeds",
            HOLDS if inside else FAILS if p < LEVEL else UNDECIDED, p,
        )  # fmt: skip


def _outside(mean: float, low: float, high: float, seeds: int) -> float:
    """p of so large or so small a ratio, were it within QUARTER, from the 95 % t interval of its
    logarithm; two-sided."""
    if math.isnan(low):
        return math.nan
    error = math.log(high / low) / 2 / t.ppf(0.975, seeds - 1)
    beyond = abs(math.log(mean)) - math.log(QUARTER)
    if not error:
        return float(beyond <= 0)
    return float(min(1, 2 * t.sf(beyond / error, seeds - 1)))


RATES = {"own": "η = 1/λ_max of each", "common": "one η for all depths"}


def within_the_bound(fig_descent: Table) -> Findings:
    """Findings of claim 6-smallest: the mean curves of relu, at both learning rates; all depths
    with a resolved κ together."""
    curves = fig_descent[(fig_descent.activation == "relu") & (fig_descent.step > 0)]
    for (dataset, rule), rows in curves.groupby(["dataset", "rule"], sort=False):
        where = f"{title(dataset)}, {RATES[rule]}"
        known = rows.verdict == "resolved"
        lost = ", ".join(map(str, sorted(rows.depth[~known].unique())))
        words = " or ".join(rows.verdict[~known].unique())
        note = f"no bound at L = {lost}: κ {words}" if lost else ""
        shown = rows[known & (rows.residual > FLOOR)]
        if shown.empty:
            singular = (rows.verdict == "singular").all()
            outcome = VACUOUS if singular else UNDECIDED
            yield judged(where, LOSS_TO_BOUND, "≤ 1", "–", note, outcome)
            continue
        half = (1 + shown.bound_rate) / 2  # 1 − η λ_min/2
        ratios = (shown.residual**2 / half**shown.step).groupby(shown.depth).max()
        depths = ", ".join(map(str, ratios.index))
        quantity = f"{LOSS_TO_BOUND}, at each L"
        yield bounded(f"{where}, L = {depths}", quantity, ratios, "≤ 1", note)


@CLAIMS.add(
    "ours-6-speed", "ours; on v1, ICLR and newest §6, §5",
    "The smaller a network's κ at the start, the fewer epochs SGD needs.",
)  # fmt: skip
def speed_follows_kappa(fig_predictors: Table) -> Findings:
    """By the permutation test of the rank correlation over networks of several depths and widths;
    of all networks given the activation, since κ tells which it is."""
    by_kappa = fig_predictors[(fig_predictors.measure == "kappa") & fig_predictors.shown]
    for row in by_kappa.dropna(subset="rho").itertuples():
        every = row.group == "all"
        rho, p = (row.given_activation, row.given_activation_p) if every else (row.rho, row.rho_p)
        if math.isnan(rho):
            continue
        group = "all networks" if every else f"{row.group} networks"
        plain = f"; without it {short(row.rho)}, {chance(row.rho_p)}" if every else ""
        partial = ""
        if not math.isnan(row.given_size):
            ends = chance(row.given_size_p)
            partial = f"; given depth and width {short(row.given_size)}, {ends}"
        yield judged(
            f"{title(row.dataset)}, {row.loss.replace('_', ' ')} to {row.threshold:g}, {group}",
            f"rank correlation of epochs with κ{', given the activation' if every else ''}",
            "> 0", short(rho),
            f"{chance(p)} by permutations of {row.networks} networks{plain}{partial}",
            UNDECIDED if p > LEVEL else HOLDS if rho > 0 else FAILS,
            p / 2 if rho < 0 else 1 - p / 2,
        )  # fmt: skip


def _errors(rows: Table) -> pd.Series:
    """The standard error of each accuracy, in %: of the seeds, pooled over depths, and of a test
    set of so many samples."""
    seeds = rows.test_accuracy_percent_std.pow(2).mean() / rows.seeds
    share = rows.test_accuracy_percent_mean.clip(0, 100) / 100
    return np.sqrt(seeds.fillna(0) + 1e4 * share * (1 - share) / rows.test_samples)


def _gains(rows: Table, best: int) -> tuple[pd.Series, float, int]:
    """How much more accurate a depth is than each other one, the standard error of each
    difference, and its degrees of freedom."""
    accuracy = rows.test_accuracy_percent_mean
    gains = accuracy[best] - accuracy.drop(best)
    return gains, math.sqrt(2) * _errors(rows).max(), max(int((rows.seeds - 1).sum()), 1)


def _margin(gains: pd.Series, error: float, freedom: int) -> float:
    """What all of these comparisons may be off by (Bonferroni)."""
    return float(t.ppf(1 - LEVEL / max(len(gains), 1), freedom) * error)


TABLE_1 = 0.3  # %: how far a test accuracy may be from the paper's, which has no spread


@CLAIMS.add(
    "6-table-1", "newest Table 1", "Test accuracies on MNIST at L = 1, 3, 6, 8, 10, 12.",
    lacking="needs networks trained on all 60,000 MNIST images",
    elsewhere=(FAILS, "studies/table_1/claims.csv"),
)  # fmt: skip
def accuracy_of_table_1(table_generalization: Table) -> Findings:
    """Only of the whole of MNIST: each value, within TABLE_1 (two one-sided tests), and that the
    best depth is the table's, which a flat line is not."""
    whole = table_generalization[table_generalization.samples == 60_000]
    whole = whole.dropna(subset=["paper_test_accuracy_percent", "test_accuracy_percent_mean"])
    for dataset, rows in whole.groupby("dataset", sort=False):
        rows = rows.set_index("depth").sort_index()
        spread = math.sqrt(rows.test_accuracy_percent_std.pow(2).mean())
        freedom = int((rows.seeds - 1).sum())
        for depth, row in rows.iterrows():
            stated, measured = row.paper_test_accuracy_percent, row.test_accuracy_percent_mean
            verdict, p = UNDECIDED, math.nan
            if freedom and spread > 0:
                error = spread / math.sqrt(row.seeds)
                p = float(2 * t.sf((abs(measured - stated) - TABLE_1) / error, freedom))
                inside = float(t.cdf((abs(measured - stated) - TABLE_1) / error, freedom))
                p = min(p, 1.0)
                verdict = FAILS if p < LEVEL else HOLDS if inside < LEVEL else UNDECIDED
            stopped = row.stop_below and row.train_loss_mean < row.stop_below
            trained = f"to a loss of {row.stop_below:g}" if stopped else f"{row.epochs} epochs"
            yield judged(
                f"{title(dataset)}, L = {depth}, {trained}",
                "test accuracy (%)", f"{short(stated)} ± {TABLE_1:g}", short(measured),
                f"± {short(row.test_accuracy_percent_std)}, pooled ± {short(spread)},"
                f" {row.seeds} seeds", verdict, p,
            )  # fmt: skip
        if len(rows) > 1:
            best = rows.paper_test_accuracy_percent.idxmax()
            gains, error, freedom = _gains(rows, best)
            margin = _margin(gains, error, freedom)
            against = float(t.cdf(gains.min() / error, freedom))
            p = min(1.0, len(gains) * against)
            confirmed = t.sf(gains / error, freedom).max() < LEVEL
            yield judged(
                f"{title(dataset)}, L = {', '.join(map(str, rows.index))}",
                f"how much better than the others L = {best} is (%)", "> 0",
                ", ".join(map(short, gains)), f"± {short(margin)}",
                FAILS if p < LEVEL else HOLDS if confirmed else UNDECIDED, p,
            )  # fmt: skip


@CLAIMS.add(
    "6-tradeoff", "newest §5 and Table 1",
    "Very deep networks generalise less well: the best test accuracy is in between.",
    lacking="needs trained networks of three depths or more",
)  # fmt: skip
def depth_costs_accuracy(table_generalization: Table) -> Findings:
    """Holds where a depth is better than the shallowest and the deepest by more than the errors of
    all comparisons, fails where one of these two is so much better than all others. The best depth
    is chosen by the same numbers, hence the correction (Bonferroni)."""
    accuracies = table_generalization.dropna(subset="test_accuracy_percent_mean")
    for dataset, rows in accuracies.groupby("dataset", sort=False):
        rows = rows.set_index("depth").sort_index()
        if len(rows) < 3:
            continue
        accuracy, ends = rows.test_accuracy_percent_mean, rows.index[[0, -1]]
        best = accuracy.idxmax()
        gains, error, freedom = _gains(rows, best)
        margin = _margin(gains, error, freedom)
        farthest = float(t.sf(gains.min() / error, freedom))
        p = min(1.0, len(gains) * farthest) if best in ends else 1.0
        verdict = UNDECIDED
        if best in ends and p < LEVEL:
            verdict = FAILS
        elif best not in ends and (gains[ends] > margin).all():
            verdict = HOLDS
        if (rows.seeds < 2).all():
            verdict, p = UNDECIDED, math.nan
        yield judged(
            f"{title(dataset)}, L = {', '.join(map(str, rows.index))}", "test accuracy (%)",
            "best in between", ", ".join(map(short, accuracy)), f"± {short(margin)}", verdict, p,
        )  # fmt: skip
