"""Memory that a step needs, predicted from its sizes, and the device that it runs on."""

import os

import torch

from ntkcond.errors import UserError
from ntkcond.memory import available_memory
from ntkcond.needs import Need
from ntkcond.units import size


def require_memory(need: Need, device: torch.device | None = None) -> None:
    """Raises UserError if `need` is more than there is, before anything is computed."""
    free = available_memory(device)
    if need.bytes > free:
        where = "of GPU memory" if device is not None and device.type == "cuda" else "of memory"
        raise UserError(
            f"{need.what} needs {size(need.bytes)} {where}, {size(free)} are free. {need.way_out}"
        )


def resolve_device(name: str) -> torch.device:
    """The device for "auto", "cpu" or "cuda". Raises UserError if CUDA is asked for and absent."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"device: cuda was asked for, but torch {torch.__version__} sees no CUDA GPU here."
            " Set device: auto or device: cpu, or install torch's CUDA build"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def use_threads(count: int | None) -> None:
    """Limits torch to `count` threads, or to the processors that this process may use."""
    torch.set_num_threads(count or len(os.sched_getaffinity(0)))
