# The checked config, and what the rules take from it. No rules here.

import functools
import inspect
import json
import os
import re
import shlex
import sys
from pathlib import Path

try:
    from ntkcond import cluster, needs, run_lock
    from ntkcond import config as settings
    from ntkcond.activations import ACTIVATIONS
    from ntkcond.datasets.registry import SOURCES
    from ntkcond.errors import UserError
    from ntkcond.provenance import made_by, made_by_of, remembered_sha256
    from ntkcond.units import size
except ModuleNotFoundError as missing:
    sys.exit(
        f"ntkcond: the Python that runs this Snakemake has no {missing.name}. Run `make figures`,"
        " which sets everything up in .venv, or `pip install -e .` in your own environment"
    )

# Snakemake leaves what is inside a list of --config as text.
settings.read_command_line(config, workflow.config_settings.config)

try:
    settings.check(config, workflow.basedir, scan=not workflow.remote_exec)
except UserError as error:
    sys.exit(f"ntkcond: error in the config: {error}")

if workflow.is_main_process and run_lock.remove_dead_locks(Path(".snakemake")):
    print(
        "ntkcond: the run before was killed; its lock is removed, its work goes on", file=sys.stderr
    )

# The interpreter that runs Snakemake also runs the steps, whatever is first on PATH. They take the
# place of the shell (exec), to be Snakemake's own children, and end with it (ntkcond.command).
PYTHON = f"exec {shlex.quote(sys.executable)}"
os.environ["NTKCOND_SNAKEMAKE"] = str(os.getpid())


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    activation="|".join(ACTIVATIONS),
    sweep="|".join(settings.SWEEPS),
    depth=r"\d+",


def in_project(path):
    """A path of the config: absolute, or relative to where Snakemake runs, also with --directory."""
    found = settings.resolved(path, workflow.basedir)
    return str(found) if os.path.isabs(os.path.expanduser(path)) else os.path.relpath(found)


DATA_DIR = in_project(config["data_dir"])


def raw_file(name):
    return os.path.normpath(os.path.join(DATA_DIR, name))


def raw_files(wildcards):
    """What a data set is read from: the files that a download fetches, the list of those of a
    corpus, or the user's own."""
    of = settings.dataset_settings(config, wildcards.dataset)
    if SOURCES[of["source"]].corpus:
        return CORPUS
    if "file" in of:
        return in_project(of["file"])
    return [raw_file(name) for name in SOURCES[of["source"]].raw_files]


def dataset_options(dataset):
    """The data set's settings but for its mirrors: which one it came from does not matter."""
    of = settings.dataset_settings(config, dataset)
    of.pop("mirrors", None)
    for key in of.keys() & {"file", "labels"}:
        of[key] = in_project(of[key])
    return of


def options(values):
    """{"hold_out": 360, "scale": [-1, 1]} as --hold-out=360 --scale=-1,1."""
    words = []
    for name, value in values.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(f"--{name.replace('_', '-')}={text}")
    return shlex.join(words)


def reading_options(dataset):
    """Of a data set's step."""
    own = dataset_options(dataset)
    if SOURCES[own["source"]].corpus:
        own["corpus"] = CORPUS.format(dataset=dataset)
    return options(own)


def from_corpora(datasets):
    """Those of the data sets that come from a corpus."""
    return [name for name in datasets if settings.audio_hours(config, name)]


def sweep_records(sweep, its_rule):
    """The records of the jobs of a sweep, with {dataset} and {activation}."""
    return [its_rule.benchmark.replace("{sweep}", sweep)]


def artefact_options(made_with, records):
    """Each artefact's CSV, and the records of the jobs of the rules (or the jobs) it was made with."""
    words = [f"--records={records}", "--logs=results/logs"]
    for artefact, its_rules in made_with.items():
        paths = ",".join(
            os.path.relpath(getattr(each, "benchmark", each), records) for each in its_rules
        )
        words.append(f"--artefact=results/{artefact}.csv={paths}")
    return shlex.join(words)


