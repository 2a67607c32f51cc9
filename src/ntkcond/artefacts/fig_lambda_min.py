"""λ_min where the width falls short of the number of samples: is it m/n that decides?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts import conditions, interval, style, sweep_curves
from ntkcond.artefacts.spec import Spec

SPEC = Spec(
    title="λ_min at finite width against m/n",
    section="§∞ When does ReLU help?",
    inputs=("sweep/finite",),
    datasets="fig_lambda_min",
    default=False,
    costs=False,
    caption="""
λ_min of the NTK of n samples at width m over that at infinite width, against m/n: geometric mean
over initialisations and blocks, with the 95 % t interval over initialisations. A row for each data
set, a column for each depth L, a colour for each n. Where curves lie on each other m/n decides;
where they are shifted, m matters apart from it. A point of which a λ_min is not resolved is left
out.

**The paper** measures at m = 512 only.
""",
)
POINT = ["dataset", "activation", "depth", "n", "width"]


def table(sweep_finite: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, depth, n and width: seeds, blocks; ratio_mean, of λ_min to that of
    the same samples at infinite width, with its interval. Without points of which a λ_min is not
    resolved: the others alone would be too large."""
    rows = sweep_curves.read(sweep_finite)
    resolved = (rows.verdict == "resolved").groupby([rows[name] for name in POINT]).transform("all")
    rows = rows[resolved & (rows.bias == 0)]
    same = ["dataset", "activation", "depth", "n", "block"]
    infinite = rows[np.isinf(rows.width)].set_index(same).lambda_min
    finite = rows[np.isfinite(rows.width)].join(infinite.rename("limit"), on=same, how="inner")
    finite = finite.assign(gap=np.log(finite.lambda_min / finite.limit))
    return pd.DataFrame(
        [
            {
                **dict(zip(POINT, point, strict=True)),
                "seeds": some.seed.nunique(), "blocks": some.block.nunique(),
                **dict(interval.columns("ratio", np.exp(interval.t_interval(
                    some.groupby("seed").gap.mean().to_numpy()
                )))),
            }
            for point, some in finite.groupby(POINT, sort=False)
        ]
    )  # fmt: skip


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row for each data set, a column for each depth."""
    names, depths = numbers.dataset.unique(), sorted(numbers.depth.unique())
    figure = style.figure(height=1.9 * len(names))
    panels = figure.subplots(len(names), len(depths), sharex=True, sharey=True, squeeze=False)
    colours = style.depth_colours_of(numbers.n)
    for row, name in zip(panels, names, strict=True):
        row[0].set_ylabel(
            f"{conditions.title(name)}\n" r"$\lambda_{\min}(m)\,/\,\lambda_{\min}(\infty)$"
        )
        for axes, depth in zip(row, depths, strict=True):
            some = numbers[(numbers.dataset == name) & (numbers.depth == depth)]
            for n, curve in some.sort_values("width").groupby("n"):
                x = curve.width / n
                axes.plot(x, curve.ratio_mean, "o-", color=colours[n], markersize=2.5,
                          label=f"$n$ = {n:,}")  # fmt: skip
                style.bars(axes, x, curve.ratio_low, curve.ratio_high, colours[n],
                           "bar: 95 % interval")  # fmt: skip
            axes.axhline(1, color="black", linewidth=0.6)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            if name == names[0]:
                axes.set_title(f"$L$ = {depth}")
    for axes in panels[-1]:
        axes.set_xlabel("$m$/$n$")
    figure.key(about=conditions.in_words(numbers))
    return figure
