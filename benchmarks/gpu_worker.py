"""One part of `gpu.py`, in a process of its own: rows of its table."""

import argparse
import functools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pandas as pd
import torch
import yaml

from ntkcond.arrays.backend import Array, put, to_numpy
from ntkcond.datasets.samples import choose
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, GradientMap
from ntkcond.ntk.closest_pair import ClosestPair, closest_gradients
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, extreme_eigenvalues
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.run.files import write_text
from ntkcond.run.machine import available_memory
from ntkcond.steps.training_task import make_repeatable
from ntkcond.training import sgd

ROOT = Path(__file__).parents[1]
GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
RELU, FEATURES, CLASSES, BATCH = ACTIVATIONS["relu"], 784, 10, 500
TABLE_1 = [1, 3, 6, 8, 10, 12]  # its depths in the paper

Row = dict[str, object]


@dataclass(frozen=True)
class Sizes:
    """What the parts compute. n: samples, L: hidden layers, m: width."""

    kernels: list[tuple[int, int]]  # n, L
    tiles: list[int]
    checked: int  # samples whose kernel the CPU computes too
    block: int
    cholesky: int
    pairs: list[int]
    trained: int
    training_depths: list[int]
    runs: list[int]  # together
    whole: int
    width: int
    training: dict  # beside studies/paper/config.yaml


FULL = Sizes(
    kernels=[(2000, 10), (20_000, 3)], tiles=[512, 2048, 4096], checked=2000, block=512,
    cholesky=10_000, pairs=[20_000, 60_000], trained=60_000, training_depths=[1, 3, 10],
    runs=[1, 30], whole=60_000, width=512, training={},
)  # fmt: skip
SMALL = Sizes(
    kernels=[(600, 3)], tiles=[64, 512], checked=300, block=128, cholesky=2100, pairs=[3000],
    trained=2000, training_depths=[1, 3], runs=[1, 2], whole=2100, width=128,
    training={"depths": [1, 3], "seeds": [1], "learning_rates": [8, 32], "epochs": 5},
)  # fmt: skip


class Setting(NamedTuple):
    """Settings of a call: sizes, the folder of MNIST's raw files (or None), the folder to write
    to."""

    sizes: Sizes
    data: Path | None
    output: Path


# Measuring.


def row(
    case: str,
    seconds: float = math.nan,
    operations: float = math.nan,
    rate: tuple[str, float] = ("", math.nan),
    difference: float = math.nan,
    tolerance: float = math.nan,
    gpu_bytes: float = math.nan,
    result: str = "",
    failed: bool = False,
) -> Row:
    """A line of the table. rate: type and operations a second of a matrix product. difference: the
    largest to the CPU's, in the units of its tolerance."""
    wrong = failed or not (difference <= tolerance or math.isnan(tolerance))
    return {
        "case": case, "seconds": seconds, "gflops": operations / seconds / 1e9, "type": rate[0],
        "rate_gflops": rate[1] / 1e9, "share": operations / seconds / rate[1],
        "difference": difference, "tolerance": tolerance,
        "verdict": "differs" if wrong else "" if math.isnan(tolerance) else "agrees",
        "gpu_gb": gpu_bytes / 1e9, "result": result,
    }  # fmt: skip


def timed(compute: Callable, *arguments, repeats: int = 3) -> tuple:
    """Seconds, the least of some repeats after one to warm up; the result; the peak of GPU memory
    in bytes."""
    times = []
    if GPU:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats + 1):
        synchronise()
        start = time.perf_counter()
        result = compute(*arguments)
        synchronise()
        times.append(time.perf_counter() - start)
    return min(times[1:]), result, torch.cuda.max_memory_allocated() if GPU else math.nan


def synchronise() -> None:
    """Waits for the GPU, which works on after a call has returned."""
    if GPU:
        torch.cuda.synchronize()


def product_rate(name: str) -> tuple[str, float]:
    """float64, float32 or TF32, and operations a second in a square matrix product of it."""
    make_repeatable(tf32=name == "TF32")
    n, dtype = 8192 if GPU else 1024, torch.float64 if name == "float64" else torch.float32
    a, b, out = (torch.randn(n, n, dtype=dtype, device=DEVICE) for _ in range(3))
    return name, 2 * n**3 / timed(functools.partial(torch.mm, out=out), a, b, repeats=5)[0]


