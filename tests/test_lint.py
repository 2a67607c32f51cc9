"""`snakemake --lint` and snakefmt: clean."""

import subprocess
import sys

from workflow import ROOT


def test_snakemake_finds_nothing():
    lint = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "your workflow is in a good condition" in done.stdout + done.stderr


def test_rules_are_formatted():
    check = [
        sys.executable,
        "-m",
        "snakefmt",
        "--check",
        "Snakefile",
        "workflow",
        "studies/Snakefile",
    ]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
