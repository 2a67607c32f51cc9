"""Figure 3 and its numbers: results/fig3.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.figures import fig3, output
from ntkcond.grid_search import READINGS


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig3`."""
    numbers = fig3.table(pd.read_csv(arguments.training), arguments.rate_for)
    for row in numbers[numbers.at_edge != ""].drop_duplicates(["dataset", "depth"]).itertuples():
        command.log.warning(
            "%s L=%d: the best learning rate, %g, is the %s of those tried; widen learning_rates,"
            " of training or of datasets.%s.training",
            row.dataset, row.depth, row.learning_rate, row.at_edge, row.dataset,
        )  # fmt: skip
    output.write(fig3, numbers, arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--training", type=Path, required=True, help="training.csv")
    options.add_argument("--rate-for", choices=READINGS, default="depth")
    command.run(main, options)
