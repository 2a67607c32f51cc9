"""Snakemake's own options keep their meaning; what it cannot see is refused; other workflows may be
beside."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest

from http_server import served
from ntkcond.artefacts.registry import SPECS
from ntkcond.pipeline.workflow import Workflow
from workflow import (
    KERNELS,
    MADE,
    ROOT,
    changed,
    command,
    contents,
    delete,
    planned,
    setting,
    snakemake,
)

KERNEL = "results/kernels/digits/relu/depth2.h5"
KERNEL_JOB = "kernel digits relu depth2"
FIG2 = "results/fig2.pdf"


def reasons(project: Path, *arguments: str) -> dict[str, str]:
    """{message of a job: why it would run} as Snakemake's dry run says it."""
    said = snakemake(project, "-n", *arguments, check=False)
    return dict(re.findall(r"^Job \d+: (.+)\nReason: (.+)$", said.stdout, re.M))


def before_the_jobs(project: Path, *arguments: str) -> list[str]:
    """Lines of a dry run before its list of jobs."""
    said = snakemake(project, "-n", *arguments)
    return [line for line in said.stdout.partition("\nJob ")[0].splitlines() if line]


def test_the_environment_of_another_copy_is_refused(project):
    """With its code, results would be made that this copy's code does not explain."""
    other = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command("-n"), cwd=project, env=other, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"ntkcond: this environment has the code of {ROOT}, not of {project}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_picture_hides_no_other_change(project):
    delete(project, "results/fig4.png")
    assert planned(project, "results/fig4.pdf") == {}
    changed(project, "artefacts/style.py")
    assert planned(project, "results/fig4.pdf") == {"draw_fig4": 1}


def test_touch_accepts_results_as_they_are(project):
    before = contents(project)
    setting(project, "width", 25)
    assert planned(project, FIG2)["kernel"] == KERNELS
    snakemake(project, FIG2, "--touch")
    assert planned(project, FIG2) == {}
    assert contents(project) == before
    setting(project, "width", 26)  # accepted was another change
    assert planned(project, FIG2)["kernel"] == KERNELS


def test_force_options(project):
    assert planned(project, "results/fig4.pdf", "-f") == {"draw_fig4": 1}
    assert planned(project, FIG2, "-F")["kernel"] == KERNELS
    assert planned(project, "-R", "fig4") == {"fig4": 1, "draw_fig4": 1}


def test_until_and_omit_from(project):
    setting(project, "width", 25)
    assert planned(project, FIG2, "--until", "kernel") == {"kernel": KERNELS}
    assert (
        planned(project, FIG2, "--omit-from", "spectrum")
        .keys()
        .isdisjoint({"spectrum", "conditioning", "fig2"})
    )


def test_a_dry_run_says_what_changed_of_settings_code_and_versions(project):
    assert reasons(project) == {}
    setting(project, "width", 25)
    said = reasons(project, FIG2)[KERNEL_JOB]
    assert said.startswith("Params have changed since last execution") and "width=25" in said
    assert ".py" not in said and "numpy" not in said  # code and versions are params of their own
    assert len(before_the_jobs(project, FIG2)) <= 40
    setting(project, "width", 24)
    changed(project, "ntk/empirical.py")
    said = reasons(project, FIG2)
    assert "ntk.empirical " in said[KERNEL_JOB] and "width" not in said[KERNEL_JOB]
    assert said[SPECS["conditioning"].title].startswith("Input files updated by another job")


def test_a_colour_and_a_log_message(project):
    style = project / "src/ntkcond/artefacts/style.py"
    text = style.read_text("utf-8")
    style.write_text(text.replace("#0072B2", "#0072B3"), "utf-8")
    assert "artefacts.style " in reasons(project, "results/fig4.pdf")["draw fig4"]
    style.write_text(text, "utf-8")
    progress = project / "src/ntkcond/run/progress.py"
    progress.write_text(progress.read_text("utf-8").replace("done in", "finished in"), "utf-8")
    assert planned(project) == {}
    metadata = project / "other/matplotlib-99.0.dist-info/METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: matplotlib\nVersion: 99.0\n")
    done = snakemake(project, "-n", "results/fig4.pdf", before=(project / "other",))
    assert "matplotlib 99.0" in done.stdout
    assert planned(project, before=(project / "other",)) == {
        f"draw_{name}": 1 for name, spec in MADE.items() if ".pdf" in spec.files
    }


