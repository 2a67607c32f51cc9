"""The same spectra by MPI ranks, which make each NTK themselves: config `engine: scalapack`.

Each rank computes its tiles of K from the factors of its samples, so K is neither written nor
moved. Rank 0 leads: Lanczos, the bound, the verdict and the file are those of `spectrum`.
"""

import functools
import math
from argparse import Namespace
from operator import attrgetter
from typing import Any

import h5py
import numpy as np

from ntkcond.arrays.block_cyclic import BlockCyclic, Grid, LocalTiles
from ntkcond.datasets.blocks import blocks_of
from ntkcond.ntk.eigenvalues import Spectrum
from ntkcond.ntk.empirical import ntk_between, ntk_product, require_finite
from ntkcond.ntk.rounding import KernelError, gradients_with_error
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5
from ntkcond.run.need import Need
from ntkcond.run.progress import log, progress, timed
from ntkcond.run.ranks import SET_UP, joined, require_memory_of, start
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT64, INTERPRETER, errors_bytes, factors_bytes
from ntkcond.settings.step import DataSet
from ntkcond.steps import network_options, spectra
from ntkcond.steps import spectrum as local

mpi, gpu = True, False

TILE = 128  # of `ntkcond.arrays.block_cyclic`
RANK = 100_000_000  # more of a rank than of INTERPRETER: MPI, ScaLAPACK and their buffers
INDEX_LIMIT = 2**31 - 1  # entries of a rank: ScaLAPACK counts them in 32 bits


def serves(data: DataSet) -> bool:
    return data.engine.engine == "scalapack"


def settings(data: DataSet, network: str, depth: str) -> dict:
    return local.settings(data, network, depth)


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
    factors = sum(factors_bytes(n, features, hidden, width) for n in (rows, columns))
    share = math.ceil(block / ranks)
    errors = factors_bytes(share, features, hidden, width)
    errors += errors_bytes(features, depth, width)
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


