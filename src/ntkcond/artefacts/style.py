"""How figures look: sizes, fonts, colours; and how they are saved, to the same bytes each time."""

import io
import json
import math
import textwrap
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from numpy.typing import ArrayLike

from ntkcond.run.files import replacing

TEXT_WIDTH = 5.5  # inches: a single-column paper's text; half of it is still legible
# Okabe & Ito's colours, told apart in every common form of colour blindness; yellow is left out,
# which white paper swallows. Markers and dashes carry the same in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "0.45"

SETTINGS = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same on every machine
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # TrueType, embedded: text stays text
    "savefig.dpi": 300,
}


class Picture(Figure):
    """A figure that is saved to the same bytes each time."""

    def note(self, words: str) -> None:
        """Small grey words above all panels, where no figure has a title."""
        lines = textwrap.wrap(words, int(20 * self.get_figwidth()))
        self.set_figheight(self.get_figheight() + 0.05 + 0.1 * len(lines))
        look = {"fontsize": 6, "fontweight": "normal", "color": GREY}
        self.suptitle("\n".join(lines), x=0.99, ha="right", **look)

    def save(self, path: Path | str, record: dict | None = None) -> None:
        """As the suffix says (.pdf, .png), without a date, with its provenance."""
        content = self.rendered(Path(path).suffix, record)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    def rendered(self, suffix: str, record: dict | None = None) -> bytes:
        """What `save` writes."""
        key = {".pdf": "Keywords", ".png": "provenance"}[suffix]
        metadata = {key: json.dumps(record)}
        if suffix == ".pdf":
            metadata["CreationDate"] = None
        picture = io.BytesIO()  # on a full disk matplotlib's PDF fails with an error of its own
        with look():
            self.savefig(picture, format=suffix[1:], metadata=metadata)
        return picture.getvalue()


def figure(height: float, width: float = TEXT_WIDTH) -> Picture:
    """An empty figure of this size in inches; draw it within `look()`."""
    return Picture(figsize=(width, height), layout="constrained")


def look() -> mpl.rc_context:
    """The context in which figures are drawn and saved; also the decorator of `draw`."""
    return mpl.rc_context(SETTINGS)


def depth_colours(count: int) -> np.ndarray:
    """Colours (count, 4) for curves ordered by depth, from light to dark."""
    return mpl.colormaps["viridis_r"](np.linspace(0.12, 1.0, count))


def depth_colours_of(depths: Iterable[int]) -> dict[int, np.ndarray]:
    """The colour of each depth, by depth."""
    depths = sorted({int(depth) for depth in depths})  # a CSV with a gap gives 1.0
    return dict(zip(depths, depth_colours(len(depths)), strict=True))


def shade(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: object) -> None:
    """The spread of a curve, from low to high."""
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def key_below(figure: Figure, axes: Axes, columns: int | None = None) -> None:
    """The key of the curves in axes, below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or len(labels))


def sizes_axis(axes: Axes, sizes: Iterable[int], apart: float = 1.0) -> None:
    """A log scale of x with a tick at each of these numbers of samples; from the largest down, each
    that is so many octaves from the last is labelled."""
    sizes, labels, last = sorted({int(n) for n in sizes}), {}, math.inf
    for n in reversed(sizes):
        if math.log2(last / n) >= apart:
            labels[n], last = f"{n:,}", n
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [labels.get(n, "") for n in sizes])
    axes.minorticks_off()


class PlainLog(LogFormatter):
    """0.3 rather than 3 × 10⁻¹, at as many ticks of a log axis as have room."""

    def __init__(self) -> None:
        super().__init__(minor_thresholds=(2, 0.5))

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def plain_log(axes: Axes) -> None:
    """A log scale of y with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(PlainLog())
    axes.yaxis.set_minor_formatter(PlainLog())
