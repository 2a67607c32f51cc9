"""Pictures of the library's results, with Matplotlib."""

from typing import TYPE_CHECKING

import numpy as np

from ntkcond.ntk.eigenvalues import Spectrum
from ntkcond.run.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, GREY = "#1f6fb4", "0.55"


def plot_eigenvalues(
    values: np.ndarray, error: float, spectrum: Spectrum, ax: "Axes | None" = None
) -> "Axes":
    """All eigenvalues of an NTK, largest first, on a log axis; grey below the error of each, where
    none is known. values: (n,), ascending. Raises UserError without Matplotlib."""
    ax = _new_axes() if ax is None else ax
    descending = np.maximum(values[::-1], np.finfo(float).tiny)
    positions = np.arange(1, len(values) + 1)
    known = descending > error
    floor = min(descending[known].min(initial=np.inf), max(error, descending[0] * 1e-17)) / 3
    ax.axhspan(floor, max(error, floor), color="0.92", lw=0, label="below the error of eigenvalues")
    ax.plot(positions[known], descending[known], ".", ms=3, color=BLUE)
    title = f"{spectrum.known_kappa}\n{spectrum.verdict} ({spectrum.grade}), n = {spectrum.n}"
    lost = int((~known).sum())
    if lost:
        place = np.full(lost, floor * 1.5)
        ax.plot(positions[~known], place, "v", ms=3, color=GREY, label=f"{lost} not known")
    ax.set(
        xlabel="position of the eigenvalue", ylabel="eigenvalue", yscale="log",
        xlim=(1 - 0.02 * len(values), 1 + 1.01 * len(values)), ylim=(floor, descending[0] * 3),
        title=title,
    )  # fmt: skip
    ax.legend(loc="best", frameon=False, fontsize="small")
    return ax


def _new_axes() -> "Axes":
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UserError("pictures need Matplotlib: pip install matplotlib") from error
    ax: Axes = pyplot.subplots(figsize=(4.6, 3.0), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_fontsize("small")
    return ax
