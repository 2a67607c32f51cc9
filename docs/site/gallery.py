"""gallery.rst: every artefact with its picture, the command that makes it, its caption."""

from itertools import groupby
from pathlib import Path

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec

TITLE = """
Gallery
=======

Every artefact, in the order of the paper's sections. The numbers of a figure are in its CSV.
"""
REPORT = "`The report <report.html>`_ has the same with settings and provenance."


def write(sources: Path) -> None:
    """sources: the folder that the site is built from, with results/."""
    shown = sorted((spec.section, name) for name, spec in SPECS.items())
    shown.sort(key=lambda entry: "claims" in entry[0])  # which have no picture, last
    with_report = (sources / "results/report.html").is_file()
    parts = [TITLE, REPORT if with_report else "", ".. container:: thumbnails"]
    for _, name in shown:
        if (sources / f"results/{name}.png").is_file():
            picture = f"   .. figure:: results/{name}.png\n      :alt: {SPECS[name].title}\n"
            parts += [picture + f"      :target: `{name}`_\n\n      {name}"]
    for section, entries in groupby(shown, lambda entry: entry[0]):
        parts += [f"{section}\n{'-' * len(section)}"]
        parts += [_entry(name, SPECS[name], sources / "results") for _, name in entries]
    (sources / "gallery.rst").write_text("\n\n".join(parts), "utf-8")


def _entry(name: str, spec: Spec, results: Path) -> str:
    files = [f"{name}{suffix}" for suffix in spec.files if (results / f"{name}{suffix}").is_file()]
    lines = [f".. _{name}:", "", spec.title, "~" * len(spec.title), ""]
    for folder in ("results", "studies/whole"):  # of whole data sets: kept
        if (results.parent / folder / f"{name}.png").is_file():
            lines += [f".. image:: {folder}/{name}.png", f"   :alt: {spec.title}", ""]
            break
    lines += [".. code-block:: none", "", f"   snakemake -j2 results/{name}{spec.files[0]}", ""]
    if files:
        lines += ["Files: " + ", ".join(f":download:`{file} <results/{file}>`" for file in files)]
    else:
        lines += ["*Not among the results from which this site was built.*"]
    return "\n".join([*lines, "", spec.caption.strip()])
