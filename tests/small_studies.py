"""The studies at small size: their own configs, over them what makes each job take a moment. The
digits stand for images."""

import copy
import shutil
from pathlib import Path

import yaml
from snakemake.utils import update_config

from workflow import ROOT, SMALL, copy_of_the_project

IMAGES = {"source": "digits", "samples": 80, "block": 20, "hold_out": 1700}
TINY = {
    **SMALL,
    "activations": ["relu"],
    "depths": [1],
    "seeds": [1],
    "training": {"depths": [1], "seeds": [1], "epochs": 2, "batch": 12, "learning_rates": [8]},
    "architectures": {**SMALL["architectures"], "names": ["plain"], "depths": [1], "seeds": [1]},
    "descent": {**SMALL["descent"], "depths": [1]},
    "speed": {**SMALL["speed"], "depths": [1], "widths": [8], "seeds": [1], "samples": 24,
              "batch": 12, "activations": ["relu"]},
    "datasets": {
        "mnist": IMAGES, "fashion_mnist": IMAGES, "synthetic": SMALL["datasets"]["synthetic"],
    },
}  # fmt: skip
LARGE = ("claims", "costs")  # which need every artefact
OVER = {  # settings that a study is about
    "whole": {
        "datasets": {"mnist": {"samples": [40, 80], "block": "all"}},
        "figures": {"fig2": ["mnist"]},
    },
    "table_1": {"training": {"learning_rates": {1: [8]}, "stop_below": 0.001}},
}


def small_config(study: str) -> dict:
    """The study's config, with few samples, narrow networks, no speech."""
    config = yaml.safe_load((ROOT / f"studies/{study}/config.yaml").read_text("utf-8"))
    config = {**config, **copy.deepcopy(TINY)}
    update_config(config, copy.deepcopy(OVER.get(study, {})))
    for figure, names in config["figures"].items():
        known = [name for name in names if name in TINY["datasets"]]
        config["figures"][figure] = known or ["mnist"]
    config["keep"] = [name for name in config["keep"] if name not in LARGE]
    return config


def small_studies(place: Path) -> Path:
    """A copy of the project in a new folder, with small studies of which nothing is kept yet."""
    copy_of_the_project(place)
    (place / "studies").mkdir()
    shutil.copy2(ROOT / "studies/Snakefile", place / "studies")
    shutil.copy2(ROOT / "studies/README.md", place / "studies")
    for config in ROOT.glob("studies/*/config.yaml"):
        folder = place / "studies" / config.parent.name
        folder.mkdir()
        text = yaml.safe_dump(small_config(folder.name), sort_keys=False)
        (folder / "config.yaml").write_text(text, "utf-8")
    return place
