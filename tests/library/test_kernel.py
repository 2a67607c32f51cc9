"""A kernel as a value (`library.kernel`): what one does with an array, and a file that keeps what
is known of its error."""

import h5py
import numpy as np
import pytest
import torch
from matplotlib import pyplot

import ntkcond
from ntkcond.run.errors import UserError

X = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def kernel() -> ntkcond.Kernel:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    return ntkcond.kernel(network, X)


def test_it_is_used_as_an_array(kernel):
    K = kernel.matrix
    assert (kernel.shape, len(kernel)) == ((30, 30), 30)
    assert np.asarray(kernel) is K
    assert np.array(kernel, dtype=np.float32).dtype == np.float32
    assert np.array_equal(kernel @ np.ones(30), K @ np.ones(30))
    assert np.array_equal(np.ones(30) @ kernel, np.ones(30) @ K)
    assert np.array_equal(kernel @ kernel, K @ K)
    assert np.array_equal(kernel[:3, 1], K[:3, 1])
    assert kernel == kernel and kernel != ntkcond.kernel(torch.nn.Linear(6, 1), X)
    assert np.asarray(ntkcond.kernel(torch.nn.Linear(6, 1), X, as_tensor=True)).shape == (30, 30)


@pytest.mark.parametrize("options", [{}, {"certify": False}, {"x2": X[:4]}, {"as_tensor": True}])
def test_a_file_keeps_all_that_is_known(kernel, options, tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    kernel = ntkcond.kernel(module, X, **options)
    kernel.save(tmp_path / "k.h5")
    loaded = ntkcond.load(str(tmp_path / "k.h5"))
    assert np.array_equal(loaded.matrix, np.asarray(kernel))
    for name in ("rank_bound", "layerwise", "by_jacobian", "kinks", "grade", "two_sets", "made"):
        assert getattr(loaded, name) == getattr(kernel, name)
    assert loaded.error == kernel.error or (np.isnan(loaded.error) and "certify" in options)
    assert kernel.made["module"] == "Sequential" and kernel.made["samples"].startswith("30")
    assert [p.name for p in tmp_path.iterdir()] == ["k.h5"]


def test_what_is_loaded_has_the_same_verdict(kernel, tmp_path):
    kernel.save(tmp_path / "k.h5")
    assert str(ntkcond.condition_number(ntkcond.load(tmp_path / "k.h5"))) == str(
        ntkcond.condition_number(kernel)
    )


def test_files_that_are_no_kernel_are_refused(kernel, tmp_path):
    path = tmp_path / "k.h5"
    with pytest.raises(UserError, match="no such file"):
        ntkcond.load(path)
    with pytest.raises(UserError, match="cannot be written"):
        kernel.save(tmp_path / "none/k.h5")
    path.write_text("text")
    with pytest.raises(UserError, match="no HDF5 file"):
        ntkcond.load(path)
    with h5py.File(path, "w") as file:
        file["matrix"] = np.eye(3)
    with pytest.raises(UserError, match="no kernel that"):
        ntkcond.load(path)
    kernel.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="has changed since"):
        ntkcond.load(path)


@pytest.mark.parametrize("matrix, error, said", [
    (np.diag([1.0, 2.0, 5.0]), 1e-6, "κ = 5.000000 ± 7e-06"),
    (np.diag([1.0, 2.0, 5.0]), 0.9, "κ = 2.1 to 60"),
    (np.diag([1e-20, 2.0, 5.0]), 1e-6, "κ > "),
])  # fmt: skip
def test_kappa_is_said_in_the_digits_that_are_known(matrix, error, said):
    spectrum = ntkcond.condition_number(matrix, error=error)
    assert spectrum.known_kappa.startswith(said)
    assert repr(spectrum) == str(spectrum) and "\n" not in repr(spectrum)
    assert spectrum.kappa_lower <= 5 <= spectrum.kappa_upper or spectrum.verdict != "resolved"


def test_pictures_mark_what_is_not_known(kernel):
    axes = kernel.plot()
    assert "resolved" in axes.get_title() and axes.get_yscale() == "log"
    assert not any("not known" in t.get_text() for t in axes.get_legend().get_texts())
    singular = ntkcond.kernel(torch.nn.Linear(6, 1), X)
    own = pyplot.subplots()[1]
    assert singular.plot(own) is own
    assert any("23 not known" in t.get_text() for t in own.get_legend().get_texts())
    pyplot.close("all")
