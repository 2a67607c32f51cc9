"""Configs at large: each passes the check at the start, or gets one line that names the setting.

`make fuzz` tries 2,000 in this process, and 50 in a real dry run; NTKCOND_TEST_CONFIGS and
NTKCOND_TEST_DRY_RUNS set other numbers.
"""

import copy
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ntkcond.artefacts.registry import SPECS
from ntkcond.plan import config as plan_config
from ntkcond.plan import effects, requests
from ntkcond.plan.workflow import Plan
from workflow import ROOT, copy_of_the_project, snakemake

CONFIGS = int(os.environ.get("NTKCOND_TEST_CONFIGS", 60))
DRY_RUNS = int(os.environ.get("NTKCOND_TEST_DRY_RUNS", 2))
DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
SCHEMA = yaml.safe_load((ROOT / plan_config.SCHEMA).read_text("utf-8"))
MANY = {"derandomize": True, "deadline": None, "database": None, "print_blob": False}
MANY["suppress_health_check"] = list(HealthCheck)

Place = tuple[str | int, ...]


def places(value: object, above: Place = ()) -> list[Place]:
    """Of every value in a config."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, inner in items:
        found.append((*above, key))
        if isinstance(inner, dict | list):
            found += places(inner, (*above, key))
    return found


def node_at(place: Place) -> dict:
    """What the schema says of it."""
    node = SCHEMA
    for key in place:
        node = _followed(node)
        if isinstance(key, int):
            node = node["items"]
        else:
            node = node.get("properties", {}).get(key) or node["additionalProperties"]
    return _followed(node)


def _followed(node: dict) -> dict:
    found = dict(node)
    while "$ref" in found:
        found |= SCHEMA["$defs"][found.pop("$ref").rpartition("/")[2]]
    return found


WORDS = [
    "relu",
    "gelu",
    "digits",
    "synthetic",
    "mnist",
    "all",
    "a b",
    "{x}",
    "~nobody/x",
    "",
    "é\n'\"",
]
text = st.sampled_from(WORDS) | st.text(max_size=8)
NUMBERS = [0, 1, 2, 3, 48, 1e-300, 1.0, 0.5, 1e5, 1e308, 10**6, 10**12, 10**20, 10**400]
numbers = st.sampled_from([*NUMBERS, float("inf"), float("nan")]) | st.integers()
numbers |= st.builds(lambda x: -x, numbers)


def allowed(node: dict) -> st.SearchStrategy:
    """Values that the schema allows, more or less."""
    node = _followed(node)
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "anyOf" in node and "type" not in node:
        return st.one_of([allowed(each) for each in node["anyOf"]])
    if "const" in node:
        return st.just(node["const"])
    match node.get("type"):
        case "integer" | "number":
            return numbers.map(abs)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(allowed(node["items"]), min_size=node.get("minItems", 0), max_size=3)
        case "object":
            known = {key: allowed(value) for key, value in node.get("properties", {}).items()}
            return st.fixed_dictionaries({}, optional=known)
    return text


junk = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text | numbers, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def changed_configs(draw) -> tuple[dict, list[Place]]:
    """The default config with up to three changes, and where they are."""
    config, changes = copy.deepcopy(DEFAULT), []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        place = draw(st.sampled_from(places(config)))
        *above, last = place
        inside = config
        for key in above:
            inside = inside[key]
        old = inside[last]
        match draw(st.sampled_from(["junk", *["allowed"] * 6, "moved", "wrapped", "text",
                                    "removed", "added", "misspelt", *["key"] * 6])):  # fmt: skip
            case "junk":
                inside[last] = draw(junk)
            case "allowed":
                try:
                    inside[last] = draw(allowed(node_at(place)))
                except (KeyError, TypeError, AttributeError):
                    inside[last] = draw(junk)
            case "moved":
                other = draw(st.sampled_from(places(DEFAULT)))
                value = DEFAULT
                for key in other:
                    value = value[key]
                inside[last] = copy.deepcopy(value)
            case "wrapped":
                inside[last] = draw(st.sampled_from([[old], {"x": old}, [[[old]]], {last: old}]))
            case "text":
                inside[last] = str(old)
            case "removed":
                del inside[last]
            case "added" if isinstance(inside, dict):
                last = draw(text | numbers | st.sampled_from([str(p[-1]) for p in places(DEFAULT)]))
                inside[last] = draw(junk)
            case "misspelt" if isinstance(inside, dict):
                key, old = str(last), inside.pop(last)
                last = key[:-2] + key[:-3:-1]
                inside[last] = old
            case "key" if isinstance(inside, dict):
                # a setting that the schema knows there
                try:
                    known = node_at(tuple(above)).get("properties", {})
                except (KeyError, TypeError, AttributeError):
                    known = {}
                if known:
                    last = draw(st.sampled_from(sorted(known)))
                    inside[last] = draw(allowed(known[last]))
            case _:
                inside.append(copy.deepcopy(old)) if isinstance(inside, list) else None
        changes.append((*above, last))
    return config, changes


WORKFLOW = SimpleNamespace(
    config_settings=SimpleNamespace(config={}),
    remote_exec=False,
    non_local_exec_or_dryrun=False,
    is_main_process=False,
    cores=2,
)


def start(config: dict) -> Plan:
    """What the Snakefile does with a config, for all jobs of all artefacts."""
    plan = Plan(WORKFLOW, copy.deepcopy(config), ROOT)
    targets = [plan.job(name, {}) for name in SPECS]
    jobs = list(dict.fromkeys(job for target in targets for job in plan.graph.upstream(target)))
    for job in jobs:
        rule, wildcards = job.rule, job.wildcards
        for paths in plan.inputs(rule)(wildcards).values():
            for path in paths:
                raw = path in job.raw or Path(path).is_file()
                assert raw or plan.graph.maker(path), f"nothing makes {path}"
        plan.command(rule)(wildcards, None)
        if rule in SPECS:
            plan.about(rule)(wildcards, None)
            continue
        threads = plan.threads(rule)(wildcards)
        for name, value in plan.resources(rule).items():
            extra = {"threads": threads} if name == "runtime" else {}
            value(wildcards, **({} if name == "gpu" else {"attempt": 3, **extra}))
        if rule in requests.NEEDS:
            requests.need(plan.config, rule, wildcards)
    effects.unused(plan.asked, DEFAULT, plan.config, {}, jobs)
    return plan


def assert_says_what_is_wrong(message: str, changes: list[Place]) -> None:
    line = message.removeprefix("ntkcond: ")
    assert line != message
    assert line.isprintable(), "more than a line"
    said = set(re.findall(r"\w+", line))
    keys = [key for place in changes for key in place if not isinstance(key, int)]
    keys += [place[-1] for place in changes]
    assert any(said & set(re.findall(r"\w+", str(key))) or repr(key) in line for key in keys)


@settings(max_examples=CONFIGS, **MANY)
@given(changed_configs())
def test_a_config_passes_or_the_setting_is_named(changed):
    config, changes = changed
    try:
        start(config)
    except SystemExit as end:
        assert_says_what_is_wrong(str(end.code), changes)
