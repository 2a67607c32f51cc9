"""The graph of jobs: which file comes from which, by which step, with which settings.

The one description of it: the rules' `input:` and the provenance that a result should have both
come from here. An artefact says in its SPEC what it takes.
"""

import functools
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES, module_name, title
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ON_IMAGES
from ntkcond.plan import config as settings
from ntkcond.run.digests import Remembered, sha256_of
from ntkcond.run.errors import UserError
from ntkcond.run.record import input_name, record
from ntkcond.run.seal import is_whole

PATTERNS = {  # of the output of each computing rule
    "corpus": "results/corpora/{dataset}.h5",
    "dataset": "results/datasets/{dataset}.h5",
    "kernel": "results/kernels/{dataset}/{network}/depth{depth}.h5",
    "spectrum": "results/spectra/{dataset}/{network}/depth{depth}.h5",
    "scalapack_spectrum": "results/spectra/{dataset}/{network}/depth{depth}.h5",
    "closest_pair": "results/angles/{dataset}/{network}/depth{depth}.h5",
    "sweep": "results/sweeps/{sweep}/{dataset}/{network}.h5",
    "architecture": "results/architectures/{dataset}/{architecture}.h5",
    "descent": "results/descent/{dataset}/width{width}.h5",
    "speed": "results/speed/{dataset}/{loss}/width{width}.h5",
    "sgd": "results/training/{dataset}/depth{depth}.h5",
}
# With `{sweep}` and so on as groups; a name of a data set or network has no slash.
_REGEXES = {
    rule: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern)))
    for rule, pattern in PATTERNS.items()
}
RECORDED = Path(".snakemake/ntkcond")  # what one start of Snakemake tells the next


@dataclass(frozen=True, eq=False)
class Job:
    """How files are made. outputs: the first decides; inputs: by option of the step, results of
    other jobs, or files from outside. settings: the step's other options. chosen: modules that the
    step picks by them. raw: files from outside that the step finds by itself."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Dotted names of the modules that make the outputs."""
        step = "artefact" if self.rule in SPECS else self.rule
        return (f"ntkcond.steps.{step}", *self.chosen)


