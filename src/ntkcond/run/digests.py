"""Digests of what results are made with: of modules' code, of files; and versions of packages.

The digest of a module is over its syntax tree without what changes no number: comments,
formatting, docstrings, messages of errors and logs, help texts, descriptions (SPEC, SOURCE).
Which modules a step's numbers depend on follows from its imports, direct or not, which must
therefore be static (`import` or `from … import`, anywhere in a module); tests hold the walk against
sys.modules. `ntkcond.plan`, `ntkcond.jobs` and `ntkcond.run` are left out: values pass through them
unchanged.

Of a module that serves several steps, a part may be named: `ntkcond.artefacts.fig2:drawing` is what
its functions `draw`, `markdown` and `html` use of it.

Read by the Snakefile at every start: standard library only.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer", str, bool)
PACKAGE = "ntkcond"
SOURCE = Path(__file__).parents[1]
# Folders and modules of the package.
NO_NUMBERS = ("jobs", "plan", "predict", "run", "studies", "why")
# Import name and distribution of what numbers and pictures depend on.
VERSIONED = {
    "array_api_compat": "array-api-compat",
    "h5py": "h5py",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "torchvision": "torchvision",
}
DESCRIPTIONS = ("SPEC", "SOURCE")  # names of constants that `ntkcond.run.descriptions` reads
# Functions from which a part of a module starts.
PARTS = {"table": ("table",), "drawing": ("draw", "markdown", "html")}
LOGGED = ("debug", "info", "warning", "error", "exception")
HELP = ("help", "metavar")
STARTED = "NTKCOND_STARTED"  # in the environment: when Snakemake began to read the code


@functools.cache
def imported_modules(*modules: str) -> list[str]:
    """The modules of this package that importing `modules` loads, themselves and parent packages
    included, sorted; of a module's part, what the part uses."""
    reached, waiting = set(), list(modules)
    whole = {name.partition(":")[0] for name in modules if ":" in name}  # of which parts count
    while waiting:
        name = waiting.pop()
        if name in reached or name in whole or not module_file(name):
            continue
        reached.add(name)
        waiting += _parsed(name).imports
        waiting.append(name.rpartition(".")[0])
    return sorted(reached)


def is_computed(module: str) -> bool:
    """Whether numbers may depend on a module's code; on the package's own face they do not."""
    return module != PACKAGE and (module + ".").split(".")[1] not in NO_NUMBERS


@functools.cache
def code_digests(*modules: str) -> dict[str, str]:
    """For each module that changes the numbers of `modules`, its name within the package and its
    digest, 16 hexadecimal digits."""
    return {
        name.removeprefix(f"{PACKAGE}."): _parsed(name).digest
        for name in imported_modules(*modules)
        if is_computed(name) and not _parsed(name).empty
    }


@functools.cache
def package_versions(*modules: str) -> dict[str, str]:
    """Public versions (2.13.0, not 2.13.0+cpu) of the packages in VERSIONED that they import."""
    names = {
        imported.partition(".")[0]
        for module in imported_modules(*modules)
        for imported in _parsed(module).imports
    }
    return {VERSIONED[name]: _version(VERSIONED[name]) for name in sorted(names & VERSIONED.keys())}


