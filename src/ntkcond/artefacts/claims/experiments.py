"""Claims about data, judged from the tables of the artefacts, for whatever data sets they have.

At finite width κ and angles are random. They are compared by their means over seeds (of log κ, over
all blocks). What should rise or fall with depth has to do so from the first depth to the last by
more than the spread of the seeds explains, and no step may go the other way by more than that. With
fewer than three seeds, whose spread says little, the means alone decide. All networks are ReLU
networks with all weights trained, where not said otherwise.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr, t

from ntkcond.artefacts.claims.claim import (
    Claim,
    Claims,
    Finding,
    Findings,
    bounded,
    interval,
    short,
)
from ntkcond.datasets.registry import title
from ntkcond.networks.activations import ACTIVATIONS

LEVEL = 0.05  # of all steps of a curve together (Bonferroni)
SIMILAR = 0.15  # by how much "similar" may differ, relative
SMALL_DEG = 30  # "similar data" in figures of φ against θ
ON_ANGLES = "angles and sweeps/infinite, drawn in fig2"
ON_KAPPAS = "conditioning and sweeps/infinite, drawn in fig2"
FIG_2_RIGHT = "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)"
Table = pd.DataFrame
CLAIMS = Claims()


class _Curve(NamedTuple):
    """A quantity against depth: a row for each seed (one, exact, at infinite width), a column for
    each depth."""

    dataset: str
    where: str
    infinite: bool
    values: Table

    @property
    def means(self) -> pd.Series:
        return self.values.mean(skipna=False)

    @property
    def hidden(self) -> "_Curve":
        """Its depths from 1 on."""
        return self._replace(values=self.values[[depth for depth in self.values if depth > 0]])


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
    measured, and that at infinite width. A curve of ReLU networks with an unresolved κ is left out;
    an unresolved κ of a linear network counts as its lower bound."""
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
    kappa = quantity == "kappa"
    if kappa and ((rows.activation == "relu") & (rows.verdict == "unresolved")).any():
        return
    rows = rows.assign(value=np.log(_kappa(rows)) if kappa else rows.min_angle_deg)
    values = rows.pivot_table("value", "seed", "depth", aggfunc="mean")
    if not values.empty:
        yield _Curve(dataset, where, infinite, values)


def _kappa(rows: Table) -> pd.Series:
    return rows.kappa.where(rows.verdict != "unresolved", rows.kappa_lower)


def _steps(
    curve: _Curve, direction: int, quantity: str, against: str, shown: Callable[[float], str]
) -> Finding:
    """Whether a curve goes in the direction (+1: up) from depth to depth. Its spread: the largest
    step against it, and what of it the spread of the seeds explains."""
    depths = list(curve.values)
    change = direction * (curve.values[depths[-1]] - curve.values[depths[0]])
    steps = direction * curve.values.diff(axis=1)[depths[1:]]
    means = steps.mean(skipna=False).to_numpy()
    count, explained, least = len(means), np.zeros(len(means)), 0.0
    if len(steps) >= 3:
        root, freedom = math.sqrt(len(steps)), len(steps) - 1
        explained = (steps.std() / root * t.ppf(1 - LEVEL / count, freedom)).to_numpy()
        least = change.std() / root * t.ppf(1 - LEVEL, freedom)
    worst = np.argmin(means)
    spread = f"{against} {shown(-means[worst])}, the seeds explain {shown(explained[worst])}"
    return Finding(
        curve.where, quantity, f"{count} of {count}", f"{(means > 0).sum()} of {count}",
        spread if means[worst] < 0 else "",
        (means > -explained).all() and change.mean() > least,
    )  # fmt: skip


def _ratios(
    where: str, quantity: str, ratios: pd.Series, expected: str, spread: str = ""
) -> Findings:
    """A finding on ratios at several depths; none if all are ∞/∞."""
    if len(known := ratios.dropna()):
        yield bounded(where, quantity, known, expected, spread)


