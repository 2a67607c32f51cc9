"""Claims about data, judged from the tables of the artefacts: of whatever data sets they show.

At finite width κ and angles are random. They are compared by their means over seeds (of log κ, over
all blocks). What is said to go on with depth has to go in the right direction on the whole by more
than the spread of the seeds explains, and in no step against it by more than that; with fewer than
three seeds, which have no spread to speak of, the means alone decide. Only ReLU networks all of
whose weights are trained are looked at, where not said otherwise.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr, t

from ntkcond.artefacts.claims.claim import Claim, Evidence, Finding, interval, short
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS

LEVEL = 0.05  # of all steps of a curve together (Bonferroni)
SIMILAR = 0.15  # by how much "similar" may differ, relative
SMALL_DEG = 30  # "similar data" in figures of φ against θ


class _Steps(NamedTuple):
    """How many steps, how many in the right direction; the largest in the wrong one (negative where
    there is none) and what of it the spread of the seeds explains; whether all is as it should."""

    count: int
    right: int
    worst: float
    explained: float
    holds: bool


class _Curve(NamedTuple):
    """A quantity against depth: a row for each seed (one, exact, at infinite width), a column for
    each depth."""

    dataset: str
    where: str
    infinite: bool
    values: pd.DataFrame

    @property
    def means(self) -> pd.Series:
        return self.values.mean(skipna=False)

    def hidden(self) -> "_Curve":
        """Its depths from 1 on."""
        return self._replace(values=self.values[[depth for depth in self.values if depth > 0]])

    def steps(self, direction: int) -> _Steps:
        """Whether it goes in the direction (+1: up) from depth to depth."""
        depths = list(self.values)
        change = direction * (self.values[depths[-1]] - self.values[depths[0]])
        steps = direction * pd.concat(
            [self.values[b] - self.values[a] for a, b in itertools.pairwise(depths)], axis=1
        )
        means = steps.mean(skipna=False).to_numpy()
        explained, least = np.zeros(len(means)), 0.0
        if len(steps) >= 3:
            root, freedom = math.sqrt(len(steps)), len(steps) - 1
            explained = (steps.std() / root * t.ppf(1 - LEVEL / len(means), freedom)).to_numpy()
            least = change.std() / root * t.ppf(1 - LEVEL, freedom)
        worst = int(np.argmin(means))
        holds = bool((means > -explained).all() and change.mean() > least)
        right = int((means > 0).sum())
        return _Steps(len(means), right, -means[worst], explained[worst], holds)


def _curves(evidence: Evidence, quantity: str, activation: str) -> Iterator[_Curve]:
    """Of log κ or of min φ in degrees: for each data set that at the width measured, and the one at
    infinite width. Where a κ of ReLU networks is unresolved, there is none; a linear one then
    counts as its lower bound."""
    table = "conditioning" if quantity == "kappa" else "angles"
    if table not in evidence:
        return
    rows = evidence[table]
    rows = rows[(rows.activation == activation) & (rows.trainable == "all")]
    limits = evidence.get("infinite", rows[:0])
    for dataset, own in rows.groupby("dataset", sort=False):
        limit = limits[(limits.dataset == dataset) & (limits.activation == activation)]
        for infinite, each in ((False, own), (True, limit)):
            values = _values(each, quantity, activation)
            if values is not None:
                where = f"{title(dataset)}, m = {'∞' if infinite else own.width.iloc[0]}"
                where += f", n = {own.n.iloc[0]}" if quantity == "kappa" else ""
                yield _Curve(dataset, where, infinite, values)


def _values(rows: pd.DataFrame, quantity: str, activation: str) -> pd.DataFrame | None:
    """Of a curve: by seed and depth, means over blocks."""
    value = rows.min_angle_deg if quantity != "kappa" else np.log(_kappa(rows))
    if quantity == "kappa" and activation == "relu" and (rows.verdict == "unresolved").any():
        return None
    table = rows.assign(value=value).pivot_table("value", "seed", "depth", aggfunc="mean")
    return None if table.empty else table


def _kappa(rows: pd.DataFrame) -> pd.Series:
    return rows.kappa.where(rows.verdict != "unresolved", rows.kappa_lower)


def _ratios(
    where: str, quantity: str, ratios: pd.Series, below: bool, spread: str = ""
) -> Iterator[Finding]:
    """A finding on ratios at several depths, all of which are to be below (or above) 1; of ∞/∞
    there is none."""
    known = ratios.dropna()
    if len(known):
        worst = known.max() if below else 1 / known.min()
        expected = "< 1" if below else "> 1"
        yield Finding(where, quantity, expected, interval(known), spread, bool(worst < 1))


def _pairs(evidence: Evidence, quantity: str) -> Iterator[tuple[_Curve, pd.Series]]:
    """ReLU's curve with the means of the linear one of the same samples and width, at L ≥ 1."""
    linear = {(c.dataset, c.infinite): c.means for c in _curves(evidence, quantity, "linear")}
    for relu in _curves(evidence, quantity, "relu"):
        if (relu.dataset, relu.infinite) in linear:
            yield relu.hidden(), linear[relu.dataset, relu.infinite]


