# The checked config, and what the rules take from it. No rules here.

import functools
import hashlib
import os
import re
import shlex
import sys
from pathlib import Path

try:
    from ntkcond import config as settings
    from ntkcond import needs
    from ntkcond.datasets.registry import SOURCES
    from ntkcond.errors import UserError
    from ntkcond.provenance import made_by
    from ntkcond.run_lock import remove_dead_locks
    from ntkcond.units import size
except ModuleNotFoundError as missing:
    sys.exit(
        f"ntkcond: the Python that runs this Snakemake has no {missing.name}. Run `make figures`,"
        " which sets everything up in .venv, or `pip install -e .` in your own environment"
    )

# Snakemake leaves what is inside a list of --config as text.
settings.read_command_line(config, workflow.config_settings.config)

try:
    settings.check(config, workflow.basedir)
except UserError as error:
    sys.exit(f"ntkcond: error in the config: {error}")

if workflow.is_main_process and remove_dead_locks(Path(".snakemake")):
    print(
        "ntkcond: the run before was killed; its lock is removed, its work goes on", file=sys.stderr
    )

# The interpreter that runs Snakemake also runs the steps, whatever is first on PATH. They take the
# place of the shell (exec), to be Snakemake's own children, and end with it (ntkcond.command).
PYTHON = f"exec {shlex.quote(sys.executable)}"
os.environ["NTKCOND_SNAKEMAKE"] = str(os.getpid())


wildcard_constraints:
    dataset="|".join(config["datasets"]),
    activation="|".join(config["activations"]),
    depth=r"\d+",


def in_project(path):
    """A path of the config: absolute, or relative to where Snakemake runs, also with --directory."""
    found = settings.resolved(path, workflow.basedir)
    return str(found) if os.path.isabs(os.path.expanduser(path)) else os.path.relpath(found)


DATA_DIR = in_project(config["data_dir"])


def options(values):
    """{"hold_out": 360, "scale": [-1, 1]} as --hold-out=360 --scale=-1,1."""
    words = []
    for name, value in values.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(f"--{name.replace('_', '-')}={text}")
    return shlex.join(words)


def every(pattern, dataset):
    """The pattern's files for each activation and depth of a data set."""
    return expand(
        pattern,
        dataset=dataset,
        activation=config["activations"],
        depth=settings.experiment(config, dataset)["depths"],
    )


# A GPU runs one job at a time (profiles/default has one); jobs on CPUs ask for none.
GPUS = int(
    config["device"] == "cuda"
    or (config["device"] == "auto" and os.path.exists("/proc/driver/nvidia/gpus"))
)


def threads_for(samples):
    """One thread for small kernels, whose jobs run side by side; all there are for a large one."""
    return 1 if samples is not None and samples <= 4096 else workflow.cores


def block_of(wildcards):
    """Samples in one NTK, as far as the config tells."""
    block = settings.experiment(config, wildcards.dataset)["block"]
    return settings.sample_count(config, wildcards.dataset) if block == "all" else block


def megabytes(need):
    """`mem_mb` for a `ntkcond.needs.Need`; 4 GB while its sizes are not known."""
    return 4000 if need is None else -(-need.bytes // 10**6)


def need_of(rule_name, wildcards):
    """What a job of kernel, angle or spectrum will need, or None while only its input file tells
    how many samples and features there are (a user's own set)."""
    samples = settings.sample_count(config, wildcards.dataset)
    features = settings.feature_count(config, wildcards.dataset)
    if samples is None or features is None:
        return None
    own, depth = settings.experiment(config, wildcards.dataset), int(wildcards.depth)
    block = samples if own["block"] == "all" else own["block"]
    if rule_name == "kernel":
        return needs.kernel_need(block, samples, features, depth, own["width"])
    if rule_name == "angle":
        return needs.angle_need(samples, features, depth, own["width"])
    return needs.spectrum_need(block, samples, features)


def refuse_what_cannot_fit():
    """Ends the run before its first job if one of its jobs needs more memory than the machine has."""
    if not workflow.local_exec:
        return  # a cluster's nodes are not this machine
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in ("kernel", "angle", "spectrum"):
            need = need_of(job.rule.name, job.wildcards)
            if need is not None and need.bytes > memory:
                sys.exit(
                    f"ntkcond: {need.what} ({job.wildcards.dataset}) needs {size(need.bytes)} of"
                    f" memory; this machine has {size(memory)}. {need.way_out}"
                )
