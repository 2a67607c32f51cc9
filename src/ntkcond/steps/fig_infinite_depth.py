"""Figure of infinite depth and its numbers: results/fig_infinite_depth.pdf, .png, .csv."""

from argparse import Namespace

from ntkcond import command
from ntkcond.figures import fig_infinite_depth, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_infinite_depth`."""
    output.write(fig_infinite_depth, fig_infinite_depth.table(), arguments)


if __name__ == "__main__":
    command.run(main, command.parser(__doc__))