def wider_than_linear(evidence: Evidence) -> Iterator[Finding]:
    for relu, linear in _pairs(evidence, "angle"):
        ratio = (relu.means / linear).reindex(relu.values.columns)
        yield from _ratios(relu.where, "min φ of ReLU / of linear, over L ≥ 1", ratio, below=False)


def separation_grows(evidence: Evidence) -> Iterator[Finding]:
    for relu in _curves(evidence, "angle", "relu"):
        if len(relu.values.columns) > 1:
            steps = relu.steps(+1)
            fall = (
                f"largest fall {short(steps.worst)}°, the seeds explain {short(steps.explained)}°"
            )
            yield Finding(
                relu.where, "steps in depth with which min φ of ReLU grows",
                f"{steps.count} of {steps.count}", f"{steps.right} of {steps.count}",
                fall if steps.worst > 0 else "", steps.holds,
            )  # fmt: skip


def linear_keeps_angles(evidence: Evidence) -> Iterator[Finding]:
    for curve in _curves(evidence, "angle", "linear"):
        ratio = curve.hidden().means / curve.means.get(0, math.nan)
        if not curve.infinite and ratio.notna().any():  # there φ̄ = θ by its formula
            yield Finding(
                curve.where, "min φ̄ / min θ, over L ≥ 1", "1", interval(ratio), "",
                bool((ratio - 1).abs().max() < SIMILAR),
            )  # fmt: skip


def better_than_linear(evidence: Evidence) -> Iterator[Finding]:
    for relu, linear in _pairs(evidence, "kappa"):
        with np.errstate(invalid="ignore"):
            ratio = np.exp(relu.means - linear).reindex(relu.values.columns)
        what = "κ of ReLU / κ̄ of linear, over L ≥ 1"
        yield from _ratios(relu.where, what, ratio, True, _infinite(linear, "κ̄"))


def better_than_gram(evidence: Evidence) -> Iterator[Finding]:
    for curve in _curves(evidence, "kappa", "relu"):
        if 0 in curve.values:
            with np.errstate(invalid="ignore"):
                ratio = np.exp(curve.hidden().means - curve.means[0])
            gram = curve.means[[0]]
            yield from _ratios(curve.where, "κ/κ₀, over L ≥ 1", ratio, True, _infinite(gram, "κ₀"))


def _infinite(means: pd.Series, name: str) -> str:
    return f"{name} = ∞" if np.isinf(means).all() else ""


def falls_with_depth(evidence: Evidence) -> Iterator[Finding]:
    for curve in _curves(evidence, "kappa", "relu"):
        curve = curve.hidden()
        if len(curve.values.columns) < 2:
            continue
        steps = curve.steps(-1)
        rise, explained = (
            short(100 * math.expm1(value)) for value in (steps.worst, steps.explained)
        )
        yield Finding(
            curve.where, "steps in depth, from L = 1 on, with which κ falls",
            f"{steps.count} of {steps.count}", f"{steps.right} of {steps.count}",
            f"largest rise {rise} %, the seeds explain {explained} %" if steps.worst > 0 else "",
            steps.holds,
        )  # fmt: skip


