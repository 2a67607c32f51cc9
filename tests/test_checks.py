"""Rows of kept tables of real data against today's code: what `studies check` draws (`checks`)."""

import math
from argparse import Namespace

import pytest

from ntkcond import checks
from ntkcond.steps import corpus, dataset
from ntkcond.studies import Study
from workflow import ROOT

FILES = {  # of data sets of the study small, below NTKCOND_TEST_DATA
    "mnist": "MNIST/raw",
    "fashion_mnist": "FashionMNIST/raw",
    "librispeech": "LibriSpeech/train-clean-100",
}
# Of training the shallowest: two epochs of 10,000 samples. A number, and what is too far from it.
DRAWN = {"conditioning": 2, "angles": 3, "sweep_first_layer": 1, "training": 1}
WRONG = {
    "lambda_max": lambda row: 3e-10 * row["lambda_max"],
    "lambda_min": lambda row: 3 * row["lambda_min_error"],
    "min_angle_deg": lambda row: 3e-9,
    "train_loss": lambda row: 3e-4 * row["train_loss"],
}


def job(step, *words: str) -> None:
    step.main(Namespace(**vars(step.OPTIONS.parse_args(words)), record=None))


def test_a_number_that_is_none_agrees_with_none_alone():
    assert checks.compared(math.nan, math.nan, 0.1) == 0
    assert checks.compared(0.5, math.nan, math.nan) == checks.compared(math.nan, 1, 1) == math.inf


@pytest.mark.parametrize("name", FILES)
def test_kept_numbers_of_real_data_are_todays_and_others_are_not(
    real_data, monkeypatch, tmp_path, name
):
    if not (real_data / FILES[name]).is_dir():
        pytest.skip(f"NTKCOND_TEST_DATA has no {FILES[name]}")
    monkeypatch.chdir(ROOT)
    study, place = Study("small"), tmp_path / "samples.h5"
    words = [f"--data-dir={real_data}", "--threads=1", f"--output={place}"]
    if name == "librispeech":
        listed = tmp_path / "corpus.h5"
        of = study.jobs.command_line("corpus", {"dataset": name})
        job(corpus, *of, f"--data-dir={real_data}", f"--output={listed}")
        words.append(f"--corpus={listed}")
    job(dataset, *study.jobs.command_line("dataset", {"dataset": name}), *words)
    arrays = checks.arrays_of(place)

    tables = {}
    for table, count in DRAWN.items():
        rows = study.rows(table)
        rows = rows[rows.dataset == name]
        if table == "training":
            rows = rows[(rows.depth == 1) & (rows.epoch == checks.FIRST)]
            rows = rows[rows.learning_rate == rows.learning_rate.min()]
        tables[table] = rows.sample(count, random_state=1)
    found = checks.sample(tables, lambda _: arrays)
    assert found.agrees.all(), found.to_string()
    assert {*found.number} >= {*WRONG}

    for table, rows in tables.items():
        off = {
            number: rows[number] + rows.apply(WRONG[number], axis=1)
            for number in WRONG.keys() & {*found.number[found.table == table]}
        }
        tables[table] = rows.assign(**off)
    wrong = checks.sample(tables, lambda _: arrays)
    assert not wrong[wrong.number.isin(WRONG)].agrees.any(), wrong.to_string()
