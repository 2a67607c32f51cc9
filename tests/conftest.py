"""What several tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from ntkcond.arrays.backend import Device
from ntkcond.run.machine import use_threads
from one_device import OneDevice
from workflow import copy_of_the_project, snakemake


@pytest.fixture(scope="session", autouse=True)
def _few_threads():
    """Tests of small matrices gain nothing from more threads, and share the machine."""
    use_threads(1)


@pytest.fixture(params=["numpy", "torch"])
def device(request) -> Iterator[Device]:
    """Where to compute: with NumPy on the CPU, or with torch on a device that the CPU plays and
    that keeps its tensors apart (`one_device`)."""
    if request.param == "numpy":
        yield "cpu"
    else:
        with OneDevice():
            yield torch.device("cpu")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A folder with the original MNIST and Fashion-MNIST files; without one the test is skipped."""
    folder = os.environ.get("NTKCOND_TEST_DATA")
    if not folder:
        pytest.skip("NTKCOND_TEST_DATA names no folder with the original MNIST files")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def finished(tmp_path_factory, worker_id) -> Path:
    """A copy of the project, in a folder with a space in its name, with all its figures made; one
    for all of pytest's workers. Not to be changed, nor Snakemake to be run in it: that is what
    `project` is for."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "workflow"
    with FileLock(f"{shared}.lock"):
        if not (shared / "ready").exists():
            shutil.rmtree(shared, ignore_errors=True)  # of a worker that failed
            shared.mkdir()
            snakemake(copy_of_the_project(shared / "a project"))
            (shared / "ready").touch()
    return shared / "a project"


@pytest.fixture
def project(finished, tmp_path) -> Path:
    """A copy of the finished project to change."""
    return shutil.copytree(finished, tmp_path / "a project", symlinks=True)
