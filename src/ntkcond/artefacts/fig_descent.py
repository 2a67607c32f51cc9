"""Gradient descent on the square loss against the bound of the NTK's condition number.

Left, one learning rate for all depths: deeper networks move faster in any case, as the trace of
their NTK grows like L + 1. Right, 1/λ_max for each, where κ alone bounds the rate, 1 − 1/κ a step.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ntkcond.artefacts import style
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import title
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Gradient descent against the bound by κ",
    section="§6 Faster optimization",
    inputs=("descent",),
    datasets="fig_descent",
    caption=r"""
The residual ‖f(X) − y‖ of full-batch gradient descent on the square loss, relative to its start,
against the step; geometric mean over initialisations, a colour for each depth. X is one block of n
samples, y is −1 or 1, whether the label is above the median. Dashed: the bound (1 − η λ\
:sub:`min`)ᵗ, with the NTK at initialisation. **Left**: one learning rate η for all depths, 1 over
their largest λ\ :sub:`max`. **Right**: η = 1/λ\ :sub:`max` for each depth, where the bound is (1 −
1/κ)ᵗ.

**The paper** (§6) infers from its smaller κ that a deeper network descends faster, and shows
training curves at learning rates found by a grid. The inference needs two things that this figure
tests. That κ bounds the rate: the bound assumes that the NTK stays as it was, which narrow deep
networks break. And that κ is the reason: at one learning rate a deeper network descends faster in
any case, since the trace of its NTK grows like L + 1; the right side takes that away.

Its columns bound_rate and measured_rate are the contraction a step: of the bound, and measured
over the last half of the steps.
""",
)

CURVE = ["dataset", "depth", "rule"]
POINTS = 120
TITLES = {
    "common": r"one $\eta$ for all depths",
    "own": r"$\eta = 1/\lambda_\mathrm{max}$ for each depth",
}


def table(descent: Iterable[Path]) -> pd.DataFrame:
    """A row for each data set, rule of the learning rate, depth and shown step: residual, the
    geometric mean over seeds of ‖f(X) − y‖ / ‖f(X₀) − y‖; bound, (1 − η λ_min)ᵗ likewise. And for
    each curve kappa, bound_rate = 1 − η λ_min and measured_rate, the contraction a step over the
    last half of the steps, all geometric means over seeds; log_rate_std: of the logarithm of the
    last, over seeds (n − 1; empty for one)."""
    rows = []
    for path in descent:
        with read_hdf5(path) as file:
            residual = file["residual"][:]
            rates, smallest = file["learning_rate"][:], file["lambda_min"][:]
            kappa = file["lambda_max"][:] / smallest
            a = dict(file.attrs)
        logs = np.log(residual / residual[..., :1])
        relative = logs.mean(axis=2)
        bound = np.log1p(-rates * smallest).mean(axis=2)
        steps = residual.shape[-1] - 1
        shown = np.unique(np.linspace(0, steps, POINTS).round().astype(int))
        half = steps // 2
        late_logs = (logs[..., -1] - logs[..., half]) / (steps - half)
        spread = (
            late_logs.std(axis=2, ddof=1) if logs.shape[2] > 1 else np.full(bound.shape, np.nan)
        )
        for r, rule in enumerate(a["rules"]):
            for i, depth in enumerate(a["depths"]):
                curve = relative[r, i]
                own = {
                    "dataset": path.stem, "activation": a["activation"], "depth": depth,
                    "width": a["width"], "n": a["n"], "rule": rule, "seeds": len(a["seeds"]),
                    "learning_rate": np.exp(np.log(rates[r, i]).mean()),
                    "kappa": np.exp(np.log(kappa[i]).mean()),
                    "bound_rate": np.exp(bound[r, i]), "log_rate_std": spread[r, i],
                    "measured_rate": np.exp(late_logs[r, i].mean()),
                }  # fmt: skip
                rows += [
                    {
                        **own,
                        "step": t,
                        "residual": np.exp(curve[t]),
                        "bound": np.exp(bound[r, i] * t),
                    }
                    for t in shown
                ]
    return pd.DataFrame(rows)


def draw(numbers: pd.DataFrame) -> Figure:
    """A row of two panels for each data set; darker with depth, dashed: the bound."""
    datasets = list(numbers.dataset.unique())
    depths = sorted(numbers.depth.unique())
    colours = dict(zip(depths, style.depth_colours(len(depths)), strict=True))
    with style.look():
        figure = style.figure(height=0.5 + 2.4 * len(datasets))
        panels = figure.subplots(len(datasets), len(TITLES), squeeze=False, sharey="row")
        for row, dataset in zip(panels, datasets, strict=True):
            for axes, (rule, words) in zip(row, TITLES.items(), strict=True):
                own = numbers[(numbers.dataset == dataset) & (numbers.rule == rule)]
                for depth, colour in colours.items():
                    curve = own[own.depth == depth]
                    axes.plot(curve.step, curve.residual, color=colour, label=f"$L$ = {depth}")
                    axes.plot(curve.step, curve.bound, "--", color=colour, linewidth=0.8)
                axes.set_yscale("log")
                axes.set_ylim(max(1e-4, 0.5 * own.residual.min()), 1.3)
                axes.set_title(words)
                axes.set_xlabel("steps of gradient descent")
            first = numbers[numbers.dataset == dataset].iloc[0]
            row[0].set_ylabel(
                f"{title(dataset)}, $n$ = {first.n}, $m$ = {first.width}\nresidual, relative"
            )
        panels[0, 0].plot([], [], "--", color=style.GREY, linewidth=0.8, label="bound")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
