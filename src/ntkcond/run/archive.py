"""One file to deposit with a paper: figures, tables, report, provenance, versions, checksums.

    python -m ntkcond.run.archive results build/ntkcond.zip

Unpacked, `sha256sum -c SHA256SUMS` checks it. Of the same results it is the same, byte for byte.
"""

import argparse
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from ntkcond.run.errors import UserError
from ntkcond.run.files import replacing

SHOWN = (".pdf", ".png", ".csv", ".md", ".html")
BESIDE = ("config.yaml", "locked/versions.txt", "CITATION.cff", "LICENSE")
README = """Results of ntkcond, code version {version}.

results/report.html   every figure and table with caption, settings and provenance, on one page
results/*.csv         the numbers drawn in each figure, and the tables
results/provenance    what made each of them: settings, code digests, package versions, inputs
config.yaml           the default settings; provenance has those that were used
versions.txt          locked versions of all packages but torch; provenance has those used
SHA256SUMS            sha256sum -c SHA256SUMS
"""


def archive(results: Path, target: Path, project: Path) -> None:
    """Raises UserError where there is no report or provenance, or no clone."""
    for name in BESIDE:
        if not (project / name).is_file():
            raise UserError(f"{project}: has no {name}. Run this in the clone")
    if target.is_dir():
        raise UserError(f"{target}: is a folder. Name a file, such as ntkcond.zip")
    if not (results / "report.html").is_file():
        raise UserError(f"{results}/report.html: no such file. Run `make report` first")
    files = [
        path for path in results.iterdir() if path.suffix in SHOWN and path.name != "README.md"
    ]
    provenance = list((results / "provenance").glob("*.json"))
    if not provenance:
        raise UserError(f"{results}/provenance: has no files. Run `make report` first")
    files += provenance
    contents = {f"results/{path.relative_to(results)}": path.read_bytes() for path in files}
    contents |= {Path(name).name: (project / name).read_bytes() for name in BESIDE}
    contents["README.txt"] = README.format(version=_version(project)).encode()
    sums = (f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents))
    contents["SHA256SUMS"] = "".join(sums).encode()
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as zipped:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(f"ntkcond/{name}", (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            zipped.writestr(entry, contents[name], zipfile.ZIP_DEFLATED)


def _version(project: Path) -> str:
    """The commit, and whether files differ from it."""
    command = ["git", "-C", str(project), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown (no git)"


def main(given: Iterable[str]) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("results", type=Path)
    options.add_argument("target", type=Path)
    arguments = options.parse_args(list(given))
    try:
        archive(arguments.results, arguments.target, Path.cwd())
    except UserError as error:
        sys.exit(f"ntkcond: {error}")
    print(f"ntkcond: {arguments.target}, {arguments.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
