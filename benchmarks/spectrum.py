"""λ_max and λ_min by Cholesky and Lanczos against the full eigensolvers of torch and NumPy: time
and memory, each in a process of its own, in turn. And the spectra of many small kernels."""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import threadpoolctl
from product_rate import product_rate

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import spectrum
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.run.machine import use_threads


def ntk(n: int, features: int = 64, width: int = 256, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, features))
    network = MLP(ACTIVATIONS["relu"], 3, width)
    return empirical_ntk(network.initial_gradients(seed, features)(x))


def ours(kernel: np.ndarray) -> tuple[float, float]:
    found = spectrum.extreme_eigenvalues(kernel)
    return found.lambda_max, found.lambda_min


def full_torch(kernel: np.ndarray) -> tuple[float, float]:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    values = torch.linalg.eigvalsh(torch.from_numpy(kernel))
    return values[-1].item(), values[0].item()


def full_numpy(kernel: np.ndarray) -> tuple[float, float]:
    values = np.linalg.eigvalsh(kernel)
    return values[-1], values[0]


ROUTES = {"ours": ours, "torch": full_torch, "numpy": full_numpy}


def measure(route: str, path: str, threads: int) -> None:
    """Prints seconds, bytes of memory beyond the kernel, λ_max, λ_min, and the machine's rate."""
    use_threads(threads)
    ROUTES[route](ntk(spectrum.FULL_SPECTRUM_UP_TO + 1))  # libraries load, threads start
    rate = product_rate(threads=threads)
    kernel = np.load(path)
    process, done, seen = psutil.Process(), threading.Event(), [0]
    before = process.memory_info().rss

    def watch() -> None:
        while not done.wait(0.005):
            seen.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    ends = ROUTES[route](kernel)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    print(seconds, max(0, max(seen) - before), *ends, rate)


def seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def large(n: int, threads: int, rounds: int) -> None:
    results: dict[str, list[list[float]]] = {route: [] for route in ROUTES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.npy")
        np.save(path, ntk(n))
        for _ in range(rounds):
            for route in ROUTES:
                command = [sys.executable, __file__, "--threads", str(threads)]
                command += ["--measure", route, str(path)]
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                results[route].append([float(word) for word in output.split()])
    print(f"n = {n}, {threads} threads, {rounds} rounds in turn")
    for route, found in results.items():
        seconds, extra, lambda_max, lambda_min, rate = (median(v) for v in zip(*found, strict=True))
        ratio = median(f[0] / o[0] for f, o in zip(found, results["ours"], strict=True))
        print(
            f"{route:6} {seconds:7.2f} s, {ratio:5.2f} times ours; extra memory"
            f" {extra / (8 * n * n):6.3f} of the matrix; λ_max {lambda_max:.15g},"
            f" λ_min {lambda_min:.10g}; matrix products beside it {rate / 1e9:.0f} Gflop/s"
        )


def small(n: int, blocks: int, threads: int) -> None:
    """All eigenvalues of many small kernels; and their ends alone, by Cholesky and Lanczos."""
    kernels = np.stack([ntk(n, seed=seed) for seed in range(blocks)])
    use_threads(threads)

    def in_threads() -> None:
        with threadpoolctl.threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
            list(pool.map(np.linalg.eigvalsh, kernels))

    ways = {
        "eigvalsh, one by one": lambda: [np.linalg.eigvalsh(k) for k in kernels],
        f"eigvalsh, {threads} at a time": in_threads,
        "torch.linalg.eigvalsh": lambda: [full_torch(k) for k in kernels],
        "Cholesky and Lanczos": lambda: [spectrum._cholesky_lanczos(k.copy(), 0) for k in kernels],
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(3):
        for way, run in ways.items():
            times[way].append(seconds_of(run))
    print(f"{blocks} kernels of n = {n}, {threads} threads: milliseconds a kernel")
    for way, seconds in times.items():
        print(f"{way:24} {1e3 * median(seconds) / blocks:7.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=10_000)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--small", type=int, help="instead: kernels of this many samples")
    options.add_argument("--blocks", type=int, default=20)
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    a = options.parse_args()
    if a.measure:
        measure(*a.measure, a.threads)
    elif a.small:
        small(a.small, a.blocks, a.threads)
    else:
        large(a.n, a.threads, a.rounds)


if __name__ == "__main__":
    main()
