"""The package's layers: imports point down, and nothing below the steps changes a number unseen."""

import ast
import inspect
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ntkcond.arrays import block_cyclic, half
from ntkcond.ntk import closest_pair, eigenvalues, empirical, infinite_width, rounding
from ntkcond.settings import memory
from ntkcond.steps import closest_pair as closest_pair_step
from ntkcond.steps import kernel, scalapack_spectrum, sweep
from ntkcond.steps import sgd as sgd_step
from ntkcond.steps import spectrum as spectrum_step
from ntkcond.training import sgd
from workflow import ROOT

SOURCE = ROOT / "src/ntkcond"
# What each layer may import, beside itself. No two have each other.
BELOW = {
    "__main__": {"library"},
    "studies": {"checks", "pipeline", "artefacts", "settings", "run"},
    "checks": {"steps", "networks", "run"},
    "pipeline": {"steps", "artefacts", "datasets", "networks", "settings", "run"},
    "steps": {
        "artefacts",
        "library",
        "ntk",
        "training",
        "datasets",
        "networks",
        "arrays",
        "settings",
        "run",
    },
    "artefacts": {"ntk", "training", "datasets", "networks", "arrays", "run"},
    "library": {"ntk", "datasets", "networks", "arrays", "run"},
    "ntk": {"datasets", "networks", "arrays", "run"},
    "training": {"networks", "arrays", "run"},
    "settings": {"networks", "run"},
    "datasets": {"run"},
    "networks": {"arrays", "run"},
    "arrays": set(),
    "run": set(),
}
COMPUTED = ("steps", "artefacts", "library", "ntk", "training", "datasets", "networks", "arrays")
# What computed modules may take from `run` and `settings`, and why no number of a result comes with
# it. They are in no digest: were a number taken from there, changing it would rebuild nothing.
NO_NUMBERS = {
    "errors.UserError": "ends the step",
    "progress.progress": "yields the items as they are",
    "progress.log": "words",
    "progress.bar": "words",
    "progress.expect": "words",
    "progress.advance": "words",
    "progress.timed": "words",
    "units.size": "words",
    "files.read_hdf5": "values come back as they were written: FORMAT, test_files.py",
    "files.write_hdf5": "the same",
    "files.csv_of": "the same",
    "seal.seal": "the same: a checksum at a file's end",
    "seal.is_whole": "refuses a file that has changed",
    "files.write_artefact": "bytes as they are",
    "files.replacing": "a path to write to",
    "files.explained": "changes exceptions only",
    "files.require_space": "ends the step or does nothing",
    "machine.require_memory": "ends the step or does nothing",
    "machine.available_memory": "compared with what is needed, to end the step",
    "machine.resolve_device": "where it is computed; tests hold devices against each other",
    "machine.use_threads": "how fast it is computed",
    "need.Need": "bytes, for require_memory",
    "ranks.start": "runs the step once more",
    "ranks.joined": "MPI's communicator",
    "ranks.require_memory_of": "ends the step or does nothing",
    "ranks.SET_UP": "words",
    "digests.sha256_of": "holds files against published digests, and names a user's file",
    "descriptions.described": "descriptions; what a step takes of them is in its settings",
    "record.read": "what costs are counted over; they differ from run to run anyway",
    "record.is_result": "the same",
    # of the command line: what its options become is recorded, as settings
    "command.parser": "options",
    "command.StepParser": "options",
    "command.run": "runs the step",
    "command.add_computing": "options that are not recorded",
    "command.add_mirrors": "addresses of files whose md5 is checked",
    "command.add_values": "an option; values come as JSON has them",
    "command.mirrors_of": "the same",
    "command.peak_memory_mb": "words",
    "command.log": "words",
    # of what a step says of itself: its settings, which are recorded, and its memory
    **{f"memory.{name}": "bytes, for require_memory" for name in vars(memory) if name[0] != "_"},
    "memory.BY_HALF_FROM": "which kernels lie in their files by half",
    **{f"step.{name}": "says what is recorded" for name in ("DataSet", "block", "network_settings",
                                                            "networks")},
    **{f"fields.{name}": "says what is recorded" for name in ("Config", "SpeedOnLoss", "Training",
                                                              "names_of", "set_values")},
}  # fmt: skip


