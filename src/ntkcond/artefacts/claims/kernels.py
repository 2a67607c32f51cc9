"""Claims about κ and angles on data, judged from the tables of the artefacts.

At finite width κ and angles are random. They are compared seed by seed, as
`ntkcond.artefacts.verdicts.over_seeds` has it (logarithms; of κ means over all blocks); what should
rise or fall with depth is judged as in `ntkcond.artefacts.verdicts.trend`. One seed, of which the
spread is unknown, decides nothing. A depth with an unresolved κ is left out, and named. All
networks are ReLU networks with all weights trained, where not said otherwise.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from ntkcond.artefacts.verdicts import over_seeds, trend
from ntkcond.artefacts.verdicts.claim import (
    BELIEF,
    CORRECTED,
    EXPERIMENT,
    FAILS,
    HOLDS,
    LEVEL,
    THEOREM,
    UNCONTRADICTED,
    UNDECIDED,
    VACUOUS,
    Claims,
    Finding,
    Findings,
    bounded,
    chance,
    interval,
    judged,
    short,
)
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ARCHITECTURES
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

SIMILAR = 0.15  # by how much "similar" may differ, relative
NEAR = 0.05  # of the limit of infinite width, relative
SMALL_DEG = 30  # "similar data" in figures of φ against θ
REPEATS = "a block repeats samples, which the paper excludes: κ = ∞ at every depth"
ON_ANGLES = "angles and sweeps/infinite, drawn in fig2"
ON_KAPPAS = "conditioning and sweeps/infinite, drawn in fig2"
FIG_2_RIGHT = "v1 and ICLR §5.2 and Fig. 2 (right), newest §4.1 and Fig. 3 (right)"
FIG_2_LEFT = "v1 and ICLR §5.2 and Fig. 2 (left), newest §4.1 and Fig. 3 (left)"
Table = pd.DataFrame
CLAIMS = Claims(kind=EXPERIMENT)


class _Curve(NamedTuple):
    """A quantity against depth: a row for each seed (one, exact, at infinite width), a column for
    each depth. unresolved: the depths with an unresolved κ, which are left out, but for linear
    networks, where the values are lower bounds. repeats: that some blocks have duplicates
    of samples, which the paper excludes: their κ is ∞ at every depth."""

    dataset: str
    where: str
    infinite: bool
    values: Table
    unresolved: tuple[int, ...]
    repeats: bool = False

    @property
    def means(self) -> pd.Series:
        return self.values.mean(skipna=False)

    @property
    def hidden(self) -> "_Curve":
        """Its depths from 1 on."""
        return self._replace(values=self.values[[depth for depth in self.values if depth > 0]])

    def note(self, words: str = "") -> str:
        """words, and what is left out."""
        left_out = ", ".join(f"{depth}" for depth in self.unresolved)
        notes = words, left_out and f"κ unresolved at L = {left_out}", self.repeats and REPEATS
        return "; ".join(filter(None, notes))


def _networks(table: Table, activation: str) -> Iterator[tuple[str, Table]]:
    """Each data set and its rows."""
    rows = table[(table.activation == activation) & (table.trainable == "all")]
    return iter(rows.groupby("dataset", sort=False))


def _where(rows: Table, width: str | None = None) -> str:
    row = rows.iloc[0]
    samples = f", n = {row.n}" if "n" in row else ""
    return f"{title(row.dataset)}, m = {width or row.width}{samples}"


def _curves(table: Table, infinite: Table | None, activation: str) -> Iterator[_Curve]:
    """log κ (of conditioning) or min φ in degrees (of angles): for each data set that at the width
    measured, and that at infinite width. Of ReLU networks, depths with an unresolved κ are left
    out; an unresolved κ of a linear network counts as its lower bound."""
    quantity = "kappa" if "kappa" in table else "min_angle_deg"
    for dataset, rows in _networks(table, activation):
        yield from _curve(dataset, rows, quantity, _where(rows), False)
        if infinite is not None:
            limit = infinite[(infinite.dataset == dataset) & (infinite.activation == activation)]
            yield from _curve(dataset, limit, quantity, _where(rows, "∞"), True)


def _curve(
    dataset: str, rows: Table, quantity: str, where: str, infinite: bool
) -> Iterator[_Curve]:
    """By seed and depth, means over blocks."""
    kappa, unresolved, kept = quantity == "kappa", (), rows
    if kappa:
        unresolved = tuple(sorted(rows[rows.verdict == "unresolved"].depth.unique()))
        if (rows.activation == "relu").any():
            kept = rows[~rows.depth.isin(unresolved)]
    kept = kept.assign(value=np.log(_kappa(kept)) if kappa else kept.min_angle_deg)
    values = kept.pivot_table("value", "seed", "depth", aggfunc="mean")
    if unresolved or not values.empty:
        yield _Curve(dataset, where, infinite, values, unresolved, kappa and _repeats(kept))


def _kappa(rows: Table) -> pd.Series:
    return rows.kappa.where(rows.verdict != "unresolved", rows.kappa_lower)


def _repeats(rows: Table) -> bool:
    """Whether the NTK of a block is singular at every depth of ReLU networks, L ≥ 1, and at L = 0:
    as of duplicates. Other blocks of the same samples, or these at another depth, are not."""
    rows = rows[rows.activation == "relu"]
    if not (rows.depth > 0).any():
        return False
    singular = rows.verdict == "singular"
    always = singular.groupby(rows.block).all() if "block" in rows else pd.Series([singular.all()])
    return bool(always.any())


def _trend(
    curve: _Curve, direction: int, quantity: str, against: str, shown: Callable[[float], str]
) -> Findings:
    """Whether a curve goes in the direction (+1: up) with depth. Its spread: the largest step
    against it, and p, the probability that a monotone curve is as far off."""
    depths = list(curve.values)
    if curve.repeats:
        yield judged(curve.where, quantity, "all", "–", curve.note(), UNDECIDED)
        return
    if len(depths) < 2:
        if curve.unresolved:
            yield judged(curve.where, quantity, "all", "–", curve.note(), UNDECIDED)
        return
    means, seeds = direction * curve.means.to_numpy(), len(curve.values)
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        steps = np.diff(means)
        variances, freedom = trend.by_depth(curve.hidden.values.to_numpy())
    # L = 0 has no random weights: it is exact, and counts with the spread of the others
    variances = np.append(np.full(len(depths) - len(variances), np.nan), variances)
    words = [f"{against} {shown(-np.nanmin(steps))}"] if (steps < 0).any() else []
    verdict, p = trend.exactly_rising(means), math.nan
    if not curve.infinite:
        verdict, p, confirmed = trend.rising(means, seeds, variances, freedom)
        if words and not math.isnan(p):
            words.append(chance(p))
        words += [over_seeds.ONE_SEED] * (seeds == 1)
        if verdict == UNCONTRADICTED:
            words.append(f"{sum(step < LEVEL for step in confirmed)} steps confirmed")
    count = len(steps)
    yield judged(
        f"{curve.where}, L = {depths[0]} to {depths[-1]}", quantity, f"{count} of {count}",
        f"{(steps > 0).sum()} of {count}", curve.note(", ".join(words)), verdict, p,
    )  # fmt: skip


def _beyond(
    curve: _Curve,
    quantity: str,
    ratios: pd.Series,
    expected: str,
    logs: Table,
    infinite: str = "",
    lower: tuple[int, ...] = (),
) -> Findings:
    """A finding on ratios at several depths, which should be above or below 1 at each; none if all
    are ∞/∞. logs: their logarithms, a row for each seed. infinite: the name of a denominator that
    is ∞ at every depth, below which κ is without fail. lower: the depths at which the denominator
    is a lower bound: there a ratio below 1 confirms, and another says nothing."""
    known = ratios.dropna()
    unsure = [depth for depth in known.index if depth in lower and known[depth] >= 1]
    if curve.repeats or (known.empty and curve.unresolved):
        yield judged(curve.where, quantity, expected, "–", curve.note(), UNDECIDED)
    elif infinite and len(known):
        words = curve.note(f"{infinite} = ∞")
        yield judged(curve.where, quantity, expected, interval(known), words, VACUOUS)
    elif len(known):
        sign = 1 if expected == "> 1" else -1
        if curve.infinite:
            right = (sign * np.log(known.drop(unsure)) > 0).all()
            verdict, p, words = HOLDS if right else FAILS, math.nan, ""
        else:
            tested = over_seeds.above_zero(sign * logs[known.index], lower)
            verdict, p, words = tested
        if unsure:
            bound = f"κ̄ unresolved at L = {', '.join(map(str, unsure))}, a lower bound"
            words = "; ".join(filter(None, (words, bound)))
            verdict = verdict if verdict == FAILS else UNDECIDED
        sure = known.drop(unsure)
        measured = interval(sure) if len(sure) else "–"
        yield judged(curve.where, quantity, expected, measured, curve.note(words), verdict, p)


def _stays(where: str, quantity: str, ratios: pd.Series, logs: Table) -> Finding:
    """Whether ratios at several depths, whose logarithms have a row for each seed, are 1."""
    verdict, p, words = over_seeds.within(logs, math.log(1 - SIMILAR), math.log(1 + SIMILAR))
    return judged(where, quantity, f"1 ± {SIMILAR:g}", interval(ratios), words, verdict, p)


def _pairs(table: Table, infinite: Table | None) -> Iterator[tuple[_Curve, _Curve]]:
    """ReLU's curve, at L ≥ 1, with the linear one of the same samples and width."""
    linear = {(c.dataset, c.infinite): c for c in _curves(table, infinite, "linear")}
    for relu in _curves(table, infinite, "relu"):
        if (relu.dataset, relu.infinite) in linear:
            yield relu.hidden, linear[relu.dataset, relu.infinite]


