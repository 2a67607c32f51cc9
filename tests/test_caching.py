"""What runs again after which change: each line of docs/caching.md, tried."""

import ast
import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile
import yaml

from ntkcond.run.provenance import SOURCE
from speech import write_corpus
from workflow import ROOT, SMALL, copy_of_the_project, planned, snakemake, write_config


def documented() -> dict[str, dict[str, int]]:
    """{change: {rule: jobs}} of the tables in docs/caching.md."""
    page = (ROOT / "docs/caching.md").read_text("utf-8")
    table = {}
    for change, runs in re.findall(r"^\| (.+?) \| (.+?) \|$", page, re.M):
        if change == "you change":
            continue
        assert change not in table, f"docs/caching.md has two lines for: {change}"
        jobs = [] if runs == "–" else [(*job.split(), "1")[:2] for job in runs.split(", ")]
        table[change] = {rule: int(count) for rule, count in jobs}
    return table


Change = Callable[[Path], object]  # of a finished project; may give the arguments of `planned`


def nothing(project: Path) -> None:
    pass


def one_after_the_other(*changes: Change) -> Change:
    def change(project: Path) -> object:
        return [each(project) for each in changes][-1]

    return change


def modules(project: Path) -> list[Path]:
    return sorted((project / "src/ntkcond").rglob("*.py"))


def touch_all(project: Path) -> None:
    for path in project.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()


def rewrite_all_modules(project: Path) -> None:
    """Other formatting and no comments, by Python's own unparser; other docstrings."""
    for path in modules(project):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and (
                ast.get_docstring(node)
            ):
                node.body[0].value.value = "Another docstring."
        path.write_text(f"# {path.name}, rewritten\n{ast.unparse(tree)}\n", "utf-8")


def comment(*files: str) -> Change:
    def change(project: Path) -> None:
        for name in files:
            path = project / name
            path.write_text(path.read_text("utf-8") + "\n# a comment\n", "utf-8")

    return change


def move_to_a_new_clone(project: Path) -> None:
    clone = copy_of_the_project(project.with_name("clone"))
    for kept in ("results", ".snakemake"):
        shutil.move(project / kept, clone / kept)
    shutil.rmtree(project)
    clone.rename(project)


def delete(*names: str) -> Change:
    def change(project: Path) -> None:
        for name in names:
            path = project / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def setting(path: str, value: object) -> Change:
    def change(project: Path) -> None:
        config = yaml.safe_load((project / "small.yaml").read_text("utf-8"))
        *parents, last = path.split(".")
        reduce(lambda place, key: place.setdefault(key, {}), parents, config)[last] = value
        write_config(project, config)

    return change


def code(*names: str) -> Change:
    """A new constant in each of these modules."""

    def change(project: Path) -> None:
        for name in names:
            path = project / "src/ntkcond" / name
            path.write_text(path.read_text("utf-8") + "\n_CHANGED = True\n", "utf-8")

    return change


def version(*packages: str) -> Change:
    """Other versions of packages, as far as their metadata say."""

    def change(project: Path) -> dict:
        for package in packages:
            metadata = project / f"other/{package.replace('-', '_')}-99.0.dist-info/METADATA"
            metadata.parent.mkdir(parents=True)
            metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 99.0\n")
        return {"before": (project / "other",)}

    return change


def own_data_set(change: Change) -> Change:
    """A data set of the user's own, made; then changed."""

    def made_then_changed(project: Path) -> tuple[str]:
        config = {**SMALL, "datasets": {**SMALL["datasets"], "mine": {"file": "mine.npy"}}}
        write_config(project, config)
        np.save(project / "mine.npy", np.eye(6))
        snakemake(project, "results/datasets/mine.h5")
        change(project / "mine.npy")
        return ("results/datasets/mine.h5",)

    return made_then_changed


def other_content(file: Path, date: float | None = None) -> None:
    np.save(file, np.eye(7))
    if date is not None:
        os.utime(file, (date, date))


def speech(change: Change) -> Change:
    """A data set of speech with labels, made once and then copied; then a change."""

    def made_then_changed(project: Path) -> tuple[str]:
        made = project.parents[1] / "speech"
        if not made.is_dir():
            own = {
                "source": "librispeech", "labels": "phones.txt", "samples": 40, "block": 20,
                "features": 96, "mel": 24, "splice": 4,
            }  # fmt: skip
            write_config(project, {**SMALL, "datasets": {**SMALL["datasets"], "speech": own}})
            lines = []
            for file in write_corpus(project / "data", speakers=2).rglob("*.flac"):
                count = 1 + (soundfile.info(file).frames - 400) // 160
                lines.append(f"{file.stem}{count * ' 1'}\n")
            (project / "phones.txt").write_text("".join(lines))
            snakemake(project, "results/datasets/speech.h5")
            shutil.copytree(project, made, symlinks=True)
        shutil.rmtree(project)
        shutil.copytree(made, project, symlinks=True)
        change(project)
        return ("results/datasets/speech.h5",)

    return made_then_changed