def _pairs(table: Table, infinite: Table | None) -> Iterator[tuple[_Curve, pd.Series]]:
    """ReLU's curve with the means of the linear one of the same samples and width, at L ≥ 1."""
    linear = {(c.dataset, c.infinite): c.means for c in _curves(table, infinite, "linear")}
    for relu in _curves(table, infinite, "relu"):
        if (relu.dataset, relu.infinite) in linear:
            yield relu.hidden, linear[relu.dataset, relu.infinite]


@CLAIMS.add(
    "5-separated", "v1 and ICLR §5.2 and Fig. 2 (left), newest Fig. 3 (left)",
    "The smallest gradient angle of ReLU networks is larger than that of linear ones.",
    artefact=ON_ANGLES,
)  # fmt: skip
def wider_than_linear(angles: Table, infinite: Table | None = None) -> Findings:
    for relu, linear in _pairs(angles, infinite):
        ratio = (relu.means / linear).reindex(relu.values.columns)
        yield from _ratios(relu.where, "min φ of ReLU / of linear, over L ≥ 1", ratio, "> 1")


@CLAIMS.add(
    "5-separation-grows", "v1 and ICLR §4, newest Fig. 3 (left)",
    "The smallest gradient angle of ReLU networks grows with depth.", artefact=ON_ANGLES,
)  # fmt: skip
def separation_grows(angles: Table, infinite: Table | None = None) -> Findings:
    quantity = "steps in depth with which min φ of ReLU grows"
    for relu in _curves(angles, infinite, "relu"):
        if len(relu.values.columns) > 1:
            yield _steps(relu, +1, quantity, "largest fall", lambda fall: f"{short(fall)}°")


@CLAIMS.add(
    "5-linear-angles", "v1 and ICLR Fig. 2 (left)",
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
    "6-worst-case", "v1 and ICLR §6 (a), newest summary",
    "The bound on gradient descent, 1 − 1/κ, is better for ReLU than for linear networks.",
    artefact=ON_KAPPAS,
)  # fmt: skip
@CLAIMS.add(
    "5-better", FIG_2_RIGHT, "κ of ReLU networks is below that of linear ones.", artefact=ON_KAPPAS
)
def better_than_linear(conditioning: Table, infinite: Table | None = None) -> Findings:
    quantity = "κ of ReLU / κ̄ of linear, over L ≥ 1"
    for relu, linear in _pairs(conditioning, infinite):
        ratio = np.exp(relu.means - linear).reindex(relu.values.columns)
        yield from _ratios(relu.where, quantity, ratio, "< 1", _infinite(linear, "κ̄"))


@CLAIMS.add(
    "5-better-than-gram", FIG_2_RIGHT, "κ of ReLU networks is below that of the linear model, κ₀.",
    artefact=ON_KAPPAS,
)  # fmt: skip
def better_than_gram(conditioning: Table, infinite: Table | None = None) -> Findings:
    for curve in _curves(conditioning, infinite, "relu"):
        if 0 in curve.values:
            gram = curve.means[[0]]
            ratio = np.exp(curve.hidden.means - gram[0])
            yield from _ratios(curve.where, "κ/κ₀, over L ≥ 1", ratio, "< 1", _infinite(gram, "κ₀"))


def _infinite(means: pd.Series, name: str) -> str:
    return f"{name} = ∞" if np.isinf(means).all() else ""


@CLAIMS.add(
    "5-falls", FIG_2_RIGHT, "κ of ReLU networks falls monotonically with depth.", artefact=ON_KAPPAS
)
def falls_with_depth(conditioning: Table, infinite: Table | None = None) -> Findings:
    def percent(log_ratio: float) -> str:
        return f"{short(100 * math.expm1(log_ratio))} %"

    quantity = "steps in depth, from L = 1 on, with which κ falls"
    for curve in _curves(conditioning, infinite, "relu"):
        if len(curve.hidden.values.columns) > 1:
            yield _steps(curve.hidden, -1, quantity, "largest rise", percent)


