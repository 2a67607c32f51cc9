"""Data sets: what is read, chosen and scaled; bad files; downloads, from a local server."""

import dataclasses
import hashlib
import io
from pathlib import Path

import h5py
import numpy as np
import pytest

from ntkcond.datasets import custom, digits, synthetic
from ntkcond.datasets.samples import Raw, choose, constant_features, defects, distinct, hold_out
from ntkcond.datasets.torchvision_data import Download, fetch, verified
from ntkcond.run.errors import UserError

DIGITS = digits.load(Path(), {})


def test_synthetic_is_standard_gaussian_and_repeatable():
    options = {"samples": 20_000, "features": 5, "seed": 0}
    x = synthetic.load(Path(), options).x
    assert x.shape == (20_000, 5)
    assert abs(x.mean(0)).max() < 0.03
    assert np.cov(x.T) == pytest.approx(np.eye(5), abs=0.04)
    assert np.array_equal(x, synthetic.load(Path(), options).x)
    assert not np.array_equal(x, synthetic.load(Path(), {**options, "seed": 1}).x)


def test_fewer_samples_are_the_first_of_more_in_an_order_set_by_the_seed():
    all_of_them = choose(DIGITS, "all", seed=0)
    few = choose(DIGITS, 100, seed=0)
    assert np.array_equal(few.x, all_of_them.x[:100])
    assert np.array_equal(few.y, all_of_them.y[:100])
    assert np.array_equal(DIGITS.x[few.origin["index"]], few.x)
    assert sorted(all_of_them.origin["index"]) == list(range(1797))
    other = choose(DIGITS, 100, seed=1)
    assert not np.array_equal(few.origin["index"], other.origin["index"])


def test_values_are_scaled_from_their_range_to_the_interval():
    x = choose(DIGITS, "all", seed=0, scale=(-1.0, 1.0)).x
    assert (x.min(), x.max(), x.dtype) == (-1, 1, np.float32)
    raw = choose(DIGITS, "all", seed=0).x
    assert x == pytest.approx(raw / 8 - 1)


def test_held_out_samples_are_no_longer_among_the_others():
    split = hold_out(DIGITS, 360, seed=0)
    assert (len(split.x), len(split.x_test), len(split.y_test)) == (1437, 360, 360)
    together = np.vstack([split.x, split.x_test])
    assert np.array_equal(np.sort(together, axis=0), np.sort(DIGITS.x, axis=0))
    with pytest.raises(UserError, match="leaves none of the 1797 samples"):
        hold_out(DIGITS, 1797, seed=0)
    with pytest.raises(UserError, match="has a test split of its own"):
        hold_out(dataclasses.replace(DIGITS, x_test=DIGITS.x), 10, seed=0)
    with pytest.raises(UserError, match="1798 requested, 1797 available"):
        choose(DIGITS, 1798, seed=0)


def test_values_that_float32_or_the_scale_cannot_hold_are_refused():
    large = Raw(np.full((3, 2), 1e40), None, (1e40, 1e40), "mine.npy")
    with pytest.raises(
        UserError, match=r"mine\.npy: values up to 1e\+40 are too large for float32"
    ):
        choose(large, "all", seed=0)
    with pytest.raises(UserError, match=r"every value is 1e\+40, which scales to nothing"):
        choose(large, "all", seed=0, scale=(-1, 1))


def test_repeated_zero_and_constant_values_are_remarked_on():
    x = np.array([[0, 1], [0, 1], [0, 0], [0, 2]], dtype=np.float32)
    repeated, zero = defects(x)
    assert "1 of 4 samples repeat" in repeated
    assert "1 of 4 samples are zero" in zero
    assert constant_features(x) == 1
    assert defects(x[2:]) == [zero.replace("4", "2")]


def test_repeats_and_zeros_are_left_out_and_counted():
    x = np.array([[1, 2], [0, 0], [3, 4], [1, 2], [0, 0], [1, 2], [-3, -4]], dtype=np.float64)
    raw = Raw(x, np.arange(7), (-4, 4), "", x_test=x[:2])
    whole = choose(raw, "all", seed=0)
    once = distinct(whole)
    assert sorted(map(tuple, once.x)) == [(-3, -4), (1, 2), (3, 4)]
    assert (once.x == x[once.y]).all() and (once.origin["index"] == once.y).all()
    assert [i for i in whole.y if i in once.y] == list(once.y)  # in the same order
    assert once.left_out == {"samples that repeat an earlier one": 2, "samples that are zero": 2}
    assert len(once.x_test) == 2
    assert once.about["preprocessing"].endswith("; each once")
    assert not defects(once.x)


