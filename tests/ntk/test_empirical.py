"""The empirical NTK, held against autograd, against the closed form at infinite width, and against
what the formulas promise."""

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.datasets.samples import choose
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.ntk import empirical
from ntkcond.ntk.closest_pair import closest_gradients
from ntkcond.ntk.empirical import WIDTH, empirical_ntk, ntk_tiles, tile_count, tile_size
from ntkcond.run.errors import UserError
from ntkcond.settings.memory import FLOAT64
from ntkcond.steps import kernel
from small_networks import (
    autograd_ntk,
    drawn,
    gradients_of,
    inputs,
    weights_of,
    with_weights,
)  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize(("n", "features", "width", "tile"), [(13, 11, 17, 5), (2, 1, 1, 256)])
def test_ntk_is_that_of_autograd(activation, depth, n, features, width, tile, device):
    """Also of the first layer alone, and of linear networks, which have a route of their own."""
    own = drawn(3, depth, width, features)
    x, weights = inputs(n, features, device), [put(w, device) for w in own]
    for trainable in ("all", "first"):
        expected = autograd_ntk(inputs(n, features), own, activation, trainable)
        # entries of very different size: what rounding may do is set by the largest
        bound = {"rtol": 1e-12, "atol": 1e-13 * np.abs(expected).max()}
        shortest = empirical_ntk(gradients_of(weights, activation, trainable)(x), tile=tile)
        shortest = to_numpy(shortest)
        np.testing.assert_allclose(shortest, expected, **bound)
        assert np.array_equal(shortest, shortest.T)
        if trainable == "all":
            layers = with_weights(weights, activation).layer_gradients(x, weights)
            kernel = to_numpy(empirical_ntk(layers, tile=tile))
            np.testing.assert_allclose(kernel, expected, **bound)


@pytest.mark.parametrize(("n", "tile"), [(10, 4), (50, 1), (50, 2), (7, 7), (7, 100)])
def test_tiles_cover_the_lower_triangle_once(n, tile):
    gradients = gradients_of(weights_of(0, 1, 4, 3), "relu")(inputs(n, 3))
    seen = np.zeros((n, n), int)
    tiles = list(ntk_tiles(gradients, tile))
    for rows, columns, _ in tiles:
        seen[rows, columns] += 1
        assert columns.stop == rows.stop or columns.stop <= rows.start
    assert len(tiles) == tile_count(n, tile)
    assert (seen[np.tril_indices(n)] == 1).all()
    assert (seen <= 1).all()


