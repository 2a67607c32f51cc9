"""The plan of a Snakemake workflow: what its rules ask.

The rules are in workflow/rules, and Snakemake decides what runs: it compares each job's `params`
with those of the last time. `settings`, `code`, `versions` and `content` are lists of text, such as
--width=512, ntk.empirical 3f2a91 and numpy 2.4.6; the same is in the record of each file
(`ntkcond.run.record`). Functions with `output` or `input` among their parameters are derived, as
Snakemake calls it, and not compared.

Where Snakemake is blind, since it has no metadata of a file, the records are compared, and what is
out of date is refused. Beyond Snakemake's documentation (tests/plan/test_attributes.py):

- `persistence.metadata`: what Snakemake has noted of a file;
- `snakemake.cli.get_argument_parser`: what its command line says.
"""

import argparse
import atexit
import contextlib
import dataclasses
import functools
import importlib.metadata
import io
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import SOURCES
from ntkcond.jobs.registry import STEPS
from ntkcond.plan import caption, config, last_words, missing, run_lock
from ntkcond.plan.freshness import Freshness, in_words
from ntkcond.plan.graph import DRAW, NONE, Graph, Job
from ntkcond.run.digests import STARTED
from ntkcond.run.errors import UserError
from ntkcond.run.machine import has_gpu
from ntkcond.run.ranks import require_mpi

PACKAGE = Path(__file__).parents[1]
SNAKEMAKE_FOLDER = Path(".snakemake")
# In the environment: the Snakemake that a person started, and what its figures lack.
FIRST, LEFT_OUT = "NTKCOND_FIRST", "NTKCOND_LEFT_OUT"


def exit_on_mistake(function: Callable) -> Callable:
    """A UserError ends Snakemake with one line."""

    @functools.wraps(function)
    def wrapped(*arguments, **options):
        try:
            return function(*arguments, **options)
        except UserError as error:
            atexit.unregister(say_last)  # nothing matters more
            sys.exit(f"ntkcond: {error}")

    return wrapped


def of_job(method: Callable) -> Callable:
    """A method of a job, for rules: `plan.settings("kernel")` is a function of wildcards."""

    def of_rule(self, rule: str) -> Callable:
        def of_wildcards(wildcards):
            return method(self, self.job(rule, wildcards))

        return exit_on_mistake(of_wildcards)

    return of_rule


def say_last(plan: "Plan", folder: Path, since: float) -> None:
    """When this process ends. Snakemake has left the folder of --directory by then."""
    where = [] if folder == Path.cwd() else [f"ntkcond: in {os.path.relpath(folder)}:"]
    compares = plan.options.dryrun and "--rerun-triggers" not in sys.argv
    with contextlib.suppress(UserError, OSError), contextlib.chdir(folder):
        for line in last_words.of_run(plan, since, compares):
            print(*where, line, sep="\n", file=sys.stderr)
            where = []


def is_first() -> bool:
    """Whether a person started this Snakemake, and no job of another."""
    me = f"{socket.gethostname()} {os.getpid()}"
    return os.environ.setdefault(FIRST, me) == me


