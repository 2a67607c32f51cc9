"""Where ReLU lowers κ, and where depth does: Gaussian samples by n/d and a common offset."""

import itertools
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.linearised import gaussian_kappa

SPEC = Spec(
    title="The map of κ with and without ReLU",
    section="§∞ When does ReLU help?",
    caption="""
n Gaussian samples of d = 200 features, to each of which an offset is added. **Left**: κ with ReLU
over κ of linear networks, L = 1, infinite width. **Right**: κ with ReLU at L = 10 over κ at L = 1.
Blue: ReLU, or depth, lowers κ; red: it raises κ. The solid line is where it changes, the dashed
line where the formula of the linearised NTK has it (docs/when.md). A cross: one network of width
512 is on the other side than infinite width.

**The paper** says that ReLU and depth lower κ of any data without parallel inputs. They do so where
a common offset, or n near d, makes κ of the inputs large.
""",
)

FEATURES = 200
SIZES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)  # n/d
OFFSETS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
DEEP = 10
WIDTH, SEED = 512, 1
FARTHEST = 100  # of the colours
RATIOS = ("relu_to_linear", "deep_to_shallow")


def table() -> pd.DataFrame:
    """A row for each n/d and offset: relu_to_linear and deep_to_shallow, the ratios of κ at
    infinite width; the same by the formula, formula_…, and of networks of width 512, finite_…."""
    return pd.DataFrame(
        [
            {"size": size, "offset": offset, "n": round(size * FEATURES), "d": FEATURES}
            | _ratios(round(size * FEATURES), offset)
            for size, offset in itertools.product(SIZES, OFFSETS)
        ]
    )


def _ratios(n: int, offset: float) -> dict[str, float]:
    x = np.random.default_rng(0).standard_normal((n, FEATURES)) + offset

    def exact(activation: str, depth: int) -> float:
        return _kappa(infinite_width_ntk(x, _network(activation, depth, math.inf)))

    def formula(activation: str, depth: int) -> float:
        return gaussian_kappa(n, FEATURES, offset, _network(activation, depth, math.inf))

    def finite(activation: str, depth: int) -> float:
        network = _network(activation, depth, WIDTH)
        return _kappa(empirical_ntk(network.initial_gradients(SEED, FEATURES)(x)))

    found = {}
    for prefix, kappa in (("", exact), ("formula_", formula), ("finite_", finite)):
        shallow = kappa("relu", 1)
        found[f"{prefix}relu_to_linear"] = shallow / kappa("linear", 1)
        found[f"{prefix}deep_to_shallow"] = kappa("relu", DEEP) / shallow
    return found


def _network(activation: str, depth: int, width: float) -> MLP:
    return MLP(ACTIVATIONS[activation], depth, width)


def _kappa(kernel: np.ndarray) -> float:
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """Two maps on one scale of colours."""
    figure = style.figure(height=2.7)
    panels = figure.subplots(1, 2, sharey=True)
    titles = (r"$\kappa$(ReLU) / $\kappa$(linear), $L$ = 1",
              rf"$\kappa$($L$ = {DEEP}) / $\kappa$($L$ = 1), ReLU")  # fmt: skip
    for axes, name, title in zip(panels, RATIOS, titles, strict=True):
        colours = _map(axes, numbers, name)
        axes.set_title(title)
        axes.set_xlabel("samples per feature, $n$/$d$")
    panels[0].set_ylabel("offset of each feature,\nin standard deviations")
    bar = figure.colorbar(colours, ax=panels, pad=0.02, extend="both")
    bar.solids.set_rasterized(False)  # a picture with lines alone
    bar.set_label(r"ratio of $\kappa$; blue: lower")
    keys = [
        (Line2D([], [], color="black"), "ratio 1"),
        (Line2D([], [], color="black", linestyle="--"), "by the formula"),
        (Line2D([], [], color="black", marker="x", linestyle="none"), f"$m$ = {WIDTH} differs"),
    ]
    figure.legend(*zip(*keys, strict=True), loc="outside lower center", ncols=3)
    return figure


def _map(axes: Axes, numbers: pd.DataFrame, name: str) -> mpl.cm.ScalarMappable:
    """Fields of equal size, so that offsets near 0 are seen."""
    values, formula, finite = (
        numbers.pivot(index="offset", columns="size", values=f"{prefix}{name}")
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
    for row, column in np.argwhere(differs.to_numpy()):
        axes.plot(column + 0.5, row + 0.5, "kx")
    axes.set_xticks(columns, [f"{size:g}" for size in values.columns])
    axes.set_yticks(rows, [f"{offset:g}" for offset in values.index])
    axes.grid(False)
    return colours