@pytest.mark.parametrize(("depth", "n"), [(0, 5), (3, 200), (2, 701)])
def test_threads_share_panels_of_samples(depth, n, monkeypatch):
    weights, x = weights_of(1, depth, 16, 6), inputs(n, 6)
    gradients = gradients_of(weights, "relu")
    expected = to_numpy(empirical_ntk(gradients(x)))
    monkeypatch.setattr(empirical, "threads_for", lambda _: 3)
    monkeypatch.setattr(empirical, "SHARED_FROM", 0)
    monkeypatch.setattr(empirical, "WIDEST_PANEL", 100)
    monkeypatch.setattr(empirical, "tile_size", lambda _: 48)
    monkeypatch.setattr(empirical, "PART", 150)
    halves = [
        empirical.empirical_ntk_half(gradients(x)),
        empirical.empirical_ntk_half(gradients, x),
    ]
    for shared in (empirical_ntk(gradients, x), empirical_ntk(gradients(x))):
        np.testing.assert_allclose(shared, expected, rtol=1e-12, atol=1e-14 * expected.max())
        assert np.array_equal(shared, shared.T)
    v = np.arange(1.0, n + 1)
    for half in halves:
        np.testing.assert_allclose(half.product(v), expected @ v, rtol=1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_kernel_has_the_type_of_its_factors(activation, device):
    kernels = {}
    for dtype in (np.float64, np.float32):
        weights = [put(w.astype(dtype), device) for w in drawn(1, 3, 16, 6)]
        x = put(inputs(30, 6).astype(dtype), device)
        kernels[dtype] = to_numpy(empirical_ntk(gradients_of(weights, activation)(x)))
        assert kernels[dtype].dtype == dtype
    exact = kernels[np.float64]
    np.testing.assert_allclose(kernels[np.float32], exact, rtol=1e-4, atol=1e-5 * exact.max())


def test_predicted_memory_of_tiles_is_that_of_their_buffers():
    tile = tile_size(np.empty(0))
    assert 3 * FLOAT64 * tile * WIDTH * tile == kernel.TILES


@pytest.mark.cuda
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_ntk_on_cuda_is_that_on_the_cpu(activation):
    kernels = []
    for device in ("cpu", torch.device("cuda")):
        gradients = gradients_of(weights_of(0, 4, 256, 20, device), activation)
        kernels.append(to_numpy(empirical_ntk(gradients(inputs(300, 20, device)))))
    np.testing.assert_allclose(*kernels, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    ("depth", "kappa", "spread", "angle", "angle_spread"),
    [(0, 3.7e8, 2.5e8, 7.5, 2.0), (1, 5.3e4, 0.8e4, 13.8, 4.0), (3, 1.3e4, 0.3e4, 20.0, 5.0)],
)
def test_real_mnist_has_the_values_measured_independently(
    real_mnist, depth, kappa, spread, angle, angle_spread
):
    """κ and min φ of blocks of 512 images in [−1, 1], measured with other code (mean ± standard
    deviation over 6 random blocks and two seeds)."""
    x = choose(real_mnist, 4 * 512, seed=0, scale=(-1, 1)).x.astype(np.float64)
    kappas, angles = [], []
    for seed in (1, 32):
        gradients = gradients_of(weights_of(seed, depth, 512, 784), "relu")
        for block in np.split(x, 4):
            factors = gradients(block)
            kappas.append(np.linalg.cond(empirical_ntk(factors)))
            angles.append(closest_gradients(factors).angle_deg)
    assert np.mean(kappas) == pytest.approx(kappa, abs=spread)
    assert np.mean(angles) == pytest.approx(angle, abs=angle_spread)


def test_a_kernel_beyond_float64_is_named_and_not_written(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["x"] = inputs(5, 3).astype(np.float32)
    arguments = SimpleNamespace(
        dataset=tmp_path / "data.h5", output=tmp_path / "kernel.h5", activation="relu2", depth=14,
        width=4, seeds=range(5), block=5, trainable="all", device="cpu", threads=1, record=None,
    )  # fmt: skip
    with pytest.raises(UserError, match="the NTK of data at depth 14 is beyond the range of"):
        kernel.main(arguments)
    assert not (tmp_path / "kernel.h5").exists()


def test_memory_stays_far_below_the_kernel(tmp_path):
    """The kernel goes to its file tile by tile: the 151 MB of its half are never in memory."""
    path = tmp_path / "data.h5"
    x = np.random.default_rng(0).standard_normal((6000, 4)).astype(np.float32)
    with h5py.File(path, "w") as file:
        file["x"] = x
    script = """
        import resource, sys
        from pathlib import Path
        from types import SimpleNamespace
        from ntkcond.steps import kernel
        peaks = []
        for block in (300, 6000):
            kernel.main(SimpleNamespace(
                dataset=Path(sys.argv[1]), output=Path(sys.argv[2]), activation="relu", depth=2,
                width=8, seeds=[1], block=block, trainable="all", device="cpu", threads=2,
                record=None))
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
        print(peaks[1] - peaks[0])
    """
    command = [sys.executable, "-c", textwrap.dedent(script), path, tmp_path / "kernel.h5"]
    more = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (tmp_path / "kernel.h5").stat().st_size > 151_000_000
    assert more < 100  # MB
