"""One step of `gpu.sh`: what a CUDA GPU computes, how fast, and whether it agrees with the CPU.

    python benchmarks/gpu.py STEP        rows to $WORK/STEP.csv, each as soon as it is measured

DATA names the folder of MNIST's raw files; without them samples are random, and networks learn the
digits. Without a GPU, or with SMALL=1, sizes are small: torch's code runs on the CPU.
"""

import csv
import functools
import math
import os
import platform
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import torch
import yaml

from ntkcond.arrays import half
from ntkcond.arrays.backend import Array, put, to_numpy, xp
from ntkcond.datasets.samples import choose
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, GradientMap
from ntkcond.ntk.closest_pair import ClosestPair, closest_gradients
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, extreme_eigenvalues, spectrum
from ntkcond.ntk.empirical import empirical_ntk, empirical_ntk_half, ntk_product
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import gradients_with_error
from ntkcond.run.machine import use_threads
from ntkcond.steps.training_task import make_repeatable
from ntkcond.training import sgd

ROOT = Path(__file__).parents[1]
GPU = torch.cuda.is_available()
SIZE = "small" if os.environ.get("SMALL") or not GPU else "full"
DEVICE = torch.device("cuda" if GPU else "cpu")
WORK = Path(os.environ.get("WORK") or ROOT / "benchmarks/results/gpu").resolve()
FOLDERS = [os.environ["DATA"]] if "DATA" in os.environ else [ROOT / "build/gpu/data", ROOT / "data"]
DATA = next((Path(f).resolve() for f in FOLDERS if Path(f, "MNIST/raw").is_dir()), None)
RELU, FEATURES, CLASSES, BATCH = ACTIVATIONS["relu"], 784, 10, 500
JOBS_AT_ONCE = 3  # of training on the GPU: one starts while another computes
COLUMNS = (
    "step", "case", "seconds", "gflops", "share", "difference", "tolerance", "verdict", "gpu_gb",
    "result",
)  # fmt: skip
Row = dict[str, object]


@dataclass(frozen=True)
class Sizes:
    """n: samples, L: hidden layers, m: width."""

    width: int
    rate: int  # rows of the products that say what the card can do
    copied: int  # bytes
    kernels: list[tuple[int, int]]  # n, L
    tiles: list[int]
    checked: int  # samples whose kernel the CPU computes too
    spectra: list[int]
    pairs: list[int]
    trained: int
    depths: list[int]
    runs: list[int]  # together
    whole: int
    tests: list[str]
    seeds: int  # of a study
    training: dict  # over its config


S = {
    "full": Sizes(
        512, 8192, 2**31, [(2000, 10), (20_000, 3)], [512, 2048, 4096], 2000, [512, 10_000],
        [20_000, 60_000], 60_000, [1, 3, 10], [1, 30], 60_000,
        ["tests/arrays", "tests/networks", "tests/ntk", "tests/training"], 3, {},
    ),
    "small": Sizes(
        128, 512, 2**24, [(600, 3)], [64, 512], 300, [128, 2100], [1500], 1000, [1], [2], 2100,
        ["tests/arrays/test_half.py"], 1, {"depths": [1], "epochs": 2},
    ),
}[SIZE]  # fmt: skip


# Measuring.


def row(
    case: str,
    seconds: float = math.nan,
    operations: float = math.nan,
    rate: float = math.nan,
    difference: float = math.nan,
    tolerance: float = math.nan,
    gpu_bytes: float = math.nan,
    result: str = "",
    failed: bool = False,
) -> Row:
    """A line of the table. rate: operations a second of a matrix product. difference: the largest
    to the CPU's, in the units of its tolerance."""
    wrong = failed or not (difference <= tolerance or math.isnan(tolerance))
    return {
        "case": case, "seconds": seconds, "gflops": operations / seconds / 1e9,
        "share": operations / seconds / rate, "difference": difference, "tolerance": tolerance,
        "verdict": "differs" if wrong else "" if math.isnan(tolerance) else "agrees",
        "gpu_gb": gpu_bytes / 1e9, "result": result,
    }  # fmt: skip


def synchronise() -> float:
    """The time when the GPU, which works on after a call has returned, has finished."""
    if GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(compute: Callable, *arguments, repeats: int = 3) -> tuple:
    """Seconds, the least of some repeats after one to warm up; the result; the peak of GPU memory
    in bytes."""
    times = []
    if GPU:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats + 1):
        start = synchronise()
        result = compute(*arguments)
        times.append(synchronise() - start)
    return min(times[1:]), result, peak_bytes()