class Plan:
    """For the rules of one workflow. workflow, config: Snakemake's globals; version: of ntkcond
    that the rules are of; project: the folder of config.yaml, in which relative paths start. None
    for rules read from elsewhere: their config is over the default one, and paths start here.
    given: settings of the command line."""

    specs: Mapping[str, Spec] = SPECS

    @exit_on_mistake
    def __init__(
        self, workflow, config_: dict, version: str, project: Path | None, given: dict | None = None
    ) -> None:
        self.workflow = workflow
        self.given = given or {}
        self.planned: dict[Job, None] = {}  # the jobs that Snakemake asked for
        self.failed = False  # as far as Snakemake says so, which it does not tell a module
        self.start = project or Path()
        _require_code(self.start, version)
        os.environ["NTKCOND_SNAKEMAKE"] = str(os.getpid())
        self.is_first = is_first()
        if self.is_first:
            os.environ[STARTED] = str(time.time())
        config.complete(config_, from_default=project is None)
        self.config = config.check(config_, self.start, scan=self.is_first)
        if not self.is_first and self.config.device == "auto":  # a GPU may be someone else's
            self.config = dataclasses.replace(self.config, device="cpu")
        self.graph = Graph(self.config, self.start)
        self.freshness = Freshness(self.graph)
        if self.uses_ranks:
            require_mpi()

    @exit_on_mistake
    def settle(self, a_result: str) -> None:
        """Where results lie: of a module, below its prefix; and which data sets figures lack, also
        for the Snakemakes of jobs: files may arrive meanwhile. a_result: by Snakemake's name."""
        folder = a_result.partition("results/")[0]
        graph = Graph(self.config, self.start, folder=folder)
        left_out = json.loads(os.environ.get(LEFT_OUT, "{}"))  # by the folder of each module
        if self.is_first:
            left_out[folder] = missing.left_out(graph)
            os.environ[LEFT_OUT] = json.dumps(left_out)
            if left_out[folder]:
                print(missing.in_words(graph, left_out[folder]), file=sys.stderr)
        self.graph = graph.without(left_out.get(folder, {}))
        self.freshness = Freshness(self.graph)
        if self.is_first:
            import h5py  # noqa: F401  it ends after what is registered later

            atexit.register(say_last, self, Path.cwd(), time.time())

    @property
    def targets(self) -> list[str]:
        """What `snakemake` makes without a target."""
        return self.graph.targets()

    # What jobs depend on: compared by Snakemake.

    @of_job
    def settings(self, job: Job) -> list[str]:
        """Options of the step, each setting by its name: --width=512."""
        return self.graph.options(job)

    @of_job
    def code(self, job: Job) -> list[str]:
        """Every module that the numbers depend on, with its digest: ntk.empirical 3f2a91."""
        return list(map(" ".join, self.graph.code(job)["code"].items()))

    @of_job
    def versions(self, job: Job) -> list[str]:
        """Versions of the packages that the numbers depend on, and of the format of files."""
        made_with = self.graph.code(job)
        return [*map(" ".join, made_with["versions"].items()), f"format {made_with['format']}"]

    @of_job
    def content(self, job: Job) -> list[str]:
        """Digests of files from outside: Snakemake looks at them only if their dates are
        newer than that of the result, and a copy may well be older."""
        return list(map(" ".join, self.graph.content(job).items()))

    # What they take.

    @of_job
    def inputs(self, job: Job) -> dict[str, list[str]]:
        """Inputs of an artefact; of a computing rule those that are not the same for all of its
        jobs."""
        self._refuse_what_is_out_of_date(job)
        files = {_key(name): list(paths) for name, paths in job.inputs.items()}
        return {**files, **({"raw": list(job.raw)} if job.raw else {})}

    @of_job
    def not_stale(self, job: Job) -> list[str]:
        """No inputs. Snakemake asks for inputs also of a file of which it has no metadata: if that
        is out of date, it is refused."""
        self._refuse_what_is_out_of_date(job)
        return []

    def input_options(self, wildcards, input) -> list[str]:
        """--file=mine.npy, of inputs that not all jobs of the rule have."""
        shared = ("dataset", "raw")
        return [f"--{name}={path}" for name, path in input.items() if name not in shared]

    def artefact_inputs(self, name: str) -> Callable:
        """--input spectrum FILE …, each kind of file by its name in the SPEC."""

        def artefact_inputs(wildcards, input) -> list[str]:
            words = []
            for kind in SPECS[name].inputs:
                paths = input.get(_key(kind), [])
                words += ["--input", kind, *([paths] if isinstance(paths, str) else paths)]
            return words

        return artefact_inputs

    def datasets(self, rule: str) -> str:
        """The data sets whose files the rule makes, where several make files of one name."""
        names = self.config.datasets
        return "|".join(name for name in names if self.graph.serves(rule, name)) or NONE

    @property
    def uses_ranks(self) -> bool:
        """Whether any data set needs rules/ranks.smk."""
        return any(self.datasets(rule) != NONE for rule, step in STEPS.items() if step.mpi)

    # How they run. Derived, and so never compared.

    def device(self, wildcards, output) -> str:
        return self.config.device

    def data_dir(self, wildcards, output) -> str:
        return self.graph.data_dir

    def checkpoint_minutes(self, wildcards, output) -> float:
        return self.config.training.checkpoint_minutes

    def mirrors(self, wildcards, output) -> str:
        """As options. Which server a checked file came from changes no result."""
        names = self.config.datasets
        datasets = (config.dataset_settings(self.config, name) for name in names)
        return shlex.join(
            f"--mirror={dataset['source']}={url}"
            for dataset in datasets
            for url in dataset.get("mirrors", [])
        )

    @property
    def raw_pattern(self) -> str:
        """Path of a raw file."""
        return os.path.normpath(Path(self.graph.data_dir, "{raw_file}"))  # as in jobs' `raw`

    @property
    def downloads(self) -> list[str]:
        """What the network has of the data sets of all figures: raw files, and lists of corpora."""
        names = dict.fromkeys(name for names in self.config.figures.values() for name in names)
        jobs = [self.graph.job("dataset", dataset=name) for name in names]
        corpora = (path for job in jobs for path in job.inputs.get("corpus", ()))
        return [*(path for job in jobs for path in job.raw), *corpora]

    @property
    def raw_files(self) -> dict[str, str]:
        """Which source each raw file is of."""
        return {name: source for source, known in SOURCES.items() for name in known.raw_files}

    def source_of_raw_file(self, wildcards, output) -> str:
        return self.raw_files[wildcards.raw_file]

    @functools.cached_property
    def cores(self) -> int | None:
        """The cores of this machine; None where jobs run on others, or nobody said how many."""
        from snakemake.exceptions import WorkflowError

        with contextlib.suppress(WorkflowError):
            return self.workflow.cores
        return None

    def threads(self, rule: str) -> Callable:
        return lambda wildcards: self.graph.request(rule, wildcards).threads(self.cores)

    def resources(self, rule: str) -> dict[str, Any]:
        """Memory, time and, where a GPU can serve, GPUs of a rule's jobs; of MPI ranks their number
        and the memory of each."""
        step, request = STEPS[rule], functools.partial(self.graph.request, rule)

        def runtime(wildcards, threads, attempt) -> int:
            job = request(wildcards)
            gpu = step.gpu_as_cores if self._gpus(wildcards) else 0
            return job.minutes(job.ranks or gpu or threads, attempt)

        def mem_mb_per_cpu(wildcards, attempt) -> int:
            job = request(wildcards)
            return job.megabytes(attempt, job.ranks)

        return {
            "mem_mb": lambda wildcards, attempt: request(wildcards).megabytes(attempt),
            "runtime": runtime,
            **({"gpu": self._gpus} if "device" in step.unrecorded else {}),
            **({"tasks": lambda wildcards: request(wildcards).ranks} if step.mpi else {}),
            **({"mem_mb_per_cpu": mem_mb_per_cpu} if step.mpi else {}),
        }

    def _gpus(self, wildcards) -> int:
        """Here, a GPU runs one job at a time (profiles/default has one). A cluster is asked for one
        only with device: cuda, because its login node cannot tell what the nodes have."""
        device = self.config.device
        return int(device == "cuda" or (device == "auto" and bool(self.cores) and has_gpu()))

    # Artefacts.

    @property
    def drawings(self) -> Mapping[str, str]:
        """The artefacts of which anything is drawn, by the rules that do."""
        return {f"{DRAW}{name}": name for name, spec in SPECS.items() if spec.drawn}

    def files(self, rule: str, report: Callable) -> list:
        """Output of an artefact's rule: its files, those for the report flagged by `report`, and
        its provenance."""
        job = self.graph.job(rule)
        spec = SPECS[job.artefact]
        return [
            report(path, **self._in_report(spec, path))
            if Path(path).suffix in spec.reported
            else path
            for path in job.outputs
        ]

    def _in_report(self, spec: Spec, path: str) -> dict:
        def section(wildcards) -> str:  # asked for when Snakemake writes a report
            name = Path(path).stem
            self._refuse_in_report(name)
            if path == "results/fig2.png":
                caption.embed(self.graph.at(path), Path(SNAKEMAKE_FOLDER, "ntkcond/fig2.html"))
            return spec.section

        return {
            "caption": "../report/artefact.rst",
            "category": section,
            "labels": {"artefact": spec.title, "file": caption.FORMS[Path(path).suffix]},
        }

    def about(self, name: str) -> Callable:
        """What the report says of an artefact (workflow/report/artefact.rst)."""
        return lambda wildcards, output: caption.about(self.graph, name)

    # What is refused.

    @exit_on_mistake
    def on_start(self) -> None:
        """Before the first job."""
        run_lock.take()

    def on_error(self) -> None:
        """After the last job, if any failed or was stopped."""
        self.failed = True

    @functools.cached_property
    def options(self) -> argparse.Namespace:
        """The options of Snakemake's command line, without those of a profile; as if there were
        none, where it has another."""
        from snakemake.cli import get_argument_parser

        parser = get_argument_parser()
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            try:
                return parser.parse_known_args(sys.argv[1:])[0]
            except SystemExit:
                return parser.parse_known_args([])[0]

    def _refuse_what_is_out_of_date(self, target: Job) -> None:
        """Where Snakemake cannot see it: raises UserError. Not of rules that --forcerun names."""
        if not self.is_first or self.options.touch or self.options.forceall:
            return
        stale = dict[str, list[str]]()
        for job in self.freshness.survey(target):
            if job.rule in self._forced or self._metadata(job):
                continue
            if differences := self.freshness.differences(job):
                words = f"{self.graph.at(job.outputs[0])}: {in_words(differences)}"
                stale.setdefault(job.rule, []).append(words)
        if stale:
            first = "\n    ".join(paths[0] for paths in stale.values())
            rebuild = f"--forcerun {' '.join(stale)}"
            raise UserError(
                "results are out of date, and Snakemake has no metadata of them (.snakemake)."
                f" {sum(map(len, stale.values()))} in all, of each rule one:\n    {first}\n    To"
                f" rebuild them, add at the end of your command: {rebuild}\n    To keep them"
                f" as they are: --touch {rebuild}\n    (rules of a module have its prefix)"
            )

    @functools.cached_property
    def _forced(self) -> set[str]:
        """The rules that --forcerun names; those of a module without its prefix."""
        rules = sorted([*STEPS, *SPECS, *self.drawings], key=len)  # small_fig_speed: not speed
        of = {
            name: [r for r in rules if f"_{name}".endswith(f"_{r}")]
            for name in self.options.forcerun
        }
        return {found[-1] for found in of.values() if found}

    def _metadata(self, job: Job) -> Any:
        """Snakemake's, of the job's first output; None where it has none."""
        from snakemake.io import IOFile

        return self.workflow.persistence.metadata(IOFile(str(self.graph.at(job.outputs[0]))))

    @exit_on_mistake
    def _refuse_in_report(self, artefact: str) -> None:
        """Captions say the settings and code of today: raises UserError for older results."""
        jobs = self.freshness.survey(self.graph.artefact(artefact)[-1])
        if stale := {job.rule: None for job in jobs if self.freshness.differences(job)}:
            raise UserError(
                f"no report: {', '.join(stale)} would run first, for {artefact}. Give the same"
                " command without --report, then with it"
            )

    def job(self, rule: str, wildcards: Mapping[str, str]) -> Job:
        job = self.graph.job(rule, **dict(wildcards.items()))
        self.planned[job] = None
        return job


def _key(option: str) -> str:
    """The name in a rule of an input of a SPEC, such as sweep/width."""
    return option.replace("/", "_")


def _require_code(start: Path, version: str) -> None:
    """Raises UserError if the package that is installed is not the one of these rules, or if jobs
    would find no Python: theirs is that of Snakemake."""
    folder = Path(sys.executable).parent
    if not (folder / "python").exists():
        raise UserError(f"{folder} has no `python`. Use a virtual environment: `make .venv/.ready`")
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
    if PACKAGE.parent.name == "src":  # a clone, whose code environments of --sdm conda take
        path = filter(None, [os.environ.get("PYTHONPATH"), str(PACKAGE.parent)])
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    of_project = Path(start, "src/ntkcond")
    if of_project.is_dir() and not of_project.samefile(PACKAGE):
        raise UserError(
            f"this environment has the code of {PACKAGE.parents[1]}, not of"
            f" {of_project.parents[1]}. Run `make .venv/.ready` there, then `source"
            " .venv/bin/activate`"
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
