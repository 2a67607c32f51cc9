"""The empirical NTK against the machine's float64 matrix-product rate, and against a Jacobian."""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from ntkcond.activations import ACTIVATIONS
from ntkcond.kernel import empirical_ntk, tile_count, tile_size
from ntkcond.network import gradient_map, initial_weights

RELU = ACTIVATIONS["relu"]


def fastest(run: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of some runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def matrix_product_rate(n: int, inner: int) -> float:
    """Operations a second of an (n × inner) (inner × n) product, the size the kernel uses."""
    a, b = torch.randn(n, inner, dtype=torch.float64), torch.randn(inner, n, dtype=torch.float64)
    out = torch.empty(n, n, dtype=torch.float64)
    return 2 * n * n * inner / fastest(lambda: torch.mm(a, b, out=out), 20)


def operations(n: int, features: int, width: int, depth: int) -> float:
    """Multiplications and additions in the products of `empirical_ntk`, by its tiles."""
    tile = min(tile_size(n), n)
    gram = 2 * tile_count(n, tile) * tile**2  # times the inner size
    propagation = 2 * n * width * (features + 2 * (depth - 1) * width)
    return propagation + gram * (features + 2 * depth * width)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--n", type=int, default=512)
    options.add_argument("--features", type=int, default=784)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--depths", type=int, nargs="+", default=[1, 3, 10])
    a = options.parse_args()
    torch.set_num_threads(a.threads)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((a.n, a.features)))
    rate = matrix_product_rate(min(a.n, 512), a.width)
    print(f"{a.threads} threads, n = {a.n}, d = {a.features}, m = {a.width}")
    print(f"float64 matrix products: {rate / 1e9:.0f} Gflop/s")
    for depth in a.depths:
        weights = [torch.from_numpy(w) for w in initial_weights(0, depth, a.width, a.features)]
        layerwise = fastest(lambda w=weights: empirical_ntk(gradient_map(w, RELU)(x)))
        share = operations(a.n, a.features, a.width, depth) / layerwise / rate
        few = min(a.n, 64)  # a Jacobian of all samples would not fit
        small = fastest(lambda w=weights, k=few: empirical_ntk(gradient_map(w, RELU)(x[:k])))
        jacobian = fastest(lambda w=weights, k=few: jacobian_ntk(x[:k], w), 2)
        print(
            f"L = {depth:2}: {1e3 * layerwise:6.1f} ms, {share:.0%} of the matrix-product rate;"
            f" with a Jacobian {jacobian / small:.0f} times as long ({few} samples)"
        )


def jacobian_ntk(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """F Fᵀ with the per-sample gradients F of torch.func."""
    scale = (2 / weights[-1].shape[1]) ** 0.5

    def network(parameters: list[torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        for w in parameters[:-1]:
            sample = scale * torch.relu(w @ sample)
        return (parameters[-1] @ sample).squeeze()

    gradients = torch.func.vmap(torch.func.grad(network), (None, 0))(weights, x)
    return sum(g.flatten(1) @ g.flatten(1).T for g in gradients)


if __name__ == "__main__":
    main()
