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
from scipy.linalg import lapack

from ntkcond.arrays.half import Half, half_of
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, extreme_eigenvalues
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.run.machine import use_threads


def ntk(n: int, features: int = 64, width: int = 256, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, features))
    network = MLP(ACTIVATIONS["relu"], 3, width)
    return empirical_ntk(network.initial_gradients(seed, features)(x))


def ours(kernel: np.ndarray | Half) -> tuple[float, float]:
    extremes = extreme_eigenvalues(kernel)
    return extremes.lambda_max, extremes.lambda_min


def full_torch(kernel: np.ndarray) -> tuple[float, float]:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    values = torch.linalg.eigvalsh(torch.from_numpy(kernel))
    return values[-1].item(), values[0].item()


def full_numpy(kernel: np.ndarray) -> tuple[float, float]:
    values = np.linalg.eigvalsh(kernel)
    return values[-1], values[0]


ROUTES = {"ours": ours, "torch": full_torch, "numpy": full_numpy}
FORMS = {"ours": half_of}  # of the kernel; otherwise as it is


def measure(route: str, path: str, threads: int) -> None:
    """Prints seconds, bytes of memory beyond the kernel, λ_max, λ_min, and the machine's rate."""
    use_threads(threads)
    ROUTES[route](ntk(FULL_SPECTRUM_UP_TO + 1))  # libraries load, threads start
    rate = product_rate(threads=threads)
    kernel = FORMS.get(route, np.asarray)(np.load(path))
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
    for route, runs in results.items():
        seconds, extra, lambda_max, lambda_min, rate = (median(v) for v in zip(*runs, strict=True))
        ratio = median(f[0] / o[0] for f, o in zip(runs, results["ours"], strict=True))
        print(
            f"{route:6} {seconds:7.2f} s, {ratio:5.2f} times ours; extra memory"
            f" {extra / (8 * n * n):6.3f} of the matrix; λ_max {lambda_max:.15g},"
            f" λ_min {lambda_min:.10g}; matrix products beside it {rate / 1e9:.0f} Gflop/s"
        )


def covariance(n: int) -> np.ndarray:
    """exp(−|i − j|/50) + δ_ij: positive definite, made fast."""
    distances = abs(np.arange(n)[:, None] - np.arange(n, dtype=np.float32))
    matrix = np.exp(-distances / 50).astype(np.float64)
    matrix[np.diag_indices(n)] += 1
    return matrix


def factor_once(route: str, n: int, threads: int) -> None:
    """Prints the seconds of one Cholesky factor in the way of `route`."""
    use_threads(threads)
    matrix = covariance(n)
    if route == "torch":
        import torch

        torch.set_num_threads(threads)
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: half.factorise(),
        "numpy": lambda: np.linalg.cholesky(matrix),
        "scipy": lambda: lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1),
        "torch": lambda: torch.linalg.cholesky(torch.from_numpy(matrix)),
    }
    if route == "ours":
        half = half_of(matrix)
    print(seconds_of(ways[route]))


def factor(n: int, threads: int, rounds: int) -> None:
    """A Cholesky factor by half, in place, against those of full storage."""
    print(f"Cholesky factor, n = {n}, {threads} threads, {rounds} rounds in turn")
    for _ in range(rounds):
        for route in ("ours", "numpy", "torch", "scipy"):
            command = [sys.executable, __file__, "--threads", str(threads)]
            command += ["--factor", str(n), "--route", route]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            words = f"ended by signal {-done.returncode}" if done.returncode else ""
            if not words:
                seconds = float(done.stdout)
                words = f"{seconds:6.2f} s, {n**3 / 3 / seconds / 1e9:4.0f} Gflop/s"
            print(f"  {route:6} {words}", flush=True)


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
        "Cholesky and Lanczos": lambda: [extreme_eigenvalues(half_of(k)) for k in kernels],
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
    options.add_argument("--factor", type=int, help="instead: Cholesky factors of this n")
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--route", help=argparse.SUPPRESS)
    a = options.parse_args()
    if a.measure:
        measure(*a.measure, a.threads)
    elif a.factor and a.route:
        factor_once(a.route, a.factor, a.threads)
    elif a.factor:
        factor(a.factor, a.threads, a.rounds)
    elif a.small:
        small(a.small, a.blocks, a.threads)
    else:
        large(a.n, a.threads, a.rounds)


if __name__ == "__main__":
    main()
