"""Snakemake's own options keep their meaning; reasons are said in words; other workflows may be
beside.

These tests also hold what `ntkcond.plan.workflow` takes from Snakemake beyond its documentation.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from http_server import served
from test_caching import code, delete, in_place_of, setting, version, without_provenance
from workflow import KERNELS, ROOT, command, contents, environment, planned, snakemake

KERNEL = "results/kernels/digits/relu/depth2.h5"
FIG2 = "results/fig2.pdf"


def reasons(project: Path, *arguments: str) -> dict[str, str]:
    """{jobs: why} as a dry run says it."""
    output = snakemake(project, "-n", *arguments)
    text = output.stdout + output.stderr
    lines = text.partition("Why these jobs run:\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^    (.+?): (.+)$", lines, re.M))


def test_rerun_triggers_choose_what_counts(project):
    setting("width", 25)(project)
    assert planned(project, FIG2, "--rerun-triggers", "mtime") == {}
    assert planned(project, FIG2, "--rerun-triggers", "mtime", "code", "input") == {}
    assert planned(project, FIG2, "--rerun-triggers", "params")["kernel"] == KERNELS


def test_results_of_another_numpy_can_be_kept(project):
    other = version("numpy")(project)
    assert planned(project, **other)["sgd"] == 2
    kept = ("--rerun-triggers", "mtime", "params", "input", "code")
    assert planned(project, *kept, **other) == {}


def test_code_is_a_trigger_of_its_own(project):
    code("ntk/empirical.py")(project)
    assert planned(project, FIG2, "--rerun-triggers", "mtime", "params", "input") == {}
    assert planned(project, FIG2, "--rerun-triggers", "code")["kernel"] == KERNELS


def test_results_of_another_numpy_are_kept_without_kernels_too(project):
    kept = ("--rerun-triggers", "mtime", "params", "input", "code")
    delete("results/kernels")(project)
    other = version("numpy")(project)
    assert planned(project, FIG2, *kept, **other) == {}
    setting("datasets.digits.block", 40)(project)  # which only kernels depend on
    assert planned(project, FIG2, *kept, **other)["spectrum"] == KERNELS // 2


def test_own_data_count_with_restricted_triggers(project):
    (project / "raw").mkdir()
    np.save(project / "raw/mine.npy", np.eye(6))
    setting("datasets.mine", {"file": "raw/mine.npy"})(project)
    target = "results/datasets/mine.h5"
    snakemake(project, target)
    np.save(project / "raw/mine.npy", np.eye(7))
    os.utime(project / "raw/mine.npy", (0, 0))
    assert planned(project, target, "--rerun-triggers", "input") == {"dataset": 1}


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
    delete("results/fig4.png")(project)
    assert planned(project, "results/fig4.pdf") == {}
    code("artefacts/style.py")(project)
    assert planned(project, "results/fig4.pdf") == {"fig4": 1}


def test_touch_accepts_results_as_they_are(project):
    before = contents(project)
    setting("width", 25)(project)
    assert planned(project, FIG2)["kernel"] == KERNELS
    snakemake(project, "--touch")
    assert planned(project) == {}
    assert contents(project) == before
    setting("width", 26)(project)  # accepted was another change
    assert planned(project, FIG2)["kernel"] == KERNELS
    setting("width", 25)(project)
    in_place_of(KERNEL, without_provenance)(project)  # and another file
    assert planned(project, FIG2)["kernel"] == 1


def test_force_options(project):
    assert planned(project, "results/fig4.pdf", "-f") == {"fig4": 1}
    assert planned(project, FIG2, "-F")["kernel"] == KERNELS
    assert planned(project, "-R", "fig4") == {"fig4": 1, "costs": 1}


def test_until_and_omit_from(project):
    setting("width", 25)(project)
    assert planned(project, FIG2, "--until", "kernel") == {"kernel": KERNELS}
    assert (
        planned(project, FIG2, "--omit-from", "spectrum")
        .keys()
        .isdisjoint({"spectrum", "conditioning", "fig2"})
    )


def test_a_dry_run_says_why_in_words(project):
    assert reasons(project) == {}
    code("ntk/empirical.py")(project)
    said = reasons(project, FIG2)
    assert said[f"kernel × {KERNELS}"] == "code changed in ntk/empirical.py"
    assert said["conditioning"] == "input rebuilt: spectrum"


def test_a_colour_a_width_and_a_log_message(project):
    style = project / "src/ntkcond/artefacts/style.py"
    text = style.read_text("utf-8")
    style.write_text(text.replace("#0072B2", "#0072B3"), "utf-8")
    assert reasons(project, "results/fig4.pdf") == {"fig4": "code changed in artefacts/style.py"}
    style.write_text(text, "utf-8")
    setting("width", 25)(project)
    said = reasons(project, FIG2)
    assert said[f"kernel × {KERNELS}"] == "width 24 → 25"
    setting("width", 24)(project)
    progress = project / "src/ntkcond/run/progress.py"
    progress.write_text(progress.read_text("utf-8").replace("done in", "finished in"), "utf-8")
    assert planned(project) == {}


def test_other_reasons(project):
    delete("results/fig1.png")(project)
    assert reasons(project, "results/fig1.png") == {"fig1": "not built yet"}
    assert reasons(project, "results/fig4.pdf", "-f") == {"fig4": "forced by the command line"}
    in_place_of(KERNEL, without_provenance)(project)
    said = reasons(project, FIG2)
    assert said["kernel"] == "no provenance in the file: another program or version wrote it"
    other = version("matplotlib")(project)
    done = snakemake(project, "-n", "results/fig4.pdf", **other)
    assert "fig4: matplotlib 3." in done.stdout + done.stderr


def test_the_start_of_a_run_says_why_too(project):
    setting("theory.depths", [1, 3])(project)
    done = snakemake(project, "results/fig1.pdf")
    assert "fig1: depths [1, 2, 5, 10, 100, 1000] → [1, 3]" in done.stdout + done.stderr


def ask(what: str, project: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", f"ntkcond.{what}", *arguments, "--configfile", "small.yaml"]
    return subprocess.run(
        command, cwd=project, env=environment(project), capture_output=True, text=True, check=False
    )


def test_why_answers_for_one_file(project):
    fresh = ask("why", project, FIG2)
    assert fresh.returncode == 0, fresh.stderr
    assert fresh.stdout.startswith("results/fig2.pdf is up to date. It was made with:")
    for part in (
        "step: ntkcond.steps.artefact",
        "results/conditioning.csv",
        "artefacts.fig2",
        "matplotlib 3.",
    ):
        assert part in fresh.stdout
    stale = ask("why", project, FIG2, "--config", "width=25")
    assert stale.returncode == 1
    assert f"    kernel × {KERNELS}: width 24 → 25" in stale.stdout
    absent = ask("why", project, "results/kernels/synthetic/relu/depth7.h5")
    assert "does not exist: snakemake results/kernels" in absent.stdout
    for arguments, message in (
        (["results/fig9.pdf"], "no rule makes this file"),
        (["results/datasets/unknown.h5"], "no rule makes this file"),
        (["runs/a/results/fig2.pdf"], "Use --directory runs/a results/fig2.pdf"),
        ([FIG2, "--config", "widht=3"], "widht: no such setting"),
        ([FIG2, "--config", "depths=[0,"], "--config depths: not valid YAML"),
        ([FIG2, "--directory", "absent"], "absent: no such folder"),
    ):
        refused = ask("why", project, *arguments)
        assert refused.returncode == 1
        assert message in refused.stderr and "Traceback" not in refused.stderr


def test_a_changed_raw_file_is_named(project):
    own = project / "mine.npy"
    np.save(own, np.eye(6))
    setting("datasets.mine", {"file": "mine.npy"})(project)
    snakemake(project, "results/datasets/mine.h5")
    np.save(own, np.eye(7))
    said = reasons(project, "results/datasets/mine.h5")
    assert said == {"dataset": "changed input mine.npy"}


def test_records_say_what_made_a_file(finished):
    with h5py.File(finished / KERNEL) as file:
        record = file.attrs["provenance"]
    for part in ('"seeds": [1, 32]', '"width": 24', '"torch": "2.13.0"', '"ntk.empirical"'):
        assert part in record


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


PAGE = (ROOT / "docs/extending.md").read_text("utf-8").partition("## In a workflow of your own")[2]
OWN_DATA = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]


def of_this_clone(text: str, place: Path | str = ROOT) -> str:
    assert "/path/to/ntkcond" in text
    return text.replace("/path/to/ntkcond", str(place))


@pytest.mark.parametrize("prefix", ["ntk", ""])
def test_another_workflow_draws_figure_2_of_its_own_data(tmp_path, prefix):
    """With settings of its own over the default ones, which --config does not reach."""
    text = of_this_clone(OWN_DATA)
    assert len(text.splitlines()) <= 12
    if not prefix:
        text = text.replace('    prefix: "ntk"\n', "").replace("ntk/results", "results")
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
    numbers = pd.read_csv(tmp_path / prefix / "results/fig2.csv")
    assert set(numbers.dataset) == {"mine"}
    assert set(numbers.width[numbers.depth > 0]) == {32}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        ".snakemake", prefix or "results"
    }  # fmt: skip
    assert "Nothing to be done" in run()
    (tmp_path / "Snakefile").write_text(text.replace('"width": 32', '"width": 40'), "utf-8")
    assert "width 32 → 40" in run("-n")
    np.save(tmp_path / "mine.npy", np.random.default_rng(1).standard_normal((40, 6)))
    assert "changed input mine.npy" in run("-n")
    run("--touch")
    assert "Nothing to be done" in run()
    run("--report", "report.html")
    assert (tmp_path / "report.html").is_file()


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


def test_a_snakefile_from_a_server_makes_the_results_of_the_package(tmp_path):
    with served(ROOT) as address:
        text = of_this_clone(OWN_DATA, address)
        (tmp_path / "Snakefile").write_text(text, "utf-8")
        np.save(tmp_path / "mine.npy", np.random.default_rng(0).standard_normal((40, 6)))
        command = [sys.executable, "-m", "snakemake", "-j2"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


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
    """As `snakedeploy deploy-workflow` writes it, from a repository's tag; and what `why` says."""
    origin, mine = tmp_path / "origin", tmp_path / "mine"
    shutil.copytree(ROOT / "workflow", origin / "workflow")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(origin)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["tag", "v0"]):
        subprocess.run([*git, *words], check=True)
    (mine / "workflow").mkdir(parents=True)
    (mine / "config").mkdir()
    text = DEPLOYED.format(repository=origin)
    (mine / "workflow/Snakefile").write_text(text, "utf-8")
    settings = "{width: 16, depths: [0, 1], seeds: [1], figures: {fig2: [synthetic]}}"
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
    fresh = run("ntkcond.why", "results/fig2.csv", "--configfile", "config/config.yaml")
    assert "results/fig2.csv is up to date" in fresh


def test_predict_counts_the_jobs_that_would_run(project):
    def predicted(*arguments: str) -> dict[str, list[str]]:
        done = ask("predict", project, FIG2, *arguments)
        assert done.returncode == 0, done.stderr
        table = done.stdout.partition("longest job\n")[2].splitlines()
        return {words[0]: words for line in table if (words := line.split())}

    assert ask("predict", project, FIG2).stdout == f"{FIG2} is up to date: nothing would run\n"
    for setting_ in ("width=25", "depths=[0, 3]"):
        rows = predicted("--config", setting_)
        jobs = {rule: int(words[1]) for rule, words in rows.items() if rule != "in"}
        assert jobs == planned(project, FIG2, "--config", setting_)
        assert int(rows["in"][2]) == sum(jobs.values())
    delete(KERNEL.replace("kernels", "spectra"), "results/conditioning.csv", FIG2)(project)
    assert predicted()["spectrum"][:2] == ["spectrum", "1"]
    assert {rule for rule in predicted() if rule != "in"} == planned(project, FIG2).keys()
    wrong = ask("predict", project, FIG2, "--config", "widht=3")
    assert wrong.stderr.startswith("ntkcond: widht: no such setting")
