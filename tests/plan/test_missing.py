"""An unavailable data set: it stops its figures, or they are drawn without it and say so."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pypdf
import pytest

from ntkcond.artefacts import fig2, output
from ntkcond.datasets.speech import corpus
from ntkcond.steps import drawing
from ntkcond.steps import table as table_step
from speech import write_corpus
from test_report import content
from workflow import SMALL, environment, planned, snakemake, write_config

NOWHERE = "http://127.0.0.1:9"
FIG2 = "results/fig2.pdf"
SPEECH = {
    "source": "librispeech", "samples": 40, "block": 20, "mel": 24, "splice": 4, "features": 96,
    "depths": [1], "mirrors": [NOWHERE],
}  # fmt: skip
SAID = (
    "ntkcond: data set speech is missing from fig2: no LibriSpeech/train-clean-100 in {}."
    " The rule `downloads`"
)


def configure(project: Path, fig2: list[str], **others: object) -> None:
    datasets = {**SMALL["datasets"], "speech": SPEECH, **others.pop("datasets", {})}
    config = {**SMALL, "missing": "skip", "datasets": datasets, "figures": {"fig2": fig2}, **others}
    write_config(project, config)


@pytest.fixture
def with_speech(project) -> Path:
    """A finished project whose figure 2 is to show a corpus, which is nowhere."""
    configure(project, ["speech", "synthetic", "digits"])
    return project


def words_in(picture: Path) -> str:
    return pypdf.PdfReader(picture).pages[0].extract_text()


def why(project: Path, path: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "ntkcond.why", path, "--configfile", "small.yaml"]
    return subprocess.run(
        command, cwd=project, env=environment(project), capture_output=True, text=True, check=False
    )


def test_without_skip_it_stops_its_figure(with_speech):
    configure(with_speech, ["speech", "synthetic", "digits"], missing=None)  # the default
    before = (with_speech / FIG2).read_bytes()
    done = snakemake(with_speech, FIG2, "--config", "missing=refuse", check=False)
    assert done.returncode != 0
    said = done.stderr[done.stderr.index("\nntkcond: ") :]
    assert "the download ended at 0 bytes of 6.4 GB (http://127.0.0.1:9/train-clean-100.tar" in said
    assert "Error in rule corpus:" in said
    assert "is missing" not in done.stderr
    assert (with_speech / FIG2).read_bytes() == before


def test_with_skip_the_figure_is_of_the_others_until_the_set_is_there(with_speech, tmp_path):
    project, table = with_speech, with_speech / "results/fig2.csv"
    of_two = pd.read_csv(table)

    done = snakemake(project, FIG2)
    said = SAID.format(project / "data")
    assert done.stderr.count(said) == 1
    assert not (project / "data/LibriSpeech").exists()

    (missing,) = pd.read_csv(table)[lambda rows: rows.dataset == "speech"].to_dict("records")
    assert all(pd.isna(value) for name, value in missing.items() if name != "dataset")
    assert ",0,24,20,60," in table.read_text("utf-8")  # whole numbers stay whole
    numbers, named = output.read(table)
    pd.testing.assert_frame_equal(numbers, of_two)
    assert named == ["speech"]
    words = words_in(project / FIG2)
    assert "Missing: speech, whose raw files were not available." in words
    drawing.draw(fig2, numbers, named).save(tmp_path / "redrawn.pdf")
    assert words_in(tmp_path / "redrawn.pdf") == words
    snakemake(project, "results/fig2.png", "--report", str(tmp_path / "report.html"))
    shown = content(tmp_path / "report.html", "results")["results/fig2.png"]["caption"]
    assert '<strong>Missing</strong>: <tt class="docutils literal">speech</tt>.' in shown
    assert "<strong>Missing</strong> from" in content(tmp_path / "report.html", "workflow_desc")

    again = snakemake(project, FIG2)
    assert "Nothing to be done" in again.stderr
    assert again.stderr.count(said) == 1
    assert planned(project, FIG2) == {}
    told = why(project, FIG2)
    assert told.returncode == 0, told.stdout + told.stderr
    assert said in told.stdout

    published = write_corpus(project / "data", speakers=2)
    (published / corpus.AS_PUBLISHED).write_text(corpus.contents(published))  # as if downloaded
    new = {"kernel": 2, "spectrum": 2, "closest_pair": 2, "sweep": 2}
    new |= {"conditioning": 1, "angles": 1, "fig2": 1, "draw_fig2": 1}
    needed = {"corpus": 1, "dataset": 1, **new}
    assert planned(project, FIG2) == needed
    assert why(project, FIG2).returncode == 1
    done = snakemake(project, FIG2)
    assert "is missing" not in done.stderr
    rows = pd.read_csv(table)
    assert (rows.dataset == "speech").sum() == 2 and rows.depth.notna().all()
    assert "Missing" not in words_in(project / FIG2)

    # What a figure shows stays in it while its samples are here.
    shutil.rmtree(project / "data/LibriSpeech")
    assert planned(project, FIG2) == {}
    assert "is missing" not in snakemake(project, FIG2).stderr


def test_tables_made_of_what_lacks_a_set_say_so_and_take_no_empty_rows(with_speech):
    configure(with_speech, [], figures={"fig3": ["digits", "speech"]})
    names = ("fig3", "table_epochs")
    of_digits = {name: pd.read_csv(with_speech / f"results/{name}.csv") for name in names}
    snakemake(with_speech, *(f"results/{name}.csv" for name in names), "results/table_epochs.md")
    for name in names:
        path = with_speech / f"results/{name}.csv"
        assert ("speech" in path.read_text("utf-8")) == (name == "fig3")
        pd.testing.assert_frame_equal(table_step.read(name, [path]), of_digits[name])
    text = (with_speech / "results/table_epochs.md").read_text("utf-8")
    assert text.endswith("\nMissing: speech, whose raw files were not available.\n")


def test_a_figure_of_no_other_set_fails(with_speech):
    configure(with_speech, ["speech"])
    done = snakemake(with_speech, FIG2, check=False)
    assert done.returncode != 0
    assert "Error in rule corpus:" in done.stderr
    assert "the download ended at 0 bytes" in done.stderr


def test_a_misspelt_file_of_ones_own_is_a_mistake_all_the_same(project):
    configure(project, ["digits", "mine"], datasets={"mine": {"file": "absent.npy"}})
    done = snakemake(project, FIG2, check=False)
    assert done.returncode != 0
    assert "datasets.mine.file" in done.stderr and "absent.npy: no such file" in done.stderr


def test_downloads_gets_what_the_network_has(with_speech, server):
    folder, address = server
    (folder / "train-clean-100.tar.gz").write_bytes(b"another archive")
    speech = {**SPEECH, "mirrors": [NOWHERE, f"{address}/"]}
    configure(with_speech, ["digits", "speech"], datasets={"speech": speech})
    assert planned(with_speech, "downloads") == {"corpus": 1, "downloads": 1}
    done = snakemake(with_speech, "downloads", check=False)
    assert done.returncode != 0
    assert "Error in rule corpus:" in done.stderr and "it has another file" in done.stderr


def test_the_rows_of_missing_sets_leave_the_others_as_they_are(tmp_path):
    numbers = pd.DataFrame({
        "dataset": ["a", "a"], "depth": [0, 1], "kappa": [np.inf, 2.5], "rate": [8.0, np.nan],
        "best": [1e20, 1e20], "n": pd.array([3, None], dtype="Int64"), "tf32": [False, True],
        "words": ["", "x"],
    })  # fmt: skip
    numbers.to_csv(tmp_path / "whole.csv", index=False)
    output.with_missing(numbers, ["b", "c"]).to_csv(tmp_path / "longer.csv", index=False)
    whole, longer = (
        (tmp_path / name).read_text("utf-8").splitlines() for name in ("whole.csv", "longer.csv")
    )
    assert longer == [*whole, "b,,,,,,,", "c,,,,,,,"]
    without, named = output.read(tmp_path / "longer.csv")
    assert named == ["b", "c"]
    pd.testing.assert_frame_equal(without, pd.read_csv(tmp_path / "whole.csv"))
    assert output.read(tmp_path / "whole.csv")[1] == []
    assert output.with_missing(pd.DataFrame({"depth": [1]}), ["b"]).shape == (1, 1)
