"""NumPy's arrays on a CPU, torch's tensors elsewhere: the array API, and what it lacks.

On a CPU, NumPy multiplies by OpenBLAS and starts in a tenth of torch's time. Code that computes is
written once, with `xp(array)` for functions and the methods and operators that both kinds share.
The Snakefile reads activations at every start: no import of numpy or torch before they are used.
"""

import os
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import torch

    Array: TypeAlias = np.ndarray | torch.Tensor
    Device: TypeAlias = str | torch.device
else:
    Array = Device = object


def is_numpy(array: Array) -> bool:
    """Whether it is NumPy's; else it is torch's."""
    return type(array).__module__ == "numpy"


def on_cpu(array: Array) -> bool:
    """Whether it is in the host's memory, of either kind."""
    return str(array.device) == "cpu"


def xp(array: Array) -> ModuleType:
    """The functions of the array API for arrays of this kind (data-apis.org/array-api): NumPy
    itself, or torch's by the same names."""
    if is_numpy(array):
        import numpy

        return numpy
    import array_api_compat.torch

    return array_api_compat.torch


def special(array: Array) -> ModuleType:
    """erf, ndtr, expit and others, by the names that scipy.special and torch.special share."""
    if is_numpy(array):
        import scipy.special

        return scipy.special
    import torch

    return torch.special


def put(array: "np.ndarray", device: Device) -> Array:
    """A NumPy array for a device: itself for "cpu", else a tensor there (on the CPU, too, for
    torch.device("cpu"), so that tests run a GPU's code without one)."""
    if device == "cpu":  # unlike torch.device("cpu")
        return array
    import torch

    return torch.from_numpy(array).to(device)


def to_numpy(array: Array) -> "np.ndarray":
    """On the host, copied only if it is elsewhere."""
    return array if is_numpy(array) else array.cpu().numpy()


def thread_count() -> int:
    """Threads for what NumPy computes on one: as many as its libraries have."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # "4,2": of nested regions too
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1


def add_product(total: Array, a: Array, b: Array) -> None:
    """total += a b, elementwise and in place. Overwrites a."""
    if is_numpy(total):
        a *= b
        total += a
    else:
        total.addcmul_(a, b)


def triangular_factor(matrix: Array) -> Array:
    """R of a QR decomposition, without Q."""
    if is_numpy(matrix):
        return xp(matrix).linalg.qr(matrix, mode="r")
    import torch

    return torch.linalg.qr(matrix, mode="r").R


def float32_is_exact(array: Array) -> bool:
    """Whether products of float32 are; torch may be set to less (TF32, bfloat16)."""
    if is_numpy(array):
        return True
    import torch

    return torch.get_float32_matmul_precision() == "highest"
