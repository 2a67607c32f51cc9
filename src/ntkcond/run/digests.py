"""Code and package versions as Snakemake params: what a job's numbers depend on, as texts.

    CODE = Package("mypackage", Path("src/mypackage"), versioned={"numpy": "numpy"})
    rule fit:
        params: *CODE.texts("mypackage.steps.fit")   # 'models.linear 3f2a91…', 'numpy 2.4.6'

Snakemake compares the params of a job with those of its last run: an edited module or another
version of a package then re-runs what depends on it, and nothing else. This module needs the
standard library alone: copy it into a workflow of your own.

The digest of a module is over its syntax tree without what changes no number: comments,
formatting, docstrings, messages of errors and logs, help texts, descriptions, and calls that ask
the machine for memory. Which modules a step depends on follows from its imports, direct or not,
which must therefore be static (`import` or `from … import`, anywhere in a module).

A part of a module may be named: `mypackage.fig2:draw+markdown` is what these functions use of it.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer", str, bool)
LOGGED = ("debug", "info", "warning", "error", "exception")
HELP = ("help", "metavar")


class Parsed(NamedTuple):
    """A module, or a part of one: the dotted names that it may import; its digest; whether it has
    no code, such as the face of a package."""

    imports: list[str]
    digest: str
    empty: bool


@dataclass(frozen=True, eq=False)
class Package:
    """The modules of a package. folder: where they are. left_out: packages and modules in it on
    which no number depends: they and what they import are no part of a digest. versioned: import
    names of other packages whose versions count, and their distributions; always: of these, what
    all modules count as importing. silent: constants that only describe, and functions that only
    ask the machine."""

    name: str
    folder: Path
    left_out: Collection[str] = ()
    versioned: Mapping[str, str] = field(default_factory=dict)
    always: Collection[str] = ()
    silent: Collection[str] = ()

    def texts(self, *modules: str) -> list[str]:
        """A text for each module and package that the numbers of `modules` depend on."""
        both = self.digests(*modules) | self.versions(*modules)
        return [f"{name} {value}" for name, value in both.items()]

    @functools.cache  # noqa: B019  one package, for as long as the process
    def modules(self, *modules: str) -> list[str]:
        """The modules of this package that importing `modules` loads, themselves and parent
        packages included, sorted; of a module's part, what the part uses."""
        reached, waiting = set(), list(modules)
        whole = {name.partition(":")[0] for name in modules if ":" in name}  # of which parts count
        while waiting:
            name = waiting.pop()
            if name in reached or name in whole or not self.file_of(name):
                continue
            if name != self.name and (name + ".").split(".")[1] in self.left_out:
                continue
            reached.add(name)
            waiting += self._parsed(name).imports
            waiting.append(name.rpartition(".")[0])
        return sorted(reached)

    @functools.cache  # noqa: B019
    def digests(self, *modules: str) -> dict[str, str]:
        """For each module that changes the numbers of `modules`, its name within the package and
        its digest, 16 hexadecimal digits."""
        return {
            name.removeprefix(f"{self.name}."): self._parsed(name).digest
            for name in self.modules(*modules)
            if name != self.name and not self._parsed(name).empty
        }

    @functools.cache  # noqa: B019
    def versions(self, *modules: str) -> dict[str, str]:
        """Public versions (2.13.0, not 2.13.0+cpu) of the `versioned` packages they import."""
        names = {
            imported.partition(".")[0]
            for module in self.modules(*modules)
            for imported in self._parsed(module).imports
        }
        counted = sorted(names & self.versioned.keys() | set(self.always))
        return {self.versioned[name]: _version(self.versioned[name]) for name in counted}

    def file_of(self, module: str) -> Path | None:
        """The file of a module of this package, or of its part; None if the name is not one."""
        first, *rest = module.partition(":")[0].split(".")
        if first != self.name:
            return None
        base = self.folder.joinpath(*rest)
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
        return None

    @functools.cache  # noqa: B019
    def _parsed(self, module: str) -> Parsed:
        path, part = self.file_of(module), module.partition(":")[2]
        assert path, f"{module} is no module of this package"
        return self.parse(path.read_bytes(), path, part)

    def parse(self, source: bytes, path: Path, part: str = "") -> Parsed:
        """A module's source. Raises ValueError for a relative import."""
        tree, imports = ast.parse(source, filename=str(path)), []
        for node in ast.walk(tree):
            self._drop_prose(node)
        if part:
            tree.body = _used(tree.body, part.split("+"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    raise ValueError(f"{path}: relative import; the code digest follows none")
                imports.append(node.module or "")
                # `from ntkcond.ntk import rank` names a module, `from numpy import array` does not
                imports += [f"{node.module}.{alias.name}" for alias in node.names]
        digest = hashlib.sha256(_text(tree).encode()).hexdigest()[:16]
        return Parsed(imports, digest, not tree.body)

    def _drop_prose(self, node: ast.AST) -> None:
        """What a reader is told and no number depends on."""
        has_docstring = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, has_docstring) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        for block in ("body", "orelse", "finalbody"):
            if isinstance(children := getattr(node, block, None), list):
                setattr(node, block, [one for one in children if not self._is_silent(one)])
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        elif isinstance(node, ast.Call):
            node.keywords = [key for key in node.keywords if key.arg not in HELP]
            match node.func:
                case ast.Attribute(value=ast.Name(id="log") | ast.Attribute(attr="log"), attr=name):
                    if name in LOGGED:
                        node.args, node.keywords = [], []

    def _is_silent(self, node: ast.AST) -> bool:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in self.silent
            case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
                return name in self.silent
            case ast.Import(names=[ast.alias(name=name)]) | ast.ImportFrom(module=name):
                parts = (name or "").split(".")
                return parts[0] == self.name and parts[1:2] != [] and parts[1] in self.left_out
        return False


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


@functools.cache
def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution).partition("+")[0]
