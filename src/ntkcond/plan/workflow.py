"""The plan of one Snakemake workflow, and every use that it makes of Snakemake's own objects.

`Plan` answers the rules' questions. What it takes from Snakemake 9 beyond its documentation, all of
it here (tests/plan/test_attributes.py), each held by tests/plan/test_snakemake.py or
test_missing.py:

- `dag.forcefiles`: files that are forced are run and shown like those of --forcerun. Nothing
  documented lets a workflow say that a result is out of date for a reason of its own.
- `dag.needrun_jobs`, `dag.reason`: the jobs that will run and Snakemake's reasons, to say them in
  words and to refuse what cannot fit.
- `rerun_triggers`, `touch`, `dryrun`, `dag_settings.targets`,
  `deployment_settings.deployment_method`: what the command line says.
- `modifier.is_main_snakefile`, `modifier.path_modifier.replace_prefix`: whether this is a module,
  and its prefix.
- `is_main_process`, `remote_exec`, `local_exec`, `non_local_exec_or_dryrun`,
  `executor_plugin.name`: where this runs.
- `snakemake.logging.logger`, its event `run_info` and one message: when the jobs are known.

Params are functions of `output`, which Snakemake takes for derived and does not compare: what
matters of them is in the record (`ntkcond.run.record`).
"""

import atexit
import functools
import importlib.metadata
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.plan import caption, config, missing, reasons, requests, run_lock
from ntkcond.plan.cluster import GPU_AS_CORES
from ntkcond.plan.freshness import Freshness
from ntkcond.plan.graph import PATTERNS, Graph, Job
from ntkcond.run.errors import UserError
from ntkcond.run.machine import has_gpu
from ntkcond.run.ranks import require_mpi
from ntkcond.run.units import size

# The interpreter that runs Snakemake also runs the steps, whatever is first on PATH. They take the
# place of the shell (exec), to be Snakemake's own children and end with it (ntkcond.run.command).
# GNU's env holds Ctrl-C back until a step can end without a traceback (ntkcond.steps).
HOLDING_BACK = "env --block-signal=INT "
if subprocess.run([*HOLDING_BACK.split(), "true"], capture_output=True, check=False).returncode:
    HOLDING_BACK = ""  # another system's env
STEP = "-m ntkcond.steps"
PACKAGE = Path(__file__).parents[1]
STEPS = f"exec {HOLDING_BACK}{shlex.quote(sys.executable)} {STEP}"
BY_RANKS = ("scalapack_spectrum",)  # rules whose jobs are MPI ranks
SRUN = "srun --mpi=pmix"  # by which Open MPI's ranks find each other
# In an environment that Snakemake made (--sdm conda), with the code of this one.
IN_ENVIRONMENT = f"PYTHONPATH={shlex.quote(str(PACKAGE.parent))} exec {HOLDING_BACK}python {STEP}"
SNAKEMAKE_FOLDER = Path(".snakemake")
NOTHING_TO_DO = "Nothing to be done (all requested files are present and up to date)."


def exit_on_mistake(function: Callable) -> Callable:
    """A UserError ends Snakemake with one line."""

    @functools.wraps(function)
    def wrapped(*arguments, **options):
        try:
            return function(*arguments, **options)
        except UserError as error:
            sys.exit(f"ntkcond: {error}")

    return wrapped