@CLAIMS.add(
    "5-separated", FIG_2_LEFT,
    "The smallest gradient angle of ReLU networks is larger than that of linear ones.",
    artefact=ON_ANGLES,
)  # fmt: skip
def wider_than_linear(angles: Table, infinite: Table | None = None) -> Findings:
    for relu, linear in _pairs(angles, infinite):
        ratio = (relu.means / linear.means).reindex(relu.values.columns)
        logs = np.log(relu.values / linear.values).reindex(columns=relu.values.columns)
        yield from _beyond(relu, "min φ of ReLU / of linear, over L ≥ 1", ratio, "> 1", logs)


@CLAIMS.add(
    "5-separation-grows", "v1 and ICLR §4, newest §4.1 and Fig. 3 (left)",
    "The smallest gradient angle of ReLU networks grows with depth.", artefact=ON_ANGLES,
)  # fmt: skip
def separation_grows(angles: Table, infinite: Table | None = None) -> Findings:
    quantity = "steps in depth with which min φ of ReLU grows"
    for relu in _curves(angles, infinite, "relu"):
        yield from _trend(relu, +1, quantity, "largest fall", lambda fall: f"{short(fall)}°")


@CLAIMS.add(
    "5-linear-angles", "v1 and ICLR Fig. 2 (left), newest Fig. 3 (left)",
    "The smallest gradient angle of linear networks stays that of the inputs.",
)  # fmt: skip
def linear_keeps_angles(angles: Table) -> Findings:
    """At finite width; at infinite width φ̄ = θ by its formula."""
    for curve in _curves(angles, None, "linear"):
        hidden, start = curve.hidden.values, curve.values.get(0)
        if start is not None and len(hidden.columns):
            quantity = "min φ̄ / min θ, over L ≥ 1"
            ratio, logs = hidden.mean() / start.mean(), np.log(hidden.div(start, axis=0))
            yield _stays(curve.where, quantity, ratio, logs)


