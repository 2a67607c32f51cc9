"""Spectra of NTKs from their files: a job for each kernel of a data set with `engine: local`."""

from ntkcond.jobs import kernel
from ntkcond.jobs.costs import BY_HALF_FROM, FLOAT64, INTERPRETER, PANEL, Work, factors_bytes
from ntkcond.jobs.step import DataSet, block, network_settings, networks
from ntkcond.run.need import Need

path = "results/spectra/{dataset}/{network}/depth{depth}.h5"
takes = ("dataset", "kernel")
jobs, largest = networks, block
spot_check = "spectra"

PRODUCT_ROWS = 4096  # samples at once in `ntkcond.ntk.empirical.ntk_product`
# Operations at the rate of a matrix product, as measured (benchmarks/predicted.py): eigenvalues of
# small kernels 5 n³, a Cholesky factor 0.31 n³. Lanczos reads the half of K from memory: for λ_max
# 440 n², with λ_min 2,300 n².
EIGENVALUES, CHOLESKY, LARGEST, LANCZOS = 5, 0.31, 440, 2300


def serves(data: DataSet) -> bool:
    return data.engine.engine == "local"


def settings(data: DataSet, network: str, depth: str) -> dict:
    values = network_settings(data, network, depth)
    return {**values, **({"prove_smallest": True} if data.experiment.prove_smallest else {})}


def solver_bytes(n: int) -> int:
    """A small kernel and two copies; half of a large one, a panel's product, a band, vectors."""
    if n < BY_HALF_FROM:
        return FLOAT64 * 3 * n**2
    return FLOAT64 * (n * (n + PANEL) // 2 + PANEL * n + 4 * PANEL**2 + 30 * n)


def operations(n: int, singular: bool = False) -> float:
    """Eigenvalues of one kernel; of a large singular one the largest."""
    if n < BY_HALF_FROM:
        return EIGENVALUES * n**3
    return LARGEST * n**2 if singular else CHOLESKY * n**3 + LANCZOS * n**2


def need(block: int, samples: int, features: int, depth: int, width: int) -> Need:
    """Eigenvalues of a kernel that is read from its file; then, of a large one, the residual."""
    computing = solver_bytes(block) + FLOAT64 * (samples + block) * features
    if block >= BY_HALF_FROM:
        weights = width * features + depth * width**2
        residual = factors_bytes(min(block, PRODUCT_ROWS), features, depth, width) + 16 * weights
        computing = max(computing, residual + FLOAT64 * (samples + block) * features)
    what = f"the spectrum of an NTK of {block} samples"
    return Need(what, INTERPRETER + computing, "Lower block in the config")


def work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int,
    linear: bool = False, prove_smallest: bool = False,
) -> Work:  # fmt: skip
    """Eigenvalues of every kernel; of linear networks also the factor that replaces K, and the rank
    of the inputs. A linear large kernel of more samples than features is singular, and has no
    Cholesky factor. prove_smallest: large ones are read again for a second."""
    blocks = samples // block
    singular = linear and block > features
    per_kernel, reads = operations(block, singular), 1
    if prove_smallest and block >= BY_HALF_FROM and not singular:
        per_kernel, reads = per_kernel + CHOLESKY * block**3, 2
    factor = 4 * block * features * min(block, features)
    per_seed = 4 * features**3 + 2 * (features + depth * width) * features**2
    return Work(
        seeds * (blocks * (per_kernel + factor) + per_seed) + blocks * factor,
        reads * kernel.file_bytes(block, samples, seeds) + FLOAT64 * samples * features,
    )
