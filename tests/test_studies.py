"""Studies: made by the rules of the workflow, kept in git, and known to be fresh in a new clone."""

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import h5py
import pandas as pd
import pytest
import yaml
from filelock import FileLock

from ntkcond.artefacts.costs import LOGGED
from ntkcond.datasets.registry import SOURCES
from ntkcond.plan.graph import Job
from ntkcond.run.errors import UserError
from ntkcond.studies import Study, _times
from small_studies import small_studies
from thoroughness import asked
from workflow import ROOT, copy_of_the_project, snakemakes

STUDIES = sorted(path.parent.name for path in ROOT.glob("studies/*/config.yaml"))
# Without those whose artefacts are all of others, too.
MADE = STUDIES if asked else ["architectures", "full_size", "small", "table_1", "when", "whole"]


def snakemake(project: Path, *arguments: str) -> subprocess.CompletedProcess:
    return run(project, "snakemake", "-s", "studies/Snakefile", "-j2", *arguments)


def run(project: Path, module: str, *arguments: str, check=True) -> subprocess.CompletedProcess:
    done, _ = snakemakes().run(project, module, *arguments, path=[project / "src"])
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


def planned(project: Path, *targets: str) -> dict[str, int]:
    """How often each rule would run."""
    table = snakemake(project, "-n", *targets).stdout.rpartition("Job stats:")[2]
    jobs = re.findall(r"^(\w+) +(\d+)$", table.partition("\n\n")[0], re.M)
    return {rule: int(count) for rule, count in jobs if rule not in (*STUDIES, "total")}


def states(project: Path, *names: str) -> dict[tuple[str, str], tuple[str, str]]:
    """(state, why) of each kept artefact."""
    said = run(project, "ntkcond.studies", "states", *names, check=False).stdout
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (.*?) \| (.*) \|$", said, re.M)
    return {(study, artefact): (state, why) for study, artefact, state, why in rows[1:]}


@pytest.fixture(scope="session")
def kept(tmp_path_factory, worker_id) -> Path:
    """A project that has made the studies of MADE, at small size. Not to be changed."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "studies"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            snakemake(small_studies(shared), *MADE)
    return shared


@pytest.fixture
def clone(kept, tmp_path) -> Path:
    """What git has of it: no runs, no .snakemake."""
    place = copy_of_the_project(tmp_path / "clone")
    shutil.copytree(kept / "studies", place / "studies", copy_function=shutil.copy)
    return place


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


def test_rates_of_figure_3_are_the_best_on_10000_samples_of_each_set():
    """As the study `small` finds them, of six; from L = 4 on half of them; both for speech at
    L = 3, where the best diverges on all frames."""
    found = pd.read_csv(ROOT / "studies/small/fig3.csv").drop_duplicates(["dataset", "depth"])
    best = found.set_index(["dataset", "depth"]).learning_rate
    config = yaml.safe_load((ROOT / "studies/figure_3/config.yaml").read_text("utf-8"))
    for dataset in config["figures"]["fig3"]:
        rates = config["datasets"][dataset]["training"]["learning_rates"]
        expected = {L: [rate / (1 + (L > 3))] for L, rate in best[dataset].items()}
        if dataset == "librispeech":
            expected[3] = [best[dataset, 3] / 2, best[dataset, 3]]
        assert rates == expected


def test_each_study_is_made_and_kept(kept):
    assert {study for study, _ in states(kept)} == set(STUDIES)
    assert {state for state, _ in states(kept, *MADE).values()} == {"fresh"}
    with tarfile.open(kept / "studies/full_size/jobs.tar.xz") as tar:
        names = tar.getnames()
        tar.extract("results/spectra/mnist/relu/depth1.h5", kept / "extracted", filter="data")
    assert not [name for name in names if "/kernels/" in name or "/datasets/" in name]
    with h5py.File(kept / "extracted/results/spectra/mnist/relu/depth1.h5") as file:
        assert "lambda_min" in file and "eigenvalues" not in file


def test_a_new_clone_has_nothing_to_make(clone):
    assert {state for state, _ in states(clone, *MADE).values()} == {"fresh"}
    assert planned(clone, *MADE) == {}


def test_after_a_changed_colour_only_drawing_runs_and_the_kept_figure_changes(clone):
    edit(clone / "src/ntkcond/artefacts/style.py", "#0072B2", "#0072B3")
    state, why = states(clone, "full_size")["full_size", "fig2"]
    assert state == "out of date" and "draw_fig2: code artefacts.style changed" in why
    assert planned(clone, "full_size") == {"full_size_draw_fig2": 1, "full_size_keep": 1}
    before = {path: path.read_bytes() for path in (clone / "studies/full_size").glob("fig2.*")}
    snakemake(clone, "full_size")
    assert {path.suffix for path in before if path.read_bytes() != before[path]} == {".pdf", ".png"}
    assert states(clone, "full_size")["full_size", "fig2"][0] == "fresh"
    assert planned(clone, "full_size") == {}


def test_after_a_changed_width_the_kernels_are_named_and_run(clone):
    config = clone / "studies/full_size/config.yaml"
    settings = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**settings, "width": 25}), "utf-8")
    state, why = states(clone, "full_size")["full_size", "fig2"]
    assert state == "out of date" and "kernel × 3: width 24 → 25" in why
    jobs = planned(clone, "full_size")
    assert jobs["full_size_kernel"] == jobs["full_size_spectrum"] == 3


def test_tables_are_made_of_what_jobs_left_byte_for_byte(clone):
    tables = [clone / "studies/full_size/fig2.csv", clone / "studies/small/fig_speed.csv"]
    before = [table.read_bytes() for table in tables]
    for table in tables:
        table.unlink()
    jobs = planned(clone, "full_size", "small")
    assert {"full_size_conditioning", "full_size_fig2", "small_fig_speed"} <= jobs.keys()
    computing = ("dataset", "kernel", "spectrum", "closest_pair", "sweep", "speed")
    assert not [rule for rule in jobs if rule.endswith(computing) and "fig_" not in rule]
    snakemake(clone, "full_size", "small")
    assert [table.read_bytes() for table in tables] == before


def test_a_new_clone_knows_the_times_of_kernels_and_samples_that_it_lacks(clone, kept):
    """Which the table of costs takes from their logs and Snakemake's records."""
    planned(clone, "full_size")
    logs = sorted((kept / "runs/full_size/results/logs/kernel").rglob("*.log"))
    logs += sorted((kept / "runs/full_size/results/logs/dataset").rglob("mnist.log"))
    assert len(logs) > 1
    for log in logs:
        there = clone / log.relative_to(kept)
        times = LOGGED.findall(log.read_text("utf-8"))
        assert times and LOGGED.findall(there.read_text("utf-8"))[-1] == times[-1]


