"""The numbers of any artefact: results/{name}.csv, with results/provenance/{name}.json.

A module in `ntkcond.artefacts` has `table`, which takes the inputs and settings that its SPEC names
and gives the numbers."""

import argparse
import importlib
from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import output
from ntkcond.artefacts.registry import SPECS
from ntkcond.run import command
from ntkcond.run.files import csv_of, write_artefact


def main(arguments: Namespace) -> None:
    """Writes --output, a row more for each data set that a figure lacks, and its provenance."""
    a = arguments
    module = importlib.import_module(f"ntkcond.artefacts.{a.artefact}")
    inputs = {name.replace("/", "_"): read(name, paths) for name, paths in (a.input or {}).items()}
    numbers = module.table(**inputs, **(a.settings or {}))
    if ".png" in SPECS[a.artefact].files:
        numbers = output.with_missing(numbers, (a.about or {}).get("missing", []))
    write_artefact({a.output: csv_of(numbers)}, a.record)


def read(name: str, paths: list[Path]) -> pd.DataFrame | list[Path]:
    """Another artefact as a data frame of what it has; of other inputs the paths."""
    return output.read(paths[0])[0] if name in SPECS else paths


class Inputs(argparse.Action):
    """--input NAME FILE …, for each input."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        name, *paths = values
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: [Path(path) for path in paths]})


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--artefact", choices=SPECS, required=True, help=", ".join(SPECS))
    options.add_input("--input", action=Inputs, type=str, nargs="+", metavar=("NAME", "FILE"))
    command.add_values(options, "--settings", "as its SPEC names them")
    command.add_values(options, "--about", "kept in the provenance")
    command.run(main, options, chosen=lambda a: [f"ntkcond.artefacts.{a.artefact}:table"])