@CLAIMS.add(
    "6-worst-case", "v1 and ICLR §6 (a), newest §5 (a)",
    "The bound on gradient descent, 1 − 1/κ, is better for ReLU than for linear networks.",
    "The same order as of κ in 5-better, with which it is counted; not on all data (newest-1).",
    artefact=ON_KAPPAS, same_as="5-better",
)  # fmt: skip
@CLAIMS.add(
    "5-better", FIG_2_RIGHT,
    "On the data sets of the figure κ of ReLU networks is below that of linear ones (on other data:"
    " newest-1).", artefact=ON_KAPPAS,
)  # fmt: skip
def better_than_linear(conditioning: Table, infinite: Table | None = None) -> Findings:
    quantity = "κ of ReLU / κ̄ of linear, over L ≥ 1"
    for relu, linear in _pairs(conditioning, infinite):
        ratio = np.exp(relu.means - linear.means).reindex(relu.values.columns)
        logs = (relu.values - linear.values).reindex(columns=relu.values.columns)
        singular = "κ̄" if np.isinf(linear.means).all() else ""
        yield from _beyond(relu, quantity, ratio, "< 1", logs, singular, linear.unresolved)


@CLAIMS.add(
    "5-better-than-gram", FIG_2_RIGHT,
    "On the data sets of the figure κ of ReLU networks is below that of the linear model, κ₀ (on"
    " other data: newest-1).", artefact=ON_KAPPAS,
)  # fmt: skip
def better_than_gram(conditioning: Table, infinite: Table | None = None) -> Findings:
    for curve in _curves(conditioning, infinite, "relu"):
        kappa0 = curve.means.get(0, math.nan)
        ratio = np.exp(curve.hidden.means - kappa0)
        logs = curve.hidden.values - kappa0  # the same for all seeds
        infinite_gram = "κ₀" if math.isinf(kappa0) else ""
        yield from _beyond(curve, "κ/κ₀, over L ≥ 1", ratio, "< 1", logs, infinite_gram)


@CLAIMS.add(
    "5-falls", FIG_2_RIGHT, "κ of ReLU networks falls monotonically with depth.", artefact=ON_KAPPAS
)
def falls_with_depth(conditioning: Table, infinite: Table | None = None) -> Findings:
    def percent(log_ratio: float) -> str:
        return f"{short(100 * math.expm1(log_ratio))} %"

    quantity = "steps in depth, from L = 1 on, with which κ falls"
    for curve in _curves(conditioning, infinite, "relu"):
        yield from _trend(curve.hidden, -1, quantity, "largest rise", percent)


@CLAIMS.add(
    "5-smallest", "newest summary page",
    "The smallest eigenvalue of ReLU networks' NTK is above that of the Gram matrix.",
)  # fmt: skip
def smallest_eigenvalue_rises(conditioning: Table) -> Findings:
    """λ_min of resolved NTKs against that of the same block at L = 0, by L + 1: K = (L+1) G would
    otherwise pass. L + 1 is the mean of tr K / tr G over networks, and its value at infinite width;
    the trace itself is not in the table."""
    quantity = "λ_min(K)/(L+1) / λ_min(G), the least of all blocks, over L ≥ 1"
    for _, rows in _networks(conditioning, "relu"):
        resolved = rows[rows.verdict == "resolved"]
        relative = resolved.assign(value=resolved.lambda_min / (resolved.depth + 1))
        table = relative.pivot_table("value", ["seed", "block"], "depth", aggfunc="first")
        if 0 in table and len(table.columns) > 1:
            ratios = table.drop(columns=0).div(table[0], axis=0).dropna(axis=1, how="all")
            if len(ratios.columns):
                logs = np.log(ratios).groupby("seed").min()
                verdict, p, words = over_seeds.above_zero(logs)
                least = interval(ratios.min())
                yield judged(_where(rows), quantity, "> 1", least, words, verdict, p)


@CLAIMS.add(
    "5-linear-finite", "v1 and ICLR Fig. 2 (right), newest Fig. 3 (right)",
    "κ̄ of linear networks is a finite number on every data set.",
    "Of more samples than the rank of the inputs, κ̄ = ∞ exactly.", 8,
)  # fmt: skip
def linear_is_finite(conditioning: Table) -> Findings:
    linear = conditioning[conditioning.activation == "linear"]
    for dataset, rows in linear.groupby("dataset", sort=False):
        singular, unresolved = ((rows.verdict == v).sum() for v in ("singular", "unresolved"))
        naive = f"; a naive λ_max/λ_min would be {interval(rows.lambda_max / rows.lambda_min)}"
        measured = f"{singular} of {len(rows)}, of rank ≤ {rows.rank_bound.max()}"
        yield Finding(
            f"{title(dataset)}, n = {rows.n.iloc[0]}, all L", "linear NTKs that are singular",
            f"0 of {len(rows)}", measured + (naive if singular else ""),
            f"{unresolved} unresolved" if unresolved else "", not singular,
            neither=UNDECIDED if unresolved and not singular else "",
        )  # fmt: skip


@CLAIMS.add(
    "5-linear-kappa", "v1 and ICLR Fig. 2 (right), newest Fig. 3 (right)",
    "At finite width, too, linear networks keep κ₀ at every depth.",
    "Only as m → ∞: at finite width κ̄ grows with depth.", 9,
)  # fmt: skip
def linear_keeps_kappa(conditioning: Table) -> Findings:
    """Singular NTKs count by their non-zero spectrum."""
    for _, rows in _networks(conditioning, "linear"):
        logs = rows.assign(value=np.log(rows.nonzero_kappa))
        table = logs.pivot_table("value", "seed", "depth", aggfunc="mean")
        deepest = table.columns.max()
        if 0 not in table or deepest == 0:
            continue
        change = table.drop(columns=0).sub(table[0], axis=0)
        ratio, error = math.exp(change[deepest].mean()), change[deepest].sem()
        finding = _stays(
            _where(rows), f"κ̄(L = {deepest})/κ₀, of the non-zero spectrum",
            pd.Series(ratio), change,
        )  # fmt: skip
        if len(change) > 1:
            finding = finding._replace(spread=f"± {short(ratio * error)}; {finding.spread}")
        yield finding


@CLAIMS.add(
    "5.1-data", "v1 Thm 5.1, ICLR Thm 5.3, newest Thm 4.2",
    "Thm 5.1 on data: as m → ∞, κ of the first layer's weights is below κ₀.",
)  # fmt: skip
def first_layer_on_data(first_layer: Table, conditioning: Table) -> Findings:
    return _first_layer(first_layer[np.isinf(first_layer.width)], conditioning)


