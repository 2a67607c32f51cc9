"""Files are whole or not there, and what went wrong is said plainly."""

import ast
import fcntl
import hashlib
import json
import math
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from ntkcond.artefacts import fig4
from ntkcond.run import digests, files, seal
from ntkcond.run.errors import UserError
from ntkcond.run.files import read_hdf5, replacing, require_space, write_hdf5
from ntkcond.run.record import CODE, FORMAT, read
from ntkcond.run.units import size
from workflow import skip


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.h5"
    with write_hdf5(path) as file:
        file["x"] = [1.0]
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), write_hdf5(path) as file:
        file["x"] = np.zeros(1000)
        1 / 0  # noqa: B018
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_file_is_read_where_a_file_system_gives_no_locks(tmp_path):
    """As NFS without lockd does; here another one has the lock."""
    with write_hdf5(tmp_path / "a.h5", {"rule": "a"}) as file:
        file["x"] = [1.0]
    with (tmp_path / "a.h5").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with read_hdf5(tmp_path / "a.h5") as file:
            assert file["x"][0] == 1
        assert read(tmp_path / "a.h5") == {"rule": "a"}


def test_a_killed_write_leaves_no_file_and_the_next_one_clears_up(tmp_path):
    path = tmp_path / "a.h5"
    script = """
        import os, sys
        from ntkcond.run.files import write_hdf5
        with write_hdf5(sys.argv[1]) as file:
            file["x"] = [1.0]
            file.flush()
            os.kill(os.getpid(), 9)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script), path], check=False)
    assert killed.returncode == -9
    assert not path.exists()
    assert len(os.listdir(tmp_path)) == 1
    with replacing(path) as temporary:
        temporary.write_bytes(b"whole")
    assert os.listdir(tmp_path) == ["a.h5"]


MINE = ("h5.", "checkpoint.h5.")  # files and checkpoints


def test_what_another_machine_is_writing_is_let_be(tmp_path):
    other = tmp_path / ".a.h5.elsewhere.1.tmp"
    of_mine = f"{socket.gethostname()}.{2**22 + 1}.tmp"  # no such process
    longer = tmp_path / f".a.h5.elsewhere.{of_mine}"
    for path in (other, longer, *(tmp_path / f".a.{kind}{of_mine}" for kind in MINE)):
        path.write_bytes(b"half")
    with replacing(tmp_path / "a.h5") as temporary:
        temporary.write_bytes(b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, longer.name, "a.h5"])


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        skip("disk", "mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_and_leaves_nothing_half_written(small_disk):
    path = small_disk / "kernel.h5"
    with pytest.raises(UserError, match=r"kernel\.h5: the disk is full") as caught:
        with write_hdf5(path) as file:
            kernel = file.create_dataset("kernel", (1000, 1000), "f8")
            for row in range(1000):
                kernel[row] = np.ones(1000)
    assert "keep_kernels" in str(caught.value)
    assert os.listdir(small_disk) == []


def test_a_disk_that_is_full_when_the_file_is_closed_is_named_too(small_disk):
    """HDF5 keeps small datasets in memory until then."""
    (small_disk / "other").write_bytes(bytes(1_040_000))
    path = small_disk / "spectrum.h5"
    with pytest.raises(UserError, match=r"spectrum\.h5: the disk is full"):
        with write_hdf5(path) as file:
            for name in "abcdefgh":
                file[name] = np.ones(1000)
    assert os.listdir(small_disk) == ["other"]


@pytest.mark.parametrize("suffix", ["pdf", "png"])
@pytest.mark.parametrize("room", [1, 6_000, 30_000])
def test_a_disk_that_is_full_when_a_figure_is_saved_is_named_too(small_disk, suffix, room):
    """matplotlib then fails with errors of its own."""
    (small_disk / "other").write_bytes(bytes(1_048_576 - 4096 * -(-room // 4096)))
    drawn = fig4.draw(fig4.table())
    small = (small_disk / "other").stat().st_size
    with pytest.raises(UserError, match=rf"fig4\.{suffix}: the disk is full"):
        for copy in range(40):
            drawn.save(small_disk / str(copy) / f"fig4.{suffix}")
    assert (small_disk / "other").stat().st_size == small
    assert not list(small_disk.rglob("*.tmp"))


def test_too_little_disk_is_said_before_the_work(small_disk):
    with pytest.raises(UserError, match=r"needs 8.0 MB of disk, 1.0 MB are free. Take less"):
        require_space(small_disk / "kernel.h5", 8_000_000, "Take less")


def test_a_missing_or_truncated_file_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(UserError, match=r"a\.h5: no such file"), read_hdf5(path):
        pass
    with write_hdf5(path) as file:
        file["x"] = np.zeros(10_000)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"a\.h5: damaged .* Delete it"), read_hdf5(path):
        pass


def test_a_file_has_its_provenance_and_the_same_bytes_again(tmp_path):
    made_with = {"settings": {"width": 512}, "code": {"a": "b"}, "versions": {"torch": "2.13.0"}}
    for name in ("a.h5", "b.h5"):
        with write_hdf5(tmp_path / name, made_with) as file:
            file["x"] = np.arange(10.0)
    with h5py.File(tmp_path / "a.h5") as file:
        assert json.loads(file.attrs["provenance"]) == made_with
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_an_artefacts_provenance_has_the_digest_of_each_of_its_files(tmp_path):
    made_with = {"settings": {"rule": "σ"}}
    contents = {tmp_path / name: name.encode() for name in ("a.csv", "a.md")}
    files.write_artefact(contents, made_with)
    assert all(path.read_bytes() == content for path, content in contents.items())
    written = json.loads((tmp_path / "provenance/a.json").read_text("utf-8"))
    assert written["record"] == made_with
    assert written["files"] == {
        name: hashlib.sha256(name.encode()).hexdigest() for name in ("a.csv", "a.md")
    }


TINY = 5e-324  # the smallest denormal
ODD = [0.1, -0.0, 0.0, TINY, -TINY, 2.2250738585072014e-308, 1.7976931348623157e308,
       1 / 3, math.pi, math.nan, math.inf, -math.inf, 0.1 + 0.2, 1e22]  # fmt: skip
PAYLOAD = np.array([0x7FF8000000000123], np.uint64).view(np.float64)  # a NaN unlike numpy's
ARRAYS = {
    "float64": np.array(ODD),
    "a NaN with a payload": PAYLOAD,
    "float32": np.array([*map(np.float32, (0.1, -0.0, 1e-45, 3e38, math.nan, -math.inf))]),
    "int64": np.array([0, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    "uint8": np.arange(256, dtype=np.uint8).reshape(16, 16),
    "bool": np.array([True, False]),
    "bytes": np.array([b"11-7-0001", b"a"], "S9"),
    "empty": np.zeros((0, 3)),
    "four dimensions": np.random.default_rng(0).standard_normal((2, 3, 4, 4)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_from_hdf5_bit_for_bit(tmp_path, name):
    array = ARRAYS[name]
    with write_hdf5(tmp_path / "a.h5") as file:
        file["x"] = array
        file.create_dataset("by tiles", array.shape, array.dtype)[:] = array
    with read_hdf5(tmp_path / "a.h5") as file:
        for values in (file["x"][:], file["by tiles"][:]):
            assert (values.dtype, values.shape) == (array.dtype, array.shape)
            assert values.tobytes() == array.tobytes()


def test_strings_and_attributes_come_back_from_hdf5(tmp_path):
    words = ["resolved", "", "κ = ∞", "11/7/11-7-0001.flac"]
    with write_hdf5(tmp_path / "a.h5") as file:
        file["words"] = words
        file["of numpy"] = np.array(words).astype(h5py.string_dtype())
        file.attrs.update(width=512, tf32=False, rate=0.1, seeds=[1, 2**63 - 1], name="ζ")
    with read_hdf5(tmp_path / "a.h5") as file:
        for name in ("words", "of numpy"):
            assert file[name].asstr()[:].tolist() == words
        a = file.attrs
        assert (a["width"], a["tf32"], a["rate"], a["name"]) == (512, False, 0.1, "ζ")
        assert a["seeds"].tolist() == [1, 2**63 - 1]


def test_tables_come_back_from_csv_to_the_last_digit(tmp_path):
    """NaN and nothing are the same in a CSV; all else is not."""
    drawn = np.random.default_rng(0).integers(0, 2**64, 5000, np.uint64).view(np.float64)
    floats = np.array([*ODD, *drawn[~np.isnan(drawn)]])
    table = pd.DataFrame({"x": floats, "n": np.arange(len(floats)) + 2**53})
    table["word"] = [f"κ, {i}" if i % 2 else 'a "word"' for i in range(len(floats))]
    table["count"] = pd.array([1, pd.NA] * (len(floats) // 2) + [3] * (len(floats) % 2), "Int64")
    (tmp_path / "a.csv").write_bytes(files.csv_of(table))
    read_back = pd.read_csv(tmp_path / "a.csv")  # as steps read it
    assert read_back.x.to_numpy().tobytes() == floats.tobytes()
    assert read_back.n.tolist() == table.n.tolist()
    assert read_back.word.tolist() == table.word.tolist()
    assert read_back["count"].astype("Int64").equals(table["count"])


# Of the code that says how values are written and read. Results of another FORMAT are out of date.
AS_WRITTEN = {
    "format": 1,
    "sha256": "6f7c3125e9063fd66ff432bd6d9fe4ed50188610508246e2d4075e364ddb9c04",
}


def test_what_writes_and_reads_values_is_that_of_this_format():
    tree = ast.parse(Path(files.__file__).read_text("utf-8"))
    functions = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in ("write_hdf5", "read_hdf5", "csv_of")
    ]
    assert len(functions) == 3
    text = ""
    for function in functions:
        for node in ast.walk(function):
            CODE._drop_prose(node)
        text += digests._text(function)
    written = {"format": FORMAT, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert written == AS_WRITTEN, (
        "ntkcond.run.files writes or reads values otherwise than before: if a file now has other"
        f" values, raise FORMAT in ntkcond.run.record; then set AS_WRITTEN here to {written}"
    )


def test_sizes_read_well():
    assert [size(n) for n in (12, 1500, 28.8e9, 3e13)] == [
        "12 bytes", "1.5 kB", "28.8 GB", "30.0 TB",
    ]  # fmt: skip


def test_a_place_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    """As root nothing is forbidden, so the system's answer is played."""

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.Path, "replace", refuse)
    with pytest.raises(UserError, match=r"a\.csv: cannot be written \(Permission denied\)"):
        with replacing(tmp_path / "a.csv") as temporary:
            temporary.write_text("1")
    assert os.listdir(tmp_path) == []


def test_a_flipped_byte_anywhere_in_a_file_is_named_before_hdf5_reads_it(tmp_path):
    """Of some flips in its head, h5py would not return from opening the file."""
    path = tmp_path / "a.h5"
    with write_hdf5(path, {"settings": {"width": 512}}) as file:
        file["x"] = np.arange(100.0)
        file["verdict"] = np.array(["resolved"], h5py.string_dtype())
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        if seal.is_whole(path):  # of the words of the seal itself: what it is about is as it was
            assert len(whole) - seal.LENGTH <= place < len(whole) - 8
            continue
        assert read(path) is None
        with pytest.raises(UserError, match=r"a\.h5: damaged .*has changed.* Delete it"):
            with read_hdf5(path):
                pass


def test_a_file_without_a_seal_is_read_as_it_is(tmp_path):
    """Of an older version, or of another program."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1.0]
    with read_hdf5(tmp_path / "a.h5") as file:
        assert file["x"][0] == 1
    (tmp_path / "short").write_bytes(b"x")
    assert seal.is_whole(tmp_path / "short")