def module_file(module: str) -> Path | None:
    """The file of a module of this package, or of its part; None if the name is not one."""
    first, *rest = module.partition(":")[0].split(".")
    if first != PACKAGE:
        return None
    base = SOURCE.joinpath(*rest)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def sha256_of(path: Path | str) -> str:
    """sha256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Remembered(Generic[Answer]):
    """A function of a file's content, from a file of earlier answers while its inode says that it
    is the same: a large one takes minutes to read, and every start of Snakemake asks. name: of the
    answers in their file. from_size: bytes of a file whose answer is worth remembering."""

    def __init__(
        self, memory: Path, name: str, function: Callable[[Path], Answer], from_size: int = 0
    ) -> None:
        self.memory, self.name, self.from_size = memory, name, from_size
        self.function: Callable[[Path], Answer] = function

    def __call__(self, path: Path | str) -> Answer:
        """Raises OSError if the file cannot be read."""
        path = Path(path).resolve()
        inode = path.stat()
        if inode.st_size < self.from_size:
            return self.function(path)
        # whatever changes the content sets ctime to now, and nothing sets it back
        state = [inode.st_ino, inode.st_size, inode.st_mtime_ns, inode.st_ctime_ns]
        if self._known.get(str(path), {}).get("state") != state:
            self._known[str(path)] = {"state": state, self.name: self.function(path)}
            with contextlib.suppress(OSError):  # not remembered, then
                self.memory.parent.mkdir(parents=True, exist_ok=True)
                name = f"{self.memory.name}.{socket.gethostname()}.{os.getpid()}"
                temporary = self.memory.with_name(name)
                temporary.write_text(json.dumps(self._known), "utf-8")
                temporary.replace(self.memory)
        return self._known[str(path)][self.name]

    @functools.cached_property
    def _known(self) -> dict:
        try:
            return json.loads(self.memory.read_text("utf-8"))
        except (OSError, ValueError):
            return {}


class Parsed(NamedTuple):
    """A module, or a part of one: the dotted names that it may import; its digest; whether it has
    no code, such as the face of a package."""

    imports: list[str]
    digest: str
    empty: bool


def _tree(source: bytes, path: Path, part: str) -> ast.Module:
    tree = ast.parse(source, filename=str(path))
    if part:
        tree.body = _used(tree.body, PARTS[part])
    return tree


def _parse(source: bytes, path: Path, part: str = "") -> Parsed:
    tree, imports = _tree(source, path, part), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}: relative import; the code digest follows none")
            imports.append(node.module or "")
            # `from ntkcond.ntk import rank` names a module, `from numpy import array` does not
            imports += [f"{node.module}.{alias.name}" for alias in node.names]
        _drop_prose(node)
    digest = hashlib.sha256(_text(tree).encode()).hexdigest()[:16]
    return Parsed(imports, digest, not tree.body)


def _used(body: list[ast.stmt], names: Iterable[str]) -> list[ast.stmt]:
    """The statements of a module that bind these names, or names that those use, and so on; and
    those that bind none. Of an import, the names that are used."""
    wanted, waiting = set[str](), set(names)
    while waiting:
        wanted |= waiting
        used = [
            node for statement in body if _binds(statement, wanted) for node in ast.walk(statement)
        ]
        waiting = {node.id for node in used if isinstance(node, ast.Name)} - wanted
    kept = []
    for statement in body:
        if _binds(statement, wanted):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                statement.names = [name for name in statement.names if _bound(name) in wanted]
            kept.append(statement)
    return kept


def _binds(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement binds one of the names, or none at all."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name in names
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return not names.isdisjoint(map(_bound, aliases))
    of = statement.targets if isinstance(statement, ast.Assign) else [statement]
    nodes = [node for part in of for node in ast.walk(part)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stored |= {_bound(node) for node in nodes if isinstance(node, ast.alias)}
    return not stored or not names.isdisjoint(stored)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _text(node: object) -> str:
    """A syntax tree in words. Unlike ast.dump, without fields that are empty: of these, each
    version of Python has others."""
    if isinstance(node, ast.AST):
        words = [
            f"{name}={_text(value)}"
            for name in node._fields
            if (value := getattr(node, name, None)) not in (None, [])
        ]
        return f"{type(node).__name__}({', '.join(words)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    return repr(node)


def _drop_prose(node: ast.AST) -> None:
    """What a reader is told and no number depends on."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        node.body = [child for child in node.body if not _is_description(child)]
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        node.exc.args, node.exc.keywords = [], []
    elif isinstance(node, ast.Call):
        node.keywords = [key for key in node.keywords if key.arg not in HELP]
        match node.func:
            case ast.Attribute(value=ast.Name(id="log") | ast.Attribute(attr="log"), attr=name):
                if name in LOGGED:
                    node.args, node.keywords = [], []


def _is_description(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in DESCRIPTIONS
    return False


@functools.cache
def _parsed(module: str) -> Parsed:
    path, part = module_file(module), module.partition(":")[2]
    assert path, f"{module} is no module of this package"
    return _parse(path.read_bytes(), path, part)


@functools.cache
def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution).partition("+")[0]
