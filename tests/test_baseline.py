"""Today's code against the results of single jobs that tests/reference/baseline keeps.

A small sample, each test another: `tests/baseline.py check` takes more, and the large kernels.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import baseline
from baseline import FILES, FOLDER, KINDS, available, check, recorded


def test_the_csvs_have_every_job_once():
    for name, kind in KINDS.items():
        rows = recorded(name)[kind.settings].drop_duplicates().to_dict("records")
        assert rows == list(kind.jobs)
        assert not recorded(name).isna().any(axis=None)


@pytest.mark.parametrize("dataset", ["synthetic", "digits"])
def test_kernels_have_the_spectra_they_had(dataset):
    assert check(["samples", "kernels"], [dataset], sample=6, seed=1) == []


@pytest.mark.parametrize("name", ["angles", "training"])
def test_angles_and_training_of_the_digits_are_as_they_were(name):
    assert check([name], ["digits"], sample=3, seed=1) == []


@pytest.mark.parametrize("dataset", FILES)
def test_jobs_on_real_files_give_what_they_gave(dataset, real_data):
    if not available([dataset]):
        pytest.skip(f"NTKCOND_TEST_DATA has no {FILES[dataset]}")
    assert check(["samples", "kernels"], [dataset], sample=2, seed=2) == []
    assert check(["angles", "training"], [dataset], sample=1, seed=1) == []  # the shallowest


def planted(folder: Path, name: str, column: str, change: Callable[[pd.Series], float]) -> Path:
    """A copy of the CSVs with one job of this kind, whose first row is changed in one column.
    change: what is added, from the row."""
    shutil.copytree(FOLDER, folder)
    settings, table = KINDS[name].settings, recorded(name)
    job = table[(table.dataset == "digits") & (table.depth == 1)].iloc[0]
    table = table[(table[settings] == job[settings]).all(axis=1)].copy()
    table.loc[job.name, column] += change(job)
    table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("name", "column", "change"),
    [
        ("kernels", "lambda_min", lambda row: 6 * row.lambda_min_error),
        ("kernels", "lambda_max", lambda row: 3e-10 * row.lambda_max),
        ("angles", "min_angle_deg", lambda row: 3e-9),
        ("angles", "second", lambda row: 1),
        ("training", "train_loss", lambda row: 3e-4 * row.train_loss),
        ("training", "test_accuracy", lambda row: -0.015),
    ],
)
def test_a_wrong_number_is_found(tmp_path, name, column, change):
    folder = planted(tmp_path / "csvs", name, column, change)
    [wrong] = check([name], ["digits"], sample=9, seed=0, folder=folder)
    assert wrong.startswith(f"{name}, digits 1 relu 1 ") and f": {column} " in wrong


def test_the_command_names_what_is_off_and_fails(tmp_path, monkeypatch, capsys):
    folder = planted(tmp_path / "csvs", "angles", "min_angle_deg", lambda row: 1.0)
    words = ["check", "--kinds", "angles", "--datasets", "digits", "mnist", "--sample", "1"]
    monkeypatch.delenv("NTKCOND_TEST_DATA", raising=False)
    monkeypatch.setattr(baseline, "FOLDER", folder)
    assert baseline.main(words) == 1
    left_out, summary, wrong = capsys.readouterr().out.splitlines()
    assert left_out.startswith("left out") and left_out.endswith(": mnist")
    assert summary.startswith("angles: 1 of 1 jobs")
    assert wrong.startswith("angles, digits 1 relu 1 1797: min_angle_deg")
    monkeypatch.undo()
    assert baseline.main([*words[:5], "--sample", "1"]) == 0
