"""Where ReLU lowers κ, and where depth does: Gaussian samples by n/d and what makes them alike."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, GradientMap
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.linearised import predicted_kappa

SPEC = Spec(
    title="The map of κ with and without ReLU",
    section="§∞ When does ReLU help?",
    caption="""
n Gaussian samples of d = 200 features. From left to right: an offset is added to each feature; the
samples lie in pairs at an angle; the variance of feature j falls as a power of j. **(a) to (c)**: κ
with ReLU over κ of linear networks, L = 1, infinite width. **(d) to (f)**: κ with ReLU at L = 10
over κ at L = 1. Blue: ReLU, or depth, lowers κ; red: it raises κ. The solid line is where it
changes, the dashed line where the linearised NTK has it (docs/when.md). A cross: the median of
three networks of width 512 is on the other side than infinite width; a dot: it is more than
double or less than half of it.

**The paper** says that ReLU and depth lower κ of any data without parallel inputs. ReLU does so
where an offset, pairs, falling variances or n near d make κ of the inputs large; depth where a
strong offset, close pairs or strongly falling variances do, not where n near d alone does.
""",
)


class Cause(NamedTuple):
    """A cause of a large κ. levels: its strength, from none; samples: of n, a level and random
    numbers, (n, FEATURES)."""

    label: str
    levels: Sequence[float]
    samples: Callable[[int, float, np.random.Generator], np.ndarray]


def _with_offset(n: int, offset: float, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, FEATURES)) + offset


def _in_pairs(n: int, degrees: float, rng: np.random.Generator) -> np.ndarray:
    one, other = rng.standard_normal((2, n // 2, FEATURES))
    turned = math.cos(math.radians(degrees)) * one + math.sin(math.radians(degrees)) * other
    return np.concatenate([one, turned])


def _decaying(n: int, power: float, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, FEATURES)) * np.arange(1, FEATURES + 1) ** (-power / 2)


FEATURES = 200
SIZES = (0.1, 0.3, 0.5, 0.7, 0.9)  # n/d, with even n
CAUSES = {
    "offset": Cause("offset, in standard deviations", (0, 0.1, 0.2, 0.5, 1, 2), _with_offset),
    "pairs": Cause("angle of a pair, degrees", (90, 45, 20, 10, 3, 1), _in_pairs),
    "decay": Cause(r"power $\alpha$ of decay", (0, 0.25, 0.5, 1, 1.5, 2), _decaying),
}
DEEP = 10
WIDTH, SEEDS = 512, (1, 32, 111)
FARTHEST = 100  # of the colours
FAR = 2  # from infinite width: marked
RATIOS = ("relu_to_linear", "deep_to_shallow")


def table() -> pd.DataFrame:
    """A row for each cause, n/d and level: relu_to_linear and deep_to_shallow, the ratios of κ at
    infinite width; the same by the linearised NTK, formula_…, and of networks of width 512,
    finite_…."""
    return pd.DataFrame(
        [
            {"cause": name, "size": size, "level": level, "n": round(size * FEATURES)}
            | _ratios(cause.samples(round(size * FEATURES), level, np.random.default_rng(0)))
            for name, cause in CAUSES.items()
            for size, level in itertools.product(SIZES, cause.levels)
        ]
    )


def _ratios(x: np.ndarray) -> dict[str, float]:
    def exact(activation: str, depth: int) -> float:
        return _kappa(infinite_width_ntk(x, _network(activation, depth, math.inf)))

    def formula(activation: str, depth: int) -> float:
        return predicted_kappa(x, _network(activation, depth, math.inf))

    def finite(activation: str, depth: int) -> float:
        networks = (_initial(activation, depth, seed) for seed in SEEDS)
        return float(np.median([_kappa(empirical_ntk(gradients(x))) for gradients in networks]))

    found = {}
    for prefix, kappa in (("", exact), ("formula_", formula), ("finite_", finite)):
        shallow = kappa("relu", 1)
        found[f"{prefix}relu_to_linear"] = shallow / kappa("linear", 1)
        found[f"{prefix}deep_to_shallow"] = kappa("relu", DEEP) / shallow
    return found


def _network(activation: str, depth: int, width: float) -> MLP:
    return MLP(ACTIVATIONS[activation], depth, width)


@functools.cache  # for all samples
def _initial(activation: str, depth: int, seed: int) -> GradientMap:
    return _network(activation, depth, WIDTH).initial_gradients(seed, FEATURES)


def _kappa(kernel: np.ndarray) -> float:
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A column for each cause, a row for each ratio, on one scale of colours."""
    figure = style.figure(height=4.3)
    panels = figure.subplots(len(RATIOS), len(CAUSES))
    titles = (r"$\kappa$(ReLU)/$\kappa$(linear)", rf"$\kappa$($L$ = {DEEP})/$\kappa$($L$ = 1)")
    letters = iter("abcdef")
    for row, name, title in zip(panels, RATIOS, titles, strict=True):
        for axes, (key, cause) in zip(row, CAUSES.items(), strict=True):
            colours = _map(axes, numbers[numbers.cause == key], name, cause)
            axes.set_title(f"({next(letters)}) {title}", fontsize=7)
            axes.set_ylabel(cause.label, fontsize=7, labelpad=2)
    for axes in panels[-1]:
        axes.set_xlabel("samples per feature, $n$/$d$", fontsize=7)
    bar = figure.colorbar(colours, ax=panels, pad=0.02, extend="both", aspect=40)
    bar.solids.set_rasterized(False)  # a picture with lines alone
    bar.set_label(r"ratio of $\kappa$; blue: lower")
    keys = [
        (Line2D([], [], color="black"), "ratio 1"),
        (Line2D([], [], color="black", linestyle="--"), "ratio 1, linearised NTK"),
        (
            Line2D([], [], color="black", marker="x", linestyle="none"),
            "cross: the other side of 1",
        ),
        (
            Line2D([], [], color="black", marker=".", linestyle="none"),
            f"dot: off by a factor above {FAR}",
        ),
    ]
    about = (
        rf"Colours: $m \to \infty$, Gaussian samples, $d$ = {FEATURES},"
        f" $n$ = {style.span(numbers.n)}. Crosses and dots: median of {len(SEEDS)} initialisations"
        f" at $m$ = {WIDTH}. (a) to (c): $L$ = 1."
        r" (c), (f): feature $j$ has variance $j^{-\alpha}$."
    )
    figure.key(*keys, about=about)
    return figure


