"""`snakemake --lint` and snakefmt: clean. Docstrings that one can read."""

import ast
import subprocess
import sys

from workflow import ROOT


def test_snakemake_finds_nothing():
    lint = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "your workflow is in a good condition" in done.stdout + done.stderr


def test_rules_are_formatted():
    check = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_docstrings_begin_with_what_they_are_of():
    """Not "Of each sample", which leaves the noun to the name."""
    wrong = []
    for path in (ROOT / "src/ntkcond").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                words = ast.get_docstring(node) or ""
                if words.startswith(("Of ", "Those of ", "That of ")):
                    wrong.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert wrong == []
