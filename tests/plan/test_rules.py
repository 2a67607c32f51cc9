"""The rules that people read (workflow/rules) and what the plan knows of them are one."""

import re

import pytest

from ntkcond.jobs.registry import STEPS
from workflow import ROOT

RULES = {
    name: text
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name, text in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", path.read_text("utf-8"), re.M)
}


def part(rule: str, keyword: str) -> str:
    """What stands below a keyword of a rule; "" without it."""
    lines = re.search(rf"^    {keyword}:(.*\n(?: {{8}}.*\n)*)", rule, re.M)
    return lines[1] if lines else ""


def disagreements(name: str, rule: str) -> list[str]:
    """Between a rule's text and its step in ntkcond.jobs."""
    step, wrong = STEPS[name], []
    if f'"{step.path}"' not in part(rule, "output"):
        wrong.append("output")
    inputs = part(rule, "input")
    by_name = dict(re.findall(r'(\w+)="(.+?)"', inputs))
    if by_name != {taken: STEPS[taken].path for taken in step.takes} and (
        f'plan.inputs("{name}")' not in inputs
    ):
        wrong.append("input")
    shell = part(rule, "shell")
    for option in by_name:
        if f"--{option} {{input.{option}}}" not in shell:
            wrong.append(f"--{option}")
    compared = dict(re.findall(r'(\w+)=plan\.\w+\("(\w+)"\)', part(rule, "params")))
    from_outside = 'plan.inputs("' in inputs or step.folder
    if compared != dict.fromkeys(
        ["settings", "code", "versions"] + (["content"] if from_outside else []), name
    ):
        wrong.append("params")
    if f"python -m ntkcond.steps.{name} " not in shell or "{params.settings:q}" not in shell:
        wrong.append("shell")
    if ("--device {params.device}" in shell) != ("device" in step.unrecorded):
        wrong.append("device")
    place = step.path.removeprefix("results/").partition("/")[2].removesuffix(".h5")
    for keyword, folder, suffix in (("log", "logs", "log"), ("benchmark", "benchmarks", "tsv")):
        if not re.search(rf'"results/{folder}/\w+/{re.escape(place)}\.{suffix}"', rule):
            wrong.append(keyword)
    return wrong


def test_every_computing_step_has_a_rule():
    assert RULES.keys() == {*STEPS, "download", "downloads"}


@pytest.mark.parametrize("name", STEPS)
def test_a_rule_is_as_the_plan_knows_it(name):
    assert disagreements(name, RULES[name]) == []


@pytest.mark.parametrize(
    ("name", "text", "instead", "wrong"),
    [
        ("kernel", '        dataset="results/datasets/{dataset}.h5",\n', "", "input"),
        ("spectrum", "kernels/{dataset}", "spectra/{dataset}", "input"),
        ("spectrum", " --kernel {input.kernel}", "", "--kernel"),
        ("kernel", '        code=plan.code("kernel"),\n', "", "params"),
        ("kernel", 'plan.settings("kernel")', 'plan.settings("spectrum")', "params"),
        ("dataset", '        content=plan.content("dataset"),\n', "", "params"),
        ("kernel", "kernels/{dataset}/{network}/depth{depth}.h5", "kernels/{depth}.h5", "output"),
    ],
)
def test_a_rule_that_says_something_else_is_noticed(name, text, instead, wrong):
    assert text in RULES[name]
    assert wrong in disagreements(name, RULES[name].replace(text, instead))
