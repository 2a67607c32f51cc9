"""Downloads one raw file of a data set, from its mirrors, and checks it."""

from argparse import Namespace

from ntkcond.datasets import registry
from ntkcond.datasets.torchvision_data import fetch
from ntkcond.settings import command


def main(arguments: Namespace) -> None:
    """Downloads the raw file to output; a complete file stays untouched."""
    a = arguments
    mirrors = command.mirrors_of(a, a.source)
    downloads = registry.module(a.source).downloads(mirrors or None)
    fetch(a.output, downloads[a.raw_file])


if __name__ == "__main__":
    options = command.parser(__doc__)
    files = [name for source in registry.SOURCES.values() for name in source.raw_files]
    options.add_argument("--source", required=True, choices=registry.SOURCES)
    options.add_argument("--raw-file", required=True, choices=files, metavar="FILE")
    command.add_mirrors(options)
    command.run(main, options)
