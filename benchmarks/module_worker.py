"""One way to the NTK of a module with biases, for `module.py` to time and compare.

    python module_worker.py NAME CASE N FOLDER

Computes K twice, the second time with a clock; saves it as FOLDER/NAME.npy and prints the seconds
and by how many bytes the memory rose in the first computation.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from kernel_worker import memory, threads
from torch import nn

MEMORY = 2e9  # bytes that ntkcond may take


def case(name: str, n: int) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    if name == "mlp":
        layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        return nn.Sequential(*layers).double(), torch.randn(n, 784, dtype=torch.float64)
    module = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 25, 1),
    )  # fmt: skip
    return module.double(), torch.randn(n, 1, 28, 28, dtype=torch.float64)


def ntkcond(module: nn.Module, x: torch.Tensor) -> Callable[[], np.ndarray]:
    import ntkcond

    return lambda: ntkcond.kernel(module, x, memory=MEMORY).matrix


def unchecked(module: nn.Module, x: torch.Tensor) -> Callable[[], np.ndarray]:
    """Ours without a certificate."""
    import ntkcond

    return lambda: ntkcond.kernel(module, x, memory=MEMORY, certify=False).matrix


def torch_func(module: nn.Module, x: torch.Tensor) -> Callable[[], np.ndarray]:
    """Gradients of all samples, then products."""
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def output(weights: dict, sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, weights, (sample[None],))[0, 0]

    gradients = torch.func.vmap(torch.func.grad(output), (None, 0))

    def kernel() -> np.ndarray:
        with torch.no_grad():
            per_sample = gradients(weights, x).values()
            return sum(g.flatten(1) @ g.flatten(1).T for g in per_sample).numpy()

    return kernel


def nngeometry(module: nn.Module, x: torch.Tensor) -> Callable[[], np.ndarray]:
    from nngeometry.gram import GramMatrix
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_default_dtype(torch.float64)  # in which it adds up a convolution's gradients
    loader = DataLoader(TensorDataset(x), batch_size=len(x), collate_fn=lambda _: (x,))
    return lambda: GramMatrix(module, loader).to_torch().detach()[0, :, 0].numpy()


def main(name: str, which: str, n: str, folder: str) -> None:
    torch.set_num_threads(threads())
    kernel = globals()[name](*case(which, int(n)))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    kernel()
    taken = memory("VmHWM") - before
    start = time.perf_counter()
    matrix = kernel()
    print(time.perf_counter() - start, taken)
    np.save(Path(folder, f"{name}.npy"), matrix)


if __name__ == "__main__":
    main(*sys.argv[1:])