@CLAIMS.add(
    "ours-5.1-width", "ours; on v1 Thm 5.1",
    "At finite width, too, κ of the first layer's weights is below κ₀.",
)  # fmt: skip
def narrow_first_layer_on_data(first_layer: Table, conditioning: Table) -> Findings:
    return _first_layer(first_layer[np.isfinite(first_layer.width)], conditioning)


def _first_layer(first_layer: Table, conditioning: Table) -> Findings:
    """Against κ₀ of the same blocks, or its lower bound."""
    gram = conditioning.query("activation == 'relu' and depth == 0")
    for (dataset, width), rows in first_layer.groupby(["dataset", "width"], sort=False):
        same = gram[(gram.dataset == dataset) & gram.block.isin(rows.block)]
        where, quantity = _where(rows, short(width)), "κ of W¹ alone / κ₀"
        if same.empty:
            continue
        if (rows.verdict == "unresolved").any():
            yield judged(where, quantity, "< 1", "–", "κ of W¹ alone unresolved", UNDECIDED)
            continue
        logs = np.log(_kappa(rows)).groupby(rows.seed).mean()
        kappa, kappa0 = math.exp(logs.mean()), math.exp(np.log(_kappa(same)).mean())
        lower = (same.verdict == "unresolved").any()
        if math.isfinite(kappa):
            words = f"κ = {short(kappa)}, κ₀ {'≥' if lower else '='} {short(kappa0)}"
            verdict, p = _below(kappa, kappa0), math.nan
            if math.isfinite(width) and verdict in (HOLDS, FAILS):
                verdict, p, tested = over_seeds.above_zero((math.log(kappa0) - logs).to_frame(1))
                words = f"{words}, {tested}"
            if lower and kappa >= kappa0:
                verdict = UNDECIDED
            ratio = short(kappa / kappa0)
            yield judged(where, quantity, "< 1", ratio, words, verdict, p)


def _below(kappa: float, kappa0: float) -> str:
    """The verdict on κ < κ₀."""
    if math.isnan(kappa0):
        return UNDECIDED
    if math.isinf(kappa0):
        return VACUOUS
    return HOLDS if kappa < kappa0 else FAILS


@CLAIMS.add(
    "newest-fig-2", "newest Fig. 2, which prints ReLU² as max{0, z²}",
    "ReLU², GELU and tanh separate similar inputs better, too, and more so when deeper.",
    kind=THEOREM,
)  # fmt: skip
def other_activations(fig_activations: Table) -> Findings:
    small = fig_activations.query(f"0 < theta_in_deg <= {SMALL_DEG}")
    for activation, rows in small.groupby("activation", sort=False):
        phi = rows.pivot_table("phi_deg", "depth", "theta_in_deg")
        setting = f"{ACTIVATIONS[activation].title}, θ ≤ {SMALL_DEG}°, "
        setting += f"L = {phi.index.min()} to {phi.index.max()}"
        yield bounded(setting, "φ/θ", phi / phi.columns, "> 1")
        if len(phi) > 1:
            growth = np.diff(phi, axis=0)
            yield bounded(setting, "growth of φ from depth to depth (degrees)", growth, "> 0")


class _Activation(NamedTuple):
    """κ of an activation against depth. kappa0: NaN if unresolved. rows: all kernels; resolved:
    those of depths at which all are; logs: of their κ, by seed and depth, means over blocks."""

    name: str
    where: str
    kappa0: float
    rows: Table

    @property
    def resolved(self) -> Table:
        lost = self.rows[self.rows.verdict == "unresolved"].depth
        return self.rows[~self.rows.depth.isin(lost)]

    @property
    def logs(self) -> Table:
        rows = self.resolved.assign(value=np.log(self.resolved.kappa))
        return rows.pivot_table("value", "seed", "depth", aggfunc="mean")

    @property
    def infinite(self) -> bool:
        return bool(np.isinf(self.rows.width.iloc[0]))


def _of_activations(table: Table) -> Iterator[_Activation]:
    """Each data set, width and activation. κ₀ is that of linear networks at infinite width."""
    gram = table[(table.activation == "linear") & np.isinf(table.width)]
    groups = table.groupby(["dataset", "width", "activation"], sort=False)
    for (dataset, width, name), rows in groups:
        same = gram[gram.dataset == dataset]
        if len(same):
            resolved = (same.verdict != "unresolved").all()
            kappa0 = _median(same[same.depth == same.depth.min()]) if resolved else math.nan
            yield _Activation(name, _where(rows, short(width)), kappa0, rows)


def _median(rows: Table) -> float:
    return float(np.median(rows.kappa))


def _against_depth(table: Table, activation: str, direction: int) -> Findings:
    """κ of the activation is to be beyond κ₀ in the direction at every depth, and to move that way
    with every layer; as corrected, the latter, beyond κ₀ only at the end. Depths with an unresolved
    κ are left out."""
    expected = "< 1, falling" if direction < 0 else "> 1, rising"
    quantity = f"κ of {activation} / κ₀"
    for curve in _of_activations(table):
        every = sorted(curve.rows.depth.unique())
        if curve.name != activation or len(every) < 2:
            continue
        medians = pd.Series({L: _median(rows) for L, rows in curve.resolved.groupby("depth")})
        left_out = ", ".join(str(L) for L in every if L not in medians.index)
        ratio = "–"
        if len(medians):
            ratio = " to ".join(map(short, medians.iloc[[0, -1]] / curve.kappa0))
        means = direction * curve.logs.mean().to_numpy()
        moving = (np.diff(means) > 0).all()
        below = math.isinf(curve.kappa0) and (direction < 0 or moving)  # without fail
        unknown = len(medians) < 2 or (math.isnan(curve.kappa0) and moving)
        verdict, p, words, shown = UNDECIDED, math.nan, "", every
        if unknown or below:
            verdict = UNDECIDED if unknown or direction > 0 else VACUOUS
            words = "κ₀ = ∞" if below else "κ₀ unresolved" if math.isnan(curve.kappa0) else ""
        else:
            verdict, p, words = _moves_beyond(curve, direction)
            shown = list(medians.index)
        lost = f"κ unresolved at L = {left_out}" if left_out else ""
        yield judged(
            f"{curve.where}, L = {interval(shown)}", quantity, expected, ratio,
            "; ".join(filter(None, (lost, words))), verdict, p,
        )  # fmt: skip


