"""How figures look: sizes, fonts, colours; and how they are saved, to the same bytes each time."""

import io
import json
import math
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import Locator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from ntkcond.run.files import replacing

TEXT_WIDTH = 5.5  # inches: a single-column paper's text; half of it is still legible
# Okabe & Ito's colours, told apart in every common form of colour blindness; yellow is left out,
# which white paper swallows. Markers and dashes carry the same in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "D", "v", "P", "X", "*", "<")  # the upright triangle is a lower bound
GREY = "0.45"
IN_GREY = {"color": GREY, "marker": "o"}  # the look of what is the same for all curves
IN_BAND = "0.95"  # the grey of a band for what has no place on the axis
SHADE = "shade: "  # begins the legend's words for a shade
BOUND = {"linestyle": "none", "marker": "^", "markerfacecolor": "white", "markersize": 4.5}

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
        lines = self._wrapped(words)
        self.set_figheight(self.get_figheight() + 0.05 + 0.1 * len(lines))
        look = {"fontsize": 6, "fontweight": "normal", "color": GREY}
        self.suptitle("\n".join(lines), x=0.99, ha="right", **look)

    def key(self, *entries: tuple[Artist, str], about: str = "") -> None:
        """The legend, below all panels: `about` in small grey words; entries; and then all that
        panels have with a label, in grey where curves of several colours share it. What shades,
        bars and other marks mean has a colon, and columns of its own; two shades share an entry. As
        few lines as fit. The figure becomes taller by its height."""
        named = {label: artist for artist, label in entries}
        for artist, label in self._labelled():
            named.setdefault(label, artist)
        kinds = [[label for label in named if (":" in label) == mark] for mark in (False, True)]
        place = {"loc": "outside lower center", "columnspacing": 1.4, "handletextpad": 0.5}
        title = {"title": "\n".join(self._wrapped(about)) or None, "title_fontsize": 6}
        for lines in range(1, len(named) + 1):
            labels = [label for kind in kinds for label in [*kind, *[""] * (-len(kind) % lines)]]
            handles = [named.get(label, Line2D([], [], linestyle="none")) for label in labels]
            legend = self.legend(handles, labels, ncols=len(labels) // lines, **place, **title)
            box = legend.get_window_extent()
            if box.width <= 0.97 * self.bbox.width or lines == len(named):
                break
            legend.remove()
        legend.get_title().set_color(GREY)
        self.set_figheight(self.get_figheight() + box.height / self.dpi)

    def _labelled(self) -> Iterator[tuple[Artist, str]]:
        """What the panels name, each name once."""
        artists: dict[str, list[Artist]] = {}
        for axes in self.axes:
            for artist, label in zip(*axes.get_legend_handles_labels(), strict=True):
                artists.setdefault(label, []).append(artist)
        shades = [label for label in artists if label.startswith(SHADE)]
        for label, some in artists.items():
            colours = {mpl.colors.to_hex(colour_of(artist)) for artist in some}
            entry = _entry(some[0], GREY if len(colours) > 1 else colour_of(some[0]))
            if any(artist.get_linestyle() != some[0].get_linestyle() for artist in some):
                entry.set_linestyle("-")  # the dashes are those of one activation
            all_shades = SHADE + "; ".join(name.removeprefix(SHADE) for name in shades)
            yield entry, all_shades if label in shades else label

    def _wrapped(self, words: str) -> list[str]:
        return textwrap.wrap(words, int(20 * self.get_figwidth()))

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
        return _of_256_colours(picture) if suffix == ".png" else picture.getvalue()


def _of_256_colours(picture: io.BytesIO) -> bytes:
    """The same PNG in a third of the bytes."""
    with Image.open(picture) as image:
        texts = PngInfo()
        for key, text in image.text.items():
            texts.add_text(key, text)
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        smaller = io.BytesIO()
        few.save(smaller, "PNG", optimize=True, dpi=image.info["dpi"], pnginfo=texts)
    return smaller.getvalue()


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


def shade(
    axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: object, means: str
) -> None:
    """The spread of a curve, from low to high, if it is known anywhere. means: its name in the
    legend."""
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, label=means)


def bars(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: object, means: str):
    """The same as upright bars."""
    if np.isfinite(low).any():
        axes.vlines(x, low, high, color=colour, linewidth=0.8, label=means)


def colour_of(artist: Artist) -> object:
    """The colour of a curve, its points, a shade, bars."""
    if isinstance(artist, Line2D):
        return artist.get_color()
    colours = artist.get_edgecolor() if len(artist.get_edgecolor()) else artist.get_facecolor()
    return tuple(colours[0][:3])


def _entry(artist: Artist, colour: object) -> Artist:
    """The entry of a mark in the legend."""
    if isinstance(artist, FillBetweenPolyCollection):
        return Patch(facecolor=colour, alpha=0.3, linewidth=0)
    if isinstance(artist, LineCollection):
        return Line2D([], [], color=colour, marker="|", markersize=7, linestyle="none")
    entry = Line2D([], [])
    entry.update_from(artist)
    hollow = mpl.colors.same_color(artist.get_markerfacecolor(), "white")
    entry.set(color=colour, markeredgecolor=colour)
    entry.set(markerfacecolor="white" if hollow else colour)
    return entry


def look_of(position: int) -> dict:
    """Colour and marker of the data set, activation or network at this position."""
    return {
        "color": COLOURS[position % len(COLOURS)],
        "marker": MARKERS[position % len(MARKERS)],
    }


def key_of_band(means: str) -> tuple[Patch, str]:
    """The legend's entry of a grey band."""
    return Patch(facecolor=IN_BAND, edgecolor="0.8", linewidth=0.5), f"grey band: {means}"


def span(values: Iterable[float]) -> str:
    """48; 48 and 512; 8 to 1,024."""
    names = [f"{value:,.10g}" for value in sorted(set(values))]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def depth_axis(axes: Axes, depths: Iterable[float]) -> None:
    """A tick at each depth, or at so many that there is room for their names."""
    depths = sorted({int(depth) for depth in depths})
    room = (depths[-1] - depths[0]) / 15
    ticks: list[int] = []
    for depth in depths:
        if not ticks or depth - ticks[-1] >= room:
            ticks.append(depth)
    axes.set_xticks(ticks)
    axes.set_xlabel("depth $L$ (hidden layers)")


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


class PlainLogTicks(Locator):
    """On a log axis three to eight ticks at plain numbers: powers of ten, those of 1-3, 1-2-5, or,
    where the axis shows less than that, evenly spaced ones."""

    STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))

    def __call__(self) -> list[float]:
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, low: float, high: float) -> list[float]:
        """The ticks of an axis from low to high."""
        low, high = sorted((low, high))
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        if len(decades) > 10:
            decades = decades[:: len(decades) // 5]
        for steps in self.STEPS:
            values = [step * 10.0**decade for decade in decades for step in steps]
            ticks = [value for value in values if low <= value <= high]
            if 3 <= len(ticks) <= 8:
                return ticks
        return [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]


def plain_log(axes: Axes) -> None:
    """A log scale of y with plain numbers: 0.3 rather than 3 × 10⁻¹."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(PlainLogTicks())
    axes.yaxis.set_major_formatter(lambda value, _: plain(value))
    axes.yaxis.set_minor_locator(NullLocator())


def plain(value: float) -> str:
    """0.003, 2,000; from 100,000 on 10⁵, 2 × 10⁵."""
    if 1e-4 < value < 1e5:
        return f"{value:,.6g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = f"{value / 10.0**power:.3g}"
    times = "" if factor == "1" else rf"{factor} \times "
    return rf"${times}10^{{{power}}}$"
