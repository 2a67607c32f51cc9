"""The workflow as its users run it: Snakemake on a small config, end to end, and what it reruns."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from http_server import served
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle, infinite_width_ntk
from workflow import (
    KERNELS,
    MADE,
    SMALL,
    environment,
    planned,
    snakemake,
    write_config,
)


def test_every_artefact_is_made(finished):
    for name, spec in MADE.items():
        for suffix in spec.files:
            assert (finished / f"results/{name}{suffix}").stat().st_size > 0
    table = pd.read_csv(finished / "results/fig2.csv")
    assert list(table.columns[:4]) == ["dataset", "activation", "depth", "width"]
    for column in (
        "dataset", "activation", "depth", "n", "samples", "seeds", "blocks", "kappa_mean",
        "kappa_std", "kappa_median", "kappa_verdict", "min_angle_deg_mean", "min_angle_deg_low",
    ):  # fmt: skip
        assert column in table
    assert len(table) == KERNELS
    synthetic = table[table.dataset == "synthetic"]
    singular = (synthetic.activation == "linear") | (synthetic.depth == 0)
    assert np.isinf(synthetic.kappa_mean[singular]).all()
    assert (synthetic.kappa_verdict[~singular] == "resolved").all()
    assert (table[table.dataset == "digits"][["n", "samples", "seeds", "blocks"]]
            == [48, 97, 2, 2]).all(axis=None)  # fmt: skip


def test_the_training_runs_are_all_in_the_table_and_the_best_in_the_figure(finished):
    runs = pd.read_csv(finished / "results/training.csv")
    assert len(runs) == 2 * 2 * 3 * 3  # depths, seeds, learning rates, epochs
    diverged = runs.learning_rate == 1e20
    assert runs.train_loss[diverged].isna().all()
    assert (runs.diverged_epoch[diverged] == 1).all()
    assert runs[~diverged].train_loss.notna().all()
    assert runs[~diverged].diverged_epoch.isna().all()
    assert (runs.wall_s[~diverged] > 0).all()
    last = runs[(runs.epoch == 3) & ~diverged & (runs.depth == 2)]
    best = last.groupby("learning_rate").train_loss.mean()
    figure = pd.read_csv(finished / "results/fig3.csv")
    drawn = figure[figure.depth == 2]
    assert (drawn.learning_rate == best.idxmin()).all()
    assert drawn.train_loss_mean.iloc[-1] == pytest.approx(best.min())
    accuracy = pd.read_csv(finished / "results/table_generalization.csv").set_index("depth")
    shown = last[last.learning_rate == best.idxmin()].test_accuracy.mean()
    assert accuracy.test_accuracy_percent_mean[2] == pytest.approx(100 * shown)
    for name in ("table_generalization", "table_epochs"):
        assert "## digits" in (finished / f"results/{name}.md").read_text("utf-8")
    with h5py.File(finished / "results/training/digits/depth2/seed1.h5") as file:
        assert file["train_loss"].shape == (1, 3, 3)
        assert file["labels"][:].tolist() == list(range(10))
        assert file.attrs["flops"] > 0 and file.attrs["wall_s"] > 0
        settings = json.loads(file.attrs["provenance"])["settings"]
        assert settings["learning_rates"] == [8, 64, 1e20]


def test_kappa_of_the_table_is_that_of_the_kernel_file(finished):
    rows = pd.read_csv(finished / "results/conditioning.csv")
    rows = rows[(rows.dataset == "digits") & (rows.activation == "relu") & (rows.depth == 2)]
    with h5py.File(finished / "results/kernels/digits/relu/depth2.h5") as file:
        kernels = file["kernel"][:].reshape(-1, 48, 48)
        assert file["kernel"].shape == (2, 2, 48, 48)
    assert len(rows) == 4
    assert rows.kappa.to_numpy() == pytest.approx(np.linalg.cond(kernels), rel=1e-6)


def test_angle_of_the_table_is_that_of_the_closest_pair(finished):
    """For L = 0, the angle between the inputs themselves."""
    with h5py.File(finished / "results/datasets/digits.h5") as file:
        x = file["x"][:].astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1)[:, None]
    cosine = unit @ unit.T - 2 * np.eye(len(x))
    rows = pd.read_csv(finished / "results/angles.csv")
    row = rows[(rows.dataset == "digits") & (rows.depth == 0)].iloc[0]
    assert row.min_angle_deg == pytest.approx(np.degrees(np.arccos(cosine.max())), rel=1e-9)
    assert cosine[row["first"], row["second"]] == cosine.max()


def test_figure_2_has_infinite_width_beside_the_same_samples(finished):
    figure = pd.read_csv(finished / "results/fig2.csv").set_index(
        ["dataset", "activation", "depth"]
    )
    network = MLP(ACTIVATIONS["relu"], depth=2, width=math.inf)
    for dataset, n in (("synthetic", 20), ("digits", 48)):
        with h5py.File(finished / f"results/datasets/{dataset}.h5") as file:
            x = file["x"][:].astype(np.float64)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        closest = np.sort((unit @ unit.T)[~np.eye(len(x), dtype=bool)])[-1]
        row = figure.loc[dataset, "relu", 2]
        phi = np.degrees(gradient_angle(np.arccos(closest), network))
        assert row.infinite_min_angle_deg == pytest.approx(phi, rel=1e-6)
        kappas = [
            np.linalg.cond(infinite_width_ntk(x[start : start + n], network))
            for start in range(0, len(x) - n + 1, n)
        ]
        assert row.infinite_kappa_mean == pytest.approx(np.mean(kappas), rel=1e-6)


def test_trainable_first_is_in_every_step(project):
    """The NTK of all layers is that of the first and a positive semi-definite rest."""
    targets = [f"results/{kind}/digits/relu/depth2.h5" for kind in ("kernels", "spectra", "angles")]
    with h5py.File(project / targets[1]) as file:
        largest, smallest = file["lambda_max"][:], file["lambda_min"][:]
    snakemake(project, *targets, "--config", "trainable=first")
    with h5py.File(project / targets[1]) as file:
        assert (file["lambda_max"][:] < largest).all()
        assert (file["lambda_min"][:] < smallest).all()
    for target in targets:
        with h5py.File(project / target) as file:
            assert file.attrs["trainable"] == "first"


def test_settings_of_the_command_line_have_their_types(project):
    """As the README has them."""
    planned_again = planned(project, "--config", "depths=[0, 1, 2]", "keep_kernels=false")
    assert planned_again["kernel"] == KERNELS // 2
    assert planned(project, "--config", "width=48")["kernel"] == KERNELS
    large = "datasets={synthetic: {samples: 2001, block: all}}"  # which has no kernel's file
    jobs = planned(project, "results/conditioning.csv", "--config", large, "keep_kernels=false")
    assert jobs == {"dataset": 1, "spectrum": 4, "conditioning": 1}


def test_no_step_takes_a_kernel_of_another_depth(project):
    kernel = project / "results/kernels/digits/relu/depth2.h5"
    shutil.copy(kernel.with_name("depth0.h5"), kernel)
    spectrum = "results/spectra/digits/relu/depth2.h5"
    (project / spectrum).unlink()
    done = snakemake(project, spectrum, check=False)
    assert done.returncode != 0
    assert "depth2.h5: was made with depth 0, not 2. Delete it" in done.stderr


def test_no_step_takes_an_input_that_was_made_with_other_settings(project):
    """Each by hand; also an artefact, which has no settings of the spectra that it takes."""
    kernel, spectrum = (
        Path(f"results/{kind}/digits/relu/depth2.h5") for kind in ("kernels", "spectra")
    )
    shutil.copy(project / spectrum, project / spectrum.with_name("depth3.h5"))
    words = (
        f"spectrum --dataset results/datasets/digits.h5 --activation relu --depth 2 --seeds 1,32"
        f" --width 25 --block 48 --kernel {kernel}",
        f"table --artefact conditioning --input spectrum {spectrum.with_name('depth3.h5')}",
    )
    for step, said in zip(words, ("width 24, not 25", "depth 2, not 3"), strict=True):
        by_hand = subprocess.run(
            [sys.executable, "-m", *f"ntkcond.steps.{step} --output results/other.h5".split()],
            cwd=project, env=environment(project), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert by_hand.returncode == 1
        assert f".h5: was made with {said}. Delete it, and snakemake makes the right one" in (
            by_hand.stderr
        )
        assert not (project / "results/other.h5").exists()


def test_kernels_that_are_not_kept_are_gone_once_used(project):
    shutil.rmtree(project / "results")
    shutil.rmtree(project / ".snakemake")
    write_config(project, {**SMALL, "depths": [1], "activations": ["relu"], "keep_kernels": False})
    snakemake(project, "results/conditioning.csv")
    assert not list((project / "results/kernels").rglob("*.h5"))
    assert len(pd.read_csv(project / "results/conditioning.csv")) == 2 * 2 + 2 * 3
    assert planned(project, "results/conditioning.csv") == {}
    with (project / "src/ntkcond/ntk/empirical.py").open("a", encoding="utf-8") as code:
        code.write("\n_CHANGED = True\n")
    again = planned(project, "results/conditioning.csv")
    assert again == {"kernel": 2, "spectrum": 2, "conditioning": 1}


def test_two_configs_live_side_by_side(project):
    """snakemake --directory: another config's results, with the raw data of the first."""
    write_config(project, {**SMALL, "width": 8, "depths": [1]})
    jobs = planned(project, "--directory", "runs/narrow", "results/fig2.pdf")
    assert jobs["kernel"] == 4
    write_config(project, SMALL)
    assert planned(project) == {}


