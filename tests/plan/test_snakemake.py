"""Snakemake's own options keep their meaning; what it cannot see is refused; other workflows may be
beside."""

import importlib.metadata
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
from ntkcond.plan.workflow import Plan
from test_caching import code, delete, setting, version
from workflow import (
    KERNELS,
    ROOT,
    SMALL,
    command,
    contents,
    environment,
    planned,
    snakemake,
    write_config,
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
    delete("results/fig4.png")(project)
    assert planned(project, "results/fig4.pdf") == {}
    code("artefacts/style.py")(project)
    assert planned(project, "results/fig4.pdf") == {"draw_fig4": 1}


def test_touch_accepts_results_as_they_are(project):
    before = contents(project)
    setting("width", 25)(project)
    assert planned(project, FIG2)["kernel"] == KERNELS
    snakemake(project, "--touch")
    assert planned(project) == {}
    assert contents(project) == before
    setting("width", 26)(project)  # accepted was another change
    assert planned(project, FIG2)["kernel"] == KERNELS


def test_force_options(project):
    assert planned(project, "results/fig4.pdf", "-f") == {"draw_fig4": 1}
    assert planned(project, FIG2, "-F")["kernel"] == KERNELS
    assert planned(project, "-R", "fig4") == {"fig4": 1, "draw_fig4": 1, "costs": 1}


def test_until_and_omit_from(project):
    setting("width", 25)(project)
    assert planned(project, FIG2, "--until", "kernel") == {"kernel": KERNELS}
    assert (
        planned(project, FIG2, "--omit-from", "spectrum")
        .keys()
        .isdisjoint({"spectrum", "conditioning", "fig2"})
    )


def test_a_dry_run_says_what_changed_of_settings_code_and_versions(project):
    assert reasons(project) == {}
    setting("width", 25)(project)
    said = reasons(project, FIG2)[KERNEL_JOB]
    assert said.startswith("Params have changed since last execution") and "--width=25" in said
    assert ".py" not in said and "numpy" not in said  # code and versions are params of their own
    assert len(before_the_jobs(project, FIG2)) <= 40
    setting("width", 24)(project)
    code("ntk/empirical.py")(project)
    said = reasons(project, FIG2)
    assert "ntk.empirical " in said[KERNEL_JOB] and "--width" not in said[KERNEL_JOB]
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
    other = version("matplotlib")(project)
    done = snakemake(project, "-n", "results/fig4.pdf", **other)
    assert "matplotlib 99.0" in done.stdout


def test_results_without_snakemakes_metadata_are_refused_where_they_are_out_of_date(project):
    """Where Snakemake alone says that there is nothing to be done."""
    delete(".snakemake")(project)
    assert planned(project) == {}
    setting("width", 25)(project)
    refused = snakemake(project, "-n", FIG2, check=False)
    assert refused.returncode != 0
    assert "results are out of date, and Snakemake has no metadata of them" in refused.stderr
    assert "\n    results/kernels/synthetic/relu/depth0.h5: width 24 → 25\n" in refused.stderr
    alone = snakemake(project, "-n", KERNEL, check=False)  # asked for by itself
    assert "of each rule one:\n    results/kernels/" in alone.stderr
    rules = re.search(r"To rebuild them, .*: --forcerun (.+)", refused.stderr)[1].split()
    for others in (["--forcerun", "conditioning"], ["fig2"], ["-f"]):
        done = snakemake(project, "-n", FIG2, *others, check=False)
        assert done.returncode != 0
        assert "kernels/synthetic/relu/depth0.h5: width 24 → 25" in done.stderr
    assert planned(project, FIG2, "--forcerun", *rules)["kernel"] == KERNELS
    assert planned(project, KERNEL, "--forcerun=kernel")["kernel"] == 1
    assert planned(project, FIG2, "--forcea")["kernel"] == KERNELS
    before = contents(project)
    snakemake(project, FIG2, "--touch", "--forcerun", *rules)
    assert planned(project, FIG2) == {}
    assert contents(project) == before


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
    plan = SimpleNamespace(options=SimpleNamespace(forcerun=[given]), drawings=["draw_fig2"])
    assert Plan._forced.func(plan) == ({rule} if rule else set())


def test_an_input_that_a_rule_does_not_name_is_noticed(project):
    """A kernel by hand: `why` compares its record, and no step takes it."""
    kernel = project / KERNEL
    date = kernel.stat().st_mtime
    shutil.copy(kernel.with_name("depth0.h5"), kernel)
    os.utime(kernel, (date, date))
    told = ask("why", project, KERNEL)
    assert told.returncode == 1 and "depth 0 → 2" in told.stdout
    delete("results/spectra/digits/relu/depth2.h5")(project)
    done = snakemake(project, "results/spectra/digits/relu/depth2.h5", check=False)
    assert done.returncode != 0
    assert "depth2.h5: was made with depth 0, not 2. Delete it" in done.stderr


def test_a_result_of_another_seed_is_not_called_up_to_date(project):
    """Samples by hand, whose seed no later step knows."""
    others = project / "others"
    others.mkdir()
    samples = "results/datasets/synthetic.h5"
    snakemake(project, samples, "--directory", "others", "--config",
              "datasets={synthetic: {seed: 7}}")  # fmt: skip
    date = (project / samples).stat().st_mtime
    shutil.copy(others / samples, project / samples)
    os.utime(project / samples, (date, date))
    delete("results/spectra/synthetic/relu/depth2.h5", "results/conditioning.csv")(project)
    done = snakemake(project, "results/conditioning.csv")
    said = done.stderr.splitlines()[-1]
    assert said.startswith(
        "ntkcond: made of results that are out of date: results/conditioning.csv."
    )
    assert ask("why", project, "results/conditioning.csv").returncode == 1


def test_a_table_that_comes_out_as_it_was_makes_nothing_of_it_out_of_date(project):
    """Snakemake judges a newer input by its content; the provenance of both must agree."""
    table = project / "results/conditioning.csv"
    before = table.stat().st_mtime_ns, table.read_bytes()
    code("ntk/empirical.py")(project)
    assert snakemake(project, "results/conditioning.csv").returncode == 0
    assert table.stat().st_mtime_ns > before[0] and table.read_bytes() == before[1]
    drawn = "results/fig_depth_steps.pdf"
    assert planned(project, drawn) == {}
    assert "out of date" not in snakemake(project, drawn).stderr
    why = ask("why", project, drawn)
    assert why.returncode == 0, why.stdout


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
    delete("results/fig4.csv", "results/fig4.pdf")(project)
    done = snakemake(project, "results/fig4.pdf", check=False)
    assert done.returncode != 0
    assert "was changed after the start of this run. Run the same command again" in done.stderr
    assert not (project / "results/fig4.csv").exists()


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
        "step: drawing",
        "results/fig2.csv",
        "artefacts.fig2",
        "matplotlib 3.",
    ):
        assert part in fresh.stdout
    stale = ask("why", project, FIG2, "--config", "width=25")
    assert stale.returncode == 1
    assert f"    kernel × {KERNELS}: width 24 → 25" in stale.stdout
    absent = ask("why", project, "results/kernels/synthetic/relu/depth7.h5")
    assert "does not exist: snakemake results/kernels" in absent.stdout
    study = project / "studies/small/config.yaml"
    study.parent.mkdir(parents=True)
    study.touch()
    for arguments, message in (
        (["results/fig9.pdf"], "no rule makes this file"),
        (["results/datasets/unknown.h5"], "no rule makes this file"),
        (["runs/a/results/fig2.pdf"], "Use results/fig2.pdf --directory runs/a\n"),
        (
            ["runs/small/results/fig3.pdf"],
            "results/fig3.pdf --directory runs/small --configfile studies/small/config.yaml\n",
        ),
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
    os.utime(own, (0, 0))  # as a copy may have it
    said = reasons(project, "results/datasets/mine.h5")["dataset mine"]
    assert "mine.npy " in said


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


def test_a_job_that_fails_in_a_module_is_named_last_with_its_error(tmp_path):
    text = of_this_clone(OWN_DATA)
    (tmp_path / "Snakefile").write_text(text, "utf-8")
    np.save(tmp_path / "mine.npy", np.full((40, 6), np.nan))
    command = [sys.executable, "-m", "snakemake", "-j2", "ntk/results/fig2.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    *_, resumes, error = done.stderr.splitlines()
    assert resumes.startswith("ntkcond: not finished. Once mended, the same command resumes: ")
    assert error.startswith("ntkcond: ntk/results/logs/dataset/mine.log: ")


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
    run("--report", "report.html")
    assert (tmp_path / "report.html").is_file()
    (tmp_path / "Snakefile").write_text(text.replace('"width": 32', '"width": 40'), "utf-8")
    assert "--width=40" in run("-n")
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
        rows = (line.split() for line in table if not line.startswith("tables and drawings"))
        return {words[0]: words for words in rows if words}

    assert ask("predict", project, FIG2).stdout == f"{FIG2} is up to date: nothing would run\n"
    for setting_ in ("width=25", "depths=[0, 3]"):
        rows = predicted("--config", setting_)
        jobs = {rule: int(words[1]) for rule, words in rows.items() if rule != "in"}
        assert jobs == planned(project, FIG2, "--config", setting_)
        assert int(rows["in"][2]) == sum(jobs.values())
    delete(
        KERNEL.replace("kernels", "spectra"), "results/conditioning.csv", "results/fig2.csv", FIG2
    )(project)
    assert predicted()["spectrum"][:2] == ["spectrum", "1"]
    assert {rule for rule in predicted() if rule != "in"} == planned(project, FIG2).keys()
    wrong = ask("predict", project, FIG2, "--config", "widht=3")
    assert wrong.stderr.startswith("ntkcond: widht: no such setting")


def test_predict_learns_the_size_of_a_users_own_data_set_from_its_samples(project):
    np.save(project / "mine.npy", np.random.default_rng(0).standard_normal((40, 6)))
    datasets = {"mine": {"file": "mine.npy", "block": 5}}
    write_config(project, {**SMALL, "datasets": datasets, "figures": {"fig2": ["mine"]}})
    before = ask("predict", project, FIG2).stdout
    unknown = "not counted: 15 whose cost is known once results/datasets/mine.h5 is made\n"
    assert before.endswith(unknown)
    snakemake(project, "results/datasets/mine.h5")
    after = ask("predict", project, FIG2).stdout
    assert "not counted" not in after and "kernel" in after
    np.save(project / "mine.npy", np.zeros((20, 3)))  # samples of another size are made then
    assert ask("predict", project, FIG2).stdout.endswith(unknown)
