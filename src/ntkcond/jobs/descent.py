"""Gradient descent on all samples of a block: a job for each data set and width."""

from collections.abc import Sequence

from ntkcond.jobs import kernel, spectrum
from ntkcond.jobs.costs import FLOAT64, Work
from ntkcond.jobs.settings import Training, names_of
from ntkcond.jobs.step import DataSet, block
from ntkcond.run.need import Need

path = "results/descent/{dataset}/width{width}.h5"
largest = block

WATCHED = 11  # NTKs in the course of a descent: `ntkcond.training.evolution.watched`


def jobs(data: DataSet, which: str) -> list[dict[str, str]]:
    """At the data set's width; with descent/widths also at those of fig_evolution."""
    more = data.config.descent.widths if which else ()
    return [{"width": str(width)} for width in sorted({data.experiment.width, *more})]


def settings(data: DataSet, width: str) -> dict:
    """At widths of fig_evolution alone: the learning rate of each depth alone."""
    values = {key: value for key, value in vars(data.config.descent).items() if key != "widths"}
    values |= {key: value for key, value in vars(data.network).items() if key in names_of(Training)}
    rules = ["common", "own"] if int(width) == data.experiment.width else ["own"]
    return {**values, "block": data.experiment.block, "width": int(width), "rules": rules}


def need(block: int, features: int, depth: int, width: int) -> Need:
    """An NTK at the start and one on the way, with their eigenvectors."""
    ntk = kernel.need_of_one(block, block, features, depth, width)
    return ntk._replace(bytes=ntk.bytes + 6 * FLOAT64 * block**2)


def work(
    block: int, features: int, depths: Sequence[int], width: int, seeds: int, rules: int, steps: int
) -> Work:
    """Passes of each step of each run, of the deepest network; NTKs on the way, their spectra."""
    depth = max(depths)
    passes = 6 * steps * block * (width * features + depth * width**2)
    ntk = kernel.operations(block, features, depth, width) + spectrum.operations(block)
    return Work(rules * len(depths) * seeds * (passes + WATCHED * ntk), 0)