# The tables by which claims are judged.
EVIDENCE = [
    "conditioning",
    "angles",
    "fig3",
    "fig_activations",
    "fig_activations_ntk",
    "fig_width",
    "fig_infinite_depth",
    "fig_weight_scale",
    "fig_descent",
    "table_epochs",
    "table_generalization",
]
FIG2 = config["figures"]["fig2"]
FIG3 = config["figures"]["fig3"]
KERNEL = "results/kernels/{dataset}/{activation}/depth{depth}.h5"
SPECTRUM = "results/spectra/{dataset}/{activation}/depth{depth}.h5"
ANGLE = "results/angles/{dataset}/{activation}/depth{depth}.h5"
DESCENT = "results/descent/{dataset}.h5"
SWEEP = "results/sweeps/{sweep}/{dataset}/{activation}.h5"
CORPUS = "results/corpora/{dataset}.h5"
TRAINED = "results/training/{dataset}/depth{depth}.h5"

# Inside a cluster's job: a GPU that was not asked for may be someone else's.
if workflow.remote_exec and config["device"] == "auto":
    config["device"] = "cpu"


def elsewhere():
    """Whether jobs run on other machines than this. A dry run cannot know, and says yes."""
    return workflow.remote_exec or workflow.non_local_exec_or_dryrun


def gpus(wildcards):
    """Here, a GPU runs one job at a time (profiles/default has one). A cluster is asked for one
    only with device: cuda, because its login node cannot tell what others have."""
    here = os.path.exists("/proc/driver/nvidia/gpus") and not elsewhere()
    return int(config["device"] == "cuda" or (config["device"] == "auto" and here))


def threads_for(samples):
    """One thread for small kernels, whose jobs run side by side. For a large one all there are
    here, or 8 of a cluster's node: most nodes have as many, and soon have them free."""
    if samples is not None and samples <= 4096:
        return 1
    return 8 if elsewhere() else workflow.cores


def block_of(wildcards):
    """Samples in one NTK, as far as the config tells."""
    block = settings.experiment(config, wildcards.dataset)["block"]
    return settings.sample_count(config, wildcards.dataset) if block == "all" else block


def reading_threads(wildcards):
    """Audio is decoded by as many as there are."""
    source = settings.dataset_settings(config, wildcards.dataset)["source"]
    if not SOURCES[source].corpus:
        return 1
    return 8 if elsewhere() else workflow.cores


