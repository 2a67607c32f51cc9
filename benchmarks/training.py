"""Training against the machine's float32 matrix-product rate, and against torch's own loop."""

import argparse
import math
import time

import numpy as np
import torch

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.training import sgd
from ntkcond.training.sgd import Model, Run

CLASSES = 10


def matrix_product_rate(size: int = 1024) -> float:
    """Operations a second of a square product: the best of 20."""
    a, b, out = (torch.randn(size, size, device=DEVICE) for _ in range(3))
    times = []
    for _ in range(21):
        synchronise()
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        synchronise()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times[1:])


def synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds_an_epoch(task: sgd.Task, depth: int, runs: list[Run], a) -> float:
    """Seconds of all runs together: the best of some epochs after the first."""
    features = task.x.shape[1]
    network = MLP(ACTIVATIONS["relu"], depth, a.width)
    model = Model(network, sgd.layer_factors(network, features, "authors"))
    seeds = [run.seed for run in runs]
    weights = sgd.stacked_weights(seeds, network, features, CLASSES, DEVICE)
    numbers = range(1, a.epochs + 2)
    epochs = sgd.epochs(task, model, weights, runs, a.batch, numbers)
    return min([epoch.wall_s for epoch in epochs][1:])


def plain_loop_seconds(task: sgd.Task, depth: int, a) -> float:
    """An epoch of one run, with autograd and torch.optim.SGD, as one would write it."""
    network = MLP(ACTIVATIONS["relu"], depth, a.width)
    weights = network.weights(1, task.x.shape[1], CLASSES)
    weights = [torch.from_numpy(w).to(DEVICE, torch.float32).requires_grad_() for w in weights]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    times = []
    for _ in range(a.epochs + 1):
        synchronise()
        start = time.perf_counter()
        for rows in torch.randperm(a.samples, device=DEVICE).split(a.batch):
            f = task.x[rows]
            for w in weights[:-1]:
                f = math.sqrt(2) * torch.relu(f @ w.T / math.sqrt(w.shape[1]))
            f = f @ weights[-1].T / math.sqrt(a.width)
            loss = torch.nn.functional.cross_entropy(f, task.y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()  # to be recorded
        synchronise()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main(a: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((a.samples, a.features), dtype=np.float32)
    task = sgd.classification(x, np.arange(a.samples) % CLASSES).on(DEVICE)
    print(f"{DEVICE}, {torch.get_num_threads()} threads, batch {a.batch}, m = {a.width}")
    for depth in a.depths:
        rate = matrix_product_rate()
        runs = [Run(1, 0.1 * (i + 1)) for i in range(a.runs)]
        alone = seconds_an_epoch(task, depth, runs[:1], a)
        together = seconds_an_epoch(task, depth, runs, a) / len(runs)
        plain = plain_loop_seconds(task, depth, a)
        network = MLP(ACTIVATIONS["relu"], depth, a.width)
        flops, _ = sgd.flops_per_epoch(a.samples, 0, network, a.features, CLASSES)
        print(
            f"L = {depth:2}: {flops / alone / rate:.0%} of the matrix-product rate"
            f" ({rate / 1e9:.0f} Gflop/s) with one run, {flops / together / rate:.0%} with"
            f" {len(runs)} together; torch's own loop takes {plain / alone:.2f} times as long"
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--tf32", action="store_true", help="on a GPU")
    options.add_argument("--samples", type=int, default=5000)
    options.add_argument("--features", type=int, default=784)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--batch", type=int, default=500)
    options.add_argument("--runs", type=int, default=6)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--depths", type=int, nargs="+", default=[1, 3, 10])
    arguments = options.parse_args()
    DEVICE = arguments.device
    torch.set_num_threads(arguments.threads)
    torch.backends.cuda.matmul.allow_tf32 = arguments.tf32
    main(arguments)