def smallest_eigenvalue_rises(evidence: Evidence) -> Iterator[Finding]:
    """λ_min of resolved NTKs against that of the same block at L = 0."""
    if "conditioning" not in evidence:
        return
    rows = evidence["conditioning"]
    rows = rows[(rows.activation == "relu") & (rows.trainable == "all")]
    for dataset, own in rows.groupby("dataset", sort=False):
        table = own.where(own.verdict == "resolved").assign(depth=own.depth)
        table = table.pivot_table("lambda_min", ["seed", "block"], "depth", aggfunc="first")
        if 0 in table and len(table.columns) > 1:
            ratio = table.drop(columns=0).div(table[0], axis=0).min()
            where = f"{title(dataset)}, m = {own.width.iloc[0]}, n = {own.n.iloc[0]}"
            what = "λ_min(K)/λ_min(G), the least of all blocks, over L ≥ 1"
            yield from _ratios(where, what, ratio, below=False)


def linear_is_finite(evidence: Evidence) -> Iterator[Finding]:
    if "conditioning" not in evidence:
        return
    rows = evidence["conditioning"]
    for dataset, own in rows[rows.activation == "linear"].groupby("dataset", sort=False):
        counts = own.verdict.value_counts()
        singular, unresolved = counts.get("singular", 0), counts.get("unresolved", 0)
        said = f"; a naive λ_max/λ_min would be {interval(own.lambda_max / own.lambda_min)}"
        yield Finding(
            f"{title(dataset)}, n = {own.n.iloc[0]}, all L", "linear NTKs that are singular",
            f"0 of {len(own)}",
            f"{singular} of {len(own)}, of rank ≤ {own.rank_bound.max()}{said if singular else ''}",
            f"{unresolved} unresolved" if unresolved else "", singular + unresolved == 0,
        )  # fmt: skip


def linear_keeps_kappa(evidence: Evidence) -> Iterator[Finding]:
    """Of singular NTKs, by the non-zero spectrum."""
    if "conditioning" not in evidence:
        return
    rows = evidence["conditioning"]
    rows = rows[(rows.activation == "linear") & (rows.trainable == "all")]
    for dataset, own in rows.groupby("dataset", sort=False):
        table = own.assign(value=np.log(own.nonzero_kappa)).pivot_table(
            "value", "seed", "depth", aggfunc="mean"
        )
        deepest = table.columns.max()
        if 0 not in table or deepest == 0:
            continue
        change = table[deepest] - table[0]
        error = change.std() / math.sqrt(len(change)) if len(change) > 1 else 0.0
        ratio = np.exp(table.mean() - table[0].mean())
        yield Finding(
            f"{title(dataset)}, m = {own.width.iloc[0]}, n = {own.n.iloc[0]}",
            f"κ̄(L = {deepest})/κ₀, of the non-zero spectrum", "1", short(ratio[deepest]),
            f"± {short(ratio[deepest] * error)}", bool((ratio - 1).abs().max() < SIMILAR),
        )  # fmt: skip


def first_layer_on_data(evidence: Evidence) -> Iterator[Finding]:
    """Against κ₀ of the same blocks."""
    if "first_layer" not in evidence or "conditioning" not in evidence:
        return
    gram = evidence["conditioning"].query("activation == 'relu' and depth == 0")
    rows = evidence["first_layer"]
    for (dataset, width), own in rows.groupby(["dataset", "width"], sort=False):
        same = gram[(gram.dataset == dataset) & gram.block.isin(own.block)]
        if same.empty or (own.verdict == "unresolved").any():
            continue
        kappa, kappa0 = (math.exp(np.log(_kappa(each)).mean()) for each in (own, same))
        if math.isinf(kappa):
            continue
        yield Finding(
            f"{title(dataset)}, m = {short(width)}, n = {own.n.iloc[0]}", "κ of W¹ alone / κ₀",
            "< 1", short(kappa / kappa0), f"κ = {short(kappa)}, κ₀ = {short(kappa0)}",
            kappa < kappa0,
        )  # fmt: skip


