"""Unavailable data sets, and the figures that are drawn without them (`missing: skip`).

A set is missing from a figure if bringing the figure up to date would read raw files that are
neither in data_dir nor served by an address. It then leaves the figure's list in the config's
`figures` before any job of the figure is planned. A figure none of
whose sets can be had keeps its list, and fails as with `missing: refuse`.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES
from ntkcond.plan import config as settings
from ntkcond.plan.freshness import Freshness
from ntkcond.plan.graph import Graph, Job
from ntkcond.run.errors import UserError

Answers = Mapping[str, Mapping[str, str]]  # of each file and address, see `ntkcond.plan.probe`


class Missing(NamedTuple):
    """An unavailable data set. left_out: the figures that are drawn without it; unmade: those
    that have no other set; lacking, answers: in words, which files are not where, and what the
    servers say."""

    dataset: str
    left_out: Sequence[str]
    unmade: Sequence[str]
    lacking: str
    answers: str


def find(freshness: Freshness, targets: Iterable[Job]) -> list[Missing]:
    """The missing data sets of all figures that the targets depend on. Servers are asked only for
    files that are not there and would be read.

    freshness: of the graph of all data sets. Raises UserError if servers cannot be asked.
    """
    graph = freshness.graph
    artefacts = {job.rule for target in targets for job in graph.upstream(target)} & SPECS.keys()
    figures = sorted({figure for name in artefacts for figure in graph.lists(name)})
    listed = {figure: graph.config.figures[figure] for figure in figures}
    names = dict.fromkeys(name for figure in figures for name in listed[figure])
    lacking = {name: files for name in names if (files := _lacking(graph, name))}
    if not lacking:
        return []
    read = {
        figure: _read(freshness, figure) & lacking.keys() & set(listed[figure])
        for figure in figures
    }
    asked = {name: lacking[name] for name in lacking if any(name in read[f] for f in figures)}
    answers = _ask(graph, asked) if asked else {}
    gone = {
        name
        for name, of_files in answers.items()
        if not all("" in of_file.values() for of_file in of_files.values())
    }
    unmade = {figure for figure in figures if set(listed[figure]) <= read[figure] & gone}
    missing_sets = []
    for name in (name for name in asked if name in gone):
        wanting = [figure for figure in figures if name in read[figure]]
        missing_sets.append(
            Missing(
                name,
                [figure for figure in wanting if figure not in unmade],
                [figure for figure in wanting if figure in unmade],
                _lacking_in_words(graph, name, asked[name]),
                _answers_in_words(answers[name]),
            )
        )
    return missing_sets


def graph_without(freshness: Freshness, targets: Iterable[Job]) -> tuple[Graph, list[Missing]]:
    """The graph whose figures lack what is missing, and what that is: with `missing: skip`. As
    `find`."""
    graph = freshness.graph
    missing_sets = find(freshness, targets) if graph.config.missing == "skip" else []
    left_out: dict[str, list[str]] = {}  # for each figure
    for missing in missing_sets:
        for figure in missing.left_out:
            left_out.setdefault(figure, []).append(missing.dataset)
    return (graph.without(left_out) if left_out else graph), missing_sets


def in_words(missing_sets: Sequence[Missing]) -> str:
    """Of each data set which figures lack it and why; and how to have it."""
    names = "|".join(missing.dataset for missing in missing_sets)
    return "\n".join([
        *map(_in_words, missing_sets),
        "    To have it, put the original files there, set data_dir to a folder that has them, or"
        f" name a mirror in datasets.{names}.mirrors",
    ])  # fmt: skip


def _in_words(missing: Missing) -> str:
    words = f"ntkcond: data set {missing.dataset} is missing"
    if missing.left_out:
        words += f"; made without it: {', '.join(missing.left_out)}"
    if missing.unmade:
        words += f"; not made, having no other: {', '.join(missing.unmade)}"
    return f"{words}\n    no {missing.lacking}; {missing.answers}"


def _lacking(graph: Graph, name: str) -> list[str]:
    """Raw files of the data set that are not there, by their path below data_dir; of a corpus
    whose folder is not there either, its archive."""
    source = SOURCES[settings.dataset_settings(graph.config, name)["source"]]
    if source.corpus:
        folder = settings.corpus_folder(graph.config, name, graph.data_dir)
        archive = f"{folder.name}.tar.gz"
        places = (folder, folder.with_name(archive), Path(graph.data_dir, archive))
        return [] if any(place.exists() for place in places) else [archive]
    return [file for file in source.raw_files if not Path(graph.data_dir, file).is_file()]


def _read(freshness: Freshness, figure: str) -> set[str]:
    """The data sets that bringing a figure up to date would read from raw files."""
    graph = freshness.graph
    of_list = [name for name, spec in SPECS.items() if spec.datasets == figure]
    artefacts = [name for name in of_list if SPECS[name].default] or of_list
    jobs = {job for name in artefacts for job in freshness.running(graph.job(name))}
    return {job.wildcards["dataset"] for job in jobs if "source" in job.settings}


def _ask(graph: Graph, lacking: Mapping[str, list[str]]) -> dict[str, Answers]:
    """What `ntkcond.plan.probe` finds of each data set."""
    asked = {}
    for name, files in lacking.items():
        values = settings.dataset_settings(graph.config, name)
        mirrors = values.get("mirrors")
        asked[name] = {"source": values["source"], "files": files, "mirrors": mirrors}
    done = subprocess.run(
        [sys.executable, "-m", "ntkcond.plan.probe"],
        input=json.dumps(asked), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"missing: skip: servers cannot be asked for raw files ({reason})")
    return json.loads(done.stdout)


def _lacking_in_words(graph: Graph, name: str, files: Sequence[str]) -> str:
    data_dir = Path(graph.data_dir).absolute()  # Snakemake leaves the folder of --directory
    if SOURCES[settings.dataset_settings(graph.config, name)["source"]].corpus:
        folder = settings.corpus_folder(graph.config, name, data_dir)
        return f"{folder.name} or {folder.name}.tar.gz in {folder.parent}"
    paths = [data_dir / file for file in files]
    return f"{', '.join(path.name for path in paths)} in {paths[0].parent}"


def _answers_in_words(answers: Answers) -> str:
    """Each server once, though it was asked for several files."""
    servers = {
        url.rpartition("/")[0]: problem
        for of_file in answers.values()
        for url, problem in of_file.items()
        if problem
    }
    return "; ".join(f"{server}: {problem}" for server, problem in servers.items())
