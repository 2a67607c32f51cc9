"""The settings' fields are what the code and the documentation say."""

import json
from dataclasses import fields

import jsonschema
import pytest
import yaml

from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.mlp import MLP
from ntkcond.pipeline.schema import SCHEMA, of_overlays, with_tables
from ntkcond.settings.fields import Config, Entry, Network
from workflow import ROOT

COMMAND = "python -m ntkcond.pipeline.schema config/README.md"


def names(of: type) -> list[str]:
    return [field.name for field in fields(of)]


def test_the_tables_of_settings_are_those_of_the_fields():
    page = (ROOT / "config/README.md").read_text("utf-8")
    assert page.count("<!-- settings: ") == 4
    assert with_tables(page) == page, f"run: {COMMAND}"
    changed = page.replace("| neurons in each hidden layer, m |", "| m |")
    assert changed != page and with_tables(changed) == page


def test_the_schema_is_one_and_allows_the_default_config():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    config = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    assert names(Config) == list(SCHEMA["properties"])
    jsonschema.validate(config, SCHEMA)
    with pytest.raises(jsonschema.ValidationError, match="widht"):
        jsonschema.validate({**config, "widht": 3}, SCHEMA)


@pytest.mark.parametrize(
    "study", sorted(path.parent.name for path in ROOT.glob("studies/*/config.yaml"))
)
def test_the_schema_for_editors_allows_every_study(study):
    schema = of_overlays(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(schema)
    overlay = yaml.safe_load((ROOT / f"studies/{study}/config.yaml").read_text("utf-8"))
    jsonschema.validate(json.loads(json.dumps(overlay)), schema)  # names of JSON are text


@pytest.mark.parametrize(
    ("overlay", "allowed"),
    [
        ({}, True),
        ({"width": 3}, True),
        ({"width": None}, True),
        ({"datasets": {"mnist": None, "digits": {"hold_out": None}}}, True),
        ({"width": -3}, False),
        ({"training": {"epoch": 3}}, False),
        ({"datasets": {"digits": {"training": {"loss": "hinge"}}}}, False),
        ({"datasets": {"mine": 3}}, False),
    ],
)
def test_in_an_overlay_a_setting_may_be_left_out_or_null_but_not_wrong(overlay, allowed):
    assert jsonschema.Draft202012Validator(of_overlays(SCHEMA)).is_valid(overlay) == allowed


def test_the_settings_of_a_network_are_its_fields():
    """In their order, which is that of the options of steps."""
    assert ["activation", "depth", *names(Network)] == names(MLP)


def test_every_setting_of_a_source_is_one_of_a_data_set():
    for source in SOURCES.values():
        assert source.settings | source.required <= set(names(Entry))


def test_settings_are_frozen():
    for of in (Config, Entry, Network):
        assert of.__dataclass_params__.frozen
