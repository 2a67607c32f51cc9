"""Claims about data, judged from the tables of the artefacts: of whatever data sets they show.

At finite width κ and angles are random. They are compared by their means over seeds (of log κ, over
all blocks), and a step in the wrong direction counts where it exceeds what the spread of the seeds
explains.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr, t

from ntkcond.activations import ACTIVATIONS
from ntkcond.claims.claim import Claim, Evidence, Finding, interval, short
from ntkcond.datasets.registry import title

LEVEL = 0.05  # of all steps of a curve together (Bonferroni)
SIMILAR = 0.15  # by how much "similar" may differ, relative
SMALL_DEG = 30  # "similar data" in figures of φ against θ


class _Curve:
    """A quantity against depth at one width: rows are seeds (one at infinite width)."""

    def __init__(self, where: str, values: pd.DataFrame):
        self.where, self.values = where, values

    @property
    def means(self) -> pd.Series:
        return self.values.mean()

    def hidden(self) -> "_Curve":
        """Its depths from 1 on."""
        return _Curve(self.where, self.values[[depth for depth in self.values if depth > 0]])

    def steps(self, direction: int) -> "_Steps":
        """Its steps from depth to depth: do they go in the direction (+1: up)?"""
        depths = list(self.values)
        steps = direction * pd.concat(
            [self.values[b] - self.values[a] for a, b in itertools.pairwise(depths)], axis=1
        )
        means, seeds = steps.mean(skipna=False).to_numpy(), len(steps)
        if seeds > 1:
            errors = (steps.std() / math.sqrt(seeds)).to_numpy()
            explained = errors * t.ppf(1 - LEVEL / len(means), seeds - 1)
        else:
            explained = np.zeros(len(means))
        worst = int(np.argmin(means))
        return _Steps(
            len(means), int((means > 0).sum()), -means[worst], explained[worst],
            bool((means > -explained).all()),
        )  # fmt: skip


class _Steps(NamedTuple):
    """How many steps, how many in the right direction; the largest in the wrong one (negative where
    there is none) and what of it the spread of the seeds explains; whether it explains all."""

    count: int
    right: int
    worst: float
    explained: float
    consistent: bool


def _curves(evidence: Evidence, quantity: str, activation: str) -> Iterator[tuple[str, _Curve]]:
    """(data set, curve) of log κ or of min φ in degrees, at the width measured and at infinity."""
    table = "conditioning" if quantity == "kappa" else "angles"
    if table not in evidence or "fig2" not in evidence:
        return
    rows, figure = evidence[table], evidence["fig2"]
    for dataset in rows.dataset.unique():
        own = rows[(rows.dataset == dataset) & (rows.activation == activation)]
        if own.empty:
            continue
        where = f"{title(dataset)}, m = {own.width.iloc[0]}"
        if quantity == "kappa":
            where += f", n = {own.n.iloc[0]}"
            known = own.kappa.where(own.verdict != "unresolved", own.kappa_lower)
            own = own.assign(value=np.log(known))
        else:
            own = own.assign(value=own.min_angle_deg)
        yield dataset, _Curve(where, own.pivot_table("value", "seed", "depth", aggfunc="mean"))
        column = "infinite_kappa_mean" if quantity == "kappa" else "infinite_min_angle_deg"
        limit = figure[(figure.dataset == dataset) & (figure.activation == activation)]
        limit = limit.dropna(subset=column).set_index("depth")[column]
        if len(limit):
            values = np.log(limit) if quantity == "kappa" else limit
            where = where.replace(f"m = {own.width.iloc[0]}", "m = ∞")
            yield dataset, _Curve(where, values.to_frame().T)


def _pairs(evidence: Evidence, quantity: str) -> Iterator[tuple[_Curve, _Curve]]:
    """The curves of ReLU and of linear networks, of the same samples and width."""
    linear = {curve.where: curve for _, curve in _curves(evidence, quantity, "linear")}
    for _, relu in _curves(evidence, quantity, "relu"):
        if relu.where in linear:
            yield relu.hidden(), linear[relu.where].hidden()


def wider_than_linear(evidence: Evidence) -> Iterator[Finding]:
    for relu, linear in _pairs(evidence, "angle"):
        ratio = relu.means / linear.means
        yield Finding(
            relu.where, "min φ of ReLU / of linear, over L ≥ 1", "> 1", interval(ratio), "",
            bool(ratio.min() > 1),
        )  # fmt: skip


def separation_grows(evidence: Evidence) -> Iterator[Finding]:
    for _, relu in _curves(evidence, "angle", "relu"):
        if len(relu.values.columns) < 2:
            continue
        steps = relu.steps(+1)
        fall = f"largest fall {short(steps.worst)}°, the seeds explain {short(steps.explained)}°"
        yield Finding(
            relu.where, "steps in depth with which min φ of ReLU grows",
            f"{steps.count} of {steps.count}", f"{steps.right} of {steps.count}",
            fall if steps.worst > 0 else "", steps.consistent,
        )  # fmt: skip


def linear_keeps_angles(evidence: Evidence) -> Iterator[Finding]:
    for _, curve in _curves(evidence, "angle", "linear"):
        if 0 in curve.values and len(curve.values) > 1:
            ratio = curve.hidden().means / curve.means[0]
            yield Finding(
                curve.where, "min φ̄ / min θ, over L ≥ 1", "1", interval(ratio), "",
                bool((ratio - 1).abs().max() < SIMILAR),
            )  # fmt: skip


def better_than_linear(evidence: Evidence) -> Iterator[Finding]:
    for relu, linear in _pairs(evidence, "kappa"):
        shared = relu.values.columns.intersection(linear.values.columns)
        ratio = np.exp(relu.means[shared] - linear.means[shared])
        yield Finding(
            relu.where, "κ of ReLU / κ̄ of linear, over L ≥ 1", "< 1", interval(ratio), "",
            bool(ratio.max() < 1),
        )  # fmt: skip


def better_than_gram(evidence: Evidence) -> Iterator[Finding]:
    for _, curve in _curves(evidence, "kappa", "relu"):
        if 0 in curve.values:
            ratio = np.exp(curve.hidden().means - curve.means[0])
            yield Finding(
                curve.where, "κ/κ₀, over L ≥ 1", "< 1", interval(ratio), "", bool(ratio.max() < 1)
            )


def falls_with_depth(evidence: Evidence) -> Iterator[Finding]:
    for _, curve in _curves(evidence, "kappa", "relu"):
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
            steps.consistent,
        )  # fmt: skip


def linear_is_finite(evidence: Evidence) -> Iterator[Finding]:
    if "conditioning" not in evidence:
        return
    rows = evidence["conditioning"]
    for dataset, own in rows[rows.activation == "linear"].groupby("dataset", sort=False):
        n, rank = own.n.iloc[0], own.rank_bound
        singular = int((own.verdict == "singular").sum())
        # what an eigensolver's λ_max/λ_min would have said
        naive = own.lambda_max / own.lambda_min
        said = f"; λ_max/λ_min as printed: {interval(naive)}" if singular else ""
        yield Finding(
            f"{title(dataset)}, n = {n}, all L", "linear NTKs that are singular",
            f"0 of {len(own)}", f"{singular} of {len(own)}, of rank ≤ {rank.max()}{said}", "",
            singular == 0,
        )  # fmt: skip


def linear_keeps_kappa(evidence: Evidence) -> Iterator[Finding]:
    """Of singular NTKs, by the non-zero spectrum."""
    if "conditioning" not in evidence:
        return
    rows = evidence["conditioning"]
    for dataset, own in rows[rows.activation == "linear"].groupby("dataset", sort=False):
        if 0 not in own.depth.values:
            continue
        table = own.assign(value=np.log(own.nonzero_kappa)).pivot_table(
            "value", "seed", "depth", aggfunc="mean"
        )
        deepest = table.columns.max()
        change = table[deepest] - table[0]
        error = change.std() / math.sqrt(len(change)) if len(change) > 1 else 0.0
        ratio = np.exp(table.mean() - table[0].mean())
        yield Finding(
            f"{title(dataset)}, m = {own.width.iloc[0]}, n = {own.n.iloc[0]}",
            f"κ̄(L = {deepest})/κ₀, of the non-zero spectrum", "1", short(ratio[deepest]),
            f"± {short(ratio[deepest] * error)}", bool((ratio - 1).abs().max() < SIMILAR),
        )  # fmt: skip


def first_layer_on_data(evidence: Evidence) -> Iterator[Finding]:
    if "first_layer" not in evidence:
        return
    gram = dict(_curves(evidence, "kappa", "relu"))
    for row in evidence["first_layer"].itertuples():
        if row.dataset not in gram or 0 not in gram[row.dataset].values:
            continue
        kappa0 = math.exp(gram[row.dataset].means[0])
        ratio = row.kappa_median / kappa0
        yield Finding(
            f"{title(row.dataset)}, m = {short(row.width)}, n = {row.n}", "κ of W¹ alone / κ₀",
            "< 1", short(ratio), f"κ = {short(row.kappa_median)}, κ₀ = {short(kappa0)}", ratio < 1,
        )  # fmt: skip


def trains_faster(evidence: Evidence) -> Iterator[Finding]:
    if "table_epochs" not in evidence:
        return
    rows = evidence["table_epochs"]
    rows = rows[rows.rate_for == "depth"]
    for (dataset, threshold), own in rows.groupby(["dataset", "threshold"], sort=False):
        epochs = own.epochs_mean.fillna(np.inf)
        if epochs.nunique() < 2:
            continue
        correlation = spearmanr(own.depth, epochs.rank()).statistic
        yield Finding(
            f"{title(dataset)}, to a loss of {threshold:g}",
            "rank correlation of epochs with depth", "−1", f"{correlation:+.2f}".replace("-", "−"),
            f"epochs {interval(own.epochs_mean.dropna())}, {own.seeds.max()} seeds",
            correlation < -0.999,
        )  # fmt: skip


def bounded_by_kappa(evidence: Evidence) -> Iterator[Finding]:
    for dataset, own in _descents(evidence, "own"):
        loss, bound = own.measured_rate**2, 1 - 1 / own.kappa
        for depth, rate, limit in zip(own.depth, loss, bound, strict=True):
            yield Finding(
                f"{title(dataset)}, L = {depth}, η = 1/λ_max", "late factor of the loss in a step",
                f"≤ {limit:.5f}", f"{rate:.5f}", "", rate <= limit,
            )  # fmt: skip


def _descents(evidence: Evidence, rule: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """A row for each depth."""
    if "fig_descent" in evidence:
        rows = evidence["fig_descent"]
        rows = rows[rows.rule == rule].drop_duplicates(["dataset", "depth"])
        for dataset, own in rows.groupby("dataset", sort=False):
            yield dataset, own.sort_values("depth")


def descends_faster(evidence: Evidence) -> Iterator[Finding]:
    for rule, words in (("own", "η = 1/λ_max of each"), ("common", "one η for all")):
        for dataset, own in _descents(evidence, rule):
            with np.errstate(divide="ignore"):  # of a residual that does not move
                needed = -1 / np.log(own.measured_rate)
            fewer = int((np.diff(needed) < 0).sum())
            yield Finding(
                f"{title(dataset)}, {words}, L = {own.depth.min()} to {own.depth.max()}",
                "steps in depth with which the residual falls faster",
                f"{len(own) - 1} of {len(own) - 1}", f"{fewer} of {len(own) - 1}",
                f"{short(needed.iloc[0])} to {short(needed.iloc[-1])} steps for a factor e",
                fewer == len(own) - 1,
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
    if "table_generalization" not in evidence:
        return
    rows = evidence["table_generalization"].dropna(subset="test_accuracy_percent_mean")
    for dataset, own in rows.groupby("dataset", sort=False):
        if len(own) < 3:
            continue
        own = own.set_index("depth")
        accuracy, spread = own.test_accuracy_percent_mean, own.test_accuracy_percent_std.fillna(0)
        best, deepest = accuracy.idxmax(), accuracy.index.max()
        lost = accuracy[best] - accuracy[deepest]
        yield Finding(
            f"{title(dataset)}, L = {accuracy.index.min()} to {deepest}",
            "test accuracy (%) at its best depth and at the deepest", "best in between",
            f"{short(accuracy[best])} at L = {best}, {short(accuracy[deepest])}",
            f"± {short(max(spread[best], spread[deepest]))}",
            bool(accuracy.index.min() < best < deepest and lost > spread[deepest]),
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


def _against_depth(name: str, direction: int) -> Callable[[Evidence], Iterator[Finding]]:
    """κ of the activation is to be beyond κ₀ in the direction at every depth, and to move on with
    every layer; as corrected, the latter, beyond κ₀ only in the end."""
    relation = "< 1, falling" if direction < 0 else "> 1, rising"

    def test(evidence: Evidence) -> Iterator[Finding]:
        if "fig_activations_ntk" not in evidence:
            return
        rows = evidence["fig_activations_ntk"]
        gram = rows[(rows.activation == "linear") & np.isinf(rows.width)]
        for (dataset, width), own in rows[rows.activation == name].groupby(["dataset", "width"]):
            kappa0 = gram[gram.dataset == dataset].kappa_median.iloc[0]
            own = own.sort_values("depth")
            ratio = (own.kappa_median / kappa0).to_numpy()
            unresolved = int(own.unresolved.sum())
            beyond = direction * (ratio - 1) > 0
            moving = bool((direction * np.diff(ratio) > 0).all())
            yield Finding(
                f"{title(dataset)}, m = {short(width)}, n = {own.n.iloc[0]}, "
                f"L = {own.depth.min()} to {own.depth.max()}",
                f"κ of {name} / κ₀", relation, f"{short(ratio[0])} to {short(ratio[-1])}",
                f"{unresolved} unresolved, as lower bounds" if unresolved else "",
                moving and bool(beyond.all()), moving and bool(beyond[-1]),
            )  # fmt: skip

    return test


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
    for (dataset, depth), own in rows.groupby(["dataset", "depth"], sort=False):
        limit = own[np.isinf(own.width)]
        finite = own[np.isfinite(own.width)].set_index("width").sort_index()
        if limit.empty:
            continue
        for column, words in (("kappa_median", "κ/κ(∞)"), ("min_angle_deg_mean", "min φ/min φ(∞)")):
            ratio = finite[column] / limit[column].iloc[0]
            off = (ratio - 1).abs()
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
        "v1 Thm 5.1, ICLR Thm 5.3",
        "Thm 5.1 on data, also at finite width: κ of the first layer's weights is below κ₀.",
        first_layer_on_data,
        artefact="sweeps/first_layer, conditioning",
    ),
    Claim(
        "5-separated",
        "v1 and ICLR §5.2 and Fig. 2 (left), newest Fig. 3 (left)",
        "The smallest gradient angle of ReLU networks is larger than that of linear ones.",
        wider_than_linear,
        artefact="fig2, angles",
    ),
    Claim(
        "5-separation-grows",
        "newest Fig. 3 (left)",
        "The smallest gradient angle of ReLU networks grows with depth.",
        separation_grows,
        artefact="fig2, angles",
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
        artefact="fig2, conditioning",
    ),
    Claim(
        "5-better-than-gram",
        "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)",
        "κ of ReLU networks is below that of the linear model, κ₀.",
        better_than_gram,
        artefact="fig2, conditioning",
    ),
    Claim(
        "5-falls",
        "v1 and ICLR §5.2 and Fig. 2 (right), newest Fig. 3 (right)",
        "κ of ReLU networks falls monotonically with depth.",
        falls_with_depth,
        artefact="fig2, conditioning",
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
        "v1 and ICLR §6, Eq. 13",
        "Gradient descent on the square loss: each step leaves at most 1 − 1/κ of the loss.",
        bounded_by_kappa,
        artefact="fig_descent",
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
        "At finite width κ and φ differ from those at infinite width by less and less.",
        towards_infinite_width,
        artefact="fig_width",
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
        "At infinite depth κ → (n + 4)/3, whatever the inputs.",
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
        "ICLR Appendix F",
        "tanh lowers κ, the more the deeper.",
        _against_depth("tanh", -1),
        artefact="fig_activations_ntk",
    ),
    Claim(
        "F-sigmoid",
        "ICLR Appendix F",
        "sigmoid raises κ, the more the deeper.",
        _against_depth("sigmoid", +1),
        "κ rises with every layer; after the first it can still be below κ₀.",
        artefact="fig_activations_ntk",
    ),
    Claim(
        "newest-rest",
        "newest Cor. 3.3, Remarks 2.1 and 3.6, and 29 statements more",
        "Statements of which the summary page that this project has gives no more than the names.",
        nothing,
        artefact="",
        lacking="their text is not at hand",
    ),
]
