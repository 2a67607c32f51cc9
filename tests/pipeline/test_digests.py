"""Code digests see every module that a step loads, and of these what numbers depend on."""

import ast
import contextlib
import dataclasses
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ntkcond.artefacts import output
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES, module_name
from ntkcond.run import digests
from ntkcond.run.digests import Remembered
from ntkcond.run.record import CODE
from ntkcond.run.record import modules_of as of_rule
from ntkcond.steps import table
from small_results import LONG, STEPS, UNSEEN, step_of

KERNEL = "ntkcond.steps.kernel:main"
TABLE, DRAWING = "ntkcond.steps.table:main", "ntkcond.steps.drawing:main"
DRAWN = "draw+markdown+html"
PACKAGE = Path(digests.__file__).parents[1]
# Imported by name (importlib) where a step's numbers do not depend on them.
LEFT_OUT = {"ntkcond.steps.corpus": {"ntkcond.datasets.speech.archive"}}  # fetches and unpacks


def table_of(name: str) -> tuple[str, str]:
    return TABLE, f"ntkcond.artefacts.{name}:table"


def drawing_of(name: str) -> tuple[str, str]:
    return DRAWING, f"ntkcond.artefacts.{name}:{DRAWN}"


def modules_of(step: str, chosen: tuple[str, ...] = ()) -> set[str]:
    return set(CODE.modules(step, *chosen))


def computed(ran, name: str) -> set[str]:
    """The modules that were loaded, without those on which no number depends, and without what
    these alone load."""
    unseen = set(ran.loaded[UNSEEN]) | {"ntkcond"}
    return {one for one in set(ran.loaded[name]) - unseen if layer(one) not in CODE.left_out}


def layer(module: str) -> str:
    return (module + ".").split(".")[1]


@pytest.mark.parametrize("step", STEPS)
def test_the_import_walk_finds_what_a_step_loads(ran, step):
    """But for what only a memory estimate of another step needs."""
    assert computed(ran, step) <= modules_of(step)
    faces = {"arrays", "artefacts", "datasets", "datasets.speech", "networks", "ntk", "training"}
    named = {name.removeprefix("ntkcond.") for name in computed(ran, step)}
    assert named - faces <= CODE.digests(step).keys()


@pytest.mark.parametrize("source", SOURCES)
def test_the_import_walk_finds_what_a_data_set_loads(ran, source):
    """The data set's module is chosen at run time, so its job names it beside the step."""
    modules = modules_of("ntkcond.steps.dataset", (module_name(source),))
    loaded = computed(ran, f"data set {source}")
    assert loaded <= modules and modules - loaded <= {"ntkcond"}


@pytest.mark.parametrize("name", SPECS)
def test_the_import_walk_finds_what_an_artefact_loads(ran, name):
    steps = ("ntkcond.steps.table", "ntkcond.steps.drawing", f"ntkcond.artefacts.{name}")
    assert computed(ran, f"artefact {name}") <= modules_of(steps[0], steps[1:])


def test_the_import_walk_finds_what_was_loaded_when_steps_had_run(ran):
    """Of every job, with its settings and the modules that it chose."""
    for job in ran.jobs:
        modules = ran.dag.jobs.modules(job.rule, dict(job.wildcards))
        whole = [module.partition(":")[0] for module in modules]
        loaded = computed(ran, job.outputs[0])
        assert loaded - modules_of(*whole[:1], tuple(whole[1:])) == LEFT_OUT.get(whole[0], set())
    without = {"download", "scalapack_spectrum"}  # which no artefact takes; which needs MPI
    assert {f"ntkcond.steps.{step_of(job)}" for job in ran.jobs} == set(STEPS) - {
        f"ntkcond.steps.{name}" for name in without
    }