def other_labels(project: Path) -> None:
    path = project / "phones.txt"
    path.write_text(path.read_text().replace(" 1 ", " 2 "))


def other_audio(project: Path) -> None:
    path = project / "data/LibriSpeech/train-clean-100/10/7/10-7-0000.flac"
    content = bytearray(path.read_bytes())
    content[26] ^= 1  # of the md5 in its header
    path.write_bytes(content)


def another_utterance(project: Path) -> None:
    chapter = project / "data/LibriSpeech/train-clean-100/10/7"
    shutil.copy(chapter / "10-7-0000.flac", chapter / "10-7-0009.flac")


KERNEL = "results/kernels/digits/relu/depth2.h5"
SPECTRUM = "results/spectra/digits/relu/depth2.h5"


def kernel_of_another_run(project: Path) -> None:
    with h5py.File(project / KERNEL, "r+") as file:
        file["kernel"][0, 0, 0, 0] += 1


def in_place_of(name: str, change: Callable[[Path], None]) -> Change:
    """Another file under this name, with the date of the old one."""

    def put(project: Path) -> None:
        path = project / name
        date = path.stat().st_mtime
        change(path)
        os.utime(path, (date, date))

    return put


def made_by_hand(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["made_by"] = "a step run by hand"


def that_of_another_depth(path: Path) -> None:
    shutil.copy(path.with_name("depth0.h5"), path)


def record_of_an_older_snakemake(project: Path) -> None:
    for path in (project / ".snakemake/metadata").rglob("*"):
        if path.is_file():
            record = json.loads(path.read_text("utf-8"))
            path.write_text(json.dumps({**record, "record_format_version": 5}), "utf-8")


NOT_USED = [
    f"datasets/{name}.py"
    for name in ("mnist", "fashion_mnist", "svhn", "custom", "idx_images", "torchvision_data")
]
FIGURES = (
    "fig1", "fig2", "fig3", "fig4", "fig_activations", "fig_activations_ntk", "fig_infinite_depth",
    "fig_weight_scale", "fig_width", "fig_samples", "fig_descent",
)  # fmt: skip
lose_the_record = delete(".snakemake")

CHANGES: dict[str, list[Change]] = {
    "nothing": [nothing],
    "the dates of all files": [touch_all],
    "comments, docstrings and formatting of every module": [rewrite_all_modules],
    "a comment in the rules or in the config": [
        comment("Snakefile", "config.yaml", "small.yaml", "workflow/rules/kernels.smk")
    ],
    "a new clone, beside the kept `results` and `.snakemake`": [move_to_a_new_clone],
    "a deleted kernel, spectrum, training run or table, while the figures are there": [
        delete(KERNEL),
        delete("results/spectra", "results/kernels", "results/datasets"),
        delete("results/conditioning.csv", "results/angles.csv"),
        delete("results/training", "results/training.csv"),
    ],
    "a deleted log and a deleted benchmark record": [delete("results/logs", "results/benchmarks")],
    "`seeds`: one added": [setting("seeds", [1, 32, 111])],
    "`seeds`: two swapped": [setting("seeds", [32, 1])],
    "`width`": [setting("width", 25)],
    "`depths`: one added": [setting("depths", [0, 1, 2])],
    "`depths`: one taken away": [setting("depths", [2])],
    "`activations`: one taken away": [setting("activations", ["relu"])],
    "`trainable`": [setting("trainable", "first")],
    "`block`, which both data sets have of their own": [setting("block", 30)],
    "`block` of one data set": [setting("datasets.digits.block", 40)],
    "`width` of one data set": [setting("datasets.digits.width", 25)],
    "`seed` of one data set: other samples": [setting("datasets.digits.seed", 1)],
    "`scale` of one data set": [setting("datasets.digits.scale", [0, 1])],
    "a data set that no figure shows": [setting("datasets.mnist.samples", 999)],
    "`training.depths`: one added": [setting("training.depths", [1, 2, 3])],
    "`training.depths`: one taken away": [setting("training.depths", [2])],
    "`training.convention`, `seeds`, `activation` or `tf32`": [
        setting("training.convention", "paper"),
        setting("training.seeds", [1]),
        setting("training.activation", "linear"),
        setting("training.tf32", True),
    ],
    "`training.epochs`, which the data set has of its own": [setting("training.epochs", 7)],
    "`training` of one data set: a learning rate added, more epochs, another batch or width": [
        setting("datasets.digits.training.learning_rates", [8, 16, 64, 1e20]),
        setting("datasets.digits.training.epochs", 4),
        setting("datasets.digits.training.batch", 50),
        setting("datasets.digits.training.width", 25),
    ],
    "`training` of one data set: learning rates in another order": [
        setting("datasets.digits.training.learning_rates", [64, 8, 1e20])
    ],
    "`training.rate_for`": [setting("training.rate_for", "dataset")],
    "`training.thresholds`": [setting("training.thresholds", [1])],
    "`training.checkpoint_minutes`": [setting("training.checkpoint_minutes", 0)],
    "`theory.depths`": [setting("theory.depths", [1, 2])],
    "`theory.activations`, `theory.activation_depths`": [
        setting("theory.activations", ["tanh"]),
        setting("theory.activation_depths", [1, 2]),
    ],
    "`sweeps.widths`: one added": [setting("sweeps.widths", [8, 16, 32])],
    "`sweeps.sizes`: one added": [setting("sweeps.sizes", [8, 16, 32])],
    "`sweeps.depths`, `seeds`, `activation`": [
        setting("sweeps.depths", [1, 3]),
        setting("sweeps.seeds", [1]),
        setting("sweeps.activation", "linear"),
    ],
    "`descent.steps`, `depths`, `seeds`, `activation`": [
        setting("descent.steps", 30),
        setting("descent.depths", [1]),
        setting("descent.seeds", [2]),
        setting("descent.activation", "tanh"),
    ],
    "`sweeps.blocks`": [setting("sweeps.blocks", 1)],
    "`unit_norm` of one data set": [setting("datasets.digits.unit_norm", True)],
    "`figures.fig2`: a data set taken away": [setting("figures.fig2", ["digits"])],
    "`keep_kernels`, `device`, `data_dir` where no raw files are read, the mirrors of a data set": [
        setting("keep_kernels", False),
        setting("device", "cpu"),
        setting("data_dir", "elsewhere"),
        setting("datasets.mnist.mirrors", ["http://127.0.0.1:9/"]),
        speech(setting("datasets.speech.mirrors", ["http://127.0.0.1:9/"])),
    ],
    "`kernel.py`": [code("kernel.py")],
    "`closest_pair.py`": [code("closest_pair.py")],
    "`network.py`, `needs.py`, `resources.py`, `memory.py`, `progress.py`": [
        code(f"{name}.py") for name in ("network", "needs", "resources", "memory", "progress")
    ],
    "`activations.py`": [code("activations.py")],
    "`gaussian.py`": [code("gaussian.py")],
    "`dual_activations.py`": [code("dual_activations.py")],
    "`descent.py`, `steps/descent.py`": [code("descent.py"), code("steps/descent.py")],
    "`sweep.py`, `steps/sweep.py`": [code("sweep.py"), code("steps/sweep.py")],
    "`figures/sweeps.py`": [code("figures/sweeps.py")],
    "`figures/kappa.py`": [code("figures/kappa.py")],
    "`blocks.py`": [code("blocks.py")],
    "`spectrum.py`, `rank.py`": [code("spectrum.py"), code("rank.py")],
    "`duplicates.py`": [code("duplicates.py")],
    "`infinite_width.py`": [code("infinite_width.py")],
    "`training.py`": [code("training.py")],
    "`history.py`: what is recorded of a training run": [code("history.py")],
    "`grid_search.py`": [code("grid_search.py")],
    "`tables/output.py`": [code("tables/output.py")],
    "`claims/claim.py`, `claims/formulas.py`, `claims/wide_networks.py`, `claims/experiments.py`,"
    " `tables/claims.py`, `steps/claims.py`": [
        code(f"{name}.py")
        for name in (
            "claims/claim", "claims/formulas", "claims/wide_networks", "claims/experiments",
            "tables/claims", "steps/claims",
        )
    ],
    "`storage.py`, `command.py`, `provenance.py`, `errors.py`, `units.py`": [
        code(f"{name}.py") for name in ("storage", "command", "provenance", "errors", "units")
    ],
    "`datasets/samples.py`": [code("datasets/samples.py")],
    "`datasets/registry.py`": [code("datasets/registry.py")],
    "`datasets/digits.py`": [code("datasets/digits.py")],
    "`datasets/synthetic.py`": [code("datasets/synthetic.py")],
    "`datasets/mnist.py` and other modules of data sets that are not used": [code(*NOT_USED)],
    "`figures/style.py`, `figures/output.py`: a colour, say": [
        code("figures/style.py"),
        code("figures/output.py"),
    ],
    "`steps/download.py`, `speech/archive.py`: what is there is kept": [
        speech(code("steps/download.py", "speech/archive.py"))
    ],
    "`speech/corpus.py`, `speech/subsets.py`, `steps/corpus.py` (asked for: a set of speech)": [
        speech(code(f"{name}.py")) for name in ("speech/corpus", "steps/corpus", "speech/subsets")
    ],
    "`speech/extraction.py`, `speech/log_mel.py`, `speech/frames.py`, `speech/phones.py`,"
    " `datasets/librispeech.py` (asked for: a set of speech)": [
        speech(code(f"{name}.py"))
        for name in (
            "speech/extraction", "speech/log_mel", "speech/frames", "speech/phones",
            "datasets/librispeech",
        )
    ],    "`config.py`, `cluster.py`, `run_lock.py`, which the workflow uses and no step": [
        code("config.py", "cluster.py", "run_lock.py")
    ],
    **{
        f"`figures/{name}.py`": [code(f"figures/{name}.py")]
        for name in FIGURES
    },
    **{
        f"`tables/{name}.py`": [code(f"tables/{name}.py")]
        for name in ("table_epochs", "table_generalization")
    },
    **{
        f"`steps/{name}.py`": [code(f"steps/{name}.py")]
        for name in (
            "dataset", "kernel", "spectrum", "angle", "conditioning", "angles", "costs",
            "train", "training", "table_epochs", "table_generalization",
            *FIGURES,
        )
    },
    **{name: [version(name)] for name in ("torch", "scipy", "numpy", "h5py", "pandas")},
    "matplotlib": [version("matplotlib")],
    "scikit-learn, which has the digits": [version("scikit-learn")],
    "torchvision, with which nothing here was read": [version("torchvision")],
    "any other package": [version("tqdm", "psutil", "pillow")],
    "a deleted picture, PDF or CSV of a figure": [
        delete(f"results/fig2.{suffix}") for suffix in ("png", "pdf", "csv")
    ],
    "the content of a data set of your own (asked for: that data set)": [
        own_data_set(other_content)
    ],
    "the content of a data set of your own, with a date in the past (asked for: that data set)": [
        own_data_set(partial(other_content, date=0))
    ],
    "the date of a data set of your own (asked for: that data set)": [own_data_set(Path.touch)],
    "a file more in a corpus of speech, or one less (asked for: its data set)": [
        speech(another_utterance),
        speech(delete("data/LibriSpeech/train-clean-100/10/7/10-7-0000.flac")),
    ],
    "a file of a corpus with other audio and the same size (asked for: its data set)": [
        speech(other_audio)
    ],
    "the dates of the files of a corpus (asked for: its data set)": [speech(touch_all)],
    "the content of the labels of a corpus (asked for: its data set)": [speech(other_labels)],
    "a kernel written by another run, newer than its spectrum": [kernel_of_another_run],
    "`.snakemake` is lost": [lose_the_record],
    "`.snakemake` is lost, and `width` changed": [
        one_after_the_other(lose_the_record, setting("width", 25))
    ],
    "`.snakemake` is lost, and a depth taken away": [
        one_after_the_other(lose_the_record, setting("depths", [2]))
    ],
    "`.snakemake` is lost, and `datasets/digits.py` changed": [
        one_after_the_other(lose_the_record, code("datasets/digits.py"))
    ],
    "`.snakemake` is lost, and `theory.depths` changed": [
        one_after_the_other(lose_the_record, setting("theory.depths", [1, 2]))
    ],
    "`.snakemake` is lost, and scipy changed": [
        one_after_the_other(lose_the_record, version("scipy"))
    ],
    "`.snakemake` is lost, and one spectrum is that of another depth": [
        one_after_the_other(lose_the_record, in_place_of(SPECTRUM, that_of_another_depth))
    ],
    "`.snakemake` is of an older Snakemake, in another format": [record_of_an_older_snakemake],
    "`.snakemake` is of an older Snakemake, and `width` changed": [
        one_after_the_other(record_of_an_older_snakemake, setting("width", 25))
    ],
    "a spectrum made by hand is put in place, with the old date": [
        in_place_of(SPECTRUM, made_by_hand)
    ],
}  # fmt: skip
CASES = [
    pytest.param(line, change, id=f"{line[:50]}-{number}")
    for line, changes in CHANGES.items()
    for number, change in enumerate(changes)
]


@pytest.mark.parametrize(("line", "change"), CASES)
def test_exactly_these_rules_run(project, line, change):
    given = change(project)
    arguments = given if isinstance(given, tuple) else ()
    versions = given if isinstance(given, dict) else {}
    assert planned(project, *arguments, **versions) == documented()[line]


def test_every_line_of_the_page_is_tried_and_every_module_is_on_it():
    assert set(documented()) == set(CHANGES)
    page = (ROOT / "docs/caching.md").read_text("utf-8")
    used = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    not_used = {name for name in used if name.endswith("__init__.py")} | set(NOT_USED)
    for name in used - not_used:
        assert f"`{name}`" in page


def test_what_is_made_again_without_a_record_is_then_recorded(project):
    lose_the_record(project)
    setting("theory.depths", [1, 2])(project)
    snakemake(project)
    assert planned(project) == {}