def peak_bytes() -> float:
    return torch.cuda.max_memory_allocated() if GPU else math.nan


@functools.cache
def product_rate(name: str) -> float:
    """Operations a second in a square matrix product of float64, float32 or TF32."""
    make_repeatable(tf32=name == "TF32")
    dtype = torch.float64 if name == "float64" else torch.float32
    a, b, out = (torch.randn(S.rate, S.rate, dtype=dtype, device=DEVICE) for _ in range(3))
    return 2 * S.rate**3 / timed(functools.partial(torch.mm, out=out), a, b, repeats=5)[0]


@functools.cache
def images(n: int) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's if its files are there, else random ones of 10 degrees of freedom: x (n, 784) float32
    in [−1, 1], y (n,) of 10 classes."""
    if DATA:
        from ntkcond.datasets import mnist  # torchvision, which takes long to load

        samples = choose(mnist.load(DATA, {}), n, seed=0, scale=(-1, 1))
        return samples.x, samples.y
    rng = np.random.default_rng(0)
    hidden, mixing = rng.standard_normal((n, CLASSES)), rng.standard_normal((CLASSES, FEATURES))
    return np.tanh(hidden @ mixing / 3).astype(np.float32), hidden.argmax(1)


def passes(depth: int) -> float:
    """Operations of one sample's forward and backward pass."""
    return 2 * (FEATURES + 2 * (depth - 1) * S.width) * S.width


def kernel_operations(n: int, depth: int) -> float:
    """Passes, and two products a layer for each pair of samples (`ntkcond.ntk.empirical`)."""
    pairs = n * (n + min(n, 192)) / 2
    return pairs * 2 * (FEATURES + 2 * depth * S.width) + n * passes(depth)


def spectrum_operations(n: int) -> float:
    """All eigenvalues; of a large kernel a Cholesky factor, and Lanczos."""
    return 5 * n**3 if n <= FULL_SPECTRUM_UP_TO else 0.31 * n**3 + 2300 * n**2


def pair_operations(n: int, depth: int) -> float:
    """Factors, products with landmarks, all pairs by 65 coordinates, some that remain."""
    gradient = FEATURES + 2 * depth * S.width  # entries of its factors
    per_sample = 2.5 * passes(depth) + 1836 * gradient
    return n * per_sample + n * (n + 1024) / 2 * (130 + 0.01 * gradient)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two kernels, in units of √(K_ii K_jj)."""
    norms = np.sqrt(b.diagonal())
    return float((abs(a - b) / norms / norms[:, None]).max())


# Steps.


def machine() -> Iterator[Row]:
    """What numbers and times depend on; one product by the project's code."""
    facts = {"GPU": "none: the CPU, at small size", "size": SIZE, "torch": torch.__version__}
    if GPU:
        card = torch.cuda.get_device_properties(0)
        facts |= {"GPU": f"{card.name}, {card.total_memory / 2**30:.0f} GiB"}
        facts |= {"CUDA": str(torch.version.cuda)}
    facts |= {"NumPy": np.__version__, "Python": platform.python_version()}
    facts |= {"CPU cores": str(len(os.sched_getaffinity(0)))}
    facts |= {"samples": "MNIST" if DATA else "random, and digits"}
    yield from (row(name, result=fact) for name, fact in facts.items())
    x = put(np.ones(9), DEVICE)
    norm = float(xp(x).linalg.vector_norm(x))
    yield row("norm of nine ones", difference=abs(norm - 3), tolerance=0)


