"""The config: its check at start, and the settings of each rule.

The Snakefile reads this at every start: no heavy imports.
"""

import dataclasses
import difflib
import functools
import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import jsonschema
import yaml

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.blocks import blocks_of
from ntkcond.datasets.registry import CUSTOM, SOURCES, Source
from ntkcond.datasets.speech import corpus
from ntkcond.datasets.speech.subsets import SUBSETS
from ntkcond.jobs.corpus import folder
from ntkcond.jobs.scalapack_spectrum import require_ranks
from ntkcond.jobs.step import DataSet
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.run.errors import UserError

# The settings of a network that are not in its path.
NETWORK = tuple(f.name for f in dataclasses.fields(MLP) if f.name not in ("activation", "depth"))
# Global settings that a data set may override.
EXPERIMENT = ("seeds", "depths", "block", "prove_smallest", *NETWORK)
# What computes spectra; global settings that a data set may override, too.
ENGINE = ("engine", "ranks")
# The settings of a trained network, without those of an NTK alone.
TRAINED = tuple(f.name for f in dataclasses.fields(MLP) if not f.metadata.get("ntk_only"))
# The settings of a training run beside its depth.
TRAINING = (
    *(name for name in TRAINED if name != "depth"),
    "convention", "loss", "seeds", "learning_rates", "batch", "epochs", "stop_below", "tf32",
)  # fmt: skip
# Settings of tables and a figure of all training runs: no data set may override them.
FOR_ALL = ("rate_for", "thresholds", "checkpoint_minutes")
SWITCHES = ("unit_norm", "distinct")  # of a data set: true, or as if not given
DATA = ("source", "samples", "seed", "shape", *SWITCHES)
# Text that may look like a number, a date or a truth value in YAML.
PATHS = ("data_dir", "file", "labels", "mirrors", "own")
SCHEMA = Path(__file__).with_name("config.schema.yaml")
DEFAULT = Path(__file__).parents[1] / "config.yaml"


def _is_number(checker: object, value: object) -> bool:
    """Finite, as options of steps must be: not nan, which passes every minimum."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _is_integer(checker: object, value: object) -> bool:
    """An int: 2.0, too, is one by JSON Schema, but no depth in the name of a file."""
    return isinstance(value, int) and _is_number(checker, value)


Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer}
    ),
)


# Cached, since a corpus may have many files.
corpus_state = functools.cache(corpus.state)


def check(config: dict, start: Path | str, scan: bool = True) -> None:
    """Raises UserError for a wrong setting, with its key, its value and the allowed values.

    start: folder in which relative paths start. scan: whether to read the folders of corpora.
    """
    validator = Validator(yaml.safe_load(SCHEMA.read_text("utf-8")))
    errors = sorted(validator.iter_errors(config), key=lambda error: list(map(str, error.path)))
    if errors:
        raise UserError(_explanation(errors[0]))
    _check_activations(config)
    for name in config["datasets"]:
        _check_dataset(config, name)
    known = {spec.datasets for spec in SPECS.values() if spec.datasets}
    for figure in known - config["figures"].keys():
        raise UserError(f"figures.{figure}: is missing. List the data sets of {figure}")
    for figure, names in config["figures"].items():
        where = f"figures.{_key(figure)}"
        _check_known(figure, known, f"{where}: no figure of this name has data sets.")
        for name in names:
            known_here = config["datasets"]
            _check_known(name, known_here, f"{where}: {name!r} is not a data set of this config.")
            _check_raw_files(config, name, start, scan)
    for network, file in config["architectures"]["own"].items():
        _check_file(f"architectures.own.{network}", file, start)
    for figure in ("fig3", "fig_descent", "fig_evolution", "fig_speed"):
        for name in config["figures"][figure]:
            if not SOURCES[dataset_settings(config, name)["source"]].labels:
                raise UserError(f"figures.{figure}: {name} has no labels to learn. Remove {name}")


def complete(config: dict, from_default: bool = False) -> None:
    """In place: text, as --config gives it, in YAML's types; without what is null. from_default:
    with the default config's settings where it has none. Raises UserError for text that is no
    YAML."""
    for key in config:
        config[key] = _typed(config[key], key)
    if from_default:
        _fill(config, yaml.safe_load(DEFAULT.read_text("utf-8")))
    _remove_null(config)


def _typed(value: object, key: object) -> object:
    """depths=[0, 1] to numbers, keep_kernels=false to a truth value."""
    if key in PATHS:
        return value
    if isinstance(value, str):
        return from_yaml(value, _key(key))
    if isinstance(value, list):
        return [_typed(entry, key) for entry in value]
    if isinstance(value, dict):
        return {inner: _typed(entry, inner) for inner, entry in value.items()}
    return value


def _fill(config: dict, defaults: dict) -> None:
    for key, value in defaults.items():
        given = config.setdefault(key, value)
        if isinstance(value, dict) and isinstance(given, dict):
            _fill(given, value)


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
    """A path of the config."""
    return Path(start, Path(path).expanduser())


def dataset_settings(config: dict, name: str) -> dict:
    """The settings that determine the data set's file: source, samples, seed and options."""
    settings = config["datasets"][name]
    source = settings.get("source", CUSTOM if "file" in settings else name)
    given = {**SOURCES[source].defaults, **settings}
    if not given.get("hold_out"):  # 0 is the same as none
        given.pop("hold_out", None)
    options = {key: given[key] for key in sorted(SOURCES[source].settings & given.keys())}
    return {
        "source": source,
        "samples": settings.get("samples", "all"),
        "seed": settings.get("seed", 0),
        **{switch: True for switch in SWITCHES if settings.get(switch)},
        **options,
    }


