"""λ_max and λ_min by Cholesky and Lanczos against a full eigensolver, on one large NTK."""

import argparse
import time

import numpy as np
import torch

from ntkcond.activations import ACTIVATIONS
from ntkcond.kernel import empirical_ntk
from ntkcond.network import gradient_map, initial_weights
from ntkcond.spectrum import extreme_eigenvalues


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=4000)
    options.add_argument("--threads", type=int, default=2)
    a = options.parse_args()
    torch.set_num_threads(a.threads)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((a.n, 64)))
    weights = [torch.from_numpy(w) for w in initial_weights(0, 3, 256, 64)]
    kernel = empirical_ntk(gradient_map(weights, ACTIVATIONS["relu"])(x))
    start = time.perf_counter()
    full = torch.linalg.eigvalsh(kernel)
    middle = time.perf_counter()
    ends = extreme_eigenvalues(kernel)
    end = time.perf_counter()
    print(f"n = {a.n}: full solver {(middle - start) / (end - middle):.1f} times as long")
    difference = abs(ends.lambda_min / full[0].item() - 1)
    print(f"relative difference of λ_min: {difference:.1e}, bound {ends.error / full[0]:.1e}")


if __name__ == "__main__":
    main()
