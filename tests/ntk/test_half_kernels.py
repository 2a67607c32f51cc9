"""Kernels of more than FULL_SPECTRUM_UP_TO samples, by half: from factors, bands, files."""

import weakref
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.arrays.half import PANEL, Half
from ntkcond.artefacts import conditioning
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO
from ntkcond.ntk.empirical import empirical_ntk, empirical_ntk_half, ntk_between, ntk_product
from ntkcond.ntk.infinite_width import infinite_width_ntk, infinite_width_ntk_half
from ntkcond.ntk.measure import measure
from ntkcond.run.errors import UserError
from ntkcond.steps import kernel as kernel_step
from ntkcond.steps import spectrum as spectrum_step
from small_networks import inputs

FEATURES = 12


def whole(half: Half) -> np.ndarray:
    """(n, n), symmetric."""
    matrix = np.zeros((half.n, half.n))
    for start, panel in zip(range(0, half.n, PANEL), half.panels, strict=True):
        matrix[start:, start : start + PANEL] = to_numpy(panel)
    lower = np.tril(matrix)
    return lower + np.tril(lower, -1).T


def measured(folder: Path, x: np.ndarray, block: int | str, more: str = "") -> dict:
    """The kernel's file, of a network of depth 2 and width 64, unless there is one, and what its
    spectrum's has; that of a kernel without a file must agree with it."""
    common = f"--dataset={folder}/mine.h5 --activation=relu --depth=2 --width=64 --seeds=3"
    common += f" --block={block} "
    if not (folder / "kernel.h5").exists():
        with h5py.File(folder / "mine.h5", "w") as file:
            file["x"] = x.astype(np.float32)
        run(kernel_step, f"{common} --output={folder}/kernel.h5")
    run(spectrum_step, f"{common} --output={folder}/s.h5 --kernel={folder}/kernel.h5 {more}")
    run(spectrum_step, f"{common} --output={folder}/one_step.h5 {more}")
    with h5py.File(folder / "s.h5") as file, h5py.File(folder / "one_step.h5") as one_step:
        known = file["lambda_min_error"][0]
        assert (one_step["lambda_min_error"][0] <= 1.01 * known).all()
        assert (abs(one_step["lambda_min"][0] - file["lambda_min"][0]) <= 2 * known).all()
        assert list(one_step["verdict"][0]) == list(file["verdict"][0])
        return {name: file[name][0] for name in file}


def run(step: ModuleType, words: str) -> None:
    arguments = step.OPTIONS.parse_args(words.split())
    arguments.record = None
    step.main(arguments)


def network(activation: str, depth: int, width: float = 16) -> MLP:
    return MLP(ACTIVATIONS[activation], depth, width)


@pytest.mark.parametrize("n", [7, PANEL, 2 * PANEL + 100])
@pytest.mark.parametrize(("activation", "depth"), [("relu", 2), ("linear", 1), ("relu", 0)])
def test_a_kernel_by_half_is_the_kernel(n, activation, depth, device):
    """At finite width, and at infinite width, where the device does not count."""
    x, infinite = inputs(n, FEATURES), network(activation, depth, np.inf)
    factors = network(activation, depth).initial_gradients(0, FEATURES, device)(put(x, device))
    assert np.array_equal(whole(empirical_ntk_half(factors)), to_numpy(empirical_ntk(factors)))
    by_half = whole(infinite_width_ntk_half(x, infinite))
    assert np.array_equal(by_half, infinite_width_ntk(x, infinite))


