"""What steps that train have in common: the task, repeatable products, lists of numbers."""

import os
from argparse import ArgumentTypeError
from pathlib import Path

import torch

from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.training import sgd
from ntkcond.training.sgd import Task


def make_repeatable(tf32: bool) -> None:
    """The same bits again on the same device, and the precision that was asked for."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS's manual, reproducibility
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.set_flush_denormal(True)  # of samples classified beyond doubt; slow on a CPU, and 0


def read(path: Path, figure: str, first: int | None = None) -> Task:
    """The task of all samples, or of the first so many of the training split. Raises UserError when
    the data set has nothing to learn, with the figure that it is for."""
    names = ("x", "y") if first else ("x", "y", "x_test", "y_test")
    with read_hdf5(path) as file:
        arrays = [file[name][:first] if name in file else None for name in names]
    try:
        return sgd.classification(*arrays)
    except UserError as error:
        raise UserError(
            f"{path.stem}: {error}; or take {path.stem} out of figures.{figure}"
        ) from None


def numbers(text: str) -> list[float]:
    """A list of numbers above 0: 0.5,1,2."""
    values = [float(word) for word in text.split(",")]
    if not all(0 < number < float("inf") for number in values):
        raise ArgumentTypeError(f"{text} has one that is not above 0")
    return values
