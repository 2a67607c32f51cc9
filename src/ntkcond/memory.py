"""Memory that there is."""

import math
from pathlib import Path

import psutil
import torch

OWN_GROUP = Path("/proc/self/cgroup")


def available_memory(device: torch.device | None = None) -> int:
    """Bytes that this process may still take: of the GPU, or of RAM within its control group."""
    if device is not None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _left_in_group())


def _left_in_group(root: Path = Path("/sys/fs/cgroup"), own: Path = OWN_GROUP) -> float:
    """Bytes below the limits of this process's control group (v2) and those above it."""
    left = math.inf
    if not own.is_file():
        return left
    for line in own.read_text().splitlines():
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
    # files cached in memory count as used, and make way when memory is wanted
    cached = int(statistics[statistics.index("inactive_file") + 1])
    return int(limit) - used + cached