def ceilings() -> Iterator[Row]:
    """What the card can do: copies (GB/s in the column result), products."""

    def copied(case: str, seconds: float, count: int) -> Row:
        return row(case, seconds, result=f"{count / seconds / 1e9:.4g} GB/s")

    a, b = torch.zeros(2, S.copied // 8, dtype=torch.float64, device=DEVICE)
    yield copied("copy on the device, read and written", timed(b.copy_, a)[0], 2 * S.copied)
    host = torch.zeros(S.copied // 16, dtype=torch.float64)
    sources = {"pageable": host} | ({"pinned": host.pin_memory()} if GPU else {})
    for name, source in sources.items():
        seconds, *_ = timed(a[: len(host)].copy_, source)
        yield copied(f"{name} memory of the host to the device", seconds, S.copied // 2)
    del a, b
    for name in ("float64", "float32", "TF32"):
        rate = product_rate(name)
        yield row(f"matrix product, {name}", 2 * S.rate**3 / rate, 2 * S.rate**3)
    for name in ("float32", "TF32"):
        make_repeatable(tf32=name == "TF32")
        for count in (3, 30):  # networks together, a layer's product
            x = torch.randn(count, BATCH, S.width, device=DEVICE)
            w = torch.randn(count, S.width, S.width, device=DEVICE)
            seconds, *_ = timed(functools.partial(torch.bmm, out=torch.empty_like(x)), x, w)
            case = f"{count} products {BATCH} × {S.width} × {S.width}, {name}"
            yield row(case, seconds, 2 * x.numel() * S.width, product_rate(name))


def kernels() -> Iterator[Row]:
    """K, forward and backward passes included: the default tile and others. Of some samples the
    difference to NumPy's."""
    rate = product_rate("float64")
    for n, depth in S.kernels:
        network, host = MLP(RELU, depth, S.width), images(n)[0].astype(np.float64)
        chosen = np.sort(np.random.default_rng(1).permutation(n)[: S.checked])
        expected = empirical_ntk(network.initial_gradients(1, FEATURES)(host[chosen]))
        x, index = put(host, DEVICE), put(chosen, DEVICE)
        gradients = network.initial_gradients(1, FEATURES, DEVICE)
        for tile in (None, *S.tiles):
            seconds, computed, peak = timed(ntk, gradients, x, tile)
            off = distance(to_numpy(computed[index][:, index]), expected)
            name = f"n = {n:,}, L = {depth}, m = {S.width}, tile {tile or 'by default'}"
            yield row(name, seconds, kernel_operations(n, depth), rate, off, 1e-13, peak)


def ntk(gradients: GradientMap, x: Array, tile: int | None) -> Array:
    return empirical_ntk(gradients(x), tile=tile)


def spectra() -> Iterator[Row]:
    """A block as figure 2 has them, on the device and on one core of the CPU; λ_max and λ_min of a
    large kernel by Cholesky and Lanczos, a copy of its half included. Differences in units of the
    sum of both error bounds."""
    rate, network = product_rate("float64"), MLP(RELU, 3, S.width)
    for n in S.spectra:
        x = images(n)[0].astype(np.float64)
        use_threads(1 if n <= FULL_SPECTRUM_UP_TO else None)
        on_core, host, _ = timed(ntk, network.initial_gradients(1, FEATURES), x, None, repeats=1)
        gradients = network.initial_gradients(1, FEATURES, DEVICE)
        seconds, kernel, _ = timed(ntk, gradients, put(x, DEVICE), None)
        cores = "a core" if n <= FULL_SPECTRUM_UP_TO else "all cores"
        yield row(
            f"n = {n:,}, kernel", seconds, kernel_operations(n, 3), rate,
            distance(to_numpy(kernel), host), 1e-13, result=f"{cores}: {on_core:.3g} s",
        )  # fmt: skip
        seconds, computed, peak = timed(extreme_eigenvalues, put(host, DEVICE))
        on_core, on_cpu, _ = timed(extreme_eigenvalues, host, repeats=1)
        off = [abs(a - b) for a, b in zip(computed[:2], on_cpu[:2], strict=True)]
        way = "Cholesky and Lanczos"
        if on_cpu.eigenvalues is not None:
            off, way = abs(computed.eigenvalues - on_cpu.eigenvalues), "all eigenvalues"
        yield row(
            f"n = {n:,}, {way}", seconds, spectrum_operations(n), rate,
            float(max(off) / (computed.error + on_cpu.error)), 1.0, peak,
            f"{cores}: {on_core:.3g} s; λ_min = {computed.lambda_min:.6g} ± {computed.error:.1g}",
        )  # fmt: skip
    use_threads(None)


def pairs() -> Iterator[Row]:
    """The closest pair: the same samples, and the difference of the angles in degrees."""
    rate, network = product_rate("float64"), MLP(RELU, 3, S.width)
    gradients = network.initial_gradients(1, FEATURES, DEVICE)
    for n in S.pairs:
        host = images(n)[0].astype(np.float64)
        seconds, computed, peak = timed(pair, gradients, put(host, DEVICE), repeats=1)
        start = time.perf_counter()
        on_cpu = pair(network.initial_gradients(1, FEATURES), host)
        all_cores = time.perf_counter() - start
        yield row(
            f"n = {n:,}, L = 3", seconds, pair_operations(n, 3), rate,
            abs(computed.angle_deg - on_cpu.angle_deg), 1e-9, peak, f"all cores: {all_cores:.3g} s;"
            f" samples {computed.first}, {computed.second}: {computed.angle_deg:.6f}°",
            failed=(computed.first, computed.second) != (on_cpu.first, on_cpu.second),
        )  # fmt: skip


def pair(gradients: GradientMap, x: Array) -> ClosestPair:
    return closest_gradients(gradients(x))


def training() -> Iterator[Row]:
    """SGD: two epochs against the CPU's, the largest relative difference of their losses; then the
    fastest epoch of several runs together, but for the first, which records CUDA graphs."""
    task = sgd.classification(*images(S.trained))
    few = sgd.classification(task.x[:5000].numpy(), task.y[:5000].numpy())
    run = [sgd.Run(1, 1.0)]
    on_cpu = [epoch.train_loss for epoch in epochs_of(few, 3, run, 2, torch.device("cpu"))]
    for name, tolerance in (("float32", 1e-4), ("TF32", 3e-3))[: 2 if GPU else 1]:
        rate = product_rate(name)
        on_device = [epoch.train_loss for epoch in epochs_of(few, 3, run, 2, DEVICE)]
        off = max(float(abs(a / b - 1).max()) for a, b in zip(on_device, on_cpu, strict=True))
        yield row(f"L = 3, two epochs, {name}", difference=off, tolerance=tolerance)
        for depth in S.depths:
            network = MLP(RELU, depth, S.width)
            work, _ = sgd.flops_per_epoch(len(task.x), 0, network, FEATURES, CLASSES)
            for count in S.runs:
                runs = [sgd.Run(seed, 0.1) for seed in range(count)]
                if GPU:
                    torch.cuda.reset_peak_memory_stats()
                measured = list(epochs_of(task, depth, runs, 4, DEVICE))
                seconds = min(epoch.wall_s for epoch in measured[1:])
                case = f"L = {depth}, an epoch of {len(task.x):,}, runs together: {count}, {name}"
                yield row(case, seconds, count * work, rate, gpu_bytes=peak_bytes())


def epochs_of(
    task: sgd.Task, depth: int, runs: list[sgd.Run], count: int, device: torch.device
) -> Iterator[sgd.Epoch]:
    network = MLP(RELU, depth, S.width)
    model = sgd.Model(network, sgd.layer_factors(network, FEATURES, "authors"))
    seeds = [run.seed for run in runs]
    weights = sgd.stacked_weights(seeds, network, FEATURES, len(task.labels), device)
    return sgd.epochs(task.on(device), model, weights, runs, BATCH, range(1, count + 1))


def tests() -> Iterator[Row]:
    """All tests that need a GPU."""
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-p", "no:cacheprovider", *S.tests]
    command += ["-n", str(min(8, os.cpu_count() or 1)) if GPU else "0"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - start
    print(done.stdout)
    last = done.stdout.strip().rpartition("\n")[2]
    lost = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    none = done.returncode == 5 and not GPU  # nothing but deselected ones
    wrong = done.returncode != 0 and not none
    yield row("pytest -m cuda", seconds, result=" ".join([last.strip("= "), *lost]), failed=wrong)


def batched_product(k: half.Half, v: np.ndarray) -> np.ndarray:
    """`Half.product` with a few launches a panel: what that would gain."""
    width, x = half.PANEL, put(v, k.panels[0].device)
    result = torch.zeros_like(x)
    for panel in k.panels:
        start, columns = k.n - len(panel), panel.shape[1]
        here = slice(start, start + columns)
        result[start:] += panel @ x[here]
        whole = (len(panel) - columns) // width * width
        below = panel[columns : columns + whole].view(-1, width, columns)
        after = x[start + columns : start + columns + whole].view(-1, width, 1)
        result[here] += torch.bmm(below.mT, after).sum(0)[:, 0]
        result[here] += panel[columns + whole :].T @ x[start + columns + whole :]
    return to_numpy(result)


def whole() -> Iterator[Row]:
    """One NTK of all images and its spectrum in the device's memory, phase by phase, beside what
    studies/whole has; at another size beside the CPU's."""
    host = images(S.whole)[0]
    n, depth = len(host), 3
    network, took = MLP(RELU, depth, S.width), defaultdict(list)

    def phase(name: str, compute: Callable, *arguments):
        start = synchronise()
        made = compute(*arguments)
        took[name].append(synchronise() - start)
        return made

    def by_phases(name: str) -> Callable:
        method = getattr(half.Half, name)
        return lambda self, *arguments: phase(f"spectrum: {name}", method, self, *arguments)

    everything = synchronise()
    x = phase("samples to the device", put, host.astype(np.float64), DEVICE)
    weights = network.initial_weights(1, FEATURES, DEVICE)
    factors, error = phase("factors and their errors", gradients_with_error(network, weights), x)
    k = phase("kernel by half", empirical_ntk_half, factors)
    v = np.random.default_rng(0).standard_normal(n)
    product, batched = phase("K v", k.product, v), phase("K v, batched", batched_product, k, v)
    phase("K v", k.product, v)
    phase("K v, batched", batched_product, k, v)
    for name in ("product", "solve", "factorise"):
        setattr(half.Half, name, by_phases(name))
    found = phase("spectrum", spectrum, k, error, rank_bound(host, network))
    del k
    low, vector = found.extremes, found.extremes.vector
    gradients = network.gradients(weights)
    image = to_numpy(phase("K v by gradients", ntk_product, gradients, x, put(vector, DEVICE)))
    angle = phase("closest pair", closest_gradients, factors).angle_deg
    everything, peak = synchronise() - everything, peak_bytes()
    work = {
        "kernel by half": kernel_operations(n, depth), "spectrum: factorise": n**3 / 3,
        "K v": 2 * n**2, "K v, batched": 2 * n**2,
    }  # fmt: skip
    for name, times in took.items():
        counted, rate = work.get(name, math.nan), product_rate("float64")
        seconds = sum(times) if name.startswith("spectrum") else min(times)
        yield row(name, seconds, counted, rate, result=f"{len(times)} times")
    yield row("all phases", everything, gpu_bytes=peak, result=f"{found.verdict}, {found.grade}")
    off = float(abs(product - batched).max() / abs(product).max())
    yield row("K v, batched: to the usual", difference=off, tolerance=1e-12)
    residual = float(np.linalg.norm(image - found.lambda_min * vector)) / low.error
    words = "residual of λ_min's vector by gradients, in its errors"
    yield row(words, difference=residual, tolerance=3)
    lambda_max, lambda_min, known_error, known_angle = known_whole(host, network)
    off = abs(found.lambda_max / lambda_max - 1)
    yield row("λ_max, relative", difference=off, tolerance=1e-10, result=f"{found.lambda_max:.10g}")
    off = abs(found.lambda_min - lambda_min) / (low.error + known_error)
    words = f"{found.lambda_min:.6g} ± {low.error:.1g}; κ = {found.kappa:.9g}"
    yield row("λ_min, in units of both errors", difference=off, tolerance=1, result=words)
    off = abs(angle - known_angle)
    yield row("smallest angle, degrees", difference=off, tolerance=1e-6, result=f"{angle:.8f}")


def known_whole(host: np.ndarray, network: MLP) -> tuple[float, float, float, float]:
    """The CPU's λ_max, λ_min, its error, and smallest angle."""
    if DATA and (len(host), network.width) == (60_000, 512):
        tables = (pd.read_csv(ROOT / f"studies/whole/{t}.csv") for t in ("conditioning", "angles"))
        of_it = "dataset == 'mnist' and activation == 'relu' and depth == 3 and seed == 1"
        spectrum_row, angle = (table.query(of_it).iloc[0] for table in tables)
        names = ("lambda_max", "lambda_min", "lambda_min_error")
        return *(float(spectrum_row[name]) for name in names), float(angle["min_angle_deg"])
    factors = network.initial_gradients(1, FEATURES)(host.astype(np.float64))
    low = extreme_eigenvalues(empirical_ntk(factors))
    return low.lambda_max, low.lambda_min, low.error, closest_gradients(factors).angle_deg


def figure_3() -> Iterator[Row]:
    """MNIST at all depths with the study's rates until a loss of 0.001; then Fashion-MNIST, if its
    files are there, by the plan in the study `paper`."""
    for dataset in ("mnist", "fashion_mnist"):
        if dataset == "mnist" or (DATA and (DATA / "FashionMNIST/raw").is_dir()):
            yield from study("figure_3", dataset if DATA else "digits", plan="paper")


def table_1() -> Iterator[Row]:
    """The study of Table 1: its depths, rates and seeds."""
    yield from study("table_1", "mnist" if DATA else "digits")


def study(name: str, dataset: str, plan: str = "") -> Iterator[Row]:
    """Jobs of a study's config, or of another that is its plan, by the workflow, one seed after
    another; those that are there are kept. A row for each."""
    folder, path = WORK / "studies" / name, ROOT / f"studies/{plan or name}/config.yaml"
    config: dict = {"device": DEVICE.type, "figures": {"fig3": [dataset]}}
    config["training"] = {"checkpoint_minutes": 1, **S.training}
    if DATA:
        config["data_dir"] = str(DATA)
    else:
        config["datasets"] = {"digits": {"training": {"learning_rates": [8, 32], "epochs": 2}}}
    folder.mkdir(parents=True, exist_ok=True)
    overlay = folder / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(config), "utf-8")
    training = yaml.safe_load(path.read_text("utf-8"))["training"] | S.training
    command = [
        sys.executable, "-m", "snakemake", "--cores", str(len(os.sched_getaffinity(0))),
        "--resources", f"gpu={JOBS_AT_ONCE}", "--keep-going", "--directory", folder,
        "--configfile", path, overlay,
    ]  # fmt: skip
    for seed in training["seeds"][: S.seeds]:
        place = f"results/training/{dataset}/depth{{}}/seed{seed}.h5"
        files = {depth: place.format(depth) for depth in training["depths"]}
        process = subprocess.Popen([*command, "--", *files.values()], cwd=ROOT)
        try:
            status = process.wait()
        except KeyboardInterrupt:  # Snakemake has it too, and ends its jobs
            status = process.wait()
            raise
        finally:
            done = {depth: folder / path for depth, path in files.items()}
            rows = [job(name, dataset, L, seed, p) for L, p in done.items() if p.is_file()]
            yield from rows
        if status:
            sys.exit(f"snakemake ended with status {status}")


def job(name: str, dataset: str, depth: int, seed: int, path: Path) -> Row:
    """What a training job measured. Its difference: of the losses of two epochs at the lowest rate
    to those that the study keeps, relative; higher rates amplify rounding."""
    with h5py.File(path) as file:
        losses, attributes = file["train_loss"][0], dict(file.attrs)
        accuracy = file["test_accuracy"][0]
    rates = [float(rate) for rate in attributes["learning_rates"]]
    known = kept_losses(name, dataset, depth, seed, rates[0])
    off = abs(losses[0, :2] / known[:2] - 1).max() if len(known) else math.nan
    words = []
    for rate, loss, right in zip(rates, losses, accuracy, strict=True):
        last = np.isfinite(loss).nonzero()[0][-1:]
        below = (loss < 0.001).nonzero()[0][:1] + 1
        reached = f"below 0.001 in epoch {below[0]}" if len(below) else f"{loss[last].sum():.4g}"
        words.append(f"{rate:g}: {reached}, {100 * right[last].sum():.2f} % of the tests")
    kind = "TF32" if attributes["tf32"] and GPU else "float32"
    return row(
        f"{dataset}, L = {depth}, seed {seed}, {len(rates)} rates together, {kind}",
        attributes["wall_s"], attributes["flops"], product_rate(kind), float(off),
        0.05 if len(known) else math.nan, result="; ".join(words),
    )  # fmt: skip


def kept_losses(name: str, dataset: str, depth: int, seed: int, rate: float) -> np.ndarray:
    """Of each epoch, as a study keeps them in its table."""
    runs = pd.read_csv(ROOT / f"studies/{name}/training.csv.gz")
    runs = runs.set_index(["dataset", "depth", "seed", "learning_rate"])
    return runs[runs.index == (dataset, depth, seed, rate)]["train_loss"].to_numpy()


STEPS = {
    step.__name__: step
    for step in (
        machine, ceilings, kernels, spectra, pairs, training, tests, whole, figure_3, table_1,
    )
}  # fmt: skip


def _shown(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"


def main(name: str) -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    wrong = False
    with (WORK / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for line in STEPS[name]():
            shown = {name: _shown(value) for name, value in line.items()}
            table.writerow({"step": name, **shown})
            file.flush()
            print(" ".join(str(value) for value in shown.values() if value != ""), flush=True)
            wrong |= line["verdict"] == "differs"
    sys.exit(3 if wrong else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in STEPS:
        sys.exit(f"python benchmarks/gpu.py STEP: one of {', '.join(STEPS)}")
    main(sys.argv[1])
