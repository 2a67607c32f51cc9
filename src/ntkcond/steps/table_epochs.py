"""Epochs until a training loss, against depth: results/table_epochs.csv, .md."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.tables import output, table_epochs


def main(arguments: Namespace) -> None:
    """See `ntkcond.tables.table_epochs`."""
    numbers = table_epochs.table(pd.read_csv(arguments.training), arguments.thresholds)
    output.write(table_epochs, numbers, arguments)


def thresholds(text: str) -> list[float]:
    """Training losses: 1,0.1,0.01."""
    return [float(word) for word in text.split(",")]


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--training", type=Path, required=True, help="training.csv")
    options.add_argument("--thresholds", type=thresholds, required=True, help="such as 1,0.1")
    command.run(main, options)
