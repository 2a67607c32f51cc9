"""What a reader of a picture cannot understand: marks that no legend names, words off the page,
axes without readable ticks, sizes that are not said."""

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import (
    FillBetweenPolyCollection,
    LineCollection,
    PathCollection,
    QuadMesh,
)
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from ntkcond.artefacts import style

THIN = 0.75  # points: what is drawn so thin beside thicker curves means something
WHOLE = "depth|epoch$|width|samples in one NTK|step|position"  # labels of what is counted
SAID = {"n": r"\$n\$", "width": r"\$m\$", "seeds": "initialisation|seed"}


def faults(figure: Figure, numbers: pd.DataFrame) -> list[str]:
    """In words; none for a picture that explains itself. numbers: what was drawn."""
    with style.look():
        FigureCanvasAgg(figure).draw()
        panels = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
        return [
            *_unnamed(figure, panels),
            *_off_the_page(figure),
            *(words for axes in panels for words in _ticks(axes)),
            *_unsaid(figure, numbers),
        ]


def _legends(figure: Figure) -> list[tuple[Artist, str]]:
    legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    return [
        (handle, text.get_text())
        for legend in legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if text.get_text()
    ]


def _words(figure: Figure) -> str:
    texts = [text for text in figure.findobj(Text) if text.get_visible()]
    return "\n".join(text.get_text() for text in texts)


def _lines(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_visible() and len(_finite(line))]


def _finite(line: Line2D) -> np.ndarray:
    points = np.column_stack([np.asarray(v, float) for v in line.get_data(orig=False)])
    return points[np.isfinite(points).all(axis=1)]


def _mark(line: Line2D) -> str:
    marker = line.get_marker()
    return "" if marker in ("", " ", "None", None) else str(marker)


def _is_hollow(line: Line2D) -> bool:
    face = line.get_markerfacecolor()
    return isinstance(face, str) and (face == "none" or to_hex(face) == "#ffffff")


def _is_grey(colour: object) -> bool:
    return np.ptp(to_rgb(colour)) < 1e-6


def _unnamed(figure: Figure, panels: list[Axes]) -> Iterator[str]:
    """Marks without an entry: colours, markers, filling, dashes, shades, bars, bands."""
    entries, words = _legends(figure), _words(figure)
    named = [handle for handle, _ in entries if isinstance(handle, Line2D)]
    patches = [handle for handle, _ in entries if isinstance(handle, Patch)]
    key = [line for axes in figure.axes if not axes.axison for line in axes.lines]  # figure 3's own
    lines = [line for axes in panels for line in _lines(axes)]
    colours = {to_hex(line.get_color()) for line in [*named, *key]}
    drawn = {to_hex(line.get_color()) for line in lines if not _is_grey(line.get_color())}
    if len(drawn) > 1:
        yield from (f"colour {colour} without an entry" for colour in sorted(drawn - colours))
    marks = {_mark(line) for line in lines}
    if len(marks) > 1 or "^" in marks:
        names = {_mark(line) for line in named}
        single = {""} | ({"o"} if marks <= {"", "o"} else set())
        yield from (f"marker {mark!r} without an entry" for mark in sorted(marks - names - single))
    hollow = {_is_hollow(line) for line in lines if _mark(line)}
    if len(hollow) > 1 and not any(_is_hollow(line) for line in named if _mark(line)):
        yield "hollow markers without an entry"
    dashes = {_dash(line) for line in lines if not _is_rule(line)}
    yield from (
        f"dashes {dash} without an entry"
        for dash in sorted(dashes - {_dash(line) for line in named} - {"solid", "none"})
    )
    solid = [line for line in lines if _dash(line) == "solid" and not _is_rule(line)]
    widths = [line.get_linewidth() for line in solid]
    thin = [width for width in widths if width < THIN]
    if thin and max(widths) > 1 and not any(line.get_linewidth() < THIN for line in named):
        yield "thin lines without an entry"
    shades = any(isinstance(c, FillBetweenPolyCollection) for a in panels for c in a.collections)
    if (not thin and "thin line: $m" in words) or (not shades and "shade: " in words):
        yield "an entry of what is not there"
    for axes in panels:
        kinds = {type(collection) for collection in axes.collections}
        bands = not _is_white(axes.get_facecolor()) or any(map(_is_band, axes.patches))
        scales = any(other.get_label() == "<colorbar>" for other in figure.axes)
        if FillBetweenPolyCollection in kinds and not patches and "shade" not in words:
            yield "a shade without an entry"
        if LineCollection in kinds and not re.search("bar:|thin line: to", words):
            yield "bars without an entry"
        if bands and _lines(axes) and not any("band" in label for _, label in entries):
            yield "a band without an entry"
        if QuadMesh in kinds and not scales:
            yield "colours of fields without a scale"
        if any(getattr(text, "arrow_patch", None) for text in axes.texts):
            yield "an arrow: bounds are hollow triangles"


