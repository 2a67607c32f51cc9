"""What several tests share."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Small matrices gain nothing from threads; and where they have some, as jobs of training, one that
# waits for another must not keep it from its processor: that takes ten times as long.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import pytest
import torch
from filelock import FileLock
from xdist.scheduler import LoadScopeScheduling

import thoroughness
from http_server import served
from ntkcond.arrays.backend import Device
from ntkcond.datasets.samples import Raw
from one_device import OneDevice
from workflow import command, copy_of_the_project, environment

# The longest, and those that only wait: at the end, one alone would keep a processor idle.
FIRST = ("test_slurm.py", "test_faults.py", "test_sgd.py", "test_workflow.py")
# Files whose tests share what takes long to make; of all others, any worker takes the next test.
TOGETHER = {
    "tests/test_slurm.py": "slurm", "tests/test_report.py": "report",
    "tests/test_site.py": "report", "tests/test_scalapack.py": "scalapack",
    "tests/arrays/test_block_cyclic.py": "block_cyclic",
    "tests/pipeline/test_digests.py": "ran", "tests/pipeline/test_record.py": "ran",
    "tests/artefacts/test_figures.py": "ran",
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="many more cases: CONTRIBUTING.md")


def pytest_configure(config: pytest.Config) -> None:
    thoroughness.asked = config.option.thorough


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


class Groups(LoadScopeScheduling):
    """What xdist's --dist loadgroup does, which does not work with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER.get(nodeid.partition("::")[0], nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Groups:
    return Groups(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    torch.set_flush_denormal(False)  # a training job sets it for its process, or for a test's
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU")


CUDA = [pytest.param("cuda", marks=pytest.mark.cuda)] if torch.cuda.is_available() else []


@pytest.fixture(params=["numpy", "torch", *CUDA])
def device(request) -> Iterator[Device]:
    """Where to compute: with NumPy on the CPU, with torch on a device that the CPU plays and that
    keeps its tensors apart (`one_device`), or on a GPU."""
    if request.param == "numpy":
        yield "cpu"
    elif request.param == "cuda":
        yield torch.device("cuda")
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


@pytest.fixture
def real_mnist(real_data: Path) -> Raw:
    """All of MNIST; torchvision reads it."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision, which reads MNIST, is not installed")
    from ntkcond.datasets import mnist

    return mnist.load(real_data, {})


@pytest.fixture
def server(tmp_path) -> Iterator[tuple[Path, str]]:
    """A folder served over HTTP on loopback, and its address."""
    folder = tmp_path / "served"
    folder.mkdir()
    with served(folder) as address:
        yield folder, address


@pytest.fixture(scope="session")
def finished(tmp_path_factory, worker_id) -> Path:
    """A copy of the project, in a folder with a space in its name, with what it keeps made; one
    for all of pytest's workers. Not to be changed, nor Snakemake to be run in it: that is what
    `project` is for."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "workflow"
    with FileLock(f"{shared}.lock"):
        if not (shared / "ready").exists():
            shutil.rmtree(shared, ignore_errors=True)  # of a worker that failed
            shared.mkdir()
            place = copy_of_the_project(shared / "a project")
            subprocess.run(command(), cwd=place, env=environment(place), check=True)
            (shared / "ready").touch()
    return shared / "a project"


@pytest.fixture
def project(finished, tmp_path) -> Path:
    """A copy of the finished project to change."""
    return shutil.copytree(finished, tmp_path / "a project", symlinks=True)