def images(setting: Setting, n: int) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's if its files are there, else random ones of 10 degrees of freedom: x (n, 784) float32
    in [−1, 1], y (n,) of 10 classes."""
    if setting.data:
        from ntkcond.datasets import mnist  # torchvision, which takes long to load

        samples = choose(mnist.load(setting.data, {}), n, seed=0, scale=(-1, 1))
        return samples.x, samples.y
    rng = np.random.default_rng(0)
    hidden, mixing = rng.standard_normal((n, CLASSES)), rng.standard_normal((CLASSES, FEATURES))
    return np.tanh(hidden @ mixing / 3).astype(np.float32), hidden.argmax(1)


# Parts.


def tests(setting: Setting) -> Iterator[Row]:
    """All tests that need a GPU."""
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-p", "no:cacheprovider"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - start
    print(done.stdout)
    last = done.stdout.strip().rpartition("\n")[2]
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", last)
    if not counts:
        sys.exit("pytest did not run")
    lost = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    result = ", ".join([" ".join(count) for count in counts] + lost)
    yield row("pytest -m cuda", seconds, result=result, failed=done.returncode != 0)


def kernel(setting: Setting) -> Iterator[Row]:
    """K, forward and backward passes included: the default tile and others. Of some samples the
    largest difference to NumPy's, in units of √(K_ii K_jj)."""
    rate, width = product_rate("float64"), setting.sizes.width
    for n, depth in setting.sizes.kernels:
        network = MLP(RELU, depth, width)
        host = images(setting, n)[0].astype(np.float64)
        chosen = np.sort(np.random.default_rng(1).permutation(n)[: setting.sizes.checked])
        expected = empirical_ntk(network.initial_gradients(1, FEATURES)(host[chosen]))
        norms = np.sqrt(expected.diagonal())
        x, index = put(host, DEVICE), put(chosen, DEVICE)
        gradients = network.initial_gradients(1, FEATURES, DEVICE)
        work = kernel_operations(n, depth, width)
        for tile in (None, *setting.sizes.tiles):
            seconds, computed, peak = timed(ntk, gradients, x, tile)
            off = abs(to_numpy(computed[index][:, index]) - expected) / norms / norms[:, None]
            name = f"n = {n:,}, L = {depth}, m = {width}, tile {tile or 'by default'}"
            yield row(name, seconds, work, rate, float(off.max()), 1e-13, peak)


def kernel_operations(n: int, depth: int, width: int) -> float:
    """Passes, and two products a layer for each pair of samples (`ntkcond.ntk.empirical`)."""
    pairs = n * (n + min(n, 192)) / 2
    return pairs * 2 * (FEATURES + 2 * depth * width) + n * passes(depth, width)


def passes(depth: int, width: int) -> float:
    """Operations of one sample's forward and backward pass."""
    return 2 * (FEATURES + 2 * (depth - 1) * width) * width


def spectrum_operations(n: int) -> float:
    """All eigenvalues; of a large kernel a Cholesky factor, and Lanczos."""
    return 5 * n**3 if n <= FULL_SPECTRUM_UP_TO else 0.31 * n**3 + 2300 * n**2


def closest_pair_operations(n: int, depth: int, width: int) -> float:
    """Factors, products with landmarks, all pairs by 65 coordinates, some that remain."""
    gradient = FEATURES + 2 * depth * width  # entries of its factors
    per_sample = 2.5 * passes(depth, width) + 1836 * gradient
    return n * per_sample + n * (n + 1024) / 2 * (130 + 0.01 * gradient)


def ntk(gradients: GradientMap, x: Array, tile: int | None) -> Array:
    return empirical_ntk(gradients(x), tile=tile)


def spectra(setting: Setting) -> Iterator[Row]:
    """All eigenvalues of a block; λ_max and λ_min of a large kernel by Cholesky and Lanczos, a copy
    of its half included. The largest difference, in units of the sum of both error bounds."""
    rate, network = product_rate("float64"), MLP(RELU, 3, setting.sizes.width)
    for n in (setting.sizes.block, setting.sizes.cholesky):
        x = images(setting, n)[0].astype(np.float64)
        host = empirical_ntk(network.initial_gradients(1, FEATURES)(x))
        seconds, computed, peak = timed(extreme_eigenvalues, put(host, DEVICE))
        on_cpu = extreme_eigenvalues(host)
        off = [abs(a - b) for a, b in zip(computed[:2], on_cpu[:2], strict=True)]
        way = "Cholesky and Lanczos"
        if on_cpu.eigenvalues is not None:
            off, way = abs(computed.eigenvalues - on_cpu.eigenvalues), "all eigenvalues"
        yield row(
            f"n = {n:,}, {way}", seconds, spectrum_operations(n), rate,
            float(max(off) / (computed.error + on_cpu.error)), 1.0, peak,
            f"λ_min = {computed.lambda_min:.6g} ± {computed.error:.1g}",
        )  # fmt: skip