def _moves_beyond(curve: _Activation, direction: int) -> tuple[str, float, str]:
    """The verdict, p of a contradiction and the words of `_against_depth`."""
    logs = curve.logs
    kappa0 = math.log(curve.kappa0) if curve.kappa0 == curve.kappa0 else math.nan
    beyond = direction * (logs - kappa0)
    means = direction * logs.mean().to_numpy()
    if curve.infinite:
        moves = trend.Trend(trend.exactly_rising(means))
        ends = beyond.mean()
        offset = over_seeds.Tested(HOLDS if (ends > 0).all() else FAILS, math.nan, "")
        last = HOLDS if ends.iloc[-1] > 0 else FAILS
    else:
        variances, freedom = trend.by_depth(logs.to_numpy())
        moves = trend.rising(means, len(logs), variances, freedom)
        offset = over_seeds.above_zero(beyond)
        last = over_seeds.above_zero(beyond.iloc[:, -1:]).verdict
    words = [offset.words]
    if not math.isnan(moves.p):
        confirmed = sum(step < LEVEL for step in moves.steps)
        words.append(f"{confirmed} of {len(moves.steps)} steps confirmed, {chance(moves.p)}")
    tested = [p for p in (moves.p, offset.p) if not math.isnan(p)]
    p = min(1.0, len(tested) * min(tested)) if tested else math.nan
    if offset.verdict == FAILS and moves.verdict == last == HOLDS:
        verdict = CORRECTED
    elif FAILS in (moves.verdict, offset.verdict):
        verdict = FAILS if math.isnan(p) or p < LEVEL else UNDECIDED
    else:
        order = (HOLDS, UNCONTRADICTED, UNDECIDED)
        verdict = max(moves.verdict, offset.verdict, key=order.index)
    return verdict, p, ", ".join(filter(None, words))


ON_ACTIVATIONS = "sweeps/activations, drawn in fig_activations_ntk"


@CLAIMS.add(
    "F-tanh", "ICLR §1, on its Appendix F", "tanh lowers κ, the more the deeper.",
    artefact=ON_ACTIVATIONS,
)  # fmt: skip
def tanh_lowers_kappa(activations: Table) -> Findings:
    return _against_depth(activations, "tanh", -1)


@CLAIMS.add(
    "F-sigmoid", "ICLR §1, on its Appendix F", "sigmoid raises κ, the more the deeper.",
    "κ rises with every layer; after the first it can still be below κ₀.",
    artefact=ON_ACTIVATIONS,
)  # fmt: skip
def sigmoid_raises_kappa(activations: Table) -> Findings:
    return _against_depth(activations, "sigmoid", +1)


@CLAIMS.add(
    "7-others", "v1 §7; newest conclusion: future work",
    "Similar results hold for other non-linear activations.",
    "They hold for GELU and tanh; not for sigmoid, nor at finite width for a deep network of"
    " ReLU².", kind=BELIEF, artefact=ON_ACTIVATIONS,
)  # fmt: skip
def others_are_better(activations: Table) -> Findings:
    """Every activation but ReLU and linear, deepest network. An unresolved κ counts as its lower
    bound, which may contradict, and confirms nothing."""
    for curve in _of_activations(activations):
        if curve.name in ("relu", "linear"):
            continue
        depth = curve.rows.depth.max()
        deepest = curve.rows[curve.rows.depth == depth]
        lost = (deepest.verdict == "unresolved").sum()
        kappa, p, spread = _median(deepest), math.nan, ""
        verdict = _below(kappa, curve.kappa0)
        if not curve.infinite and verdict in (HOLDS, FAILS):
            logs = deepest.assign(value=np.log(_kappa(deepest)))
            logs = logs.pivot_table("value", "seed", "depth", aggfunc="mean")
            verdict, p, spread = over_seeds.above_zero(math.log(curve.kappa0) - logs)
        if lost:
            verdict = FAILS if verdict == FAILS else UNDECIDED
            bounds = f"{lost} of {len(deepest)} unresolved, lower bounds"
            spread = "; ".join(filter(None, (bounds, spread)))
        yield judged(
            f"{curve.where}, L = {depth}", f"κ of {ACTIVATIONS[curve.name].title} / κ₀", "< 1",
            short(kappa / curve.kappa0), spread, verdict, p,
        )  # fmt: skip


def _of_architectures(table: Table) -> Iterator[tuple[str, Table, Table | None]]:
    """For each data set and kind of network: where, and its rows by depth from 1 on, with and
    without ReLU."""
    hidden = table[table.depth > 0]
    for (dataset, name), rows in hidden.groupby(["dataset", "architecture"], sort=False):
        by_activation = {a: group.set_index("depth") for a, group in rows.groupby("activation")}
        if "relu" in by_activation:
            first = rows.iloc[0]
            words = ARCHITECTURES.get(name, name)
            where = f"{title(dataset)}, {words}, m = {first.width}, n = {first.n}"
            yield where, by_activation["relu"], by_activation.get("linear")


@CLAIMS.add(
    "ours-networks-better", "ours; networks beside the paper's",
    "With biases, residual, normalised and convolutional, and in a transformer, too: κ with ReLU is"
    " below κ without.",
)  # fmt: skip
def better_beyond_the_papers_networks(fig_architectures: Table) -> Findings:
    """A κ without ReLU that is unresolved is larger than its bound, which may confirm, and
    contradicts nothing."""
    for where, relu, linear in _of_architectures(fig_architectures):
        if linear is not None:
            lost = relu.index[relu.unresolved > 0]
            ratio = (relu.kappa_median / linear.kappa_median).dropna().drop(lost, errors="ignore")
            note = f"κ of ReLU unresolved at L = {', '.join(map(str, lost))}" if len(lost) else ""
            if len(ratio):
                pairs = [(relu.loc[L], linear.loc[L]) for L in ratio.index]
                verdict, p, words = _all_below(pairs)
                yield judged(
                    where, "κ of ReLU / of linear, over L ≥ 1", "< 1", interval(ratio),
                    "; ".join(filter(None, (note, words))), verdict, p,
                )  # fmt: skip


