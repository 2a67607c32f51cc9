"""The config: its check at start, and what applies to each data set.

The Snakefile reads this at every start.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.blocks import blocks_of
from ntkcond.datasets.registry import CUSTOM, SOURCES
from ntkcond.datasets.speech import corpus
from ntkcond.datasets.speech.subsets import SUBSETS
from ntkcond.run.errors import UserError
from ntkcond.settings import own_activations
from ntkcond.settings.fields import (
    DATASET,
    Config,
    Engine,
    Entry,
    Experiment,
    Network,
    Training,
    names_of,
    part,
    set_values,
)
from ntkcond.settings.kinds import record, require_known, shown_key
from ntkcond.settings.step import DataSet
from ntkcond.steps.corpus import folder
from ntkcond.steps.scalapack_spectrum import require_ranks

CONFIG = record(Config)
OWN_ACTIVATIONS = Config.__dataclass_fields__["own_activations"].metadata["kind"]
OF_FRAMES = ("mel", "splice", "features")
SWITCHES = ("unit_norm", "distinct")  # of a data set: true, or as if not given
# Text that may look like a number, a date or a truth value in YAML.
PATHS = ("data_dir", "file", "labels", "mirrors", "own")
DEFAULT = Path(__file__).parents[1] / "config.yaml"
corpus_state = functools.cache(corpus.state)  # a corpus may have many files


def typed(config: dict) -> Config:
    """With a data set for each size. Raises UserError for a wrong setting, with its key, its value
    and the allowed values."""
    return _with_sizes(CONFIG.check(config, ""))


def _with_sizes(config: Config) -> Config:
    """`mnist: {samples: [512, all]}` as two data sets, mnist_512 and mnist, in the figures, too."""
    datasets, sizes = {}, {}
    for name, entry in config.datasets.items():
        *smaller, last = entry.samples if isinstance(entry.samples, list) else [entry.samples]
        datasets[name] = dataclasses.replace(entry, samples=last)  # checked before the others
        source, where = source_of(config, name), f"datasets.{name}.samples"
        for n in smaller:
            sized = DATASET.check(f"{name}_{n}", where)
            if sized in config.datasets:
                problem = f"{n} makes a data set {sized}, which the config has already"
                raise UserError(f"{where}: {problem}. Rename or remove one of the two")
            datasets[sized] = dataclasses.replace(entry, source=source, samples=n)
        sizes[name] = [*(f"{name}_{n}" for n in smaller), name]
    figures = {
        figure: list(dict.fromkeys(one for name in shown for one in sizes.get(name, [name])))
        for figure, shown in config.figures.items()
    }
    return dataclasses.replace(config, datasets=datasets, figures=figures)


def check(raw: dict, start: Path | str, scan: bool = True) -> Config:
    """`typed`, and what depends on data sets and files. start: folder of relative paths. scan:
    whether to read the folders of corpora."""
    register_own(raw.get("own_activations"), start)
    config = typed(raw)
    for name in config.datasets:
        _check_dataset(config, name)
    known = {spec.datasets for spec in SPECS.values() if spec.datasets}
    for figure in known - config.figures.keys():
        raise UserError(f"figures.{figure}: is missing. List the data sets of {figure}")
    for figure, shown in config.figures.items():
        where = f"figures.{shown_key(figure)}"
        require_known(figure, known, f"{where}: no figure of this name has data sets.")
        for name in shown:
            problem = f"{where}: {name!r} is not a data set of this config."
            require_known(name, config.datasets, problem)
            _check_raw_files(config, name, start, scan)
    if config.training.rate_for == "dataset":
        for name in config.figures["fig3"]:
            training = data_set(config, name).training
            rates = training.learning_rates
            if isinstance(rates, Mapping) and len({tuple(rates[L]) for L in training.depths}) > 1:
                problem = f"dataset is one rate for all depths, and {name} has others at each"
                raise UserError(f"training.rate_for: {problem}. Use depth")
    for artefact in config.keep:
        require_known(artefact, SPECS, f"keep: {artefact!r} is not an artefact.")
    for network, file in config.architectures.own.items():
        _check_file(f"architectures.own.{network}", file, start)
    for figure in ("fig3", "fig_descent", "fig_evolution", "fig_speed"):
        for name in config.figures[figure]:
            if not SOURCES[source_of(config, name)].labels:
                raise UserError(f"figures.{figure}: {name} has no labels to learn. Remove {name}")
    return config


def register_own(files: object, start: Path | str) -> None:
    """The user's activations, before their names are checked. files: as the config has them."""
    named = OWN_ACTIVATIONS.check(files or {}, "own_activations")
    for name, file in named.items():
        _check_file(f"own_activations.{name}", file, start)
    own_activations.register({name: resolved(file, start) for name, file in named.items()})


