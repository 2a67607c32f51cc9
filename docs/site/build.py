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

from ntkcond.artefacts import claims, output
from ntkcond.pipeline.schema import SCHEMA

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHOWN = (
    "*.md", "*.cff", "*.yaml", "LICENSE", "*/README.md", "docs", "config", "studies", "profiles",
    "tests/reference", "tests/*.md",
)  # fmt: skip
OF_RESULTS = ("*.png", "*.pdf", "*.csv", "*.md", "claims.html", "report.html")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--results", type=Path, default=ROOT / "results")
    options.add_argument("--output", type=Path, default=ROOT / "build/site")
    options.add_argument("--links", action="store_true", help="check external links, instead")
    arguments = options.parse_args()
    if not arguments.results.is_dir():
        sys.exit(f"ntkcond: {arguments.results}: no such folder. Run `make figures` first")
    if arguments.output.exists() and not (arguments.output / "searchindex.js").is_file():
        sys.exit(f"ntkcond: {arguments.output}: exists, and is no site. Name another folder")
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        for path in (path for pattern in SHOWN for path in ROOT.glob(pattern)):
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
                copy(path, sources / path.relative_to(ROOT))
        for path in (path for pattern in OF_RESULTS for path in arguments.results.glob(pattern)):
            copy(path, sources / "results" / path.name)
        for path in sources.glob("studies/*/claims.csv"):  # git keeps the table, the site shows it
            path.with_suffix(".md").write_text(claims.markdown(output.read(path)), "utf-8")
        (sources / "README.md").rename(sources / "index.md")
        if arguments.links:
            arguments.output = sources / "links"
        shutil.rmtree(arguments.output, ignore_errors=True)
        command = ["-q", "--fail-on-warning", "--keep-going", "-c", HERE, sources, arguments.output]
        command += ["-b", "linkcheck"] if arguments.links else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        built = subprocess.run([sys.executable, "-m", "sphinx", *command], env=environment)
    if built.returncode or arguments.links:
        sys.exit(built.returncode)
    shutil.rmtree(arguments.output / ".doctrees")
    (arguments.output / "config.schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    if (arguments.results / "report.html").is_file():
        shutil.copy(arguments.results / "report.html", arguments.output)
    print(f"ntkcond: the site is in {arguments.output}/index.html")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


if __name__ == "__main__":
    main()