def trains_faster(evidence: Evidence) -> Iterator[Finding]:
    """No deeper network later than the next shallower one by more than an epoch or twice the
    standard error, and epochs falling with depth in rank."""
    if "table_epochs" not in evidence or "fig3" not in evidence:
        return
    figure = evidence["fig3"]
    relu = figure[figure.activation == "relu"].dataset.unique()
    rows = evidence["table_epochs"]
    rows = rows[(rows.rate_for == "depth") & rows.dataset.isin(relu)].sort_values("depth")
    for (dataset, threshold), own in rows.groupby(["dataset", "threshold"], sort=False):
        epochs = own.epochs_mean.fillna(np.inf)
        if epochs.nunique() < 2:
            continue
        correlation = spearmanr(own.depth, epochs).statistic
        errors = (own.epochs_std.fillna(0) ** 2 / own.seeds).to_numpy()
        margin = np.maximum(1, 2 * np.sqrt(errors[1:] + errors[:-1]))
        reached = epochs.to_numpy()
        with np.errstate(invalid="ignore"):  # ∞ − ∞ tells nothing
            later = reached[1:] - reached[:-1] > margin
        yield Finding(
            f"{title(dataset)}, to a loss of {threshold:g}",
            "rank correlation of epochs with depth", "−1", f"{correlation:+.2f}".replace("-", "−"),
            f"epochs {interval(own.epochs_mean.dropna())}, {own.seeds.max()} seeds",
            bool(correlation < -0.5 and not later.any()),
        )  # fmt: skip


def _descents(evidence: Evidence) -> Iterator[tuple[str, pd.DataFrame]]:
    """The curves of fig_descent at 1/λ_max, where κ alone bounds the rate."""
    if "fig_descent" in evidence:
        rows = evidence["fig_descent"]
        rows = rows[(rows.rule == "own") & (rows.activation == "relu")]
        for dataset, own in rows.groupby("dataset", sort=False):
            yield dataset, own.sort_values(["depth", "step"])


def bounded_by_kappa(evidence: Evidence) -> Iterator[Finding]:
    """Of the loss; the figure draws the residual, its root, against (1 − 1/κ)ᵗ."""
    for dataset, every in _descents(evidence):
        for depth, own in every[every.step > 0].groupby("depth"):
            loss, bound = own.residual**2, (1 - 1 / own.kappa) ** own.step
            yield Finding(
                f"{title(dataset)}, L = {depth}, η = 1/λ_max, {own.step.max()} steps",
                "loss / (1 − 1/κ)ᵗ, the largest of all t", "≤ 1", short((loss / bound).max()), "",
                bool((loss <= bound).all()),
            )  # fmt: skip


def descends_faster(evidence: Evidence) -> Iterator[Finding]:
    for dataset, every in _descents(evidence):
        own = every.drop_duplicates("depth")
        if len(own) < 2:
            continue
        rates = own.measured_rate.to_numpy()
        with np.errstate(divide="ignore"):
            logs = np.log(rates)
        error = np.nan_to_num(own.log_rate_std.to_numpy()) / np.sqrt(own.seeds.to_numpy())
        slower = np.diff(logs) > 2 * np.hypot(error[1:], error[:-1])
        yield Finding(
            f"{title(dataset)}, η = 1/λ_max of each, L = {own.depth.min()} to {own.depth.max()}",
            "steps in depth with which the residual falls faster",
            f"{len(rates) - 1} of {len(rates) - 1}",
            f"{int((np.diff(rates) < 0).sum())} of {len(rates) - 1}",
            f"factor a step {rates[0]:.5f} to {rates[-1]:.5f}",
            bool(not slower.any() and rates[-1] < rates[0]),
        )  # fmt: skip


