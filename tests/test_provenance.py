"""The code digest: it sees every module that a step loads, and nothing but what they do."""

import ast
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ntkcond.steps
from ntkcond import provenance
from ntkcond.datasets.registry import SOURCES, module_name

STEPS = sorted(
    f"ntkcond.steps.{path.stem}"
    for path in Path(ntkcond.steps.__file__).parent.glob("*.py")
    if path.stem != "__init__"
)
LOADED = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted(m for m in sys.modules if m.partition(".")[0] == "ntkcond")))
"""


def loaded_by(*modules: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *modules], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("step", STEPS)
def test_import_walk_finds_what_a_step_loads(step):
    assert provenance.imported_modules(step) == loaded_by(step)


@pytest.mark.parametrize("source", SOURCES)
def test_import_walk_finds_what_a_data_set_loads(source):
    """The data set's module is chosen at run time, so its rule names it beside the step."""
    modules = ("ntkcond.steps.dataset", module_name(source))
    assert provenance.imported_modules(*modules) == loaded_by(*modules)


def test_one_data_set_is_no_part_of_anothers_code():
    modules = provenance.imported_modules("ntkcond.steps.dataset", module_name("mnist"))
    assert module_name("svhn") not in modules


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the package for the digest to read, and its digest of the kernel step anew."""
    source = tmp_path / "ntkcond"
    shutil.copytree(provenance.SOURCE, source)
    monkeypatch.setattr(provenance, "SOURCE", source)

    def forget():
        provenance._parsed.cache_clear()
        provenance.code_digest.cache_clear()

    def digest(step: str = "ntkcond.steps.kernel") -> str:
        forget()
        return provenance.code_digest(step)

    yield source, digest
    forget()


def test_digest_ignores_comments_docstrings_and_formatting(copy):
    source, digest = copy
    before = digest()
    file = source / "kernel.py"
    text = file.read_text("utf-8").replace('"""The empirical NTK', '"""All about it')
    text = text.replace("yield rows, rows", "yield (rows,  rows)  # !")
    assert text.count("All about it") == text.count("# !") == 1
    file.write_text(text, "utf-8")
    assert digest() == before


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("steps/kernel.py", "file.attrs.update(", "file.attrs. update(width=1) or dict("),
        ("kernel.py", "WIDTH = 16", "WIDTH = 17"),
        ("activations.py", "c=2.0", "c=2.1"),  # three imports away
    ],
)
def test_digest_sees_a_change_in_any_module_that_the_step_loads(copy, module, old, new):
    source, digest = copy
    before, figure = digest(), digest("ntkcond.steps.fig4")
    file = source / module
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    assert digest() != before
    assert digest("ntkcond.steps.fig4") == figure


def test_digest_leaves_out_what_only_some_versions_of_python_have():
    """3.12 added type_params to every function, 3.13 leaves empty fields out of ast.dump."""
    function = ast.parse("def f(x): return x + 1").body[0]
    before = provenance._text(function)
    function.type_params = []
    function._fields = (*ast.FunctionDef._fields, "type_params")
    assert provenance._text(function) == before
    assert "[]" not in before
    function.body[0].value.right.value = 2
    assert provenance._text(function) != before


@pytest.mark.parametrize(
    "module", ["kernel", "network", "activations", "spectrum", "rank", "needs"]
)
def test_no_data_set_depends_on_the_code_of_the_ntk(module):
    for source in SOURCES:
        modules = provenance.imported_modules("ntkcond.steps.dataset", module_name(source))
        assert f"ntkcond.{module}" not in modules


def test_colours_are_part_of_figures_only(copy):
    source, digest = copy
    before = {step: digest(step) for step in STEPS}
    file = source / "figures" / "style.py"
    file.write_text(file.read_text("utf-8").replace("#0072B2", "#0072B3"), "utf-8")
    changed = {step for step in STEPS if digest(step) != before[step]}
    assert changed == {s for s in STEPS if s.startswith("ntkcond.steps.fig")}


def test_versions_are_those_of_the_packages_that_numbers_depend_on():
    versions = provenance.package_versions("ntkcond.steps.spectrum")
    for package in ("numpy", "scipy", "torch"):
        installed = importlib.import_module(package).__version__
        assert versions[package] == installed.partition("+")[0]
    assert "matplotlib" not in versions
    assert "matplotlib" in provenance.package_versions("ntkcond.steps.fig4")


def test_a_file_is_read_again_only_when_something_happened_to_it(tmp_path, monkeypatch):
    path, memory = tmp_path / "samples.npy", tmp_path / "records/sha256.json"
    path.write_bytes(b"one")
    first = provenance.remembered_sha256(path, memory)
    assert first == hashlib.sha256(b"one").hexdigest()
    with monkeypatch.context() as patched:
        patched.setattr(provenance, "sha256_of", None)  # would fail if it were asked
        assert provenance.remembered_sha256(path, memory) == first
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had happened
    assert provenance.remembered_sha256(path, memory) == hashlib.sha256(b"two").hexdigest()
    memory.write_text("damaged")
    assert provenance.remembered_sha256(path, memory) == hashlib.sha256(b"two").hexdigest()
