"""The graph of jobs: which file comes from which, by which step, with which settings.

The rules' `input:` and the provenance that a result should have both come from here.
"""

import functools
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import title
from ntkcond.jobs.registry import STEPS
from ntkcond.jobs.settings import Config
from ntkcond.jobs.step import Request
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.plan import config as settings
from ntkcond.run.digests import Remembered, sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.record import input_name, is_result, options, record, short_digest
from ntkcond.run.seal import is_whole

DRAW = "draw_"  # fig2's drawing is by the rule draw_fig2
NONE = "(?!)"  # a pattern of nothing
RECORDED = Path(".snakemake/ntkcond")  # what one start of Snakemake tells the next


@dataclass(frozen=True, eq=False)
class Job:
    """How files are made. outputs: the first decides; inputs: by option of the step, results of
    other jobs, or files from outside. settings: its other options. chosen: modules that it picks by
    them. raw: files from outside that it finds by itself; folder: one whose state counts."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def artefact(self) -> str:
        """Whose numbers or drawing it makes; "" of a computing step."""
        name = self.rule.removeprefix(DRAW)
        return name if name in SPECS else ""

    @property
    def draws(self) -> bool:
        """Whether it draws an artefact, from its table."""
        return bool(self.artefact) and self.rule.startswith(DRAW)

    @property
    def modules(self) -> tuple[str, ...]:
        """That make the outputs."""
        step = "drawing" if self.draws else "table" if self.artefact else self.rule
        return (f"ntkcond.steps.{step}", *self.chosen)


class Graph:
    """Every job that the config asks for, or that a path names. left_out: data sets that a figure
    is drawn without. folder: a module's prefix, in which results/ lies and jobs run."""

    def __init__(
        self,
        config: Config,
        project: Path | str,
        left_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
        folder: Path | str = "",
    ) -> None:
        figures = {
            figure: [name for name in names if name not in left_out.get(figure, ())]
            for figure, names in config.figures.items()
        }
        self.config = replace(config, figures=figures)
        self.left_out = left_out
        self.project = project
        self.folder = Path(folder)
        self.data_dir = self._in_project(config.data_dir)
        self.sha256_of = Remembered(RECORDED / "sha256.json", "sha256", sha256_of)
        self.is_whole = Remembered(RECORDED / "whole.json", "whole", is_whole, from_size=10**6)
        self._jobs: dict[str, Job] = {}
        self._data = functools.cache(functools.partial(settings.data_set, self.config))

    def without(self, left_out: Mapping[str, Sequence[str]]) -> "Graph":
        """The same graph, with figures that lack data sets."""
        return Graph(self.config, self.project, left_out, self.folder)

    def job(self, rule: str, **wildcards: str) -> Job:
        """wildcards: in their order in the path. Of several rules for one path, that which serves
        the data set."""
        name = rule.removeprefix(DRAW)
        outputs: tuple[str, ...]
        if rule in STEPS:
            (rule,) = self._serving(STEPS[rule].path, wildcards["dataset"])
            outputs = (STEPS[rule].path.format(**wildcards),)
        else:
            suffixes = (".csv",) if rule == name else SPECS[name].drawn
            outputs = (*(f"results/{name}{suffix}" for suffix in suffixes), _sidecar(rule))
        if outputs[0] not in self._jobs:
            makes = (
                self._computing if rule in STEPS else self._table if rule == name else self._drawing
            )
            takes = makes(rule, **wildcards)
            self._jobs[outputs[0]] = Job(rule, wildcards, outputs, **takes)
        return self._jobs[outputs[0]]

    def maker(self, path: str) -> Job | None:
        """The job that makes a file; None of one from outside, or that nothing makes."""
        for rule, pattern in self._patterns.items():
            match = pattern.fullmatch(path)
            if match and self.serves(rule, match["dataset"]):
                return self.job(rule, **match.groupdict())
        parent, _, file = path.rpartition("/")
        if parent in ("results", "results/provenance"):
            for job in self.artefact(file.partition(".")[0].removeprefix(DRAW)):
                if path in job.outputs:
                    return job
        return None

    def artefact(self, name: str) -> list[Job]:
        """The jobs of an artefact: its table and, if anything is drawn, its drawing. None if there
        is no such artefact."""
        if name not in SPECS:
            return []
        rules = [name, f"{DRAW}{name}"] if SPECS[name].drawn else [name]
        return [self.job(rule) for rule in rules]

    @functools.cached_property
    def constraints(self) -> dict[str, str]:
        """A pattern of each wildcard: of names, or of a number."""
        steps = STEPS.values()
        names: dict[str, Iterable[str]] = {"dataset": self.config.datasets, "network": ACTIVATIONS}
        names |= {name: of(self.config) for step in steps for name, of in step.names.items()}
        numbers = dict.fromkeys((name for step in steps for name in step.wildcards), r"\d+")
        return numbers | {name: "|".join(values) or NONE for name, values in names.items()}

    @functools.cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        """A pattern of the files of each computing rule, with wildcards as groups."""

        def group(match: re.Match) -> str:
            return f"(?P<{match[1]}>{self.constraints[match[1]]})"

        paths = {rule: re.escape(step.path) for rule, step in STEPS.items()}
        return {rule: re.compile(re.sub(r"\\{(\w+)\\}", group, paths[rule])) for rule in paths}

    def _serving(self, path: str, dataset: str) -> list[str]:
        """The rules that make this path for the data set."""
        return [rule for rule in STEPS if STEPS[rule].path == path and self.serves(rule, dataset)]

    def serves(self, rule: str, dataset: str) -> bool:
        """Whether a computing rule has jobs for a data set."""
        return STEPS[rule].serves(self._data(dataset))

    def upstream(self, *targets: Job) -> list[Job]:
        """These jobs and all that they depend on, inputs first, each once."""
        jobs: dict[Job, None] = {}

        def add(job: Job) -> None:
            if job not in jobs:
                for maker in self.makers(job):
                    add(maker)
                jobs[job] = None

        for target in targets:
            add(target)
        return [*jobs]

    def makers(self, job: Job) -> list[Job]:
        """The jobs that make the inputs of a job."""
        paths = (path for files in job.inputs.values() for path in files)
        return [maker for path in paths if (maker := self.maker(path))]

    def at(self, path: str) -> Path:
        """Where a file of the graph is."""
        return Path(self.folder, path)

    def targets(self) -> list[str]:
        """What `snakemake` makes without a target: each artefact that its SPEC counts in."""
        jobs = [job for name, spec in SPECS.items() if spec.default for job in self.artefact(name)]
        return [output for job in jobs for output in job.outputs]

    def expected(self, job: Job, digest_of: Callable[[str], str]) -> dict:
        """The record that the job's outputs would get today. digest_of: of a result's record."""
        inputs = {
            option: {
                input_name(path): digest_of(path) if self.maker(path) else self._sha256(path)
                for path in paths
            }
            for option, paths in job.inputs.items()
            if paths
        }
        if job.folder:
            inputs[job.rule] = {job.folder.name: settings.corpus_state(job.folder)}
        return record(job.modules, job.settings, inputs)

    def _sha256(self, path: str) -> str:
        try:
            return self.sha256_of(self.at(path))[:32]
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}. Correct its path") from None

    def options(self, job: Job) -> list[str]:
        """Its settings as options of its step; an artefact's as JSON, one by one."""
        if not job.artefact:
            return options(job.settings)
        return [
            f"--{key}={name}={json.dumps(value, ensure_ascii=False)}"
            for key in ("settings", "about")
            for name, value in job.settings.get(key, {}).items()
        ]

    def code(self, job: Job) -> dict:
        """What is known of the record from the job's modules alone: code, versions, format."""
        return record(job.modules, {}, {})

    def content(self, job: Job) -> dict[str, str]:
        """Digests of files from outside; the state of a folder; the order of an artefact's inputs,
        which Snakemake takes for a set."""
        if job.artefact:
            return {"order of inputs": short_digest(dict(job.inputs))}
        paths = [path for files in job.inputs.values() for path in files if not self.maker(path)]
        files = {input_name(path): self._sha256(path) for path in paths}
        if job.folder:
            files[job.folder.name] = settings.corpus_state(job.folder)
        return files

    def request(self, rule: str, wildcards: Mapping[str, str]) -> Request:
        """What a job of a computing rule requests."""
        step, data = STEPS[rule], self._data(wildcards["dataset"])
        named = {name: wildcards[name] for name in step.wildcards if name != "dataset"}
        return Request(step, data, named)

    def _computing(self, rule: str, dataset: str, **wildcards: str) -> dict:
        step, data = STEPS[rule], self._data(dataset)
        inputs = {
            name: (STEPS[name].path.format(dataset=dataset, **wildcards),)
            for name in step.takes
            if STEPS[name].serves(data)
        }
        files = step.files(data, **wildcards)
        return {
            "inputs": {**inputs, **{key: (self._in_project(files[key]),) for key in files}},
            "settings": step.settings(data, **wildcards),
            "chosen": step.chosen(data),
            "raw": tuple(os.path.normpath(Path(self.data_dir, name)) for name in step.raw(data)),
            "folder": step.folder and Path(self.data_dir, step.folder(data)),
        }

    def _table(self, name: str) -> dict:
        spec = SPECS[name]
        inputs = {option: self._files(name, option) for option in spec.inputs}
        values = {key: self._setting(name, path) for key, path in spec.settings.items()}
        makers = [m for paths in inputs.values() for path in paths if (m := self.maker(path))]
        shown = {job.wildcards["dataset"] for job in makers if "dataset" in job.wildcards}
        shown |= set(self._shown(name)) if spec.datasets else set()
        missing = {name for figure in self.lists(name) for name in self.left_out.get(figure, ())}
        missing.update(*(job.settings.get("about", {}).get("missing", []) for job in makers))
        about: dict = {}
        if shown | missing:
            about["titles"] = {name: title(name) for name in sorted(shown | missing)}
        if missing:
            about["missing"] = sorted(missing)
        if spec.about:
            about["datasets"] = {name: self._described(name, spec.about) for name in sorted(shown)}
        stated = {key: said for key, said in (("settings", values), ("about", about)) if said}
        chosen = (f"ntkcond.artefacts.{name}:table",)
        return {"inputs": inputs, "settings": {"artefact": name, **stated}, "chosen": chosen}

    def _drawing(self, rule: str) -> dict:
        name = rule.removeprefix(DRAW)
        about = self.job(name).settings.get("about", {})
        said = {key: about[key] for key in ("titles", "missing") if key in about}
        return {
            "inputs": {"table": (f"results/{name}.csv",)},
            "settings": {"artefact": name, **({"about": said} if said else {})},
            "chosen": (f"ntkcond.artefacts.{name}:drawing",),
        }

    def _files(self, name: str, option: str) -> tuple[str, ...]:
        if option == "artefacts":
            return tuple(_sidecar(other) for other, spec in SPECS.items() if spec.costs)
        if option in SPECS and option != name:
            return (f"results/{option}.csv",)
        rule, _, which = option.partition("/")
        step = STEPS.get(rule)
        if not (step and step.jobs) or (step.lists and which not in step.lists):
            raise UserError(f"artefacts/{name}.py: SPEC.inputs: no artefact or rule {option!r}")
        figure = step.lists.get(which, SPECS[name].datasets)
        if not figure:
            raise UserError(f"artefacts/{name}.py: SPEC.inputs: {option} needs SPEC.datasets")
        paths = [
            step.path.format(dataset=dataset, **wildcards)
            for dataset in self.config.figures[figure]
            for wildcards in step.jobs(self._data(dataset), which)
        ]
        return tuple(dict.fromkeys(paths))  # each once

    def lists(self, name: str) -> set[str]:
        """The entries of `figures` that an artefact takes data sets of, itself."""
        spec = SPECS[name]
        options = (option.partition("/") for option in spec.inputs)
        lists = (STEPS[rule].lists.get(which) for rule, _, which in options if rule in STEPS)
        return {figure for figure in (*lists, spec.datasets) if figure}

    def _shown(self, name: str) -> Sequence[str]:
        return self.config.figures[SPECS[name].datasets or ""]

    def _setting(self, name: str, path: str) -> object:
        """training.rate_for: that setting of the config; datasets.*.source: that of each data set
        of the artefact."""
        every, _, key = path.rpartition(".")
        if every == "datasets.*":
            return {dataset: self._data(dataset).settings[key] for dataset in self._shown(name)}
        try:
            return operator.attrgetter(path)(self.config)
        except AttributeError:
            raise UserError(f"SPEC.settings: the config has no setting {path}") from None

    def _described(self, dataset: str, kind: str) -> dict:
        """Settings of a data set and of its experiment or training, for a figure to state."""
        data = self._data(dataset)
        values = {**data.settings, **vars(getattr(data, kind))}
        values.pop("mirrors", None)
        for key in values.keys() & {"file", "labels"}:  # which may lie elsewhere on another machine
            values[key] = Path(values[key]).name
        return values

    def _in_project(self, path: str) -> str:
        """Absolute, or relative to where Snakemake runs, also with --directory."""
        place = settings.resolved(path, self.project)
        relative = os.path.relpath(place)
        if self.folder != Path() or is_result(relative):  # what steps take for a result of theirs
            return str(place.absolute())
        return str(place) if Path(path).expanduser().is_absolute() else relative


def _sidecar(rule: str) -> str:
    return f"results/provenance/{rule}.json"
