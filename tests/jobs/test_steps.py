"""Each computing step describes itself, and nothing else names it."""

import ast
import inspect
from dataclasses import fields

import pytest
import yaml

from ntkcond.artefacts.registry import SPECS
from ntkcond.jobs.registry import STEPS
from ntkcond.jobs.step import Step
from ntkcond.plan.config import typed
from ntkcond.plan.graph import Graph
from small_results import STEPS as RUN
from workflow import ROOT

SOURCE = ROOT / "src/ntkcond"
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
# the rules of artefacts and of raw files run the first two; the last is for kept results
NO_RULE = {"download", "drawing", "spot_check", "table"}


def test_every_step_has_a_job_module_and_every_job_module_its_step():
    assert STEPS.keys() == {name.rpartition(".")[2] for name in RUN} - NO_RULE


@pytest.mark.parametrize("name", STEPS)
def test_all_that_a_job_module_says_is_read(name):
    """A misspelt name would be passed over."""
    said = ast.parse((SOURCE / f"jobs/{name}.py").read_text("utf-8")).body
    public = {node.name for node in said if isinstance(node, ast.FunctionDef)} | {
        target.id
        for node in said
        if isinstance(node, ast.Assign)
        for names in node.targets
        for target in ast.walk(names)
        if isinstance(target, ast.Name) and not target.id.isupper()
    }
    read = {field.name for field in fields(Step)}
    used = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    for name in public - read:
        assert used.count(f"{name}(") + used.count(f": {name}}}") > 1, name


def test_every_computing_rule_has_requests():
    """A corpus is drawn where Snakemake runs."""
    for name, step in STEPS.items():
        assert (step.need is None) == (step.work is None) == (name == "corpus")


def test_sizes_are_known_by_name():
    """A misspelt parameter that has a default would never be given."""
    graph = Graph(typed(CONFIG), ROOT)
    jobs = {job.rule: job for name in SPECS for job in graph.upstream(graph.job(name))}
    optional = {"linear", "prove_smallest", "infinite", "together", "hours", "seeds"}
    for rule in STEPS.keys() & jobs.keys():
        request = graph.request(rule, jobs[rule].wildcards)
        for function in (request.step.need, request.step.work, request.step.file_bytes):
            if function:
                parameters = inspect.signature(function).parameters.values()
                assert {p.name for p in parameters if p.default is not p.empty} <= optional
        assert rule == "corpus" or (request.need() and request.work())


def comparisons_with(names: set[str], tree: ast.Module) -> list[str]:
    """Comparisons of a rule with the name of a step, as `rule == "kernel"`."""
    compared = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            words = {c.value for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant)}
            if words & names and any("rule" in ast.unparse(side) for side in sides):
                compared.append(ast.unparse(node))
    return compared


def test_nothing_else_compares_a_rule_with_a_step():
    assert comparisons_with({"kernel"}, ast.parse("if job.rule in ('kernel', 'spectrum'): pass"))
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "jobs":
            assert comparisons_with(set(STEPS), ast.parse(path.read_text("utf-8"))) == [], path
