"""Gradient descent at several depths and its NTK's bound: results/descent/{dataset}.h5."""

import math
from argparse import Namespace
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from ntkcond import command, descent
from ntkcond.activations import ACTIVATIONS
from ntkcond.errors import UserError
from ntkcond.kernel import empirical_ntk
from ntkcond.needs import kernel_need
from ntkcond.network import initial_weights, layer_gradients
from ntkcond.progress import progress
from ntkcond.resources import require_memory, resolve_device, use_threads
from ntkcond.storage import read_hdf5, write_hdf5

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
        x = torch.from_numpy(file["x"][:n]).to(device, torch.float64)
        labels = file["y"][:n]
    y = torch.from_numpy(np.where(labels > np.median(labels), 1.0, -1.0)).to(device)
    features = x.shape[1]
    require_memory(kernel_need(n, n, features, max(a.depths), a.width), device)
    activation = ACTIVATIONS[a.activation]

    def weights_of(seed: int, depth: int) -> list[torch.Tensor]:
        drawn = initial_weights(seed, depth, a.width, features)
        return [torch.from_numpy(w).to(device) for w in drawn]

    extremes = np.empty((2, len(a.depths), len(a.seeds)))
    for i, depth in enumerate(a.depths):
        for j, seed in enumerate(a.seeds):
            kernel = empirical_ntk(layer_gradients(x, weights_of(seed, depth), activation))
            eigenvalues = torch.linalg.eigvalsh(kernel)
            extremes[:, i, j] = eigenvalues[-1].item(), eigenvalues[0].item()
    rates = np.stack(
        [np.broadcast_to(1 / extremes[0].max(axis=0), extremes[0].shape), 1 / extremes[0]]
    )
    residuals = np.full((len(RULES), len(a.depths), len(a.seeds), a.steps + 1), math.nan)

    def runs() -> Iterator[None]:
        for rule, i, j in np.ndindex(residuals.shape[:3]):
            weights = weights_of(a.seeds[j], a.depths[i])
            path = descent.descend(x, y, weights, activation, rates[rule, i, j])
            for step, residual in enumerate(islice(path, a.steps + 1)):
                residuals[rule, i, j, step] = residual
                if not math.isfinite(residual):
                    break
            yield

    for _ in progress(runs(), residuals[..., 0].size, f"descent {a.dataset.stem}"):
        pass
    with write_hdf5(a.output, a.made_by) as file:
        file["residual"] = residuals
        file["learning_rate"] = rates
        file["lambda_max"], file["lambda_min"] = extremes
        file.attrs.update(
            activation=a.activation, depths=a.depths, seeds=a.seeds, width=a.width, n=n,
            rules=RULES, steps=a.steps,
        )  # fmt: skip


if __name__ == "__main__":
    options = command.parser(__doc__)
    command.add_computing(options)
    options.add_argument("--dataset", type=Path, required=True, help="results/datasets/*.h5")
    options.add_argument("--activation", required=True, choices=ACTIVATIONS)
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    options.add_argument("--seeds", type=command.whole_numbers, required=True)
    options.add_argument("--width", type=command.at_least(1), required=True)
    options.add_argument("--block", type=command.count_or_all, required=True, help="n, or all")
    options.add_argument("--steps", type=command.at_least(1), required=True)
    command.run(main, options)
