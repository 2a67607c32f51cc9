"""Claims about κ and angles on data, judged from the tables of the artefacts.

At finite width κ and angles are random. They are compared by their means over seeds (of log κ, over
all blocks); what should rise or fall with depth is judged as in `ntkcond.artefacts.claims.trend`,
and with one seed, of which the spread is unknown, not at all. A depth with an unresolved κ is left
out, and named. All networks are ReLU networks with all weights trained, where not said otherwise.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from ntkcond.artefacts.claims import trend
from ntkcond.artefacts.claims.claim import (
    FAILS,
    HOLDS,
    UNDECIDED,
    VACUOUS,
    Claims,
    Finding,
    Findings,
    bounded,
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
SMALL_DEG = 30  # "similar data" in figures of φ against θ
REPEATS = "a block repeats samples, which the paper excludes: κ = ∞ at every depth"
ON_ANGLES = "angles and sweeps/infinite, drawn in fig2"
ON_KAPPAS = "conditioning and sweeps/infinite, drawn in fig2"
FIG_2_RIGHT = "v1 and ICLR §5.2 and Fig. 2 (right), newest §4.1 and Fig. 3 (right)"
FIG_2_LEFT = "v1 and ICLR §5.2 and Fig. 2 (left), newest §4.1 and Fig. 3 (left)"
Table = pd.DataFrame
CLAIMS = Claims()


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
    if curve.infinite:
        verdict = trend.exactly_rising(means)
    else:
        verdict = trend.rising(means, seeds, variances, freedom)
        if words and np.nansum(variances):
            words.append(f"p = {short(trend.contradiction(means, variances, freedom))}")
        words += ["one seed"] * (seeds == 1)
    count = len(steps)
    yield judged(
        f"{curve.where}, L = {depths[0]} to {depths[-1]}", quantity, f"{count} of {count}",
        f"{(steps > 0).sum()} of {count}", curve.note(", ".join(words)), verdict,
    )  # fmt: skip


def _ratios(
    relu: _Curve,
    quantity: str,
    ratios: pd.Series,
    expected: str,
    infinite: str = "",
    lower: tuple[int, ...] = (),
) -> Findings:
    """A finding on ratios at several depths; none if all are ∞/∞. infinite: the name of a
    denominator that is ∞ at every depth, below which κ is without fail. lower: the depths at which
    the denominator is a lower bound: there a ratio below 1 holds, and another says nothing."""
    known = ratios.dropna()
    unsure = [depth for depth in known.index if depth in lower and known[depth] >= 1]
    sure = known.drop(unsure)
    if relu.repeats or (known.empty and relu.unresolved):
        yield judged(relu.where, quantity, expected, "–", relu.note(), UNDECIDED)
    elif infinite and len(known):
        words = relu.note(f"{infinite} = ∞")
        yield judged(relu.where, quantity, expected, interval(known), words, VACUOUS)
    elif unsure and (sure < 1).all():
        words = relu.note(f"κ̄ unresolved at L = {', '.join(map(str, unsure))}, a lower bound")
        measured = interval(sure) if len(sure) else "–"
        yield judged(relu.where, quantity, expected, measured, words, UNDECIDED)
    elif len(known):
        yield bounded(relu.where, quantity, sure, expected, relu.note())


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
        yield from _ratios(relu, "min φ of ReLU / of linear, over L ≥ 1", ratio, "> 1")


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
        ratio = curve.hidden.means / curve.means.get(0, math.nan)
        if ratio.notna().any():
            holds = (ratio - 1).abs().max() < SIMILAR
            quantity = "min φ̄ / min θ, over L ≥ 1"
            yield Finding(curve.where, quantity, "1", interval(ratio), "", holds)


@CLAIMS.add(
    "6-worst-case", "v1 and ICLR §6 (a), newest §5 (a)",
    "The bound on gradient descent, 1 − 1/κ, is better for ReLU than for linear networks.",
    artefact=ON_KAPPAS,
)  # fmt: skip
@CLAIMS.add(
    "5-better", FIG_2_RIGHT, "κ of ReLU networks is below that of linear ones.", artefact=ON_KAPPAS
)
def better_than_linear(conditioning: Table, infinite: Table | None = None) -> Findings:
    quantity = "κ of ReLU / κ̄ of linear, over L ≥ 1"
    for relu, linear in _pairs(conditioning, infinite):
        ratio = np.exp(relu.means - linear.means).reindex(relu.values.columns)
        singular = "κ̄" if np.isinf(linear.means).all() else ""
        yield from _ratios(relu, quantity, ratio, "< 1", singular, linear.unresolved)


@CLAIMS.add(
    "5-better-than-gram", FIG_2_RIGHT, "κ of ReLU networks is below that of the linear model, κ₀.",
    artefact=ON_KAPPAS,
)  # fmt: skip
def better_than_gram(conditioning: Table, infinite: Table | None = None) -> Findings:
    for curve in _curves(conditioning, infinite, "relu"):
        kappa0 = curve.means.get(0, math.nan)
        ratio = np.exp(curve.hidden.means - kappa0)
        infinite_gram = "κ₀" if math.isinf(kappa0) else ""
        yield from _ratios(curve, "κ/κ₀, over L ≥ 1", ratio, "< 1", infinite_gram)


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
            ratio = table.drop(columns=0).div(table[0], axis=0).min().dropna()
            if len(ratio):
                yield bounded(_where(rows), quantity, ratio, "> 1")


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
    """Of singular NTKs, by the non-zero spectrum."""
    for _, rows in _networks(conditioning, "linear"):
        logs = rows.assign(value=np.log(rows.nonzero_kappa))
        table = logs.pivot_table("value", "seed", "depth", aggfunc="mean")
        deepest = table.columns.max()
        if 0 not in table or deepest == 0:
            continue
        change = table[deepest] - table[0]
        error = change.std() / math.sqrt(len(change)) if len(change) > 1 else 0.0
        ratio = np.exp(table.mean() - table[0].mean())
        yield Finding(
            _where(rows), f"κ̄(L = {deepest})/κ₀, of the non-zero spectrum", "1",
            short(ratio[deepest]), f"± {short(ratio[deepest] * error)}",
            (ratio - 1).abs().max() < SIMILAR,
        )  # fmt: skip


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
        kappa, kappa0 = (math.exp(np.log(_kappa(kernels)).mean()) for kernels in (rows, same))
        lower = (same.verdict == "unresolved").any()
        if math.isfinite(kappa):
            yield judged(
                where, quantity, "< 1", short(kappa / kappa0),
                f"κ = {short(kappa)}, κ₀ {'≥' if lower else '='} {short(kappa0)}",
                UNDECIDED if lower and kappa >= kappa0 else _below(kappa, kappa0),
            )  # fmt: skip


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


def _of_activations(rows: Table) -> Iterator[tuple[str, str, float, Table]]:
    """Activation, where, κ₀ (NaN if unresolved) and the rows by depth, for each data set and
    width."""
    gram = rows[(rows.activation == "linear") & np.isinf(rows.width)]
    gram = gram.assign(kappa_median=gram.kappa_median.where(gram.unresolved == 0))
    groups = rows.groupby(["dataset", "width", "activation"], sort=False)
    for (dataset, width, name), curve in groups:
        if len(kappa0 := gram[gram.dataset == dataset].kappa_median):
            where = _where(curve, short(width))
            yield name, where, kappa0.iloc[0], curve.sort_values("depth")


def _against_depth(table: Table, activation: str, direction: int) -> Findings:
    """κ of the activation is to be beyond κ₀ in the direction at every depth, and to move that way
    with every layer; as corrected, the latter, beyond κ₀ only at the end. Depths with an unresolved
    κ are left out."""
    expected = "< 1, falling" if direction < 0 else "> 1, rising"
    for name, where, kappa0, every in _of_activations(table):
        curve = every[every.unresolved == 0]
        kappa, depth = curve.kappa_median.to_numpy(), curve.depth.to_numpy()
        if name != activation or len(every) < 2:
            continue
        setting, quantity = f"{where}, L = {interval(every.depth)}", f"κ of {name} / κ₀"
        left_out = ", ".join(f"{L}" for L in every.depth[every.unresolved > 0])
        spread = f"κ unresolved at L = {left_out}" if left_out else ""
        ratio = " to ".join(map(short, kappa[[0, -1]] / kappa0)) if len(kappa) else "–"
        moving = (direction * np.diff(kappa) > 0).all()
        below = math.isinf(kappa0) and (direction < 0 or moving)  # without fail
        unknown = len(kappa) < 2 or (math.isnan(kappa0) and moving)
        if unknown or below:
            neither = UNDECIDED if unknown or direction > 0 else VACUOUS
            why = "κ₀ = ∞" if below else "κ₀ unresolved" if math.isnan(kappa0) else ""
            spread = "; ".join(filter(None, (spread, why)))
            yield judged(setting, quantity, expected, ratio, spread, neither)
            continue
        beyond = direction * (kappa - kappa0) > 0
        yield Finding(
            f"{where}, L = {interval(depth)}", quantity, expected, ratio, spread,
            moving and beyond.all(), moving and beyond[-1],
        )  # fmt: skip


@CLAIMS.add("F-tanh", "ICLR §1, on its Appendix F", "tanh lowers κ, the more the deeper.")
def tanh_lowers_kappa(fig_activations_ntk: Table) -> Findings:
    return _against_depth(fig_activations_ntk, "tanh", -1)


@CLAIMS.add(
    "F-sigmoid", "ICLR §1, on its Appendix F", "sigmoid raises κ, the more the deeper.",
    "κ rises with every layer; after the first it can still be below κ₀.",
)  # fmt: skip
def sigmoid_raises_kappa(fig_activations_ntk: Table) -> Findings:
    return _against_depth(fig_activations_ntk, "sigmoid", +1)


@CLAIMS.add(
    "7-others", "v1 §7; newest conclusion: future work",
    "Similar results hold for other non-linear activations.",
    "They hold for GELU and tanh; not for sigmoid, nor at finite width for a deep network of"
    " ReLU².", conjecture=True,
)  # fmt: skip
def others_are_better(fig_activations_ntk: Table) -> Findings:
    """Every activation but ReLU and linear, deepest network. A lower bound above κ₀ decides."""
    for name, where, kappa0, curve in _of_activations(fig_activations_ntk):
        if name in ("relu", "linear"):
            continue
        deepest = curve.iloc[-1]
        kappa, verdict, spread = deepest.kappa_median, "", ""
        if deepest.unresolved:
            kappa, spread = deepest.kappa_lower_bound, "unresolved, a lower bound"
            verdict = FAILS if kappa > kappa0 else UNDECIDED
        yield judged(
            f"{where}, L = {deepest.depth}", f"κ of {ACTIVATIONS[name].title} / κ₀", "< 1",
            short(kappa / kappa0), spread, verdict or _below(kappa, kappa0),
        )  # fmt: skip


def _of_architectures(table: Table) -> Iterator[tuple[str, Table, Table | None]]:
    """For each data set and kind of network: where, and its rows by depth from 1 on, with and
    without ReLU."""
    hidden = table[table.depth > 0]
    for (dataset, name), rows in hidden.groupby(["dataset", "architecture"], sort=False):
        by_activation = {a: own.set_index("depth") for a, own in rows.groupby("activation")}
        if "relu" in by_activation:
            first = rows.iloc[0]
            words = ARCHITECTURES.get(name, name)
            where = f"{title(dataset)}, {words}, m = {first.width}, n = {first.n}"
            yield where, by_activation["relu"], by_activation.get("linear")


@CLAIMS.add(
    "ours-networks-better", "ours; networks beside the paper's",
    "With biases, residual, normalised and convolutional, too: κ with ReLU is below κ without.",
)  # fmt: skip
def better_beyond_the_papers_networks(fig_architectures: Table) -> Findings:
    """By medians. A κ without ReLU that is unresolved is larger than its bound, which decides."""
    for where, relu, linear in _of_architectures(fig_architectures):
        if linear is not None:
            lost = relu.index[relu.unresolved > 0]
            ratio = (relu.kappa_median / linear.kappa_median).dropna().drop(lost, errors="ignore")
            note = f"κ of ReLU unresolved at L = {', '.join(map(str, lost))}" if len(lost) else ""
            if len(ratio):
                yield bounded(where, "κ of ReLU / of linear, over L ≥ 1", ratio, "< 1", note)


@CLAIMS.add(
    "ours-networks-falls", "ours; networks beside the paper's",
    "In these networks, too, κ with ReLU is lower in the deepest than in the shallowest.",
    "Not in residual networks of these factors.",
)  # fmt: skip
def falls_beyond_the_papers_networks(fig_architectures: Table) -> Findings:
    """By medians over initialisations and blocks."""
    for where, relu, _ in _of_architectures(fig_architectures):
        resolved = relu[relu.unresolved == 0].sort_index()
        if len(resolved) > 1:
            low, high = resolved.index[0], resolved.index[-1]
            ratio = resolved.kappa_median[high] / resolved.kappa_median[low]
            yield bounded(where, f"κ(L = {high})/κ(L = {low})", ratio, "< 1")


@CLAIMS.add(
    "newest-2.1", "newest Remark 2.1", "With biases, results may be others.", conjecture=True,
)  # fmt: skip
def others_with_biases(fig_architectures: Table) -> Findings:
    """Supported where one of two results ends: κ of ReLU below that of linear, and falling."""
    biases = fig_architectures[fig_architectures.architecture == "biases"]
    for where, relu, linear in _of_architectures(biases):
        resolved = relu.kappa_median[relu.unresolved == 0].sort_index()
        if linear is not None and len(resolved) > 1:
            to_linear = (resolved / linear.kappa_median).max()
            falls = resolved.iloc[-1] / resolved.iloc[0]
            quantity = "largest of: κ of ReLU / of linear; κ of the deepest / of the shallowest"
            yield bounded(where, quantity, max(to_linear, falls), "> 1")


@CLAIMS.add(
    "newest-fig-6", "newest Appendix B and Fig. 6",
    "At each of four scales of the weights, similar inputs are separated better, φ > θ.",
    artefact="claims and fig_weight_scale",
)  # fmt: skip
def weight_scale(fig_weight_scale: Table) -> Findings:
    """Of ReLU networks, at several depths; of the figure, how far apart its four curves are."""
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
    found = moved / (deepest.depth - before.depth)
    text = deepest.paper_limit if limit is None else pd.Series(limit, found.index)
    yield Finding(
        f"{sign} = {', '.join(f'{value:g}{unit}' for value in found.index)}; "
        f"L = {rows.depth.max()}, extrapolated",
        "φ (degrees)" if quantity == "phi_deg" else "κ of inputs of norm 1",
        ", ".join(dict.fromkeys(map(short, text))), ", ".join(map(short, found)), "",
        ((found / text - 1).abs() < tolerance).all(),
        corrects and ((found / deepest.limit - 1).abs() < tolerance).all(),
    )  # fmt: skip


@CLAIMS.add(
    "7-orthogonal", "v1 and ICLR §7", "At infinite depth all gradients become orthogonal, φ → 90°.",
    "φ → arccos(1/4) ≈ 75.52° (newest Thm 3.5).", 7, conjecture=True,
)  # fmt: skip
def orthogonal(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "phi_deg", 90, 0.01)


@CLAIMS.add(
    "7-kappa-1", "v1 and ICLR §7", "At infinite depth κ → 1.",
    "κ → (n + 3)/3 for inputs of norm 1.", 7, conjecture=True,
)  # fmt: skip
def perfectly_conditioned(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "kappa", 1, 0.002)


@CLAIMS.add(
    "newest-3.5", "newest Thm 3.5",
    "At infinite depth φ → arccos(1/4) ≈ 75.52°, whatever the inputs.",
)  # fmt: skip
def angle_at_infinite_depth(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "phi_deg", None, 0.01)


@CLAIMS.add(
    "newest-4.3", "newest Thm 4.3", "At infinite depth κ → (n + 4)/3, for inputs of norm 1.",
    "κ → (n + 3)/3 for inputs of norm 1.", 7,
)  # fmt: skip
def kappa_at_infinite_depth(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "kappa", None, 0.002, corrects=True)


@CLAIMS.add(
    "7-finite-width", "v1 and ICLR §7",
    "As the width grows, κ and φ tend to those at infinite width.",
)  # fmt: skip
def towards_infinite_width(fig_width: Table) -> Findings:
    quantities = {"kappa_median": "κ/κ(∞)", "min_angle_deg_mean": "min φ/min φ(∞)"}
    relu = fig_width[(fig_width.activation == "relu") & (fig_width.unresolved == 0)]
    for (dataset, depth), rows in relu.groupby(["dataset", "depth"], sort=False):
        limit = rows[np.isinf(rows.width)]
        finite = rows[np.isfinite(rows.width)].set_index("width").sort_index()
        if limit.empty or len(finite) < 2:
            continue
        for column, words in quantities.items():
            ratio = finite[column] / limit[column].iloc[0]
            off = (ratio - 1).abs()
            if np.isfinite(off).all():
                yield Finding(
                    f"{title(dataset)}, L = {depth}, n = {rows.n.iloc[0]}",
                    f"{words} at m = {', '.join(f'{width:g}' for width in ratio.index)}", "→ 1",
                    ", ".join(f"{value:.2f}" for value in ratio), "",
                    off.iloc[-1] < max(off.iloc[0] / 3, 0.05),
                )  # fmt: skip


@CLAIMS.add(
    "7-large-width", "v1 and ICLR §7",
    "The main results hold at finite but large width, too: κ falls and φ grows with depth.",
    conjecture=True,
)  # fmt: skip
def main_results_at_large_width(fig_width: Table) -> Findings:
    """At the largest width of the sweep, whose seeds are too few for a test: by the medians.
    Depths with an unresolved κ are left out; their min φ is known."""
    relu = fig_width[(fig_width.activation == "relu") & np.isfinite(fig_width.width)]
    for dataset, rows in relu.groupby("dataset", sort=False):
        widest = rows[rows.width == rows.width.max()].sort_values("depth")
        if len(widest) < 2:
            continue
        resolved = widest[widest.unresolved == 0]
        left_out = ", ".join(map(str, widest.depth[widest.unresolved > 0]))
        where = f"{title(dataset)}, m = {widest.width.iloc[0]:g}, n = {widest.n.iloc[0]}"
        for column, words, direction, rows in (
            ("kappa_median", "κ", -1, resolved),
            ("min_angle_deg_mean", "min φ (degrees)", +1, widest),
        ):
            note = f"κ unresolved at L = {left_out}" if left_out and rows is resolved else ""
            yield Finding(
                where, f"{words} at L = {', '.join(map(str, rows.depth)) or '–'}",
                "falls" if direction < 0 else "grows", ", ".join(map(short, rows[column])), note,
                (direction * rows[column].diff().dropna() > 0).all(),
                neither=UNDECIDED if len(rows) < 2 else "",
            )  # fmt: skip
