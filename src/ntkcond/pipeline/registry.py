"""Every computing step, by its name: from each module of `ntkcond.steps` that has settings."""

import importlib
import re
from dataclasses import fields
from pathlib import Path

from ntkcond.settings.step import Step

HAS_SETTINGS = re.compile(r"^(def settings\(data|settings, )", re.M)
FOLDER = Path(__file__).parents[1] / "steps"


def _step(name: str) -> Step:
    module = vars(importlib.import_module(f"ntkcond.steps.{name}"))
    return Step(**{f.name: module[f.name] for f in fields(Step) if f.name in module})


STEPS = {
    path.stem: _step(path.stem)
    for path in sorted(FOLDER.glob("*.py"))
    if HAS_SETTINGS.search(path.read_text("utf-8"))
}
