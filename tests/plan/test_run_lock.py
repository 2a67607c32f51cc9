"""The lock of a run: taken once, gone with its process, and no other's notes removed."""

import subprocess
import sys
import time

import pytest

from ntkcond.plan import run_lock
from ntkcond.run.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from ntkcond.plan import run_lock
run_lock.take(Path(sys.argv[1]))
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    """Of a run that was killed: its notes are left."""
    (tmp_path / "locks").mkdir()
    for name in ("0.input.lock", "0.output.lock"):
        (tmp_path / "locks" / name).write_text("results/fig2.pdf")
    return tmp_path


@pytest.fixture
def holder(folder):
    """A process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "taken\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def notes(folder) -> int:
    return len(list((folder / "locks").iterdir()))


def test_while_a_run_lives_a_second_is_refused_and_its_notes_stay(folder, holder):
    with pytest.raises(UserError, match=rf"another Snakemake .* process {holder.pid}\)"):
        run_lock.take(folder)
    assert not run_lock.remove_dead_locks(folder)
    assert notes(folder) == 2


def test_once_it_was_killed_its_notes_go_and_the_lock_can_be_taken(folder, holder):
    holder.kill()
    holder.wait()
    assert run_lock.remove_dead_locks(folder)
    assert notes(folder) == 0
    assert not run_lock.remove_dead_locks(folder)
    run_lock.take(folder)


def test_of_a_run_on_another_machine_nothing_is_removed(folder, holder, monkeypatch):
    holder.kill()
    holder.wait()
    monkeypatch.setattr(run_lock.socket, "gethostname", lambda: "elsewhere")
    assert not run_lock.remove_dead_locks(folder)
    assert notes(folder) == 2


def test_without_a_known_last_run_nothing_is_removed(folder):
    assert not run_lock.remove_dead_locks(folder)
    assert notes(folder) == 2


def test_where_there_are_no_such_locks_snakemakes_own_are_left(folder, monkeypatch):
    def unsupported(*arguments):
        raise OSError(95, "Operation not supported")

    (folder / "running").write_text(f"{run_lock.socket.gethostname()}, process 1")
    monkeypatch.setattr(run_lock.fcntl, "flock", unsupported)
    started = time.monotonic()
    run_lock.take(folder)
    assert not run_lock.remove_dead_locks(folder)
    assert time.monotonic() - started < 5  # nobody waits for a lock
    assert notes(folder) == 2