def test_results_without_snakemakes_metadata_are_refused_where_they_are_out_of_date(project):
    """Where Snakemake alone says that there is nothing to be done."""
    delete(project, ".snakemake")
    assert planned(project) == {}
    before = contents(project)
    setting(project, "width", 25)
    for dry in (["-n"], []):
        refused = snakemake(project, *dry, FIG2, check=False)
        assert refused.returncode == 1
        assert "results are out of date, and Snakemake has no metadata of them" in refused.stderr
        assert "/relu/depth0.h5: width=24 → width=25\n" in refused.stderr
    assert contents(project) == before
    alone = snakemake(project, "-n", KERNEL, check=False)  # asked for by itself
    assert "of each rule one:\n    results/kernels/" in alone.stderr
    rules = re.search(r"To rebuild them, .*: --forcerun (.+)", refused.stderr)[1].split()
    assert {"kernel", "spectrum", "closest_pair"} <= set(rules)
    for others in (["--forcerun", "conditioning"], ["-f"]):
        done = snakemake(project, "-n", FIG2, *others, check=False)
        assert done.returncode == 1 and "depth0.h5: width=24 → width=25" in done.stderr
    assert planned(project, FIG2, "--forcerun", *rules)["kernel"] == KERNELS
    assert planned(project, KERNEL, "--forcerun=kernel")["kernel"] == 1
    assert planned(project, FIG2, "--forcea")["kernel"] == KERNELS
    snakemake(project, FIG2, "--touch", "--forcerun", *rules)
    assert planned(project, FIG2) == {}
    assert contents(project) == before


def test_results_of_0_2_0_are_refused_with_the_command_that_keeps_them(project):
    """Whose metadata have lists of texts."""
    metadata = [p for p in (project / ".snakemake/metadata").rglob("*") if p.is_file()]
    for path in metadata:
        noted = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps({**noted, "params": [repr(["--width=24"])]}), "utf-8")
    before = contents(project)
    refused = snakemake(project, "-n", FIG2, check=False)
    assert refused.returncode == 1 and "relu/depth0.h5: made by ntkcond 0.2.0\n" in refused.stderr
    keep = re.search(r"To keep them as they are: (.+)", refused.stderr)[1].split()
    snakemake(project, FIG2, *keep)
    assert planned(project, FIG2) == {} and contents(project) == before


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("spectrum", "spectrum"),
        ("small_spectrum", "spectrum"),
        ("fig_spectrum", "fig_spectrum"),
        ("small_fig_spectrum", "fig_spectrum"),
        ("scalapack_spectrum", "scalapack_spectrum"),
        ("draw_fig2", "draw_fig2"),
        ("results/fig2.pdf", None),
    ],
)
def test_a_rule_that_is_forced_is_no_other_whose_name_is_a_part_of_its(given, rule):
    line = SimpleNamespace(forcerun=[given])
    ours = SimpleNamespace(command_line=line, drawings=["draw_fig2"])
    assert Workflow._forced.func(ours) == ({rule} if rule else set())


def test_a_table_that_comes_out_as_it_was_makes_nothing_of_it_out_of_date(project):
    """Snakemake judges a newer input by its content."""
    table, drawn = project / "results/conditioning.csv", "results/fig_depth_steps.pdf"
    snakemake(project, drawn)
    before = table.stat().st_mtime_ns, table.read_bytes()
    changed(project, "ntk/empirical.py")
    assert snakemake(project, "results/conditioning.csv").returncode == 0
    assert table.stat().st_mtime_ns > before[0] and table.read_bytes() == before[1]
    assert planned(project, drawn) == {}


def test_an_edited_table_is_not_drawn(project):
    table = project / "results/fig4.csv"
    table.write_text(table.read_text("utf-8") + "\n", "utf-8")
    done = snakemake(project, "results/fig4.pdf", check=False)
    assert done.returncode != 0
    assert "results/fig4.csv: was changed since its rule wrote it. Delete it" in done.stderr


def test_code_that_is_edited_during_a_run_makes_no_file(project):
    """Snakemake notes the digests that it read at the start."""
    sources = sorted((project / "src").rglob("*.py"))
    later = time.time() + 600
    for path in sources:
        os.utime(path, (later, later))
    delete(project, "results/fig4.csv", "results/fig4.pdf")
    done = snakemake(project, "results/fig4.pdf", check=False)
    assert done.returncode != 0
    assert "was changed after the start of this run. Run the same command again" in done.stderr
    assert not (project / "results/fig4.csv").exists()


MODULE = """
module ntkcond:
    snakefile: "{root}/workflow/Snakefile"

use rule * from ntkcond

rule mine:
    default_target: True
    input: "results/fig4.csv", "results/fig1.csv"
    output: "mine.txt"
    shell: "cat {{input}} > {{output}}"

rule dataset_of_mine:  # begins like a rule of ours
    output: "dataset.txt"
    shell: "touch {{output}}"
"""