def parsed(source: Path) -> Iterator[tuple[str, ast.Module]]:
    """Each module of the package by its name, such as ntk.rank, and its syntax tree."""
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).with_suffix("").as_posix().replace("/", ".")
        yield name.removesuffix(".__init__"), ast.parse(path.read_text("utf-8"), str(path))


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of `from module import name` anywhere, without `ntkcond.`; ("", module) of
    `import ntkcond.module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "ntkcond":
                    yield "", alias.name.removeprefix("ntkcond.")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "", "a relative import"
            elif node.module.partition(".")[0] == "ntkcond":
                for alias in node.names:
                    yield node.module.removeprefix("ntkcond").removeprefix("."), alias.name


def layer_of(module: str) -> str:
    return module.partition(".")[0]


def pointing_up(source: Path) -> list[str]:
    """Imports that no layer may have."""
    upward = []
    for name, tree in parsed(source):
        for module, imported in imports(tree):
            here, there = layer_of(name), layer_of(module or imported)
            if not module or there not in {here, *BELOW.get(here, set())}:
                upward.append(f"{name}: {module or '?'} {imported}")
    return upward


def taken_unseen(source: Path) -> set[str]:
    """What computed modules take from `run` and `settings`, such as files.read_hdf5: by name, or
    as an attribute of a module."""
    taken = set()
    for name, tree in parsed(source):
        if layer_of(name) not in COMPUTED:
            continue
        modules = {}
        for module, imported in imports(tree):
            if module in ("run", "settings"):
                modules[imported] = imported
            elif layer_of(module) in ("run", "settings"):
                taken.add(f"{module.partition('.')[2]}.{imported}")
        used = {
            f"{modules[node.value.id]}.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        }
        taken |= used
        bare = sum(isinstance(n, ast.Name) and n.id in modules for n in ast.walk(tree))
        as_attribute = sum(
            isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in modules
            for n in ast.walk(tree)
        )
        if bare != as_attribute:  # handed on whole, or renamed
            taken |= {f"{module}.*" for module in modules}
        renamed = [
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and node.module in ("ntkcond.run", "ntkcond.settings")
            for alias in node.names
            if alias.asname
        ]
        taken |= {f"{module}.*" for module in renamed}
    return taken


def torch_loaded_by(module: str, source: Path) -> str:
    """Which of torch and mpi4py is loaded with a module."""
    script = f"""
import sys
sys.path.insert(0, {str(source.parent)!r})
import ntkcond.{module}
assert sys.modules["ntkcond"].__file__.startswith({str(source)!r})
print(*sorted(set(sys.modules) & {{"torch", "mpi4py"}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_table_of_layers_has_an_order_and_every_layer():
    done: list[str] = []
    while len(done) < len(BELOW):
        ready = [n for n, below in BELOW.items() if n not in done and below <= set(done)]
        assert ready, "two layers may import each other"
        done += ready
    assert set(done[:2]) == {"arrays", "run"}
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    files = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert folders | files == BELOW.keys()


def test_imports_point_down():
    assert pointing_up(SOURCE) == []


def test_what_the_snakefile_loads_has_no_torch():
    assert torch_loaded_by("pipeline.workflow", SOURCE) == ""


def test_nothing_in_run_or_settings_changes_a_number():
    """A new name has to be judged: add it to NO_NUMBERS with the reason, or move it elsewhere."""
    taken = taken_unseen(SOURCE)
    assert taken - NO_NUMBERS.keys() == set()
    unused = NO_NUMBERS.keys() - taken - {f"memory.{name}" for name in vars(memory)}
    assert unused == set(), "no longer used: take them out"


def test_what_steps_say_again_of_computed_code_is_the_same():
    assert sgd_step.TEST_ROWS == sgd.TEST_ROWS
    levels = (64, 4 * 64, closest_pair.LANDMARKS)
    assert sum(k + 1 for k in levels) + closest_pair.COUNTED == closest_pair_step.COORDINATES
    assert levels[0] + 1 == closest_pair_step.COMPARED
    assert memory.TOGETHER == rounding.AT_ONCE
    tile = empirical.tile_size(np.empty(0))
    assert 3 * memory.FLOAT64 * tile * empirical.WIDTH * tile == kernel.TILES
    assert memory.BY_HALF_FROM == eigenvalues.FULL_SPECTRUM_UP_TO + 1
    assert memory.PANEL == half.PANEL
    assert scalapack_spectrum.TILE == block_cyclic.BLOCK
    rows = inspect.signature(empirical.ntk_product).parameters["rows"]
    assert rows.default == spectrum_step.PRODUCT_ROWS
    assert (sweep.BAND, sweep.BAND_ENTRIES) == (infinite_width.BAND, infinite_width.BAND_ENTRIES)


PLANTED = [
    ("networks/mlp.py", "from ntkcond.ntk import rank"),
    ("ntk/eigenvalues.py", "from ntkcond.pipeline.schema import SCHEMA"),
    ("ntk/eigenvalues.py", "from ntkcond.training import sgd"),
    ("training/sgd.py", "import ntkcond.run.need"),
    ("datasets/samples.py", "def f():\n    from ntkcond.networks.mlp import MLP"),
    ("run/files.py", "from ntkcond.networks import mlp"),
    ("steps/kernel.py", "from ntkcond.pipeline import config"),
    ("ntk/rank.py", "from . import eigenvalues"),
]


@pytest.fixture
def copy(tmp_path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(SOURCE, tmp_path / "ntkcond", ignore=ignored)


def plant(file: Path, line: str) -> None:
    file.write_text(f"{file.read_text('utf-8')}\n\n{line}\n", "utf-8")


def test_planted_imports_that_point_up_are_found(copy):
    for file, line in PLANTED:
        plant(copy / file, line)
    upward = {line.partition(":")[0] for line in pointing_up(copy)}
    assert upward == {file.removesuffix(".py").replace("/", ".") for file, _ in PLANTED}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from ntkcond.settings.kinds import FLAG", "kinds.FLAG"),
        ("from ntkcond.settings import memory as n\nROWS = n.PANEL", "memory.*"),
        ("from ntkcond.run import units\nROWS = getattr(units, 'size')", "units.*"),
    ],
)
def test_a_planted_number_of_run_is_found(copy, line, name):
    plant(copy / "training/sgd.py", line)
    assert name in taken_unseen(copy) - NO_NUMBERS.keys()


def test_a_planted_import_of_torch_is_found(copy):
    plant(copy / "steps/kernel.py", "import torch")
    assert torch_loaded_by("pipeline.workflow", copy) == "torch"
