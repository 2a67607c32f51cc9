"""One Snakemake at a time works in a folder."""

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from ntkcond.pipeline import run_lock
run_lock.take(Path(sys.argv[1]))
run_lock.take(Path(sys.argv[1]))  # of another module in the same Snakefile
print("held", flush=True)
sys.stdin.read()
"""


def taking(path) -> subprocess.Popen:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM, path]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_a_second_process_is_refused_until_the_first_ends_however_it_ends(tmp_path):
    path = tmp_path / ".snakemake/ntkcond/running"
    with taking(path) as first:
        assert first.stdout.readline() == "held\n"
        with taking(path) as second:
            said = second.communicate()[1]
        assert second.returncode != 0
        assert "another Snakemake is at work in this folder (" in said
        assert f"process {first.pid}" in said
        first.kill()
    with taking(path) as third:
        assert third.stdout.readline() == "held\n"
        third.communicate()
