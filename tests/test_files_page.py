"""docs/files.md: result files for other programs."""

import os
import re
import subprocess
import sys

import h5py
import pytest

from workflow import ROOT

PAGE = (ROOT / "docs/files.md").read_text("utf-8")
FOLDERS = ("kernels", "spectra", "angles")
LARGE = {"smallest_eigenvector", "smallest_residual", "smallest_is_above"}  # of n above 2,000


def rows(section: str) -> dict[str, list[str]]:
    """Cells of the table below a heading, by each name in the first."""
    text = re.split(r"^## ", PAGE, flags=re.M)
    below = next(part for part in text if part.splitlines()[0].strip("`").startswith(section))
    cells = [line.strip("|").split("|") for line in below.splitlines() if line.startswith("| `")]
    return {name: row for row in cells for name in re.findall(r"`([^`]+)`", row[0])}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_names_every_data_set_its_axes_and_attributes(finished, folder):
    documented, attributes = rows(f"results/{folder}/"), rows("Attributes")
    seen = set()
    for path in (finished / "results" / folder).rglob("*.h5"):
        with h5py.File(path) as file:
            assert set(file) <= documented.keys()
            assert set(file.attrs) <= attributes.keys()
            seen |= set(file)
            for name, values in file.items():
                axes = [axis.strip() for axis in documented[name][1].split(",")]
                assert values.ndim == len(axes), name
                assert len(values) == len(file.attrs["seeds"])
                for axis, length in zip(axes, values.shape, strict=True):
                    if axis == "sample":
                        assert length == file.attrs["block"]
                    if axis == "block":
                        assert length == file.attrs["samples"] // file.attrs["block"]
    assert seen == documented.keys() - LARGE


def test_the_page_names_every_array_of_a_data_set(finished):
    documented = rows("results/datasets/")
    for path in (finished / "results/datasets").glob("*.h5"):
        with h5py.File(path) as file:
            assert set(file) <= documented.keys()
            for name, values in file.items():
                assert values.ndim == len(documented[name][1].split(",")), name
            assert len(file["index"]) == len(file["x"])


def test_its_reader_runs_without_this_package(finished):
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    code = code.replace("depth3", "depth2")
    assert len(code.splitlines()) <= 10 and "ntkcond" not in code
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=finished, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line, seed in zip(done.stdout.splitlines(), (1, 32), strict=True):
        assert re.fullmatch(rf"seed {seed}: κ = \S+, \w+; trace of K = \S+", line)


def test_a_figure_is_drawn_from_its_csv_as_the_page_says(finished, tmp_path):
    page = (ROOT / "results/README.md").read_text("utf-8").partition("## Drawing a figure")[2]
    [code] = re.findall(r"```python\n(.*?)```", page, re.S)
    code = code.replace('"results/', f'"{finished}/results/')
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "mine.pdf").read_bytes().startswith(b"%PDF")
