"""The packages that the project installs."""

import importlib.metadata
import re
import tomllib
from itertools import chain

from workflow import ROOT


def test_the_page_of_licences_says_what_the_metadata_of_each_dependency_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", line)[0] for line in lines} - {"ntkcond"}
    page = (ROOT / "docs/licences.md").read_text("utf-8").partition("## Packages")[2]
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")][1:]
    listed = {
        name: row[0].strip()
        for row in rows
        for name in re.sub(r"\([^)]*\)", "", ",".join(row[1:])).replace(" ", "").split(",")
        if name
    }
    assert listed.keys() == names
    for name, licence in listed.items():
        about = importlib.metadata.metadata(name)
        said = [about.get("License-Expression"), about.get("License")]
        assert licence in " ".join(map(str, [*said, *about.get_all("Classifier", [])])), name