def _all_below(pairs: list[tuple[pd.Series, pd.Series]]) -> over_seeds.Tested:
    """Whether the first κ of each pair of rows of fig_architectures is below the second, by
    mean and standard deviation of log κ."""
    p_values = [_less(*pair) for pair in pairs]
    seeds = min(int(min(first.seeds, second.seeds)) for first, second in pairs)
    if seeds < 2:
        return over_seeds.Tested(UNDECIDED, math.nan, over_seeds.ONE_SEED)
    less, more = np.transpose(p_values)
    p = min(1.0, len(more) * more.min())
    verdict = FAILS if p < LEVEL else HOLDS if (less < LEVEL).all() else UNDECIDED
    words = {HOLDS: f"confirmed, {chance(less.max(), len(less) > 1)}",
             FAILS: f"contradicted, {chance(p)}"}  # fmt: skip
    return over_seeds.Tested(
        verdict, p, f"{seeds} seeds, {words.get(verdict, f'not confirmed, {chance(less.max())}')}"
    )


def _less(first: pd.Series, second: pd.Series) -> tuple[float, float]:
    """p of the first κ below the second, and of it above. By the moments of log-normal κ; all
    kernels of a seed count as one. Of a second κ with unresolved ones, the mean is above the
    smaller of that of the others and of the lowest bound."""
    rows = [(row.kappa_mean, np.nan_to_num(row.kappa_std)) for row in (first, second)]
    logs = [np.nan_to_num(math.log1p((std / mean) ** 2)) for mean, std in rows]
    means = [math.log(mean) - log / 2 for (mean, _), log in zip(rows, logs, strict=True)]
    if second.unresolved > 0:
        means[1] = np.fmin(means[1], math.log(second.kappa_lower_bound))
    seeds = int(min(first.seeds, second.seeds))
    less, more, _ = over_seeds.difference(means, np.sqrt(logs), max(seeds, 2))
    return less, 1.0 if second.unresolved > 0 else more


@CLAIMS.add(
    "ours-networks-falls", "ours; networks beside the paper's",
    "In these networks, too, κ with ReLU is lower in the deepest than in the shallowest.",
    "Not in residual networks in which ReLU comes last: its positive means add up"
    " (`ours-residual-mean`).",
)  # fmt: skip
def falls_beyond_the_papers_networks(fig_architectures: Table) -> Findings:
    for where, relu, _ in _of_architectures(fig_architectures):
        resolved = relu[relu.unresolved == 0].sort_index()
        if len(resolved) > 1:
            low, high = resolved.index[0], resolved.index[-1]
            ratio = resolved.kappa_median[high] / resolved.kappa_median[low]
            verdict, p, words = _all_below([(resolved.loc[high], resolved.loc[low])])
            quantity = f"κ(L = {high})/κ(L = {low})"
            yield judged(where, quantity, "< 1", short(ratio), words, verdict, p)


@CLAIMS.add(
    "ours-2.1-networks", "ours; on newest Remark 2.1",
    "On data, with biases, κ with ReLU stays below κ without, and is lower in the deepest network"
    " than in the shallowest.",
)  # fmt: skip
def the_same_with_biases(fig_architectures: Table) -> Findings:
    biases = fig_architectures[fig_architectures.architecture == "biases"]
    for where, relu, linear in _of_architectures(biases):
        resolved = relu[relu.unresolved == 0].sort_index()
        if linear is not None and len(resolved) > 1:
            kappas = resolved.kappa_median
            largest = max((kappas / linear.kappa_median).max(), kappas.iloc[-1] / kappas.iloc[0])
            pairs = [(resolved.loc[L], linear.loc[L]) for L in resolved.index]
            pairs.append((resolved.iloc[-1], resolved.iloc[0]))
            verdict, p, words = _all_below(pairs)
            quantity = "largest of: κ of ReLU / of linear; κ of the deepest / of the shallowest"
            yield judged(where, quantity, "< 1", short(largest), words, verdict, p)


@CLAIMS.add(
    "ours-when-data", "ours; on the newest §1",
    "On data sets of norm 1, too, as they are, centred and whitened, ReLU lowers κ where κ of the"
    " inputs is above 1 + n μ/s and raises it where it is below, in nine of ten cases; and so it is"
    " at finite width.",
)  # fmt: skip
def kappa_of_the_inputs_decides(fig_when_data: Table) -> Findings:
    for where, width, rows, note in _on_the_map(fig_when_data):
        above = rows.input_kappa > rows.lowers_above
        for column, m in (("kappa", "∞"), ("kappa_at_width", width)):
            known = rows[column].notna()
            if known.any():
                right = ((rows[column] < rows.input_kappa) == above)[known]
                words = f"{len(right)} cases, ReLU lowers κ in {above[known].sum()} by it{note}"
                quantity = "share of the cases in which the rule is right"
                yield bounded(f"{where}, m = {m}", quantity, right.mean(), "≥ 0.9", words)


@CLAIMS.add(
    "ours-zero-mean-data", "ours; on the newest §1",
    "Of the same samples ReLU less its mean never raises κ (`ours-zero-mean`).",
)  # fmt: skip
def without_a_mean(fig_when_data: Table) -> Findings:
    for where, _, rows, note in _on_the_map(fig_when_data):
        known = rows[rows.zero_mean_kappa.notna()]
        if len(known):
            yield bounded(
                f"{where}, m = ∞", "κ of ReLU less its mean / κ of the inputs",
                known.zero_mean_kappa / known.input_kappa, "≤ 1",
                f"with its mean: {interval(known.kappa / known.input_kappa)}{note}",
            )  # fmt: skip