def complete(config: dict, from_default: bool = False) -> None:
    """In place: text, as --config gives it, in YAML's types; without what is null. from_default:
    over the default config. Raises UserError for text that is no YAML."""
    for key in config:
        config[key] = _in_types_of_yaml(config[key], [key])
    if from_default:
        from snakemake.utils import update_config

        given = dict(config)
        config |= yaml.safe_load(DEFAULT.read_text("utf-8"))
        update_config(config, given)
    _remove_null(config)


def _in_types_of_yaml(value: object, keys: list) -> object:
    """depths=[0, 1] to numbers, keep_kernels=false to a truth value. keys: where it is."""
    if keys[-1] in PATHS:
        return value
    if isinstance(value, str):
        return from_yaml(value, ".".join(map(shown_key, keys)))
    if isinstance(value, list):
        return [_in_types_of_yaml(entry, keys) for entry in value]
    if isinstance(value, dict):
        return {
            int(key) if isinstance(key, str) and key.isdecimal() else key: _in_types_of_yaml(
                entry, [*keys, key]
            )
            for key, entry in value.items()
        }
    return value


def _remove_null(config: dict) -> None:
    """So that an overlay can take back what config.yaml sets: as if nobody had set it."""
    for key, value in list(config.items()):
        if value is None:
            del config[key]
        elif isinstance(value, dict):
            _remove_null(value)


def from_yaml(text: str | bytes, where: str) -> object:
    """A value in YAML. Raises UserError for text that is none, such as the date 2024-13-45."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid YAML ({' '.join(str(error).split())})") from None


def resolved(path: str, start: Path | str) -> Path:
    """A path of the config; relative ones begin at start."""
    return Path(start, Path(path).expanduser())


def source_of(config: Config, name: str) -> str:
    """The known data set that an entry is of."""
    entry = config.datasets[name]
    return entry.source or (CUSTOM if entry.file else name)


def dataset_settings(config: Config, name: str) -> dict:
    """The settings that determine the data set's file: source, samples, seed and options."""
    source = source_of(config, name)
    values = {"samples": "all", "seed": 0, **SOURCES[source].defaults}
    values |= set_values(config.datasets[name])
    if not values.get("hold_out"):  # 0 is the same as none
        values.pop("hold_out", None)
    switches = [switch for switch in SWITCHES if values.get(switch)]
    options = sorted(SOURCES[source].settings & values.keys())
    keys = ("samples", "seed", *switches, *options)
    return {"source": source, **{key: values[key] for key in keys}}


def data_set(config: Config, name: str) -> DataSet:
    """With what applies to it: its own settings, else the global ones; for training, else those of
    its NTKs. Learning rates ascend."""
    entry, settings = config.datasets[name], dataset_settings(config, name)
    source, samples = SOURCES[settings["source"]], settings["samples"]
    if samples == "all":
        samples = source.samples and source.samples - settings.get("hold_out", 0)
    training = part(Training, config, entry, config.training, entry.training)
    rates = training.learning_rates
    if isinstance(rates, Mapping):
        rates = {depth: sorted(map(float, chosen)) for depth, chosen in rates.items()}
    else:
        rates = sorted(map(float, rates))
    return DataSet(
        config=config,
        settings=settings,
        experiment=part(Experiment, config, entry),
        engine=part(Engine, config, entry),
        training=dataclasses.replace(training, learning_rates=rates),
        network=part(Network, config, entry),
        samples=samples,
        test_samples=settings.get("hold_out", source.test_samples),
        features=settings.get("features", source.features),
        shape=entry.shape or source.shape,
        other=functools.partial(data_set, config),
    )


