"""Spectra and closest pairs of a data set: seconds against what is predicted."""

import argparse
import time
from pathlib import Path

import h5py
import numpy as np
from product_rate import product_rate

from ntkcond.datasets.duplicates import distinct_rows
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import closest_pair
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.spectrum import extreme_eigenvalues
from ntkcond.plan import cluster
from ntkcond.run.machine import use_threads


def report(name: str, seconds: float, work: cluster.Work, rate: float) -> None:
    predicted = work.operations / rate
    print(
        f"{name}: {seconds:.2f} s, predicted {predicted:.2f} s at {rate / 1e9:.0f} Gflop/s:"
        f" {predicted / seconds:.2f} of it",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("dataset", type=Path)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--depths", type=int, nargs="+", default=[1, 3, 10])
    options.add_argument("--kernels", type=int, nargs="*", default=[512, 1000, 2000, 4000, 8000])
    options.add_argument("--samples", type=int, nargs="*", default=[10_000, 20_000])
    options.add_argument("--all-pairs", action="store_true", help="closest pairs without pruning")
    a = options.parse_args()
    use_threads(a.threads)
    with h5py.File(a.dataset) as file:
        x = file["x"][:]
    x = x[distinct_rows(x).index].astype(np.float64)
    features = x.shape[1]

    def factors(n: int, depth: int):
        return MLP(ACTIVATIONS["relu"], depth, a.width).initial_gradients(1, features)(x[:n])

    extreme_eigenvalues(empirical_ntk(factors(512, 3)))  # libraries load, threads start
    for n in a.kernels:
        kernel, rate = empirical_ntk(factors(n, 3)), product_rate(threads=a.threads)
        start = time.perf_counter()
        extreme_eigenvalues(kernel)
        seconds = time.perf_counter() - start
        # features = 0: without what linear networks need
        report(f"spectrum n = {n}", seconds, cluster.spectrum_work(n, n, 0, 0, 0, 1), rate)

    for n in a.samples:
        for depth in a.depths:
            rate = product_rate(threads=a.threads)
            start = time.perf_counter()
            found = factors(n, depth)
            middle = time.perf_counter()
            pair = closest_pair.closest_pair(found)
            end = time.perf_counter()
            work = cluster.angle_work(n, features, depth, a.width, 1)
            report(f"closest pair n = {n}, L = {depth}", end - start, work, rate)
            print(f"  {pair}")
            if a.all_pairs:
                pruned = closest_pair.BRUTE_FORCE_UP_TO
                closest_pair.BRUTE_FORCE_UP_TO = n
                start = time.perf_counter()
                brute = closest_pair.closest_pair(found)
                seconds = time.perf_counter() - start
                closest_pair.BRUTE_FORCE_UP_TO = pruned
                print(
                    f"  all pairs in float64: {seconds:.2f} s, {seconds / (end - middle):.1f} times"
                    f" as long; the same pair and angle: {brute == pair}"
                )
            del found


if __name__ == "__main__":
    main()