def pairs(setting: Setting) -> Iterator[Row]:
    """The closest pair: the same samples, and the difference of the angles in degrees."""
    rate, network = product_rate("float64"), MLP(RELU, 3, setting.sizes.width)
    gradients = network.initial_gradients(1, FEATURES, DEVICE)
    for n in setting.sizes.pairs:
        host = images(setting, n)[0].astype(np.float64)
        x = put(host, DEVICE)
        seconds, computed, peak = timed(pair, gradients, x, repeats=1)
        on_cpu = closest_gradients(network.initial_gradients(1, FEATURES)(host))
        work = closest_pair_operations(n, 3, network.width)
        yield row(
            f"n = {n:,}, L = 3", seconds, work, rate, abs(computed.angle_deg - on_cpu.angle_deg),
            1e-9, peak, f"samples {computed.first}, {computed.second}: {computed.angle_deg:.6f}°",
            failed=(computed.first, computed.second) != (on_cpu.first, on_cpu.second),
        )  # fmt: skip


def pair(gradients: GradientMap, x: Array) -> ClosestPair:
    return closest_gradients(gradients(x))


def training(setting: Setting) -> Iterator[Row]:
    """SGD: two epochs against the CPU's, the largest relative difference of their losses; then the
    fastest epoch of several runs together, but for the first, which records CUDA graphs."""
    task = sgd.classification(*images(setting, setting.sizes.trained))
    few = sgd.classification(task.x[:5000].numpy(), task.y[:5000].numpy())
    run = [sgd.Run(1, 1.0)]
    on_cpu = [epoch.train_loss for epoch in epochs_of(few, 3, run, 2, "cpu", setting)]
    for name, tolerance in (("float32", 1e-4), ("TF32", 3e-3))[: 2 if GPU else 1]:
        rate = product_rate(name)
        on_device = [epoch.train_loss for epoch in epochs_of(few, 3, run, 2, DEVICE, setting)]
        off = max(float(abs(a / b - 1).max()) for a, b in zip(on_device, on_cpu, strict=True))
        yield row(f"L = 3, two epochs, {name}", difference=off, tolerance=tolerance)
        for depth in setting.sizes.training_depths:
            network = MLP(RELU, depth, setting.sizes.width)
            work, _ = sgd.flops_per_epoch(len(task.x), 0, network, FEATURES, CLASSES)
            for count in setting.sizes.runs:
                runs = [sgd.Run(seed, 0.1) for seed in range(count)]
                if GPU:
                    torch.cuda.reset_peak_memory_stats()
                measured = list(epochs_of(task, depth, runs, 4, DEVICE, setting))
                seconds = min(epoch.wall_s for epoch in measured[1:])
                peak = torch.cuda.max_memory_allocated() if GPU else math.nan
                case = f"L = {depth}, an epoch of {len(task.x):,}, runs together: {count}, {name}"
                yield row(case, seconds, count * work, rate, gpu_bytes=peak)


def epochs_of(
    task: sgd.Task, depth: int, runs: list[sgd.Run], count: int, device, setting: Setting
) -> Iterator[sgd.Epoch]:
    network = MLP(RELU, depth, setting.sizes.width)
    model = sgd.Model(network, sgd.layer_factors(network, FEATURES, "authors"))
    seeds = [run.seed for run in runs]
    weights = sgd.stacked_weights(seeds, network, FEATURES, len(task.labels), device)
    return sgd.epochs(task.on(device), model, weights, runs, BATCH, range(1, count + 1))