def test_a_study_that_was_cut_off_goes_on_in_a_new_clone(clone):
    archive = clone / "studies/full_size/jobs.tar.xz"
    gone = "results/spectra/mnist/relu/depth1.h5"
    with tarfile.open(archive) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.name != gone}
    folder = clone / "unpacked"
    for name, content in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(folder / "results", "results")
    shutil.rmtree(folder)
    for path in (clone / "studies/full_size").glob("fig2.*"):
        path.unlink()
    snakemake(clone, "full_size_samples")
    jobs = planned(clone, "full_size")
    assert (jobs["full_size_kernel"], jobs["full_size_spectrum"]) == (1, 1)
    assert "full_size_closest_pair" not in jobs
    snakemake(clone, "full_size")
    assert states(clone, "full_size")["full_size", "fig2"][0] == "fresh"


@pytest.mark.parametrize("file", ["fig2.csv", "fig2.pdf"])
def test_a_kept_file_that_was_edited_is_named(clone, file):
    with (clone / f"studies/full_size/{file}").open("a") as edited:
        edited.write(" ")
    state, why = states(clone, "full_size")["full_size", "fig2"]
    assert state == "out of date" and f"{file} was changed" in why


def test_a_kept_picture_that_is_gone_is_named(clone):
    (clone / "studies/full_size/fig2.png").unlink()
    assert states(clone, "full_size")["full_size", "fig2"] == ("out of date", "fig2.png is missing")


def test_older_results_of_a_run_do_not_replace_what_is_kept(kept, clone):
    """Of a run before this clone had what is kept now."""
    shutil.copytree(kept / "runs/full_size", clone / "runs/full_size")
    before = {p: p.read_bytes() for p in (clone / "studies/full_size").rglob("*") if p.is_file()}
    table = clone / "runs/full_size/results/fig2.csv"
    table.write_text(table.read_text("utf-8").replace("relu", "gelu"), "utf-8")
    edit(clone / "runs/full_size/results/provenance/draw_fig2.json", '"format": 1', '"format": 0')
    run(clone, "ntkcond.studies", "keep", "full_size")
    assert {path: path.read_bytes() for path in before} == before
    assert states(clone, "full_size")["full_size", "fig2"][0] == "fresh"


def test_a_study_that_cannot_be_kept_whole_ends_with_the_reason(kept, clone):
    """Snakemake would remove all that is kept after a job that succeeds and leaves a file out."""
    shutil.copytree(kept / "runs/full_size", clone / "runs/full_size")
    for path in (clone / "studies/full_size").rglob("*fig2.*"):
        path.unlink()
    edit(clone / "runs/full_size/results/provenance/fig2.json", '"format": 1', '"format": 0')
    done = run(clone, "ntkcond.studies", "keep", "--whole", "full_size", check=False)
    assert done.returncode == 1
    assert (
        "runs/full_size: not all was kept, since some is out of date: fig2: format" in done.stderr
    )
    assert run(clone, "ntkcond.studies", "keep", "full_size").returncode == 0