def _is_band(patch: Patch) -> bool:
    return patch.get_facecolor()[:3] == to_rgb("0.95")


def _is_white(colour: tuple) -> bool:
    return to_hex(colour) == "#ffffff"


def _is_rule(line: Line2D) -> bool:
    """A grey or black straight line across the panel, such as a zero."""
    return _is_grey(line.get_color()) and len(line.get_xdata()) == 2 and _dash(line) == "solid"


def _dash(line: Line2D) -> str:
    pattern = line._dash_pattern[1]  # matplotlib has no public name for it
    if line.get_linestyle() in ("None", "none", "", " "):
        return "none"
    if not pattern:
        return "solid"
    on, off = pattern[:2]
    return "dotted" if on / (on + off) < 0.5 else "dashed"


def _off_the_page(figure: Figure) -> Iterator[str]:
    page = figure.bbox.padded(1)
    every = [axis for axes in figure.axes for axis in _axes(axes)]
    unseen = {id(label) for axis in every for label in _all_labels(axis)}
    unseen -= {id(label) for axis in every if axis.axes.axison for label in _labels(axis)}
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in unseen:
            box = text.get_window_extent()
            if not (page.contains(*box.min) and page.contains(*box.max)):
                yield f"{text.get_text()!r} leaves the page"


def _axes(axes: Axes) -> tuple[Axis, Axis]:
    return axes.xaxis, axes.yaxis


def _all_labels(axis: Axis) -> list[Text]:
    ticks = [*axis.majorTicks, *axis.minorTicks]  # with those that are not drawn
    return [label for tick in ticks for label in (tick.label1, tick.label2)]


def _labels(axis: Axis) -> list[Text]:
    """The texts of ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (abs(low) + abs(high))
    return [
        label
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        for label in (tick.label1, tick.label2)
        if low - slack <= tick.get_loc() <= high + slack
        and label.get_visible()
        and label.get_text()
    ]


def _ticks(axes: Axes) -> Iterator[str]:
    """Fewer than two numbers, numbers at one end only, fractions of what is counted, and numbers
    that run into each other."""
    if not _lines(axes) and not axes.collections:
        return
    for side, axis in enumerate(_axes(axes)):
        which, labels, name = "xy"[side], _labels(axis), axis.get_label_text()
        texts = [label.get_text() for label in labels]
        if not texts:
            if not axis.get_tick_params().get("labelleft" if which == "y" else "labelbottom", True):
                continue  # shared with a neighbour
            yield f"{which} axis {name!r}: no number"
            continue
        if re.match(WHOLE, name):
            yield from (
                f"{which} axis {name!r}: {text} is no whole number"
                for text in texts
                if re.fullmatch(r"\d*\.\d+", text)
            )
        if len(texts) == 1 and not re.search("infty|∞", texts[0]) and _spread(axes, side):
            yield f"{which} axis {name!r}: {texts[0]!r} is its only number"
        boxes = sorted(
            (label.get_window_extent() for label in labels), key=lambda box: box.min[side]
        )
        middles = [(box.min[side] + box.max[side]) / 2 for box in boxes]
        room = axes.bbox.max[side] - axes.bbox.min[side]
        if len(boxes) > 1 and middles[-1] - middles[0] < 0.35 * room:
            yield f"{which} axis {name!r}: {', '.join(texts)} cover a third of it or less"
        for one, other in itertools.pairwise(boxes):
            if one.max[side] > other.min[side] + 1:
                yield f"{which} axis {name!r}: numbers run into each other"
                break


def _spread(axes: Axes, side: int) -> bool:
    """Whether what is drawn has more than one value there; side by side is one."""
    values = [_finite(line)[:, side] for line in _lines(axes) if not _is_rule(line)]
    values += [
        np.asarray(points.get_offsets(), float)[:, side]
        for points in axes.collections
        if isinstance(points, PathCollection)
    ]
    return bool(values) and np.ptp(np.concatenate(values)) > 0.5


def _unsaid(figure: Figure, numbers: pd.DataFrame) -> Iterator[str]:
    words = _words(figure)
    for column, pattern in SAID.items():
        if column in numbers and not re.search(pattern, words):
            yield f"{column} is not said"
