"""The picture of the workflow in docs/extending.md, docs/dag.svg. To redraw it:

    .venv/bin/python docs/dag.py

Snakemake says which rule needs which (for the study `small`, which has downloads too), Graphviz
draws it. docs/dag.dot is what was drawn: tests/test_dag.py holds it against today's rules.
"""

import re
import subprocess
import sys
from pathlib import Path

DOT, SVG = (Path(__file__).with_name(f"dag.{suffix}") for suffix in ("dot", "svg"))
COMPUTING = {
    "#E69F00": "download corpus dataset", "#0072B2": "kernel spectrum closest_pair sweep variant"
    " architecture", "#D55E00": "sgd descent speed",
}  # fmt: skip
COLOURS = {rule: colour for colour, rules in COMPUTING.items() for rule in rules.split()}
LOOK = """rankdir=LR; bgcolor=white; nodesep=0.25; ranksep=0.45; edge [color="#888888"];
node [shape=box, style="rounded", penwidth=1.8, fontname="Helvetica", fontsize=12];"""


def drawing() -> str:
    """The rule graph in Graphviz's language, from left to right, without the rules of targets; an
    artefact's table and drawing are one."""
    command = "snakemake --rulegraph dot --configfile studies/small/config.yaml --config keep=[]"
    text = subprocess.check_output(
        [sys.executable, "-m", *command.split()],
        cwd=DOT.parents[1],
        text=True,
        stderr=subprocess.DEVNULL,
    )
    names = dict(re.findall(r'(\d+)\[label = "(?:draw_)?(\w+)"', text))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", text)}
    edges = {(a, b) for a, b in edges if b not in ("all", "default") and a != b}
    rules = dict.fromkeys(name for edge in sorted(edges) for name in edge)
    boxes = (f'"{rule}" [color="{COLOURS.get(rule, "#009E73")}"];' for rule in rules)
    arrows = (f'"{a}" -> "{b}";' for a, b in sorted(edges))
    return "\n".join(["digraph workflow {", LOOK, *boxes, *arrows, "}", ""])


if __name__ == "__main__":
    DOT.write_text(drawing(), "utf-8")
    try:
        subprocess.run(["dot", "-Tsvg", DOT, "-o", SVG], check=True)
    except FileNotFoundError:
        sys.exit("docs/dag.py: Graphviz draws the picture (on Debian: apt install graphviz)")
