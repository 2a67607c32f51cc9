"""Samples chosen, in random order, scaled, checked: results/datasets/{dataset}.h5."""

import hashlib
import json
from argparse import Namespace
from pathlib import Path

from ntkcond.datasets import registry, samples
from ntkcond.datasets.registry import SOURCES, module_name
from ntkcond.run.files import write_hdf5
from ntkcond.run.need import Need
from ntkcond.settings import command
from ntkcond.settings.memory import FLOAT64, INTERPRETER, TORCH
from ntkcond.settings.step import DataSet

gpu = False

# A user's own files. They enter by content: Snakemake looks at it only if their dates are newer
# than that of the result, and a copy may well be older.
FILES = ("file", "labels")


def settings(data: DataSet) -> dict:
    return {key: data.settings[key] for key in data.settings if key not in (*FILES, "mirrors")}


def files(data: DataSet) -> dict[str, str]:
    return {key: data.settings[key] for key in FILES if key in data.settings}


def chosen(data: DataSet) -> tuple[str, ...]:
    return (module_name(data.settings["source"]),)


def largest(data: DataSet) -> int | None:
    return None if SOURCES[data.settings["source"]].corpus else 0  # all cores decode audio


def sizes(data: DataSet) -> dict:
    return {"available": SOURCES[data.settings["source"]].samples or data.samples}


def need(available: int, features: int) -> Need:
    """All available samples are read and some are chosen and scaled: a few copies."""
    return Need("samples", INTERPRETER + TORCH + 4 * FLOAT64 * available * features)


def main(arguments: Namespace) -> None:
    """Writes x, the origin of each sample and, if available, y, x_test, y_test
    (`ntkcond.datasets.samples`)."""
    a = arguments
    chosen = choose(a)
    if a.unit_norm:
        chosen = samples.with_unit_norm(chosen)
    if a.distinct:
        chosen = samples.distinct(chosen)
    for kind, count in chosen.left_out.items():
        command.log.warning("%s: left out: %d %s", a.output.stem, count, kind)
    for defect in samples.defects(chosen.x):
        command.log.warning("%s: %s", a.output.stem, defect)
    constant, features = samples.constant_features(chosen.x), chosen.x.shape[1]
    command.log.info("%s: %d of %d features are constant", a.output.stem, constant, features)
    with write_hdf5(a.output, a.record) as file:
        arrays = {name: getattr(chosen, name) for name in ("x", "y", "x_test", "y_test")}
        for name, array in {**arrays, **chosen.origin}.items():
            if array is not None:
                file[name] = array
        file.attrs.update(chosen.about)
        file.attrs["left_out"] = json.dumps(chosen.left_out)
        file.attrs["sha256"] = hashlib.sha256(chosen.x.tobytes()).hexdigest()


def choose(a: Namespace) -> samples.Samples:
    """The samples that the arguments describe."""
    reader = registry.module(a.source)
    if registry.SOURCES[a.source].corpus:
        return reader.draw(a.corpus, a.data_dir, vars(a))
    raw = reader.load(a.data_dir, vars(a))
    if a.hold_out:
        raw = samples.hold_out(raw, a.hold_out, a.seed)
    return samples.choose(raw, a.samples, a.seed, a.scale and tuple(a.scale))


OPTIONS = command.parser(__doc__)
OPTIONS.add_argument("--source", required=True, choices=registry.SOURCES)
OPTIONS.add_inputs("file", "corpus", "labels", optional=True)
OPTIONS.add_settings("samples", default="all")
OPTIONS.add_settings("seed", default=0)
OPTIONS.add_settings("scale", "unit_norm", "distinct", "features", "hold_out", optional=True)
OPTIONS.add_settings("subset", "mel", "splice", "normalise", "bad_utterances", optional=True)
OPTIONS.add_unrecorded("--data-dir", type=Path, default=Path("data"), help="raw files")
OPTIONS.add_unrecorded("--threads", type=int, default=1)

if __name__ == "__main__":
    command.run(main, OPTIONS, chosen=lambda a: [registry.module_name(a.source)])
