"""The pictures and texts of any artefact, from its CSV alone: results/{name}.pdf, .png, .md, .html.

A module in `ntkcond.artefacts` has `draw`, which makes a figure of the numbers; `markdown` and
`html` make texts. By hand: --artefact fig2 --table fig2.csv --output fig2.pdf"""

import importlib
from argparse import Namespace
from pathlib import Path

from ntkcond.artefacts import output
from ntkcond.artefacts.registry import SPECS
from ntkcond.run.files import write_artefact
from ntkcond.settings import command

TEXTS = {".md": "markdown", ".html": "html"}  # the module's function for each


def main(arguments: Namespace) -> None:
    """Writes the artefact's files but the CSV beside --output, whose suffix does not matter."""
    a = arguments
    module = importlib.import_module(f"ntkcond.artefacts.{a.artefact}")
    numbers, suffixes = output.read(a.table), SPECS[a.artefact].drawn
    picture = module.draw(numbers) if ".png" in suffixes else None
    contents: dict[Path, bytes] = {}
    for file in (a.output.with_suffix(suffix) for suffix in suffixes):
        if file.suffix in TEXTS:
            contents[file] = getattr(module, TEXTS[file.suffix])(numbers).encode()
        else:
            contents[file] = picture.rendered(file.suffix, a.record)
    write_artefact(contents, a.record)


OPTIONS = command.parser(__doc__)
NAMES = [name for name, spec in SPECS.items() if spec.drawn]
OPTIONS.add_argument("--artefact", choices=NAMES, required=True, help=", ".join(NAMES))
OPTIONS.add_inputs("table")
command.add_values(OPTIONS, "about")

if __name__ == "__main__":
    command.run(main, OPTIONS)
