"""Every data set that ntkcond knows, by its name: the SOURCE of each module in this folder.

The modules themselves are imported by name in `module`, so that editing one rebuilds that data set
and no other.
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
    """The module itself. It has `load(data_dir, options) -> Raw` and, for a set with raw_files,
    `downloads(mirrors) -> {raw file: Download}`; of a corpus instead
    `draw(corpus, data_dir, options) -> Samples`."""
    return importlib.import_module(module_name(source))


def title(name: str) -> str:
    """What figures call the data set of this name: the user's own sets keep theirs."""
    return SOURCES[name].title if name in SOURCES else name
