"""What `ntkcond.why` and `ntkcond.predict` share: a question about one result, and its job.

They take --configfile, --config and --directory as Snakemake does, and run nothing."""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ntkcond.plan import config, missing
from ntkcond.plan.freshness import Freshness
from ntkcond.plan.graph import Graph, Job
from ntkcond.run.errors import UserError


class Question(NamedTuple):
    """path: the result, from --directory, which is now the current folder; job: its maker; missing:
    in words, the data sets without which freshness.graph is."""

    path: str
    job: Job
    freshness: Freshness
    missing: str


def run(
    main: Callable[[argparse.Namespace], bool | None],
    options: argparse.ArgumentParser,
    otherwise: int = 1,
) -> None:
    """The process of a command line: one line for a UserError; the exit status of False."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # | head
    try:
        done = main(options.parse_intermixed_args())
    except UserError as error:
        sys.exit(f"ntkcond: {error}")
    sys.exit(otherwise if done is False else 0)


def parser(module: str, doc: str) -> argparse.ArgumentParser:
    """The command line of `python -m ntkcond.{module}`."""
    options = argparse.ArgumentParser(
        prog=f"python -m ntkcond.{module}", description=doc.splitlines()[0]
    )
    options.add_argument("file", help="such as results/fig2.pdf")
    options.add_argument("--configfile", nargs="+", default=[], metavar="FILE")
    options.add_argument("--config", nargs="+", default=[], metavar="SETTING=VALUE")
    options.add_argument("--directory", default=".", help="where the results are")
    return options


def asked(arguments: argparse.Namespace) -> Question:
    """Raises UserError for a mistake in the config, or a file that no rule makes."""
    start = Path.cwd()
    settings = config.check(_settings(start, arguments), start)
    if not Path(arguments.directory).is_dir():
        raise UserError(f"{arguments.directory}: no such folder. Correct --directory")
    os.chdir(arguments.directory)
    whole = Graph(settings, start)
    left_out = missing.left_out(whole)
    if not arguments.file:
        raise UserError("name a file, such as results/fig2.pdf")
    graph, path = whole.without(left_out), os.path.relpath(arguments.file)
    job = graph.maker(path)
    if job is None:
        folder, below, rest = arguments.file.partition("/results/")
        study = Path("studies", Path(folder).name, "config.yaml")
        settings_of = f" --configfile {study}" if Path(start, study).is_file() else ""
        hint = f"Use results/{rest} --directory {folder}{settings_of}"
        hint = hint if below else "See `snakemake --list`"
        raise UserError(f"{path}: no rule makes this file. {hint}")
    return Question(path, job, Freshness(graph), missing.in_words(whole, left_out))


def _settings(start: Path, arguments: argparse.Namespace) -> dict:
    from snakemake.utils import update_config

    settings: dict = {}
    files = [Path(start, name) for name in arguments.configfile]
    whole, deployed = Path(start, "config.yaml"), Path(start, "config/config.yaml")
    if whole.is_file() or deployed.is_file():
        files.insert(0, whole if whole.is_file() else deployed)
    elif not files:
        raise UserError(f"{start}: has no config.yaml. Run this where you run snakemake")
    for path in files:
        if not path.is_file():
            raise UserError(f"{path}: no such file. Correct --configfile")
        overlay = config.from_yaml(path.read_bytes(), str(path)) or {}
        if not isinstance(overlay, dict):
            raise UserError(f"{path}: must hold settings, such as width: 512")
        update_config(settings, overlay)
    for entry in arguments.config:
        key, equals, value = entry.partition("=")
        if not equals:
            raise UserError(f"--config {entry}: must be SETTING=VALUE")
        update_config(settings, {key: config.from_yaml(value, f"--config {key}")})
    config.complete(settings, from_default=not whole.is_file())
    return settings
