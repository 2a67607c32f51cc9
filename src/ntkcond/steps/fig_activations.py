"""Figure of other activations at infinite width and its numbers: results/fig_activations.pdf, …"""

from argparse import Namespace

from ntkcond import command
from ntkcond.figures import fig_activations, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_activations`."""
    a = arguments
    output.write(fig_activations, fig_activations.table(a.activations, a.depths), a)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--activations", type=lambda text: text.split(","), required=True)
    options.add_argument("--depths", type=command.whole_numbers, required=True)
    command.run(main, options)
