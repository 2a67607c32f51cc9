"""A computing step says of itself what its rule needs, and the rule is its own."""

import inspect
import re

import pytest
import yaml

from dag import PATHS, RULES, Dag
from ntkcond.pipeline.config import typed
from ntkcond.pipeline.jobs import Jobs, settings_of
from ntkcond.pipeline.registry import STEPS
from small_results import STEPS as RUN
from workflow import ROOT

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
NO_SETTINGS = {"download", "drawing", "table"}  # of artefacts and of raw files


def test_every_step_has_a_rule_and_every_rule_its_step():
    assert STEPS.keys() == {name.rpartition(".")[2] for name in RUN} - NO_SETTINGS
    assert RULES.keys() == {*STEPS, "download", "downloads"}


@pytest.fixture(scope="module")
def dag() -> Dag:
    return Dag(Jobs(typed(CONFIG), ROOT))


def test_sizes_are_known_by_name(dag):
    """A misspelt parameter that has a default would never be given."""
    jobs = {job.rule: dict(job.wildcards) for job in dag.default() if not job.artefact}
    for rule, wildcards in jobs.items():
        request = dag.jobs.request(rule, wildcards)
        parameters = inspect.signature(request.step.need).parameters.values()
        assert {p.name for p in parameters if p.default is not p.empty} <= {
            "linear", "together", "seeds", "makes_kernels",
        }  # fmt: skip
        assert request.need().bytes > 0


def test_a_job_has_no_setting_that_its_step_does_not_take(dag):
    for job in dag.default():
        if not job.artefact:
            settings = dag.jobs.settings(job.rule, dict(job.wildcards))
            assert settings.keys() <= set(settings_of(job.rule))


@pytest.mark.parametrize("name", STEPS)
def test_a_rule_asks_for_its_own_step(name):
    rule = RULES[name]
    asked = re.findall(
        r"\b(?:made_with|options|memory|threads_of|ranks|own_files)\(\"(\w+)\"", rule
    )
    assert set(asked) == {name}
    assert f'*made_with("{name}")' in rule and f"python -m ntkcond.steps.{name} " in rule
    assert "{params.options:q}" in rule
    place = PATHS[name].removeprefix("results/").partition("/")[2].removesuffix(".h5")
    for folder, suffix in (("logs", "log"), ("benchmarks", "tsv")):
        assert re.search(rf'"results/{folder}/\w+/{re.escape(place)}\.{suffix}"', rule)
    for option in re.findall(r'^ {8}(\w+)="results', rule, re.M):
        assert f"--{option} {{input.{option}}}" in rule
