"""Provenance: what a result was made with, recorded in it by the step that made it.

A record has the rule and its wildcards, the settings, for each input file the digest of that file's
own record, the digests of the modules whose code its numbers depend on, the versions of packages,
the format of the files, and of an artefact the order of its inputs. An HDF5 file keeps its record
as the attribute `provenance`, an artefact in `provenance/{rule}.json` beside its files, with their
sha256. `texts` are a record in the words that Snakemake compares as params
(`ntkcond.pipeline.workflow`).
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ntkcond.run.digests import Package, sha256_of
from ntkcond.run.seal import is_whole

FORMAT = 1  # raised whenever `ntkcond.run.files` writes or reads values otherwise
LONGEST = 100  # characters of a change of a setting in words
CONTENT = ", content "  # between the digests of a table's record and of its content
RESULTS = "results"  # files below it are made by steps; others come from outside
CODE = Package(
    "ntkcond",
    Path(__file__).parents[1],
    # values pass through them unchanged
    left_out=("run", "settings", "pipeline", "studies", "checks"),
    versioned={
        "array_api_compat": "array-api-compat", "h5py": "h5py", "matplotlib": "matplotlib",
        "numpy": "numpy", "pandas": "pandas", "scipy": "scipy", "sklearn": "scikit-learn",
        "torch": "torch", "torchvision": "torchvision",
    },
    always=("h5py",),  # `ntkcond.run.files` reads and writes by it
    silent=("SPEC", "SOURCE", "require_memory", "require_memory_of", "require_space"),
)  # fmt: skip


def modules_of(rule: str, artefact: str = "", chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the modules that make a rule's files, for `CODE`. artefact: whose table or drawing
    it makes; chosen: modules that a step picks by its settings."""
    if not artefact:
        return (f"ntkcond.steps.{rule}:main", *chosen)
    step, part = ("table", "table") if rule == artefact else ("drawing", "draw+markdown+html")
    return f"ntkcond.steps.{step}:main", f"ntkcond.artefacts.{artefact}:{part}"


def record(
    rule: str,
    wildcards: Mapping[str, str],
    modules: Sequence[str],
    settings: Mapping,
    inputs: Mapping,
) -> dict:
    """inputs: for each option, digests of its files (`input_digest`) by their paths."""
    return canonical(
        {
            "rule": rule,
            "wildcards": wildcards,
            "settings": settings,
            "inputs": inputs,
            "code": CODE.digests(*modules),
            "versions": CODE.versions(*modules),
            "format": FORMAT,
        }
    )


def texts(made_with: Mapping) -> set[str]:
    """A record in words: width=512, numpy 2.4.6, ntk.empirical 3f2a91…, mine.npy 4e1c…."""
    outside = {
        path: digest
        for paths in made_with.get("inputs", {}).values()
        for path, digest in paths.items()
        if not is_result(path)
    }
    named = made_with["code"] | made_with["versions"] | outside | {"format": made_with["format"]}
    if "order" in made_with:
        named["inputs"] = made_with["order"]
    return {*settings_in_words(made_with["settings"]), *(f"{k} {v}" for k, v in named.items())}


def settings_in_words(settings: Mapping) -> list[str]:
    """width=512, seeds=[1, 32], activation=relu; of a dict, about.datasets={…} for each entry."""
    words = []
    for name, value in canonical(settings).items():
        entries = {f"{name}.{key}": value[key] for key in value} if isinstance(value, dict) else {}
        for key, entry in (entries or {name: value}).items():
            text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
            words.append(f"{key}={text}")
    return words


def name_of(rule: str, wildcards: Mapping[str, str], **more: object) -> str:
    """The job of a record in words: kernel digits 3 relu."""
    return " ".join([rule, *(wildcards[key] for key in sorted(wildcards))])


def differences(before: Iterable[str], today: Iterable[str]) -> list[str]:
    """Texts that differ: width=512 → width=256; code ntk.empirical changed."""
    old, new = (
        {t.partition(sign)[0]: t for t in of if (sign := _sign(t))} for of in (before, today)
    )
    words = []
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        change = f"{was or '–'} → {now or '–'}"
        short = len(change) < LONGEST and not (was and now and _is_digest(now))
        words.append(change if short else f"{name} changed")
    return words


def agrees(made_with: Mapping, path: Path | str) -> bool:
    """Whether an input is still what it was when the result was made; also if it is gone."""
    name = input_name(path)
    before = next((some[name] for some in made_with["inputs"].values() if name in some), None)
    if before is None or not is_result(path) or not Path(path).exists():
        return True
    (record_before, _, old), (record_today, _, new) = (
        one.partition(CONTENT) for one in (before, input_digest(path)[0])
    )
    return old == new if old and new else record_before == record_today


def _sign(text: str) -> str:
    """Between the name and the value of a text."""
    return "=" if "=" in text.partition(" ")[0] else " "


def _is_digest(text: str) -> bool:
    value = text.rpartition(" ")[2]
    return len(value) >= 12 and all(sign in "0123456789abcdef" for sign in value)


def canonical(value: object) -> Any:
    """With builtin types as JSON has them, and whole numbers as such: 8.0 is 8."""
    if isinstance(value, Mapping):
        return {str(key): canonical(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(entry) for entry in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def short_digest(value: object) -> str:
    """12 hexadecimal digits."""
    text = json.dumps(canonical(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def digest(made_with: dict) -> str:
    """The digest of a record; the order of input files counts, their content does not."""
    inputs = made_with.get("inputs", {})
    ordered = {
        option: [(path, entry.partition(CONTENT)[0]) for path, entry in paths.items()]
        for option, paths in inputs.items()
    }
    return short_digest({**made_with, "inputs": ordered})


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
            made_with = json.loads(sidecar(path).read_text("utf-8"))["record"]
        elif is_whole(path):
            import h5py

            with h5py.File(path, "r", locking=False) as file:
                made_with = json.loads(file.attrs["provenance"])
        return made_with if "rule" in made_with else None  # else of ntkcond 0.2.0
    except Exception:  # a damaged file may fail in any way
        return None


def upstream(path: str, folder: Path) -> dict[str, dict]:
    """The records of a result, by its name, and of all that it was made of and that is not gone,
    inputs first. folder: of results/."""
    made_with = read(folder / path)
    if made_with is None:
        return {}
    found: dict[str, dict] = {}
    for name in inputs_of(made_with):
        if name not in found:
            found |= upstream(name, folder)
    return found | {path: made_with}


def inputs_of(made_with: Mapping) -> list[str]:
    """Names of the inputs of a result; of an artefact's provenance that of its table."""
    names = (Path(name) for paths in made_with["inputs"].values() for name in paths)
    return [
        f"{RESULTS}/{name.stem}.csv" if name.parent.name == "provenance" else name.as_posix()
        for name in names
    ]


def files_of(path: Path | str) -> dict[str, str]:
    """sha256 of each file of an artefact, by one of them; empty where that is not known."""
    try:
        return json.loads(sidecar(path).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def input_digest(path: Path | str) -> tuple[str, dict | None]:
    """The digest of a result's record, behind it that of a table's content when it was made, and
    the record; of any other file, the digest of its content, and None."""
    made_with = read(path) if is_result(path) else None
    if not made_with:
        return sha256_of(path)[:32], None
    content = files_of(path).get(Path(path).name) if Path(path).suffix == ".csv" else None
    return f"{digest(made_with)}{CONTENT}{content[:32]}" if content else digest(
        made_with
    ), made_with


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
