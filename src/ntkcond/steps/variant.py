"""κ of samples as they are, centred and whitened: results/variants/{dataset}.h5.

All are divided by their norms, so that the NTK of every activation is known at infinite width, and
κ of the inputs says whether ReLU lowers it (`ntkcond.ntk.linearised`).
"""

import functools
import math
from argparse import Namespace
from collections.abc import Iterator

import h5py
import numpy as np

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, GradientMap
from ntkcond.networks.zero_mean import less_its_mean
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import UNIT_ROUNDOFF, entry_error, infinite_width_ntk
from ntkcond.ntk.linearised import linearised, mean_cosine, predicted_kappa
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, use_threads
from ntkcond.run.need import Need
from ntkcond.run.progress import progress
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT64, INTERPRETER, errors_bytes, factors_bytes
from ntkcond.settings.step import DataSet

gpu = False

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
    computing += factors_bytes(n, features, depth, width) + errors_bytes(features, depth, width)
    return Need(f"NTKs of {n} samples", INTERPRETER + computing, "Lower the data set's features")


SIZES = (0.1, 0.3, 0.6)  # n/d, d the number of directions that vary
LEAST = 1e-3  # of the largest variance: directions below do not vary
CERTAIN = 0.01  # of κ, relative
RELU = ACTIVATIONS["relu"]


def main(arguments: Namespace) -> None:
    """Writes a table, each column an array (rows,): variant, size (n/d), n, directions, depth;
    mean_cosine; input_kappa, of the cosines; lowers_above, the κ above which the linearised NTK has
    a smaller one (`ntkcond.ntk.linearised`). Of ReLU at infinite width kappa, and by its linearised
    NTK predicted_kappa; rest_kappa, without the largest eigenvalue; centred_kappa, of K without the
    mean of its rows and columns; zero_mean_kappa, of ReLU less its mean. And kappa_at_width (rows,
    seeds). A κ that rounding may change by more than CERTAIN is NaN, as that of parallel samples,
    which is ∞."""
    a = arguments
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        x = file["x"][: a.most].astype(np.float64)
    require_memory(need(*x.shape, max(a.depths), a.width), "cpu")
    x = x[distinct_rows(x).index]
    sets = dict(variants(x))
    directions = sets["whitened"].shape[1]
    sizes = [size for size in SIZES if 2 <= round(size * directions) <= len(x)]
    if not sizes:
        raise UserError(
            f"{a.dataset}: has {len(x)} distinct samples that vary in {directions} directions, too"
            " few to be placed on the map. Take it out of figures.fig_when_data"
        )

    @functools.cache
    def initial(depth: int, seed: int, features: int) -> GradientMap:
        return MLP(RELU, depth, a.width).initial_gradients(seed, features)

    def rows() -> Iterator[dict]:
        for variant, samples in sets.items():
            unit = samples / np.linalg.norm(samples, axis=1, keepdims=True)
            for size in sizes:
                some = unit[: round(size * directions)]
                for depth in a.depths:
                    stages, longest = MLP(RELU, depth, a.width).rounding_stages(some.shape[1])
                    error = stages * (longest + 8) * UNIT_ROUNDOFF
                    at_width = [
                        kappa(empirical_ntk(initial(depth, seed, some.shape[1])(some)), error)
                        for seed in a.seeds
                    ]
                    yield {
                        "variant": variant, "size": size, "n": len(some),
                        "directions": directions, "depth": depth,
                        **measured(some, depth), "kappa_at_width": at_width,
                    }  # fmt: skip

    count = len(sets) * len(sizes) * len(a.depths)
    table = list(progress(rows(), count, f"variants {a.dataset.stem}"))
    with write_hdf5(a.output, a.record) as file:
        for name in table[0]:
            values = np.array([row[name] for row in table])
            file[name] = values.astype(h5py.string_dtype()) if name == "variant" else values
        file.attrs.update(samples=len(x), width=a.width, seeds=a.seeds)


def variants(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """as it is, centred: less the mean sample, and whitened: in directions that vary, (n, …)."""
    centred = x - x.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(x))
    kept = variances > LEAST * variances[-1]
    whitened = centred @ directions[:, kept] / np.sqrt(variances[kept])
    for name, samples in (("as it is", x), ("centred", centred), ("whitened", whitened)):
        yield name, samples[samples.any(axis=1)]


def measured(unit: np.ndarray, depth: int) -> dict[str, float]:
    """The columns of the table, of samples of norm 1 at infinite width."""
    features = unit.shape[1]
    network, linear = (MLP(ACTIVATIONS[name], depth, math.inf) for name in ("relu", "linear"))
    without_mean = MLP(less_its_mean(RELU), depth, math.inf)
    kernel, error = infinite_width_ntk(unit, network), entry_error(network, features)
    means, cosine = kernel.mean(axis=0), mean_cosine(unit)
    return {
        "mean_cosine": cosine,
        "input_kappa": kappa(unit @ unit.T, entry_error(linear, features)),
        "lowers_above": linearised(cosine, network).lowers_above(len(unit)),
        "kappa": kappa(kernel, error),
        "predicted_kappa": predicted_kappa(unit, network),
        "rest_kappa": kappa(kernel, error, largest=-2),
        "centred_kappa": kappa(kernel - means - means[:, None] + means.mean(), error, smallest=1),
        "zero_mean_kappa": kappa(
            infinite_width_ntk(unit, without_mean), entry_error(without_mean, features)
        ),
    }


def kappa(kernel: np.ndarray, error: float, smallest: int = 0, largest: int = -1) -> float:
    """NaN unless it is known within CERTAIN. error: of an entry, relative to the diagonal's;
    smallest, largest: of eigenvalues in ascending order, those that count."""
    eigenvalues = np.linalg.eigvalsh(kernel)
    low, high = eigenvalues[smallest], eigenvalues[largest]
    lost = (error + len(kernel) * UNIT_ROUNDOFF) * np.trace(kernel)
    return high / low if low * CERTAIN > lost else math.nan


OPTIONS = command.parser(__doc__)
OPTIONS.add_inputs("dataset")
OPTIONS.add_settings("most", "depths", "width", "seeds")
command.add_computing(OPTIONS, device=False)

if __name__ == "__main__":
    command.run(main, OPTIONS)
