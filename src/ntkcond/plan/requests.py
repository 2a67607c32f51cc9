"""What each job requests: threads, memory and time, from the sizes in the config alone."""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.architectures import seen_as
from ntkcond.plan import cluster, config
from ntkcond.plan.cluster import Work
from ntkcond.run import needs
from ntkcond.run.needs import Need

T = TypeVar("T")
NEEDS: dict[str, Callable[..., Need]] = {
    "kernel": needs.kernel_need,
    "spectrum": needs.spectrum_need,
    "scalapack_spectrum": needs.ranks_need,
    "closest_pair": needs.angle_need,
    "sweep": needs.sweep_need,
    "architecture": needs.architecture_need,
    "descent": needs.descent_need,
    "speed": needs.speed_need,
    "sgd": needs.train_need,
}
WORK: dict[str, Callable[..., Work]] = {
    "dataset": cluster.dataset_work,
    "kernel": cluster.kernel_work,
    "spectrum": cluster.spectrum_work,
    "scalapack_spectrum": cluster.ranks_work,
    "closest_pair": cluster.angle_work,
    "sweep": cluster.sweep_work,
    "architecture": cluster.architecture_work,
    "descent": cluster.descent_work,
    "speed": cluster.speed_work,
    "sgd": cluster.train_work,
}
SMALL = 4096  # samples: up to so many a job has one thread, so that several run side by side
CLUSTER_THREADS = 8  # most nodes have as many cores, and soon have them free


def need(settings: dict, rule: str, wildcards: Mapping[str, str]) -> Need | None:
    """Memory of a job; None if the config does not determine its samples and features."""
    return _at_sizes(NEEDS[rule], settings, rule, wildcards)


def work(settings: dict, rule: str, wildcards: Mapping[str, str]) -> Work | None:
    """What a job computes, reads and writes; None as in `need`."""
    return _at_sizes(WORK[rule], settings, rule, wildcards)


def ranks(settings: dict, rule: str, wildcards: Mapping[str, str]) -> int:
    """MPI ranks of a job; 0 of one without."""
    mpi = rule == "scalapack_spectrum"
    return config.engine(settings, wildcards["dataset"])["ranks"] if mpi else 0


def memory(settings: dict, rule: str, wildcards: Mapping[str, str]) -> int | None:
    """Bytes of a job; None as in `need`."""
    if rule == "dataset":
        return _at_sizes(cluster.dataset_need, settings, rule, wildcards)
    found = need(settings, rule, wildcards)
    cuda = settings["device"] == "cuda" and not ranks(settings, rule, wildcards)
    return found and found.bytes + (needs.CUDA if cuda else 0)


