"""Figure 1 and its numbers: results/fig1.pdf, .png, .csv."""

from argparse import Namespace

from ntkcond import command
from ntkcond.figures import fig1, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig1`."""
    output.write(fig1, fig1.table(arguments.depths), arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument(
        "--depths", type=command.whole_numbers, required=True, help="such as 1,2,10"
    )
    command.run(main, options)
