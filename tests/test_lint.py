"""`snakemake --lint` and snakefmt: clean, but for what is justified here."""

import re
import subprocess
import sys

from workflow import ROOT

JUSTIFIED = {
    "Specify a conda environment": "one environment for all rules, pinned in pyproject.toml",
}


def test_snakemake_finds_nothing_unjustified():
    lint = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^    \* (.+)$", done.stdout + done.stderr, re.M)
    assert found  # or lint itself says it otherwise by now
    assert [line for line in found if not line.startswith(tuple(JUSTIFIED))] == []
    assert all(any(line.startswith(words) for line in found) for words in JUSTIFIED)


def test_rules_are_formatted():
    check = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
