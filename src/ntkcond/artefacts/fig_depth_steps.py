"""Does κ fall with every layer at this width? Its changes from depth to depth, with their power."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from scipy.stats import t

from ntkcond.artefacts import conditions, interval, style
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="Change of κ with each layer, many initialisations",
    section="§5 Smaller condition number",
    inputs=("conditioning",),
    datasets="fig2",
    caption="""
ReLU networks. **(a)** κ against depth L, geometric mean over initialisations, with its 95 % t
interval. **(b)** The change of κ per layer from one depth to the next (over several layers: the
geometric mean of their changes), with Welch's 95 % interval. Black: the mean over data sets, where
no two of them share an initialisation. Each initialisation counts once,
by its mean of log κ over its blocks. Weights of two depths are independent. Depths with a κ that
is ∞ or not resolved are left out.

**The paper** says that κ falls with every layer. It has five initialisations.
""",
)
RISE = 1.05  # of κ: the power is the chance to find it
SIMULATIONS = 1000
LEVEL = 0.05
ALL = "all"


def table(conditioning: pd.DataFrame) -> pd.DataFrame:
    """A row for each data set and depth from 1 on, and for all data sets together (`all`): width,
    n, seeds, blocks; kappa_mean, the geometric mean, with its interval. From the depth before:
    change_mean, the ratio of these means, with its interval; p_fall and p_rise, of Welch's
    one-sided tests of log κ; power: in what share of simulations with the measured values, moved to
    a rise by 5 %, it is found at p < 5 %. Empty for one seed. Depths with an unresolved or infinite
    κ are left out.

    `all` has the mean of log κ over data sets and is tested by the sum of their variances. It is
    there only if they are independent: no seed in two of them."""
    relu = conditioning[(conditioning.activation == "relu") & (conditioning.trainable == "all")]
    relu = relu[(relu.depth > 0) & (relu.bias == 0)]
    by_set = {name: dict(_logs(rows)) for name, rows in relu.groupby("dataset", sort=False)}
    rows = []
    for name, some in relu.groupby("dataset", sort=False):
        about = {"width": some.width.iloc[0], "n": some.n.iloc[0], "blocks": some.block.nunique()}
        rows += [{"dataset": name, **about, **row} for row in _rows([by_set[name]])]
    seeds = [set(rows.seed) for _, rows in relu.groupby("dataset")]
    if len(seeds) > 1 and sum(map(len, seeds)) == len(set.union(*seeds)):
        rows += [{"dataset": ALL, **row} for row in _rows([*by_set.values()])]
    columns = [
        "dataset", "depth", "width", "n", "seeds", "blocks", "kappa_mean", "kappa_low",
        "kappa_high", "before", "change_mean", "change_low", "change_high", "p_fall", "p_rise",
        "power",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _logs(rows: pd.DataFrame) -> Iterator[tuple[int, np.ndarray]]:
    """Each depth whose κ are all resolved, with log κ of each seed."""
    for depth, of_depth in rows.groupby("depth"):
        if (of_depth.verdict == "resolved").all():
            yield int(depth), np.log(of_depth.kappa).groupby(of_depth.seed).mean().to_numpy()


def _rows(sets: list[dict[int, np.ndarray]]) -> Iterator[dict]:
    """Rows of the mean over data sets."""
    depths = sorted(set.intersection(*(set(logs) for logs in sets)))
    for before, depth in zip([math.nan, *depths], depths, strict=False):
        values = [logs[depth] for logs in sets]
        seeds = min(map(len, values))
        row = {"depth": depth, "seeds": seeds, "before": before}
        row["kappa_mean"] = math.exp(np.mean([some.mean() for some in values]))
        if seeds > 1:
            row |= interval.columns("kappa", _exp(*welch(values, [1] * len(sets))))
        if before in depths and seeds > 1:
            both = values + [logs[before] for logs in sets]
            signs = [1] * len(sets) + [-1] * len(sets)
            change, error, freedom = welch(both, signs)
            row |= interval.columns("change", _exp(change, error, freedom))
            row["p_fall"] = float(t.cdf(change / error, freedom))
            row["p_rise"] = float(t.sf(change / error, freedom))
            row["power"] = _power(both, signs)
        yield row


def welch(samples: Sequence[np.ndarray], signs: Sequence[int]) -> tuple:
    """For independent samples (…, size): the sum of their means with these signs over the number of
    those that are +, its standard error, and the degrees of freedom (Welch 1947, Satterthwaite)."""
    share = 1 / signs.count(1)
    sizes = [some.shape[-1] for some in samples]
    means = [np.mean(some, axis=-1) for some in samples]
    change = share * sum(sign * mean for sign, mean in zip(signs, means, strict=True))
    parts = [
        share**2 * np.var(some, axis=-1, ddof=1) / size
        for some, size in zip(samples, sizes, strict=True)
    ]
    squares = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return change, np.sqrt(sum(parts)), sum(parts) ** 2 / squares


def _exp(mean: float, error: float, freedom: float) -> tuple[float, float, float]:
    half = t.ppf((1 + interval.LEVEL) / 2, freedom) * error
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _power(samples: list[np.ndarray], signs: list[int]) -> float:
    """The power by the measured values, drawn with replacement and moved to this rise."""
    rng = np.random.default_rng(0)
    drawn = [
        rng.choice(some - some.mean(), (SIMULATIONS, len(some))) + (sign > 0) * math.log(RISE)
        for some, sign in zip(samples, signs, strict=True)
    ]
    change, error, freedom = welch(drawn, signs)
    return float(np.mean(t.sf(change / error, freedom) < LEVEL))


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """κ, and its change with each layer."""
    figure = style.figure(height=3.2)
    left, right = figure.subplots(1, 2)
    names = [name for name in numbers.dataset.unique() if name != ALL]
    looks = {name: style.look_of(i) for i, name in enumerate(names)} | {
        ALL: {"color": "black", "marker": "*"}
    }
    together = len(looks) if ALL in set(numbers.dataset) else len(names)
    for i, (name, rows) in enumerate(numbers.groupby("dataset", sort=False)):
        moved = 0.5 * (i / together - 0.5)  # so that intervals stand side by side
        layers = (rows.depth - rows.before).to_numpy()[:, None]
        change = rows[["change_mean", "change_low", "change_high"]] ** (1 / layers)
        change = 100 * (change - 1)
        for axes, (mean, low, high) in (
            (left, rows[["kappa_mean", "kappa_low", "kappa_high"]].to_numpy().T),
            (right, change.to_numpy().T),
        ):
            if axes is left and name == ALL:
                continue
            colour = looks[name]["color"]
            style.bars(axes, rows.depth + moved, low, high, colour, "bar: 95 % interval")
            line = "-" if axes is left else "none"
            axes.plot(rows.depth + moved, mean, linestyle=line, linewidth=0.8, **looks[name])
    left.set_yscale("log")
    left.set_ylabel(r"NTK condition number $\kappa$")
    left.set_title(r"(a) $\kappa$ with ReLU")
    right.axhline(0, color="black", linewidth=0.8)
    right.set_ylabel("change per layer, %")
    right.set_title("(b) change per layer")
    for axes in (left, right):
        style.depth_axis(axes, numbers.depth)
    keys = [
        (
            Line2D([], [], linestyle="none", **look),
            "mean" if name == ALL else conditions.title(name),
        )
        for name, look in looks.items()
        if name in set(numbers.dataset)
    ]
    figure.key(*keys, about=conditions.in_words(numbers[numbers.dataset != ALL]))
    return figure
