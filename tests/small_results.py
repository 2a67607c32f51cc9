"""Every step run once on small data, without Snakemake. Tests that take `ran` import it here."""

import copy
import os
import pickle
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import yaml
from filelock import FileLock
from snakemake.utils import update_config

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES, module_name
from ntkcond.plan import config as settings
from ntkcond.plan.graph import Graph, Job
from speech import write_corpus
from workflow import ROOT, SMALL, Forks

STEPS = sorted(
    f"ntkcond.steps.{path.stem}"
    for path in Path(ROOT, "src/ntkcond/steps").glob("*.py")
    if path.stem not in ("__init__", "kernel_errors", "network_options", "spectra", "training_task")
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
LONG = ("theory", "claims", "costs")  # Monte Carlo of half a minute, and what needs it: loaded only


@dataclass(frozen=True)
class Ran:
    """folder: where results are. loaded: for each job's first output, and for each name of
    modules that were only imported, what was in sys.modules. jobs: those that were run."""

    folder: Path
    config: dict
    loaded: dict[str, set[str]]
    jobs: list[Job]


def inputs_of(job: Job) -> list[str]:
    """As options of the step."""
    if job.artefact and not job.draws:
        words = (["--input", name, *paths] for name, paths in job.inputs.items())
        return ["--artefact", job.artefact, *chain(*words)]
    words = (f"--{name}={path}" for name, (path,) in job.inputs.items())
    return [*(["--artefact", job.artefact] if job.draws else []), *words]


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
        graph = Graph(settings.typed(config), folder)
        wanted = [graph.artefact(name)[-1] for name in SPECS if name not in LONG]
        wanted += [graph.job("dataset", dataset=name) for name in OWN["datasets"]]
        jobs = {job.outputs: job for last in wanted for job in graph.upstream(last)}.values()
        loaded, server = {}, Forks(*PACKAGES)
        importing = {step: [step] for step in STEPS}
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
            done, loaded[name] = server.run(folder, None, path=[ROOT / "src"], imports=modules)
            assert done.returncode == 0, done.stderr
        for job in jobs:
            words = [*graph.options(job), *inputs_of(job)]
            step, output = job.modules[0], job.outputs[0]
            done, modules = server.run(
                folder, step, *words, "--output", output, path=[ROOT / "src"]
            )
            assert done.returncode == 0, (output, done.stderr)
            loaded[output] = modules | {step}
        server.close()
    finally:
        os.chdir(before)
    return Ran(folder, config, loaded, list(jobs))


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
