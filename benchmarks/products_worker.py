"""One way to the product of a module's NTK and a vector, for `products.py` to time and compare.

    python products_worker.py NAME CASE N FOLDER

Computes K v twice, the second time with a clock; saves it as FOLDER/NAME.npy and prints the seconds
and by how many bytes the memory rose beyond inputs and weights.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from kernel_worker import memory, threads
from torch import Tensor, nn

BATCH = 1000  # samples


def case(name: str, n: int) -> tuple[nn.Module, Tensor, Tensor]:
    """10⁶ weights, or a small convolutional network."""
    torch.manual_seed(0)
    if name == "mlp":
        layers = nn.Linear(100, 950), nn.Tanh(), nn.Linear(950, 950), nn.Tanh(), nn.Linear(950, 1)
        module, x = nn.Sequential(*layers), torch.randn(n, 100)
    else:
        module = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 25, 1),
        )  # fmt: skip
        x = torch.randn(n, 1, 28, 28)
    return module, x, torch.randn(n)


def ntkcond(module: nn.Module, x: Tensor, v: Tensor) -> Callable[[], Tensor]:
    import ntkcond

    operator = ntkcond.ntk_operator(module, x, batch=BATCH, dtype=torch.float32)
    return lambda: operator @ v


def ntkcond_float64(module: nn.Module, x: Tensor, v: Tensor) -> Callable[[], Tensor]:
    import ntkcond

    operator = ntkcond.ntk_operator(module, x, batch=BATCH)
    return lambda: operator @ v.double()


def torch_func(module: nn.Module, x: Tensor, v: Tensor) -> Callable[[], Tensor]:
    """vjp, then jvp, of each batch."""
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def of(samples: Tensor) -> Callable[[dict], Tensor]:
        return lambda w: torch.func.functional_call(module, w, (samples,))[:, 0]

    def product() -> Tensor:
        total = {name: torch.zeros_like(w) for name, w in weights.items()}
        for samples, part in zip(x.split(BATCH), v.split(BATCH), strict=True):
            (by_name,) = torch.func.vjp(of(samples), weights)[1](part)
            for name, values in by_name.items():
                total[name] += values
        rows = [torch.func.jvp(of(s), (weights,), (total,))[1] for s in x.split(BATCH)]
        return torch.cat(rows)

    return product


def curvlinops(module: nn.Module, x: Tensor, v: Tensor) -> Callable[[], Tensor]:
    from curvlinops import JacobianLinearOperator, TransposedJacobianLinearOperator

    data = [(samples, torch.zeros(len(samples), 1)) for samples in x.split(BATCH)]
    options = {"check_deterministic": False}
    weights = [p for p in module.parameters() if p.requires_grad]
    of = JacobianLinearOperator(module, weights, data, **options)
    transposed = TransposedJacobianLinearOperator(module, weights, data, **options)
    return lambda: of @ (transposed @ v)


def main(name: str, which: str, n: str, folder: str) -> None:
    torch.set_num_threads(threads())
    module, x, v = case(which, int(n))
    product = globals()[name](module, x, v)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    product()
    taken = memory("VmHWM") - before
    start = time.perf_counter()
    result = product()
    print(time.perf_counter() - start, taken)
    np.save(Path(folder, f"{name}.npy"), result.detach().double().numpy().reshape(-1))


if __name__ == "__main__":
    main(*sys.argv[1:])
