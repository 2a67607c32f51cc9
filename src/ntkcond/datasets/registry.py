"""Every data set that ntkcond knows, by its name: the SOURCE of each module in this folder.

`module` imports a module by its name, so that editing one rebuilds that data set and no other.
"""

import importlib
from pathlib import Path
from types import ModuleType

from ntkcond.datasets.source import Source
from ntkcond.run.descriptions import described

CUSTOM = "custom"  # a user's own file
SOURCES = described(Path(__file__).parent, "SOURCE", Source)


def module_name(source: str) -> str:
    """Dotted name of the module that reads a data set; part of its rule's code digest."""
    return f"ntkcond.datasets.{source}"


def module(source: str) -> ModuleType:
    """The module. It has `load(data_dir, options) -> Raw` and, for a set with raw_files,
    `downloads(mirrors) -> {raw file: Download}`; for a corpus it has
    `draw(corpus, data_dir, options) -> Samples` instead."""
    return importlib.import_module(module_name(source))


def title(name: str) -> str:
    """The name of a data set in figures; a user's own set keeps its name."""
    return SOURCES[name].title if name in SOURCES else name