@contextlib.contextmanager
def called() -> Iterator[set[tuple[str, str]]]:
    """The functions of the package that are called: file, and name within the module."""
    calls = set()

    def note(frame, event, argument) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            name = frame.f_code.co_qualname.partition(".")[0]
            calls.add((frame.f_code.co_filename, name))

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(("part", "name"), [
    (part, name) for name, spec in SPECS.items() if name not in LONG
    for part in ("table", "drawing") if part == "table" or spec.drawn
])  # fmt: skip
def test_a_part_of_an_artefacts_module_has_all_functions_that_its_step_calls(
    ran, part, name, monkeypatch
):
    """Those of other modules of the package are in the digest too."""
    monkeypatch.chdir(ran.folder)
    module, dag = importlib.import_module(f"ntkcond.artefacts.{name}"), ran.dag
    rule = name if part == "table" else f"draw_{name}"
    (job,) = [job for job in ran.jobs if job.rule == rule]
    settings, taken = dag.jobs.settings(rule, {}).get("settings", {}), dag.inputs(job).items()
    with called() as calls:
        if part == "table":
            inputs = {
                option.replace("/", "_"): table.read(option, [Path(one.outputs[0]) for one in jobs])
                for option, jobs in taken
            }
            module.table(**inputs, **settings)
        else:
            numbers = output.read(f"results/{name}.csv")
            for function in DRAWN.split("+"):
                getattr(module, function, lambda numbers: None)(numbers)
    step, of_module = of_rule(rule, name)
    known = {str(CODE.file_of(m)): m for m in CODE.modules(step, of_module)}
    of_layers = [f"{PACKAGE}/{name}/" for name in CODE.left_out]
    seen = {file for file, _ in calls if not file.startswith(tuple(of_layers))}
    assert seen <= known.keys()
    own = {function for file, function in calls if known.get(file) == of_module}
    assert own and own <= defined(of_module)


def defined(module: str) -> set[str]:
    """Names of what is used of a part of a module."""
    path, part = CODE.file_of(module), module.partition(":")[2]
    tree = ast.parse(path.read_bytes())
    return {getattr(node, "name", "") for node in digests._used(tree.body, part.split("+"))}


def test_modules_are_imported_by_name_in_known_places_only():
    """The walk cannot see these; what is chosen there is named by the job, or in LEFT_OUT."""
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in ("import_module", "run_module"))
        or (isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval"))
    }
    known = {
        "datasets/registry.py",
        "pipeline/registry.py",
        "pipeline/jobs.py",
        "steps/corpus.py",
        "steps/drawing.py",
        "library/kernel.py",  # its pictures
    }
    known.add("steps/table.py")
    assert users == {*known, "__init__.py"}  # which has the public names, and is in no digest


@pytest.mark.parametrize("source", SOURCES)
def test_one_data_set_is_no_part_of_anothers_code(source):
    digests_of_it = CODE.digests("ntkcond.steps.dataset:main", module_name(source))
    readers = {module_name(other).removeprefix("ntkcond.") for other in SOURCES}
    assert readers & digests_of_it.keys() == {module_name(source).removeprefix("ntkcond.")}


@pytest.mark.parametrize("source", SOURCES)
def test_no_data_set_depends_on_the_code_of_ntks_or_training(source):
    digests_of_it = CODE.digests("ntkcond.steps.dataset:main", module_name(source))
    layers = {name.partition(".")[0] for name in digests_of_it}
    assert layers <= {"steps", "datasets"}


@pytest.mark.parametrize("name", SPECS)
def test_one_artefact_is_no_part_of_anothers_code(name):
    """But for what several share, which is no artefact."""
    parts = {
        "table": table_of(name),
        **({DRAWN: drawing_of(name)} if SPECS[name].drawn else {}),
    }
    for part, of_it in parts.items():
        modules = {module.partition(":")[0]: module for module in CODE.digests(*of_it)}
        artefacts = [
            modules[f"artefacts.{other}"] for other in SPECS if f"artefacts.{other}" in modules
        ]
        assert artefacts == [f"artefacts.{name}:{part}"]


def all_targets() -> list[tuple[str, ...]]:
    targets: list[tuple[str, ...]] = [(f"{step}:main",) for step in STEPS]
    targets += [("ntkcond.steps.dataset:main", module_name(source)) for source in SOURCES]
    targets += [drawing_of(name) for name, spec in SPECS.items() if spec.drawn]
    return targets + [table_of(name) for name in SPECS]