class Plan:
    """For the rules of one workflow. workflow, config: Snakemake's globals; version: of ntkcond
    that the rules are of; project: the folder of config.yaml, in which relative paths start. None
    for rules read from elsewhere: their config is over the default one, and paths start here."""

    @exit_on_mistake
    def __init__(self, workflow, config_: dict, version: str, project: Path | None) -> None:
        self.workflow, self.config = workflow, config_
        start = project or Path()
        _require_code(start, version)
        config.complete(config_, from_default=project is None)
        config.check(config_, start, scan=not workflow.remote_exec)
        if workflow.remote_exec and config_["device"] == "auto":
            config_["device"] = "cpu"  # a GPU that was not asked for may be someone else's
        # Of all data sets; `graph` is without the missing ones.
        self.of_another = not workflow.modifier.is_main_snakefile()  # whether it is a module
        self._named = workflow.modifier.path_modifier.replace_prefix  # by Snakemake
        folder, _, name = self._named("results").rpartition("/")
        if name != "results":
            raise UserError("a module of ntkcond takes `prefix`, not `replace_prefix`")
        self.asked = Graph(config_, start, folder=folder)
        self.missing: list[missing.Missing] = []
        self.specs = SPECS
        self.constraints = {
            "dataset": "|".join(config_["datasets"]),
            "network": "|".join(ACTIVATIONS),
            "architecture": "|".join(config.architectures(config_)),
            "sweep": "|".join(config.SWEEPS),
            "depth": r"\d+",
            "width": r"\d+",
        }
        self._at_start()

    def _at_start(self) -> None:
        """Once, in the process that a person started."""
        os.environ["NTKCOND_SNAKEMAKE"] = str(os.getpid())
        if not self.workflow.is_main_process:
            return
        if run_lock.remove_dead_locks(SNAKEMAKE_FOLDER):
            print("ntkcond: the last run was killed; its lock is removed", file=sys.stderr)
        from snakemake.logging import logger

        logger.addHandler(_WhenJobsAreKnown(self._when_jobs_are_known))

    @functools.cached_property
    def graph(self) -> Graph:
        """Settled when Snakemake looks at the first job, whose targets are then known. A job on
        another machine takes its files as they are."""
        if not self.workflow.is_main_process:
            return self.asked
        freshness = Freshness(self.asked, self._triggers)
        graph, self.missing = missing.graph_without(freshness, self._targets())
        if self.missing:  # after all that Snakemake says
            atexit.register(print, f"\n{missing.in_words(self.missing)}", file=sys.stderr)
        return graph

    def _targets(self) -> list[Job]:
        """Those of the command line; all that the config can make where one is no file or artefact
        of ours, such as `all`."""
        asked, targets = self.asked, list(map(str, self.workflow.dag_settings.targets))
        jobs = [
            asked.job(target) if target in self.specs else asked.maker(asked.name(target))
            for target in targets
        ]
        if not targets or None in jobs:
            return [asked.job(name) for name in self.specs]
        return [job for job in jobs if job]

    @property
    def _triggers(self) -> Iterable[str]:
        return (str(trigger) for trigger in self.workflow.rerun_triggers)

    @functools.cached_property
    def freshness(self) -> Freshness:
        """With the rerun triggers of the command line."""
        return Freshness(self.graph, self._triggers)

    @property
    def targets(self) -> list[str]:
        """What `snakemake` makes without a target."""
        return self.asked.targets()

    # Directives: functions that Snakemake calls with a job's wildcards.

    def inputs(self, rule: str) -> Callable:
        """`input:` of a rule. It is here, where Snakemake considers a job, that a result which is
        out of date is forced."""

        def inputs(wildcards) -> dict[str, list[str]]:
            job = self.job(rule, wildcards)
            if self.workflow.is_main_process and self.freshness.differences(job):
                self.workflow.dag.forcefiles.update(map(self._named, job.outputs))
            files = {name.replace("/", "_"): list(paths) for name, paths in job.inputs.items()}
            return {**files, **({"raw": list(job.raw)} if job.raw else {})}

        return exit_on_mistake(inputs)

    @property
    def computing(self) -> dict[str, str]:
        """For each rule of rules/computing.smk what its jobs are called, such as
        {dataset}/{network}/depth{depth}."""
        return {rule: _called(rule) for rule in PATTERNS if rule not in BY_RANKS}

    @property
    def uses_ranks(self) -> bool:
        """Whether any data set needs rules/ranks.smk."""
        return any(map(self._datasets_of, BY_RANKS))

    def _datasets_of(self, rule: str) -> list[str]:
        """Those whose spectra a rule computes."""
        names = self.config["datasets"]
        return [name for name in names if config.spectrum_rule(self.config, name) == rule]

    def datasets(self, rule: str) -> dict[str, str]:
        """Constraints on the wildcards of a computing rule: two make spectra, each of its own."""
        if rule not in ("spectrum", *BY_RANKS):
            return {}
        return {"dataset": "|".join(self._datasets_of(rule)) or "(?!)"}

    def message(self, rule: str) -> str:
        """What a job says of itself: kernel digits relu depth2."""
        return f"{rule} {_called(rule).replace('{', '{wildcards.').replace('/', ' ')}"

    def output(self, rule: str, temp: Callable) -> str:
        """Of a computing rule: its file, or a temporary one."""
        keep = rule != "kernel" or self.config["keep_kernels"]
        return PATTERNS[rule] if keep else temp(PATTERNS[rule])

    def log(self, rule: str) -> str:
        if rule not in PATTERNS:
            return f"results/logs/{rule}.log"
        made = "spectrum" if rule in BY_RANKS else rule
        return f"results/logs/{made}/{_called(rule)}.log"

    def command(self, rule: str) -> Callable:
        """The step of a rule with its settings, and with options that change no result."""
        unrecorded: dict[str, object] = {}
        if rule in requests.NEEDS and rule not in BY_RANKS:
            unrecorded["device"] = self.config["device"]
        if rule in ("corpus", "dataset"):
            unrecorded["data_dir"] = self.asked.data_dir
        if rule == "sgd":
            unrecorded["checkpoint_minutes"] = self.config["training"]["checkpoint_minutes"]
        step = "artefact" if rule in self.specs else rule
        folder = shlex.quote(str(self.asked.folder))
        there = "" if folder == "." else f"cd {folder} && "

        def command(wildcards, output) -> str:
            job = self.job(rule, wildcards)
            options = self.graph.command_line(job, unrecorded)
            mirrors = f" {self._mirrors}" if rule == "corpus" and self._mirrors else ""
            log = self.log(rule).format(**wildcards)
            files = f"--output {job.outputs[0]} --log {log}"
            return f"{there}{self._steps}.{step} {options}{mirrors} {files}"

        return command

    @property
    def _steps(self) -> str:
        deployed = {str(method) for method in self.workflow.deployment_settings.deployment_method}
        return IN_ENVIRONMENT if "conda" in deployed else STEPS

    def download_command(self) -> Callable:
        """The step that downloads a raw file."""

        def command(wildcards, output) -> str:
            raw_file = wildcards.raw_file
            options = f"--source {self.raw_files[raw_file]} --raw-file {raw_file} {self._mirrors}"
            return f"{self._steps}.download {options}"

        return command

    def threads(self, rule: str) -> Callable:
        def threads(wildcards) -> int:
            elsewhere = self._elsewhere()
            cores = None if elsewhere else self.workflow.cores  # which a cluster's run lacks
            return requests.threads(self.config, rule, wildcards, cores)

        return threads

    def resources(self, rule: str) -> dict[str, Any]:
        """Memory, time and, where a GPU can serve, GPUs of a rule's jobs."""

        def mem_mb(wildcards, attempt) -> int:
            return requests.megabytes(self.config, rule, wildcards, attempt)

        def runtime(wildcards, threads, attempt) -> int:
            cores = GPU_AS_CORES if rule == "sgd" and self._gpus(wildcards) else threads
            cores = requests.ranks(self.config, rule, wildcards) or cores
            return requests.minutes(self.config, rule, wildcards, cores, attempt)

        if rule == "corpus":
            return {}
        found = {"mem_mb": mem_mb, "runtime": runtime}
        if rule in BY_RANKS:
            return {**found, **self._of_ranks(rule)}
        return {**found, "gpu": self._gpus} if rule in requests.NEEDS else found

    def _of_ranks(self, rule: str) -> dict[str, Any]:
        """How MPI ranks are started, how many, and the memory of each: nodes share them out."""

        def mpi(wildcards) -> str:
            return SRUN if self._elsewhere() else "mpirun"

        def tasks(wildcards) -> int:
            return requests.ranks(self.config, rule, wildcards)

        def mem_mb_per_cpu(wildcards, attempt) -> int:
            return requests.megabytes_a_rank(self.config, rule, wildcards, attempt)

        return {"mpi": mpi, "tasks": tasks, "mem_mb_per_cpu": mem_mb_per_cpu}

    def _gpus(self, wildcards) -> int:
        """Here, a GPU runs one job at a time (profiles/default has one). A cluster is asked for one
        only with device: cuda, because its login node cannot tell what the nodes have."""
        device, here = self.config["device"], not self._elsewhere() and has_gpu()
        return int(device == "cuda" or (device == "auto" and here))

    # Artefacts.

    def files(self, name: str, report: Callable) -> list:
        """Output of an artefact's rule: its files, those for the report flagged by `report`, and
        its provenance."""
        spec = self.specs[name]
        flagged = [
            report(path, **self._in_report(name, spec, path)) if suffix in spec.reported else path
            for suffix in spec.files
            for path in [f"results/{name}{suffix}"]
        ]
        return [*flagged, self.asked.job(name).outputs[-1]]

    def _in_report(self, name: str, spec: Spec, path: str) -> dict:
        def section(wildcards) -> str:
            self._before_the_report()  # Snakemake calls it when it writes a report
            return spec.section

        return {
            "caption": "../report/artefact.rst",
            "category": section,
            "labels": {"artefact": spec.title, "file": caption.FORMS[Path(path).suffix]},
        }

    def about(self, name: str) -> Callable:
        """What the report says of an artefact (workflow/report/artefact.rst)."""

        def about(wildcards, output) -> dict:
            return caption.about(self.graph, name)

        return about

    @property
    def raw_pattern(self) -> str:
        """Path of a raw file."""
        return os.path.normpath(Path(self.asked.data_dir, "{raw_file}"))  # as in jobs' `raw`

    @property
    def raw_files(self) -> dict[str, str]:
        """Which source each raw file is of."""
        return {name: source for source, known in SOURCES.items() for name in known.raw_files}

    @property
    def _mirrors(self) -> str:
        """As options. Which server a checked file came from changes no result."""
        names = self.config["datasets"]
        datasets = (config.dataset_settings(self.config, name) for name in names)
        return shlex.join(
            f"--mirror={dataset['source']}={url}"
            for dataset in datasets
            for url in dataset.get("mirrors", [])
        )

    # The run as a whole.

    @exit_on_mistake
    def start(self) -> None:
        """Before the first job (`onstart`)."""
        run_lock.take(SNAKEMAKE_FOLDER)
        logging.raiseExceptions = False  # of Snakemake's log on a full disk: a traceback a line
        if self.missing:
            print(missing.in_words(self.missing), file=sys.stderr)
        jobs = self._jobs_to_run()
        if self.workflow.touch:
            self.freshness.accept(jobs)
            return
        self._refuse_ranks_that_cannot_run()
        if self.workflow.local_exec:  # a cluster's nodes are not this machine
            self._refuse_what_cannot_fit(jobs)

    def _refuse_ranks_that_cannot_run(self) -> None:
        jobs = [job for job in self.workflow.dag.needrun_jobs() if job.rule.name in BY_RANKS]
        if not jobs:
            return
        if self._steps == IN_ENVIRONMENT:
            raise UserError("engine: scalapack: --sdm conda makes an environment without MPI")
        if self.workflow.local_exec:
            for command in sorted({str(job.resources.mpi) for job in jobs}):
                require_mpi(command)
            return
        require_mpi()
        if self.workflow.executor_plugin.name != "slurm":
            raise UserError("engine: scalapack: on a cluster, only profiles/slurm starts MPI ranks")
        if any(job.resources.tasks < 2 for job in jobs):
            raise UserError("ranks: 1 is no job of MPI to Slurm. Set ranks to 2 or more")

    def _refuse_what_cannot_fit(self, jobs: list[Job]) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        for job in jobs:
            if job.rule not in requests.NEEDS:
                continue
            need = requests.need(self.config, job.rule, job.wildcards)
            if need is not None and need.bytes > memory:
                raise UserError(
                    f"{need.what} ({job.wildcards['dataset']}) needs {size(need.bytes)} of memory;"
                    f" this machine has {size(memory)}. {need.hint}"
                )

    @functools.cache  # noqa: B019  one plan a process
    def _before_the_report(self) -> None:
        """Captions say the settings, versions and code of today: not those of older files. Figure 2
        is made ready for the front page."""
        stale = sorted({job.rule for job in self._jobs_to_run()})
        if stale:
            sys.exit(
                f"ntkcond: no report: {', '.join(stale)} would run first. Give the same command"
                " without --report, then with it"
            )
        caption.embed(
            self.asked.at("results/fig2.png"), Path(SNAKEMAKE_FOLDER, "ntkcond/fig2.html")
        )

    def job(self, rule: str, wildcards: Mapping[str, str]) -> Job:
        return self.graph.job(rule, **dict(wildcards.items()))

    def _maker(self, path: str) -> Job | None:
        """Of a file by Snakemake's name, which begins with a module's prefix."""
        return self.graph.maker(self.graph.name(path))

    def _jobs_to_run(self) -> list[Job]:
        return self._of_this_workflow(self.workflow.dag.needrun_jobs())

    def _of_this_workflow(self, jobs: Iterable) -> list[Job]:
        """Snakemake's jobs, without those of other workflows beside this one."""
        outputs = (list(job.output) for job in jobs)
        makers = (self._maker(str(paths[0])) for paths in outputs if paths)
        return [job for job in makers if job]

    def _when_jobs_are_known(self, logger: logging.Logger) -> None:
        self._say_reasons(logger)
        # Snakemake calls `onstart` of the main workflow only
        if self.of_another and not self.workflow.dryrun:
            self.start()

    def _say_reasons(self, logger: logging.Logger) -> None:
        dag, name = self.workflow.dag, self.graph.name
        found = [
            (job.rule.name, [name(str(path)) or str(path) for path in job.output], dag.reason(job))
            for job in dag.needrun_jobs()
            if job.output
        ]
        if found:
            logger.info(reasons.of_run(self.freshness, found))

    def _elsewhere(self) -> bool:
        """Whether jobs run on other machines than this. A dry run cannot know, and says yes."""
        return self.workflow.remote_exec or self.workflow.non_local_exec_or_dryrun


