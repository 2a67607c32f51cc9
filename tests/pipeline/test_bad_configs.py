"""Configs at large: each passes the check at the start, or gets one line that names the setting.

`pytest --thorough` tries 2,000 in this process, and 50 others in real dry runs.
"""

import contextlib
import copy
import functools
import importlib.metadata
import math
import os
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from snakemake.iocontainers import Wildcards

from dag import Dag, Job
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES
from ntkcond.pipeline import config as plan_config
from ntkcond.pipeline.registry import STEPS
from ntkcond.pipeline.schema import SCHEMA
from ntkcond.pipeline.workflow import FIRST, Workflow, exit_on_mistake
from ntkcond.run.errors import UserError
from thoroughness import how_many
from workflow import ROOT, copy_of_the_project, snakemake

CONFIGS = how_many("CONFIGS", few=60, thorough=2000)
DRY_RUNS = how_many("DRY_RUNS", few=2, thorough=50)
VERSION = importlib.metadata.version("ntkcond")
DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
MANY = {"derandomize": True, "deadline": None, "database": None, "print_blob": False}
MANY["suppress_health_check"] = list(HealthCheck)
MANY["phases"] = [Phase.generate, Phase.shrink]

Place = tuple[str | int, ...]
WORDS = ["relu", "digits", "mnist", "all", "a b", "{x}", "~nobody/x", "", "é\n'\""]
NUMBERS = [0, 1, 2, 48, 1e-300, 1.0, 0.5, 1e5, 1e308, 10**6, 10**12, 10**400, math.inf, math.nan]
text = st.sampled_from(WORDS) | st.text(max_size=8)
numbers = st.sampled_from(NUMBERS) | st.integers(0)
junk = st.recursive(
    st.none() | st.booleans() | numbers | numbers.map(lambda x: -x) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text | numbers, inner, max_size=3),
    max_leaves=4,
)


def at(config: dict, place: Place) -> Any:
    return functools.reduce(lambda value, key: value[key], place, config)


def places(value: Any, above: Place = ()) -> list[Place]:
    """Of every value in a config."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    inner = [places(each, (*above, key)) for key, each in items if isinstance(each, dict | list)]
    return sum(inner, [(*above, key) for key, _ in items])


def schema_at(place: Place) -> dict:
    """What the schema says of a setting; of one that it does not know, nothing."""
    node = SCHEMA
    for key in place:
        others = node.get("items" if isinstance(key, int) else "additionalProperties") or {}
        node = dict(node.get("properties", {}).get(key, others))
    return node


def allowed(node: dict) -> st.SearchStrategy:
    """Values that this part of the schema more or less allows."""
    kind = node.get("type", "")
    if "const" in node or "enum" in node:
        return st.sampled_from(node.get("enum") or [node["const"]])
    if kind == "array":
        return st.lists(allowed(node["items"]), min_size=node.get("minItems", 0), max_size=3)
    if kind == "object":
        known = {key: allowed(inner) for key, inner in node.get("properties", {}).items()}
        return st.fixed_dictionaries({}, optional=known)
    if "anyOf" in node:
        return st.one_of(map(allowed, node["anyOf"]))
    return {"integer": numbers, "number": numbers, "boolean": st.booleans()}.get(kind, text)


@st.composite
def changed_configs(draw: st.DrawFn) -> tuple[dict, list[Place]]:
    """The default config with one to three changes, and where they are."""
    config, changes = copy.deepcopy(DEFAULT), []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        *above, last = draw(st.sampled_from(places(config)))
        inside = at(config, above)
        kinds = ["allowed", "another"] * 5 + ["junk", "wrapped", "moved", "removed", "renamed"]
        kind, known = draw(st.sampled_from(kinds)), schema_at(above).get("properties")
        if kind == "another" and known:
            last = draw(st.sampled_from(sorted(known)))
        if kind in ("allowed", "another"):
            inside[last] = draw(allowed(schema_at((*above, last))))
        elif kind == "junk":
            inside[last] = draw(junk)
        elif kind == "wrapped":
            old = inside[last]
            inside[last] = draw(st.sampled_from([[old], {"x": old}, [[[old]]], str(old)]))
        elif kind == "moved":
            inside[last] = copy.deepcopy(at(DEFAULT, draw(st.sampled_from(places(DEFAULT)))))
        else:
            old = inside.pop(last)
            if kind == "renamed" and isinstance(inside, dict):
                last = draw(text | numbers | st.just(str(last)[::-1]))
                inside[last] = old
        changes.append((*above, last))
    return config, changes


def is_number(checker: object, value: object) -> bool:
    """Finite: JSON has no nan, which is above no minimum and below none."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def is_whole(checker: object, value: object) -> bool:
    """2.0 is one by JSON Schema, but no depth in the name of a file."""
    return type(value) is int


DRAFT = jsonschema.Draft202012Validator
TYPES = DRAFT.TYPE_CHECKER.redefine_many({"number": is_number, "integer": is_whole})
VALIDATOR = jsonschema.validators.extend(DRAFT, type_checker=TYPES)(SCHEMA)


def as_json(value: Any, name: object = "") -> Any:
    """The value with the keys of learning_rates, depths, as text: JSON has no others. Of YAML's
    keys those that are text are no depths."""
    if isinstance(value, dict):
        depths = name == "learning_rates"
        return {repr(key) if depths else key: as_json(one, key) for key, one in value.items()}
    return [as_json(one) for one in value] if isinstance(value, list) else value