def _on_the_map(table: Table) -> Iterator[tuple[str, str, Table, str]]:
    """For each data set its name, width, its rows with a known κ, and a note on the others."""
    for dataset, rows in table.groupby("dataset", sort=False):
        known = rows[rows.input_kappa.notna() & rows.kappa.notna()]
        lost = len(rows) - len(known)
        note = f"; κ not resolved in {lost} more" if lost else ""
        yield title(dataset), f"{rows.width.iloc[0]:g}", known, note


MANY = 30  # initialisations


@CLAIMS.add(
    "ours-every-layer", f"ours; on {FIG_2_RIGHT}",
    "At m = 512, too, κ falls with each of ten layers, in the mean over data sets with"
    " initialisations of their own: a rise with the tenth, as five initialisations show it, is"
    " chance.", lacking=f"fewer than {MANY} initialisations, or shared ones; see docs/when.md",
)  # fmt: skip
def falls_with_every_layer(fig_depth_steps: Table) -> Findings:
    """By Welch's tests of log κ; all must confirm."""
    together = fig_depth_steps[(fig_depth_steps.dataset == "all") & (fig_depth_steps.depth <= 10)]
    together = together[(together.seeds >= MANY) & together.change_mean.notna()]
    if len(together):
        last = together.iloc[-1]
        p = min(1.0, len(together) * together.p_rise.min())
        confirmed = (together.p_fall < LEVEL).all()
        yield judged(
            f"L = 2 to {last.depth:g}, {last.seeds:g} initialisations of each data set",
            "κ(L)/κ(L − 1), geometric mean over data sets", "< 1", interval(together.change_mean),
            f"{chance(together.p_fall.max(), True)}; at L = {last.depth:g} a rise of 5 % would be"
            f" found in {last.power:.0%} of simulations",
            FAILS if p < LEVEL else HOLDS if confirmed else UNDECIDED, p,
        )  # fmt: skip


@CLAIMS.add(
    "newest-fig-6", "newest Appendix B and Fig. 6",
    "At each of four scales of the weights, similar inputs are separated better, φ > θ.",
    artefact="claims and fig_weight_scale", kind=THEOREM,
)  # fmt: skip
def weight_scale(fig_weight_scale: Table) -> Findings:
    """ReLU networks, at several depths; of the figure, how far apart its four curves are."""
    relu = fig_weight_scale[fig_weight_scale.activation == "relu"]
    phi = relu.pivot_table("phi_deg", "weight_variance", "theta_in_deg")
    if phi.empty:
        return
    apart = short((phi.max() - phi.min()).max())
    theta = np.radians(np.arange(0.5, SMALL_DEG + 0.5, 0.5))
    networks = [MLP(ACTIVATIONS["relu"], depth, math.inf) for depth in (1, 3, 5, 10)]
    for variance in phi.index:
        ratio = [gradient_angle(theta, network, variance) / theta for network in networks]
        yield bounded(
            f"σ_w² = {variance:g}, θ ≤ {SMALL_DEG}°, L = 1, 3, 5, 10", "φ/θ", ratio, "> 1",
            f"φ of all four is the same, within {apart}°",
        )  # fmt: skip


@CLAIMS.add(
    "ours-scale", "ours; without biases (newest Remark 2.1)",
    "The scale of the weights changes no angle of ReLU networks; it does of those of tanh.",
)  # fmt: skip
def scale_changes_nothing(fig_weight_scale: Table) -> Findings:
    for activation, rows in fig_weight_scale.groupby("activation", sort=False):
        phi = rows.pivot_table("phi_deg", "weight_variance", "theta_in_deg")
        apart = (phi.max() - phi.min()).max()
        same = activation == "relu"
        yield Finding(
            f"{ACTIVATIONS[activation].title}, σ_w² = {interval(phi.index)}",
            "largest difference of φ between them (degrees)", "0" if same else "> 0", short(apart),
            "", (apart < 1e-6) == same,
        )  # fmt: skip


def _infinite_depth(
    table: Table, quantity: str, limit: float | None, tolerance: float, corrects: bool = False
) -> Findings:
    """limit: that of the text; None: of the newest version, `paper_limit`. tolerance: of a limit,
    relative. corrects: whether the figure's own limit is the text's but for a slip. Values are
    extrapolated from the two deepest networks, an error of order 1/L removed."""
    by, sign, unit = ("theta_in_deg", "θ", "°") if quantity == "phi_deg" else ("n", "n", "")
    rows = table[table.quantity == quantity].sort_values("depth")
    deepest = rows.groupby(by).last()
    before = rows.groupby(by).nth(-2).set_index(by)
    moved = deepest.depth * deepest.value - before.depth * before.value
    extrapolated = moved / (deepest.depth - before.depth)
    text = deepest.paper_limit if limit is None else pd.Series(limit, extrapolated.index)
    yield Finding(
        f"{sign} = {', '.join(f'{value:g}{unit}' for value in extrapolated.index)}; "
        f"L = {rows.depth.max()}, extrapolated",
        "φ (degrees)" if quantity == "phi_deg" else "κ of inputs of norm 1",
        ", ".join(dict.fromkeys(map(short, text))), ", ".join(map(short, extrapolated)), "",
        ((extrapolated / text - 1).abs() < tolerance).all(),
        corrects and ((extrapolated / deepest.limit - 1).abs() < tolerance).all(),
    )  # fmt: skip


@CLAIMS.add(
    "7-orthogonal", "v1 and ICLR §7", "At infinite depth all gradients become orthogonal, φ → 90°.",
    "φ → arccos(1/4) ≈ 75.52° (newest Thm 3.5).", 7, kind=BELIEF,
)  # fmt: skip
def orthogonal(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "phi_deg", 90, 0.01)


@CLAIMS.add(
    "7-kappa-1", "v1 and ICLR §7", "At infinite depth κ → 1.",
    "κ → (n + 3)/3 for inputs of norm 1.", 7, kind=BELIEF,
)  # fmt: skip
def perfectly_conditioned(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "kappa", 1, 0.002)


