"""Data sets that are not here: with `missing: skip`, figures are drawn without them.

A data set is here if its raw files are in data_dir, or its samples or anything made of them in
results. A figure none of whose data sets is here keeps its list, and fails as with
`missing: refuse`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ntkcond.datasets.registry import SOURCES
from ntkcond.jobs.registry import STEPS
from ntkcond.plan import config as settings
from ntkcond.plan.graph import Graph


def left_out(graph: Graph) -> dict[str, list[str]]:
    """For each figure that lacks any, the data sets that it is drawn without."""
    if graph.config.missing != "skip":
        return {}
    without = {
        figure: [name for name in names if lacking(graph, name)]
        for figure, names in graph.config.figures.items()
    }
    return {
        figure: names
        for figure, names in without.items()
        if names and len(names) < len(graph.config.figures[figure])
    }


def in_words(graph: Graph, left_out: Mapping[str, Sequence[str]]) -> str:
    """A line for each data set: the figures that lack it, the files, and the fix."""
    names = dict.fromkeys(name for names in left_out.values() for name in names)
    of = f" of {graph.folder}" if graph.folder != Path() else ""
    return "\n".join(
        f"ntkcond: data set {name} is missing from"
        f" {', '.join(figure for figure in left_out if name in left_out[figure])}{of}: no"
        f" {' and '.join(lacking(graph, name))} in {Path(graph.data_dir).absolute()}."
        " The rule `downloads` gets what the network has"
        for name in names
    )


def lacking(graph: Graph, name: str) -> list[str]:
    """Raw files of the data set that are not here, by their path below data_dir; of a corpus its
    folder and its archive."""
    if any(graph.at(place).exists() for place in _results_of(name)):
        return []
    source = SOURCES[settings.source_of(graph.config, name)]
    if source.corpus:
        folder = settings.corpus_folder(graph.config, name, graph.data_dir)
        archives = [folder.with_name(f"{folder.name}.tar.gz")]
        archives.append(Path(graph.data_dir, archives[0].name))
        missing = not any(place.exists() for place in (folder, *archives))
        return [folder.relative_to(graph.data_dir).as_posix()] if missing else []
    return [file for file in source.raw_files if not Path(graph.data_dir, file).is_file()]


def _results_of(name: str) -> Iterator[str]:
    """Its samples, and folders of what is made of it."""
    for step in STEPS.values():
        before, _, after = step.path.partition("{dataset}")
        if "{" not in before:
            yield f"{before}{name}{after if '{' not in after else ''}"
