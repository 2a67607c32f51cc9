"""Epochs of SGD to a loss against κ at the start, a point for each network."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE

from ntkcond.artefacts import conditions, style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Epochs of training against κ at the start",
    section="§6 Faster optimization",
    inputs=("speed",),
    datasets="fig_speed",
    caption="""
Each point is a network: its depth (colour), width (size) and activation (marker). **x**: κ of its
NTK at initialisation, geometric mean over initialisations. **y**: the epochs that plain SGD takes
to a training loss, mean over initialisations, at the best learning rate of those tried. A row for
each data set, a panel for each loss function; the loss to reach is the lowest that at least half of
the networks reach. Networks that do not reach it are in the grey band at the top, a line for each
width and activation; κ = ∞ has a grey band at the right; a network whose κ is not resolved is left
out. A triangle that points down or up: the
best rate is the lowest or the highest of those tried, so that a better one may exist.

- The learning rates tried are multiples of n/λ\\ :sub:`max` of each network's own NTK of n samples:
  the same for every network on the scale that matters, so that λ\\ :sub:`max` gives none an
  advantage. Best is the rate that gets to the loss first, with every initialisation.
- Epochs are interpolated in the logarithm of the loss. The loss of an epoch is the mean over its
  samples, each before the step that uses it.
- ½ ‖f − e‖² is the square loss of a sample, e the unit vector of its class.

**The paper** (§6) argues from the bound (1 − 1/κ)ᵗ on gradient descent that networks with a smaller
κ train faster. ``fig_predictors`` compares κ with other measures.
""",
)

NETWORK = ["dataset", "loss", "activation", "width", "depth"]
MEASURES = (
    "start_loss", "kappa", "lambda_min", "kappa_without_first", "largest_share", "label_rate",
    "label_complexity", "predicted_steps", "alignment",
)  # fmt: skip
TIPS = {  # of points whose best rate is the lowest or the highest of those tried
    name: {
        "marker": marker, "color": style.COLOURS[1], "markeredgecolor": "white", "markersize": 5,
        "markeredgewidth": 0.4, "linestyle": "none", "zorder": 3,
    }
    for name, marker in (("lowest", CARETDOWNBASE), ("highest", CARETUPBASE))
}  # fmt: skip
LOG = ("kappa", "lambda_min", "kappa_without_first", "label_complexity", "predicted_steps")


def table(speed: Sequence[Path]) -> pd.DataFrame:
    """A row for each network and threshold, a training loss: epochs until it is reached, mean over
    seeds at the best learning rate, which is in units of n/λ_max, and its place among those tried
    (at_edge: lowest, highest, only, or empty for in between); these are empty if at no rate every
    seed reaches it. shown: whether this is the loss of the figure. Of the network at the start,
    means over seeds (geometric of those of LOG): MEASURES (`ntkcond.ntk.predictors`). kappa,
    and what divides by λ_min, is inf for a singular NTK and empty where κ is not resolved for all
    seeds."""
    rows = pd.concat(map(_networks, speed), ignore_index=True)
    reached = rows.epochs.notna().groupby([rows.dataset, rows.loss, rows.threshold])
    enough = rows.threshold.where(reached.transform("mean") >= 0.5)
    lowest = enough.groupby([rows.dataset, rows.loss]).transform("min")
    return rows.assign(shown=rows.threshold == lowest)


def _networks(path: Path) -> pd.DataFrame:
    with read_hdf5(path) as file:
        about = dict(file.attrs)
        losses, start_loss = file["train_loss"][:], file["start_loss"][:]
        ntk = {name: file[f"ntk/{name}"][:] for name in MEASURES[1:]}
        unresolved = file["ntk/verdict"].asstr()[:] == "unresolved"
    ntk["kappa"] = np.where(unresolved, np.nan, ntk["kappa"])
    measures = {"start_loss": start_loss, **ntk}
    relative, rows = about["learning_rates"], []
    for i, j in itertools.product(range(len(about["activations"])), range(len(about["depths"]))):
        network = {
            "dataset": path.parts[-3], "loss": about["loss"], "activation": about["activations"][i],
            "width": about["width"], "depth": about["depths"][j], "n": about["n"],
            "samples": about["samples"], "batch": about["batch"], "seeds": len(about["seeds"]),
        }  # fmt: skip
        means = {name: _mean(values[i, j], name in LOG) for name, values in measures.items()}
        for threshold in about["thresholds"]:
            # a rate at which a seed does not get there is no candidate
            epochs = epochs_until(losses[i, j], threshold).mean(axis=0)
            best = {"epochs": np.nan, "learning_rate": np.nan, "at_edge": ""}
            if np.isfinite(epochs).any():
                r = int(np.nanargmin(epochs))
                ends = {0: "lowest", len(relative) - 1: "highest"}
                place = ends.get(r, "") if len(relative) > 1 else "only"
                best = {"epochs": epochs[r], "learning_rate": relative[r], "at_edge": place}
            rows.append({**network, "threshold": threshold, **best, **means})
    return pd.DataFrame(rows)


def epochs_until(losses: np.ndarray, threshold: float) -> np.ndarray:
    """(…): until the losses (…, epochs) are below the threshold, between two epochs by the
    logarithm; nan if they never are."""
    below = losses < threshold
    first = below.argmax(axis=-1)[..., None]
    before = np.take_along_axis(losses, np.maximum(first - 1, 0), axis=-1)
    after = np.take_along_axis(losses, first, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(before / threshold) / np.log(before / after)
    epochs = np.where(first > 0, first + share, 1.0)[..., 0]
    return np.where(below.any(axis=-1), epochs, np.nan)


def _mean(values: np.ndarray, geometric: bool) -> float:
    if not geometric:
        return float(values.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.exp(np.log(values).mean()))


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of panels for each data set, a panel for each loss function."""
    datasets = numbers.groupby("dataset", sort=False)
    losses = list(numbers.loss.unique())
    width = max(style.TEXT_WIDTH, 3.4 * len(losses))
    figure = style.figure(height=2.7 * len(datasets), width=width)
    panels = figure.subplots(len(datasets), len(losses), squeeze=False)
    colours = style.depth_colours_of(numbers.depth)
    for line, (dataset, of_dataset) in zip(panels, datasets, strict=True):
        for axes, loss in zip(line, losses, strict=True):
            rows = of_dataset[(of_dataset.loss == loss) & of_dataset.shown]
            axes.set_title(f"{conditions.title(dataset)}, {loss.replace('_', ' ')} loss")
            n = of_dataset.n.iloc[0]
            axes.set_xlabel(rf"$\kappa$ at initialisation, of $n$ = {n:,} samples")
            if rows.empty:
                words = "half of the networks reach none of the losses"
                axes.text(0.5, 0.5, words, ha="center", transform=axes.transAxes)
                axes.set(xticks=[], yticks=[])
                continue
            axes.set_ylabel(f"epochs to a training loss of {rows.threshold.iloc[0]:g}")
            _points(axes, rows, colours)
    about = conditions.in_words(numbers.drop(columns=["width", "n"]), "epochs: their mean")
    figure.key(*_entries(numbers, colours), about=about)
    return figure