def test_the_pipeline_is_in_no_digest():
    for target in all_targets():
        digests_of_it = CODE.digests(*target)
        assert digests_of_it
        assert not [name for name in digests_of_it if name.partition(".")[0] in CODE.left_out]


@pytest.fixture
def copy(tmp_path):
    """A copy of the package for the digests to read, and digests of it."""
    source = tmp_path / "ntkcond"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))

    def of(*modules: str) -> dict[str, str]:
        return dataclasses.replace(CODE, folder=source).digests(*modules)

    return source, of


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


class Mutation(ast.NodeTransformer):
    """Changes the n-th number, operator, comparison, name or word that may change a result."""

    def __init__(self, which: int) -> None:
        self.left = which

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Raise() | ast.Assign(targets=[ast.Name(id="SPEC" | "SOURCE")]):
                return node
            case ast.Expr(value=ast.Call(func=ast.Name(id="require_memory" | "require_space"))):
                return node  # asks the machine
            case ast.ImportFrom(module=str() as module) if "pipeline" in module:
                return node
            case ast.Expr(value=ast.Constant()):
                return node  # a docstring
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr="info" | "warning")):
                return node
            case ast.keyword(arg="help" | "metavar"):
                return node
            case ast.Constant(value=bool() as value):
                return self.once(node, ast.Constant(not value))
            case ast.Constant(value=int() | float() as value):
                return self.once(node, ast.Constant(value + 1))
            case ast.Constant(value=str() as value):
                return self.once(node, ast.Constant(value + "x"))
            case ast.BinOp(op=op):
                new = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
                node = self.once(node, ast.BinOp(node.left, new, node.right))
            case ast.Compare(ops=[op, *others]):
                new = ast.Lt() if isinstance(op, ast.GtE) else ast.GtE()
                node = self.once(node, ast.Compare(node.left, [new, *others], node.comparators))
            case ast.Attribute(attr=attr):
                node = self.once(node, ast.Attribute(node.value, f"{attr}_", node.ctx))
            case ast.Return(value=ast.expr()):
                node = self.once(node, ast.Return(ast.Constant(None)))
        return self.generic_visit(node)

    def once(self, old: ast.AST, new: ast.AST) -> ast.AST:
        self.left -= 1
        return new if self.left == -1 else old


@pytest.mark.parametrize(
    "name",
    ["ntk/empirical.py", "ntk/rank.py", "networks/activations.py", "training/descent.py",
     "datasets/duplicates.py", "steps/kernel.py", "artefacts/fig4.py"],
)  # fmt: skip
def test_digests_see_any_other_change(tmp_path, name):
    text = (PACKAGE / name).read_text("utf-8")
    path = tmp_path / "module.py"
    path.write_text(text, "utf-8")
    original, seen, which = CODE.parse(path.read_bytes(), path).digest, set(), 0
    while True:
        mutation = Mutation(which)
        tree = ast.fix_missing_locations(mutation.visit(ast.parse(text)))
        if mutation.left >= 0:
            break
        path.write_text(ast.unparse(tree), "utf-8")
        digest = CODE.parse(path.read_bytes(), path).digest
        assert digest != original, f"{name}: unseen: {ast.unparse(tree)}"
        seen.add(digest)
        which += 1
    assert which > 10
    assert len(seen) == which  # no two changes look alike


def test_a_new_import_is_seen_with_all_that_it_loads(copy):
    source, of = copy
    before = of(KERNEL)
    path = source / "ntk/empirical.py"
    text = path.read_text("utf-8")
    path.write_text(f"{text}\n\ndef later():\n    from ntkcond.training import sgd\n", "utf-8")
    assert {"ntk.empirical", "training.sgd", "training.history"} <= changed(before, of(KERNEL))


def test_a_relative_import_is_refused(copy):
    source, of = copy
    path = source / "ntk/empirical.py"
    path.write_text(f"from . import rank\n{path.read_text('utf-8')}", "utf-8")
    with pytest.raises(ValueError, match=r"empirical\.py: relative import"):
        of(KERNEL)


