"""Modules that describe themselves: their constant is read without running them.

`SPEC = Spec(title="…", …)` of an artefact and `SOURCE = Source(…)` of a data set are literals. The
Snakefile reads them in every job, which must not load numpy, pandas, matplotlib or torch.
"""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def described(folder: Path, constant: str, kind: Callable[..., T]) -> dict[str, T]:
    """{name of the module: kind(…)} of the modules and packages in the folder that have such a
    constant, by name. Raises ValueError for one that is no literal."""
    descriptions = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
        if path == folder / "__init__.py":
            continue
        text = path.read_text("utf-8")
        if constant not in text:
            continue
        name = path.parent.name if path.name == "__init__.py" else path.stem
        for node in ast.parse(text, filename=str(path)).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call):
                    if target == constant:
                        descriptions[name] = kind(**_arguments(call, path))
    return dict(sorted(descriptions.items()))


def _arguments(call: ast.Call, path: Path) -> dict:
    try:
        return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except ValueError as error:
        raise ValueError(f"{path}: its description must be of literals ({error})") from error
