"""What the rules ask: of the config, of steps and artefacts, of the machine.

The rules are in workflow/rules, and Snakemake decides what runs: it compares each job's params with
those of the last time, as sets of texts. `made_with` gives each text as a param of its own, such as
width=512, ntk.empirical 3f2a91 and numpy 2.4.6; the same texts are in the record of each file
(`ntkcond.run.record`). Functions with `output` or `input` among their parameters are derived,
as Snakemake calls it, and not compared.

Where Snakemake has no metadata of a file (.snakemake is lost, results that travelled), the file's
record is compared instead, and one that is out of date is refused, with the commands that rebuild
or keep it. Beyond Snakemake's documentation (tests/pipeline/test_attributes.py):

- `persistence.metadata`: what Snakemake has noted of a file;
- `snakemake.cli.get_argument_parser`: what its command line says.
"""

import argparse
import ast
import atexit
import contextlib
import dataclasses
import functools
import importlib.metadata
import io
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.pipeline import caption, config, last_words, run_lock
from ntkcond.pipeline.jobs import DRAW, REMEMBERED, Jobs, settings_of
from ntkcond.pipeline.last_words import some
from ntkcond.pipeline.registry import STEPS
from ntkcond.run.digests import Remembered
from ntkcond.run.errors import UserError
from ntkcond.run.machine import has_gpu
from ntkcond.run.ranks import require_mpi
from ntkcond.run.record import CODE, FORMAT, agrees, modules_of, read, upstream
from ntkcond.run.seal import is_whole
from ntkcond.settings.command import STARTED
from ntkcond.steps.architecture import architectures
from ntkcond.steps.spectrum import makes_kernels
from ntkcond.steps.speed import losses

PACKAGE = Path(__file__).parents[1]
FIRST = "NTKCOND_FIRST"  # in the environment: the Snakemake that a person started
NONE = "(?!)"  # a pattern of nothing
KERNEL = "results/kernels/{dataset}/{network}/depth{depth}.h5"
OWN = ("file", "labels", "corpus")  # inputs that not all jobs of a rule have


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


def say_last(ours: "Workflow", folder: Path, since: float) -> None:
    """When this process ends. Snakemake has left the folder of --directory by then."""
    with contextlib.suppress(UserError, OSError), contextlib.chdir(folder):
        for line in ours.closing_lines(since):
            print(line, file=sys.stderr)
    if ours.stale:
        sys.stdout.flush()
        os._exit(1)