def file_bytes(settings: dict, rule: str, wildcards: Mapping[str, str]) -> int:
    """Size of a job's file: of samples and kernels; others are small, and count as 0."""
    sizes = _sizes(settings, rule, wildcards)
    if sizes and rule == "kernel":
        n = sizes["block"]
        return needs.kernel_file_bytes(sizes["seeds"], sizes["samples"] // n, n)
    if sizes and rule == "dataset":
        return needs.FLOAT32 * (sizes["samples"] + sizes["test_samples"]) * sizes["features"]
    return 0


def megabytes(settings: dict, rule: str, wildcards: Mapping[str, str], attempt: int) -> int:
    """`mem_mb` of a job."""
    return cluster.megabytes(memory(settings, rule, wildcards), attempt)


def megabytes_a_rank(settings: dict, rule: str, wildcards: Mapping[str, str], attempt: int) -> int:
    """`mem_mb_per_cpu` of MPI ranks; 0 of a job without."""
    count, bytes_ = ranks(settings, rule, wildcards), memory(settings, rule, wildcards)
    return cluster.megabytes(bytes_ and bytes_ // count, attempt) if count else 0


def minutes(
    settings: dict, rule: str, wildcards: Mapping[str, str], cores: float, attempt: int
) -> int:
    """`runtime` of a job."""
    return cluster.minutes(work(settings, rule, wildcards), cores, attempt)


def threads(settings: dict, rule: str, wildcards: Mapping[str, str], cores: int | None) -> int:
    """Threads that serve one job and leave some for others; of MPI ranks all together here, of each
    elsewhere. cores: of this machine; None if jobs run on others."""
    most = cores or CLUSTER_THREADS
    name = wildcards["dataset"]
    if count := ranks(settings, rule, wildcards):
        return count if cores else 1
    if rule == "dataset":  # audio is decoded by as many as the machine has
        source = config.dataset_settings(settings, name)["source"]
        return most if SOURCES[source].corpus else 1
    if rule == "corpus":
        return 1
    if rule == "sgd" and cores:
        runs = [config.training(settings, name) for name in settings["figures"]["fig3"]]
        return max(1, cores // sum(len(run["depths"]) for run in runs))
    samples = config.sample_count(settings, name)
    if rule in ("kernel", "spectrum"):
        block = config.experiment(settings, name)["block"]
        samples = samples if block == "all" else block
    elif rule == "sweep":
        sweep = config.sweep(settings, wildcards["sweep"], name, wildcards["network"])
        sizes = [samples if n == "all" else n for n in sweep["sizes"]]
        samples = None if None in sizes else max(n or 0 for n in sizes)
    return 1 if samples is not None and samples <= SMALL else most


def _at_sizes(
    function: Callable[..., T], settings: dict, rule: str, wildcards: Mapping[str, str]
) -> T | None:
    """The function at those sizes of a job that are its parameters."""
    sizes = _sizes(settings, rule, wildcards)
    if sizes is None:
        return None
    taken = inspect.signature(function).parameters
    return function(**{name: sizes[name] for name in taken if name in sizes})


def _sizes(settings: dict, rule: str, wildcards: Mapping[str, str]) -> dict | None:
    name = wildcards["dataset"]
    samples = config.sample_count(settings, name)
    features = config.feature_count(settings, name)
    if samples is None or features is None:
        return None
    source = config.dataset_settings(settings, name)["source"]
    experiment = config.experiment(settings, name)
    sizes = {
        "available": SOURCES[source].samples or samples,
        "block": samples if experiment["block"] == "all" else experiment["block"],
        "samples": samples,
        "test_samples": config.test_sample_count(settings, name),
        "features": features,
        "hours": config.audio_hours(settings, name),
        "depth": int(wildcards.get("depth", 0)),
        "linear": wildcards.get("network") == "linear" or wildcards.get("depth") == "0",
        "width": experiment["width"],
        "prove_smallest": experiment["prove_smallest"],
        "ranks": config.engine(settings, name)["ranks"],
        "seeds": len(experiment["seeds"]),
    }
    if rule == "sgd":
        run = config.training(settings, name)
        sizes |= {key: run[key] for key in ("width", "batch", "epochs")}
        sizes["runs"] = len(run["seeds"]) * len(run["learning_rates"])
    elif rule == "architecture":  # at its deepest
        run, image = config.architecture(settings, name), config.shape(settings, name)
        channels, pixels = seen_as(wildcards["architecture"], image, features)
        sizes |= {"depths": run["depths"], "depth": max(run["depths"]), "width": run["width"]}
        sizes |= {"seeds": len(run["seeds"]), "activations": len(run["activations"])}
        sizes |= {"blocks": run["blocks"], "features": channels, "pixels": pixels}
    elif rule == "descent":
        run = config.descent(settings, name, int(wildcards["width"]))
        sizes |= {"depth": max(run["depths"]), "width": run["width"], "steps": run["steps"]}
        sizes["runs"] = len(run["rules"]) * len(run["depths"]) * len(run["seeds"])
    elif rule == "speed":
        run = config.speed(settings, name, wildcards["loss"], int(wildcards["width"]))
        trained = samples if run["samples"] == "all" else min(samples, run["samples"])
        seeds = len(run["seeds"])
        sizes |= {key: run[key] for key in ("depths", "width", "batch", "epochs")}
        sizes |= {"depth": max(run["depths"]), "samples": trained, "seeds": seeds}
        sizes |= {"block": min(sizes["block"], trained), "activations": len(run["activations"])}
        sizes["runs"] = seeds * len(run["learning_rates"])
    elif rule == "sweep":  # at its largest
        sweep = config.sweep(settings, wildcards["sweep"], name, wildcards["network"])
        sizes |= {
            "block": max(samples if n == "all" else n for n in sweep["sizes"]),
            "blocks": None if sweep["blocks"] == "all" else sweep["blocks"],
            "depth": max(sweep["depths"]),
            "width": max([width for width in sweep["widths"] if width != "inf"], default=1),
            "infinite": all(width == "inf" for width in sweep["widths"]),
            "depths": sweep["depths"],
            "seeds": len(sweep["seeds"]),
        }
    return sizes
