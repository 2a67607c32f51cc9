"""Files are whole or not there, and what went wrong is said plainly."""

import os
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest

from ntkcond import storage
from ntkcond.run.errors import UserError
from ntkcond.artefacts import fig4, style
from ntkcond.run.files import read_hdf5, replacing, require_space, write_hdf5
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


def test_what_another_machine_is_writing_is_let_be(tmp_path):
    other = tmp_path / ".a.h5.elsewhere.1.tmp"
    mine = tmp_path / f".a.h5.{storage.socket.gethostname()}.{2**22 + 1}.tmp"  # no such process
    for path in (other, mine):
        path.write_bytes(b"half")
    with replacing(tmp_path / "a.h5") as temporary:
        temporary.write_bytes(b"whole")
    assert sorted(os.listdir(tmp_path)) == [other.name, "a.h5"]


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
            style.save(drawn, small_disk / str(copy) / f"fig4.{suffix}")
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


def test_a_file_says_what_made_it_and_has_the_same_bytes_again(tmp_path):
    made_by = {"settings": {"width": 512}, "code": "abc", "versions": {"torch": "2.13.0"}}
    for name in ("a.h5", "b.h5"):
        with write_hdf5(tmp_path / name, made_by) as file:
            file["x"] = np.arange(10.0)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["made_by"] == repr(made_by)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_sizes_read_well():
    assert [size(n) for n in (12, 1500, 28.8e9, 3e13)] == [
        "12 bytes", "1.5 kB", "28.8 GB", "30.0 TB",
    ]  # fmt: skip


def test_a_place_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    """As root nothing is forbidden, so the system's answer is played."""

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(storage.Path, "replace", refuse)
    with pytest.raises(UserError, match=r"a\.csv: cannot be written \(Permission denied\)"):
        with replacing(tmp_path / "a.csv") as temporary:
            temporary.write_text("1")
    assert os.listdir(tmp_path) == []
