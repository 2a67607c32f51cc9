"""Gradient descent at several depths and its NTK's bound: results/descent/{dataset}.h5."""

import math
from argparse import Namespace
from itertools import islice

import numpy as np

from ntkcond.arrays.backend import put, to_numpy, xp
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.run import command
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, write_hdf5
from ntkcond.run.machine import require_memory, resolve_device, use_threads
from ntkcond.run.needs import kernel_need
from ntkcond.run.progress import progress
from ntkcond.steps import network_options
from ntkcond.training import descent

RULES = ("common", "own")  # one learning rate for all depths, or 1/λ_max for each


def main(arguments: Namespace) -> None:
    """Writes residual (rules, depths, seeds, steps + 1), ‖f(X) − y‖ before each step and after the
    last; lambda_max, lambda_min (depths, seeds) of the NTK at initialisation, and learning_rate
    (rules, depths, seeds).

    X: the data set's first n samples. y: −1 or 1, whether the label is above the median. A common
    learning rate is the largest that suits all depths of a seed, 1 over their largest λ_max.
    """
    a = arguments
    device = resolve_device(a.device)
    use_threads(a.threads)
    with read_hdf5(a.dataset) as file:
        if "y" not in file:
            raise UserError(f"{a.dataset.stem}: has no labels to learn; show another data set")
        n = len(file["x"]) if a.block == "all" else a.block
        x = put(file["x"][:n].astype(np.float64), device)
        labels = file["y"][:n]
    y = put(np.where(labels > np.median(labels), 1.0, -1.0), device)
    features = x.shape[1]
    require_memory(kernel_need(n, n, features, max(a.depths), a.width), device)
    networks = [network_options.network(a, depth=depth) for depth in a.depths]
    extremes = np.empty((2, len(a.depths), len(a.seeds)))
    for i, network in enumerate(networks):
        for j, seed in enumerate(a.seeds):
            weights = network.initial_weights(seed, features, device)
            kernel = empirical_ntk(network.layer_gradients(x, weights))
            eigenvalues = to_numpy(xp(kernel).linalg.eigvalsh(kernel))
            extremes[:, i, j] = eigenvalues[-1], eigenvalues[0]
    rates = np.stack(
        [np.broadcast_to(1 / extremes[0].max(axis=0), extremes[0].shape), 1 / extremes[0]]
    )
    residuals = np.full((len(RULES), len(a.depths), len(a.seeds), a.steps + 1), math.nan)

    runs = progress(
        np.ndindex(residuals.shape[:3]), residuals[..., 0].size, f"descent {a.dataset.stem}"
    )
    with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is recorded as such
        for rule, i, j in runs:
            if rule and rates[rule, i, j] == rates[0, i, j]:  # the same run again
                residuals[rule, i, j] = residuals[0, i, j]
                continue
            weights = networks[i].initial_weights(a.seeds[j], features, device)
            path = descent.descend(x, y, weights, networks[i], rates[rule, i, j])
            for step, residual in enumerate(islice(path, a.steps + 1)):
                residuals[rule, i, j, step] = residual
                if not math.isfinite(residual):
                    break
    with write_hdf5(a.output, a.record) as file:
        file["residual"] = residuals
        file["learning_rate"] = rates
        file["lambda_max"], file["lambda_min"] = extremes
        file.attrs.update(
            network_options.settings(a), depths=a.depths, seeds=a.seeds, n=n, rules=RULES,
            steps=a.steps,
        )  # fmt: skip


if __name__ == "__main__":
    options = network_options.parser(__doc__, without={"depth", *network_options.NTK_ONLY})
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument("--block", type=command.count_or_all, required=True, help="n, or all")
    options.add_argument("--steps", type=command.at_least(1), required=True)
    command.run(main, options)
