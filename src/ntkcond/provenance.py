"""What a result depends on besides its input files: its config, its code, its packages' versions.

Snakemake runs a job again when its `params` change, so every rule has one, `made_by`, built here.
The code enters as a digest over the syntax trees of the step's module and of every module of
this package that it imports, directly or not: comments, docstrings and formatting are not part of
it, a changed constant three imports away is. Imports must therefore be static (`import` or
`from … import` anywhere in a module); tests/test_provenance.py holds the walk against sys.modules.

Read by the Snakefile at every start: nothing beyond the standard library is loaded before it is
needed.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import socket
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


def made_by(
    settings: dict, *modules: str, of: dict | None = None, inputs: list[dict] | None = None
) -> dict:
    """The one `params` entry of a rule: builtin types only, in a fixed order.

    settings: the part of the config that the rule uses. modules: dotted names of its step and of
    what the step picks at run time. of: the job's wildcards. inputs: what the input files that
    rules make were `made_by`; a digest of them enters, so that a file alone tells whether all it
    came from is still what the config and the code would make.
    """
    return {
        "of": of or {},
        "settings": settings,
        "inputs": hashlib.sha256(repr(inputs or []).encode()).hexdigest(),
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


def made_by_of(path: Path | str) -> str | None:
    """What an HDF5 file or a PNG says of what made it; None if it says nothing or cannot be
    read."""
    path = Path(path)
    try:
        if path.suffix == ".h5":
            import h5py

            with h5py.File(path, "r") as file:
                return file.attrs.get("made_by")
        from PIL import Image

        with Image.open(path) as picture:
            picture.verify()  # that it is whole; HDF5 looks by itself
            return picture.info.get("made_by")
    except Exception:  # a damaged file may fail in any way
        return None


def sha256_of(path: Path | str) -> str:
    """sha256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remembered_sha256(path: Path | str, memory: Path) -> str:
    """`sha256_of`, from a file of earlier answers while the file's inode says that it is the same:
    a large one takes minutes to read, and every start of Snakemake and every job on a cluster asks.
    """
    path = Path(path).resolve()
    inode = path.stat()
    # whatever changes the content sets ctime to now, and nothing sets it back
    state = [inode.st_ino, inode.st_size, inode.st_mtime_ns, inode.st_ctime_ns]
    try:
        known = json.loads(memory.read_text("utf-8"))
    except (OSError, ValueError):
        known = {}
    if known.get(str(path), {}).get("state") != state:
        known[str(path)] = {"state": state, "sha256": sha256_of(path)}
        with contextlib.suppress(OSError):  # not remembered, then
            memory.parent.mkdir(parents=True, exist_ok=True)
            temporary = memory.with_name(f"{memory.name}.{socket.gethostname()}.{os.getpid()}")
            temporary.write_text(json.dumps(known), "utf-8")
            temporary.replace(memory)
    return known[str(path)]["sha256"]


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
        self.tree = _text(tree)


def _text(node: object) -> str:
    """A syntax tree in words. Unlike ast.dump, without fields that are empty: of these, each
    version of Python has others."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({', '.join(f'{name}={_text(v)}' for name, v in fields)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    return repr(node)


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