@CLAIMS.add(
    "5-smallest", "newest summary",
    "The smallest eigenvalue of ReLU networks' NTK is above that of the Gram matrix.",
)  # fmt: skip
def smallest_eigenvalue_rises(conditioning: Table) -> Findings:
    """λ_min of resolved NTKs against that of the same block at L = 0."""
    quantity = "λ_min(K)/λ_min(G), the least of all blocks, over L ≥ 1"
    for _, rows in _networks(conditioning, "relu"):
        resolved = rows[rows.verdict == "resolved"]
        table = resolved.pivot_table("lambda_min", ["seed", "block"], "depth", aggfunc="first")
        if 0 in table and len(table.columns) > 1:
            ratio = table.drop(columns=0).div(table[0], axis=0).min()
            yield from _ratios(_where(rows), quantity, ratio, "> 1")


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
            f"{unresolved} unresolved" if unresolved else "", singular + unresolved == 0,
        )  # fmt: skip


@CLAIMS.add(
    "5-linear-kappa", "v1 and ICLR Fig. 2 (right)",
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
    "Thm 5.1 on data, also at finite width: κ of the first layer's weights is below κ₀.",
)  # fmt: skip
def first_layer_on_data(first_layer: Table, conditioning: Table) -> Findings:
    """Against κ₀ of the same blocks."""
    gram = conditioning.query("activation == 'relu' and depth == 0")
    for (dataset, width), rows in first_layer.groupby(["dataset", "width"], sort=False):
        same = gram[(gram.dataset == dataset) & gram.block.isin(rows.block)]
        if same.empty or (rows.verdict == "unresolved").any():
            continue
        kappa, kappa0 = (math.exp(np.log(_kappa(kernels)).mean()) for kernels in (rows, same))
        if math.isfinite(kappa):
            yield Finding(
                _where(rows, short(width)), "κ of W¹ alone / κ₀", "< 1", short(kappa / kappa0),
                f"κ = {short(kappa)}, κ₀ = {short(kappa0)}", kappa < kappa0,
            )  # fmt: skip


@CLAIMS.add(
    "6-training", "v1 and ICLR §6 and Fig. 3, newest Fig. 4",
    "On each data set, deeper networks always train faster than shallower ones.",
)  # fmt: skip
def trains_faster(table_epochs: Table, fig3: Table) -> Findings:
    """No deeper network later than the next shallower one by more than an epoch or twice the
    standard error, and epochs falling with depth in rank."""
    relu = table_epochs.dataset.isin(fig3[fig3.activation == "relu"].dataset)
    found = table_epochs[(table_epochs.rate_for == "depth") & relu].sort_values("depth")
    for (dataset, threshold), rows in found.groupby(["dataset", "threshold"], sort=False):
        epochs = rows.epochs_mean.fillna(np.inf)
        if epochs.nunique() < 2:
            continue
        correlation = spearmanr(rows.depth, epochs).statistic
        errors = rows.epochs_std.fillna(0) ** 2 / rows.seeds
        later = epochs.diff() > np.maximum(1, 2 * np.sqrt(errors + errors.shift()))
        yield Finding(
            f"{title(dataset)}, to a loss of {threshold:g}",
            "rank correlation of epochs with depth", "−1", f"{correlation:+.2f}".replace("-", "−"),
            f"epochs {interval(rows.epochs_mean.dropna())}, {rows.seeds.max()} seeds",
            correlation < -0.5 and not later.any(),
        )  # fmt: skip


def _descents(fig_descent: Table) -> Iterator[tuple[str, Table]]:
    """Each data set and its curves at 1/λ_max, where κ alone bounds the rate."""
    rows = fig_descent[(fig_descent.rule == "own") & (fig_descent.activation == "relu")]
    for dataset, curves in rows.groupby("dataset", sort=False):
        yield dataset, curves.sort_values(["depth", "step"])