def _require_code(start: Path, version: str) -> None:
    """Raises UserError if the package that is installed is not the one of these rules."""
    own = Path(start, "src/ntkcond")
    if own.is_dir() and not own.samefile(PACKAGE):
        raise UserError(
            f"this environment has the code of {PACKAGE.parents[1]}, not of {own.parents[1]}."
            " Run `make .venv/.ready` there, then `source .venv/bin/activate`"
        )
    try:
        installed = importlib.metadata.version("ntkcond")
    except importlib.metadata.PackageNotFoundError:  # on PYTHONPATH alone
        return
    if installed != version:
        raise UserError(
            f"these rules are of ntkcond {version}, and this environment has ntkcond {installed}."
            f" Install ntkcond {version}, or take the Snakefile of {installed}"
        )


class _WhenJobsAreKnown(logging.Handler):
    """Calls a function once Snakemake has listed the jobs that it will run, or said that it will
    run none."""

    def __init__(self, function: Callable[[logging.Logger], None]) -> None:
        super().__init__()
        self.function = function

    def emit(self, record: logging.LogRecord) -> None:
        if _event(record) == "run_info" or record.msg == NOTHING_TO_DO:
            self.function(logging.getLogger(record.name))


def _called(rule: str) -> str:
    """The jobs of a computing rule, by its pattern."""
    return "/".join(PATTERNS[rule].removesuffix(".h5").split("/")[2:])


def _event(record: logging.LogRecord) -> str:
    """What Snakemake tells by it, such as run_info or job_error."""
    return str(getattr(record, "event", ""))
