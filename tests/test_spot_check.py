"""The spot check agrees with what the steps computed, and finds what is wrong in kept results."""

import json
import logging
import math
import shutil
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch

from ntkcond.run.errors import UserError
from ntkcond.run.record import files_of, read
from ntkcond.run.seal import is_whole
from ntkcond.steps import spot_check
from workflow import ROOT, Forks

SAMPLES, BLOCK, SEEDS = 97, 24, (1, 32)
NETWORKS = [("relu", 1), ("relu", 2), ("linear", 0), ("linear", 2)]
SPECTRA, ANGLES = (
    [f"results/{kind}/digits/{name}/depth{depth}.h5" for name, depth in NETWORKS]
    for kind in ("spectra", "angles")
)
TRAINING = [f"results/training/digits/depth{depth}.h5" for depth in (1, 2)]
KINDS = {"spectra": SPECTRA, "angles": ANGLES, "training": TRAINING}
PLACES = len(SPECTRA) * len(SEEDS) * (SAMPLES // BLOCK)
DATASET = "results/datasets/digits.h5"


@pytest.fixture(scope="module")
def server() -> Iterator[Forks]:
    forks = Forks("h5py", "numpy", "pandas", "scipy.linalg", "sklearn.datasets", "torch", "tqdm")
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def study(server, tmp_path_factory) -> Path:
    """A folder with results of the steps, not to be changed; of kernels nothing is kept."""
    folder = tmp_path_factory.mktemp("study")

    def run(step: str, output: str, *words: str) -> None:
        words = (f"--output={output}", "--threads=1", *words)
        done, _ = server.run(folder, f"ntkcond.steps.{step}", *words, path=[ROOT / "src"])
        assert done.returncode == 0, done.stderr

    for name, seed in (("digits", 0), ("others", 1)):
        run("dataset", f"results/datasets/{name}.h5", "--source=digits", "--scale=-1,1",
            "--hold-out=1700", f"--seed={seed}")  # fmt: skip
    data, seeds = f"--dataset={DATASET}", "--seeds=1,32"
    for (name, depth), spectrum, angles in zip(NETWORKS, SPECTRA, ANGLES, strict=True):
        network = [data, seeds, f"--activation={name}", f"--depth={depth}", "--width=24"]
        made = f"results/kernels/digits/{name}/depth{depth}.h5"
        run("kernel", made, *network, f"--block={BLOCK}")
        run("spectrum", spectrum, *network, f"--kernel={made}")
        run("closest_pair", angles, *network)
    shutil.rmtree(folder / "results/kernels")
    for depth, output in zip((1, 2), TRAINING, strict=True):
        run("sgd", output, data, seeds, "--activation=relu", f"--depth={depth}", "--width=24",
            "--convention=authors", "--loss=cross_entropy", "--learning-rates=1e20,8,64",
            "--batch=40", "--epochs=3", "--stop-below=0", "--tf32=false")  # fmt: skip
    return folder


def check(folder: Path, kernels: int = PLACES, draw_seed: int = 0, **files) -> pd.DataFrame:
    """The table of a check, by default of all kernels and of all other files. files: by option."""
    files = {"dataset": DATASET, **KINDS} | files
    paths = {
        option: folder / names if isinstance(names, str) else [folder / name for name in names]
        for option, names in files.items()
    }
    output = folder / "checks/digits.csv"
    spot_check.main(
        Namespace(
            **paths, kernels=kernels, draw_seed=draw_seed, device="cpu", threads=1, output=output,
            record=None,
        )
    )  # fmt: skip
    torch.set_flush_denormal(False)  # set for the whole process
    return pd.read_csv(output)


@pytest.fixture
def copy(study, tmp_path) -> Path:
    """Of the study, to change."""
    return shutil.copytree(study, tmp_path / "study")


def test_what_the_steps_wrote_agrees(study):
    table = check(study)
    assert list(table.columns) == spot_check.COLUMNS
    assert table.agrees.all() and table.ratio.max() <= 1
    assert set(table.dataset) == {"digits"}
    counts = Counter(zip(table.what, table.number, strict=True))
    linear = PLACES * 2 // 4
    assert counts == {
        ("kernel", "lambda_max"): PLACES, ("kernel", "lambda_min"): PLACES,
        ("kernel", "nonzero_lambda_min"): linear,
        ("pair", "min_angle_deg"): len(ANGLES) * len(SEEDS), ("search", "min_angle_deg"): 1,
        ("epoch", "train_loss"): 1, ("epoch", "test_loss"): 1,
    }  # fmt: skip
    for row in table[table.what == "kernel"].itertuples():
        with h5py.File(study / row.file) as file:
            s, b = list(file.attrs["seeds"]).index(row.seed), int(row.block)
            assert row.kept == file[row.number][s, b]
            if row.number == "lambda_min":
                assert row.finding == row.kept_finding == file["verdict"].asstr()[s, b]
                assert row.unit == pytest.approx(2 * file["lambda_min_error"][s, b])
    (search,) = table[table.what == "search"].itertuples()
    assert search.file.endswith("depth1.h5")
    assert search.finding == search.kept_finding
    assert set(table[table.what == "epoch"].learning_rate) == {8.0}


def test_the_draw_is_repeatable_and_spread_over_the_files(study):
    few = {"angles": [], "training": []}
    first = check(study, kernels=len(SPECTRA), **few)
    assert set(first.file) == set(SPECTRA)
    shuffled = few | {"spectra": SPECTRA[::-1]}
    pd.testing.assert_frame_equal(first, check(study, kernels=len(SPECTRA), **shuffled))
    places = {
        tuple(check(study, len(SPECTRA), seed, **few)[["seed", "block"]].itertuples(index=False))
        for seed in range(3)
    }
    assert len(places) > 1
    assert len(set(check(study, kernels=2, **few).file)) == 2
    ten = check(study, kernels=10, **few).drop_duplicates(["file", "seed", "block"])
    assert sorted(Counter(ten.file).values()) == [2, 2, 3, 3]


def test_the_other_solver_agrees(study, monkeypatch):
    """As of kernels of more than 2,000 samples: by half, a Cholesky factor and Lanczos."""
    monkeypatch.setattr(spot_check, "FULL_SPECTRUM_UP_TO", BLOCK - 1)
    table = check(study, angles=[], training=[])
    assert table.agrees.all()
    assert (table.difference > 0).any()


def change(path: Path, name: str, new: Callable[[np.ndarray, h5py.File], object]) -> None:
    """Writes other values for an array of the file, without a seal."""
    with h5py.File(path, "r+") as file:
        file[name][...] = new(file[name][...], file)


@pytest.mark.parametrize(
    ("kind", "name", "new", "what"),
    [
        ("spectra", "lambda_min", lambda v, f: v + 3 * f["lambda_min_error"][:], "kernel"),
        ("spectra", "lambda_min", lambda v, f: v - 3 * f["lambda_min_error"][:], "kernel"),
        ("spectra", "lambda_min", lambda v, f: v * np.nan, "kernel"),
        ("spectra", "lambda_max", lambda v, f: v * (1 + 1e-6), "kernel"),
        ("angles", "closest_pair", lambda v, f: [[3, 5], [3, 6]], "pair"),
        ("angles", "closest_pair", lambda v, f: [[3, 1000]] * 2, "pair"),
        ("angles", "min_angle_deg", lambda v, f: v + 1e-7, "pair"),
        ("training", "train_loss", lambda v, f: v * 1.01, "epoch"),
        ("training", "test_loss", lambda v, f: v * 0.99, "epoch"),
    ],
)
def test_a_wrong_number_is_found(copy, kind, name, new, what, caplog):
    number = {"closest_pair": "min_angle_deg"}.get(name, name)
    for path in KINDS[kind]:
        change(copy / path, name, new)
    none = {other: [] for other in KINDS if other != kind}
    with caplog.at_level(logging.WARNING, "ntkcond"):
        table = check(copy, **none)
    wrong = table[~table.agrees]
    changed = table.what.isin([what, "search"]) & (table.number == number)
    assert len(wrong) and (table.agrees == ~changed).all()
    (warned,) = caplog.messages
    assert f"{len(wrong)} of {len(table)} numbers disagree" in warned
    assert all(path in warned for path in wrong.file)


def test_one_wrong_number_of_a_linear_network_is_named(copy, caplog):
    path = "results/spectra/digits/linear/depth2.h5"

    def moved(values, file):
        values[1, 2] += 3 * file["nonzero_lambda_min_error"][1, 2]
        return values

    change(copy / path, "nonzero_lambda_min", moved)
    table = check(copy)
    (wrong,) = table[~table.agrees].itertuples()
    assert (wrong.file, wrong.number) == (path, "nonzero_lambda_min")
    assert (wrong.seed, wrong.block) == (SEEDS[1], 2)
    assert wrong.ratio == pytest.approx(1.5, rel=0.01)
    assert path in caplog.text


@pytest.mark.parametrize(("verdict", "agrees"), [("unresolved", True), ("singular", False)])
def test_an_unresolved_verdict_contradicts_nothing(copy, verdict, agrees):
    path = SPECTRA[0]
    change(copy / path, "verdict", lambda v, f: np.full(v.shape, verdict, dtype=object))
    table = check(copy, spectra=[path], angles=[], training=[])
    verdicts = table[table.number == "lambda_min"]
    assert set(verdicts.kept_finding) == {verdict} and set(verdicts.finding) == {"resolved"}
    assert set(verdicts.agrees) == {agrees}
    assert table[table.number == "lambda_max"].agrees.all()


def test_a_search_may_find_any_of_pairs_that_cosines_do_not_distinguish(tmp_path, study, server):
    """Samples 1 and 2 are twice and thrice the first: all three gradients are parallel."""
    x = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    x[1:3] = [2 * x[0], 3 * x[0]]
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["x"] = x
    done, _ = server.run(
        tmp_path, "ntkcond.steps.closest_pair", "--dataset=mine.h5", "--output=angles.h5",
        "--seeds=1", "--activation=relu", "--depth=1", "--width=24", path=[ROOT / "src"],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = {"dataset": "mine.h5", "spectra": [], "angles": ["angles.h5"], "training": []}
    findings = set()
    for pair in ([0, 1], [0, 2], [1, 2]):
        change(tmp_path / "angles.h5", "closest_pair", lambda v, f, pair=pair: [pair])
        table = check(tmp_path, **files)
        assert table[table.what == "search"].agrees.all()
        findings |= set(table.finding.dropna())
    assert len(findings) == 1
    change(tmp_path / "angles.h5", "closest_pair", lambda v, f: [[0, 3]])
    assert not check(tmp_path, **files).agrees.any()


def test_large_blocks_are_drawn_only_where_nothing_else_is_kept(study, monkeypatch, caplog):
    few = {"angles": [], "training": [], "kernels": 4}
    with h5py.File(study / SPECTRA[0]) as file:
        assert file.attrs["block"] == BLOCK
    monkeypatch.setattr(spot_check, "LARGEST", BLOCK - 1)
    with caplog.at_level(logging.INFO, "ntkcond"):
        assert set(check(study, **few).file) == set(SPECTRA)
        assert "not drawn" not in caplog.text
        kept = [spot_check.read(study / path, "spectra", study / DATASET, (SAMPLES, 64))
                for path in SPECTRA]  # fmt: skip
        for one in kept[1:]:
            one.about.block = BLOCK - 1
        drawn = spot_check.kernels(
            Namespace(kernels=99, dataset=Path("digits.h5")), kept, spot_check.random.Random(0)
        )
    assert {place[0].path for place in drawn} == {one.path for one in kept[1:]}
    assert "digits: 1 of 4 spectrum files have blocks of more than" in caplog.text


def test_runs_that_diverged_are_left_out(copy):
    for path in TRAINING:
        change(copy / path, "diverged_epoch", lambda v, f: v * 0 + [2, 1, 0])
    table = check(copy, spectra=[], angles=[])
    assert set(table.learning_rate) == {64.0} and table.agrees.all()
    for path in TRAINING:
        change(copy / path, "diverged_epoch", lambda v, f: v * 0 + 1)
    with pytest.raises(UserError, match="nothing to check"):
        check(copy, spectra=[], angles=[])


def test_arrays_that_no_check_needs_may_be_gone(copy):
    for path, names in [(SPECTRA[0], ["eigenvalues", "kappa"]), (TRAINING[0], ["wall_s"])]:
        with h5py.File(copy / path, "r+") as file:
            for name in names:
                del file[name]
    assert check(copy, kernels=4).agrees.all()


def test_a_tolerance_of_losses_holds_for_every_depth():
    tolerances = [spot_check.loss_tolerance(depth) for depth in (0, 1, 2, 3, 6, 10, 12)]
    assert tolerances == [1e-4, 1e-4, 1e-3, 1e-3, 3e-3, 3e-3, 3e-3]


@pytest.mark.parametrize(
    ("kept", "now", "unit", "ratio", "agrees"),
    [
        (1.0, 1.5, 1.0, 0.5, True),
        (1.0, 3.0, 1.0, 2.0, False),
        (1.0, 1.0, 0.0, 0.0, True),
        (1.0, 2.0, 0.0, math.inf, False),
        (math.inf, math.inf, 1.0, 0.0, True),
        (math.nan, math.nan, 1.0, 0.0, True),
        (math.nan, 1.0, math.inf, math.nan, False),
        (1.0, 2.0, math.nan, 0.0, True),
    ],
)
def test_numbers_are_compared_in_units(kept, now, unit, ratio, agrees):
    row = spot_check.compared(kept, now, unit)
    assert row["ratio"] == pytest.approx(ratio, nan_ok=True)
    assert row["agrees"] is agrees


def test_files_that_are_no_kept_results_of_the_data_set_are_named(copy):
    def refused(words: str, **files) -> None:
        with pytest.raises(UserError, match=words) as error:
            check(copy, **files)
        assert "\n" not in str(error.value)

    refused("gone.h5: no such file", spectra=["results/spectra/digits/relu/gone.h5"])
    refused("depth1.h5: has no lambda_max, .*: no file for --spectra", spectra=ANGLES[:1])
    refused("others.h5: has no min_angle_deg", angles=["results/datasets/others.h5"])
    refused("depth0.h5: is of digits, not of others", dataset="results/datasets/others.h5")
    with h5py.File(copy / DATASET, "r+") as file:
        x = file["x"][:-1]
        del file["x"]
        file["x"] = x
    refused("is of 97 samples of 64 features, not of the 96 of 64 of .*digits.h5")
    with h5py.File(copy / ANGLES[0], "r+") as file:
        file.attrs["activation"] = "unheard_of"
    shutil.copy2(copy / "results/datasets/others.h5", copy / DATASET)
    refused("its network is unknown here", spectra=[])
    damaged = bytearray((copy / SPECTRA[0]).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (copy / SPECTRA[0]).write_bytes(damaged)
    refused("depth1.h5: damaged")
    refused("nothing to check", spectra=[], angles=[], training=[])


def test_the_command_writes_a_table_and_its_record(copy, server):
    words = [f"--dataset={DATASET}", "--kernels=5", "--draw-seed=3", "--threads=1"]
    words += ["--spectra", *SPECTRA, "--angles", *ANGLES, "--training", *TRAINING]
    words += ["--output=checks/digits.csv", "--log=checks/log"]

    def run():
        return server.run(copy, "ntkcond.steps.spot_check", *words, path=[ROOT / "src"])[0]

    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    output = copy / "checks/digits.csv"
    assert pd.read_csv(output).agrees.all()
    assert "the largest ratio is" in (copy / "checks/log").read_text("utf-8")
    record = read(output)
    assert record["step"] == "spot_check"
    assert record["settings"] == {"kernels": 5, "draw_seed": 3}
    assert {"dataset", *KINDS} == record["inputs"].keys()
    assert list(record["inputs"]["spectra"]) == SPECTRA
    assert {"ntk.spectrum", "steps.spectra", "training.sgd"} <= record["code"].keys()
    assert list(files_of(output)) == ["digits.csv"]
    assert json.loads((copy / "checks/provenance/digits.json").read_text("utf-8"))["files"]

    change(copy / ANGLES[1], "min_angle_deg", lambda v, f: v + 1e-3)
    assert is_whole(copy / ANGLES[1])
    done = run()
    assert done.returncode == 0
    assert f"disagree with those kept, the largest ratio is 1e+06: {ANGLES[1]}" in done.stderr
    assert not pd.read_csv(output).agrees.all()
    (copy / SPECTRA[0]).unlink()
    done = run()
    assert done.returncode == 1
    assert done.stderr.startswith("ntkcond: ") and done.stderr.count("\n") == 1


def test_a_data_set_with_a_seed_of_its_own_can_be_checked(copy, server):
    """Inputs must have been made with the settings of the step, where both have one of a name."""
    words = ["--dataset=results/datasets/others.h5", "--output=angles.h5", "--seeds=1"]
    network = ["--activation=relu", "--depth=1", "--width=24"]
    path = [ROOT / "src"]
    done, _ = server.run(copy, "ntkcond.steps.closest_pair", *words, *network, path=path)
    assert done.returncode == 0, done.stderr
    words = [words[0], "--angles=angles.h5", "--draw-seed=5", "--output=checks/others.csv"]
    done, _ = server.run(copy, "ntkcond.steps.spot_check", *words, path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert pd.read_csv(copy / "checks/others.csv").agrees.all()
