"""The search for the closest pair of gradients against all pairs in float64: time, and the pair."""

import argparse
import time
from pathlib import Path

import h5py
import numpy as np

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import closest_pair
from ntkcond.run.machine import use_threads


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("dataset", type=Path)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--depths", type=int, nargs="+", default=[1, 3, 10])
    options.add_argument("--samples", type=int, nargs="*", default=[10_000, 20_000])
    a = options.parse_args()
    use_threads(a.threads)
    with h5py.File(a.dataset) as file:
        x = file["x"][:]
    x = x[distinct_rows(x).index].astype(np.float64)
    pruned = closest_pair.BRUTE_FORCE_UP_TO
    for n in a.samples:
        for depth in a.depths:
            network = MLP(ACTIVATIONS["relu"], depth, a.width)
            gradients = network.initial_gradients(1, x.shape[1])(x[:n])
            seconds, pairs = {}, {}
            for way, limit in (("search", pruned), ("all pairs", n)):
                closest_pair.BRUTE_FORCE_UP_TO = limit
                start = time.perf_counter()
                pairs[way] = closest_pair.closest_gradients(gradients)
                seconds[way] = time.perf_counter() - start
            print(
                f"n = {n}, L = {depth}: {seconds['search']:.2f} s, all pairs in float64"
                f" {seconds['all pairs']:.2f} s; the same pair and angle:"
                f" {pairs['search'] == pairs['all pairs']}; {pairs['search']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
