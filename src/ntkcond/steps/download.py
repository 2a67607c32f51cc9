"""Downloads one raw file of a data set, from its mirrors, and checks it."""

from argparse import Namespace

from ntkcond import command
from ntkcond.datasets import registry
from ntkcond.datasets.torchvision_data import fetch
from ntkcond.errors import UserError


def main(arguments: Namespace) -> None:
    """output: data_dir and the file's path below it, as the registry's raw_files has it."""
    downloads = registry.module(arguments.source).downloads(arguments.mirrors)
    output = arguments.output.as_posix()
    for name, download in downloads.items():
        if output.endswith("/" + name):
            fetch(type(arguments.output)(output.removesuffix(name)), name, download)
            return
    raise UserError(f"{output}: {arguments.source} has no such file, only {', '.join(downloads)}")


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument("--source", required=True, choices=registry.SOURCES)
    options.add_argument("--mirrors", nargs="+", help="addresses to try, in this order")
    command.run(main, options)
