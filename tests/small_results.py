"""Every step run once on small data, without Snakemake. Tests that take `ran` import it here."""

import copy
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from filelock import FileLock
from snakemake.utils import update_config

from dag import Dag, Job, job
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES, module_name
from ntkcond.pipeline import config as settings
from ntkcond.pipeline.jobs import Jobs
from ntkcond.pipeline.workflow import outputs_of
from speech import write_corpus
from workflow import ROOT, SMALL, Forks

HELPERS = (
    "__init__", "checkpoint", "kernel_errors", "network_options", "spectra", "training_task"
)  # fmt: skip
STEPS = sorted(
    f"ntkcond.steps.{path.stem}"
    for path in Path(ROOT, "src/ntkcond/steps").glob("*.py")
    if path.stem not in HELPERS
)
OWN = {
    "datasets": {
        "mine": {"file": "mine.npz", "hold_out": 4, "block": 8},
        "speech": {
            "source": "librispeech", "samples": 40, "mel": 24, "splice": 4, "features": 96,
        },
    },
}  # fmt: skip
PACKAGES = (
    "h5py", "matplotlib.figure", "pandas", "psutil", "scipy.special", "sklearn", "soundfile",
    "torch", "tqdm", "ntkcond.datasets.torchvision_data",
)  # fmt: skip
UNSEEN = "ntkcond.settings.command"  # which no number depends on, nor on what it loads
LONG = ("theory", "claims", "costs")  # Monte Carlo of half a minute, and what needs it: loaded only


@dataclass(frozen=True)
class Ran:
    """folder: where results are. loaded: for each job's first output, and for each name of
    modules that were only imported, what was in sys.modules. jobs: those that were run."""

    folder: Path
    config: dict
    loaded: dict[str, set[str]]
    jobs: list[Job]

    @property
    def dag(self) -> Dag:
        """To be asked in the folder."""
        return Dag(Jobs(settings.typed(self.config), self.folder))


def inputs_of(dag: Dag, job: Job) -> list[str]:
    """As options of the step."""
    words = []
    for option, jobs in dag.inputs(job).items():
        paths = [one.outputs[-1 if option == "artefacts" else 0] for one in jobs]
        named = job.artefact and not job.draws
        words += ["--input", option, *paths] if named else [f"--{option}={paths[0]}"]
    own = {} if job.artefact else dag.jobs.files(job.rule, dict(job.wildcards))
    return [*words, *(f"--{name}={path}" for name, path in own.items())]


def run_all(folder: Path) -> Ran:
    """In the folder, from which the config's own paths start too."""
    config = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
    update_config(config, copy.deepcopy(SMALL))
    update_config(config, OWN)
    settings.complete(config)
    write_corpus(folder / "data", subset="train-clean-100")
    x = np.random.default_rng(0).standard_normal((20, 3))
    np.savez(folder / "mine.npz", x=x, y=np.arange(20) % 2)
    before = Path.cwd()
    os.chdir(folder)  # as Snakemake does
    try:
        ran = Ran(folder, config, {}, [])
        dag = ran.dag
        wanted = [Job(rule) for name in SPECS if name not in LONG
                  for rule in (name, f"draw_{name}") if outputs_of(rule)]  # fmt: skip
        wanted += [job("dataset", dataset=name) for name in OWN["datasets"]]
        jobs = dag.upstream(*wanted)
        server = Forks(*PACKAGES)
        importing = {step: [step] for step in STEPS}
        importing |= {UNSEEN: [UNSEEN]}
        importing |= {
            f"data set {source}": ["ntkcond.steps.dataset", module_name(source)]
            for source in SOURCES
        }
        importing |= {
            f"artefact {name}": [f"ntkcond.steps.{s}" for s in ("table", "drawing")]
            + [f"ntkcond.artefacts.{name}"]
            for name in SPECS
        }
        for name, modules in importing.items():
            done, ran.loaded[name] = server.run(folder, None, path=[ROOT / "src"], imports=modules)
            assert done.returncode == 0, done.stderr
        for one in jobs:
            step = f"ntkcond.steps.{step_of(one)}"
            words = dag.jobs.command_line(one.rule, dict(one.wildcards)) + inputs_of(dag, one)
            done, modules = server.run(
                folder, step, *words, "--output", one.outputs[0], path=[ROOT / "src"]
            )
            assert done.returncode == 0, (one.outputs[0], done.stderr)
            ran.loaded[one.outputs[0]] = modules | {step}
        server.close()
    finally:
        os.chdir(before)
    ran.jobs.extend(jobs)
    return ran


def step_of(one: Job) -> str:
    return "drawing" if one.draws else "table" if one.artefact else one.rule


@pytest.fixture(scope="session")
def ran(tmp_path_factory, worker_id) -> Ran:
    """One for all of pytest's workers; not to be changed."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "steps"
    with FileLock(f"{shared}.lock"):
        if not (shared / "ran").exists():
            shared.mkdir()
            (shared / "ran").write_bytes(pickle.dumps(run_all(shared)))
        return pickle.loads((shared / "ran").read_bytes())
