"""One HTML page of what the command `ntkcond` found: no file beside it, nothing from a network."""

import base64
import io
import re
from collections.abc import Sequence
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ntkcond.library.command_line import Initialisation, Report, in_known_digits
from ntkcond.library.eigen import Interval
from ntkcond.library.plots import BLUE, GREY
from ntkcond.run.errors import UserError

LOOK: Any = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "0.9",
    "grid.linewidth": 0.5, "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 8,
    "svg.hashsalt": "ntkcond",
}  # fmt: skip
MAX, MIN = "λ<sub>max</sub>", "λ<sub>min</sub>"
STYLE = """
:root { color-scheme: light; }
body { font: 1rem/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; }
.lead { font-size: 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
sub, sup { line-height: 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0;
         border-bottom: 1px solid #ddd; }
.wide th, .wide td { white-space: nowrap; }
th { font-weight: 600; }
td small { display: block; color: #595959; }
img { width: 100%; height: auto; display: block; max-width: 36rem; }
img.pair { max-width: 24rem; }
figure { margin: .5rem 0; } figcaption { font-size: .9rem; color: #444; }
pre { font: .9rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap;
      background: #f4f4f4; padding: .6rem; margin: .5rem 0; }
dt { font-weight: 600; margin-top: .4rem; } dd { margin: 0; }
.resolved { color: #00664b; } .unresolved, .singular { color: #a03c00; }
"""
VERDICTS = {
    "resolved": f"{MIN} is above its error bound: κ is known, with the error beside it.",
    "unresolved": f"{MIN} is lost in rounding, or a preactivation is so near a kink of its"
    " activation that rounding may put it on the other side. κ is only known to be above the"
    " number shown.",
    "singular": "The rank is certainly below the number of rows, so κ = ∞. Samples repeat,"
    " outnumber the weights, or have a gradient of 0.",
}
GRADES = {
    "estimated": "The error of the gradients is measured with random errors in every operation. No"
    " theorem guards it.",
    "proved": "It follows from a theorem, or, of a singular NTK, from counting.",
}


def write(report: Report, path: Path, x: Any = None) -> None:
    """Writes the page, whole or not at all. x: the samples; images of the closest pair."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with mpl.rc_context(LOOK):
            temporary.write_text(_page(report, x), "utf-8")
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _page(report: Report, x: Any) -> str:
    found = report.found
    n = len(found[0].values)
    title = f"NTK of {report.model}"
    seeds = "initialisation" if len(found) == 1 else "initialisations"
    labels = f" Labels: {escape(report.labels)}." if report.labels else ""
    parts = [
        f"<h1>{escape(title)} on {escape(report.file)}</h1>",
        f'<p class="lead">{escape(report.summary)}.</p>',
        f"<p>Samples: {escape(report.shape)}. Rows of the NTK: {n:,}. Weights:"
        f" {report.weights:,}. {len(found)} {seeds}.{labels}</p>",
        f"<h2>Condition number κ = {MAX}/{MIN}</h2>", _table(found),
        "<h2>Eigenvalues</h2>",
        _picture(_spectra(found), _spectra_in_words(found), "spectra"),
        "<h2>Closest pair, effective rank" + (", alignment" if report.labels else "") + "</h2>",
        _more(found, report.labels),
    ]  # fmt: skip
    if (images := _images(x)) is not None and found[0].k == 1:
        pair = found[0].pair
        words = f"The two samples whose gradients have the smallest angle, seed {found[0].seed}."
        parts.append(_picture(_pair(images, (pair.first, pair.second)), words, "pair"))
    parts += ["<h2>How to read it</h2>", _reading(found, bool(report.labels))]
    parts += ["<h2>How it was made</h2>", f"<pre>{escape(report.command)}</pre>", _made(report)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _table(found: Sequence[Initialisation]) -> str:
    rows = []
    for one in found:
        known, error = one.spectrum, one.error
        kappa = known.known_kappa.removeprefix("κ ").removeprefix("= ")
        largest = Interval(known.lambda_max, known.lambda_max - error, known.lambda_max + error)
        verdict = f'<span class="{known.verdict}">{known.verdict}</span>'
        rows.append([
            str(one.seed), _cell(kappa), f"{verdict} <small>{known.grade}</small>",
            _cell(in_known_digits(largest)),
            _cell(f"{known.lambda_min:#.4g}") + f" <small>{_cell(f'± {known.error:.2g}')}</small>",
        ])  # fmt: skip
    return _rows(["seed", "κ", "verdict", MAX, MIN], rows)


def _more(found: Sequence[Initialisation], labels: str) -> str:
    heads = ["seed", "closest pair", "angle", "effective rank"]
    rows = [
        [str(one.seed), one.pair_in_words, one.angle_in_words, in_known_digits(one.effective_rank)]
        for one in found
    ]
    if labels:
        heads.append("alignment")
        for one, row in zip(found, rows, strict=True):
            assert one.alignment is not None
            row.append(in_known_digits(one.alignment))
    return _rows(heads, [[_cell(cell) for cell in row] for row in rows])


def _cell(words: str) -> str:
    """HTML with powers of ten in place of e-06, and an interval in brackets in small letters."""
    words = re.sub(
        r"(?<=\d)e([+-]\d+)", lambda power: f"·10<sup>{int(power[1])}</sup>", escape(words)
    )
    words = re.sub(r"-(?=\d)", "−", words)
    return re.sub(r"\((.* to .*)\)$", r"<small>(\1)</small>", words)


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where it is too wide. heads, rows: of HTML."""
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>"
    )


