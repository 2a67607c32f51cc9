"""The jobs of a config and which takes which, written down a second time: for tests."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from ntkcond.artefacts.registry import SPECS
from ntkcond.pipeline.jobs import DRAW, Jobs
from ntkcond.pipeline.registry import STEPS
from ntkcond.pipeline.workflow import outputs_of
from workflow import ROOT

RULES = {
    name: text
    for path in (ROOT / "workflow/rules").glob("*.smk")
    for name, text in re.findall(r"^rule (\w+):\n((?: .*\n|\n)+)", path.read_text("utf-8"), re.M)
}
PATHS = {
    name: re.search(r'output:\n +(?:keep\()?"([^"]+)"', text)[1]
    for name, text in RULES.items()
    if name in STEPS
}


class Job(NamedTuple):
    """wildcards: as items, in their order in the path."""

    rule: str
    wildcards: tuple[tuple[str, str], ...] = ()

    @property
    def artefact(self) -> str:
        name = self.rule.removeprefix(DRAW)
        return name if name in SPECS else ""

    @property
    def draws(self) -> bool:
        return bool(self.artefact) and self.rule != self.artefact

    @property
    def outputs(self) -> list[str]:
        named = dict(self.wildcards)
        return outputs_of(self.rule) if self.artefact else [PATHS[self.rule].format(**named)]


def job(rule: str, **wildcards: str) -> Job:
    """wildcards: in any order; others than those of the path are left out."""
    names = re.findall(r"{(\w+)}", PATHS.get(rule, ""))
    return Job(rule, tuple((name, wildcards[name]) for name in names))


class Dag:
    """The DAG of a config."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.inputs = functools.cache(self._inputs)

    def _inputs(self, of: Job) -> dict[str, list[Job]]:
        """By option of the step."""
        if of.draws:
            return {"table": [Job(of.artefact)]}
        if of.artefact:
            taken = self.jobs.inputs(of.rule).items()
            return {name: [job(rule, **w) for rule, w in some] for name, some in taken}
        named = dict(of.wildcards)
        if of.rule == "corpus":
            return {}
        if of.rule == "dataset":
            speech = named["dataset"] in self.jobs.served("corpus")
            return {"corpus": [job("corpus", **named)]} if speech else {}
        kernel = {"kernel": [job("kernel", **named)]} if of.rule == "spectrum" else {}
        return {"dataset": [job("dataset", **named)], **kernel}

    def upstream(self, *targets: Job) -> list[Job]:
        """These jobs and all that they depend on, inputs first, each once."""
        found: dict[Job, None] = {}
        for target in targets:
            if target not in found:
                taken = (one for some in self.inputs(target).values() for one in some)
                found |= dict.fromkeys([*self.upstream(*taken), target])
        return list(found)

    def default(self) -> list[Job]:
        """What `snakemake` makes without a target."""
        return self.of(name for name, spec in SPECS.items() if spec.default)

    def of(self, names: Iterable[str]) -> list[Job]:
        """What artefacts take, and they."""
        rules = [rule for name in names for rule in (name, f"{DRAW}{name}") if outputs_of(rule)]
        return self.upstream(*map(Job, rules))

    def texts(self, of: Job) -> set[str]:
        """What it is made with."""
        return self.jobs.texts(of.rule, dict(of.wildcards))

    def below(self, roots: Iterable[Job], among: Iterable[Job]) -> list[Job]:
        """The jobs that are among these roots, or depend on one."""
        roots = set(roots)
        return [one for one in among if not roots.isdisjoint(self.upstream(one))]
