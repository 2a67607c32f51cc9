"""Figure of gradient descent and its numbers: results/fig_descent.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

from ntkcond import command
from ntkcond.figures import fig_descent, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_descent`."""
    output.write(fig_descent, fig_descent.table(arguments.descents), arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument(
        "--descents", type=Path, nargs="+", required=True, help="results/descent/*"
    )
    command.run(main, options)
