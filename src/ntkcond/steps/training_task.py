"""What steps that train have in common: the task, repeatable products."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5

if TYPE_CHECKING:
    from ntkcond.training.sgd import Task


def make_repeatable(tf32: bool) -> None:
    """The same bits again on the same device, and the precision that was asked for."""
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS's manual, reproducibility
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.set_flush_denormal(True)  # of samples classified beyond doubt; slow on a CPU, and 0


def read(path: Path, figure: str, first: int | None = None) -> Task:
    """The task of all samples, or of the first so many of the training split. Raises UserError when
    the data set has nothing to learn, with the figure that it is for."""
    from ntkcond.training import sgd

    names = ("x", "y") if first else ("x", "y", "x_test", "y_test")
    with read_hdf5(path) as file:
        arrays = [file[name][:first] if name in file else None for name in names]
    try:
        return sgd.classification(*arrays)
    except UserError as error:
        raise UserError(
            f"{path.stem}: {error}; or take {path.stem} out of figures.{figure}"
        ) from None
