"""Every claim of the paper and its verdict: results/claims.csv, .md, .html."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.figures import sweeps
from ntkcond.storage import replacing
from ntkcond.tables import claims, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.tables.claims`. The tables are those of the artefacts, by the names of their
    files."""
    evidence = {path.stem: pd.read_csv(path) for path in arguments.tables}
    if arguments.first_layer:
        evidence["first_layer"] = sweeps.table(sweeps.read(arguments.first_layer))
    numbers = claims.table(evidence)
    output.write(claims, numbers, arguments)
    with replacing(arguments.output.with_suffix(".html")) as temporary:
        temporary.write_text(claims.html(numbers), "utf-8")


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument(
        "--tables", type=Path, nargs="+", required=True, help="fig2.csv and others"
    )
    options.add_argument(
        "--first-layer", type=Path, nargs="*", default=[], help="results/sweeps/first_layer/…/*.h5"
    )
    command.run(main, options)