@pytest.mark.parametrize("rules", ["mine", "dataset_of_mine"])
def test_another_workflow_can_use_this_one_as_a_module(tmp_path, rules):
    (tmp_path / "Snakefile").write_text(MODULE.format(root=ROOT), "utf-8")
    command = [sys.executable, "-m", "snakemake", "-j2", rules]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if rules == "mine":
        assert (tmp_path / "mine.txt").read_bytes().startswith(b"theta_deg,g_deg")
        again = subprocess.run(
            [*command, "-n"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert "Nothing to be done" in again.stdout + again.stderr


def test_a_job_that_fails_in_a_module_is_named_last_with_its_error(tmp_path):
    text = of_this_clone(OWN_DATA)
    (tmp_path / "Snakefile").write_text(text, "utf-8")
    np.save(tmp_path / "mine.npy", np.full((40, 6), np.nan))
    command = [sys.executable, "-m", "snakemake", "-j2", "ntk/results/fig2.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    *_, resumes, error = done.stderr.splitlines()
    assert resumes.startswith("ntkcond: not finished. The same command resumes: ")
    assert error.startswith("ntkcond: ntk/results/logs/dataset/mine.log: ")


PAGE = (ROOT / "docs/extending.md").read_text("utf-8").partition("## In a workflow of your own")[2]
OWN_DATA = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]


def of_this_clone(text: str, place: Path | str = ROOT) -> str:
    assert "/path/to/ntkcond" in text
    return text.replace("/path/to/ntkcond", str(place))


def test_another_workflow_draws_figure_2_of_its_own_data(tmp_path):
    """With settings of its own over the default ones, which --config does not reach."""
    text = of_this_clone(OWN_DATA)
    assert len(text.splitlines()) <= 12
    (tmp_path / "Snakefile").write_text(text, "utf-8")
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).standard_normal((40, 6)))
    command = [sys.executable, "-m", "snakemake", "-j2", "--config", "samples=9"]

    def run(*options: str) -> str:
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run()
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    numbers = pd.read_csv(tmp_path / "ntk/results/fig2.csv")
    assert set(numbers.dataset) == {"mine"}
    assert set(numbers.width[numbers.depth > 0]) == {32}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        ".snakemake", "ntk"
    }  # fmt: skip
    assert "Nothing to be done" in run()
    (tmp_path / "Snakefile").write_text(text.replace('"width": 32', '"width": 40'), "utf-8")
    assert "width=40" in run("-n")
    np.save(tmp_path / "mine.npy", np.random.default_rng(1).standard_normal((40, 6)))
    assert "mine.npy" in run("-n")
    run("--touch")
    assert "Nothing to be done" in run()


@pytest.mark.parametrize(
    ("setting", "said"),
    [('"widht": 3', "ntkcond: widht: no such setting"), ('"width": "wide"', "ntkcond: width: ")],
)
def test_a_wrong_setting_of_a_module_is_named(tmp_path, setting, said):
    text = of_this_clone(OWN_DATA).replace('"width": 32', setting)
    (tmp_path / "Snakefile").write_text(text, "utf-8")
    np.save(tmp_path / "mine.npy", np.eye(40, 6))
    command = [sys.executable, "-m", "snakemake", "-n"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_snakefile_from_a_server_makes_results(tmp_path):
    with served(ROOT) as address:
        text = of_this_clone(OWN_DATA, address)
        (tmp_path / "Snakefile").write_text(text, "utf-8")
        np.save(tmp_path / "mine.npy", np.random.default_rng(0).standard_normal((40, 6)))
        command = [sys.executable, "-m", "snakemake", "-j2", "ntk/results/datasets/mine.h5"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with h5py.File(tmp_path / "ntk/results/datasets/mine.h5") as file:
        assert file["x"].shape == (40, 6)


def test_rules_of_another_version_than_the_package_are_refused(tmp_path):
    rules = tmp_path / "workflow"
    shutil.copytree(ROOT / "workflow", rules)
    snakefile = rules / "Snakefile"
    text = snakefile.read_text("utf-8")
    version = importlib.metadata.version("ntkcond")
    assert f'VERSION = "{version}"' in text
    snakefile.write_text(text.replace(version, "9.8.7"), "utf-8")
    command = [sys.executable, "-m", "snakemake", "-n", "-s", "workflow/Snakefile"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = f"these rules are of ntkcond 9.8.7, and this environment has ntkcond {version}."
    assert f"ntkcond: {said}" in done.stderr
    assert "Traceback" not in done.stderr


DEPLOYED = """
configfile: "config/config.yaml"

module ntkcond:
    snakefile: gitfile("{repository}", path="workflow/Snakefile", tag="v0")
    config: config

use rule * from ntkcond
"""


def test_the_layout_of_snakedeploy(tmp_path):
    """As `snakedeploy deploy-workflow` writes it, from a repository's tag."""
    origin, mine = tmp_path / "origin", tmp_path / "mine"
    shutil.copytree(ROOT / "workflow", origin / "workflow")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(origin)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["tag", "v0"]):
        subprocess.run([*git, *words], check=True)
    (mine / "workflow").mkdir(parents=True)
    (mine / "config").mkdir()
    text = DEPLOYED.format(repository=origin)
    (mine / "workflow/Snakefile").write_text(text, "utf-8")
    settings = (
        "{width: 16, depths: [1], activations: [relu], seeds: [1], figures: {fig2: [synthetic]}}"
    )
    (mine / "config/config.yaml").write_text(settings, "utf-8")
    cache = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(module: str, *words: str) -> str:
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(
            command, cwd=mine, env=cache, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("snakemake", "-j2", "results/fig2.csv")
    numbers = pd.read_csv(mine / "results/fig2.csv")
    assert set(numbers.width[numbers.depth > 0]) == {16}
    assert "Nothing to be done" in run("snakemake", "-n", "results/fig2.csv")