X = np.arange(12, dtype=np.float64).reshape(4, 3)


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
def test_own_samples_are_read_from_each_kind_of_file(tmp_path, kind, caplog):
    path = tmp_path / f"mine.{kind}"
    labels = np.array([0, 1, 0, 1])
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, x=X, y=labels)
    else:
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = X.reshape(4, 3, 1), labels
    raw = custom.load(tmp_path, {"file": path})
    assert np.array_equal(raw.x, X)
    assert kind == "npy" or np.array_equal(raw.y, labels)
    assert raw.value_range == (0, 11)
    assert raw.files[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert ("shape: [3, 1]" in caplog.text) == (kind == "h5")


def _with(value: float) -> np.ndarray:
    bad = X.copy()
    bad[2, 1] = value
    return bad


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("flat.npy", X[0], r"x has shape \(3,\); it must be \(samples, features\)"),
        ("one.npy", X[:1], "x has 1 sample; a kernel needs at least two"),
        ("none.npy", X[:, :0], r"x has shape \(4, 0\)"),
        ("nan.npy", _with(np.nan), "1 values that are NaN or infinite, the first at row 2, col"),
        ("inf.npy", _with(np.inf), "NaN or infinite"),
        ("text.npy", np.array([["a", "b"]]), "dtype <U1; it must be real numbers"),
        ("complex.npy", X + 1j, "it must be real numbers"),
        ("objects.npy", np.array([[None, 1], [2, 3]]), "cannot be read as .npy"),
        ("nox.npz", {"data": X}, "no array named x, only data"),
        ("labels.npz", {"x": X, "y": np.zeros(3, int)}, r"y has shape \(3,\); it must be \(4,\)"),
        ("floats.npz", {"x": X, "y": np.zeros(4)}, "labels must be integers"),
        ("test.npz", {"x": X, "x_test": X[:, :2]}, "x has 3 features and x_test has 2"),
        ("near.npy", 1e6 + 1e-3 * X, "3 samples that differ from all others become equal"),
        ("whole.npy", 2**40 + X.astype(int), "become equal to one in float32"),
    ],
)
def test_bad_own_samples_are_refused_by_name(tmp_path, name, arrays, message):
    path = tmp_path / name
    np.savez(path, **arrays) if isinstance(arrays, dict) else np.save(path, arrays)
    with pytest.raises(UserError, match=message) as caught:
        custom.load(tmp_path, {"file": path})
    assert name in str(caught.value)


def test_damaged_missing_and_unknown_files_are_refused_by_name(tmp_path):
    whole = io.BytesIO()
    np.savez(whole, x=X)
    entry = whole.getvalue().index(b"PK\1\2") + 6  # the version that it needs
    newer = whole.getvalue()[:entry] + b"\xff" + whole.getvalue()[entry + 1 :]
    for name, content, message in (
        ("cut.npz", whole.getvalue()[:100], "cannot be read as .npz"),
        ("cut.npy", b"\x93NUMPY", "cannot be read as .npy"),
        ("open.npy", b"\x93NUMPY\1\0\2\0{(", r"open\.npy: cannot be read as \.npy \("),
        ("newer.npz", newer, r"newer\.npz: cannot be read as \.npz \(zip file version 25.5\)"),
        ("zip.npy", whole.getvalue(), "cannot be read as .npy"),
        ("one.npz", b"\x93NUMPY", "cannot be read as .npz"),
        ("not.h5", b"nonsense", "cannot be read as .h5"),
        ("table.csv", b"1,2", "unknown kind of file. Use .npy, .npz or .h5"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            custom.load(tmp_path, {"file": tmp_path / name})
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file.create_group("x")
    with pytest.raises(UserError, match="x is a group, not an array"):
        custom.load(tmp_path, {"file": tmp_path / "group.h5"})
    with pytest.raises(UserError, match="no such file"):
        custom.load(tmp_path, {"file": tmp_path / "absent.npy"})
    with pytest.raises(UserError, match="is a folder"):
        custom.load(tmp_path, {"file": tmp_path})


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (h5py.SoftLink("/nowhere"), "cannot be read as .h5"),
        (h5py.Empty("f8"), r"x has shape \(\); it must be \(samples, features\)"),
        ("text", r"x has shape \(\); it must be"),
        (None, "x needs 400.0 TB of memory"),
    ],
)
def test_what_hdf5_holds_beside_arrays_is_refused_by_name(tmp_path, x, message):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        if x is None:  # chunks that nobody wrote
            file.create_dataset("x", (10**13, 5), chunks=(100, 5), dtype="f8")
        else:
            file["x"] = x
    with pytest.raises(UserError, match=rf"odd\.h5: .*{message}"):
        custom.load(tmp_path, {"file": tmp_path / "odd.h5"})


def test_samples_that_a_scale_tells_apart_are_kept(tmp_path):
    np.save(tmp_path / "near.npy", 1e6 + 1e-3 * X)
    raw = custom.load(tmp_path, {"file": tmp_path / "near.npy", "scale": [-1, 1]})
    assert np.array_equal(raw.x, 1e6 + 1e-3 * X)


def test_an_array_that_stands_in_another_hdf5_file_is_refused(tmp_path):
    """Its changes would not be seen; and where it is missing, HDF5 gives zeros."""
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["data"] = X
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(tmp_path / "source.h5", "data", X.shape)[:]
    X.tofile(tmp_path / "raw")
    for kind in ("link", "virtual", "external"):
        with h5py.File(tmp_path / f"{kind}.h5", "w") as file:
            if kind == "link":
                file["x"] = h5py.ExternalLink("source.h5", "data")
            elif kind == "virtual":
                file.create_virtual_dataset("x", layout)
            else:
                raw = [(str(tmp_path / "raw"), 0, X.nbytes)]
                file.create_dataset("x", X.shape, X.dtype, external=raw)
        with pytest.raises(UserError, match="x stands in another file"):
            custom.load(tmp_path, {"file": tmp_path / f"{kind}.h5"})


