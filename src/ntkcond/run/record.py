"""Provenance: what a result was made with, recorded in it by the step that made it.

A record has the step, its settings, for each input file the digest of that file's own record,
the digests of the modules whose code its numbers depend on, the versions of packages, and the
format of the files. Of a table it has a digest of the content, too, by which Snakemake judges it:
one that comes out as it was makes nothing anew. An HDF5 file keeps its record as the attribute
`provenance`, an artefact in `provenance/{rule}.json` beside its files. As its attribute `upstream`
an HDF5 file also keeps the records of all results that it was made from: kernels may be gone when
somebody asks.
`ntkcond.plan.graph` says what a record should be today.

Read by the Snakefile at every start: nothing beyond the standard library is loaded before it is
needed.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ntkcond.run.digests import code_digests, package_versions, sha256_of
from ntkcond.run.seal import is_whole

FORMAT = 1  # raised whenever `ntkcond.run.files` writes or reads values otherwise
CONTENT = ", content "  # between the digests of a table's record and of its content
RESULTS = "results"  # files below it are made by steps; others come from outside


def record(
    modules: Sequence[str], settings: Mapping, inputs: Mapping[str, Mapping[str, str]]
) -> dict:
    """modules: dotted names, of the step and of what it picks by its settings. inputs: for each
    option, digests of its files (`input_digest`) by their paths (`input_name`)."""
    return canonical(
        {
            "step": modules[0].removeprefix("ntkcond.steps."),
            "settings": settings,
            "inputs": inputs,
            "code": code_digests(*modules),
            "versions": package_versions(*modules),
            "format": FORMAT,
        }
    )


def canonical(value: object) -> Any:
    """With builtin types as JSON has them, and whole numbers as such: 8.0 is 8."""
    if isinstance(value, Mapping):
        return {str(key): canonical(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def digest(made_with: dict) -> str:
    """The digest of a record; the order of input files counts, their content does not."""
    inputs = made_with.get("inputs", {})
    ordered = {
        option: [(path, entry.partition(CONTENT)[0]) for path, entry in paths.items()]
        for option, paths in inputs.items()
    }
    return short_digest({**made_with, "inputs": ordered})


def options(settings: Mapping) -> list[str]:
    """Settings as options of a step, and as Snakemake compares them: --width=512."""
    return [
        f"--{name.replace('_', '-')}="
        + ",".join(map(str, value if isinstance(value, list | tuple) else [value]))
        for name, value in settings.items()
    ]


def short_digest(value: object) -> str:
    """12 hexadecimal digits."""
    text = json.dumps(canonical(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def sidecar(path: Path | str) -> Path:
    """Where the record of an artefact's file is, or that record's own file: provenance/fig2.json of
    fig2.csv, provenance/draw_fig2.json of what is drawn from it."""
    path = Path(path)
    if path.parent.name == "provenance":
        return path
    rule = path.stem if path.suffix == ".csv" else f"draw_{path.stem}"
    return path.parent / "provenance" / f"{rule}.json"


def read(path: Path | str, is_whole: Callable[[Path], bool] = is_whole) -> dict | None:
    """The record of a result; None if it has none or cannot be read. is_whole: whether an HDF5
    file is (`ntkcond.run.seal`)."""
    path = Path(path)
    try:
        if path.suffix != ".h5":
            return json.loads(sidecar(path).read_text("utf-8"))["record"]
        return _attribute(path, "provenance") if is_whole(path) else None
    except Exception:  # a damaged file may fail in any way
        return None


def upstream(path: Path | str) -> dict[str, dict]:
    """The records of all results that an HDF5 result was made from, by their names
    (`input_name`); empty where it has none or cannot be read."""
    try:
        return _attribute(path, "upstream")
    except Exception:  # a damaged file may fail in any way
        return {}


def _attribute(path: Path | str, name: str) -> Any:
    import h5py

    with h5py.File(path, "r") as file:
        return json.loads(file.attrs[name])


def files_of(path: Path | str) -> dict[str, str]:
    """sha256 of each file of an artefact, by one of them; empty where that is not known."""
    try:
        return json.loads(sidecar(path).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def result_digest(path: Path | str, made_with: dict) -> str:
    """The digest of a result with this record; behind it that of a table's content when it was
    made, where that is known."""
    content = files_of(path).get(Path(path).name) if Path(path).suffix == ".csv" else None
    return f"{digest(made_with)}{CONTENT}{content[:32]}" if content else digest(made_with)


def agree(before: str, today: str) -> bool:
    """Whether two digests are of the same result: of equal content where both have it, else of
    equal records."""
    (record_before, _, old), (record_today, _, new) = (
        digests.partition(CONTENT) for digests in (before, today)
    )
    return old == new if old and new else record_before == record_today


def input_digest(path: Path | str) -> tuple[str, dict | None]:
    """`result_digest` of a result, and its record; of any other file, the digest of its content,
    and None."""
    made_with = read(path) if is_result(path) else None
    return (result_digest(path, made_with) if made_with else sha256_of(path)[:32]), made_with


def input_name(path: Path | str) -> str:
    """How records call an input: results by their path from results/ on, wherever Snakemake runs;
    others by their name alone, for they may lie elsewhere on another machine."""
    parts = Path(path).parts
    return Path(*parts[parts.index(RESULTS) :]).as_posix() if is_result(path) else Path(path).name


def is_result(path: Path | str) -> bool:
    """Whether the path is below a folder results/ in that in which Snakemake runs: a module of
    another workflow has its own below its prefix."""
    path = Path(path)
    return RESULTS in path.parts[:-1] and not path.is_absolute() and ".." not in path.parts