def _map(axes: Axes, numbers: pd.DataFrame, name: str, cause: Cause) -> mpl.cm.ScalarMappable:
    """Fields of equal size, so that weak causes are seen."""
    values, formula, finite = (
        numbers.pivot(index="level", columns="size", values=f"{prefix}{name}").loc[[*cause.levels]]
        for prefix in ("", "formula_", "finite_")
    )
    limits = LogNorm(1 / FARTHEST, FARTHEST)
    colours = axes.pcolormesh(values, norm=limits, cmap="RdBu_r")
    columns, rows = (np.arange(count) + 0.5 for count in values.shape[::-1])
    for some, dashes in ((values, "-"), (formula, "--")):
        if some.to_numpy().min() < 1 < some.to_numpy().max():
            axes.contour(columns, rows, np.log(some), [0], colors="black", linestyles=dashes,
                         linewidths=1)  # fmt: skip
    differs = (values < 1) != (finite < 1)
    far = (np.log(finite / values).abs() > math.log(FAR)) & ~differs
    for marked, mark in ((differs, "kx"), (far, "k.")):
        for row, column in np.argwhere(marked.to_numpy()):
            axes.plot(column + 0.5, row + 0.5, mark)
    axes.set_xticks(columns, [f"{size:g}" for size in values.columns], fontsize=6)
    axes.set_yticks(rows, [f"{level:g}" for level in values.index], fontsize=6)
    axes.grid(False)
    return colours