def test_a_list_of_sizes_makes_a_data_set_of_each(project):
    """Those of NAME itself are here already, and the smaller set is the beginning of the larger."""
    config = {**SMALL, "figures": {"fig2": ["digits"]}, "datasets": {**SMALL["datasets"]}}
    config["datasets"]["digits"] = {**SMALL["datasets"]["digits"], "samples": [50, "all"]}
    write_config(project, config)
    jobs = planned(project, "results/conditioning.csv")
    assert jobs == {"dataset": 1, "kernel": 4, "spectrum": 4, "conditioning": 1}
    snakemake(project, "results/conditioning.csv")
    table = pd.read_csv(project / "results/conditioning.csv")
    assert list(table.dataset.unique()) == ["digits_50", "digits"]
    assert list(table.groupby("dataset").samples.unique().explode()) == [97, 50]
    same = ["activation", "depth", "seed"]
    small, large = (
        table[(table.dataset == name) & (table.block == 0)].set_index(same).kappa
        for name in ("digits_50", "digits")
    )
    assert len(small) == 2 * 2 * 2 and small.equals(large)


def test_own_samples_need_only_a_file(project):
    x = np.random.default_rng(0).standard_normal((40, 6))
    np.savez(project / "mine.npz", x=x)
    config = {**SMALL, "depths": [1], "figures": {"fig2": ["mine"]}}
    config["datasets"] = {"mine": {"file": "mine.npz", "block": 5}}
    write_config(project, config)
    snakemake(project, "results/fig2.pdf")
    table = pd.read_csv(project / "results/fig2.csv")
    assert set(table.dataset) == {"mine"}
    assert (table.blocks == 8).all()
    np.savez(project / "mine.npz", x=x + 1)
    os.utime(project / "mine.npz", (0, 0))  # a copy may keep an old date
    assert planned(project, "results/fig2.pdf")["dataset"] == 1


