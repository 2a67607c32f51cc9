"""The environments in which jobs can run: one list of versions."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain

import yaml

from workflow import ROOT


def test_each_dependency_has_a_licence_of_those_that_the_page_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    page = (ROOT / "docs/licences.md").read_text("utf-8")
    names = re.search(r"under a (.+?)\s+licence", page)[1].replace(" or ", ", ").split(", ")
    names.append("Python Software Foundation")
    for name in {re.match(r"[\w-]+", line)[0] for line in lines} - {"ntkcond"}:
        about = importlib.metadata.metadata(name)
        said = [about.get("License-Expression"), about.get("License")]
        words = " ".join(map(str, [*said, *about.get_all("Classifier", [])]))
        assert any(
            re.search(rf"\b{one}\b", words) for one in [*names, "Python Software Foundation"]
        ), name


def test_conda_has_the_locked_versions_of_all_that_jobs_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["workflow"]]
    names = {re.match(r"[\w-]+", line)[0] for line in needed} - {"snakemake", "pyyaml"}
    listed = yaml.safe_load((ROOT / "workflow/envs/ntkcond.yaml").read_text("utf-8"))
    pins = dict(line.split("==") for line in listed["dependencies"][-1]["pip"])
    assert pins.keys() == names
    locked = (ROOT / "locked/versions.txt").read_text("utf-8") + "\n".join(needed)
    assert all(re.search(rf"^{name}=={version}\b", locked, re.M) for name, version in pins.items())


def test_a_job_in_another_environment_has_the_code_of_this_one(tmp_path):
    """`--sdm conda` puts the other environment's programs first on PATH, and keeps PYTHONPATH."""
    program = (
        "import os, sys; from pathlib import Path;"
        "from ntkcond.pipeline.workflow import require_code;"
        "require_code(Path(), sys.argv[1]); print(os.environ['PYTHONPATH'])"
    )
    version = importlib.metadata.version("ntkcond")
    done = subprocess.run(
        [sys.executable, "-c", program, version], cwd=tmp_path, capture_output=True, text=True,
        env={"PATH": os.environ["PATH"]}, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(ROOT / "src")