def accuracy_of_table_1(evidence: Evidence) -> Iterator[Finding]:
    """Only of the whole of MNIST."""
    if "table_generalization" not in evidence:
        return
    rows = evidence["table_generalization"]
    rows = rows[rows.paper_test_accuracy_percent.notna() & (rows.samples == 60_000)]
    for row in rows.itertuples():
        spread = 0.0 if math.isnan(row.test_accuracy_percent_std) else row.test_accuracy_percent_std
        stated, found = row.paper_test_accuracy_percent, row.test_accuracy_percent_mean
        yield Finding(
            f"{title(row.dataset)}, L = {row.depth}, {row.epochs} epochs", "test accuracy (%)",
            short(stated), short(found), f"± {short(spread)}",
            abs(found - stated) < max(3 * spread, 0.3),
        )  # fmt: skip


def depth_costs_accuracy(evidence: Evidence) -> Iterator[Finding]:
    """Where the accuracies at the best and the deepest differ by more than their errors."""
    if "table_generalization" not in evidence:
        return
    rows = evidence["table_generalization"].dropna(subset="test_accuracy_percent_mean")
    for dataset, own in rows.groupby("dataset", sort=False):
        own = own.set_index("depth").sort_index()
        accuracy = own.test_accuracy_percent_mean
        variance = own.test_accuracy_percent_std.fillna(0) ** 2 / own.seeds
        shallowest, best, deepest = accuracy.index[0], accuracy.idxmax(), accuracy.index[-1]
        error = math.sqrt(variance[best] + variance[deepest])
        lost = accuracy[best] - accuracy[deepest]
        if len(own) < 3 or (best != deepest and lost <= 2 * error):
            continue
        yield Finding(
            f"{title(dataset)}, L = {shallowest} to {deepest}",
            "test accuracy (%) at its best depth and at the deepest", "best in between",
            f"{short(accuracy[best])} at L = {best}, {short(accuracy[deepest])}",
            f"± {short(error)}", bool(shallowest < best < deepest),
        )  # fmt: skip


def other_activations(evidence: Evidence) -> Iterator[Finding]:
    if "fig_activations" not in evidence:
        return
    rows = evidence["fig_activations"]
    rows = rows[(rows.theta_in_deg > 0) & (rows.theta_in_deg <= SMALL_DEG)]
    for activation, own in rows.groupby("activation", sort=False):
        phi = own.pivot_table("phi_deg", "depth", "theta_in_deg")
        gain, steps = phi / phi.columns, np.diff(phi, axis=0)
        setting = f"{ACTIVATIONS[activation].title}, θ ≤ {SMALL_DEG}°, L = {phi.index.min()} to "
        setting += f"{phi.index.max()}"
        yield Finding(
            setting, "φ/θ", "> 1", interval(gain.to_numpy().ravel()), "",
            bool(gain.to_numpy().min() > 1),
        )  # fmt: skip
        if steps.size:
            yield Finding(
                setting, "growth of φ from depth to depth (degrees)", "> 0",
                interval(steps.ravel()), "", bool(steps.min() > 0),
            )  # fmt: skip


def _of_activations(evidence: Evidence) -> Iterator[tuple[str, str, float, pd.DataFrame]]:
    """Activation, where, κ₀ and the rows by depth, for each data set and width."""
    if "fig_activations_ntk" not in evidence:
        return
    rows = evidence["fig_activations_ntk"]
    gram = rows[(rows.activation == "linear") & np.isinf(rows.width)]
    for (dataset, width, name), own in rows.groupby(["dataset", "width", "activation"], sort=False):
        kappa0 = gram[gram.dataset == dataset].kappa_median
        if len(kappa0):
            own = own.sort_values("depth")
            where = f"{title(dataset)}, m = {short(width)}, n = {own.n.iloc[0]}, "
            where += f"L = {own.depth.iloc[0]} to {own.depth.iloc[-1]}"
            yield name, where, kappa0.iloc[0], own