def _reading(found: Sequence[Initialisation], labels: bool) -> str:
    """The meaning of each verdict and grade on the page, and of each number."""
    verdicts = {one.spectrum.verdict for one in found}
    grades = {one.spectrum.grade for one in found}
    entries = [(f"Verdict: {word}", VERDICTS[word]) for word in VERDICTS if word in verdicts]
    entries += [(f"Grade: {word}", GRADES[word]) for word in GRADES if word in grades]
    entries += [
        ("Closest pair", "The two samples whose gradients have the smallest angle, in degrees."),
        ("Effective rank", "The sum of all eigenvalues over the largest: from 1 to n."),
    ]
    if labels:
        entries.append((
            "Alignment", "The centred kernel–target alignment, from 0 to 1: high where the NTK"
            " gives samples of one class, or of like targets, like gradients.",
        ))  # fmt: skip
    words = "".join(f"<dt>{head}</dt><dd>{text}</dd>\n" for head, text in entries)
    return (
        f"<dl>\n{words}</dl>\n<p>In brackets: an interval that holds the exact number, as good as"
        " the grade. Where there is none, all digits shown are known.</p>"
    )


def _made(report: Report) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in report.versions.items())
    return f"<p>{date.today().isoformat()}; {escape(versions)}; Matplotlib {mpl.__version__}.</p>"


# Pictures.


def _picture(figure: Figure, words: str, kind: str) -> str:
    """As SVG in the page. words: below it, and for those who cannot see it. kind: of its size."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", dpi=200, metadata={"Date": None})
    content = base64.b64encode(file.getvalue()).decode()
    return (
        f'<figure><img class="{kind}" alt="{escape(words)}"'
        f' src="data:image/svg+xml;base64,{content}">'
        f"<figcaption>{_cell(words)}</figcaption></figure>"
    )


def _spectra(found: Sequence[Initialisation]) -> Figure:
    """All eigenvalues of each initialisation, largest first; grey below their error."""
    figure = Figure(figsize=(4.3, 3.1), layout="constrained")
    ax = figure.subplots()
    error, largest = max(one.error for one in found), max(one.values[-1] for one in found)
    known = [np.where(one.values > one.error, one.values, np.nan)[::-1] for one in found]
    smallest = min((float(np.nanmin(v)) for v in known if np.isfinite(v).any()), default=largest)
    floor = min(smallest, max(error, largest * 1e-17)) / 10
    ax.axhspan(floor, error, color="0.92", lw=0, label="below the error")
    few = max(map(len, known)) <= 60
    name = "eigenvalues" if len(found) == 1 else "each seed"
    for values in known:
        positions = np.arange(1, len(values) + 1)
        ax.plot(positions, values, color=BLUE, lw=0.9, alpha=0.75, marker="." if few else "",
                ms=4, label=name)  # fmt: skip
        name = ""  # one entry of the legend
        lost = positions[np.isnan(values)]
        ax.plot(lost, np.full(len(lost), floor * 2.5), "v", ms=3, color=GREY, mfc="white", mew=0.6)
    if count := sum(one.unresolved for one in found):
        label = f"unresolved: {count:,}"
        ax.plot([], [], "v", ms=3, color=GREY, mfc="white", mew=0.6, label=label)
    ax.set(xlabel="position of the eigenvalue", ylabel="eigenvalue", yscale="log",
           xlim=(0, max(map(len, known)) + 1), ylim=(floor, largest * 3))  # fmt: skip
    figure.legend(loc="outside lower center", ncols=3, handlelength=1.5, columnspacing=1.2)
    return figure


def _spectra_in_words(found: Sequence[Initialisation]) -> str:
    lost = sum(one.unresolved for one in found)
    error = max(one.error for one in found)
    words = (
        f"All eigenvalues of the NTK, largest first, and their error (grey), {error:.2g} at most."
    )
    if lost:
        words += f" {lost:,} are not above it (triangles): each is between 0 and twice it."
    return words


def _images(x: Any) -> np.ndarray | None:
    """(n, H, W) or (n, H, W, 3) in [0, 1], of samples that are images; else None."""
    if not hasattr(x, "shape") or len(x.shape) != 4 or x.shape[1] not in (1, 3):
        return None
    images = np.moveaxis(np.asarray(x, dtype=float), 1, -1)
    low, high = images.min(), images.max()
    images = (images - low) / (high - low) if high > low else images * 0
    return images[..., 0] if images.shape[-1] == 1 else images


def _pair(images: np.ndarray, samples: Sequence[int]) -> Figure:
    figure = Figure(figsize=(4.3, 2.2), layout="constrained")
    for ax, sample in zip(figure.subplots(1, 2), samples, strict=True):
        ax.imshow(images[sample], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(f"sample {sample}", fontsize=9)
        ax.set_axis_off()
    return figure