@pytest.mark.parametrize("activation", ["relu", "linear"])
@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("trainable", ["all", "first"])
def test_a_product_from_the_gradients_is_that_with_the_kernel(activation, depth, trainable, device):
    mlp = MLP(ACTIVATIONS[activation], depth, 16, trainable)
    gradients = mlp.initial_gradients(0, FEATURES, device)
    v = put(np.random.default_rng(0).standard_normal(50), device)
    x = put(inputs(50, FEATURES), device)
    product = to_numpy(ntk_product(gradients, x, v, rows=17))
    expected = to_numpy(empirical_ntk(gradients(x)) @ v)
    np.testing.assert_allclose(product, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_entries_between_two_sets_of_samples_are_those_of_the_kernel(activation, device):
    gradients = network(activation, 2).initial_gradients(0, FEATURES, device)
    x, cut = inputs(70, FEATURES), 30
    kernel = to_numpy(empirical_ntk(gradients(put(x, device))))
    rows, columns = (gradients(put(part, device)) for part in (x[:cut], x[cut:]))
    out = put(np.full((cut, len(x) - cut), np.nan), device)
    ntk_between(rows, columns, out)
    np.testing.assert_allclose(to_numpy(out), kernel[:cut, cut:], rtol=1e-12, atol=1e-12)


def test_a_product_by_shares_of_the_samples_is_that_of_all():
    gradients = network("relu", 2).initial_gradients(0, FEATURES)
    x, v = inputs(50, FEATURES), np.random.default_rng(0).standard_normal(50)
    shares = [slice(0, 20), slice(20, 50), slice(50, 50)]
    told: list[list[np.ndarray]] = []
    for share in shares:
        told.append([])
        ntk_product(gradients, x[share], v[share], joined=lambda t: told[-1].append(t) or t)
    totals = [sum(parts) for parts in zip(*told, strict=True)]
    products = []
    for share in shares:
        left = iter(totals)
        products.append(ntk_product(gradients, x[share], v[share], joined=lambda t: next(left)))  # noqa: B023
    np.testing.assert_allclose(np.concatenate(products), ntk_product(gradients, x, v), rtol=1e-12)


@pytest.mark.parametrize("width", [64, np.inf])
def test_a_measure_of_many_samples_is_that_of_all_eigenvalues(width, device):
    n = FULL_SPECTRUM_UP_TO + 1
    x = inputs(n, FEATURES).astype(np.float32)
    relu = network("relu", 2, width)
    (row,) = measure(x, relu, [n], 1, [3], device)
    exact = x.astype(np.float64)
    kernel = infinite_width_ntk(exact, relu)
    if np.isfinite(width):
        kernel = empirical_ntk(relu.initial_gradients(3, FEATURES)(exact))
    eigenvalues = np.linalg.eigvalsh(kernel)
    assert row["verdict"] == "resolved"
    assert row["lambda_max"] == pytest.approx(eigenvalues[-1], rel=1e-12)
    assert row["lambda_min"] == pytest.approx(eigenvalues[0], rel=1e-6)


def test_files_of_large_kernels_have_one_half_and_no_room_for_the_other(tmp_path):
    """By the steps themselves, beside the spectrum of the whole kernel."""
    n = FULL_SPECTRUM_UP_TO + 300
    x = inputs(n, FEATURES)
    spectrum = measured(tmp_path, x, "all", "--prove-smallest=true")
    with h5py.File(tmp_path / "kernel.h5") as file:
        kernel = file["kernel"][0, 0]
        stored = file["kernel"].id.get_storage_size()
    assert stored == kernel_step.file_bytes(n, n, seeds=1) < 0.65 * 8 * n**2
    assert np.isnan(kernel[0, -1]) and not np.isnan(np.tril(kernel)).any()
    x = x.astype(np.float32).astype(np.float64)
    gradients = network("relu", 2, 64).initial_gradients(3, FEATURES)
    exact = empirical_ntk(gradients(x))
    np.testing.assert_allclose(np.tril(kernel), np.tril(exact), rtol=1e-12, atol=1e-12)
    spectrum = {name: values[0] for name, values in spectrum.items()}
    smallest, error = spectrum["lambda_min"], spectrum["lambda_min_error"]
    full = np.linalg.eigvalsh(exact)[0]
    assert abs(smallest - full) <= error
    assert full - 4 * error < spectrum["smallest_is_above"] < full
    table = conditioning.rows(tmp_path / "s.h5")
    assert table.smallest_is_above[0] == spectrum["smallest_is_above"]
    assert table.smallest_residual[0] == spectrum["smallest_residual"]
    vector = spectrum["smallest_eigenvector"]
    residual = np.linalg.norm(ntk_product(gradients, x, vector) - smallest * vector)
    assert spectrum["smallest_residual"] == pytest.approx(residual, rel=1e-3)
    assert residual <= error
    (tmp_path / "s.h5").unlink()  # one that is not the kernel of its network is refused
    with h5py.File(tmp_path / "kernel.h5", "a") as file:
        file["kernel"][0, 0, 5, 5] *= 1.1
    with pytest.raises(UserError, match="is not the NTK of mine"):
        measured(tmp_path, x, "all")
    assert not (tmp_path / "s.h5").exists()


def test_a_right_kernel_is_accepted_where_its_smallest_eigenvalue_is_lost(tmp_path):
    """Nearly parallel samples: the residual of Lanczos' own vector would be far above the bound."""
    spectrum = measured(tmp_path, inputs(FULL_SPECTRUM_UP_TO + 1, 20) + 1000, "all")
    assert spectrum["verdict"][0] == b"unresolved"
    assert spectrum["smallest_residual"][0] <= spectrum["lambda_min_error"][0]


def test_a_proof_is_asked_for_where_only_some_blocks_can_have_one(tmp_path):
    n = FULL_SPECTRUM_UP_TO + 1
    x = inputs(2 * n, FEATURES)
    x[7] = x[3]
    spectrum = measured(tmp_path, x, n, "--prove-smallest=true")
    assert list(spectrum["verdict"]) == [b"singular", b"resolved"]
    above, smallest = spectrum["smallest_is_above"], spectrum["lambda_min"]
    assert np.isnan(above[0]) and 0 < above[1] < smallest[1]


def test_a_sweep_holds_one_kernel_at_a_time(monkeypatch):
    made, alive = [], []

    def record(kernel, samples, network) -> dict:
        alive.append(sum(reference() is not None for reference in made))
        made.append(weakref.ref(kernel.panels[0]))
        return {}

    monkeypatch.setattr("ntkcond.ntk.measure._record", record)
    n = FULL_SPECTRUM_UP_TO + 1
    list(
        measure(inputs(3 * n, 3).astype(np.float32), network("relu", 1, np.inf), [n], 3, [0], "cpu")
    )
    assert alive == [0, 0, 0]
