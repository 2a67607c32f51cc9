"""Why a result is, or is not, up to date: python -m ntkcond.why results/fig2.pdf

Takes --configfile, --config and --directory as Snakemake does, and runs nothing. Exit status: 0 for
a result that is up to date, 1 for one that is not."""

import argparse
import os
import sys
from pathlib import Path

from ntkcond.plan import config, missing
from ntkcond.plan.freshness import Freshness
from ntkcond.plan.graph import Graph
from ntkcond.plan.reasons import of_file
from ntkcond.run.errors import UserError


def main(arguments: argparse.Namespace) -> bool:
    """Prints the answer; whether the file is up to date. Raises UserError for a mistake."""
    project = Path.cwd()
    if not Path(project, config.SCHEMA).is_file():
        raise UserError(f"{project}: has no {config.SCHEMA}. Run this where you run snakemake")
    settings = _settings(project, arguments)
    config.check(settings, project)
    if not Path(arguments.directory).is_dir():
        raise UserError(f"{arguments.directory}: no such folder. Correct --directory")
    os.chdir(arguments.directory)
    graph = Graph(settings, project)
    path = os.path.relpath(arguments.file)
    job = graph.maker(path)
    if job is None:
        folder, below, rest = arguments.file.partition("/results/")
        hint = f"Use --directory {folder} results/{rest}" if below else "See `snakemake --list`"
        raise UserError(f"{path}: no rule makes this file. {hint}")
    graph, found = missing.graph_without(Freshness(graph), [job])
    job = graph.maker(path)
    fresh, text = of_file(Freshness(graph), job, path)
    print(text)
    if found:
        print(missing.in_words(found))
    return fresh


def _settings(project: Path, arguments: argparse.Namespace) -> dict:
    from snakemake.utils import update_config

    settings: dict = {}
    for name in ("config.yaml", *arguments.configfile):
        path = Path(project, name)
        if not path.is_file():
            raise UserError(f"{path}: no such file. Correct --configfile")
        update_config(settings, config.from_yaml(path.read_text("utf-8"), str(path)) or {})
    for entry in arguments.config:
        key, equals, value = entry.partition("=")
        if not equals:
            raise UserError(f"--config {entry}: must be SETTING=VALUE")
        update_config(settings, {key: config.from_yaml(value, f"--config {key}")})
    config.remove_unset(settings)
    return settings


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        prog="python -m ntkcond.why", description=__doc__.splitlines()[0]
    )
    options.add_argument("file", help="such as results/fig2.pdf")
    options.add_argument("--configfile", nargs="+", default=[], metavar="FILE")
    options.add_argument("--config", nargs="+", default=[], metavar="SETTING=VALUE")
    options.add_argument("--directory", default=".", help="where the results are")
    try:
        sys.exit(0 if main(options.parse_args()) else 1)
    except UserError as error:
        sys.exit(f"ntkcond: {error}")
