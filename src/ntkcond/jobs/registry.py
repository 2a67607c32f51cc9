"""Every computing step, by its name: from each module in this folder that has a path."""

import importlib
import pkgutil
from dataclasses import fields
from pathlib import Path

from ntkcond.jobs.step import Step


def _steps() -> dict[str, Step]:
    modules = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    named = {name: vars(importlib.import_module(f"ntkcond.jobs.{name}")) for name in modules}
    return {
        name: Step(**{f.name: values[f.name] for f in fields(Step) if f.name in values})
        for name, values in named.items()
        if "path" in values
    }


STEPS = _steps()
