"""What steps have in common: progress, plain errors, memory."""

import logging
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from ntkcond.run import machine, progress
from ntkcond.run.errors import UserError
from ntkcond.run.need import Need
from ntkcond.steps import spectrum
from workflow import at_the_keyboard


def test_progress_says_how_long_it_will_take_even_if_the_first_item_is_slow(monkeypatch, caplog):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    caplog.set_level(logging.INFO)

    def items():
        for item in range(3):
            time.sleep(0.02)
            yield item

    assert list(progress.progress(items(), 3, "kernel")) == [0, 1, 2]
    assert re.fullmatch(r"kernel: 1 of 3, about \d+ s left", caplog.messages[0])
    assert caplog.messages[-1].startswith("kernel: done in")


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        ("UserError('width: 0 is too small')", 1, "ntkcond: width: 0 is too small"),
        ("MemoryError()", 1, "ntkcond: out of memory. Lower block"),
        ("RuntimeError('DefaultCPUAllocator: can\\'t allocate memory')", 1, "out of memory"),
        ("torch.OutOfMemoryError()", 1, "ntkcond: out of memory"),
        ("KeyError('a bug')", 2, ", line 6: KeyError: 'a bug'. Correct this line if it is yours"),
    ],
)
def test_what_went_wrong_is_on_the_terminal_and_in_the_log(tmp_path, raised, status, said):
    script = f"""
import torch
from ntkcond.settings import command
from ntkcond.run.errors import UserError
def main(arguments):
    raise {raised}
command.run(main, command.parser("A step."))
"""
    log = tmp_path / "logs" / "step.log"
    done = subprocess.run(
        [sys.executable, "-c", script, "--output", tmp_path / "x", "--log", log],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert said in done.stderr
    assert said in log.read_text("utf-8")
    assert len(done.stderr.splitlines()) == 1
    assert ("Traceback" in log.read_text("utf-8")) == (status == 2)


def test_an_error_in_a_package_is_said_with_the_line_of_ours_that_calls_it(tmp_path):
    """Such as of a user's own activation; and all of it where no log keeps it."""
    activation = tmp_path / "own.py"
    activation.write_text("import json\n\ndef value(z):\n    return json.loads(z)\n", "utf-8")
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import own
from ntkcond.settings import command
command.run(lambda arguments: own.value("x"), command.parser("A step."))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "--output", tmp_path / "x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, *rest = done.stderr.splitlines()
    assert first.startswith(f"ntkcond: {activation}, line 4: json.decoder.JSONDecodeError: Expect")
    assert "Traceback (most recent call last):" in rest


def test_ctrl_c_at_any_moment_of_a_start_ends_a_job_without_a_traceback_of_ours():
    """Python itself, which loads before any code of ours, may write one; so may the first line of
    ours, which changes that."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", ""], check=True)
    alone = time.monotonic() - started
    pauses = [*np.linspace(0, 2 * alone, 40), *np.linspace(3 * alone, 0.5, 5)]
    interrupted = 0
    for pause in pauses:
        job = subprocess.Popen(
            [sys.executable, "-m", "ntkcond.steps.kernel"], stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=at_the_keyboard,
        )  # fmt: skip
        time.sleep(pause)
        os.killpg(job.pid, signal.SIGINT)
        said = job.communicate()[1]
        ours = re.findall(r"ntkcond/([\w/]+\.py)", said.replace(os.sep, "/"))
        assert set(ours) <= {"__init__.py"} or "arguments are required" in said
        interrupted += job.returncode == -signal.SIGINT
    assert interrupted > 20


def test_too_little_memory_is_said_before_the_work():
    with pytest.raises(UserError, match=r"NTK of 10000000 samples needs 400\.\d TB of memory, .*"
                       r"are free\. Lower block"):  # fmt: skip
        machine.require_memory(spectrum.need(10_000_000, 10_000_000, 10, 3, 512))
    machine.require_memory(Need("nothing", 1, ""))


@pytest.mark.parametrize(
    ("line", "top", "limit_file", "used_file", "cached", "unlimited"),
    [
        ("0::/job/step", ".", "memory.max", "memory.current", "inactive_file", "max"),
        ("4:cpu,memory:/job/step", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
         "total_inactive_file", "9223372036854771712"),
    ],
)  # fmt: skip
def test_memory_limits_of_control_groups_count_without_what_they_cache(
    tmp_path, line, top, limit_file, used_file, cached, unlimited
):
    own = tmp_path / "cgroup"
    own.write_text(f"9:name=systemd:/\n{line}\n3:cpuset:/\n")
    for name, limit in (("job", "1000"), ("job/step", unlimited)):
        group = tmp_path / "groups" / top / name
        group.mkdir(parents=True)
        (group / limit_file).write_text(limit)
        (group / used_file).write_text("700")
        (group / "memory.stat").write_text(f"anon 300\n{cached} 400\n")
    assert machine._left_in_group(tmp_path / "groups", own) == 1000 - 700 + 400
    assert machine._left_in_group(tmp_path / "groups", tmp_path / "absent") == float("inf")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_asked_for_and_absent_is_said():
    assert machine.resolve_device("auto") == "cpu"
    with pytest.raises(UserError, match=r"device: cuda was asked for.*Set device: auto"):
        machine.resolve_device("cuda")
