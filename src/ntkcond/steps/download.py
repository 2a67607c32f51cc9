"""Downloads one raw file of a data set, from its mirrors, and checks it."""

from argparse import Namespace

from ntkcond import command
from ntkcond.datasets import registry
from ntkcond.datasets.torchvision_data import fetch


def main(arguments: Namespace) -> None:
    """Leaves the raw file at output; one that is there and whole is not touched."""
    a = arguments
    mirrors = [url for source, url in a.mirror if source == a.source]
    downloads = registry.module(a.source).downloads(mirrors or None)
    fetch(a.output, downloads[a.raw_file])


def mirror(text: str) -> tuple[str, str]:
    """A data set and an address that has its raw files: mnist=https://…"""
    source, url = text.split("=", 1)
    return source, url


if __name__ == "__main__":
    options = command.parser(__doc__)
    files = [name for source in registry.SOURCES.values() for name in source.raw_files]
    options.add_argument("--source", required=True, choices=registry.SOURCES)
    options.add_argument("--raw-file", required=True, choices=files, metavar="FILE")
    options.add_argument(
        "--mirror", type=mirror, action="append", default=[], metavar="SOURCE=URL",
        help="tried in the order given, instead of the addresses known",
    )  # fmt: skip
    command.run(main, options)
