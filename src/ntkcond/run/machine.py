"""The machine of a step: its device, its threads, and a check of its memory beforehand.

torch takes 1.5 s to load: only what computes with it loads it, and a look for a GPU does not.
"""

import ctypes
import functools
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

import psutil
import threadpoolctl

from ntkcond.run.errors import UserError
from ntkcond.run.need import Need
from ntkcond.run.units import size

if TYPE_CHECKING:
    import torch

GPU_TILES = 500_000_000  # by how much those of a GPU are larger, with its libraries' workspace
OWN_GROUP = Path("/proc/self/cgroup")
Device: TypeAlias = Union[str, "torch.device"]  # "cpu", where NumPy computes, or torch's


def require_memory(need: Need, device: Device = "cpu") -> None:
    """Raises UserError if `need` exceeds the available memory, before any computation."""
    free, needed, where = available_memory(device), need.bytes, "of memory"
    if _is_gpu(device):
        needed, where = needed + GPU_TILES, "of GPU memory"
    if needed > free:
        raise UserError(
            f"{need.what} needs {size(needed)} {where}, {size(free)} are free. {need.hint}"
        )


def resolve_device(name: str) -> Device:
    """The device for "auto", "cpu" or "cuda". Raises UserError for cuda without a CUDA GPU."""
    if name == "cpu" or (name == "auto" and not has_gpu()):
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    if name == "auto":
        return "cpu"
    raise UserError(
        f"device: cuda was asked for, but torch {torch.__version__} sees no CUDA GPU here."
        " Set device: auto or device: cpu, or install torch's CUDA build"
    )


@functools.cache
def has_gpu() -> bool:
    """Whether NVIDIA's driver has a GPU for this process (CUDA Driver API, cuDeviceGetCount)."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return not failed and count.value > 0


def _is_gpu(device: Device) -> bool:
    return getattr(device, "type", device) == "cuda"


def use_threads(count: int | None) -> None:
    """Limits NumPy, SciPy and, if it is loaded, torch to `count` threads, or to the processors
    available to this process."""
    count = count or len(os.sched_getaffinity(0))
    for name in ("OPENBLAS", "MKL", "OMP"):  # libraries that are loaded later read these
        os.environ[f"{name}_NUM_THREADS"] = str(count)
    threadpoolctl.threadpool_limits(count)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def available_memory(device: Device = "cpu") -> int:
    """Bytes available to this process: of the GPU, or of RAM within its control group."""
    if _is_gpu(device):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _left_in_group())


def _left_in_group(root: Path = Path("/sys/fs/cgroup"), group_file: Path = OWN_GROUP) -> float:
    """Bytes below the limits of this process's control group, of version 2 or 1, and those above
    it."""
    left = math.inf
    for line in group_file.read_text().splitlines() if group_file.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, files = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            top, files = root / "memory", names
        else:
            continue
        group = top / path.strip("/")
        while group.is_relative_to(top):
            left = min(left, _below_limit(group, *files))
            group = group.parent
    return left


def _below_limit(group: Path, limit_file: str, used_file: str, cached_name: str) -> float:
    try:
        limit = (group / limit_file).read_text().strip()
        used = int((group / used_file).read_text())
    except OSError:
        return math.inf
    if limit == "max":
        return math.inf
    # cached files count as used, but the kernel drops them for a process that needs memory
    try:
        statistics = (group / "memory.stat").read_text().split()
        cached = int(statistics[statistics.index(cached_name) + 1])
    except (OSError, ValueError):
        cached = 0
    return int(limit) - used + cached
