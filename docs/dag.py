"""The picture of the workflow in docs/extending.md, docs/dag.svg. To redraw it:

    .venv/bin/python docs/dag.py

Snakemake says which rule needs which (for the study `small`, which has downloads too), Graphviz
draws it. docs/dag.dot is what was drawn: tests/test_dag.py holds it against today's rules.
"""

import re
import subprocess
import sys
from pathlib import Path

from ntkcond.artefacts.registry import SPECS

PROJECT = Path(__file__).parents[1]
DOT, SVG = PROJECT / "docs/dag.dot", PROJECT / "docs/dag.svg"
COLOURS = {
    "#E69F00": ("download", "corpus", "dataset"),
    "#0072B2": ("kernel", "spectrum", "closest_pair", "sweep", "architecture", "variant"),
    "#D55E00": ("sgd", "descent", "speed"),
}
FIGURE, TABLE = "#009E73", "#CC79A7"


def colours() -> dict[str, str]:
    """The colour of each rule."""
    by_rule = {rule: colour for colour, rules in COLOURS.items() for rule in rules}
    artefacts = {name: FIGURE if ".png" in spec.files else TABLE for name, spec in SPECS.items()}
    return {**by_rule, **artefacts}


def drawing() -> str:
    """The rule graph in Graphviz's language, from left to right, without the rules of targets; an
    artefact's table and drawing are one."""
    snakemake = [sys.executable, "-m", "snakemake", "--rulegraph", "dot"]
    graph = subprocess.run(
        [*snakemake, "--configfile", "studies/small/config.yaml"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = dict(re.findall(r'(\d+)\[label = "(?:draw_)?(\w+)"', graph))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", graph)}
    lines = [
        f'"{rule}" [color="{colour}"];'
        for rule, colour in colours().items()
        if rule in names.values()
    ]
    lines += [
        f'"{a}" -> "{b}";' for a, b in sorted(edges) if b not in ("all", "default") and a != b
    ]
    look = (
        'rankdir=LR; bgcolor=white; nodesep=0.25; ranksep=0.45; edge [color="#888888"];'
        ' node [shape=box, style="rounded", penwidth=1.8, fontname="Helvetica", fontsize=12];'
    )
    return "\n".join(["digraph workflow {", look, *lines, "}", ""])


if __name__ == "__main__":
    DOT.write_text(drawing(), "utf-8")
    try:
        subprocess.run(["dot", "-Tsvg", DOT, "-o", SVG], check=True)
    except FileNotFoundError:
        sys.exit("docs/dag.py: Graphviz draws the picture (on Debian: apt install graphviz)")
