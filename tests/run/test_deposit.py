"""The archive to deposit with a paper."""

import shutil
import subprocess
import sys
import zipfile

from workflow import MADE, ROOT

COMMAND = [sys.executable, "-m", "ntkcond.run.archive"]


def test_the_archive_has_every_artefact_and_its_checksums_hold(finished, tmp_path):
    results = shutil.copytree(finished / "results", tmp_path / "results")
    (results / "report.html").write_text("a report", "utf-8")
    for name in ("one.zip", "two.zip"):
        subprocess.run([*COMMAND, results, tmp_path / name], cwd=ROOT, check=True)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    zipfile.ZipFile(tmp_path / "one.zip").extractall(tmp_path)
    unpacked = tmp_path / "ntkcond"
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=unpacked, check=True)
    files = {f"results/{name}{suffix}" for name, spec in MADE.items() for suffix in spec.files}
    files |= {f"results/provenance/{name}.json" for name in MADE} | {"results/report.html"}
    found = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    others = {"README.txt", "SHA256SUMS", "config.yaml", "versions.txt", "CITATION.cff", "LICENSE"}
    assert found == files | others


def test_without_a_report_nothing_is_written(tmp_path):
    (tmp_path / "results").mkdir()
    command = [*COMMAND, tmp_path / "results", tmp_path / "new.zip"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == (
        f"ntkcond: {tmp_path}/results/report.html: no such file. Run `make report` first\n"
    )
    assert not (tmp_path / "new.zip").exists()
