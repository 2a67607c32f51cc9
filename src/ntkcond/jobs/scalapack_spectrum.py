"""The same spectra by MPI ranks, without kernel files: of data sets with `engine: scalapack`."""

import math

from ntkcond.jobs import costs, kernel, spectrum
from ntkcond.jobs.costs import FLOAT32, FLOAT64, INTERPRETER, Work
from ntkcond.jobs.spectrum import LANCZOS, LARGEST
from ntkcond.jobs.step import DataSet
from ntkcond.run.errors import UserError
from ntkcond.run.need import Need

path, spot_check = spectrum.path, spectrum.spot_check
unrecorded, mpi = (), True

TILE = 128  # of `ntkcond.arrays.block_cyclic`
RANK = 100_000_000  # more of a rank than of INTERPRETER: MPI, ScaLAPACK and their buffers
INDEX_LIMIT = 2**31 - 1  # entries of a rank: ScaLAPACK counts them in 32 bits
CHOLESKY = 0.46  # operations over n³, over ranks of one machine (docs/measured/ranks.csv)


def serves(data: DataSet) -> bool:
    return data.engine.engine == "scalapack"


def settings(data: DataSet, network: str, depth: str) -> dict:
    return {**spectrum.settings(data, network, depth), "block": data.experiment.block}


def grid(ranks: int) -> tuple[int, int]:
    """Rows and columns of so many MPI ranks, as square as they can be."""
    rows = max(row for row in range(1, math.isqrt(ranks) + 1) if ranks % row == 0)
    return rows, ranks // rows


def entries_of_rank(block: int, ranks: int) -> int:
    """Entries of an NTK that a rank has at most."""
    rows, columns = grid(ranks)
    return _share(block, rows) * _share(block, columns)


def least_ranks(block: int, ranks: int = 1) -> int:
    """How many ScaLAPACK needs, from so many on. A larger prime may not do: all are in one row."""
    ranks = max(ranks, block**2 // INDEX_LIMIT)
    while entries_of_rank(block, ranks) > INDEX_LIMIT:
        ranks += 1
    return ranks


def require_ranks(ranks: int, block: int) -> None:
    """Raises UserError if one would have more than ScaLAPACK can count; it names enough ranks."""
    if entries_of_rank(block, ranks) > INDEX_LIMIT:
        raise UserError(
            f"ranks: {ranks} {'is' if ranks == 1 else 'are'} too few for an NTK of {block} samples."
            " ScaLAPACK numbers the entries of a rank by 32 bits. Set ranks to"
            f" {least_ranks(block, ranks + 1)}"
        )


def need(
    block: int, features: int, depth: int, width: int, ranks: int, linear: bool = False
) -> Need:
    """All ranks together: on each its entries, and the factors of their rows and columns; on
    rank 0 Lanczos' vectors, a linear network's samples, and before, all of them for comparison."""
    rows, columns = (_share(block, count) for count in grid(ranks))
    hidden = 0 if linear else depth
    factors = sum(costs.factors_bytes(n, features, hidden, width) for n in (rows, columns))
    share = math.ceil(block / ranks)
    errors = costs.factors_bytes(share, features, hidden, width)
    errors += costs.errors_bytes(share, features, depth, width)
    factors = max(factors, errors)
    started = ranks * (INTERPRETER + RANK)
    leading = 30 * FLOAT64 * block + (4 * FLOAT64 * block * features if linear else 0)
    computing = ranks * (FLOAT64 * rows * columns + factors) + leading
    comparing = 5 * FLOAT64 * block * features
    what = f"the spectrum of an NTK of {block} samples on {ranks} ranks"
    hint = "Lower block in the config, or use more machines"
    return Need(what, started + max(computing, comparing), hint)


def _share(n: int, among: int) -> int:
    """How many of n rows or columns the first of so many has, which has most."""
    tiles, rest = divmod(n, TILE)
    left, extra = divmod(tiles, among)
    return left * TILE + (TILE if extra else rest)


def work(
    block: int, samples: int, features: int, depth: int, width: int, seeds: int, ranks: int,
    linear: bool = False, prove_smallest: bool = False,
) -> Work:  # fmt: skip
    """Each sample is read and passes the network on all ranks of one row and of one column."""
    blocks, singular = samples // block, linear and block > features
    computing = kernel.operations(block, features, 0 if linear else depth, width)
    times = sum(grid(ranks))
    computing += times * block * costs.propagation(features, depth, width)
    per_kernel = computing + LARGEST * block**2
    if not singular:
        per_kernel += CHOLESKY * block**3 + (LANCZOS - LARGEST) * block**2
        if prove_smallest:
            per_kernel += computing + CHOLESKY * block**3
    if linear:  # by rank 0 alone
        per_kernel += ranks * 4 * block * features * min(block, features)
    return Work(seeds * blocks * per_kernel, (2 + seeds * times) * FLOAT32 * samples * features)