class Graph:
    """Every job that the config asks for, or that a path names. left_out: for a figure, those of
    its data sets that it is drawn without (`ntkcond.plan.missing`). folder: a module's
    prefix, in which results/ lies and jobs run."""

    def __init__(
        self,
        config: dict,
        project: Path | str,
        left_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
        folder: Path | str = "",
    ) -> None:
        figures = {
            figure: [name for name in names if name not in left_out.get(figure, ())]
            for figure, names in config["figures"].items()
        }
        self.config = {**config, "figures": figures}
        self.left_out = left_out
        self.project = project
        self.folder = Path(folder)
        self.data_dir = self._in_project(config["data_dir"])
        self.sha256_of = Remembered(RECORDED / "sha256.json", "sha256", sha256_of)
        self.is_whole = Remembered(RECORDED / "whole.json", "whole", is_whole, from_size=10**6)
        self._jobs: dict[str, Job] = {}

    def without(self, left_out: Mapping[str, Sequence[str]]) -> "Graph":
        """The same, with figures that lack data sets."""
        return Graph(self.config, self.project, left_out, self.folder)

    def job(self, rule: str, **wildcards: str) -> Job:
        """The job of a rule for these wildcards, in their order in the path; of a spectrum by the
        rule of its data set's engine."""
        if rule == "spectrum":
            rule = settings.spectrum_rule(self.config, wildcards["dataset"])
        if rule in SPECS:
            outputs = (*(f"results/{rule}{s}" for s in SPECS[rule].files), _sidecar(rule))
        else:
            outputs = (PATTERNS[rule].format(**wildcards),)
        if outputs[0] not in self._jobs:
            made = self._artefact(rule) if rule in SPECS else getattr(self, f"_{rule}")(**wildcards)
            self._jobs[outputs[0]] = Job(rule, wildcards, outputs, **made)
        return self._jobs[outputs[0]]

    def maker(self, path: str) -> Job | None:
        """The job that makes a file; None of one from outside, or that nothing makes."""
        for rule, pattern in _REGEXES.items():
            if (found := pattern.fullmatch(path)) and self._knows(**found.groupdict()):
                return self.job(rule, **found.groupdict())
        parent, _, name = path.rpartition("/")
        rule = name.partition(".")[0]
        if rule in SPECS and parent in ("results", "results/provenance"):
            artefact = self.job(rule)
            return artefact if path in artefact.outputs else None
        return None

    def maker_of(self, result: str) -> Job:
        """`maker` of a file that a rule makes."""
        job = self.maker(result)
        assert job, f"no rule makes {result}"
        return job

    def _knows(
        self, dataset: str, network: str = "relu", depth: str = "0", sweep: str = "width",
        architecture: str = "", width: str = "1", loss: str = "",
    ) -> bool:  # fmt: skip
        """Whether the config has what the wildcards name."""
        known = dataset in self.config["datasets"] and network in ACTIVATIONS
        known = known and architecture in ("", *settings.architectures(self.config))
        known = known and loss in ("", *settings.losses(self.config))
        known = known and depth.isdecimal() and width.isdecimal()
        return known and sweep in settings.SWEEPS

    def upstream(self, job: Job) -> Iterator[Job]:
        """The job and all that it depends on, inputs first, each once."""
        waiting = [job]
        found: dict[tuple[str, ...], Job] = {}
        while waiting:
            here = waiting.pop()
            found.pop(here.outputs, None)  # later than what was found to need it
            found[here.outputs] = here
            makers = (self.maker(path) for paths in here.inputs.values() for path in paths)
            waiting += [maker for maker in makers if maker]
        yield from reversed(found.values())

    def at(self, path: str) -> Path:
        """Where a file of the graph is."""
        return Path(self.folder, path)

    def name(self, path: str) -> str:
        """Of a file, by where it is; "" outside the graph's folder."""
        place = Path(path)
        return str(place.relative_to(self.folder)) if place.is_relative_to(self.folder) else ""

    def targets(self) -> list[str]:
        """What `snakemake` makes without a target: each artefact that its SPEC counts in."""
        jobs = [self.job(name) for name, spec in SPECS.items() if spec.default]
        return [output for job in jobs for output in job.outputs]

    def expected(self, job: Job, digest_of: Callable[[str], str]) -> dict:
        """The record that the job's outputs would get today. digest_of: of a result's record."""

        def digest(path: str) -> str:
            if self.maker(path):
                return digest_of(path)
            try:
                return self.sha256_of(self.at(path))[:32]
            except OSError as error:
                raise UserError(f"{path}: {error.strerror}. Correct its path") from None

        inputs = {
            option: {input_name(path): digest(path) for path in paths}
            for option, paths in job.inputs.items()
            if paths
        }
        if job.rule == "corpus":
            folder = self._corpus_folder(job.wildcards["dataset"])
            inputs["corpus"] = {folder.name: settings.corpus_state(folder)}
        return record(job.modules, job.settings, inputs)

    def command_line(
        self, job: Job, unrecorded: Mapping[str, object] = MappingProxyType({})
    ) -> str:
        """Options of the step: settings (--hold-out=360 --scale=-1,1; an artefact's as JSON),
        inputs where they differ from job to job, and those that change no result."""
        if job.rule in SPECS:
            words = [job.rule]
            for key in ("settings", "about"):
                if key in job.settings:
                    words += [f"--{key}", json.dumps(job.settings[key], ensure_ascii=False)]
            for name, paths in job.inputs.items():
                words += ["--input", name, *paths]
            values = dict(unrecorded)
        else:
            words, values = [], {**job.settings, **job.inputs, **unrecorded}
        for name, value in values.items():
            listed = value if isinstance(value, list | tuple) else [value]
            words.append(f"--{name.replace('_', '-')}={','.join(map(str, listed))}")
        return shlex.join(words)

    # The computing rules, one method each: what their jobs take.

    def _corpus(self, dataset: str) -> dict:
        return {"settings": {"subset": self._dataset_settings(dataset)["subset"]}}

    def _dataset(self, dataset: str) -> dict:
        """A user's own files enter by content: Snakemake looks at it only if their dates are newer
        than that of the result, and a copy may well be older. Mirrors change nothing."""
        values = self._dataset_settings(dataset)
        source = SOURCES[values["source"]]
        values.pop("mirrors", None)
        inputs = {
            key: (self._in_project(values.pop(key)),) for key in ("file", "labels") if key in values
        }
        if source.corpus:
            inputs["corpus"] = (PATTERNS["corpus"].format(dataset=dataset),)
        raw = tuple(os.path.normpath(Path(self.data_dir, name)) for name in source.raw_files)
        chosen = (module_name(values["source"]),)
        return {"inputs": inputs, "settings": values, "chosen": chosen, "raw": raw}

    def _kernel(self, dataset: str, network: str, depth: str) -> dict:
        values = self._network_settings(dataset, network, depth)
        values["block"] = settings.experiment(self.config, dataset)["block"]
        return {"inputs": self._samples(dataset), "settings": values}

    def _spectrum(self, dataset: str, network: str, depth: str) -> dict:
        kernel = PATTERNS["kernel"].format(dataset=dataset, network=network, depth=depth)
        inputs = {**self._samples(dataset), "kernel": (kernel,)}
        values = self._network_settings(dataset, network, depth)
        if settings.experiment(self.config, dataset)["prove_smallest"]:
            values["prove_smallest"] = True
        return {"inputs": inputs, "settings": values}

    def _scalapack_spectrum(self, dataset: str, network: str, depth: str) -> dict:
        """The same without a kernel file."""
        values = self._spectrum(dataset, network, depth)["settings"]
        values["block"] = settings.experiment(self.config, dataset)["block"]
        return {"inputs": self._samples(dataset), "settings": values}

    def _closest_pair(self, dataset: str, network: str, depth: str) -> dict:
        values = self._network_settings(dataset, network, depth)
        return {"inputs": self._samples(dataset), "settings": values}

    def _sweep(self, sweep: str, dataset: str, network: str) -> dict:
        values = settings.sweep(self.config, sweep, dataset, network)
        return {
            "inputs": self._samples(dataset),
            "settings": {"activation": network, **values},
        }

    def _architecture(self, dataset: str, architecture: str) -> dict:
        values = settings.architecture(self.config, dataset)
        if architecture == "biases":
            values["bias"] = self.config["architectures"]["bias"]
        inputs = self._samples(dataset)
        file = settings.architectures(self.config)[architecture]
        if file:
            inputs["file"] = (self._in_project(file),)
        return {"inputs": inputs, "settings": {"architecture": architecture, **values}}

    def _descent(self, dataset: str, width: str) -> dict:
        values = settings.descent(self.config, dataset, int(width))
        return {"inputs": self._samples(dataset), "settings": values}

    def _speed(self, dataset: str, loss: str, width: str) -> dict:
        values = settings.speed(self.config, dataset, loss, int(width))
        return {"inputs": self._samples(dataset), "settings": values}

    def _sgd(self, dataset: str, depth: str) -> dict:
        values = settings.training(self.config, dataset)
        kept = {key: value for key, value in values.items() if key != "depths"}
        return {"inputs": self._samples(dataset), "settings": {"depth": int(depth), **kept}}

    # Artefacts, from their SPEC.

    def _artefact(self, name: str) -> dict:
        spec = SPECS[name]
        inputs = {option: self._files(name, option) for option in spec.inputs}
        values = {key: self._setting(name, path) for key, path in spec.settings.items()}
        found = (self.maker(path) for paths in inputs.values() for path in paths)
        makers = [job for job in found if job]
        shown = {job.wildcards["dataset"] for job in makers if "dataset" in job.wildcards}
        shown |= set(self._shown(name)) if spec.datasets else set()
        missing = {name for figure in self.lists(name) for name in self.left_out.get(figure, ())}
        missing = missing.union(
            *(job.settings.get("about", {}).get("missing", []) for job in makers)
        )
        datasets = sorted(shown)
        about: dict = {}
        if shown | missing:
            about["titles"] = {name: title(name) for name in sorted(shown | missing)}
        if missing:
            about["missing"] = sorted(missing)
        if spec.about:
            about["datasets"] = {name: self._described(name, spec.about) for name in datasets}
        return {
            "inputs": inputs,
            "settings": {
                "artefact": name,
                **({"settings": values} if values else {}),
                **({"about": about} if about else {}),
            },
            "chosen": (f"ntkcond.artefacts.{name}",),
        }

    def _files(self, name: str, option: str) -> tuple[str, ...]:
        """Those of an input of a SPEC (`ntkcond.artefacts.spec.Spec`)."""
        if option == "artefacts":
            return tuple(_sidecar(other) for other, spec in SPECS.items() if spec.costs)
        if option in SPECS and option != name:
            return (f"results/{option}.csv",)
        rule, _, sweep = option.partition("/")
        needs_datasets = rule in (
            "spectrum", "closest_pair", "kernel", "sgd", "descent", "speed", "architecture",
        )  # fmt: skip
        if not (sweep in settings.SWEEPS if rule == "sweep" else needs_datasets):
            raise UserError(f"artefacts/{name}.py: SPEC.inputs: no artefact or rule {option!r}")
        if needs_datasets and not SPECS[name].datasets:
            raise UserError(f"artefacts/{name}.py: SPEC.inputs: {option} needs SPEC.datasets")
        if rule == "sweep":
            wildcards = settings.sweep_jobs(self.config, sweep)
        elif rule == "sgd":
            wildcards = [
                {"dataset": dataset, "depth": str(depth)}
                for dataset in self._shown(name)
                for depth in settings.training(self.config, dataset)["depths"]
            ]
        elif rule == "architecture":
            wildcards = [
                {"dataset": dataset, "architecture": architecture}
                for dataset in self._shown(name)
                for architecture in settings.architectures(self.config)
                if architecture not in ON_IMAGES or settings.shape(self.config, dataset)
            ]
        elif rule == "descent":
            wildcards = [
                {"dataset": dataset, "width": str(width)}
                for dataset in self._shown(name)
                for width in settings.descent_widths(self.config, dataset, every=bool(sweep))
            ]
        elif rule == "speed":
            wildcards = [
                {"dataset": dataset, "loss": loss, "width": str(width)}
                for dataset in self._shown(name)
                for loss in settings.losses(self.config)
                for width in self.config["speed"]["widths"]
            ]
        else:
            wildcards = [
                {"dataset": dataset, "network": network, "depth": str(depth)}
                for dataset in self._shown(name)
                for network in self.config["activations"]
                for depth in settings.experiment(self.config, dataset)["depths"]
            ]
        paths = (PATTERNS[rule].format(**job, sweep=sweep) for job in wildcards)
        return tuple(dict.fromkeys(paths))  # each once

    def lists(self, name: str) -> set[str]:
        """The entries of `figures` that an artefact takes data sets of, itself."""
        spec = SPECS[name]
        sweeps = (option.partition("/")[2] for option in spec.inputs)
        found = {settings.SWEEPS[sweep] for sweep in sweeps if sweep in settings.SWEEPS}
        return found | ({spec.datasets} if spec.datasets else set())

    def _shown(self, name: str) -> list[str]:
        return self.config["figures"][SPECS[name].datasets]

    def _setting(self, name: str, path: str) -> object:
        """training.rate_for: that setting of the config; datasets.*.source: that of each data set
        of the artefact."""
        every, _, key = path.rpartition(".")
        if every == "datasets.*":
            return {dataset: self._dataset_settings(dataset)[key] for dataset in self._shown(name)}
        try:
            return functools.reduce(lambda values, key: values[key], path.split("."), self.config)
        except (KeyError, TypeError):
            raise UserError(f"SPEC.settings: the config has no setting {path}") from None

    def _described(self, dataset: str, kind: str) -> dict:
        """All settings of a data set and of its experiment or training, for a figure to say what it
        was made with."""
        more = getattr(settings, kind)(self.config, dataset)
        values = {**self._dataset_settings(dataset), **more}
        values.pop("mirrors", None)
        for key in values.keys() & {"file", "labels"}:  # which may lie elsewhere on another machine
            values[key] = Path(values[key]).name
        return values

    def _samples(self, dataset: str) -> dict[str, tuple[str, ...]]:
        return {"dataset": (PATTERNS["dataset"].format(dataset=dataset),)}

    def _network_settings(self, dataset: str, network: str, depth: str) -> dict:
        experiment = settings.experiment(self.config, dataset)
        values = {key: experiment[key] for key in ("seeds", *settings.NETWORK)}
        return {"activation": network, "depth": int(depth), **values}

    def _dataset_settings(self, dataset: str) -> dict:
        return settings.dataset_settings(self.config, dataset)

    def _corpus_folder(self, dataset: str) -> Path:
        return settings.corpus_folder(self.config, dataset, self.data_dir)

    def _in_project(self, path: str) -> str:
        """Absolute, or relative to where Snakemake runs, also with --directory."""
        found = settings.resolved(path, self.project)
        if self.folder != Path():
            return str(found.absolute())
        return str(found) if Path(path).expanduser().is_absolute() else os.path.relpath(found)


def _sidecar(artefact: str) -> str:
    return f"results/provenance/{artefact}.json"