def whole(setting: Setting) -> Iterator[Row]:
    """One NTK of all samples from data to κ, by the workflow."""
    folder = setting.output / "whole"
    reusable = sum(
        file.stat().st_size for file in folder.rglob("*.h5")
    )  # of a call that was cut off
    room = min(available_memory(DEVICE), shutil.disk_usage(setting.output).free + reusable)
    n = min(setting.sizes.whole, math.isqrt(int(0.8 * room) // 4))
    source: dict = {"source": "synthetic", "features": FEATURES}
    if setting.data:
        source = {"source": "mnist", "scale": [-1, 1]}
    config = {
        "seeds": [1], "depths": [3], "activations": ["relu"], "width": setting.sizes.width,
        "keep_kernels": False, "figures": {"fig2": ["whole"]},
        "datasets": {"whole": {**source, "samples": n, "block": "all"}},
    }  # fmt: skip
    taken = snakemake(setting, "whole", config, "results/conditioning.csv")
    rate = product_rate("float64")
    (measured,) = pd.read_csv(folder / "results/conditioning.csv").itertuples()
    steps = {
        "kernel": kernel_operations(n, 3, setting.sizes.width), "spectrum": spectrum_operations(n),
    }  # fmt: skip
    for step, work in steps.items():
        record = pd.read_csv(folder / f"results/benchmarks/{step}/whole/relu/depth3.tsv", sep="\t")
        yield row(f"{step}, n = {n:,}, L = 3", record["s"].iloc[-1], work, rate)
    records = (folder / "results/benchmarks").rglob("*.tsv")
    seconds = sum(pd.read_csv(record, sep="\t")["s"].iloc[-1] for record in records)
    yield row(
        f"all jobs, n = {n:,}", seconds, gpu_bytes=taken, failed=measured.verdict != "resolved",
        result=f"κ = {measured.kappa:.4g}, {measured.verdict}; λ_min = {measured.lambda_min:.6g} ±"
        f" {measured.lambda_min_error:.1g}",
    )  # fmt: skip


def table_1(setting: Setting) -> Iterator[Row]:
    """Table 1 of studies/paper/config.yaml: its depths."""
    yield from trained(setting, TABLE_1, ["mnist"], "results/table_generalization.csv")


def fig3(setting: Setting) -> Iterator[Row]:
    """Figure 3 of studies/paper/config.yaml: all depths, those of Table 1 taken from there."""
    yield from trained(setting, None, ["mnist"], "results/fig3.pdf")


def fig3_fashion(setting: Setting) -> Iterator[Row]:
    """With Fashion-MNIST."""
    yield from trained(setting, None, ["mnist", "fashion_mnist"], "results/fig3.pdf")


def trained(
    setting: Setting, depths: list[int] | None, datasets: list[str], target: str
) -> Iterator[Row]:
    """An artefact of the study `paper` by the workflow, of these data sets, or of the digits where
    MNIST's files are not. A row for each data set and depth."""
    chosen = {"checkpoint_minutes": 1, **({"depths": depths} if depths else {})}
    config = {"figures": {"fig3": datasets}, "training": {**chosen, **setting.sizes.training}}
    if not setting.data:
        usual = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))["training"]
        paper = {**usual, **setting.sizes.training}  # the digits have settings of their own
        paper = {name: paper[name] for name in ("learning_rates", "epochs")}
        config |= {"figures": {"fig3": ["digits"]}, "datasets": {"digits": {"training": paper}}}
    taken = snakemake(setting, "paper", config, target, "results/table_generalization.csv")
    results, rate = setting.output / "paper/results", product_rate("TF32" if GPU else "float32")
    for network in pd.read_csv(results / "table_generalization.csv").itertuples():
        with h5py.File(results / f"training/{network.dataset}/depth{network.depth}.h5") as file:
            seconds, operations = file.attrs["wall_s"], file.attrs["flops"]
        paper = network.paper_test_accuracy_percent
        result = f"test accuracy {network.test_accuracy_percent_mean:.2f} %"
        result += f" (paper: {paper:.2f} %)" if paper == paper else ""
        case = f"{network.dataset}, L = {network.depth}, {network.epochs} epochs"
        yield row(case, seconds, operations, rate, gpu_bytes=taken, result=result)


def snakemake(setting: Setting, name: str, config: dict, *targets: str) -> float:
    """Runs the workflow in OUTPUT/name, which keeps what is finished; the peak of GPU memory in
    bytes, as far as looks twice a second see it."""
    folder = setting.output / name
    folder.mkdir(parents=True, exist_ok=True)
    config |= {"device": DEVICE.type} | ({"data_dir": str(setting.data)} if setting.data else {})
    overlay = folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(config), "utf-8")
    files = [*([ROOT / "studies/paper/config.yaml"] if name == "paper" else []), overlay]
    before, taken = free_gpu_memory(), 0.0
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", str(len(os.sched_getaffinity(0))), *targets,
         "--directory", folder, "--configfile", *files], cwd=ROOT, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        while process.poll() is None:
            time.sleep(0.5)
            taken = max(taken, before - free_gpu_memory())
    except KeyboardInterrupt:  # Snakemake has it too, and ends its jobs
        process.wait()
        raise
    if process.returncode:
        sys.exit(f"snakemake ended with status {process.returncode}")
    return taken if GPU else math.nan


def free_gpu_memory() -> float:
    return torch.cuda.mem_get_info()[0] if GPU else 0.0


COMPUTE = {
    part.__name__: part
    for part in (tests, kernel, spectra, pairs, training, whole, table_1, fig3, fig3_fashion)
}


# A part in its process.


def compute(name: str, setting: Setting, identity: str) -> None:
    """Writes OUTPUT/parts/NAME.json when all is computed."""
    start = time.perf_counter()
    rows = list(COMPUTE[name](setting))
    part = {"identity": identity, "seconds": time.perf_counter() - start, "rows": rows}
    write_text(setting.output / "parts" / f"{name}.json", json.dumps(part))


def end_with(caller: int) -> None:
    """Ends this process and those that it started when the caller was killed."""

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.2)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=COMPUTE)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--identity", help="of machine, code and sizes; kept in the part's file")
    parser.add_argument("--caller", type=int, help="the process that started this one")
    a = parser.parse_args()
    if a.caller:
        end_with(a.caller)
    compute(a.part, Setting(SMALL if a.small else FULL, a.data, a.output), a.identity)
