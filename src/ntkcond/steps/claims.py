"""Every claim of the paper and its verdict: results/claims.csv, .md, .html."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from ntkcond import command
from ntkcond.figures import sweeps
from ntkcond.storage import replacing
from ntkcond.tables import claims, output


def main(arguments: Namespace) -> None:
    """See `ntkcond.tables.claims`. The evidence: tables of artefacts, by the names of their files,
    and the rows of two sweeps, by theirs."""
    evidence = {path.stem: pd.read_csv(path) for path in arguments.tables}
    for name in ("first_layer", "infinite"):
        if paths := getattr(arguments, name):
            evidence[name] = sweeps.read(paths)
    numbers = claims.table(evidence)
    output.write(claims, numbers, arguments)
    with replacing(arguments.output.with_suffix(".html")) as temporary:
        temporary.write_text(claims.html(numbers), "utf-8")


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument(
        "--tables", type=Path, nargs="+", required=True, help="fig2.csv and others"
    )
    for name in ("first-layer", "infinite"):
        options.add_argument(
            f"--{name}", type=Path, nargs="*", default=[],
            help=f"results/sweeps/{name.replace('-', '_')}/…/*.h5",
        )  # fmt: skip
    command.run(main, options)
