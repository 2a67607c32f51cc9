"""The library as others install it: with the oldest NumPy and SciPy that it allows, and the newest.

    .venv/bin/python tests/versions.py
    .venv/bin/python tests/versions.py --torch torch==2.6.0

For each, runs/versions is a fresh environment. There one line must run with the wheel alone. Then
the library's tests run, with the packages that they need.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHEELS, PLACE = ROOT / "runs/wheel", ROOT / "runs/versions"
PYTHON = PLACE / "bin/python"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ONE_LINE = (
    "import torch, ntkcond; "
    "print(ntkcond.condition_number(torch.nn.Linear(9, 1), torch.randn(5, 9)))"
)
VERSIONS = (
    "from importlib.metadata import version; "
    "print(*(f'{name} {version(name)}' for name in ('numpy', 'scipy', 'torch')))"
)
NEEDED = ["pytest-xdist", "filelock", "mpmath", "pyyaml", "h5py", "pandas", "psutil"]
NEEDED += ["threadpoolctl"]
TESTS = ["tests/ntk", "tests/library", "tests/arrays", "tests/networks"]


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Runs a command; ends the program if it fails."""
    if status := subprocess.run(command, cwd=cwd).returncode:
        sys.exit(status)


def oldest() -> list[str]:
    """The lower bounds of pyproject.toml: numpy==2.0, …"""
    bounds = (re.match(r"(numpy|scipy)>=([\d.]+)", line) for line in PROJECT["dependencies"])
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


def wheel() -> Path:
    """Builds the library's wheel, with nothing left of an earlier build."""
    for left in [*(ROOT / "build").glob("bdist.*"), ROOT / "build/lib", WHEELS]:
        shutil.rmtree(left, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(*pip, "--wheel-dir", WHEELS, ROOT)
    (built,) = WHEELS.glob("ntkcond-*.whl")
    return built


def check(pins: list[str], torch: str, built: Path) -> None:
    """Installs and tests the wheel, with these versions of NumPy and SciPy."""
    install = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins]
    run(sys.executable, "-m", "venv", "--clear", PLACE)
    run(*install, torch, built)
    run(PYTHON, "-c", ONE_LINE, cwd=ROOT / "runs")
    run(*install, *NEEDED)
    run(PYTHON, "-c", VERSIONS)
    run(PYTHON, "-m", "pytest", "--numprocesses", "auto", "-p", "no:cacheprovider", *TESTS)


def main() -> None:
    exact = next(p for p in PROJECT["optional-dependencies"]["workflow"] if p.startswith("torch=="))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", default=exact, help=f"the torch to install: {exact}")
    options = parser.parse_args()
    built = wheel()
    for pins in (oldest(), ["numpy", "scipy"]):
        check(pins, options.torch, built)


if __name__ == "__main__":
    main()
