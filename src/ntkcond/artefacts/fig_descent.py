"""Gradient descent on the square loss against the bound of the NTK's condition number.

Left, one learning rate for all depths: a deeper network descends faster in any case, as the trace
of its NTK grows like L + 1. Right, 1/λ_max for each, where κ alone bounds the rate, 1 − 1/κ a step.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts import conditions, style
from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Gradient descent against the bound by κ",
    section="§6 Faster optimization",
    inputs=("descent",),
    datasets="fig_descent",
    caption=r"""
The residual ‖f(X) − y‖ of full-batch gradient descent on the square loss, relative to its start,
against the step; geometric mean over initialisations, a colour for each depth. X is one block of n
samples; y is 1 where the label is above the median (at it, if that is the largest label), else −1.
Dashed: the bound (1 − η λ\ :sub:`min`)ᵗ, with the NTK at initialisation. Dotted: what this NTK
predicts, were it constant, ‖rₜ‖² = Σᵢ (1 − η λᵢ)²ᵗ (uᵢᵀ r₀)² over its eigenvalues and eigenvectors.
**Left**: one learning rate η for all depths, 1 over their largest λ\ :sub:`max`. **Right**: η =
1/λ\ :sub:`max` for each depth, where the bound is (1 − 1/κ)ᵗ. A bound that stays near 1 in all
steps is not drawn. A depth has no bound if one of its NTKs is singular, as of repeated samples, or
has a λ\ :sub:`min` that is lost in rounding. The figure names these depths.

**The paper** (§6) infers from its smaller κ that a deeper network descends faster, and shows
training curves at learning rates found by a grid. This figure tests the two assumptions of that
inference. First, that κ bounds the rate: the bound assumes a constant NTK, which narrow deep
networks violate. Second, that κ is the reason: at one learning rate a deeper network descends
faster in any case, since the trace of its NTK grows like L + 1. The right side removes that effect.

