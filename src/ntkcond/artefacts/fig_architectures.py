"""κ and min φ of networks beside the paper's, with and without ReLU: does its effect hold there?"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ntkcond.artefacts import conditions, interval, style, sweep_panels
from ntkcond.artefacts.kappa import kappa_columns
from ntkcond.artefacts.spec import Spec
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ARCHITECTURES
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5

SPEC = Spec(
    title="Other networks, separation and conditioning against depth",
    section="§∞ Beyond the first version",
    inputs=("architecture",),
    datasets="fig_architectures",
    caption="""
**Left**: the smallest angle between the gradients of two of n samples, mean over initialisations
and blocks with its 95 % t interval. **Right**: κ of their NTK, median and middle 68 %; a hollow
triangle is a lower bound. A colour and marker for each kind of network; ReLU: filled, solid;
linear: hollow, dashed. All have L hidden layers of the same width with the paper's factors:

- *fully connected*: the paper's own;
- *with biases*: β b in every layer, b ~ N(0, 1), β = 0.5 by default (`architectures.bias`);
- *residual*: each layer after the first is added to its input, and the sum divided by √2;
- *residual, linear last*: the same with a linear layer behind the activation, without its mean;
- *normalised*: layer normalisation after each hidden layer;
- *convolutional*: filters of 3 × 3 pixels, a sum over all pixels before the output;
- *transformer*: L blocks of attention and of a network with one hidden layer, on squares of 4 × 4
  pixels; the mean of them before the output. *Linear* is that hidden layer alone.

**The paper** has fully connected networks without biases; its newest version (Remark 2.1) warns
that biases may change its results.
""",
)
POINT = ["dataset", "architecture", "activation", "depth"]


def table(architecture: Sequence[Path]) -> pd.DataFrame:
    """A row for each data set, network, activation and depth: width, weights, n, the columns of κ
    of `ntkcond.artefacts.fig2.table`, those of min_angle_deg over seeds and blocks."""
    if not architecture:
        raise UserError(
            "no network of architectures.names takes these data sets. convolutional and transformer"
            " take images: give the data set its shape, [channels, height, width]; or name plain"
        )
    records = []
    for path in architecture:
        with read_hdf5(path) as file:
            columns = {name: file[name][:] for name in file}
            for name in ("verdict", "grade", "activation"):
                columns[name] = file[name].asstr()[:]
            about = {"dataset": path.parts[-2], "architecture": file.attrs["architecture"]}
            rows = pd.DataFrame({**about, **columns, "samples": file.attrs["samples"]})
        for point, group in rows.groupby(POINT, sort=False):
            angles, first = group.min_angle_deg, group.iloc[0]
            records.append({
                **dict(zip(POINT, point, strict=True)),
                "weights": first.weights,
                **kappa_columns(group.assign(nonzero_kappa=np.nan)),
                **interval.angle_columns("min_angle_deg", angles),
            })  # fmt: skip
    return pd.DataFrame(records).drop(columns="nonzero_kappa_mean")


@style.look()
def draw(numbers: pd.DataFrame) -> style.Picture:
    """A row of two panels for each data set."""
    names = list(numbers.architecture.unique())

    def curves(left: Axes, right: Axes, rows: pd.DataFrame) -> None:
        for (name, activation), curve in rows.groupby(["architecture", "activation"], sort=False):
            look = _look(names.index(name), activation)
            sweep_panels.draw_angle(left, "depth", curve, look)
            sweep_panels.draw_kappa(right, "depth", curve, look)

    figure, panels = sweep_panels.draw_rows(numbers, 2.4, curves)
    for axes in panels[-1]:
        style.depth_axis(axes, numbers.depth)
    keys = [
        (Line2D([], [], **{**_look(i, "relu"), "linestyle": "none"}), ARCHITECTURES.get(name, name))
        for i, name in enumerate(names)
    ]
    for activation in numbers.activation.unique():
        look = sweep_panels.of_activation(activation, style.IN_GREY)
        keys.append((Line2D([], [], **look), ACTIVATIONS[activation].title))
    figure.key(*keys, about=conditions.in_words(numbers))
    return figure


def _look(position: int, activation: str) -> dict:
    return sweep_panels.of_activation(activation, style.look_of(position))
