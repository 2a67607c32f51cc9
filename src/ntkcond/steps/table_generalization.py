"""Test accuracy against depth: results/table_generalization.csv, .md."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.grid_search import READINGS
from ntkcond.tables import output, table_generalization


def main(arguments: Namespace) -> None:
    """See `ntkcond.tables.table_generalization`."""
    numbers = table_generalization.table(pd.read_csv(arguments.training), arguments.rate_for)
    output.write(table_generalization, numbers, arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--training", type=Path, required=True, help="training.csv")
    options.add_argument("--rate-for", choices=READINGS, default="depth")
    command.run(main, options)