The columns bound_rate and measured_rate are contractions a step: that of the bound, 1 where none
exists, and the one measured over the last half of the steps whose residual is above 1e-12 (below,
rounding stops its fall). The column verdict is the worst of the initialisations:
resolved; unresolved (kappa is a lower bound); or singular (kappa is ∞).
""",
)

POINTS = 120
FLOOR = 1e-12  # of the relative residual: below, rounding stops its fall, at about 1e-15
VERDICTS = ("resolved", "unresolved", "singular")  # the worst last: a mean of κ with ∞ is ∞
INFORMS = 0.9  # a bound that is nowhere below this is told in words
WORDS = {  # of depths without a dashed line
    "resolved": rf"bound at $L$ = {{}}: above {INFORMS:g} to the end",
    "unresolved": r"no bound at $L$ = {}: $\lambda_\mathrm{{min}}$ is lost in rounding",
    "singular": r"no bound at $L$ = {}: $\kappa = \infty$",
}
TITLES = {
    "common": r"one $\eta$ for all depths",
    "own": r"$\eta = 1/\lambda_\mathrm{max}$ for each depth",
}


def table(descent: Iterable[Path]) -> pd.DataFrame:
    """A row for each data set, rule of the learning rate, depth and shown step: residual, the
    geometric mean over seeds of ‖f(X) − y‖ / ‖f(X₀) − y‖; bound, (1 − η λ_min)ᵗ, and linearised,
    the residual were the NTK constant, likewise. And for each curve kappa, bound_rate = 1 − η λ_min
    and measured_rate, the contraction a step over the last half of the steps above FLOOR, all
    geometric means over seeds; log_rate_std: of the logarithm of the last, over seeds (n − 1; empty
    for one).

    verdict: that on κ, the worst over seeds. kappa is ∞ for singular, a lower bound for unresolved;
    bound_rate and bound are 1 for both."""
    curves = itertools.chain.from_iterable(map(_curves, descent))
    return pd.concat(curves, ignore_index=True)


def _curves(path: Path) -> Iterator[pd.DataFrame]:
    """The curves of each rule and depth, of one data set."""
    with read_hdf5(path) as file:
        about = dict(file.attrs)
        residual, rates = file["residual"][:], file["learning_rate"][:]
        linearised = file["linearised"][:]
        smallest, kappa = file["lambda_min"][:], file["kappa"][:]
        verdicts = file["verdict"].asstr()[:]
    steps = residual.shape[-1] - 1
    shown = np.unique(np.linspace(0, steps, POINTS).round().astype(int))
    seeds = residual.shape[2]
    logs = np.log(residual / residual[..., :1])  # (rules, depths, seeds, steps)
    relative = logs.mean(axis=2)
    predicted = np.log(linearised / linearised[..., :1]).mean(axis=2)
    late = np.apply_along_axis(_late_rate, -1, logs)
    for (r, rule), (i, depth) in itertools.product(
        enumerate(about["rules"]), enumerate(about["depths"])
    ):
        verdict = max(verdicts[i], key=VERDICTS.index)
        bounded = verdict == "resolved"
        bound_rate = _geometric_mean(1 - rates[r, i] * smallest[i]) if bounded else 1.0
        yield pd.DataFrame({
            "dataset": path.parts[-2], "activation": about["activation"], "depth": depth,
            "width": about["width"], "n": about["n"], "rule": rule, "seeds": seeds,
            "learning_rate": _geometric_mean(rates[r, i]), "verdict": verdict,
            "kappa": _geometric_mean(kappa[i]), "bound_rate": bound_rate,
            "log_rate_std": late[r, i].std(ddof=1) if seeds > 1 else np.nan,
            "measured_rate": np.exp(late[r, i].mean()), "step": shown,
            "residual": np.exp(relative[r, i, shown]), "bound": bound_rate**shown,
            "linearised": np.exp(predicted[r, i, shown]),
        })  # fmt: skip


def _late_rate(logs: np.ndarray) -> float:
    """Change a step of a curve's logarithm over the last half of its steps above FLOOR, or over the
    first step if that falls below."""
    below = np.flatnonzero(logs <= np.log(FLOOR))
    last = max((below[0] if len(below) else len(logs)) - 1, 1)
    half = last // 2
    return (logs[last] - logs[half]) / (last - half)


def _geometric_mean(values: np.ndarray) -> float:
    """∞ if one is ∞, 0 if one is 0."""
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(values).mean()))


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each data set; darker with depth, dashed: the bound where it says
    something."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=2.4 * len(datasets))
    panels = figure.subplots(len(datasets), len(TITLES), squeeze=False, sharey="row")
    for row, (dataset, rows) in zip(panels, datasets, strict=True):
        for axes, (rule, words) in zip(row, TITLES.items(), strict=True):
            curves = rows[rows.rule == rule]
            for depth, colour in style.depth_colours_of(numbers.depth).items():
                curve = curves[curves.depth == depth]
                axes.plot(curve.step, curve.residual, color=colour, label=f"$L$ = {depth}")
                constant = {"linestyle": ":", "label": "dotted: were the NTK constant"}
                axes.plot(curve.step, curve.linearised, color=colour, linewidth=0.8, **constant)
                if _informs(curve):
                    bound = {"linestyle": "--", "label": r"dashed: bound by $\kappa$"}
                    axes.plot(curve.step, curve.bound, color=colour, linewidth=0.8, **bound)
            axes.set_yscale("log")
            axes.set_ylim(max(1e-4, 0.5 * curves.residual.min()), 1.3)
            axes.set_title(f"{conditions.title(dataset)}, {words}" if axes is row[0] else words)
            axes.set_xlabel("steps of gradient descent")
            place = {"x": 0.03, "y": 0.04, "transform": axes.transAxes, "fontsize": 7}
            axes.text(s=_without_bound(curves), color=style.GREY, **place)
        row[0].set_ylabel("residual, relative to the start")
    figure.key(about=conditions.in_words(numbers))
    return figure


def _informs(curve: pd.DataFrame) -> bool:
    """Whether the bound by κ is known, and leaves the line at 1 in these steps."""
    return bool((curve.verdict == "resolved").all() and (curve.bound < INFORMS).any())


def _without_bound(curves: pd.DataFrame) -> str:
    """A line for each reason that leaves depths without a dashed line: their names, and why."""
    depths: dict[str, list[str]] = {}
    for depth, curve in curves.groupby("depth"):
        if not _informs(curve):
            depths.setdefault(curve.verdict.iloc[0], []).append(str(depth))
    return "\n".join(WORDS[verdict].format(", ".join(some)) for verdict, some in depths.items())