def test_own_samples_with_labels_can_be_trained_on(project):
    """Labels that are not 0..C−1, and no test split."""
    rng = np.random.default_rng(0)
    y = rng.choice([-3, 10], 50)
    np.savez(project / "mine.npz", x=rng.standard_normal((50, 6)) + y[:, None], y=y)
    config = {**SMALL, "figures": {"fig3": ["mine"]}}
    config["datasets"] = {"mine": {"file": "mine.npz", "training": {"learning_rates": [0.01]}}}
    config["training"] = {"depths": [0, 1], "epochs": 30, "batch": 20}
    write_config(project, config)
    snakemake(project, "results/fig3.pdf", "results/table_generalization.md")
    drawn = pd.read_csv(project / "results/fig3.csv")
    assert (drawn.at_edge == "only").all()
    assert (drawn[drawn.epoch == 30].train_accuracy_mean > 0.9).all()
    assert "| 1 | 0.01 |" in (project / "results/table_generalization.md").read_text("utf-8")


REFUSED = {
    "unknown key": ({"widht": 3}, ["widht: no such setting", "'width'"]),
    "misspelt data set": ({"figures": {"fig2": ["digit"]}}, ["'digit' is not", "'digits'"]),
    "negative depth": ({"depths": [-1]}, ["depths[0]: -1 is not allowed"]),
    "width 0": ({"width": 0}, ["width: 0 is not allowed"]),
    "block too large": ({"datasets": {"digits": {"block": 500}}}, ["block: 500", "97 samples"]),
    "too large for the disk": (
        {"datasets": {"synthetic": {"samples": 1_000_000, "block": "all"}}},
        [".h5: needs 8.0 TB of disk", "lower block or samples in the config"],
    ),
    "too large for memory": (
        {"width": 1_000_000},
        ["at depth 2, width 1000000", "TB", "or width in the config"],
    ),
    "no such file": (
        {"datasets": {"mine": {"file": "absent.npy"}}, "figures": {"fig2": ["mine"]}},
        ["datasets.mine.file", "absent.npy: no such file"],
    ),
    "NaN": (
        {"datasets": {"mine": {"file": "nan.npy"}}, "figures": {"fig2": ["mine"]}},
        ["nan.npy", "NaN", "row 1, column 0"],
    ),
    "block too large for own samples": (
        {"datasets": {"mine": {"file": "few.npy"}}, "figures": {"fig2": ["mine"]}},
        ["block: 512 is larger than the 3 samples of mine"],
    ),
    "no such data_dir": (
        {"data_dir": "absent", "datasets": {"mnist": {}}, "figures": {"fig2": ["mnist"]}},
        ["data_dir", "absent: no such folder"],
    ),
    "unreachable download": (
        {"datasets": {"mnist": {"mirrors": ["http://127.0.0.1:9/"]}},
         "figures": {"fig2": ["mnist"]}},
        ["the download failed", "127.0.0.1:9", "data_dir"],
    ),
    "no labels": (
        {"datasets": {"mine": {"file": "few.npy"}}, "figures": {"fig3": ["mine"]}},
        ["mine: no labels to learn", "an array y", "figures.fig3"],
    ),
    "no GPU": ({"device": "cuda"}, ["device: cuda was asked for", "device: cpu"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_users_mistake_is_explained_without_a_traceback(project, case):
    import torch

    if case == "no GPU" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    np.save(project / "few.npy", np.eye(3))
    np.save(project / "nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    change, expected = REFUSED[case]
    config = {**SMALL, **change}
    if "datasets" in change:
        config["datasets"] = {
            name: {**SMALL["datasets"].get(name, {}), **change["datasets"].get(name, {})}
            for name in {**SMALL["datasets"], **change["datasets"]}
        }
    if case == "no GPU":
        shutil.rmtree(project / "results/kernels")
        shutil.rmtree(project / "results/spectra")
        config["figures"] = {"fig2": ["digits"]}
    write_config(project, config)
    figure = next(iter(change.get("figures", {"fig2": []})))
    done = snakemake(project, f"results/{figure}.pdf", check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in output
    for part in expected:
        assert part in output
    assert not list(project.rglob("*.tmp"))


@pytest.fixture
def server_of(real_data):
    """The real files, as torchvision's mirrors have them."""
    with served(real_data / "MNIST/raw") as address:
        yield f"{address}/"


def test_mnist_is_downloaded_once_and_originals_are_never_written_to(project, server_of):
    config = {**SMALL, "data_dir": "raw data"}
    config["datasets"] = {"mnist": {"samples": 100, "block": 20, "mirrors": [server_of]}}
    config["figures"] = {"fig2": ["mnist"]}
    write_config(project, config)
    (project / "raw data").mkdir()
    target = "results/datasets/mnist.h5"
    assert planned(project, target) == {"download": 4, "dataset": 1}
    snakemake(project, target)
    raw = sorted((project / "raw data").rglob("*"))
    files = [path for path in raw if path.is_file()]
    assert len(files) == 4
    with h5py.File(project / target) as file:
        assert file["x"].shape == (100, 784)
        assert (file["x"][:].min(), file["x"][:].max()) == (-1, 1)
        assert file["x_test"].shape == (10_000, 784)

    config["datasets"]["mnist"]["mirrors"] = ["http://127.0.0.1:9/"]
    write_config(project, config)
    assert planned(project, target) == {}  # which server it came from does not matter

    before = [path.stat() for path in files]
    (project / target).unlink()
    snakemake(project, target)
    assert planned(project, target) == {}
    assert [path.stat() for path in files] == before

    content = files[0].read_bytes()
    files[0].write_bytes(content[:-10])
    done = snakemake(project, target, check=False)
    assert f"{files[0].name}: damaged" in done.stdout + done.stderr
    assert files[0].read_bytes() == content[:-10]
