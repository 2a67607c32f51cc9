"""What is known of the errors of kernels, in their file."""

import h5py
import numpy as np

from ntkcond.ntk.rounding import Bound, KernelError


def write(file: h5py.File, errors: list[KernelError], shape: tuple[int, int]) -> None:
    """What is known of the errors of (seeds, blocks) kernels: `error_{grade}`, (seeds, blocks, 3),
    each entry of `Bound`; `zero_gradients`, (seeds, blocks)."""
    for grade in errors[0].bounds:
        values = np.array([error.bounds[grade] for error in errors], dtype=np.float64)
        file[f"error_{grade}"] = values.reshape(*shape, -1)
    zero = np.array([error.zero_gradients for error in errors])
    file["zero_gradients"] = zero.reshape(shape)


def read(file: h5py.File, s: int, b: int) -> KernelError:
    """The error of one of the kernels."""
    bounds = {
        name.removeprefix("error_"): Bound(*file[name][s, b, :2], int(file[name][s, b, 2]))
        for name in file
        if name.startswith("error_")
    }
    return KernelError(bounds, int(file["zero_gradients"][s, b]))
