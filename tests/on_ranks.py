"""What MPI ranks compute of planted matrices, for tests/arrays/test_block_cyclic.py:

mpirun -n 4 python -m mpi4py tests/on_ranks.py FILE    writes it to FILE, an .npz
"""

import sys

import numpy as np

from ntkcond.arrays.block_cyclic import BLOCK, BlockCyclic, Grid, LocalTiles
from ntkcond.ntk.eigenvalues import spectrum
from ntkcond.ntk.rounding import KernelError
from ntkcond.steps.scalapack_spectrum import grid

SIZES = (1, 100, 2 * BLOCK, 4 * BLOCK + 77)
N = 3 * BLOCK + 16
KAPPAS = (1e4, 1e8, 1e12, 1e14, 1e18)


def definite(n: int) -> np.ndarray:
    """Symmetric positive definite, of entries of all sizes."""
    x = np.random.default_rng(n).standard_normal((n, n + 3)) * np.geomspace(1, 1e3, n)[:, None]
    product = x @ x.T
    return (product + product.T) / 2


def conditioned(kappa: float) -> np.ndarray:
    """(N, N), with an eigenvalue 1/κ, and the others from 10/κ to 1, evenly spaced in the log."""
    q = np.linalg.qr(np.random.default_rng(7).standard_normal((N, N)))[0]
    matrix = (q * np.r_[1 / kappa, np.geomspace(10 / kappa, 1, N - 1)]) @ q.T
    return (matrix + matrix.T) / 2


def tiles_of(matrix: np.ndarray, layout: Grid) -> LocalTiles:
    tiles = LocalTiles(layout, len(matrix))
    for panel, rows, columns in tiles.panels():
        panel[:] = matrix[np.ix_(tiles.columns[columns], tiles.rows[rows])]
    return tiles


def whole(tiles: LocalTiles) -> np.ndarray:
    """What is on and below the diagonal, on every rank."""
    matrix = np.zeros((tiles.n, tiles.n))
    matrix[np.ix_(tiles.rows, tiles.columns)] = tiles.entries
    return np.tril(tiles.grid.comm.allreduce(matrix))


def algebra(layout: Grid, n: int) -> dict:
    """Products, factor, solve of a definite matrix, and whether an indefinite one has a factor."""
    matrix = definite(n)
    v = np.random.default_rng(0).standard_normal(n)
    tiles = tiles_of(matrix, layout)
    results = {"matrix": whole(tiles), "product": tiles.product(v), "diagonal": tiles.diagonal()}
    results |= {"factorised": tiles.factorise(), "factor": whole(tiles), "solved": tiles.solve(v)}
    matrix[n // 2, n // 2] = -1.0
    results["indefinite"] = tiles_of(matrix, layout).factorise()
    return {**results, "v": v, "roundings": tiles.roundings()}


def record(layout: Grid, kappa: float) -> dict:
    """Of a matrix, as a step asks for it: rank 0 leads."""
    comm, tiles = layout.comm, tiles_of(conditioned(kappa), layout)
    roundings = tiles.roundings()

    def together(name: str, *arguments: object):
        comm.bcast((name, arguments))
        return getattr(tiles, name)(*arguments)

    if comm.rank == 0:
        matrix = BlockCyclic(N, roundings, together)
        values = spectrum(matrix, KernelError.of_matrix(0.0), rank_bound=N).record
        comm.bcast(None)
        return values
    while call := comm.bcast(None):
        getattr(tiles, call[0])(*call[1])
    return {}


def adds_one_by_one(layout: Grid, name: str) -> int:
    """The roundings with a library whose routine adds terms one by one: on rank 0 they are lost."""
    routine = getattr(layout.library, name)

    def plainly(*arguments) -> None:
        routine(*arguments)
        for array in arguments:
            if layout.comm.rank == 0 and isinstance(array, np.ndarray):
                for start in (-(2.0**57), -(2.0**59)):
                    array[abs(array - start) < 1000] = start

    setattr(layout.library, name, plainly)
    vars(layout).pop("sums_apart", None)
    roundings = LocalTiles(layout, N).roundings()
    setattr(layout.library, name, routine)
    vars(layout).pop("sums_apart", None)
    return roundings


def main() -> None:
    from mpi4py import MPI  # which makes of this process a rank, and must not of pytest's

    comm = MPI.COMM_WORLD
    layout = Grid(comm, *grid(comm.size))
    results = {f"n{n}/{name}": value for n in SIZES for name, value in algebra(layout, n).items()}
    for kappa in KAPPAS:
        results |= {f"{kappa:g}/{name}": value for name, value in record(layout, kappa).items()}
    results["sums_apart"] = layout.sums_apart
    results["plain"] = [adds_one_by_one(layout, name) for name in ("pdpotrf", "pdtrsm")]
    if comm.rank == 0:
        np.savez(sys.argv[1], **results)


if __name__ == "__main__":
    main()
