"""Memory that a step needs, predicted from its sizes, and the device that it runs on."""

import os
from pathlib import Path

import psutil
import torch

from ntkcond.errors import UserError
from ntkcond.needs import Need, size


def available_memory(device: torch.device | None = None) -> int:
    """Bytes that this process may still take: on the device, or of RAM within its control group."""
    if device is not None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available = psutil.virtual_memory().available
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.is_file() and (text := limit.read_text().strip()).isdigit():
        available = min(available, int(text) - int(used.read_text()))
    return available


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


def use_threads(count: int | None) -> int:
    """Limits torch to `count` threads, or to the processors that this process may use."""
    count = count or len(os.sched_getaffinity(0))
    torch.set_num_threads(count)
    return count
