"""Figure of weight scales and its numbers: results/fig_weight_scale.pdf, .png, .csv."""

from argparse import Namespace

from ntkcond import command
from ntkcond.figures import fig_weight_scale, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_weight_scale`."""
    output.write(fig_weight_scale, fig_weight_scale.table(fig_weight_scale.DEPTH), arguments)


if __name__ == "__main__":
    command.run(main, command.parser(__doc__))
