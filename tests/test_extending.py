"""docs/extending.md to the letter: each recipe in a copy of the project, and the files it
touches."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from scipy import special

from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.settings import own_activations
from workflow import ROOT, SMALL, planned, snakemake, write_config

BLOCK = re.compile(
    r"^(New file|In) `([^`]+)`(?:, (below|instead of) `([^`]+)`)?:\n\n```\w+\n(.*?)```$",
    re.M | re.S,
)


PAGE = (ROOT / "docs/extending.md").read_text("utf-8")


def follow(project: Path, heading: str) -> set[str]:
    """Does what the section of this heading says; the files that it touched."""
    section = PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    touched = set()
    for kind, name, where, anchor, text in BLOCK.findall(section):
        path = project / name
        if kind == "New file":
            assert not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        else:
            lines = path.read_text("utf-8").splitlines(keepends=True)
            (position,) = (i for i, line in enumerate(lines) if line.startswith(anchor))
            lines[position + (where == "below") : position + 1] = [text]
            path.write_text("".join(lines), "utf-8")
        touched.add(name)
    assert touched
    return touched


def test_a_figure(project):
    assert len(follow(project, "A figure")) <= 4
    assert planned(project, "all").items() > {"fig_advantage": 1, "draw_fig_advantage": 1}.items()
    figure = "results/fig_advantage.pdf"
    snakemake(project, figure, "results/fig_advantage.png")
    numbers = pd.read_csv(project / "results/fig_advantage.csv")
    kappa = pd.read_csv(project / "results/conditioning.csv")
    kappa = kappa[(kappa.dataset == "digits") & (kappa.depth == 2)]
    medians = kappa.groupby("activation").kappa.median()
    ratio = numbers[(numbers.dataset == "digits") & (numbers.depth == 2)].ratio.iloc[0]
    assert ratio == medians.linear / medians.relu
    for suffix in ("pdf", "png"):
        assert (project / f"results/fig_advantage.{suffix}").stat().st_size > 0
    snakemake(project, figure, "--report", "report.html")
    assert "Advantage of ReLU" in (project / "report.html").read_text("utf-8")


def test_a_data_set(project):
    assert len(follow(project, "A data set")) <= 2
    assert planned(project) == {}
    write_config(project, {**SMALL, "depths": [1], "figures": {"fig2": ["wine"]}})
    snakemake(project, "results/conditioning.csv")
    with h5py.File(project / "results/datasets/wine.h5") as file:
        assert file["x"].shape == (160, 13)
    assert set(pd.read_csv(project / "results/conditioning.csv").dataset) == {"wine"}


def test_an_activation(project):
    """Its slope is autograd's; an edit of its file re-runs its jobs and no others."""
    assert follow(project, "An activation of your own") == {"silu.py"}
    z = torch.linspace(-9, 9, 1001, dtype=torch.float64, requires_grad=True)
    value, silu = torch.nn.functional.silu(z), own_activations.of_file(project / "silu.py")
    (slope,) = torch.autograd.grad(value.sum(), z)
    for ours, autograd in ((silu.value(z), value), (silu.slope(z), slope)):
        np.testing.assert_allclose(ours.detach(), autograd.detach(), rtol=1e-13, atol=1e-15)
    own = {"silu": "silu.py"}
    write_config(project, {**SMALL, "own_activations": own, "activations": ["relu", "silu"]})
    target, other = (f"results/kernels/digits_unit/{name}/depth1.h5" for name in ("silu", "relu"))
    snakemake(project, target, other)
    assert planned(project, target, other) == {}
    text = (project / "silu.py").read_text("utf-8")
    (project / "silu.py").write_text(f"{text}# edited\n", "utf-8")
    assert planned(project, target, other) == {"kernel": 1}
    snakemake(project, target)
    with h5py.File(project / target) as file:
        assert file.attrs["activation"] == "silu"
        assert np.linalg.eigvalsh(file["kernel"][0, 0]).min() > 0
    sweeps = "results/sweeps/activations/digits_unit/silu.h5"
    assert planned(project, "results/fig_activations_ntk.pdf", sweeps)["sweep"] == 7


def test_a_setting_of_the_network(project):
    assert len(follow(project, "A setting of the network")) <= 3
    kernel = "results/kernels/digits/relu/depth2.h5"
    with h5py.File(project / kernel) as file:
        before = file["kernel"][:]
    config = yaml.safe_load((project / "small.yaml").read_text("utf-8"))
    config["datasets"]["digits"]["weight_scale"] = 2
    write_config(project, config)
    snakemake(project, kernel, "results/spectra/digits/relu/depth2.h5")
    with h5py.File(project / kernel) as file:
        after = file["kernel"][:]
        assert file.attrs["weight_scale"] == 2
    # ∂f/∂Wˡ has the two other matrices as factors, and K their squares
    np.testing.assert_allclose(after, 2**4 * before, rtol=1e-12)


def test_a_computing_step(project):
    shutil.copytree(ROOT / "docs/examples/step", project / "docs/examples/step")
    (project / "tests/ntk").mkdir(parents=True)
    section = PAGE.partition("\n## A computing step")[2]
    commands = re.search(r"\n\n((?:    .+\n)+)", section)[1]
    subprocess.run(["bash", "-ec", commands], cwd=project, check=True)
    (test,) = re.findall(r"tests/ntk/test_\w+\.py", section)
    assert planned(project) == {}
    norms = "results/gradient_norms/digits/relu/depth2.h5"
    assert planned(project, norms) == {"gradient_norm": 1}
    snakemake(project, norms)
    with (
        h5py.File(project / norms) as file,
        h5py.File(project / "results/kernels/digits/relu/depth2.h5") as kernels,
    ):
        kernel = kernels["kernel"][:]  # (seeds, blocks, n, n)
        diagonal = np.diagonal(kernel, axis1=2, axis2=3).reshape(len(kernel), -1)
        squares = file["gradient_norm"][:, : diagonal.shape[1]] ** 2
        np.testing.assert_allclose(squares, diagonal, rtol=1e-12)
    assert planned(project, norms) == {}
    assert planned(project, norms, "--config", "width=25") == {"gradient_norm": 1}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    source = {**os.environ, "PYTHONPATH": str(project / "src")}
    subprocess.run([*command, "--confcutdir", "tests/ntk"], cwd=project, env=source, check=True)


def _silu(factor):
    sigmoid = special.expit
    return Activation(
        "SiLU", lambda z: z * sigmoid(z), lambda z: factor * sigmoid(z) * (1 + z * sigmoid(-z))
    )


def _hard_tanh(kinks):
    return Activation("", lambda z: np.clip(z, -1, 1), lambda z: 1.0 * (abs(z) < 1), kinks=kinks)


SQUARED_ABOVE_1 = Activation("", lambda z: (z - 1).clip(0) ** 2, lambda z: 2 * (z - 1).clip(0))


def test_wrong_derivatives_and_kinks_without_a_name_are_found():
    """A certificate takes both as right."""
    right = [*ACTIVATIONS.values(), _silu(1), _hard_tanh((-1, 1))]
    fast = Activation("", lambda z: np.sin(20 * z), lambda z: 20 * np.cos(20 * z))
    assert [own_activations.wrong_at(one) for one in [*right, fast]] == [None] * (len(right) + 1)
    assert own_activations.wrong_at(_silu(1 + 1e-5)) is not None
    assert own_activations.wrong_at(_hard_tanh((0,))) == pytest.approx(-1, abs=0.01)
    assert own_activations.wrong_at(SQUARED_ABOVE_1) == pytest.approx(1, abs=0.01)
