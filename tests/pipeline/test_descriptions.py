"""Modules that describe themselves are read without being run."""

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path

import pytest

from ntkcond.artefacts import registry as artefacts
from ntkcond.artefacts.spec import Spec
from ntkcond.datasets import registry as datasets
from ntkcond.run.descriptions import described


@dataclass(frozen=True)
class About:
    title: str
    sizes: tuple[int, ...] = ()
    options: frozenset | set = frozenset()


def written(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_literals_are_read_without_running_the_module(tmp_path):
    (tmp_path / "__init__.py").write_text('ABOUT = About(title="the folder itself")')
    written(
        tmp_path,
        b='raise SystemExit\nABOUT = About(title="B" " and b", sizes=(1_000, -2), options={"x"})',
        a='import absent\n\nABOUT = About(title="A")',
        other="OTHER = About(title='not asked for')",
        mentions='"""ABOUT is said of, and not given."""',
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "c/__init__.py").write_text('ABOUT = About(title="a package")')
    (tmp_path / "c/inner.py").write_text('ABOUT = About(title="within a package")')
    assert described(tmp_path, "ABOUT", About) == {
        "a": About("A"),
        "b": About("B and b", (1000, -2), {"x"}),
        "c": About("a package"),
    }
    assert list(described(tmp_path, "ABOUT", About)) == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["name", "f'{name}'", "open('x')", "2 ** 3", "[n for n in x]"])
def test_what_is_no_literal_is_refused_by_file(tmp_path, value):
    written(tmp_path, bad=f"ABOUT = About(title={value})")
    with pytest.raises(ValueError, match=r"bad\.py: its description must be of literals"):
        described(tmp_path, "ABOUT", About)


def test_an_unknown_field_is_refused(tmp_path):
    written(tmp_path, bad="ABOUT = About(title='a', tilte='b')")
    with pytest.raises(TypeError, match="tilte"):
        described(tmp_path, "ABOUT", About)


@pytest.mark.parametrize(
    ("registry", "constant"), [(artefacts.SPECS, "SPEC"), (datasets.SOURCES, "SOURCE")]
)
def test_what_is_read_is_what_the_modules_say_when_they_are_run(registry, constant):
    package = "artefacts" if constant == "SPEC" else "datasets"
    for name, description in registry.items():
        module = importlib.import_module(f"ntkcond.{package}.{name}")
        assert getattr(module, constant) == description


FUNCTIONS = {".pdf": "draw", ".png": "draw", ".md": "markdown", ".html": "html"}


def test_each_artefact_has_what_its_files_need():
    """`table`, and a function for each kind of file."""
    for name, spec in artefacts.SPECS.items():
        assert isinstance(spec, Spec)
        module = importlib.import_module(f"ntkcond.artefacts.{name}")
        taken = inspect.signature(module.table).parameters
        given = {each.replace("/", "_") for each in spec.inputs} | set(spec.settings)
        if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            assert given <= taken.keys(), name
        required = {
            n for n, p in taken.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        }
        assert required <= given, name
        for suffix, function in FUNCTIONS.items():
            assert suffix not in spec.files or callable(getattr(module, function)), name
        assert ".csv" in spec.files
