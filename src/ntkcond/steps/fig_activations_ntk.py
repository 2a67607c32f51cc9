"""Figure of all activations and its numbers: results/fig_activations_ntk.pdf, .png, .csv."""

from argparse import Namespace
from pathlib import Path

from ntkcond import command
from ntkcond.figures import fig_activations_ntk, output, sweeps


def main(arguments: Namespace) -> None:
    """See `ntkcond.figures.fig_activations_ntk`."""
    output.write(fig_activations_ntk, sweeps.table(sweeps.read(arguments.sweeps)), arguments)


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--sweeps", type=Path, nargs="+", required=True, help="results/sweeps/*/*")
    command.run(main, options)