def test_digests_leave_out_what_only_some_versions_of_python_have():
    """3.12 added type_params to every function, 3.13 leaves empty fields out of ast.dump."""
    function = ast.parse("def f(x): return x + 1").body[0]
    before = digests._text(function)
    function.type_params = []
    function._fields = (*ast.FunctionDef._fields, "type_params")
    assert digests._text(function) == before
    assert "[]" not in before
    function.body[0].value.right.value = 2
    assert digests._text(function) != before


def test_versions_are_those_of_the_packages_that_numbers_depend_on():
    versions = CODE.versions("ntkcond.steps.spectrum:main")
    for package in ("numpy", "scipy", "torch"):
        installed = importlib.import_module(package).__version__
        assert versions[package] == installed.partition("+")[0]
    assert "matplotlib" not in versions
    assert "matplotlib" in CODE.versions(*drawing_of("fig4"))
    assert "matplotlib" not in CODE.versions(*table_of("fig4"))
    assert "scikit-learn" in CODE.versions("ntkcond.steps.dataset", "ntkcond.datasets.digits")


def test_every_package_that_computed_code_imports_has_its_version_recorded():
    """But for those that change no number."""
    harmless = {"PIL", "psutil", "threadpoolctl", "tqdm", "requests", "typing_extensions"}
    calls = {"mpi4py", "scalapack4py"}  # what is not Python, and has no version here
    decodes = {"soundfile"}  # FLAC is lossless, and its md5 is checked
    standard = set(importlib.import_module("sys").stdlib_module_names)
    for target in all_targets():
        modules = CODE.modules(*target)
        names = {name.partition(".")[0] for m in modules for name in CODE._parsed(m).imports}
        unknown = names - standard - {"ntkcond"} - harmless - decodes - calls
        assert unknown <= CODE.versioned.keys()


def test_the_module_of_digests_serves_other_packages(tmp_path):
    """As its docstring says: copied, with nothing of ntkcond."""
    (tmp_path / "mine/steps").mkdir(parents=True)
    (tmp_path / "mine/steps/fit.py").write_text("import numpy\nfrom mine import model\n")
    (tmp_path / "mine/model.py").write_text("RATE = 1  # a comment\n")
    shutil.copy(digests.__file__, tmp_path / "code_params.py")
    program = (
        "from pathlib import Path; from code_params import Package; import sys;"
        "code = Package('mine', Path('mine'), versioned={'numpy': 'numpy'});"
        "print(*code.texts('mine.steps.fit'), sep='\\n');"
        "assert not any(name.startswith('ntkcond') for name in sys.modules)"
    )

    def texts() -> list[str]:
        return subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True,
                              capture_output=True, text=True).stdout.splitlines()  # fmt: skip

    before = texts()
    assert [text.partition(" ")[0] for text in before] == ["model", "steps.fit", "numpy"]
    (tmp_path / "mine/model.py").write_text("RATE = 1  # another\n")
    assert texts() == before
    (tmp_path / "mine/model.py").write_text("RATE = 2\n")
    assert texts()[1:] == before[1:] and texts()[0] != before[0]


def test_a_file_is_read_again_only_when_something_happened_to_it(tmp_path, monkeypatch):
    path, memory = tmp_path / "samples.npy", tmp_path / "records/sha256.json"
    path.write_bytes(b"one")

    def digest() -> str:
        # as at each start
        ask: Callable[[Path], str] = Remembered(memory, "sha256", lambda p: digests.sha256_of(p))
        return ask(path)

    first = digest()
    assert first == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patched:
        patched.setattr(digests, "sha256_of", None)  # would fail if it were asked
        assert digest() == first
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had happened
    assert digest() == hashlib.sha256(b"two").hexdigest()
    memory.write_text("damaged")
    assert digest() == hashlib.sha256(b"two").hexdigest()


def test_of_a_small_file_the_answer_is_not_remembered(tmp_path):
    """Its damage is then seen also where its inode does not tell."""
    path, memory = tmp_path / "spectrum.h5", tmp_path / "whole.json"
    path.write_bytes(b"small")
    assert Remembered(memory, "size", lambda p: str(len(p.read_bytes())), from_size=6)(path) == "5"
    assert not memory.exists()
    assert Remembered(memory, "size", lambda p: str(len(p.read_bytes())), from_size=5)(path) == "5"
    assert memory.exists()