def assert_the_check_agrees_with_the_schema(config: dict) -> None:
    valid = VALIDATOR.is_valid(as_json(config))
    with contextlib.nullcontext() if valid else pytest.raises(UserError):
        plan_config.typed(config)


@pytest.mark.parametrize("depth", [0, 3, -1, 1.5, "3", "x"])
def test_they_agree_on_rates_by_depth(depth):
    config = copy.deepcopy(DEFAULT)
    config["training"]["learning_rates"] = {depth: [8]}
    assert_the_check_agrees_with_the_schema(config)


@settings(max_examples=10 * CONFIGS, **MANY)
@given(changed_configs())
def test_the_check_and_the_json_schema_agree(changed):
    assert_the_check_agrees_with_the_schema(changed[0])


@settings(max_examples=10 * CONFIGS, **MANY)
@given(st.lists(st.sampled_from([1, 2, 3, "all"]) | numbers | junk, max_size=3))
def test_they_agree_on_lists_of_sizes(sizes):
    mnist = {**DEFAULT["datasets"]["mnist"], "samples": sizes}
    datasets = {**DEFAULT["datasets"], "mnist": mnist}
    assert_the_check_agrees_with_the_schema({**DEFAULT, "datasets": datasets})


WORKFLOW = SimpleNamespace(
    persistence=SimpleNamespace(metadata=lambda file: None),
    cores=2,
)


def workflow_of(config: dict) -> Workflow:
    """As the Snakefile makes it."""
    try:
        return Workflow(WORKFLOW, copy.deepcopy(config), VERSION, ROOT)
    finally:
        os.environ.pop(FIRST)  # of this process: other tests start Snakemake


@exit_on_mistake
def start(config: dict) -> Workflow:
    """What the Snakefile does with a config, for all jobs of all artefacts."""
    ours = workflow_of(config)
    params = {rule: ours.made_with(rule) for rule in (*STEPS, *SPECS, *ours.drawings)}
    for job in Dag(ours.jobs).upstream(*map(Job, SPECS), *map(Job, ours.drawings)):
        rule, wildcards = job.rule, Wildcards(fromdict=dict(job.wildcards))
        texts = {text(wildcards) for text in params[rule]} - {""}
        assert texts == ours.texts(rule, dict(job.wildcards))
        if not job.artefact:
            ours.own_files(rule)(wildcards)
            assert ours.threads(rule)(wildcards) > 0
            assert ours.memory(rule)(wildcards, attempt=3) > 0
            ours.jobs.request(rule, dict(job.wildcards)).need()
    return ours


def assert_names_the_mistake(message: str, changes: list[Place]) -> None:
    line = message.removeprefix("ntkcond: ")
    assert line != message
    assert line.isprintable(), "more than a line"
    said = set(re.findall(r"\w+", line))
    keys = [key for place in changes for key in place if not isinstance(key, int)]
    keys += [place[-1] for place in changes]
    assert any(said & set(re.findall(r"\w+", str(key))) or repr(key) in line for key in keys)


@settings(max_examples=CONFIGS, **MANY)
@given(changed_configs())
def test_a_config_passes_or_its_mistake_is_named(changed):
    config, changes = changed
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # no results
            start(config)
    except SystemExit as end:
        assert_names_the_mistake(str(end.code), changes)


def passes(changed: tuple[dict, list[Place]]) -> bool:
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            return bool(start(changed[0]))
    except SystemExit:
        return False


# Snakemake looks further at those that pass.
@settings(max_examples=DRY_RUNS, **MANY)
@given(changed_configs().filter(passes) | changed_configs())
def dry_run(project: Path, changed: tuple[dict, list[Place]]) -> None:
    config, changes = changed
    (project / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
    before = files(project)
    done = snakemake(project, "-n", check=False)
    assert "Traceback" not in done.stdout + done.stderr
    if done.returncode:
        assert_names_the_mistake(done.stderr.strip().splitlines()[-1], changes)
    assert files(project) == before


def files(project: Path) -> set[Path]:
    ignored = {".snakemake", "__pycache__"}
    return {path for path in project.rglob("*") if not ignored & set(path.parts)}


def test_a_dry_run_passes_or_the_mistake_is_named(tmp_path):
    project = copy_of_the_project(tmp_path / "a project")
    (project / "small.yaml").write_text("{}", "utf-8")
    dry_run(project)


def test_raw_files_are_found_by_any_path_to_their_folder(tmp_path):
    (tmp_path / "here").mkdir()
    ours = workflow_of({**DEFAULT, "data_dir": f"{tmp_path}/here/.."})
    raw = ours.own_files("dataset")(Wildcards(fromdict={"dataset": "mnist"}))["raw"]
    assert raw[0] == ours.raw_pattern.format(raw_file=SOURCES["mnist"].raw_files[0])


@pytest.mark.parametrize("text", ["2024-13-45", "[" * 1500, "{a: [", "!!python/name:os.system"])
def test_what_is_no_yaml_is_refused_in_a_line(text):
    with pytest.raises(UserError, match=r"^width: not valid YAML") as caught:
        plan_config.complete({"width": text})
    assert str(caught.value).isprintable()