def _check_dataset(config: Config, name: str) -> None:
    entry, where, known = config.datasets[name], f"datasets.{name}", source_of(config, name)
    hint = f" Your own data set needs a file: datasets: {{{name}: {{file: samples.npy}}}}"
    known_sources = SOURCES.keys() - {CUSTOM} if known != CUSTOM else SOURCES
    require_known(known, known_sources, f"{where}: no known data set is called {known!r}.", hint)
    source, settings = SOURCES[known], set_values(entry)
    of_some = set().union(*(other.settings for other in SOURCES.values()))
    for key in settings:
        allowed = {*names_of(Entry)} - of_some | source.settings
        require_known(key, allowed, f"{where}.{key}: {name} has no such setting.")
    for key in set_values(entry.training).keys() - {*names_of(Training)}:
        raise UserError(f"{where}.training.{key}: is one for all data sets: training.{key}")
    for key in sorted(source.required, reverse=True):
        if settings.get(key, "all") == "all":
            raise UserError(f"{where}.{key}: {known} needs a value here")
    if entry.file and name in SOURCES:
        raise UserError(f"{where}.file: {name} is a set that ntkcond knows; name yours differently")
    if source.corpus:
        mel, splice, features = ({**source.defaults, **settings}[key] for key in OF_FRAMES)
        if mel * splice != features:
            raise UserError(
                f"{where}: mel {mel} × splice {splice} makes {mel * splice} features,"
                f" not {features}. Change mel, splice or features"
            )
    scale = entry.scale
    if scale and not scale[0] < scale[1]:
        raise UserError(f"{where}.scale: {scale} is no interval; the first must be the smaller")
    data = data_set(config, name)
    rates = data.training.learning_rates
    if name in config.figures.get("fig3", ()) and isinstance(rates, Mapping):
        for depth in data.training.depths:
            if depth not in rates:
                raise UserError(
                    f"training.learning_rates: has none for {name} at depth {depth}. Add some"
                )
    stop, lowest = data.training.stop_below, min(config.training.thresholds)
    if stop > lowest and name in config.figures.get("fig3", ()):
        raise UserError(
            f"training.stop_below: {stop} ends the runs of {name} before the loss {lowest} of"
            " training.thresholds. Lower it, or raise that threshold"
        )
    if entry.shape and data.features and math.prod(entry.shape) != data.features:
        values = math.prod(entry.shape)
        raise UserError(f"{where}.shape: {entry.shape} has {values} values, not {data.features}")
    held_out, samples = data.settings.get("hold_out", 0), data.settings["samples"]
    rest = (source.samples or math.inf) - held_out
    if rest < 2:
        problem = f"{held_out} of the {source.samples} samples leaves fewer than two. Lower it"
        raise UserError(f"{where}.hold_out: {problem}")
    if samples != "all" and samples > rest:
        problem = f"{samples} is more than the {rest} training samples of {name}"
        raise UserError(f"{where}.samples: {problem}. Lower it, or use all")
    if data.samples is not None:
        block, _ = blocks_of(data.samples, data.experiment.block, name)
        if data.engine.engine == "scalapack":
            require_ranks(data.engine.ranks, block)


def _check_raw_files(config: Config, name: str, start: Path | str, scan: bool) -> None:
    """Snakemake alone would call figures up to date whose raw file is gone, and would download into
    a misspelt folder."""
    entry, source = config.datasets[name], SOURCES[source_of(config, name)]
    for key, path in (("file", entry.file), ("labels", entry.labels)):
        if path:
            _check_file(f"datasets.{name}.{key}", path, start)
    data_dir = resolved(config.data_dir, start)
    raw = [data_dir / raw_file for raw_file in source.raw_files]
    if source.corpus:
        raw = [corpus_folder(config, name, data_dir)]
        if scan:
            corpus_state(raw[0])
        if not raw[0].is_dir():
            problem = f"{raw[0]}: no such folder, and none that could be downloaded."
            require_known(raw[0].name, SUBSETS, f"datasets.{name}.subset: {problem}")
    for place in raw:
        if not data_dir.is_dir():
            raise UserError(f"data_dir: {data_dir}: no such folder. Make it first, or correct it")
        below = Path(*place.relative_to(data_dir).parts[1:])
        if not place.exists() and (data_dir / below).exists():
            raise UserError(f"data_dir: {data_dir} is one folder too deep; use {data_dir.parent}")


def _check_file(where: str, name: str, start: Path | str) -> None:
    path = resolved(name, start)
    if path.is_dir():
        raise UserError(f"{where}: {path} is a folder. Name a file in it")
    if not path.is_file():
        raise UserError(f"{where}: {path}: no such file. Correct the path")
    if not os.access(path, os.R_OK):
        raise UserError(f"{where}: {path}: may not be read. Change its permissions")


def corpus_folder(config: Config, name: str, data_dir: Path | str) -> Path:
    """Folder of the data set's corpus, below the folder of raw files."""
    return Path(data_dir, folder(data_set(config, name)))
