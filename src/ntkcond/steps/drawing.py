"""The pictures and texts of any artefact, from its CSV alone: results/{name}.pdf, .png, .md, .html.

A module in `ntkcond.artefacts` has `draw`, which makes a figure of the numbers; `markdown` and
`html` make texts. By hand: --artefact fig2 --table fig2.csv --output fig2.pdf"""

import importlib
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

from ntkcond.artefacts import output
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import title
from ntkcond.run import command
from ntkcond.run.files import write_artefact

TEXTS = {".md": "markdown", ".html": "html"}  # the module's function for each
LAST_LINES = {".md": "\n{}\n", ".html": "\n<p>{}</p>\n"}


def main(arguments: Namespace) -> None:
    """Writes the artefact's files but the CSV beside --output, whose suffix does not matter."""
    a = arguments
    module = importlib.import_module(f"ntkcond.artefacts.{a.artefact}")
    numbers, empty = output.read(a.table)
    missing = (a.about or {}).get("missing", empty)
    suffixes = SPECS[a.artefact].drawn
    drawn = draw(module, numbers, missing) if ".png" in suffixes else None
    contents: dict[Path, bytes] = {}
    for file in (a.output.with_suffix(suffix) for suffix in suffixes):
        if file.suffix in TEXTS:
            text = getattr(module, TEXTS[file.suffix])(numbers)
            note = LAST_LINES[file.suffix].format(in_words(missing)) if missing else ""
            contents[file] = (text + note).encode()
        else:
            contents[file] = drawn.rendered(file.suffix, a.record)
    write_artefact(contents, a.record)


def draw(module: ModuleType, numbers: pd.DataFrame, missing: Sequence[str] = ()):
    """The picture (`ntkcond.artefacts.style.Picture`) of an artefact's numbers. missing: data sets
    that it names as such."""
    drawn = module.draw(numbers)
    if missing:
        drawn.note(in_words(missing))
    return drawn


def in_words(missing: Sequence[str]) -> str:
    """For readers of a figure or text."""
    return f"Missing: {', '.join(map(title, missing))}, whose raw files were not available."


if __name__ == "__main__":
    options = command.parser(__doc__)
    names = [name for name, spec in SPECS.items() if spec.drawn]
    options.add_argument("--artefact", choices=names, required=True, help=", ".join(names))
    options.add_input("--table", required=True, help="results/{name}.csv")
    command.add_values(options, "--about", "kept in the provenance")
    command.run(main, options, chosen=lambda a: [f"ntkcond.artefacts.{a.artefact}:drawing"])
