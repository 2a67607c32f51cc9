"""Whole spectra of the NTK, and where the labels lie in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts import conditions, interval, style
from ntkcond.artefacts.spec import Spec
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Whole spectra of the NTK, and the labels in them",
    section="§6 Faster optimization",
    inputs=("descent",),
    datasets="fig_descent",
    caption="""
The eigenvalues of the NTK at initialisation, and the share of the labels y in each part of the
spectrum; the data are those of ``fig_descent``, y is ±1. A colour for each depth; means over
initialisations (geometric, but of the shares), shades and bars: their 95 % intervals. **Left**:
the eigenvalues, largest first, relative to their mean, tr K/n. The largest is the *mean mode* where
its eigenvector is almost constant (column ``constant_mean``: the share of the constant vector in
each eigenvector). **Middle**: the share of y, Σ (uᵢᵀ y)²/‖y‖², in the eigenvectors of the k largest
eigenvalues. Gradient descent learns these first. Of a long spectrum a hundred positions are shown.
**Right**: κ against depth, and without the largest eigenvalue, λ₂/λ\\ :sub:`min`. Where κ is not
resolved for an initialisation, a depth has none.

**The paper** takes κ as the measure of conditioning. This figure shows how much of κ is the largest
eigenvalue, whether the rest improves with depth as well, and whether the labels lie where descent
is fast.
""",
)


POSITIONS = 100  # shown of a spectrum
SHADE = "shade: 95 % interval of the mean"


def table(descent: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, depth and shown position, 1 for the largest: eigenvalue, and
    its ratio relative to their mean, geometric means over seeds with 95 % t intervals; likewise
    means of the shares, within 0 and 1: labels, constant, and labels_up_to, of all positions up to
    this. kappa and kappa_without_first, λ₂/λ_min, of each depth; empty unless resolved for all
    seeds."""
    return pd.concat(map(pd.DataFrame, map(_rows, descent)), ignore_index=True)


def _shown(n: int) -> list[int]:
    """Positions from 0: all up to POSITIONS, else so many, evenly spaced in their logarithm."""
    if n <= POSITIONS:
        return list(range(n))
    return sorted({round(position) - 1 for position in np.geomspace(1, n, POSITIONS)})


def _rows(path: Path) -> Iterator[dict]:
    with read_hdf5(path) as file:
        about = dict(file.attrs)
        modes = {name: file[f"modes/{name}"][:][..., ::-1] for name in file["modes"]}
        resolved = (file["verdict"].asstr()[:] == "resolved").all(axis=1)
    eigenvalues = modes["eigenvalues"]
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (eigenvalues[..., i] / eigenvalues[..., -1] for i in (0, 1))
    positive = np.where(eigenvalues > 0, eigenvalues, np.nan)  # rounding may leave some below
    relative = positive / eigenvalues.mean(axis=-1, keepdims=True)
    up_to = modes["labels"].cumsum(axis=-1)
    for i, depth in enumerate(about["depths"]):
        of_depth = {"kappa": first[i], "kappa_without_first": second[i]}
        for k in _shown(about["n"]):
            row = {
                "dataset": path.parts[-2], "activation": about["activation"], "depth": depth,
                "width": about["width"], "n": about["n"], "seeds": len(about["seeds"]),
                "position": k + 1,
            }  # fmt: skip
            row |= interval.columns("eigenvalue", interval.geometric(positive[i, :, k]))
            row |= interval.columns("relative", interval.geometric(relative[i, :, k]))
            shares = {name: modes[name] for name in ("labels", "constant")} | {
                "labels_up_to": up_to
            }
            for name, values in shares.items():
                row |= interval.columns(name, interval.within(values[i, :, k], 0, 1))
            for name, values in of_depth.items():
                known = values if resolved[i] else np.full_like(values, np.nan)
                row |= interval.columns(name, interval.geometric(known))
            yield row


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of three panels for each data set."""
    datasets = numbers.groupby("dataset", sort=False)
    figure = style.figure(height=2.2 * len(datasets), width=7.2)
    panels = figure.subplots(len(datasets), 3, squeeze=False)
    colours = style.depth_colours_of(numbers.depth)
    for (left, middle, right), (dataset, rows) in zip(panels, datasets, strict=True):
        for depth, colour in colours.items():
            curve = rows[rows.depth == depth]
            for axes, name in ((left, "relative"), (middle, "labels_up_to")):
                axes.plot(
                    curve.position, curve[f"{name}_mean"], color=colour, label=f"$L$ = {depth}"
                )
                low, high = curve[f"{name}_low"], curve[f"{name}_high"]
                style.shade(axes, curve.position, low, high, colour, SHADE)
        left.set_title(conditions.title(dataset))
        left.set(yscale="log", ylabel=r"eigenvalue / (tr $K/n$)")
        middle.set(ylabel="labels in the first $k$", ylim=(0, 1.02))
        for axes in (left, middle):
            axes.set(xscale="log", xlabel="position of the eigenvalue, $k$")
        of_depth = rows.drop_duplicates("depth")
        for name, words, marker in (
            ("kappa", r"$\kappa$", "o"),
            ("kappa_without_first", r"without $\lambda_\mathrm{max}$", "s"),
        ):  # fmt: skip
            colour = style.COLOURS["os".index(marker)]
            mean, low, high = (of_depth[f"{name}_{end}"] for end in ("mean", "low", "high"))
            right.plot(of_depth.depth, mean, marker=marker, color=colour, label=words)
            style.bars(right, of_depth.depth, low, high, colour, "bar: 95 % interval of the mean")
        right.set(yscale="log", ylabel="condition number")
        style.depth_axis(right, of_depth.depth)
    figure.key(about=conditions.in_words(numbers))
    return figure
