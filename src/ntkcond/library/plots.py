"""Pictures of the library's results, with Matplotlib."""

from typing import TYPE_CHECKING

import numpy as np

from ntkcond.ntk.eigenvalues import RESOLVED, Spectrum
from ntkcond.run.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, GREY = "#1f6fb4", "0.55"
SIZE = 4.6, 3.0  # inches


def plot_eigenvalues(
    values: np.ndarray, error: float, spectrum: Spectrum, ax: "Axes | None" = None
) -> "Axes":
    """All eigenvalues of an NTK, largest first, on a log axis; grey below the error of each, where
    none is known. values: (n,), ascending. Raises UserError without Matplotlib."""
    ax = new_axes() if ax is None else ax
    descending = np.maximum(values[::-1], np.finfo(float).tiny)
    positions = np.arange(1, len(values) + 1)
    known = descending > error
    floor = min(descending[known].min(initial=np.inf), max(error, descending[0] * 1e-17)) / 3
    ax.axhspan(floor, max(error, floor), color="0.92", lw=0, label="below the error of eigenvalues")
    ax.plot(positions[known], descending[known], ".", ms=3, color=BLUE)
    lost = int((~known).sum())
    if lost:
        place = np.full(lost, floor * 1.5)
        ax.plot(positions[~known], place, "v", ms=3, color=GREY, label=f"{lost} not known")
    ax.set(
        xlabel="position of the eigenvalue", ylabel="eigenvalue", yscale="log",
        xlim=(0, len(values) + 1), ylim=(floor, descending[0] * 3), title=headline(spectrum),
    )  # fmt: skip
    ax.legend(loc="best", frameon=False, fontsize="small")
    return ax


def plot_ends(spectrum: Spectrum, ax: "Axes | None" = None) -> "Axes":
    """λ_max and λ_min on a log axis, each with the interval that holds it; grey where λ_min is not
    told from zero. Raises UserError without Matplotlib."""
    ax = new_axes((4.6, 1.5)) if ax is None else ax
    low = max(spectrum.lambda_min - spectrum.error, 0.0)
    high = spectrum.lambda_min + spectrum.error
    left = (low if low > 0 else max(high, spectrum.lambda_max * 1e-17)) / 30
    if spectrum.verdict != RESOLVED:
        ax.axvspan(left, max(high, left), color="0.92", lw=0)
        ax.text(max(high, left), 0.75, "  $\\lambda_{min}$: not told from 0", ha="left")
    else:
        ax.plot([low, high], [0.5, 0.5], lw=5, color=BLUE, solid_capstyle="butt", alpha=0.4)
        ax.plot([spectrum.lambda_min], [0.5], "|", ms=14, color=BLUE)
        ax.text(spectrum.lambda_min, 0.75, "$\\lambda_{min}$", ha="center")
    ax.plot([spectrum.lambda_max], [0.5], "|", ms=14, color=BLUE)
    ax.text(spectrum.lambda_max, 0.75, "$\\lambda_{max}$", ha="center")
    ax.spines["left"].set_visible(False)
    ax.set(
        xscale="log", xlim=(left, spectrum.lambda_max * 30), ylim=(0, 1), yticks=[],
        xlabel="eigenvalue", title=headline(spectrum),
    )  # fmt: skip
    return ax


def headline(spectrum: Spectrum) -> str:
    """κ and its verdict."""
    return f"{spectrum.known_kappa}\n{spectrum.verdict} ({spectrum.grade}), n = {spectrum.n}"


def new_axes(size: tuple[float, float] = SIZE) -> "Axes":
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UserError("pictures need Matplotlib: pip install matplotlib") from error
    ax: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_fontsize("small")
    return ax
