"""Figure of widths and its numbers: results/fig_width.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

from ntkcond import command
from ntkcond.figures import fig_width, output, sweeps


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_width`."""
    output.write(fig_width, sweeps.table(sweeps.read(arguments.sweeps)), arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--sweeps", type=Path, nargs="+", required=True, help="results/sweeps/*/*")
    command.run(main, options)