@CLAIMS.add(
    "6-bound", "v1 §6, Eq. 13; ICLR §6, Eq. 11",
    "Gradient descent on the square loss leaves at most (1 − 1/κ)ᵗ of it after t steps.",
)  # fmt: skip
def bounded_by_kappa(fig_descent: Table) -> Findings:
    """Of the loss; the figure draws the residual, its root, against (1 − 1/κ)ᵗ."""
    for dataset, curves in _descents(fig_descent):
        for depth, rows in curves[curves.step > 0].groupby("depth"):
            loss, bound = rows.residual**2, (1 - 1 / rows.kappa) ** rows.step
            yield Finding(
                f"{title(dataset)}, L = {depth}, η = 1/λ_max, {rows.step.max()} steps",
                "loss / (1 − 1/κ)ᵗ, the largest of all t", "≤ 1", short((loss / bound).max()), "",
                (loss <= bound).all(),
            )  # fmt: skip


@CLAIMS.add(
    "6-descent", "v1 and ICLR §6 (b)",
    "Deeper wide ReLU networks converge faster under gradient descent.",
)  # fmt: skip
def descends_faster(fig_descent: Table) -> Findings:
    for dataset, curves in _descents(fig_descent):
        rows = curves.drop_duplicates("depth")
        if len(rows) < 2:
            continue
        rates, count = rows.measured_rate, len(rows) - 1
        with np.errstate(divide="ignore"):
            logs = np.log(rates)
        error = rows.log_rate_std.fillna(0) / np.sqrt(rows.seeds)
        slower = logs.diff() > 2 * np.hypot(error, error.shift())
        yield Finding(
            f"{title(dataset)}, η = 1/λ_max of each, L = {rows.depth.min()} to {rows.depth.max()}",
            "steps in depth with which the residual falls faster", f"{count} of {count}",
            f"{(rates.diff() < 0).sum()} of {count}",
            f"factor a step {rates.iloc[0]:.5f} to {rates.iloc[-1]:.5f}",
            not slower.any() and rates.iloc[-1] < rates.iloc[0],
        )  # fmt: skip


@CLAIMS.add(
    "6-table-1", "newest Table 1", "Test accuracies on MNIST at L = 1, 3, 6, 8, 10, 12.",
    lacking="needs fig3 of all 60,000 MNIST images (config/paper.yaml, a GPU)",
)  # fmt: skip
def accuracy_of_table_1(table_generalization: Table) -> Findings:
    """Only of the whole of MNIST."""
    rows = table_generalization[table_generalization.samples == 60_000]
    for row in rows.dropna(subset="paper_test_accuracy_percent").itertuples():
        spread = 0.0 if math.isnan(row.test_accuracy_percent_std) else row.test_accuracy_percent_std
        stated, found = row.paper_test_accuracy_percent, row.test_accuracy_percent_mean
        yield Finding(
            f"{title(row.dataset)}, L = {row.depth}, {row.epochs} epochs", "test accuracy (%)",
            short(stated), short(found), f"± {short(spread)}",
            abs(found - stated) < max(3 * spread, 0.3),
        )  # fmt: skip


@CLAIMS.add(
    "6-tradeoff", "newest Table 1 and summary",
    "Very deep networks generalise less well: the best test accuracy is in between.",
    lacking="no data set whose accuracies differ by more than their errors",
)  # fmt: skip
def depth_costs_accuracy(table_generalization: Table) -> Findings:
    """Where the accuracies at the best and the deepest differ by more than their errors."""
    found = table_generalization.dropna(subset="test_accuracy_percent_mean")
    for dataset, rows in found.groupby("dataset", sort=False):
        rows = rows.set_index("depth").sort_index()
        accuracy = rows.test_accuracy_percent_mean
        variance = rows.test_accuracy_percent_std.fillna(0) ** 2 / rows.seeds
        shallowest, best, deepest = accuracy.index[0], accuracy.idxmax(), accuracy.index[-1]
        error = math.sqrt(variance[best] + variance[deepest])
        lost = accuracy[best] - accuracy[deepest]
        if len(rows) >= 3 and (best == deepest or lost > 2 * error):
            yield Finding(
                f"{title(dataset)}, L = {shallowest} to {deepest}",
                "test accuracy (%) at its best depth and at the deepest", "best in between",
                f"{short(accuracy[best])} at L = {best}, {short(accuracy[deepest])}",
                f"± {short(error)}", shallowest < best < deepest,
            )  # fmt: skip


