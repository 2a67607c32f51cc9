"""Figure 3: training loss against epoch, a curve for each depth, at the best learning rate."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ntkcond.artefacts import best_rate, conditions, style
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.run.progress import log
from ntkcond.training.learning_rates import CURVE, best_rates, first_epochs, runs_at

SPEC = Spec(
    title="Figure 3, training loss against epoch",
    section="§6 Faster optimization",
    inputs=("training",),
    settings={"rate_for": "training.rate_for"},
    datasets="fig3",
    about="training",
    caption="""
Above: the training loss against the epoch, a curve for each depth L, from light to dark. Mean over
seeds, which set the initialisation and the order of the samples; shade: their range. Nothing is
smoothed: each point is the mean loss over the samples of one epoch, each before the step that uses
it. Middle: epochs to a loss, the mean over seeds, where all get there, against L. Below, for each
curve, the learning rate η with the lowest training loss in the last epoch of all that were
tried (``rate_for``: for each depth, or one for all depths of a data set), or the one that was
tried. Where runs end below a loss (``training.stop_below``), the best rate is the one that gets
there first, and a curve ends with its first run, at a dot. A rate marked * is at the edge of
several that were tried; one beyond it may be better.
*none*: at every rate a run diverged. As the last epoch alone decides, a rate whose loss jumps there
is not chosen.

**The paper** (§6 and its Figure 3; Figure 4 of its newest version) states that a deeper ReLU
network always converges faster than shallower ones. When you compare:

- The paper trains on all samples, 500 epochs for MNIST and Fashion-MNIST, 2,000 for LibriSpeech,
  with cross entropy, plain SGD and batches of 500, at depths 1 to 10.
- It takes the best learning rate of a grid for each task, without saying what the grid is, what
  best means, or whether a task is a data set or a data set at one depth. ``rate_for`` has both.
- Convention: with Eq. (1) taken literally the outputs start at the size of a sample's norm, for
  MNIST tens, and the cross entropy with them. The authors' scripts divide each layer by the root
  of its input width, so that they start near 1. That is ``authors``, the default; ``paper`` is Eq.
  (1). Learning rates of the two do not compare.
- Depth 12, if present, is from the paper's Table 1; its figure ends at depth 10.
- An epoch of a deeper network costs more. ``table_epochs`` has the operations beside the epochs.
- For LibriSpeech the paper only says that its 768 features follow Hui & Belkin (2020), which does
  not settle them, and nothing about labels; its authors' scripts have 41 classes. Recipe and labels
  are therefore **this project's choice**: neighbouring frames of log-mel energies; the label is the
  phone where the config names an alignment, else the speaker identity.