def _against_depth(activation: str, direction: int) -> Callable[[Evidence], Iterator[Finding]]:
    """κ of the activation is to be beyond κ₀ in the direction at every depth, and to move on with
    every layer; as corrected, the latter, beyond κ₀ only in the end."""

    def test(evidence: Evidence) -> Iterator[Finding]:
        for name, where, kappa0, own in _of_activations(evidence):
            kappa = own.kappa_median.to_numpy()
            if name != activation or len(kappa) < 2:
                continue
            unresolved = int(own.unresolved.sum())
            beyond = direction * (kappa - kappa0) > 0
            moving = bool((direction * np.diff(kappa) > 0).all())
            yield Finding(
                where, f"κ of {name} / κ₀", "< 1, falling" if direction < 0 else "> 1, rising",
                f"{short(kappa[0] / kappa0)} to {short(kappa[-1] / kappa0)}",
                f"{unresolved} unresolved, as lower bounds" if unresolved else "",
                moving and bool(beyond.all()), moving and bool(beyond[-1]),
            )  # fmt: skip

    return test


def others_are_better(evidence: Evidence) -> Iterator[Finding]:
    """Every activation but ReLU and linear, deepest network."""
    for name, where, kappa0, own in _of_activations(evidence):
        if name not in ("relu", "linear"):
            deepest = own.iloc[-1]
            lost = "unresolved, as lower bounds" if deepest.unresolved else ""
            yield Finding(
                f"{where.rpartition(',')[0]}, L = {deepest.depth}",
                f"κ of {ACTIVATIONS[name].title} / κ₀", "< 1",
                short(deepest.kappa_median / kappa0), lost,
                bool(deepest.kappa_median < kappa0 and not deepest.unresolved),
            )  # fmt: skip


def weight_scale(evidence: Evidence) -> Iterator[Finding]:
    if "fig_weight_scale" not in evidence:
        return
    for activation, own in evidence["fig_weight_scale"].groupby("activation", sort=False):
        phi = own.pivot_table("phi_deg", "weight_variance", "theta_in_deg")
        apart = float((phi.max() - phi.min()).max())
        yield Finding(
            f"{ACTIVATIONS[activation].title}, σ_w² = {phi.index.min():g} to {phi.index.max():g}",
            "largest difference of φ between them (degrees)", "> 0", short(apart), "", apart > 1e-6,
        )  # fmt: skip


def _extrapolated(own: pd.DataFrame) -> float:
    """From the two deepest, an error of order 1/L removed."""
    (l1, v1), (l2, v2) = own.sort_values("depth")[["depth", "value"]].to_numpy()[-2:]
    return (l2 * v2 - l1 * v1) / (l2 - l1)


def _infinite_depth(
    quantity: str, stated: Callable[[pd.Series], float], tolerance: float, corrects: bool = False
) -> Callable[[Evidence], Iterator[Finding]]:
    """stated: from a row of fig_infinite_depth.csv the limit that the text has; tolerance: of a
    limit, relative; corrects: whether the figure's own limit is the text's but for a slip."""

    def test(evidence: Evidence) -> Iterator[Finding]:
        if "fig_infinite_depth" not in evidence:
            return
        rows = evidence["fig_infinite_depth"]
        rows = rows[rows.quantity == quantity]
        by, sign, unit = ("theta_in_deg", "θ", "°") if quantity == "phi_deg" else ("n", "n", "")
        first = rows.groupby(by).first()
        found = pd.Series({value: _extrapolated(own) for value, own in rows.groupby(by)})
        text = first.apply(stated, axis=1)
        yield Finding(
            f"{sign} = {', '.join(f'{value:g}{unit}' for value in found.index)}; "
            f"L = {rows.depth.max()}, extrapolated",
            "φ (degrees)" if quantity == "phi_deg" else "κ of inputs of norm 1",
            ", ".join(dict.fromkeys(map(short, text))),
            ", ".join(map(short, found)), "",
            bool(((found / text - 1).abs() < tolerance).all()),
            corrects and bool(((found / first.limit - 1).abs() < tolerance).all()),
        )  # fmt: skip

    return test