@CLAIMS.add(
    "newest-fig-2", "newest Fig. 2",
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
    """Activation, where, κ₀ and the rows by depth, for each data set and width."""
    gram = rows[(rows.activation == "linear") & np.isinf(rows.width)]
    groups = rows.groupby(["dataset", "width", "activation"], sort=False)
    for (dataset, width, name), curve in groups:
        if len(kappa0 := gram[gram.dataset == dataset].kappa_median):
            where = _where(curve, short(width))
            yield name, where, kappa0.iloc[0], curve.sort_values("depth")


def _against_depth(rows: Table, activation: str, direction: int) -> Findings:
    """κ of the activation is to be beyond κ₀ in the direction at every depth, and to move that way
    with every layer; as corrected, the latter, beyond κ₀ only at the end."""
    for name, where, kappa0, curve in _of_activations(rows):
        kappa, depth = curve.kappa_median.to_numpy(), curve.depth.to_numpy()
        if name == activation and len(kappa) > 1:
            unresolved, ratio = curve.unresolved.sum(), kappa[[0, -1]] / kappa0
            beyond = direction * (kappa - kappa0) > 0
            moving = (direction * np.diff(kappa) > 0).all()
            yield Finding(
                f"{where}, L = {depth[0]} to {depth[-1]}", f"κ of {name} / κ₀",
                "< 1, falling" if direction < 0 else "> 1, rising", " to ".join(map(short, ratio)),
                f"{unresolved} unresolved, as lower bounds" if unresolved else "",
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
    "7-others", "v1 §7", "Similar results hold for other non-linear activations.",
    "For GELU and tanh; not for sigmoid, nor at finite width for a deep network of ReLU².",
)  # fmt: skip
def others_are_better(fig_activations_ntk: Table) -> Findings:
    """Every activation but ReLU and linear, deepest network."""
    for name, where, kappa0, curve in _of_activations(fig_activations_ntk):
        if name not in ("relu", "linear"):
            deepest = curve.iloc[-1]
            yield Finding(
                f"{where}, L = {deepest.depth}", f"κ of {ACTIVATIONS[name].title} / κ₀", "< 1",
                short(deepest.kappa_median / kappa0),
                "unresolved, as lower bounds" if deepest.unresolved else "",
                deepest.kappa_median < kappa0 and not deepest.unresolved,
            )  # fmt: skip


@CLAIMS.add(
    "newest-fig-6", "newest Fig. 6", "φ(θ) differs between four scales of the weights.",
    "For ReLU without biases nothing depends on it; for tanh it does.", 12,
)  # fmt: skip
def weight_scale(fig_weight_scale: Table) -> Findings:
    for activation, rows in fig_weight_scale.groupby("activation", sort=False):
        phi = rows.pivot_table("phi_deg", "weight_variance", "theta_in_deg")
        apart = (phi.max() - phi.min()).max()
        setting = f"σ_w² = {phi.index.min():g} to {phi.index.max():g}"
        yield Finding(
            f"{ACTIVATIONS[activation].title}, {setting}",
            "largest difference of φ between them (degrees)", "> 0", short(apart), "", apart > 1e-6,
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
    "φ → arccos(1/4) ≈ 75.52° (newest Thm 3.5).", 7,
)  # fmt: skip
def orthogonal(fig_infinite_depth: Table) -> Findings:
    return _infinite_depth(fig_infinite_depth, "phi_deg", 90, 0.01)


@CLAIMS.add(
    "7-kappa-1", "v1 and ICLR §7", "At infinite depth κ → 1.",
    "κ → (n + 3)/3 for inputs of norm 1.", 7,
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
    "newest-4.3", "newest Thm 4.3", "At infinite depth κ → (n + 4)/3.",
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
    relu = fig_width[fig_width.activation == "relu"]
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


CLAIMS += [
    Claim("newest-rest", "newest Cor. 3.3, Remarks 2.1 and 3.6, and those without a name",
        "Statements of which the summary page gives a name at most.", lambda _: (), artefact="",
        lacking="their text is not at hand"),
]  # fmt: skip
