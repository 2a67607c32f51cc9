"""κ of a data set as it is, centred and whitened: a job for each data set."""

from collections.abc import Iterator, Sequence

from ntkcond.jobs.costs import FLOAT64, INTERPRETER, Work, errors_bytes, factors_bytes, propagation
from ntkcond.jobs.step import DataSet
from ntkcond.run.need import Need

path = "results/variants/{dataset}.h5"
unrecorded = ()

MOST = 4000  # samples, from which mean and covariance are taken


def jobs(data: DataSet, which: str) -> Iterator[dict[str, str]]:
    yield {}


def settings(data: DataSet) -> dict:
    """The settings of the other small kernels."""
    sweeps = data.config.sweeps
    width = data.experiment.width
    return {"most": MOST, "width": width, "depths": sweeps.depths, "seeds": sweeps.seeds}


def largest(data: DataSet) -> int:
    """From which mean and covariance are taken, at most."""
    return MOST


def need(samples: int, features: int, depth: int, width: int) -> Need:
    """The covariance and its eigenvectors; the NTK of fewer samples than features."""
    n = min(features, samples, MOST)
    computing = FLOAT64 * (3 * min(samples, MOST) * features + 4 * features**2 + 6 * n**2)
    computing += factors_bytes(n, features, depth, width) + errors_bytes(n, features, depth, width)
    return Need(f"NTKs of {n} samples", INTERPRETER + computing, "Lower the data set's features")


def work(samples: int, features: int, depths: Sequence[int], width: int, seeds: int) -> Work:
    """The eigenvectors; for each depth NTKs at infinite width and at this one."""
    n = min(features, samples, MOST)
    operations = 10.0 * features**3
    for depth in depths:
        kernel = n * (propagation(features, depth, width) + 2 * n * depth * width)
        operations += 9 * (seeds * kernel + n**2 * (20_000 + 5_000 * depth))
    return Work(operations, FLOAT64 * samples * features)