def test_stale_results_of_a_run_are_not_kept(kept, clone):
    shutil.copytree(kept / "runs/full_size", clone / "runs/full_size")
    archive = clone / "studies/full_size/jobs.tar.xz"
    archive.unlink()
    module = clone / "src/ntkcond/steps/spectra.py"
    module.write_text(module.read_text("utf-8") + "\nANOTHER = 1\n", "utf-8")
    run(clone, "ntkcond.studies", "keep", "full_size")
    folders = {name.split("/")[1] for name in members(archive) if name.endswith(".h5")}
    assert "angles" in folders and "spectra" not in folders


def members(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return set(tar.getnames())


def test_nothing_kept_is_lost_where_raw_files_are_missing(tmp_path):
    """Of data sets that figures are drawn without here, the job files stay as they are."""
    place = copy_of_the_project(tmp_path / "clone")
    shutil.copytree(ROOT / "studies", place / "studies")
    archive = place / "studies/when/jobs.tar.xz"
    before = members(archive)
    assert any("mnist" in name for name in before)
    run(place, "ntkcond.studies", "keep", "when")
    assert members(archive) == before


def test_a_kept_figure_lacks_only_data_sets_that_it_would_show(tmp_path, monkeypatch):
    """Claims take tables of many figures."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    shutil.copytree(ROOT / "studies/full_size", tmp_path / "studies/full_size")
    graph = Study("full_size").freshness.graph
    assert graph.left_out["fig2"] == ["svhn"]
    assert not any(names for figure, names in graph.left_out.items() if figure != "fig2")


def test_a_data_set_that_is_not_here_is_made_only_for_what_has_it(tmp_path, monkeypatch):
    """Nothing is kept yet, and a set is missing: its jobs would fail, and the others be lost."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "studies/small"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "studies/small/config.yaml", folder)
    raw = SOURCES["mnist"].raw_files
    for file in (tmp_path / "data" / name for name in raw):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def has_jobs_of(name: str) -> bool:
        return any(f"/{name}/" in path for path in Study("small").job_files)

    assert has_jobs_of("mnist") and not has_jobs_of("svhn")
    (folder / "claims.csv").touch()
    record = {"settings": {"about": {"missing": ["fashion_mnist"]}}}
    (folder / "provenance").mkdir()
    (folder / "provenance/claims.json").write_text(json.dumps({"record": record}), "utf-8")
    assert has_jobs_of("svhn") and not has_jobs_of("fashion_mnist")


def test_a_figure_of_fewer_data_sets_does_not_replace_the_kept_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, job = Study("small"), Job("fig3", {}, ("results/fig3.csv",))
    for folder, lacks in ((study.run, ["mnist", "svhn"]), (study.unpacked, ["svhn"])):
        record = {"settings": {"about": {"missing": lacks}}}
        sidecar = folder / "results/provenance/fig3.json"
        sidecar.parent.mkdir(parents=True)
        sidecar.write_text(json.dumps({"record": record}), "utf-8")
    with pytest.raises(UserError, match=r"fig3.csv lacks mnist, which what is kept has\. .* DATA="):
        study._require_no_less(job)
    shutil.rmtree(study.unpacked)  # nothing is kept yet
    study._require_no_less(job)


def test_a_second_run_is_refused_and_a_dry_one_changes_no_file(clone):
    lock = clone / ".snakemake/ntkcond/running"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        snakemake(clone, "-n", "full_size")
        run(clone, "ntkcond.studies", "predict", "full_size")
        assert not (clone / "runs/full_size/results").exists()
        done = run(clone, "snakemake", "-s", "studies/Snakefile", "-j1", "full_size", check=False)
        assert done.returncode and "another Snakemake is at work in this folder" in done.stderr
    snakemake(clone, "-n", "full_size")
    assert (clone / "runs/full_size/results").exists()


@pytest.mark.parametrize("text", ["", "- fig2", "width: 8", "keep: []"])
def test_a_study_that_keeps_nothing_is_named(clone, text):
    (clone / "studies/full_size/config.yaml").write_text(text, "utf-8")
    done = run(clone, "ntkcond.studies", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ntkcond: studies/full_size/config.yaml: names no artefacts to")


def test_a_damaged_archive_is_named(clone):
    archive = clone / "studies/full_size/jobs.tar.xz"
    archive.write_bytes(archive.read_bytes()[:-40])
    done = run(clone, "ntkcond.studies", "states", "full_size", check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "ntkcond: studies/full_size/jobs.tar.xz: damaged" in done.stderr


@pytest.mark.parametrize("words", [["states", "fullsize"], ["fullsize"]])
def test_a_study_that_there_is_not(clone, words):
    done = run(clone, "ntkcond.studies", *words, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ntkcond: studies/fullsize: no such study. ")
    assert "full_size" in done.stderr


@pytest.mark.parametrize("words", [["full_size"], ["states", "small"], ["keep"], ["predict"]])
def test_states_of_some_studies_are_not_written_over_those_of_all(words):
    page = (ROOT / "studies/README.md").read_text("utf-8")
    done = run(ROOT, "ntkcond.studies", *words, "--write", check=False)
    assert done.returncode == 1 and "--write: writes the states of all" in done.stderr
    assert (ROOT / "studies/README.md").read_text("utf-8") == page


def test_the_log_and_time_of_ranks_are_those_of_a_spectrum(tmp_path):
    study = Study("small", {"engine": "scalapack"})
    graph = study.graph(tmp_path)
    names = {"dataset": "mnist", "network": "relu", "depth": "1"}
    ranks = graph.job("scalapack_spectrum", **names)
    rules = (ROOT / "workflow/rules/ranks.smk").read_text("utf-8")
    for path in _times(ranks):
        assert re.sub("mnist/relu/depth1", "{dataset}/{network}/depth{depth}", path) in rules


def test_studies_are_in_the_projects_folder(tmp_path):
    said = "has no folder studies. Run this in the project's folder"
    assert said in run(tmp_path, "ntkcond.studies", check=False).stderr
    done = run(tmp_path, "snakemake", "-s", str(ROOT / "studies/Snakefile"), "-n", check=False)
    assert done.returncode == 1 and said in done.stderr


def test_a_spot_check_tells_equal_results_of_older_code(clone):
    def change(name: str) -> None:
        module = clone / f"src/ntkcond/{name}.py"
        module.write_text(module.read_text("utf-8") + "\nANOTHER = 1\n", "utf-8")

    change("steps/spectra")
    state, why = states(clone, "full_size")["full_size", "fig2"]
    assert state == "out of date" and why == "spectrum × 3: code steps.spectra changed"
    snakemake(clone, "full_size_checks")
    assert states(clone, "full_size")["full_size", "fig2"] == (
        "of older code, spot-checked equal", why
    )  # fmt: skip
    checks = clone / "studies/full_size/checks"
    record = json.loads((checks / "provenance/mnist.json").read_text("utf-8"))

    def is_equal_with(text: str, **entries: object) -> bool:
        """Another table, or a check that was made otherwise; its sha256 is right."""
        (checks / "mnist.csv").write_text(text, "utf-8")
        files = {"mnist.csv": hashlib.sha256(text.encode()).hexdigest()}
        other = {"record": {**record["record"], **entries}, "files": files}
        (checks / "provenance/mnist.json").write_text(json.dumps(other), "utf-8")
        return states(clone, "full_size")["full_size", "fig2"][0] != "out of date"

    text = (checks / "mnist.csv").read_text("utf-8")
    assert is_equal_with(text)
    assert not is_equal_with(text.replace(",True\n", ",False\n", 1))
    assert not is_equal_with(text.partition("\n")[0] + "\n")  # nothing compared
    inputs, versions = record["record"]["inputs"], record["record"]["versions"]
    assert not is_equal_with(text, versions={**versions, "numpy": "1.0"})
    for option in inputs:  # of other samples, of other kept files
        other = dict.fromkeys(inputs[option], "0123456789ab")
        assert not is_equal_with(text, inputs={**inputs, option: other})
    assert is_equal_with(text)
    with (checks / "mnist.csv").open("a") as edited:
        edited.write(" ")
    assert states(clone, "full_size")["full_size", "fig2"][0] == "out of date"
    assert is_equal_with(text)
    change("datasets/digits")  # which may give other samples than those of the check
    assert not is_equal_with(text)
    snakemake(clone, "full_size_checks")
    assert states(clone, "full_size")["full_size", "fig2"][0] != "out of date"
    config = clone / "studies/full_size/config.yaml"
    settings = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**settings, "depths": [1, 2]}), "utf-8")
    assert states(clone, "full_size")["full_size", "fig2"][0] == "out of date"  # of fewer files
    config.write_text(yaml.safe_dump(settings), "utf-8")
    assert states(clone, "full_size")["full_size", "fig2"][0] != "out of date"
    change("ntk/measure")  # of a sweep, which no spot check runs
    assert states(clone, "full_size")["full_size", "fig2"][0] == "out of date"