@CLAIMS.add(
    "newest-3.5", "newest Thm 3.5",
    "At infinite depth φ → arccos(1/4) ≈ 75.52°, whatever the inputs.", kind=THEOREM,
)  # fmt: skip
def angle_at_infinite_depth(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "phi_deg", None, 0.01)


@CLAIMS.add(
    "newest-4.3", "newest Thm 4.3", "At infinite depth κ → (n + 4)/3, for inputs of norm 1.",
    "κ → (n + 3)/3 for inputs of norm 1.", 7, kind=THEOREM,
)  # fmt: skip
def kappa_at_infinite_depth(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "kappa", None, 0.002, corrects=True)


ON_WIDTHS = "sweeps/width, drawn in fig_width"
QUANTITIES = {"kappa": "κ", "min_angle_deg": "min φ"}


def _by_seed(rows: Table, column: str, by: str) -> Table:
    """Logarithms of κ or min φ, a row for each seed, means over blocks."""
    logs = rows.assign(value=np.log(rows[column]))
    return logs.pivot_table("value", "seed", by, aggfunc="mean").dropna()


@CLAIMS.add(
    "7-finite-width", "v1 and ICLR §7",
    "As the width grows, κ and φ tend to those at infinite width.", artefact=ON_WIDTHS,
)  # fmt: skip
def towards_infinite_width(width: Table) -> Findings:
    """Confirmed where the widest networks are nearer to the limit than the narrowest beyond the
    spread of the seeds, and within a third of that distance or 5 % of it; contradicted where they
    are farther, or so far beyond the spread."""
    relu = width[width.activation == "relu"]
    for (dataset, depth), every in relu.groupby(["dataset", "depth"], sort=False):
        lost = every[every.verdict == "unresolved"].width
        rows = every[~every.width.isin(lost)]
        limit, finite = rows[np.isinf(rows.width)], rows[np.isfinite(rows.width)]
        if limit.empty or finite.width.nunique() < 2:
            continue
        for column, words in QUANTITIES.items():
            shown = finite.groupby("width")[column]
            shown = (shown.median() if column == "kappa" else shown.mean()) / (
                limit[column].median() if column == "kappa" else limit[column].mean()
            )
            away = _by_seed(finite, column, "width") - np.log(limit[column]).mean()
            if np.isfinite(away).all(axis=None):
                verdict, p, spread = _approaches(away)
                yield judged(
                    f"{title(dataset)}, L = {depth}, n = {rows.n.iloc[0]}",
                    f"{words}/{words}(∞) at m = {', '.join(f'{m:g}' for m in shown.index)}", "→ 1",
                    ", ".join(f"{value:.2f}" for value in shown), spread, verdict, p,
                )  # fmt: skip


def _approaches(away: Table) -> over_seeds.Tested:
    """away: logarithms of ratios to the limit, by seed and width."""
    if len(away) < 2:
        return over_seeds.Tested(UNDECIDED, math.nan, over_seeds.ONE_SEED)
    first, last = away.iloc[:, 0], away.iloc[:, -1]
    allowed = max(abs(first.mean()) / 3, NEAR)
    (gap, back), near = (
        over_seeds.one_sided(abs(first.mean()) - np.sign(last.mean()) * last),
        over_seeds.within(last.to_frame(), -allowed, allowed),
    )
    p = min(1.0, 2 * min(float(back), near.p))
    words = f"{len(away)} seeds, nearer at the end: {chance(float(gap))}"
    if p < LEVEL:
        return over_seeds.Tested(FAILS, p, words)
    if near.verdict == HOLDS and gap < LEVEL:
        return over_seeds.Tested(HOLDS, p, words)
    return over_seeds.Tested(UNCONTRADICTED if gap < LEVEL else UNDECIDED, p, words)


@CLAIMS.add(
    "7-large-width", "v1 and ICLR §7",
    "The main results hold at finite but large width, too: κ falls and φ grows with depth.",
    kind=BELIEF, artefact=ON_WIDTHS,
)  # fmt: skip
def main_results_at_large_width(width: Table) -> Findings:
    """At the largest width of the sweep. Depths with an unresolved κ are left out; their min φ is
    known."""
    relu = width[(width.activation == "relu") & np.isfinite(width.width)]
    for dataset, every in relu.groupby("dataset", sort=False):
        widest = every[every.width == every.width.max()]
        if widest.depth.nunique() < 2:
            continue
        lost = sorted(widest[widest.verdict == "unresolved"].depth.unique())
        resolved = widest[~widest.depth.isin(lost)]
        where = f"{title(dataset)}, m = {widest.width.iloc[0]:g}, n = {widest.n.iloc[0]}"
        for column, direction, rows in (("kappa", -1, resolved), ("min_angle_deg", +1, widest)):
            shown = rows.groupby("depth")[column]
            shown = shown.median() if column == "kappa" else shown.mean()
            logs = _by_seed(rows, column, "depth")
            words, rise = [], trend.Trend(UNDECIDED)
            if len(shown) > 1:
                rise = trend.rising(
                    direction * logs.mean().to_numpy(), len(logs), *trend.by_depth(logs.to_numpy())
                )
                words.append(over_seeds.ONE_SEED if len(logs) == 1 else f"{len(logs)} seeds")
                if not math.isnan(rise.p):
                    confirmed = sum(step < LEVEL for step in rise.steps)
                    words.append(f"{confirmed} of {len(rise.steps)} steps confirmed")
            if lost and column == "kappa":
                words.append(f"κ unresolved at L = {', '.join(map(str, lost))}")
            if column == "kappa" and _repeats(widest):
                words.append(REPEATS)
                rise = trend.Trend(UNDECIDED)
            unit = " (degrees)" if column == "min_angle_deg" else ""
            depths = ", ".join(map(str, shown.index)) or "–"
            yield judged(
                where, f"{QUANTITIES[column]}{unit} at L = {depths}",
                "falls" if direction < 0 else "grows", ", ".join(map(short, shown)),
                ", ".join(words), rise.verdict, rise.p,
            )  # fmt: skip