class Job:
    """One rank's part of the work. What rank 0 calls by `together`, all ranks do."""

    def __init__(self, a: Namespace, comm: Any, x: h5py.Dataset) -> None:
        self.a, self.comm, self.x = a, comm, x
        self.network = network_options.network(a)
        samples, features = x.shape
        self.n, self.blocks = blocks_of(samples, a.block, a.dataset.stem)
        require_ranks(comm.size, self.n)
        sizes = self.n, features, self.network.depth, self.network.width
        require_memory_of(need(*sizes, comm.size, self.network.is_linear), comm)
        try:
            self.grid = Grid(comm, *grid(comm.size))
        except (OSError, AttributeError) as error:  # the last of a library without all of it
            why = " ".join(str(error).split())
            raise UserError(f"engine: scalapack finds no ScaLAPACK. {why}. {SET_UP}") from None
        self.tiles: LocalTiles | None = None

    def together(self, name: str, *arguments: object) -> Any:
        """name: of a method, such as residual or tiles.product."""
        self.comm.bcast((name, arguments))
        return attrgetter(name)(self)(*arguments)

    def follow(self) -> None:
        """Does what rank 0 calls, until it is done."""
        while call := self.comm.bcast(None):
            name, arguments = call
            attrgetter(name)(self)(*arguments)

    def make(self, seed: int, block: int) -> int:
        """The tiles of a kernel, and how many roundings their sums have."""
        self.tiles = None  # the memory of those before
        self.tiles = tiles = LocalTiles(self.grid, self.n)
        gradients = self.network.initial_gradients(seed, self.x.shape[1])
        rows, columns = (gradients(self._samples(block, i)) for i in (tiles.rows, tiles.columns))
        for panel, below, part in tiles.panels():
            ntk_between([f.rows(part) for f in columns], [f.rows(below) for f in rows], panel)
            require_finite(panel, self.a.dataset.stem, self.a.depth)
        return tiles.roundings()

    def error(self, seed: int, block: int) -> KernelError:
        """What is known of the error of that kernel, each rank with a share of the samples."""
        share = np.array_split(np.arange(self.n), self.comm.size)[self.comm.rank]
        weights = self.network.initial_weights(seed, self.x.shape[1])
        share_error = None
        if len(share):  # there may be more ranks than samples
            _, share_error = gradients_with_error(self.network, weights)(
                self._samples(block, share)
            )
        parts = [part for part in self.comm.allgather(share_error) if part is not None]
        return functools.reduce(KernelError.joined, parts)

    def residual(self, seed: int, block: int, value: float, vector: np.ndarray) -> float:
        """‖K v − λ v‖, each rank with a share of the samples."""
        self.tiles = None
        share = np.array_split(np.arange(self.n), self.comm.size)[self.comm.rank]
        gradients = self.network.initial_gradients(seed, self.x.shape[1])
        x, v = self._samples(block, share), vector[share]
        product = ntk_product(gradients, x, v, joined=self.comm.allreduce)
        return float(np.sqrt(self.comm.allreduce(float(((product - value * v) ** 2).sum()))))

    def _samples(self, block: int, indices: np.ndarray) -> np.ndarray:
        """Samples of a block, float64, by runs of neighbours."""
        runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
        first = block * self.n
        parts = [self.x[first + run[0] : first + run[-1] + 1] for run in runs if len(run)]
        return np.concatenate([self.x[:0], *parts]).astype(np.float64)

    def lead(self) -> None:
        """On rank 0."""
        a, n = self.a, self.n

        def kernel(s: int, b: int) -> tuple[BlockCyclic, KernelError]:
            with timed("tiles of the kernel"):
                error = self.together("error", a.seeds[s], b)
                roundings = self.together("make", a.seeds[s], b)
            tiles = BlockCyclic(n, roundings, lambda name, *v: self.together(f"tiles.{name}", *v))
            return tiles, error

        def residual(s: int, b: int, spectrum: Spectrum) -> float:
            vector = spectrum.extremes.vector
            with timed("residual of the eigenvector"):
                norm = self.together("residual", a.seeds[s], b, spectrum.lambda_min, vector)
            if norm > 3 * spectrum.error:
                raise UserError(
                    f"the eigenvector of {a.dataset.stem} has a residual of {norm:.3g}, above the"
                    f" bound: this MPI or ScaLAPACK computes wrongly. Set engine: local"
                )
            return norm

        def samples(b: int) -> np.ndarray:
            return self.x[b * n : (b + 1) * n]

        shape = self.blocks, self.x.shape[1]
        records = spectra.records(a, self.network, shape, samples, "cpu", kernel, residual)
        label = f"spectrum {a.dataset.stem} {a.activation} L={a.depth}, {self.comm.size} ranks"
        records = list(progress(records, len(a.seeds) * self.blocks, label))
        self.comm.bcast(None)
        spectra.write(a, records, n, *self.x.shape, rank_grid=grid(self.comm.size))


def main(arguments: Namespace) -> None:
    """Writes what `spectrum` does, but for small kernels, which here count as large ones."""
    a = arguments
    if not a.as_rank:
        with read_hdf5(a.dataset):  # compares it with its checksum, once for all ranks
            pass
        start(a.mpi, a.ranks, a.threads or a.ranks, a.record)
        return
    comm, a.record = joined(a.ranks, a.threads)
    with h5py.File(a.dataset, locking=False) as file:
        job = Job(a, comm, file["x"])
        if comm.rank:
            job.follow()
        else:
            job.lead()
    peaks = comm.gather(command.peak_memory_mb())
    if peaks:
        log.info("peak memory of a rank: %.0f to %.0f MB", min(peaks), max(peaks))


OPTIONS = network_options.parser(__doc__, without=["device"])
OPTIONS.add_settings("block")
OPTIONS.add_settings("prove_smallest", optional=True)
OPTIONS.add_unrecorded("--ranks", type=int, required=True, help="MPI's")
OPTIONS.add_unrecorded("--mpi", default="mpirun", help="starts them: mpirun, srun …")
OPTIONS.add_unrecorded("--as-rank", action="store_true", help="as one of them")

if __name__ == "__main__":
    command.run(main, OPTIONS)
