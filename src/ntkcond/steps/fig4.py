"""Figure 4 and its numbers: results/fig4.pdf, .png, .csv."""

from argparse import Namespace

from ntkcond import command
from ntkcond.figures import fig4, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig4`."""
    output.write(fig4, fig4.table(), arguments)


if __name__ == "__main__":
    command.run(main, command.parser(__doc__))
