"""The rate of this machine's matrix products, by NumPy's BLAS and by torch's: the yardstick.

    python benchmarks/product_rate.py               one reading of each

Each library reads in a process of its own: in one, their pools of threads get in each other's way.
"""

import subprocess
import sys
import time
from pathlib import Path

LIBRARIES = ("numpy", "torch")


def measured(library: str, dtype: str, threads: int, n: int = 2048) -> tuple[float, str]:
    """Operations a second in an n × n product, the best of five; what multiplied."""
    import threadpoolctl

    if library == "numpy":
        import numpy

        a, out, product = numpy.ones((n, n), dtype), numpy.empty((n, n), dtype), numpy.matmul
    else:
        import torch

        torch.set_num_threads(threads)
        a, product = torch.ones(n, n, dtype=getattr(torch, dtype)), torch.matmul
        out = torch.empty_like(a)
    b, seconds = 1 * a, []
    with threadpoolctl.threadpool_limits(threads):
        for _ in range(6):
            start = time.perf_counter()
            product(a, b, out=out)
            seconds.append(time.perf_counter() - start)
    return 2 * n**3 / min(seconds[1:]), blas_of(library)


def blas_of(library: str) -> str:
    """The library that multiplies, and for which processor its code is. OPENBLAS_CORETYPE in the
    environment may have chosen another than this machine's."""
    if library == "torch":
        import torch

        return "MKL" if torch.backends.mkl.is_available() else "its own BLAS"
    import threadpoolctl

    (blas,) = (pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
    return f"{blas['internal_api']} {blas['version']}, {blas.get('architecture')}"


def product_rate(dtype: str = "float64", threads: int = 2) -> float:
    """Operations a second, now, of the better library."""
    return max(read(library, dtype, threads)[0] for library in LIBRARIES)


def read(library: str, dtype: str, threads: int) -> tuple[float, str]:
    """`measured` in a process of its own."""
    command = [sys.executable, __file__, library, dtype, str(threads)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, _, name = output.strip().partition(" ")
    return float(rate), name


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measured(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    else:
        print(f"{Path(__file__).stem}, Gflop/s of 2 threads")
        for kind in ("float64", "float32"):
            for name in LIBRARIES:
                rate, blas = read(name, kind, 2)
                print(f"  {kind} {name:6} {rate / 1e9:6.0f}  {blas}")