def experiment(config: dict, name: str) -> dict:
    """The settings EXPERIMENT of the data set, which may override the global ones."""
    dataset = config["datasets"][name]
    return {key: dataset.get(key, config[key]) for key in EXPERIMENT}


def training(config: dict, name: str) -> dict:
    """Depths and TRAINING of the data set: from its training settings, else the global ones, else
    the network of its NTKs. Learning rates in ascending order."""
    dataset = config["datasets"][name].get("training", {})
    found = {**experiment(config, name), **config["training"], **dataset}
    found["learning_rates"] = sorted(map(float, found["learning_rates"]))
    return {key: found[key] for key in ("depths", *TRAINING)}


def data_set(config: dict, name: str) -> DataSet:
    """The data set, for its jobs."""
    given, settings = config["datasets"][name], dataset_settings(config, name)
    source, values = SOURCES[settings["source"]], experiment(config, name)
    samples: int | None = settings["samples"]
    if settings["samples"] == "all":
        samples = source.samples and source.samples - settings.get("hold_out", 0)
    return DataSet(
        config=config,
        settings=settings,
        experiment=values,
        engine={key: given.get(key, config[key]) for key in ENGINE},
        training=training(config, name),
        network={key: values[key] for key in NETWORK},
        samples=samples,
        test_samples=settings.get("hold_out", source.test_samples),
        features=settings.get("features", source.features),
        shape=given.get("shape", source.shape),
        other=functools.partial(data_set, config),
    )


def _check_dataset(config: dict, name: str) -> None:
    settings = config["datasets"][name]
    where = f"datasets.{name}"
    known = settings.get("source", CUSTOM if "file" in settings else name)
    hint = f" Your own data set needs a file: datasets: {{{name}: {{file: samples.npy}}}}"
    known_sources = SOURCES.keys() - {CUSTOM} if known != CUSTOM else SOURCES
    _check_known(known, known_sources, f"{where}: no known data set is called {known!r}.", hint)
    source = SOURCES[known]
    allowed = {*DATA, *EXPERIMENT, *ENGINE, *source.settings, "training"}
    for key in settings:
        _check_known(key, allowed, f"{where}.{_key(key)}: {name} has no such setting.")
    for key in FOR_ALL:
        if key in settings.get("training", {}):
            raise UserError(f"{where}.training.{key}: is one for all data sets: training.{key}")
    for key in sorted(source.required, reverse=True):
        if key not in settings or settings[key] == "all":
            raise UserError(f"{where}.{key}: {known} needs a value here")
    if "file" in settings and name in SOURCES:
        raise UserError(f"{where}.file: {name} is a set that ntkcond knows; name yours differently")
    if source.corpus:
        recipe = {key: settings.get(key, source.defaults[key]) for key in source.defaults}
        found = recipe["mel"] * recipe["splice"]
        if found != recipe["features"]:
            raise UserError(
                f"{where}: mel {recipe['mel']} × splice {recipe['splice']} makes {found} features,"
                f" not {recipe['features']}. Change mel, splice or features"
            )
    scale = settings.get("scale")
    if scale and not -math.inf < scale[0] < scale[1] < math.inf:
        raise UserError(f"{where}.scale: {scale} is no interval; the first must be the smaller")
    stop, lowest = training(config, name)["stop_below"], min(config["training"]["thresholds"])
    if stop > lowest and name in config["figures"]["fig3"]:
        raise UserError(
            f"training.stop_below: {stop} ends the runs of {name} before the loss {lowest} of"
            " training.thresholds. Lower it, or raise that threshold"
        )
    image, features = settings.get("shape"), data_set(config, name).features
    if image and features and math.prod(image) != features:
        raise UserError(f"{where}.shape: {image} has {math.prod(image)} values, not {features}")
    _check_sizes(config, name, source)


