"""What a result depends on besides its input files: its config, its code, its packages' versions.

Snakemake runs a job again when its `params` change, so every rule has one, `made_by`, built here.
The code enters as a digest over the syntax trees of the step's module and of every module of
this package that it imports, directly or not: comments, docstrings and formatting are not part of
it, a changed constant three imports away is. Imports must therefore be static (`import` or
`from … import` anywhere in a module); tests/test_provenance.py holds the walk against sys.modules.

Read by the Snakefile at every start: standard library only.
"""

import ast
import functools
import hashlib
import importlib.metadata
from pathlib import Path

PACKAGE = "ntkcond"
SOURCE = Path(__file__).parent
# Import name and distribution of what numbers and pictures depend on.
VERSIONED = {
    "h5py": "h5py",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "torchvision": "torchvision",
}


def made_by(settings: dict, *modules: str, inputs: dict[str, dict] | None = None) -> dict:
    """The one `params` entry of a rule: builtin types only, in a fixed order.

    settings: the part of the config that the rule uses. modules: dotted names of its step and of
    what the step picks at run time. inputs: for each input file that a rule makes, its own
    `made_by`; a digest of them enters, so that a file alone tells whether all it came from is
    still what the config and the code would make.
    """
    return {
        "settings": settings,
        "inputs": hashlib.sha256(repr(sorted((inputs or {}).items())).encode()).hexdigest(),
        "code": code_digest(*modules),
        "versions": package_versions(*modules),
    }


def imported_modules(*modules: str) -> list[str]:
    """The modules of this package that importing `modules` loads, themselves and parent packages
    included, sorted."""
    found, waiting = set(), list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or not _path(name):
            continue
        found.add(name)
        waiting += _parsed(name).imports
        waiting.append(name.rpartition(".")[0])
    return sorted(found)


@functools.cache
def code_digest(*modules: str) -> str:
    """sha256 over the syntax trees of `imported_modules(*modules)`, docstrings left out."""
    digest = hashlib.sha256()
    for name in imported_modules(*modules):
        digest.update(f"{name}\0{_parsed(name).tree}\0".encode())
    return digest.hexdigest()


@functools.cache
def package_versions(*modules: str) -> dict[str, str]:
    """Public versions (2.13.0, not 2.13.0+cpu) of the packages in VERSIONED that they import."""
    names = {
        imported.partition(".")[0]
        for module in imported_modules(*modules)
        for imported in _parsed(module).imports
    }
    return {
        VERSIONED[name]: importlib.metadata.version(VERSIONED[name]).partition("+")[0]
        for name in sorted(names & VERSIONED.keys())
    }


class _Parsed:
    """A module's syntax tree as text and the dotted names that it may import."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_bytes(), filename=str(path))
        self.imports: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.imports += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    raise ValueError(f"{path}: relative import; the code digest follows none")
                self.imports.append(node.module)
                # `from ntkcond import kernel` names a module, `from ntkcond.kernel import f` not
                self.imports += [f"{node.module}.{alias.name}" for alias in node.names]
            _drop_docstring(node)
        self.tree = ast.dump(tree)


def _drop_docstring(node: ast.AST) -> None:
    if (
        isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and isinstance(node.body[0].value.value, str)
    ):
        del node.body[0]


def _path(module: str) -> Path | None:
    """The file of a module of this package, or None if the name is not one."""
    first, *rest = module.split(".")
    if first != PACKAGE:
        return None
    base = SOURCE.joinpath(*rest)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@functools.cache
def _parsed(module: str) -> _Parsed:
    return _Parsed(_path(module))