def training_threads(wildcards):
    """As many as leave some for every training job. In a cluster's job, as for a kernel."""
    if elsewhere():
        return threads_for(settings.sample_count(config, wildcards.dataset))
    return max(1, workflow.cores // len(in_fig3()))


def at_sizes(function, wildcards, rule_name=None):
    """A function of `ntkcond.needs` or `ntkcond.cluster` at a job's sizes, those that it takes; None
    while only the job's input tells how many samples and features there are (a user's own set)."""
    samples = settings.sample_count(config, wildcards.dataset)
    features = settings.feature_count(config, wildcards.dataset)
    if samples is None or features is None:
        return None
    of = settings.training if rule_name == "train" else settings.experiment
    own = of(config, wildcards.dataset)
    source = settings.dataset_settings(config, wildcards.dataset)["source"]
    sizes = {
        "available": SOURCES[source].samples or samples,
        "block": samples if own.get("block") == "all" else own.get("block"),
        "samples": samples,
        "test_samples": settings.test_sample_count(config, wildcards.dataset),
        "features": features,
        "hours": settings.audio_hours(config, wildcards.dataset),
        "depth": int(wildcards.get("depth", 0)),
        "width": own["width"],
        "seeds": len(own["seeds"]),
        "runs": len(own["seeds"]) * len(own.get("learning_rates", [])),
        "batch": own.get("batch"),
        "epochs": own.get("epochs"),
    }
    return function(
        **{name: sizes[name] for name in inspect.signature(function).parameters if name in sizes}
    )


def need_of(rule_name, wildcards):
    """What a job of kernel, angle, spectrum or train will need."""
    return at_sizes(getattr(needs, f"{rule_name}_need"), wildcards, rule_name)


def megabytes_for(rule_name):
    """`mem_mb` of kernel, angle, spectrum or train."""

    def megabytes(wildcards, attempt):
        need = need_of(rule_name, wildcards)
        return cluster.megabytes(need and need.bytes, attempt)

    return megabytes


def minutes_for(rule_name):
    """`runtime` of dataset, kernel, angle, spectrum or train."""
    work = getattr(cluster, f"{rule_name}_work")

    def minutes(wildcards, threads, attempt):
        on_gpu = rule_name == "train" and gpus(wildcards)
        cores = cluster.GPU_AS_CORES if on_gpu else threads
        return cluster.minutes(at_sizes(work, wildcards, rule_name), cores, attempt)

    return minutes


def at_largest(function, wildcards):
    """A function of `ntkcond.needs` or `ntkcond.cluster` at a sweep's largest depth, width and n."""
    own = settings.sweep(config, wildcards.sweep, wildcards.dataset, wildcards.activation)
    samples = settings.sample_count(config, wildcards.dataset)
    features = settings.feature_count(config, wildcards.dataset)
    if samples is None or features is None:
        return None
    sizes = {
        "block": max(samples if n == "all" else n for n in own["sizes"]),
        "samples": samples,
        "features": features,
        "depth": max(own["depths"]),
        "width": max([width for width in own["widths"] if width != "inf"], default=1),
        "seeds": len(own["seeds"]) * len(own["depths"]),
    }
    return function(
        **{name: sizes[name] for name in inspect.signature(function).parameters if name in sizes}
    )


def descent_minutes(wildcards, threads, attempt):
    """Of each step, a forward and a backward pass; of each depth and seed twice so many."""
    own = config["descent"]

    def work(block, features, width):
        passes = 2 * len(own["depths"]) * len(own["seeds"]) * own["steps"]
        weights = width * features + max(own["depths"]) * width**2
        return cluster.Work(6 * passes * block * weights, 0)

    return cluster.minutes(at_sizes(work, wildcards), threads, attempt)


def sweep_threads(wildcards):
    own = settings.sweep(config, wildcards.sweep, wildcards.dataset, wildcards.activation)
    there = settings.sample_count(config, wildcards.dataset)
    known = [there if n == "all" else n for n in own["sizes"]]
    return threads_for(None if None in known else max(known))


def sweep_megabytes(wildcards, attempt):
    need = at_largest(needs.kernel_need, wildcards)
    return cluster.megabytes(need and need.bytes, attempt)


def sweep_minutes(wildcards, threads, attempt):
    return cluster.minutes(at_largest(cluster.kernel_work, wildcards), threads, attempt)


def refuse_a_second_run():
    """Ends this run before its first job if another is at work in the same folder."""
    try:
        run_lock.take(Path(".snakemake"))
    except UserError as error:
        sys.exit(f"ntkcond: {error}")


def refuse_what_cannot_fit():
    """Ends the run before its first job if one of its jobs needs more memory than the machine has."""
    if not workflow.local_exec:
        return  # a cluster's nodes are not this machine
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in ("kernel", "angle", "spectrum", "train", "sweep"):
            if job.rule.name == "sweep":
                need = at_largest(needs.kernel_need, job.wildcards)
            else:
                need = need_of(job.rule.name, job.wildcards)
            if need is not None and need.bytes > memory:
                sys.exit(
                    f"ntkcond: {need.what} ({job.wildcards.dataset}) needs {size(need.bytes)} of"
                    f" memory; this machine has {size(memory)}. {need.way_out}"
                )
