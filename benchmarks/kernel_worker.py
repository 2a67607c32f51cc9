"""One implementation of the NTK of the paper's ReLU network, for `kernel.py` to time and compare.

    python kernel_worker.py NAME INPUTS.npz FOLDER

in the environment of the package NAME. Reads x and the weights W1 … of Eq. (1), loads and sets up,
and prints "ready"; for each line "run" on stdin it computes K once and prints the seconds; at the
end of its input it saves K as FOLDER/NAME.npy and prints by how many bytes its memory
rose above that at "ready" in the first computation. It imports nothing of the others' packages.
"""

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Ntk = Callable[[], object]  # of the inputs and weights it was set up with; an array of NumPy's kind


def scale(weights: list[np.ndarray]) -> float:
    """√(c_σ/m) of Eq. (1), ReLU."""
    return math.sqrt(2 / weights[-1].shape[1])


def ntkcond(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    from ntkcond.networks.activations import ACTIVATIONS
    from ntkcond.networks.mlp import MLP
    from ntkcond.ntk.empirical import empirical_ntk

    network = MLP(ACTIVATIONS["relu"], len(weights) - 1, weights[-1].shape[1])
    gradients = network.gradients(weights)
    return lambda: empirical_ntk(gradients, x)


def before(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """An older version, by its PYTHONPATH, and in the way of 0.2."""
    from ntkcond.networks.activations import ACTIVATIONS
    from ntkcond.networks.mlp import MLP
    from ntkcond.ntk.empirical import empirical_ntk

    network = MLP(ACTIVATIONS["relu"], len(weights) - 1, weights[-1].shape[1])
    gradients = network.gradients(weights)
    return lambda: empirical_ntk(gradients(x))


def numpy_product(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """No NTK, a yardstick: n × m by m × n, of NumPy."""
    n, width = len(x), weights[-1].shape[1]
    a, b = np.ones((2, n, width), x.dtype)
    out = np.empty((n, n), x.dtype)
    return lambda: np.matmul(a, b.T, out=out)


def torch_product(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """The same, of torch."""
    import torch

    torch.set_num_threads(threads())
    n, width = len(x), weights[-1].shape[1]
    a = torch.ones(n, width, dtype=torch.from_numpy(x).dtype)
    out = a.new_empty(n, n)
    return lambda: torch.mm(a, a.T, out=out).numpy()


def torch_model(x: np.ndarray, weights: list[np.ndarray]):
    """The network as a torch.nn.Sequential, its inputs as a tensor."""
    import torch

    torch.set_num_threads(threads())

    class ScaledReLU(torch.nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return scale(weights) * torch.relu(z)

    layers: list[torch.nn.Module] = []
    for w in weights:
        linear = torch.nn.utils.skip_init(torch.nn.Linear, *w.shape[::-1], bias=False)
        linear.weight = torch.nn.Parameter(torch.from_numpy(w))
        layers += [linear, ScaledReLU()]
    return torch.nn.Sequential(*layers[:-1]), torch.from_numpy(x)


def asdfghjkl(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    from asdl.kernel import empirical_class_wise_hadamard_ntk

    model, inputs = torch_model(x, weights)
    return lambda: empirical_class_wise_hadamard_ntk(model, inputs)[..., 0].numpy()


def nngeometry(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    from nngeometry.gram import GramMatrix
    from torch.utils.data import DataLoader, TensorDataset

    model, inputs = torch_model(x, weights)
    loader = DataLoader(TensorDataset(inputs), batch_size=len(x), collate_fn=lambda _: (inputs,))
    return lambda: GramMatrix(model, loader).to_torch().detach()[0, :, 0].numpy()


def torchntk(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """Its formula for dense layers, given each layer's inputs; the forward pass is timed too."""
    import torch
    from torchntk.explicit.explicit_ntk import explicit_ntk

    model, inputs = torch_model(x, weights)
    layers, factor = list(model[::2]), scale(weights)
    widths, ones = [len(w) for w in weights], [torch.tensor(1.0)] * len(weights)

    def slope(z: torch.Tensor) -> torch.Tensor:
        return factor * (z > 0)

    def ntk() -> np.ndarray:
        with torch.no_grad():
            columns = [inputs.T]
            for layer in layers[:-1]:
                columns.append(factor * torch.relu(layer.weight @ columns[-1]))
            return sum(explicit_ntk(columns, widths, ones, layers, slope, device="cpu")).numpy()

    return ntk


def jacobian(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """torch.func's gradient of each sample, as the authors did; summed over layers."""
    import torch

    torch.set_num_threads(threads())
    parameters, inputs, factor = (
        [torch.from_numpy(w) for w in weights],
        torch.from_numpy(x),
        scale(weights),
    )

    def network(parameters: list, sample: torch.Tensor) -> torch.Tensor:
        for w in parameters[:-1]:
            sample = factor * torch.relu(w @ sample)
        return (parameters[-1] @ sample).squeeze()

    gradients = torch.func.vmap(torch.func.grad(network), (None, 0))
    return lambda: sum(g.flatten(1) @ g.flatten(1).T for g in gradients(parameters, inputs)).numpy()


def neural_tangents(x: np.ndarray, weights: list[np.ndarray]) -> Ntk:
    """Structured derivatives, jitted; weights stored (in, out)."""
    import jax

    jax.config.update("jax_enable_x64", x.dtype == np.float64)
    import neural_tangents as nt

    factor = scale(weights)

    def network(parameters: list, inputs: jax.Array) -> jax.Array:
        for w in parameters[:-1]:
            inputs = factor * jax.nn.relu(inputs @ w)
        return inputs @ parameters[-1]

    ntk = nt.empirical_ntk_fn(
        network,
        trace_axes=(-1,),
        vmap_axes=0,
        implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES,
    )
    kernel = jax.jit(lambda inputs, parameters: ntk(inputs, None, parameters))
    inputs, parameters = jax.device_put(x), [jax.device_put(w.T.copy()) for w in weights]
    return lambda: np.asarray(kernel(inputs, parameters).block_until_ready())


def threads() -> int:
    return len(os.sched_getaffinity(0))


def memory(key: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at their peak (Linux)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{key}:")[1].split()[0])


def main(name: str, inputs: str, folder: str) -> None:
    with np.load(inputs) as file:
        x, *weights = (file[key] for key in file.files)
    ntk = globals()[name](x, weights)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    print("ready", flush=True)
    kernel, taken = None, None
    for _ in sys.stdin:
        kernel = None  # its memory is free again
        start = time.perf_counter()
        kernel = ntk()
        print(time.perf_counter() - start, flush=True)
        taken = taken or memory("VmHWM") - before
    np.save(Path(folder, f"{name}.npy"), kernel)
    print(taken, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
