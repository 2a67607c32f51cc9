"""A computing step, as the plan knows it, and what one of its jobs requests.

Steps read it too: the config's types are not loaded."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ntkcond.jobs import costs
from ntkcond.jobs.costs import Work
from ntkcond.run.need import Need

if TYPE_CHECKING:
    from ntkcond.jobs.settings import Config, Engine, Experiment, Network, Training

T = TypeVar("T")
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
    """What `ntkcond.steps.NAME` makes, takes and costs: the names of these that `jobs/NAME.py` has.
    Functions get the data set and, but for `serves` to `chosen`, the job's other wildcards.

    takes: steps whose files it reads, by options of these names, where they serve the data set.
    raw: files below data_dir that it finds by itself; folder: one there whose state counts; chosen:
    modules that it picks by its settings. files: the user's, by option. settings: options that
    determine the output; unrecorded: options that do not. jobs: wildcards of the jobs that an
    artefact takes for a data set; the option in its SPEC may choose which, as in sweep/width.
    lists: for each such choice the figure whose data sets these are; else the artefact's own.
    names: values of wildcards of no other step; those without are numbers. need, work, file_bytes:
    of sizes that are their parameters (`Request`); sizes: those that settings do not say. largest:
    samples that a job computes with at once; side_by_side: how many jobs share a machine.
    gpu_as_cores: how many cores a GPU is as fast as. spot_check: the option of `steps.spot_check`
    by which its result comes into a check; None if no check sees it."""

    path: str
    settings: Callable[..., dict]
    takes: tuple[str, ...] = ("dataset",)
    serves: Callable[[DataSet], bool] = lambda data: True
    raw: Callable[[DataSet], tuple[str, ...]] = lambda data: ()
    folder: Callable[[DataSet], str] | None = None
    chosen: Callable[[DataSet], tuple[str, ...]] = lambda data: ()
    files: Callable[..., dict[str, str]] = lambda data, **wildcards: {}
    unrecorded: tuple[str, ...] = ("device",)
    jobs: Callable[[DataSet, str], Iterable[dict[str, str]]] | None = None
    lists: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Callable[[Config], Iterable[str]]] = field(default_factory=dict)
    sizes: Callable[..., dict] = lambda data, **wildcards: {}
    need: Callable[..., Need] | None = None
    work: Callable[..., Work] | None = None
    file_bytes: Callable[..., int] | None = None
    largest: Callable[..., int | None] = lambda data, **wildcards: data.samples
    side_by_side: Callable[[DataSet], int] | None = None
    mpi: bool = False
    gpu_as_cores: int = 0
    spot_check: str | None = None

    @functools.cached_property
    def wildcards(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)


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
    """What a job requests, by the config alone. None: the config does not determine the samples or
    features. wildcards: without the data set."""

    step: Step
    data: DataSet
    wildcards: Mapping[str, str]

    def need(self) -> Need | None:
        """Memory, in bytes."""
        return self._at_sizes(self.step.need)

    def work(self) -> Work | None:
        """What the job computes, reads and writes."""
        return self._at_sizes(self.step.work)

    @property
    def ranks(self) -> int:
        """MPI ranks; 0 of a job without."""
        return self.data.engine.ranks if self.step.mpi else 0

    def memory(self) -> int | None:
        """Bytes of the host, with those of CUDA."""
        need = self.need()
        cuda = self.data.config.device == "cuda" and "device" in self.step.unrecorded
        return need and need.bytes + (costs.CUDA if cuda else 0)

    def file_bytes(self) -> int:
        """The sizes of samples and kernels; others are small, and count as 0."""
        return self._at_sizes(self.step.file_bytes) or 0

    def megabytes(self, attempt: int, among: int = 1) -> int:
        """`mem_mb`; of each of so many ranks."""
        memory = self.memory()
        return costs.megabytes(memory and memory // among, attempt)

    def minutes(self, cores: float, attempt: int) -> int:
        """`runtime`."""
        return costs.minutes(self.work(), cores, attempt)

    def threads(self, cores: int | None) -> int:
        """Threads of one job, which leaves some for others; of MPI ranks all together here, of each
        elsewhere. cores: of this machine; None if jobs run on others."""
        if self.ranks:
            return self.ranks if cores else 1
        if cores and self.step.side_by_side:
            return max(1, cores // self.step.side_by_side(self.data))
        largest = self.step.largest(self.data, **self.wildcards)
        return 1 if largest is not None and largest <= SMALL else cores or CLUSTER_THREADS

    def _at_sizes(self, function: Callable[..., T] | None) -> T | None:
        """The function at those sizes of the job that are its parameters; lists by their length."""
        data = self.data
        if data.samples is None or data.features is None or function is None:
            return None
        settings = self.step.settings(data, **self.wildcards)
        depths = settings.get("depths", [settings.get("depth", 0)])
        sizes = {
            **{key: len(v) if isinstance(v, list) else v for key, v in settings.items()},
            "depths": depths,
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
