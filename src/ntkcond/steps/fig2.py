"""Figure 2 and its numbers: results/fig2.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.figures import fig2, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig2`."""
    tables = (pd.read_csv(path) for path in (arguments.conditioning, arguments.angles))
    output.write(fig2, fig2.table(*tables), arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--conditioning", type=Path, required=True, help="conditioning.csv")
    options.add_argument("--angles", type=Path, required=True, help="angles.csv")
    command.run(main, options)
