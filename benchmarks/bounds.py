"""What the bounds on rounding cost, in units of the kernel that they are of.

    .venv/bin/python benchmarks/bounds.py [--rounds 5]

A ReLU network of L = 10, m = 512 on Gaussian samples of 784 features. In turn: the kernel alone,
from factors (`MLP.gradients`, `empirical_ntk`); what is computed once for the weights of a seed;
factors with their errors, less the factors alone. Budget: 0.6 of a kernel of 512 samples, 0.3 of
one of 2,000.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.rounding import gradients_with_error

DEPTH, WIDTH, FEATURES = 10, 512, 784
BUDGET = {512: 0.6, 2000: 0.3}


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratios(network: MLP, n: int, rounds: int) -> tuple[list[float], list[float], float]:
    """Costs of the bound and of what is computed once, in kernels; and seconds of a kernel."""
    weights = network.initial_weights(1, FEATURES)
    gradients, with_error = network.gradients(weights), gradients_with_error(network, weights)
    x = np.random.default_rng(0).standard_normal((n, FEATURES))
    bounds, once, kernels = [], [], []
    for _ in range(rounds + 1):
        kernel = seconds(lambda: empirical_ntk(gradients(x)))
        factors = seconds(lambda: gradients(x))
        bounds.append((seconds(lambda: with_error(x)) - factors) / kernel)
        once.append(seconds(lambda: gradients_with_error(network, weights)) / kernel)
        kernels.append(kernel)
    return bounds[1:], once[1:], statistics.median(kernels[1:])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    network = MLP(ACTIVATIONS["relu"], DEPTH, WIDTH)
    for n, budget in BUDGET.items():
        bounds, once, kernel = ratios(network, n, rounds)
        print(
            f"n = {n}: kernel {kernel:.3f} s; bound {statistics.median(bounds):.2f} of it"
            f" ({min(bounds):.2f} to {max(bounds):.2f}), budget {budget}; once for a seed"
            f" {statistics.median(once):.2f}"
        )


if __name__ == "__main__":
    main()
