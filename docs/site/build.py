"""The documentation site of a finished run, without a network: `make docs`.

    .venv/bin/python docs/site/build.py --results results --output build/site

Pages lie in the site as in the repository, so that links between them are the same.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ntkcond.plan.schema import SCHEMA

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHOWN = (
    "*.md", "*.cff", "*.yaml", "LICENSE", "*/README.md", "docs", "config", "profiles",
    "tests/reference",
)  # fmt: skip
OF_RESULTS = ("*.png", "*.pdf", "*.csv", "*.md", "report.html")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=ROOT / "results")
    options.add_argument("--output", type=Path, default=ROOT / "build/site")
    options.add_argument("--links", action="store_true", help="check external links, instead")
    given = options.parse_args()
    if not given.results.is_dir():
        sys.exit(f"ntkcond: {given.results}: no such folder. Run `make figures` first")
    if given.output.exists() and not (given.output / "searchindex.js").is_file():
        sys.exit(f"ntkcond: {given.output}: is there, and is no site. Name another folder")
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        for path in (path for pattern in SHOWN for path in ROOT.glob(pattern)):
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
                copy(path, sources / path.relative_to(ROOT))
        for path in (path for pattern in OF_RESULTS for path in given.results.glob(pattern)):
            copy(path, sources / "results" / path.name)
        (sources / "README.md").rename(sources / "index.md")
        if given.links:
            given.output = sources / "links"
        shutil.rmtree(given.output, ignore_errors=True)
        command = ["-q", "--fail-on-warning", "--keep-going", "-c", HERE, sources, given.output]
        command += ["-b", "linkcheck"] if given.links else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        built = subprocess.run([sys.executable, "-m", "sphinx", *command], env=environment)
    if built.returncode or given.links:
        sys.exit(built.returncode)
    shutil.rmtree(given.output / ".doctrees")
    (given.output / "config.schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    if (given.results / "report.html").is_file():
        shutil.copy(given.results / "report.html", given.output)
    print(f"ntkcond: the site is in {given.output}/index.html")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


if __name__ == "__main__":
    main()