def test_matlabs_arrays_are_turned_and_groups_beside_x_are_left_alone(tmp_path):
    with h5py.File(tmp_path / "matlab.h5", "w") as file:
        for name, values in (("x", X.T), ("y", np.array([[0], [1], [0], [1]]).T)):
            file.create_dataset(name, data=values).attrs["MATLAB_class"] = np.bytes_("double")
        file["meta/version"] = 1
    raw = custom.load(tmp_path, {"file": tmp_path / "matlab.h5"})
    assert np.array_equal(raw.x, X) and np.array_equal(raw.y, [0, 1, 0, 1])


CONTENT = b"the original file" * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()
NOWHERE = "http://127.0.0.1:9/set.gz"


def test_a_download_takes_the_first_address_that_answers_with_the_right_file(server, tmp_path):
    folder, address = server
    (folder / "set.gz").write_bytes(CONTENT)
    (folder / "other.gz").write_bytes(b"another file")
    urls = [NOWHERE, f"{address}/absent.gz", f"{address}/other.gz", f"{address}/set.gz"]
    fetch(tmp_path / "data/RAW/set.gz", Download(urls, MD5))
    assert (tmp_path / "data/RAW/set.gz").read_bytes() == CONTENT


@pytest.mark.parametrize("served", [None, CONTENT[:500]], ids=["unreachable", "cut short"])
def test_a_failed_download_leaves_nothing_and_says_what_to_do(server, tmp_path, served):
    folder, address = server
    if served:
        (folder / "set.gz").write_bytes(served)
    url = f"{address}/set.gz" if served else NOWHERE
    with pytest.raises(UserError, match="the download failed") as caught:
        fetch(tmp_path / "data/RAW/set.gz", Download([url], MD5))
    assert url in str(caught.value)
    assert "data_dir" in str(caught.value)
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


def test_a_file_that_is_there_is_never_touched(tmp_path):
    target = tmp_path / "RAW/set.gz"
    target.parent.mkdir()
    target.write_bytes(CONTENT)
    target.chmod(0o444)
    before = target.stat()
    fetch(target, Download([NOWHERE], MD5))
    after = target.stat()
    for name in ("st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns"):
        assert getattr(after, name) == getattr(before, name)
    target.chmod(0o644)
    target.write_bytes(CONTENT[:-1])
    for check in (
        lambda: fetch(target, Download([NOWHERE], MD5)),
        lambda: verified(tmp_path, {"RAW/set.gz": Download([], MD5)}),
    ):
        with pytest.raises(UserError, match=r"set\.gz: damaged, its md5 is not the published"):
            check()
    assert target.read_bytes() == CONTENT[:-1]


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_real_images_are_read_without_writing_to_their_folder(real_data, name):
    from ntkcond.datasets import registry

    before = sorted(real_data.rglob("*"))
    raw = registry.module(name).load(real_data, {})
    assert sorted(real_data.rglob("*")) == before
    source = registry.SOURCES[name]
    assert raw.x.shape == (source.samples, source.features)
    assert raw.x_test.shape == (10_000, 784)
    assert (raw.x.min(), raw.x.max()) == (0, 255)
    assert sorted(set(raw.y)) == list(range(10))
    if name == "mnist":
        assert raw.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
        assert raw.x.mean() == pytest.approx(33.318421, abs=1e-6)  # the published 0.1307 × 255


def test_svhn_is_read_as_torchvision_reads_it(tmp_path, monkeypatch):
    """The real files are 245 MB; a small pair of the same format stands in, md5 and all."""
    import scipy.io

    from ntkcond.datasets import svhn

    rng = np.random.default_rng(0)
    (tmp_path / "SVHN").mkdir()
    splits = {}
    for split, count in (("train", 7), ("test", 3)):
        images = rng.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        labels = np.arange(10 - count + 1, 11, dtype=np.uint8)[:, None]  # "10" is the digit 0
        path = tmp_path / "SVHN" / f"{split}_32x32.mat"
        scipy.io.savemat(path, {"X": images, "y": labels})
        url = f"http://127.0.0.1:9/{path.name}"
        splits[split] = [url, path.name, hashlib.md5(path.read_bytes()).hexdigest()]
        if split == "train":
            first = images
    monkeypatch.setattr(svhn.datasets.SVHN, "split_list", splits)
    raw = svhn.load(tmp_path, {})
    assert raw.x.shape == (7, 3072)
    assert raw.x_test.shape == (3, 3072)
    assert np.array_equal(raw.x[2], first[:, :, :, 2].transpose(2, 0, 1).ravel())
    assert raw.y.tolist() == [4, 5, 6, 7, 8, 9, 0]
