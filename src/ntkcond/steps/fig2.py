"""Figure 2 and its numbers: results/fig2.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.figures import fig2, output, sweeps


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig2`."""
    a = arguments
    infinite = sweeps.read(a.infinite) if a.infinite else None
    numbers = fig2.table(pd.read_csv(a.conditioning), pd.read_csv(a.angles), infinite)
    output.write(fig2, numbers, a)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--conditioning", type=Path, required=True, help="conditioning.csv")
    options.add_argument("--angles", type=Path, required=True, help="angles.csv")
    options.add_argument(
        "--infinite", type=Path, nargs="*", default=[], help="results/sweeps/infinite/…/*.h5"
    )
    command.run(main, options)
