"""The machine of a step: its device, its threads, and a check of its memory beforehand."""

import math
import os
from pathlib import Path

import psutil
import torch

from ntkcond.run.errors import UserError
from ntkcond.run.needs import Need
from ntkcond.run.units import size

OWN_GROUP = Path("/proc/self/cgroup")


def require_memory(need: Need, device: torch.device | None = None) -> None:
    """Raises UserError if `need` exceeds the available memory, before any computation."""
    free = available_memory(device)
    if need.bytes > free:
        where = "of GPU memory" if device is not None and device.type == "cuda" else "of memory"
        raise UserError(
            f"{need.what} needs {size(need.bytes)} {where}, {size(free)} are free. {need.hint}"
        )


def resolve_device(name: str) -> torch.device:
    """The device for "auto", "cpu" or "cuda". Raises UserError for cuda without a CUDA GPU."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            f"device: cuda was asked for, but torch {torch.__version__} sees no CUDA GPU here."
            " Set device: auto or device: cpu, or install torch's CUDA build"
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def use_threads(count: int | None) -> None:
    """Limits torch to `count` threads, or to the processors available to this process."""
    torch.set_num_threads(count or len(os.sched_getaffinity(0)))


def available_memory(device: torch.device | None = None) -> int:
    """Bytes available to this process: of the GPU, or of RAM within its control group."""
    if device is not None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _left_in_group())


def _left_in_group(root: Path = Path("/sys/fs/cgroup"), group_file: Path = OWN_GROUP) -> float:
    """Bytes below the limits of this process's control group (v2) and those above it."""
    left = math.inf
    for line in group_file.read_text().splitlines() if group_file.is_file() else ():
        if line.startswith("0::/"):
            group = root / line.removeprefix("0::/")
            while group.is_relative_to(root):
                left = min(left, _below_limit(group))
                group = group.parent
    return left


def _below_limit(group: Path) -> float:
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
        statistics = (group / "memory.stat").read_text().split()
    except OSError:
        return math.inf
    if limit == "max":
        return math.inf
    # cached files count as used, but the kernel drops them for a process that needs memory
    cached = int(statistics[statistics.index("inactive_file") + 1])
    return int(limit) - used + cached