def towards_infinite_width(evidence: Evidence) -> Iterator[Finding]:
    if "fig_width" not in evidence:
        return
    rows = evidence["fig_width"]
    rows = rows[rows.activation == "relu"]
    for (dataset, depth), own in rows.groupby(["dataset", "depth"], sort=False):
        limit = own[np.isinf(own.width)]
        finite = own[np.isfinite(own.width)].set_index("width").sort_index()
        if limit.empty or len(finite) < 2:
            continue
        for column, words in (("kappa_median", "κ/κ(∞)"), ("min_angle_deg_mean", "min φ/min φ(∞)")):
            ratio = finite[column] / limit[column].iloc[0]
            off = (ratio - 1).abs()
            if not np.isfinite(off).all():
                continue
            yield Finding(
                f"{title(dataset)}, L = {depth}, n = {own.n.iloc[0]}",
                f"{words} at m = {', '.join(f'{width:g}' for width in ratio.index)}", "→ 1",
                ", ".join(f"{value:.2f}" for value in ratio), "",
                bool(off.iloc[-1] < max(off.iloc[0] / 3, 0.05)),
            )  # fmt: skip


def nothing(_: Evidence) -> Iterator[Finding]:
    yield from ()


CLAIMS = [
    Claim(
        "5.1-data",
        "v1 Thm 5.1, ICLR Thm 5.3, newest Thm 4.2",
        "Thm 5.1 on data, also at finite width: κ of the first layer's weights is below κ₀.",
        first_layer_on_data,
        artefact="sweeps/first_layer, conditioning",
    ),
    Claim(
        "5-separated",
        "v1 and ICLR §5.2 and Fig. 2 (left), newest Fig. 3 (left)",
        "The smallest gradient angle of ReLU networks is larger than that of linear ones.",
        wider_than_linear,
        artefact="angles and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "5-separation-grows",
        "v1 and ICLR §4, newest Fig. 3 (left)",
        "The smallest gradient angle of ReLU networks grows with depth.",
        separation_grows,
        artefact="angles and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "5-linear-angles",
        "v1 and ICLR Fig. 2 (left)",
        "The smallest gradient angle of linear networks stays that of the inputs.",
        linear_keeps_angles,
        artefact="angles",
    ),
    Claim(
        "5-better",
        "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)",
        "κ of ReLU networks is below that of linear ones.",
        better_than_linear,
        artefact="conditioning and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "5-better-than-gram",
        "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)",
        "κ of ReLU networks is below that of the linear model, κ₀.",
        better_than_gram,
        artefact="conditioning and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "5-falls",
        "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)",
        "κ of ReLU networks falls monotonically with depth.",
        falls_with_depth,
        artefact="conditioning and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "5-smallest",
        "newest summary",
        "The smallest eigenvalue of ReLU networks' NTK is above that of the Gram matrix.",
        smallest_eigenvalue_rises,
        artefact="conditioning",
    ),
    Claim(
        "5-linear-finite",
        "v1 and ICLR Fig. 2 (right), newest Fig. 3 (right)",
        "κ̄ of linear networks is a finite number on every data set.",
        linear_is_finite,
        "Of more samples than the rank of the inputs, κ̄ = ∞ exactly.",
        8,
        artefact="conditioning",
    ),
    Claim(
        "5-linear-kappa",
        "v1 and ICLR Fig. 2 (right)",
        "At finite width, too, linear networks keep κ₀ at every depth.",
        linear_keeps_kappa,
        "Only as m → ∞: at finite width κ̄ grows with depth.",
        9,
        artefact="conditioning",
    ),
    Claim(
        "6-bound",
        "v1 §6, Eq. 13; ICLR §6, Eq. 11",
        "Gradient descent on the square loss leaves at most (1 − 1/κ)ᵗ of it after t steps.",
        bounded_by_kappa,
        artefact="fig_descent",
    ),
    Claim(
        "6-worst-case",
        "v1 and ICLR §6 (a), newest summary",
        "The bound on gradient descent, 1 − 1/κ, is better for ReLU than for linear networks.",
        better_than_linear,
        artefact="conditioning and sweeps/infinite, drawn in fig2",
    ),
    Claim(
        "6-descent",
        "v1 and ICLR §6 (b)",
        "Deeper wide ReLU networks converge faster under gradient descent.",
        descends_faster,
        artefact="fig_descent",
    ),
    Claim(
        "6-training",
        "v1 and ICLR §6 and Fig. 3, newest Fig. 4",
        "On each data set, deeper networks always train faster than shallower ones.",
        trains_faster,
        artefact="table_epochs, fig3",
    ),
    Claim(
        "6-tradeoff",
        "newest Table 1 and summary",
        "Very deep networks generalise less well: the best test accuracy is in between.",
        depth_costs_accuracy,
        artefact="table_generalization",
        lacking="no data set whose accuracies differ by more than their errors",
    ),
    Claim(
        "6-table-1",
        "newest Table 1",
        "Test accuracies on MNIST at L = 1, 3, 6, 8, 10, 12.",
        accuracy_of_table_1,
        artefact="table_generalization",
        lacking="needs fig3 of all 60,000 MNIST images (config/paper.yaml, a GPU)",
    ),
    Claim(
        "7-finite-width",
        "v1 and ICLR §7",
        "As the width grows, κ and φ tend to those at infinite width.",
        towards_infinite_width,
        artefact="fig_width",
    ),
    Claim(
        "7-others",
        "v1 §7",
        "Similar results hold for other non-linear activations.",
        others_are_better,
        "For GELU and tanh; not for sigmoid, nor at finite width for a deep network of ReLU².",
        artefact="fig_activations_ntk",
    ),
    Claim(
        "7-orthogonal",
        "v1 and ICLR §7",
        "At infinite depth all gradients become orthogonal, φ → 90°.",
        _infinite_depth("phi_deg", lambda row: 90.0, 0.01),
        "φ → arccos(1/4) ≈ 75.52° (newest Thm 3.5).",
        7,
        artefact="fig_infinite_depth",
    ),
    Claim(
        "7-kappa-1",
        "v1 and ICLR §7",
        "At infinite depth κ → 1.",
        _infinite_depth("kappa", lambda row: 1.0, 0.002),
        "κ → (n + 3)/3 for inputs of norm 1.",
        7,
        artefact="fig_infinite_depth",
    ),
    Claim(
        "newest-3.5",
        "newest Thm 3.5",
        "At infinite depth φ → arccos(1/4) ≈ 75.52°, whatever the inputs.",
        _infinite_depth("phi_deg", lambda row: row.paper_limit, 0.01),
        artefact="fig_infinite_depth",
    ),
    Claim(
        "newest-4.3",
        "newest Thm 4.3",
        "At infinite depth κ → (n + 4)/3.",
        _infinite_depth("kappa", lambda row: row.paper_limit, 0.002, corrects=True),
        "κ → (n + 3)/3 for inputs of norm 1.",
        7,
        artefact="fig_infinite_depth",
    ),
    Claim(
        "newest-fig-2",
        "newest Fig. 2",
        "ReLU², GELU and tanh separate similar inputs better, too, and more so when deeper.",
        other_activations,
        artefact="fig_activations",
    ),
    Claim(
        "newest-fig-6",
        "newest Fig. 6",
        "φ(θ) differs between four scales of the weights.",
        weight_scale,
        "For ReLU without biases nothing depends on it; for tanh it does.",
        12,
        artefact="fig_weight_scale",
    ),
    Claim(
        "F-tanh",
        "ICLR §1, on its Appendix F",
        "tanh lowers κ, the more the deeper.",
        _against_depth("tanh", -1),
        artefact="fig_activations_ntk",
    ),
    Claim(
        "F-sigmoid",
        "ICLR §1, on its Appendix F",
        "sigmoid raises κ, the more the deeper.",
        _against_depth("sigmoid", +1),
        "κ rises with every layer; after the first it can still be below κ₀.",
        artefact="fig_activations_ntk",
    ),
    Claim(
        "newest-rest",
        "newest Cor. 3.3, Remarks 2.1 and 3.6, and those without a name",
        "Statements of which the summary page gives a name at most.",
        nothing,
        artefact="",
        lacking="their text is not at hand",
    ),
]