``results/training.csv`` has every epoch of every run, at all learning rates.
""",
)

PER_CURVE = ["width", "activation", "convention", "loss", "batch", "epochs", "samples", "tf32"]
ABOVE = 4.4  # inches of the panels
REACHED = (1, 0.1, 0.01)  # losses
OTHERS = ("train_accuracy", "test_loss", "test_accuracy")
LOSSES = {"cross_entropy": "nats", "square": "half the squared error"}
SCALES = {
    "authors": "As in the authors’ scripts each layer is divided by the root of its input width.",
    "paper": "Eq. (1) is taken literally: the outputs start at the size of a sample’s norm.",
}


def table(training: pd.DataFrame, rate_for: str) -> pd.DataFrame:
    """The numbers drawn: a row for each (dataset, depth, epoch), of the best learning rate.

    Of the training loss over seeds: mean, std (n − 1, empty for a single seed), smallest
    and largest; means of the other measures. rates_tried, lowest_rate, highest_rate and at_edge:
    among which the rate is best (`ntkcond.training.learning_rates`). epochs_to_1 and so on: the
    mean of the first epochs below a loss, empty unless all seeds get there. A depth without a best
    rate has one row, without learning rate and epoch."""
    rates = best_rates(training, rate_for)
    tried = training.groupby(CURVE, as_index=False, sort=False).agg(
        rates_tried=("learning_rate", "nunique"),
        lowest_rate=("learning_rate", "min"),
        highest_rate=("learning_rate", "max"),
        seeds=("seed", "nunique"),
        **{name: (name, "first") for name in PER_CURVE},
    )
    curves = _while_all_run(runs_at(training, rates)).groupby(
        [*CURVE, "epoch"], as_index=False, sort=False
    )
    epochs = curves.agg(
        **{f"train_loss_{name}": ("train_loss", name) for name in ("mean", "std", "min", "max")},
        **{f"{name}_mean": (name, "mean") for name in OTHERS},
    )
    numbers = rates.assign(rate_for=rate_for).merge(tried, on=CURVE)
    numbers = numbers.merge(_first_epochs(runs_at(training, rates)), on=CURVE, how="left")
    numbers = numbers.merge(epochs, on=CURVE, how="left")
    for row in numbers[numbers.at_edge.isin(best_rate.EDGES)].drop_duplicates(CURVE).itertuples():
        log.warning(
            "%s L=%d: the best learning rate, %g, is the %s of those tried; widen learning_rates,"
            " of training or of datasets.%s.training",
            row.dataset, row.depth, row.learning_rate, row.at_edge, row.dataset,
        )  # fmt: skip
    return numbers.astype({"epoch": "Int64"})


def _first_epochs(runs: pd.DataFrame) -> pd.DataFrame:
    """For each curve the mean epochs to each of REACHED."""
    first = first_epochs(runs, REACHED)
    first["name"] = [f"epochs_to_{loss:g}" for loss in first.threshold]
    means = first.groupby([*CURVE, "name"])["first"].agg(lambda epochs: epochs.mean(skipna=False))
    return means.unstack().reindex(columns=[f"epochs_to_{loss:g}" for loss in REACHED])


def _while_all_run(runs: pd.DataFrame) -> pd.DataFrame:
    """Without the epochs after the first of a curve's runs has stopped."""
    losses = runs.groupby([*CURVE, "epoch"]).train_loss
    return runs[losses.transform("count") == losses.transform("size")]


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A panel for each data set; below them the key, with the learning rate of each curve."""
    datasets = numbers.groupby("dataset", sort=False)
    colours = style.depth_colours_of(numbers.depth)
    width = style.TEXT_WIDTH if len(datasets) > 1 else 4.2
    note = [part for line in _note(numbers) for part in textwrap.wrap(line, int(22 * width))]
    heights = [ABOVE, 0.16 * (len(datasets) + 1) + 0.12 * len(note) + 0.15]  # inches
    figure = style.figure(height=sum(heights), width=width)
    above, below = figure.subfigures(2, 1, height_ratios=heights)
    panels = above.subplots(2, len(datasets), squeeze=False, height_ratios=[3, 2])
    for (curves, reached), (_, rows) in zip(panels.T, datasets, strict=True):
        _panel(curves, rows, colours)
        _reached(reached, rows)
    losses = [LOSSES[name] for name in numbers.loss.unique()]
    panels[0, 0].set_ylabel(f"training loss ({' or '.join(losses)})")
    panels[1, 0].set_ylabel("epochs to a loss")
    key = _key(below, numbers, colours)
    below.supxlabel("\n".join(note), fontsize=6, color=style.GREY)
    _place(figure, panels, key, 0.12 * len(note) + 0.1)
    return figure


def _place(figure: Figure, panels: np.ndarray, key: Axes, note: float) -> None:
    """By hand, in inches, of which the note takes so many: the last digits of a solver's layout
    differ from run to run."""
    figure.set_layout_engine("none")
    (width, height), count = figure.get_size_inches(), panels.shape[1]
    one = (width - 0.6 - 0.35 - 0.62 * (count - 1)) / count
    for (curves, reached), column in zip(panels.T, range(count), strict=True):
        left = (0.6 + column * (one + 0.62)) / width
        curves.set_position([left, 1.85 / ABOVE, one / width, 2.05 / ABOVE])
        reached.set_position([left, 0.42 / ABOVE, one / width, 1.0 / ABOVE])
    below = height - ABOVE
    key.set_position([1.25 / width, note / below, 1 - 1.3 / width, 1 - note / below])


def _panel(axes: Axes, numbers: pd.DataFrame, colours: dict) -> None:
    for depth, curve in numbers.dropna(subset="epoch").groupby("depth"):
        epoch, low, high = curve.epoch.astype(int), curve.train_loss_min, curve.train_loss_max
        look = {"color": colours[depth], "zorder": 2 + depth / 1000}
        axes.plot(epoch, curve.train_loss_mean, marker="o" if len(curve) == 1 else None, **look)
        if len(curve) < curve.epochs.iloc[0]:  # its first run is below the loss at which runs end
            axes.plot(epoch.iloc[-1], curve.train_loss_mean.iloc[-1], "o", markersize=4, **look)
        axes.fill_between(epoch, low, high, alpha=0.15, linewidth=0, **look)
    row = numbers.iloc[0]
    axes.set_title(f"{conditions.title(row.dataset)}\n{row.samples:,} samples")
    axes.set_xlabel("epoch")
    style.plain_log(axes)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(style.PlainLogTicks())
    axes.xaxis.set_major_formatter(lambda value, _: style.plain(value))
    axes.xaxis.set_minor_locator(NullLocator())
    if numbers.epoch.isna().all():
        axes.text(0.5, 0.5, "at every rate a run diverged", ha="center", transform=axes.transAxes)


def _reached(axes: Axes, numbers: pd.DataFrame) -> None:
    """Epochs to each of REACHED, against depth; the loss stands at the last depth."""
    curves = numbers.drop_duplicates("depth").set_index("depth")
    style.plain_log(axes)
    style.depth_axis(axes, numbers.depth)
    axes.set_xlabel("depth $L$")
    axes.tick_params(axis="x", labelsize=6)
    for loss in REACHED:
        first = curves[f"epochs_to_{loss:g}"].dropna()
        if len(first):
            axes.plot(first.index, first, "o-", color="black", markersize=3)
            place = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
            text = axes.annotate(f"{loss:g}", (first.index[-1], first.iloc[-1]), **place)
            text.set(fontsize=7, in_layout=False)
    first, last = numbers.depth.min(), numbers.depth.max()
    pad = max(last - first, 1) / 14
    axes.set_xlim(first - pad, last + 3 * pad)  # to the right, the losses
    low, high = axes.get_ylim()
    # one epoch more or less is no cliff, and ticks are whole
    axes.set_ylim(low / 1.15, max(high * 1.05, 6 * low))


def _key(below: Figure, numbers: pd.DataFrame, colours: dict) -> Axes:
    """A column for each depth: its colour, and for each data set the learning rate."""
    datasets = list(numbers.dataset.unique())
    top = len(datasets)
    axes = below.subplots()
    axes.set(xlim=(-0.5, max(len(colours), 6) - 0.5), ylim=(-0.6, top + 0.6))
    axes.set_axis_off()
    small = {"fontsize": 7, "va": "center"}
    for position, name in enumerate(
        ["depth $L$", *(rf"$\eta$, {conditions.title(d)}" for d in datasets)]
    ):
        axes.text(-0.75, top - position, name, ha="right", **small)
    for column, (depth, colour) in enumerate(colours.items()):
        axes.plot([column - 0.36, column - 0.14], [top] * 2, color=colour, linewidth=2)
        axes.text(column - 0.06, top, depth, ha="left", **small)
    for row in numbers.drop_duplicates(CURVE).itertuples():
        place = list(colours).index(row.depth), top - 1 - datasets.index(row.dataset)
        axes.text(*place, best_rate.shown(row), ha="center", **small)
    return axes


def _note(numbers: pd.DataFrame) -> list[str]:
    def values(column: str) -> str:
        return " or ".join(f"{value:g}" for value in sorted(numbers[column].unique()))

    activations = " or ".join(ACTIVATIONS[name].title for name in numbers.activation.unique())
    seeds = "one seed"
    if (numbers.seeds > 1).any():
        seeds = f"mean over {values('seeds')} seeds; shade: their range"
    conventions = numbers.groupby("convention", sort=False).dataset.unique()
    several = len(conventions) > 1
    lines = [
        f"{activations}, $m$ = {values('width')}, plain SGD, batch {values('batch')}."
        f" Line: {seeds}.",
        *(
            (f"{', '.join(map(conditions.title, datasets))}: " if several else "")
            + SCALES[convention]
            for convention, datasets in conventions.items()
        ),
        _rates(numbers),
    ]
    if _stops(numbers):
        runs = "first run" if (numbers.seeds > 1).any() else "run"
        lines.append(f"Dot: the {runs} has reached the loss at which runs end.")
    if numbers.at_edge.isin(best_rate.EDGES).any():
        lines.append("* at the edge of those tried: one beyond it may be better.")
    if numbers.learning_rate.isna().any():
        lines.append("none: at every rate a run diverged.")
    return lines


def _stops(numbers: pd.DataFrame) -> bool:
    curves = numbers.groupby(CURVE)
    return bool((curves.epoch.max() < curves.epochs.max()).any())


def _rates(numbers: pd.DataFrame) -> str:
    only = numbers[numbers.at_edge == "only"]
    if len(only) == len(numbers[numbers.learning_rate.notna()]):
        return r"$\eta$: the learning rate, one tried at each depth."
    chosen = best_rate.chosen(numbers.rate_for.iloc[0], _stops(numbers))
    tried = f"{numbers.lowest_rate.min():g} to {numbers.highest_rate.max():g}"
    alone = f"; one alone at L = {', '.join(map(str, sorted(only.depth.unique())))}"
    end = alone * bool(len(only))
    return rf"$\eta$: the learning rate {chosen}, of those from {tried}{end}."