class Workflow:
    """For the rules of one workflow. workflow, config: Snakemake's globals; version: of ntkcond
    that the rules are of; project: the folder of config.yaml, in which relative paths start. None
    for rules read from elsewhere: their config is over the default one, and paths start here.
    given: settings of the command line."""

    specs: Mapping[str, Spec] = SPECS
    drawings: Mapping[str, str] = {f"{DRAW}{n}": n for n, spec in SPECS.items() if spec.drawn}

    @exit_on_mistake
    def __init__(
        self, workflow, config_: dict, version: str, project: Path | None, given: dict | None = None
    ) -> None:
        self.workflow = workflow
        self.given = given or {}
        self.failed = False  # as far as Snakemake says so, which it does not tell a module
        self.start = project or Path()
        self.asked: dict[str, tuple[str, Mapping[str, str]]] = {}  # jobs, by their first output
        self.stale: dict[str, list[str]] = {}  # by rule: what is out of date, and how
        require_code(self.start, version)
        os.environ["NTKCOND_SNAKEMAKE"] = str(os.getpid())
        me = f"{socket.gethostname()} {os.getpid()}"
        self.is_first = os.environ.setdefault(FIRST, me) == me
        if self.is_first:
            os.environ[STARTED] = str(time.time())
        config.complete(config_, from_default=project is None)
        self.config = config.check(config_, self.start, scan=self.is_first)
        if not self.is_first and self.config.device == "auto":  # a GPU may be someone else's
            self.config = dataclasses.replace(self.config, device="cpu")
        self.jobs = Jobs(self.config, self.start)
        self.is_whole = Remembered(REMEMBERED / "whole.json", "whole", is_whole, from_size=10**6)
        self.uses_ranks = any(self.jobs.served(rule) for rule in STEPS if STEPS[rule].mpi)
        if self.uses_ranks:
            require_mpi()

    def settle(self, a_result: str) -> None:
        """Where results lie: of a module, below its prefix. a_result: by Snakemake's name."""
        self.jobs = Jobs(self.config, self.start, a_result.partition("results/")[0])
        if self.is_first:
            import h5py  # noqa: F401  it ends after what is registered later

            atexit.register(say_last, self, Path.cwd(), time.time())

    @property
    def constraints(self) -> dict[str, str]:
        """A pattern of each wildcard."""
        names = {
            "dataset": self.config.datasets,
            "network": ACTIVATIONS,
            "architecture": architectures(self.config),
            "loss": losses(self.config),
            "sweep": STEPS["sweep"].lists,
        }
        numbers = dict.fromkeys(("depth", "width", "seed"), r"\d+")
        return numbers | {name: "|".join(words) or NONE for name, words in names.items()}

    def datasets(self, rule: str) -> str:
        """A pattern of the data sets whose files the rule makes."""
        return "|".join(self.jobs.served(rule)) or NONE

    # What jobs depend on: compared by Snakemake.

    def made_with(self, rule: str) -> list[Callable]:
        """A param for each text. A job's own Snakemake compares nothing, and has none."""
        if not self.is_first:
            return []
        if rule not in STEPS:
            return [_always(text) for text in sorted(self.jobs.texts(rule, {}))]
        same = {*CODE.texts(*modules_of(rule)), f"format {FORMAT}"}
        names = self.config.datasets
        modules = (modules_of(rule, chosen=STEPS[rule].chosen(self.jobs.data(d))) for d in names)
        files = len(OWN) + len(self.config.own_activations)
        most = max(len({*CODE.texts(*chosen)} - same) for chosen in modules) + files

        def setting(name: str) -> Callable:
            def of_job(wildcards) -> str:
                found = (t for t in self.texts(rule, wildcards) if t.startswith(f"{name}="))
                return next(found, "")

            return exit_on_mistake(of_job)

        def other(i: int) -> Callable:  # of modules that it picks, of the user's files
            def of_job(wildcards) -> str:
                others = (
                    t for t in self.texts(rule, wildcards) - same if " " in t and "=" not in t
                )
                return "".join(sorted(others)[i : i + 1])

            return exit_on_mistake(of_job)

        settings = map(setting, settings_of(rule))
        return [*settings, *map(_always, sorted(same)), *map(other, range(most))]

    def texts(self, rule: str, wildcards: Mapping[str, str]) -> set[str]:
        return self._texts(rule, *dict(wildcards.items()).items())

    @functools.cached_property
    def _texts(self) -> Callable[..., set[str]]:
        return functools.cache(lambda rule, *wildcards: self.jobs.texts(rule, dict(wildcards)))

    # What they take, and their command lines.

    def own_files(self, rule: str) -> Callable:
        """Inputs that not all jobs of a computing rule have: the user's own files, raw files, the
        list of a corpus, a kernel."""

        def own_files(wildcards) -> dict[str, Any]:
            files: dict[str, Any] = dict(self.jobs.files(rule, dict(wildcards.items())))
            if rule == "dataset" and (raw := self.jobs.raw(wildcards.dataset)):
                files["raw"] = raw
            if rule == "dataset" and wildcards.dataset in self.jobs.served("corpus"):
                files["corpus"] = f"results/corpora/{wildcards.dataset}.h5"
            if rule == "spectrum" and not makes_kernels(self.jobs.data(wildcards.dataset)):
                files["kernel"] = KERNEL.format(**wildcards)
            return files

        return exit_on_mistake(own_files)

    @exit_on_mistake
    def inputs(self, name: str, rules) -> dict[str, list[str]]:
        """The files that an artefact's table takes: the rules' own output, of all its jobs."""

        def path(rule: str, wildcards: Mapping[str, str]) -> str:
            if rule in SPECS:
                return f"results/{rule}.csv"
            _, results, rest = str(getattr(rules, rule).output[0]).rpartition("results/")
            return f"{results}{rest}".format(**wildcards)  # a module's prefix is put before it

        files = {
            _key(option): [path(*job) for job in jobs]
            for option, jobs in self.jobs.inputs(name).items()
        }
        if "artefacts" in files:
            files["artefacts"] = [_sidecar(rule) for rule, _ in self.jobs.inputs(name)["artefacts"]]
        return files

    def options(self, rule: str) -> Callable:
        """The command line of a job's step but for paths that all jobs of the rule have."""

        def options(wildcards, input, output) -> list[str]:
            job = dict(wildcards.items())
            self.asked[output[0]] = rule, job
            self._look_at(rule, job, input, output)
            words = self.jobs.command_line(rule, job)
            files = dict(input.items())
            words += [f"--{key}={files[key]}" for key in (*OWN, "kernel") if key in files]
            for option in self.jobs.taken(rule) if rule in SPECS else ():
                paths = input.get(_key(option), [])
                words += ["--input", option, *([paths] if isinstance(paths, str) else paths)]
            return words

        return exit_on_mistake(options)

    # How they run. Derived, and so never compared.

    def device(self, rule: str) -> Callable:
        return lambda wildcards, output: self.jobs.device(rule, dict(wildcards.items()))

    def data_dir(self, wildcards, output) -> str:
        return self.jobs.data_dir

    def checkpoint_minutes(self, wildcards, output) -> float:
        return self.config.training.checkpoint_minutes

    def mirrors(self, wildcards, output) -> str:
        """As options. Which server a checked file came from changes no result."""
        datasets = (self.jobs.data(name).settings for name in self.config.datasets)
        return shlex.join(
            f"--mirror={dataset['source']}={url}"
            for dataset in datasets
            for url in dataset.get("mirrors", [])
        )

    @property
    def raw_pattern(self) -> str:
        """Path of a raw file."""
        return os.path.normpath(Path(self.jobs.data_dir, "{raw_file}"))

    @property
    def downloads(self) -> list[str]:
        """What the network has of the data sets of all figures: raw files, and lists of corpora."""
        names = dict.fromkeys(name for names in self.config.figures.values() for name in names)
        corpora = [
            f"results/corpora/{name}.h5" for name in names if name in self.jobs.served("corpus")
        ]
        return [*(path for name in names for path in self.jobs.raw(name)), *corpora]

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
        return lambda wildcards: self._request(rule, wildcards).threads(self.cores)

    def memory(self, rule: str, each: bool = False) -> Callable:
        """`mem_mb`, more at each attempt; or of each rank."""

        def megabytes(wildcards, attempt) -> int:
            job = self._request(rule, wildcards)
            return job.megabytes(attempt, job.ranks if each else 1)

        return megabytes

    @staticmethod
    def minutes(first: int) -> Callable:
        """`runtime`, twice as long at each further attempt."""
        return lambda wildcards, attempt: first * 2 ** (attempt - 1)

    def ranks(self, rule: str) -> Callable:
        return lambda wildcards: self._request(rule, wildcards).ranks

    def _request(self, rule: str, wildcards):
        return self.jobs.request(rule, dict(wildcards.items()))

    def gpu(self, rule: str) -> Callable:
        """Here, a GPU runs one job at a time (profiles/default has one). A cluster is asked for one
        only with device: cuda, because its login node cannot tell what the nodes have."""

        def gpus(wildcards) -> int:
            device = self.jobs.device(rule, dict(wildcards.items()))
            return int(device == "cuda" or (device == "auto" and bool(self.cores) and has_gpu()))

        return gpus

    # Artefacts.

    def targets(self, *names: str) -> list[str]:
        """All files of these artefacts."""
        rules = (rule for name in names for rule in (name, f"{DRAW}{name}"))
        return [path for rule in rules for path in outputs_of(rule)]

    @property
    def default(self) -> list[str]:
        """What `snakemake` makes without a target."""
        return self.targets(*(name for name, spec in SPECS.items() if spec.default))

    @property
    def kept(self) -> list[str]:
        """The files that a study keeps."""
        return [path for name in self.config.keep for path in kept_files(name)]

    @property
    def samples(self) -> list[str]:
        """The samples of which these are."""
        return [f"results/datasets/{name}.h5" for name in self.jobs.datasets_of(*self.config.keep)]

    def files(self, rule: str, report: Callable) -> list:
        """Output of an artefact's rule: its files, those for the report flagged by `report`, and
        its provenance."""
        spec = SPECS[rule.removeprefix(DRAW)]
        return [
            report(path, **self._in_report(spec, path))
            if Path(path).suffix in spec.reported
            else path
            for path in outputs_of(rule)
        ]

    def _in_report(self, spec: Spec, path: str) -> dict:
        def section(wildcards) -> str:  # asked for when Snakemake writes a report
            self._refuse_in_report(path)
            if path == "results/fig2.png":
                picture = Path(self.jobs.folder, path)
                caption.embed(picture, REMEMBERED / "fig2.html")
            return spec.section

        return {
            "caption": "../report/artefact.rst",
            "category": section,
            "labels": {"artefact": spec.title, "file": caption.FORMS[Path(path).suffix]},
        }

    def about(self, name: str) -> Callable:
        """What the report says of an artefact (workflow/report/artefact.rst)."""
        return lambda wildcards, output: caption.about(name, self._upstream(f"results/{name}.csv"))

    # What is refused.

    @exit_on_mistake
    def on_start(self) -> None:
        """Before the first job."""
        if self.stale:
            sys.exit(1)  # `say_last` has the words
        run_lock.take()

    def on_error(self) -> None:
        """After the last job, if any failed or was stopped."""
        self.failed = True

    @functools.cached_property
    def command_line(self) -> argparse.Namespace:
        """The options of Snakemake's command line, without those of a profile; as if there were
        none, where it has another."""
        from snakemake.cli import get_argument_parser

        parser = get_argument_parser()
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            try:
                return parser.parse_known_args(sys.argv[1:])[0]
            except SystemExit:
                return parser.parse_known_args([])[0]

    def _look_at(self, rule: str, wildcards: Mapping[str, str], input, output) -> None:
        """Whether a file is up to date of which Snakemake has no metadata. Not of rules that
        --forcerun names."""
        given = self.command_line
        if not self.is_first or given.touch or given.forceall or rule in self._forced:
            return
        place = Path(output[0])
        known = self.metadata(place) if place.exists() else None
        if known and any(text.startswith("[") for text in known.params or ()):
            self.stale.setdefault(rule, []).append(f"{place}: made by ntkcond 0.2.0")
        if known or not place.exists():
            return
        made_with = read(place, self.is_whole)
        if made_with is None:
            words = ["damaged, or without provenance"]
        else:
            words = self.jobs.changes(made_with)
            words = words or [f"{path} changed" for path in input if not agrees(made_with, path)]
        if words:
            self.stale.setdefault(rule, []).append(f"{place}: {some(words)}")

    @functools.cached_property
    def _forced(self) -> set[str]:
        """The rules that --forcerun names; those of a module without its prefix."""
        rules = sorted([*STEPS, *SPECS, *self.drawings], key=len)  # small_fig_speed: not speed
        names = self.command_line.forcerun
        of = ([r for r in rules if f"_{name}".endswith(f"_{r}")] for name in names)
        return {found[-1] for found in of if found}

    def closing_lines(self, since: float) -> Iterator[str]:
        """The last lines of a run that began then."""
        if self.stale:
            return last_words.refusal(self.stale)
        if self.command_line.dryrun:
            return last_words.reasons(self._asked_before())
        return last_words.failure(Path(self.jobs.folder, "results/logs"), since, self.failed)

    def _asked_before(self) -> Iterator[tuple[str, Iterable[str], set[str]]]:
        """The rule of each job that has run before, and its texts then and now."""
        for path, (rule, wildcards) in self.asked.items():
            known = self.metadata(path)
            if known and known.params is not None and Path(path).exists():
                before = filter(None, map(ast.literal_eval, known.params))
                yield rule, before, self.texts(rule, wildcards)

    def metadata(self, path: Path | str) -> Any:
        """Snakemake's, of a file; None where it has none."""
        from snakemake.io import IOFile

        return self.workflow.persistence.metadata(IOFile(str(path)))

    def _upstream(self, path: str) -> dict[str, dict]:
        """The records of a result and of all that it was made of and that is not gone."""
        return upstream(path, self.jobs.folder)

    @exit_on_mistake
    def _refuse_in_report(self, path: str) -> None:
        """Captions say the settings and code of today: raises UserError for older results."""
        for name, made_with in self._upstream(path).items():
            if words := self.jobs.changes(made_with):
                raise UserError(
                    f"no report: {name} is out of date ({some(words)}). Give the same"
                    " command without --report, then with it"
                )


def outputs_of(rule: str) -> list[str]:
    """The files of an artefact's rule; none of a drawing where nothing is drawn."""
    name = rule.removeprefix(DRAW)
    suffixes = (".csv",) if rule == name else SPECS[name].drawn
    return [
        *(f"results/{name}{suffix}" for suffix in suffixes),
        *([_sidecar(rule)] if suffixes else []),
    ]


def kept_files(name: str) -> list[str]:
    """The files of an artefact that a study keeps: of claims the table, which the site shows."""
    suffixes = [".csv"] if name == "claims" else SPECS[name].files
    return [f"results/{name}{suffix}" for suffix in suffixes]


def _sidecar(rule: str) -> str:
    return f"results/provenance/{rule}.json"


def _key(option: str) -> str:
    """The name in a rule of an input of a SPEC, such as sweep/width."""
    return option.replace("/", "_")


def _always(text: str) -> Callable:
    """A param that is no pattern: it may have braces."""
    return lambda wildcards: text


def require_code(start: Path, version: str) -> None:
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
