"""The picture in docs/extending.md is that of the rules. Out of date? Run docs/dag.py."""

import html
import re
import runpy

from workflow import ROOT

dag = runpy.run_path(ROOT / "docs/dag.py")


def test_the_picture_is_up_to_date():
    graph = dag["drawing"]()
    assert dag["DOT"].read_text("utf-8") == graph
    titles = re.findall(r"<title>(.+?)</title>", dag["SVG"].read_text("utf-8"))
    shown = {html.unescape(title) for title in titles} - {"workflow"}
    edges = {f"{a}->{b}" for a, b in re.findall(r'"(\w+)" -> "(\w+)"', graph)}
    assert shown == set(re.findall(r'^"(\w+)" \[', graph, re.M)) | edges
    assert "fig2->costs" in edges
