"""gallery.rst: every artefact by its title: picture, files, the command that makes it, caption."""

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec
from ntkcond.pipeline.caption import FORMS

TITLE = """
Gallery
=======

Every artefact, in the order of the paper's sections: first all of them, then each with its caption.
"""
REPORT = "`The report <report.html>`_ has the same with settings and provenance."


def write(sources: Path) -> None:
    """sources: the folder that the site is built from, with results/."""
    shown = sorted((spec.section, name) for name, spec in SPECS.items())
    shown.sort(key=lambda entry: "claims" in entry[0])  # which have no picture, last
    sections = [
        (section, [name for _, name in entries])
        for section, entries in groupby(shown, lambda entry: entry[0])
    ]
    with_report = (sources / "results/report.html").is_file()
    parts = [TITLE, REPORT if with_report else ""]
    for section, names in sections:
        parts += [f".. rubric:: {section}", *_overview(names, sources / "results")]
    for section, names in sections:
        parts += [f"{section}\n{'-' * len(section)}"]
        parts += [_entry(name, SPECS[name], sources / "results") for name in names]
    (sources / "gallery.rst").write_text("\n\n".join(parts), "utf-8")


def _overview(names: list[str], results: Path) -> Iterator[str]:
    """A section's figures, small, and then its tables; of each the title and links."""
    pictures = [name for name in names if (results / f"{name}.png").is_file()]
    if pictures:
        yield ".. container:: thumbnails"
    for name in pictures:
        yield (
            f"   .. figure:: results/{name}.png\n      :alt: {SPECS[name].title}\n"
            f"      :target: `{name}`_\n\n      {_title(name)}\n\n      {_links(name, results)}"
        )
    tables = [name for name in names if name not in pictures]
    yield "\n".join(f"- {_title(name)}: {_links(name, results)}" for name in tables)


def _title(name: str) -> str:
    return f"`{SPECS[name].title} <{name}_>`__"


def _links(name: str, results: Path) -> str:
    return ", ".join(
        [*_files(name, results, lambda suffix: suffix[1:].upper()), f"`caption <{name}_>`__"]
    )


def _files(name: str, results: Path, words: Callable[[str], str]) -> list[str]:
    """A link to each of its files."""
    return [
        f":download:`{words(suffix)} <results/{name}{suffix}>`"
        for suffix in SPECS[name].files
        if (results / f"{name}{suffix}").is_file()
    ]


def _entry(name: str, spec: Spec, results: Path) -> str:
    lines = [f".. _{name}:", "", spec.title, "~" * len(spec.title), ""]
    for folder in ("results", "studies/whole"):  # of whole data sets: kept
        if (results.parent / folder / f"{name}.png").is_file():
            lines += [f".. image:: {folder}/{name}.png", f"   :alt: {spec.title}", ""]
            break
    lines += [".. code-block:: none", "", f"   snakemake -j2 results/{name}{spec.files[0]}", ""]
    files = _files(name, results, FORMS.__getitem__)
    lines += [", ".join(files) or "*Not among the results from which this site was built.*"]
    return "\n".join([*lines, "", spec.caption.strip()])
