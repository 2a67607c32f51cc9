"""The jobs of a config: what each is made with, what it takes, and what it requests.

A job is a rule with its wildcards. No paths: those stand in workflow/rules alone.
"""

import functools
import json
import operator
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES, title
from ntkcond.pipeline import config as configs
from ntkcond.pipeline.registry import STEPS
from ntkcond.run.digests import Remembered, sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.record import (
    CODE,
    FORMAT,
    differences,
    input_name,
    is_result,
    modules_of,
    name_of,
    settings_in_words,
    short_digest,
    texts,
)
from ntkcond.settings import own_activations
from ntkcond.settings.fields import Config
from ntkcond.settings.memory import BY_HALF_FROM
from ntkcond.settings.step import DataSet, Request

OF_KERNELS = ("kernel", "spectrum", "sweep")
DRAW = "draw_"  # fig2's drawing is by the rule draw_fig2
REMEMBERED = Path(".snakemake/ntkcond")  # what one start of Snakemake tells the next


class Jobs:
    """start: where relative paths of the config begin. folder: a module's prefix, in which results/
    lies and jobs run."""

    def __init__(self, config: Config, start: Path | str, folder: Path | str = "") -> None:
        self.config, self.start, self.folder = config, start, Path(folder)
        self.data_dir = self.in_project(config.data_dir)
        self.sha256_of = Remembered(REMEMBERED / "sha256.json", "sha256", sha256_of)
        self.data = functools.cache(functools.partial(configs.data_set, config))
        self._computing = functools.cache(self._settings_of_step)

    # What it is made with.

    def texts(self, rule: str, wildcards: Mapping[str, str]) -> set[str]:
        """In words: width=512, ntk.empirical 3f2a91…, numpy 2.4.6, mine.npy 4e1c…."""
        words = {*settings_in_words(self.settings(rule, wildcards)), f"format {FORMAT}"}
        words.update(CODE.texts(*self.modules(rule, wildcards)))
        words.update(f"{name} {digest}" for name, digest in self.content(rule, wildcards).items())
        return words | {f"inputs {self.order(rule)}"} if rule in SPECS else words

    def changes(self, made_with: dict) -> list[str]:
        """What differs of a result with this record from what would be made today, in words."""
        rule, wildcards, before = made_with["rule"], made_with["wildcards"], texts(made_with)
        dataset = wildcards.get("dataset", "")
        if dataset and dataset not in self.config.datasets:
            return [f"the config has no data set {dataset}"]
        if rule in STEPS and set(wildcards) - {"dataset"} != STEPS[rule].named_by:
            return [f"its rule names a file by {' and '.join(sorted(STEPS[rule].named_by))} now"]
        folder = rule in STEPS and STEPS[rule].folder
        if folder and not Path(self.data_dir, folder(self.data(dataset))).exists():
            before = texts({**made_with, "inputs": {}})  # nobody can tell
        return differences(before, self.texts(rule, wildcards))

    def settings(self, rule: str, wildcards: Mapping[str, str]) -> dict[str, Any]:
        """The options of its step that determine the output; none that is not set."""
        if rule in STEPS:
            return self._computing(rule, *wildcards.items())
        name = rule.removeprefix(DRAW)
        settings = {"artefact": name, "about": self._about(name, rule == name)}
        if rule == name:
            values = {key: self._setting(name, at) for key, at in SPECS[name].settings.items()}
            settings["settings"] = values
        return {key: value for key, value in settings.items() if value}

    def modules(self, rule: str, wildcards: Mapping[str, str]) -> tuple[str, ...]:
        """Names of the modules, or parts of such, that make the output."""
        if rule not in STEPS:
            return modules_of(rule, rule.removeprefix(DRAW))
        return modules_of(rule, chosen=STEPS[rule].chosen(self.data(wildcards["dataset"])))

    def content(self, rule: str, wildcards: Mapping[str, str]) -> dict[str, str]:
        """Digests of files from outside, and the state of a folder: Snakemake looks at them only if
        their dates are newer than that of the result, and a copy may well be older. Not of raw
        files, whose checksums are published."""
        files = {}
        given = self.files(rule, wildcards) if rule in STEPS else {}
        for path in [*given.values(), *self.own_activations(rule, wildcards).values()]:
            try:
                files[input_name(path)] = self.sha256_of(path)[:32]
            except OSError as error:
                raise UserError(f"{path}: {error.strerror}. Correct its path") from None
        if rule in STEPS and (folder := STEPS[rule].folder):
            place = Path(self.data_dir, folder(self.data(wildcards["dataset"])))
            if place.exists():
                files[place.name] = configs.corpus_state(place)
        return files

    def files(self, rule: str, wildcards: Mapping[str, str]) -> dict[str, str]:
        """The user's own files that it takes, by option."""
        others = {key: value for key, value in wildcards.items() if key != "dataset"}
        files = STEPS[rule].files(self.data(wildcards["dataset"]), **others)
        return {option: self.in_project(path) for option, path in files.items()}

    def own_activations(self, rule: str, wildcards: Mapping[str, str]) -> dict[str, str]:
        """The files of the user's activations that it takes, by name: of a computing job those in
        its settings, of an artefact of jobs all."""
        own = self.config.own_activations
        if rule in STEPS:
            settings = self.settings(rule, wildcards) if own else {}
            names = {settings.get("activation"), *settings.get("activations", [])}
        else:
            spec = SPECS[rule.removeprefix(DRAW)]
            takes = spec.inputs or any("activations" in at for at in spec.settings.values())
            names = {*own} if takes else set()
        return {name: self.in_project(path) for name, path in own.items() if name in names}

    def command_line(self, rule: str, wildcards: Mapping[str, str]) -> list[str]:
        """The options of its step but for paths: --width=512, --seeds=1,32."""

        def text(value: object) -> str:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

        words = ["--wildcards", *(f"{key}={value}" for key, value in wildcards.items())]
        words += own_activations.options(self.own_activations(rule, wildcards))
        for key, value in self.settings(rule, wildcards).items():
            if isinstance(value, dict):
                words += [
                    f"--{key}={name}={json.dumps(value[name], ensure_ascii=False)}"
                    for name in value
                ]
            else:
                some = value if isinstance(value, list | tuple) else [value]
                words.append(f"--{key.replace('_', '-')}={','.join(map(text, some))}")
        return words

    # Artefacts.

    def inputs(self, name: str) -> dict[str, list[tuple[str, dict[str, str]]]]:
        """The jobs that an artefact's table takes, by the names of its SPEC. Raises UserError for a
        name that is none."""
        taken: dict[str, list[tuple[str, dict[str, str]]]] = {}
        for option in self.taken(name):
            rule, _, which = option.partition("/")
            step = STEPS.get(rule)
            if option == "artefacts":
                kept = self.upstream(*(one for one in self.config.keep or SPECS if one != name))
                taken[option] = [(one, {}) for one in SPECS if one in kept and SPECS[one].costs]
            elif option in SPECS:
                taken[option] = [(option, {})]
            elif not (step and step.jobs) or (step.lists and which not in step.lists):
                raise UserError(f"artefacts/{name}.py: SPEC.inputs: no artefact or rule {option!r}")
            elif figure := step.lists.get(which, SPECS[name].datasets):
                jobs = [
                    (self._serving(rule, dataset), {"dataset": dataset, **others})
                    for dataset in self.config.figures[figure]
                    for others in step.jobs(self.data(dataset), which)
                ]
                taken[option] = [job for i, job in enumerate(jobs) if job not in jobs[:i]]
            else:
                raise UserError(f"artefacts/{name}.py: SPEC.inputs: {option} needs SPEC.datasets")
        return taken

    def taken(self, name: str) -> list[str]:
        """The inputs of its SPEC; where it is of what a study keeps, without artefacts of other
        data sets alone."""
        every, own = list(SPECS[name].inputs), set[str]()
        if "keep.datasets" in SPECS[name].settings.values():
            own.update(self._kept_datasets(name))
        of = {option: set(self.datasets_of(option)) for option in every if own and option in SPECS}
        return [option for option in every if not of.get(option) or of[option] & own]

    def _kept_datasets(self, name: str) -> list[str]:
        """The data sets of all else that a study keeps; costs have none of their own."""
        others = (kept for kept in self.config.keep or () if kept != name)
        return self.datasets_of(*(one for one in others if "artefacts" not in SPECS[one].inputs))

    def upstream(self, *names: str) -> list[str]:
        """These artefacts and those that they take, inputs first."""
        found = dict[str, None]()
        for name in names:
            of_others = [option for option in self.taken(name) if option in SPECS]
            found |= dict.fromkeys([*self.upstream(*of_others), name])
        return list(found)

    def datasets_of(self, *names: str) -> list[str]:
        """The data sets of which these artefacts and all that they take are."""
        jobs = (jobs for one in self.upstream(*names) for jobs in self.inputs(one).values())
        return sorted({w["dataset"] for some in jobs for _, w in some if "dataset" in w})

    def order(self, name: str) -> str:
        """A digest of an artefact's inputs: Snakemake takes them for a set."""
        jobs = self.inputs(name).items()
        return short_digest(
            {option: [name_of(*job) for job in some] for option, some in jobs if some}
        )

    def _about(self, name: str, table: bool) -> dict:
        """For a figure to state: titles of its data sets, and their settings."""
        spec, shown = SPECS[name], set(self.datasets_of(name))
        if spec.datasets:
            shown |= set(self.config.figures[spec.datasets])
        about: dict = {"titles": {one: title(one) for one in sorted(shown)}} if shown else {}
        if spec.about and table:
            about["datasets"] = {one: self._described(one, spec.about) for one in sorted(shown)}
        return about

    def _setting(self, name: str, path: str) -> object:
        """training.rate_for: that setting of the config; datasets.*.source: that of each data set
        of the artefact; keep.datasets: `_kept_datasets`."""
        every, _, key = path.rpartition(".")
        if path == "keep.datasets":
            return self._kept_datasets(name)
        if every == "datasets.*":
            shown = self.config.figures[SPECS[name].datasets or ""]
            return {dataset: self.data(dataset).settings[key] for dataset in shown}
        try:
            return operator.attrgetter(path)(self.config)
        except AttributeError:
            raise UserError(f"SPEC.settings: the config has no setting {path}") from None

    def _described(self, dataset: str, kind: str) -> dict:
        data = self.data(dataset)
        values = {**data.settings, **vars(getattr(data, kind))}
        values.pop("mirrors", None)
        for key in values.keys() & {"file", "labels"}:  # which may lie elsewhere on another machine
            values[key] = Path(values[key]).name
        return values

    # Computing steps.

    def _settings_of_step(self, rule: str, *wildcards: tuple[str, str]) -> dict[str, Any]:
        others = dict(wildcards)
        settings = STEPS[rule].settings(self.data(others.pop("dataset")), **others)
        return {name: value for name, value in settings.items() if value is not None}

    def _serving(self, rule: str, dataset: str) -> str:
        """The rule that makes such files of a data set: spectrum, or scalapack_spectrum."""
        others = (other for other in STEPS if other.endswith(f"_{rule}"))
        return next((r for r in (rule, *others) if STEPS[r].serves(self.data(dataset))), rule)

    def served(self, rule: str) -> list[str]:
        """The data sets for which a computing rule has jobs."""
        return [name for name in self.config.datasets if STEPS[rule].serves(self.data(name))]

    def device(self, rule: str, wildcards: Mapping[str, str]) -> str:
        """auto, cpu or cuda. With auto, small kernels stay on the CPU, whose cores compute them
        side by side: one alone leaves most of a GPU idle."""
        device = self.config.device
        if device == "auto" and rule in OF_KERNELS:
            others = {key: value for key, value in wildcards.items() if key != "dataset"}
            largest = STEPS[rule].largest(self.data(wildcards["dataset"]), **others)
            if largest is not None and largest < BY_HALF_FROM:
                return "cpu"
        return device

    def request(self, rule: str, wildcards: Mapping[str, str]) -> Request:
        """What a job of a computing rule requests."""
        others = {key: value for key, value in wildcards.items() if key != "dataset"}
        return Request(STEPS[rule], self.data(wildcards["dataset"]), others)

    def raw(self, dataset: str) -> list[str]:
        """Paths of the raw files of a data set."""
        source: DataSet = self.data(dataset)
        files: Sequence[str] = SOURCES[source.settings["source"]].raw_files
        return [os.path.normpath(Path(self.data_dir, name)) for name in files]

    def in_project(self, path: str) -> str:
        """Absolute, or relative to where Snakemake runs, also with --directory."""
        place = configs.resolved(path, self.start)
        relative = os.path.relpath(place)
        if self.folder != Path() or is_result(relative):  # what steps take for a result of theirs
            return str(place.absolute())
        return str(place) if Path(path).expanduser().is_absolute() else relative


def settings_of(rule: str) -> Collection[str]:
    """Names of all settings that jobs of a computing rule may have: the options of its step."""
    import importlib

    return importlib.import_module(f"ntkcond.steps.{rule}").OPTIONS.settings
