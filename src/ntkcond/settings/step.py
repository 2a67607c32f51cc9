"""What a computing step says of itself to the rules, and what one of its jobs requests."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ntkcond.run.need import Need
from ntkcond.settings.memory import CUDA, MARGIN, SNAKEMAKE, UNKNOWN_MEGABYTES

if TYPE_CHECKING:
    from ntkcond.settings.fields import Config, Engine, Experiment, Network, Training

SMALL = 4096  # samples: up to so many a job has one thread, so that several run side by side
CLUSTER_THREADS = 8  # most nodes have as many cores, and soon have them free


@dataclass(frozen=True)
class DataSet:
    """A data set of a config, with what applies to it.

    settings: of its file. samples, features: None if the config does not determine them. shape: of
    a sample, channels first; empty if they are no images. other: a data set of the same config."""

    config: Config
    settings: Mapping[str, Any]
    experiment: Experiment
    engine: Engine
    training: Training
    network: Network
    samples: int | None
    test_samples: int
    features: int | None
    shape: Sequence[int]
    other: Callable[[str], DataSet]

    @property
    def block(self) -> int | None:
        """Samples of an NTK."""
        block = self.experiment.block
        return block if isinstance(block, int) else self.samples


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a computing step says of itself: what of these names `ntkcond/steps/NAME.py` has.
    Functions get the data set and, but for `serves` to `chosen`, the job's other wildcards.

    settings: options that determine the output, by the names of the command line. serves: whether
    it has jobs for a data set. files: the user's own, by option; folder: one below data_dir whose
    state counts; chosen: modules that it picks by its settings. jobs: wildcards of the jobs that an
    artefact takes for a data set; the option in its SPEC may choose which, as in sweep/width.
    lists: for each such choice the figure whose data sets these are; else the artefact's own.
    need: memory, of sizes that are its parameters (`Request`); sizes: those that settings do not
    say. largest: samples that a job computes with at once; side_by_side: how many jobs share a
    machine. mpi: whether it starts ranks; gpu: whether it can use one."""

    settings: Callable[..., dict]
    serves: Callable[[DataSet], bool] = lambda data: True
    folder: Callable[[DataSet], str] | None = None
    chosen: Callable[[DataSet], tuple[str, ...]] = lambda data: ()
    files: Callable[..., dict[str, str]] = lambda data, **wildcards: {}
    jobs: Callable[[DataSet, str], Iterable[dict[str, str]]] | None = None
    lists: Mapping[str, str] = field(default_factory=dict)
    sizes: Callable[..., dict] = lambda data, **wildcards: {}
    need: Callable[..., Need] | None = None
    largest: Callable[..., int | None] = lambda data, **wildcards: data.samples
    side_by_side: Callable[[DataSet], int] | None = None
    mpi: bool = False
    gpu: bool = True

    @property
    def named_by(self) -> set[str]:
        """The wildcards of its rule, without the data set."""
        return set(inspect.signature(self.settings).parameters) - {"data"}


def network_settings(data: DataSet, network: str, depth: str) -> dict:
    """The settings of a network, and its seeds."""
    seeds = data.experiment.seeds
    return {"activation": network, "depth": int(depth), "seeds": seeds, **vars(data.network)}


def networks(data: DataSet, which: str) -> Iterator[dict[str, str]]:
    """Jobs for all activations and depths."""
    for network in data.config.activations:
        yield from ({"network": network, "depth": str(depth)} for depth in data.experiment.depths)


def block(data: DataSet, **wildcards: str) -> int | None:
    """The largest NTK, in samples."""
    return data.block


@dataclass(frozen=True)
class Request:
    """What a job requests, by the config alone. wildcards: without the data set."""

    step: Step
    data: DataSet
    wildcards: Mapping[str, str]

    @property
    def ranks(self) -> int:
        """MPI ranks; 0 of a job without."""
        return self.data.engine.ranks if self.step.mpi else 0

    def memory(self) -> int | None:
        """Bytes of the host, with those of CUDA; None if the config does not determine the samples
        or features."""
        need = self.need()
        return need and need.bytes + CUDA * (self.step.gpu and self.data.config.device == "cuda")

    def megabytes(self, attempt: int, among: int = 1) -> int:
        """`mem_mb`, doubled at each further attempt; of each of so many ranks."""
        need = self.memory()
        need = need and need // among
        known = UNKNOWN_MEGABYTES if need is None else math.ceil((MARGIN * need + SNAKEMAKE) / 1e6)
        return known * 2 ** (attempt - 1)

    def threads(self, cores: int | None) -> int:
        """Threads of one job, which leaves some for others; of MPI ranks all together here, of each
        elsewhere. cores: of this machine; None if jobs run on others."""
        if self.ranks:
            return self.ranks if cores else 1
        if cores and self.step.side_by_side:
            return max(1, cores // self.step.side_by_side(self.data))
        largest = self.step.largest(self.data, **self.wildcards)
        return 1 if largest is not None and largest <= SMALL else cores or CLUSTER_THREADS

    def need(self) -> Need | None:
        """The step's `need` at those sizes of the job that are its parameters; lists by their
        length."""
        data, function = self.data, self.step.need
        if data.samples is None or data.features is None or function is None:
            return None
        settings = self.step.settings(data, **self.wildcards)
        depths = settings.get("depths", [settings.get("depth", 0)])
        sizes = {
            **{key: len(v) if isinstance(v, list) else v for key, v in settings.items()},
            "depth": max(depths),
            "linear": settings.get("activation") == "linear" or settings.get("depth") == 0,
            "block": data.block,
            "samples": data.samples,
            "test_samples": data.test_samples,
            "features": data.features,
            "ranks": data.engine.ranks,
            **self.step.sizes(data, **self.wildcards),
        }
        taken = inspect.signature(function).parameters
        return function(**{name: sizes[name] for name in taken if name in sizes})