def _points(axes: Axes, rows: pd.DataFrame, colours: dict) -> None:
    """Networks that reach the loss by their epochs; above, in a grey band with a line for each
    activation and width, the others; κ = ∞ in a grey band at the right."""
    lanes = list(rows.groupby(["activation", "width"], sort=False).groups)
    slowest, finite = rows.epochs.max(), rows.kappa[np.isfinite(rows.kappa)]
    height = max(slowest / rows.epochs.min(), 1.5)  # of the axis below, as a factor
    late = {lane: slowest * height ** (0.2 + 0.07 * i) for i, lane in enumerate(reversed(lanes))}
    places = pd.Series([late[names] for names in zip(rows.activation, rows.width, strict=True)])
    y = rows.epochs.fillna(places.set_axis(rows.index))
    edge = 6 * (finite.max() if len(finite) else 1)
    x = rows.kappa.replace(np.inf, edge)
    sizes = _areas(rows)
    for (activation, depth), points in rows.groupby(["activation", "depth"], sort=False):
        first = activation == rows.activation.iloc[0]
        axes.scatter(
            x[points.index], y[points.index],
            s=points.width.map(sizes), marker="o" if first else "s", color=[colours[depth]],
            facecolors=[colours[depth]] if first else "none", linewidths=0.8,
        )  # fmt: skip
    for edge_of_rates, tip in TIPS.items():
        points = rows.index[rows.at_edge == edge_of_rates]
        if len(points):
            axes.plot(x[points], y[points], **tip)
    axes.set_xscale("log")
    style.plain_log(axes)
    band = {"color": style.IN_BAND, "linewidth": 0, "zorder": 0}
    if rows.epochs.isna().any():
        below, top = slowest * height**0.13, max(late.values()) * height**0.07
        axes.axhspan(below, top, **band)
        axes.set_ylim(rows.epochs.min() / height**0.1, top)
        ticks = style.PlainLogTicks().tick_values(axes.get_ylim()[0], below)
        names = [style.plain(tick) for tick in ticks]
        axes.set_yticks([*ticks, (below * top) ** 0.5], [*names, "not\nreached"])
    if np.isinf(rows.kappa).any():
        axes.axvspan(edge / 2, edge * 2, **band)
        axes.set_xlim(right=edge * 2)
        powers = 10.0 ** np.arange(np.ceil(np.log10(axes.get_xlim()[0])), np.log10(edge / 2))
        names = [rf"$10^{{{power:.0f}}}$" for power in np.log10(powers)]
        axes.set_xticks([*powers, edge], [*names, r"$\infty$"])
        axes.minorticks_off()


def _areas(numbers: pd.DataFrame) -> dict[int, int]:
    """The size of the points, by width."""
    return {width: 10 + 12 * i for i, width in enumerate(sorted(numbers.width.unique()))}


def _entries(numbers: pd.DataFrame, colours: dict) -> Iterator[tuple[Artist, str]]:
    """Entries of the legend: depths; activations; widths; what is at an edge."""
    points = {"linestyle": "none", "marker": "o"}
    for depth, colour in colours.items():
        yield Line2D([], [], color=colour, **points), f"$L$ = {depth}"
    for i, activation in enumerate(numbers.activation.unique()):
        look = {**points, "marker": "s" if i else "o"}
        fill = "white" if i else style.GREY
        name = ACTIVATIONS[activation].title
        yield Line2D([], [], color=style.GREY, markerfacecolor=fill, **look), name
    for width, area in _areas(numbers).items():
        look = {"color": style.GREY, "markersize": np.sqrt(area), **points}
        yield Line2D([], [], **look), f"$m$ = {width}"
    shown = numbers[numbers.shown]
    for edge_of_rates, tip in TIPS.items():
        if (shown.at_edge == edge_of_rates).any():
            yield (
                Line2D([], [], **tip),
                f"triangle: best learning rate is the {edge_of_rates} tried",
            )
    missing = shown.epochs.isna().any(), np.isinf(shown.kappa).any()
    words = (r"loss not reached, a line for each $m$ and activation", r"$\kappa = \infty$")
    if any(missing):
        yield style.key_of_band(" or ".join(itertools.compress(words, missing)))