def _check_activations(config: dict) -> None:
    named = {f"activations[{i}]": name for i, name in enumerate(config["activations"])}
    named |= {f"theory.activations[{i}]": n for i, n in enumerate(config["theory"]["activations"])}
    chosen = enumerate(config["architectures"]["activations"])
    named |= {f"architectures.activations[{i}]": name for i, name in chosen}
    of_speed = enumerate(config["speed"]["activations"])
    named |= {f"speed.activations[{i}]": name for i, name in of_speed}
    for section in ("training", "descent", "sweeps"):
        named[f"{section}.activation"] = config[section]["activation"]
    for dataset, settings in config["datasets"].items():
        trained = settings.get("training", {}).get("activation")
        named[f"datasets.{dataset}.training.activation"] = trained or "relu"
    for where, name in named.items():
        _check_known(name, ACTIVATIONS, f"{where}: {name!r} is not allowed.")


def _check_raw_files(config: dict, name: str, start: Path | str, scan: bool) -> None:
    """Snakemake alone would call figures up to date whose raw file is gone, and would download into
    a misspelt folder."""
    settings = config["datasets"][name]
    for key in settings.keys() & {"file", "labels"}:
        _check_file(f"datasets.{name}.{key}", settings[key], start)
    data_dir = resolved(config["data_dir"], start)
    source = SOURCES[dataset_settings(config, name)["source"]]
    raw = [data_dir / raw_file for raw_file in source.raw_files]
    if source.corpus:
        raw = [corpus_folder(config, name, data_dir)]
        _check_corpus(config, name, raw[0], scan)
    for path in raw:
        if not data_dir.is_dir():
            raise UserError(f"data_dir: {data_dir}: no such folder. Make it first, or correct it")
        below = Path(*path.relative_to(data_dir).parts[1:])
        if not path.exists() and (data_dir / below).exists():
            raise UserError(f"data_dir: {data_dir} is one folder too deep; use {data_dir.parent}")


def _check_file(where: str, name: str, start: Path | str) -> None:
    path = resolved(name, start)
    if not path.is_file():
        raise UserError(f"{where}: {path}: no such file. Correct the path")
    if not os.access(path, os.R_OK):
        raise UserError(f"{where}: {path}: may not be read. Change its permissions")


def _check_corpus(config: dict, name: str, folder: Path, scan: bool) -> None:
    if scan:
        corpus_state(folder)
    if not folder.is_dir():
        problem = f"{folder}: no such folder, and none that could be downloaded."
        _check_known(folder.name, SUBSETS, f"datasets.{name}.subset: {problem}")


def _check_sizes(config: dict, name: str, source: Source) -> None:
    settings = dataset_settings(config, name)
    available, held_out = source.samples or math.inf, settings.get("hold_out", 0)
    rest = available - held_out
    if rest < 2:
        problem = f"{held_out} of the {available} samples leaves fewer than two. Lower it"
        raise UserError(f"datasets.{name}.hold_out: {problem}")
    if settings["samples"] != "all" and settings["samples"] > rest:
        raise UserError(
            f"datasets.{name}.samples: {settings['samples']} is more than the {rest} training"
            f" samples of {name}. Lower it, or use all"
        )
    data = data_set(config, name)
    if data.samples is not None:
        block, _ = blocks_of(data.samples, data.experiment["block"], name)
        if data.engine["engine"] == "scalapack":
            require_ranks(data.engine["ranks"], block)


def corpus_folder(config: dict, name: str, data_dir: Path | str) -> Path:
    """Folder of the data set's corpus, below the folder of raw files."""
    return Path(data_dir, folder(data_set(config, name)))


def _explanation(error: jsonschema.ValidationError) -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{_key(p)}" for p in error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = error.schema.get("properties", {})
        key = next(key for key in error.instance if key not in allowed)
        return f"{where}.{_key(key)}: no such setting.".lstrip(".") + _suggestion(key, allowed)
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return f"{where}.{missing}: is missing. Add it".lstrip(".")
    allowed, where = error.schema.get("description", error.message), where.lstrip(".")
    return f"{where or 'the config'}: {_shown(error.instance)} is not allowed; it must be {allowed}"


def _key(key: object) -> str:
    """Of a setting, in one line."""
    return key if isinstance(key, str) and key and key.isprintable() else _shown(key)


def _shown(value: object) -> str:
    """A value in one line, cut after 200 characters."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _check_known(word: str, known: Iterable[str], problem: str, hint: str = "") -> None:
    if word not in known:
        raise UserError(problem + _suggestion(word, known) + hint)


def _suggestion(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(known)}."
