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
from ntkcond.run.files import csv_of, write_artefact
from ntkcond.settings import command


def main(arguments: Namespace) -> None:
    """Writes --output and its provenance."""
    a = arguments
    module = importlib.import_module(f"ntkcond.artefacts.{a.artefact}")
    inputs = {name.replace("/", "_"): read(name, paths) for name, paths in (a.input or {}).items()}
    write_artefact({a.output: csv_of(module.table(**inputs, **(a.settings or {})))}, a.record)


def read(name: str, paths: list[Path]) -> pd.DataFrame | list[Path]:
    """Another artefact as a data frame; of other inputs the paths."""
    return output.read(paths[0]) if name in SPECS else paths


class Inputs(argparse.Action):
    """--input NAME FILE …, for each input."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        name, *paths = values
        earlier = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**earlier, name: [Path(path) for path in paths]})


OPTIONS = command.parser(__doc__)
OPTIONS.add_argument("--artefact", choices=SPECS, required=True, help=", ".join(SPECS))
OPTIONS.add_inputs("input", action=Inputs, type=str, nargs="+", optional=True)
command.add_values(OPTIONS, "settings", "about")

if __name__ == "__main__":
    command.run(main, OPTIONS)
