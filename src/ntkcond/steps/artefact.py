"""Any artefact: results/{name}.csv and its other files, with results/provenance/{name}.json.

A figure's or a table's module in `ntkcond.artefacts` has `table`, which takes the inputs and
settings that its SPEC names and gives the numbers; `draw` makes a figure of them, `markdown` and
`html` texts."""

import argparse
import importlib
import json
from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import output
from ntkcond.artefacts.registry import SPECS
from ntkcond.run import command


def main(arguments: Namespace) -> None:
    """Writes the artefact's files beside --output, whose suffix does not matter."""
    a = arguments
    module = importlib.import_module(f"ntkcond.artefacts.{a.artefact}")
    inputs = {name.replace("/", "_"): read(name, paths) for name, paths in (a.input or {}).items()}
    numbers = module.table(**inputs, **(a.settings or {}))
    missing = (a.about or {}).get("missing", [])
    output.write(module, numbers, a.output, SPECS[a.artefact].files, a.record, missing)


def read(name: str, paths: list[Path]) -> pd.DataFrame | list[Path]:
    """Another artefact as a data frame of what it has; of other inputs the paths."""
    return output.read(paths[0])[0] if name in SPECS else paths


class Inputs(argparse.Action):
    """--input NAME FILE …, for each input."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        name, *paths = values
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: [Path(path) for path in paths]})


class Values(argparse.Action):
    """--settings NAME=JSON, for each value."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        name, _, text = values.partition("=")
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: json.loads(text)})


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--artefact", choices=SPECS, required=True, help=", ".join(SPECS))
    options.add_input("--input", action=Inputs, type=str, nargs="+", metavar=("NAME", "FILE"))
    options.add_argument("--settings", action=Values, help="NAME=JSON, as its SPEC names them")
    options.add_argument("--about", action=Values, help="NAME=JSON, kept in the provenance")
    command.run(main, options, chosen=lambda a: [f"ntkcond.artefacts.{a.artefact}"])
