"""What runs again after which change: each line of tests/rebuilds.md, tried.

What a job is made with is compared as text: lines on settings, code and versions compare the texts
of all jobs before and after. Snakemake itself, which runs jobs whose texts differ and all that
depend on them, is tried on lines that are not of texts, and in tests/pipeline/test_snakemake.py.
"""

import ast
import copy
import dataclasses
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial, reduce
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from snakemake.utils import update_config

from dag import Dag, Job, job
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES
from ntkcond.pipeline import config as settings
from ntkcond.pipeline import jobs
from ntkcond.pipeline.jobs import Jobs
from ntkcond.run import digests
from ntkcond.run.digests import Package
from ntkcond.run.record import CODE, read
from speech import write_corpus
from thoroughness import how_many
from workflow import MADE, ROOT, SMALL, copy_of_the_project, planned, snakemake, write_config

SOURCE = CODE.folder
SPEECH = {
    "source": "librispeech", "labels": "phones.txt", "samples": 40, "block": 20, "features": 96,
    "mel": 24, "splice": 4,
}  # fmt: skip
WITHOUT_LABELS = {**SPEECH, "labels": None}  # a file that is not there


def documented() -> dict[str, str]:
    """{change: what runs because of it} of the tables in tests/rebuilds.md."""
    page = (ROOT / "tests/rebuilds.md").read_text("utf-8")
    head, _, page = page.partition("## ")
    for short, names in re.findall(r"(\*\w+\*): (.*?)\.", head):
        page = page.replace(short, names)
    table = {}
    for change, runs in re.findall(r"^\| (.+?) \| (.+?) \|$", page, re.M):
        if change == "you change":
            continue
        assert change not in table, f"tests/rebuilds.md has two lines for: {change}"
        table[change] = runs
    return table


def named(among: Iterable[Job], words: str) -> list[Job]:
    """kernel of digits, fig2, every table: those of the jobs."""
    if words.startswith("every "):
        chosen = {
            "every table": lambda one: not one.draws,
            "every drawing": lambda one: one.draws,
            "every drawing of a figure": lambda one: (
                one.draws and ".png" in SPECS[one.artefact].files
            ),
        }[words]
        return [one for one in among if one.artefact and chosen(one)]
    rule, _, values = words.partition(" of ")
    return [
        one
        for one in among
        if one.rule == rule and set(values.split()) <= set(dict(one.wildcards).values())
    ]


def expected(dag: Dag, runs: str, among: list[Job]) -> dict[str, int]:
    """How often each rule runs: the jobs named in a line and all that depend on them."""
    roots = set()
    for words in [] if runs == "–" else runs.split(", "):
        roots_named = named(among, words)
        assert roots_named, f"no job is called {words!r}"
        roots.update(roots_named)
    return dict(Counter(one.rule for one in dag.below(roots, among)))


def dag_of(config: dict, project: Path = ROOT) -> Dag:
    """The DAG of the default config with these settings over it."""
    whole = yaml.safe_load((project / "config.yaml").read_text("utf-8"))
    update_config(whole, copy.deepcopy(config))
    settings.complete(whole)
    return Dag(Jobs(settings.typed(whole), project))


# Changes of what jobs are made with.


def setting(path: str, value: object) -> dict:
    """The small config with another value of a setting."""
    config = copy.deepcopy(SMALL)
    *parents, last = path.split(".")
    reduce(lambda place, key: place.setdefault(key, {}), parents, config)[last] = value
    return config


@dataclasses.dataclass(frozen=True, eq=False)
class Edited(Package):
    """The package with other text of some modules, by their paths in it, and other versions."""

    edits: Mapping[str, Callable[[str], str]] = dataclasses.field(default_factory=dict)
    others: tuple[str, ...] = ()

    @cache  # noqa: B019
    def _parsed(self, module: str) -> digests.Parsed:
        path, part = self.file_of(module), module.partition(":")[2]
        edit = self.edits.get(path.relative_to(SOURCE).as_posix())
        text = edit and edit(path.read_text("utf-8"))
        return self.parse(text.encode(), path, part) if edit else CODE._parsed(module)

    def versions(self, *modules: str) -> dict[str, str]:
        known = super().versions(*modules)
        return {name: "99.0" if name in self.others else known[name] for name in known}


def edited(edits: Mapping[str, Callable[[str], str]], *others: str) -> Edited:
    fields = {field.name: getattr(CODE, field.name) for field in dataclasses.fields(CODE)}
    return Edited(**fields, edits=edits, others=others)


def in_functions(*functions: str) -> Callable[[str], str]:
    """A new line in each of these functions, or in all; in all also a new constant."""

    def edit(text: str) -> str:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (not functions or node.name in functions):
                node.body.insert(-1, ast.parse("_changed = True").body[0])
        return ast.unparse(tree) + ("" if functions else "\n_CHANGED = True\n")

    return edit


def code(*names: str) -> Edited:
    """Something new in all of each of these modules."""
    return edited(dict.fromkeys(names, in_functions()))


def function(name: str, *functions: str) -> Edited:
    """In each of these functions of an artefact's module that it has."""
    package = (SOURCE / f"artefacts/{name}/__init__.py").is_file()
    file = f"artefacts/{name}/__init__.py" if package else f"artefacts/{name}.py"
    return edited({file: in_functions(*functions)})


def version(*packages: str) -> Edited:
    return edited({}, *packages)


def everywhere(edit: Callable[[str], str]) -> Edited:
    edit = cache(edit)
    return edited({p.relative_to(SOURCE).as_posix(): edit for p in SOURCE.rglob("*.py")})


def rewritten(text: str) -> str:
    """Other formatting and no comments, by Python's own unparser; other docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and (
            ast.get_docstring(node)
        ):
            node.body[0].value.value = "Another docstring."
    return ast.unparse(tree)


def reworded(text: str) -> str:
    """Other messages, help and captions."""
    words = ("UserError(\n", 'UserError(f"', 'log.info("', 'log.warning("', 'help="', 'caption="""')
    for old in words:
        text = text.replace(old, old if old.endswith("\n") else f"{old}Reworded. ")
    text = text.replace("UserError(\n", "UserError(\n    'Reworded. '\n")
    compile(text, "a module", "exec")
    return text


# Changes of a finished project.


Change = Callable[[Path], object]  # may give the targets of `planned`


def nothing(project: Path) -> None:
    pass


def touch_all(project: Path) -> None:
    for path in project.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()


def comment(*files: str) -> Change:
    def change(project: Path) -> None:
        for name in files:
            path = project / name
            path.write_text(path.read_text("utf-8") + "\n# a comment\n", "utf-8")

    return change


def configured(config: dict) -> Change:
    return lambda project: write_config(project, config)


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
            write_config(project, setting("datasets.speech", SPEECH))
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


def record_of_an_older_snakemake(project: Path) -> None:
    for path in (project / ".snakemake/metadata").rglob("*"):
        if path.is_file():
            record = json.loads(path.read_text("utf-8"))
            path.write_text(json.dumps({**record, "record_format_version": 5}), "utf-8")


DEFAULT = sorted(set(SPECS) - {"fig_whole", "fig_lambda_min"})  # which are for studies
DRAWN = [name for name in DEFAULT if SPECS[name].drawn]
COMPUTING = (
    "dataset", "kernel", "spectrum", "closest_pair", "sweep", "architecture", "descent", "speed",
    "sgd", "variant",
)  # fmt: skip
NO_NUMBERS = [
    *(f"{folder}/{path.name}" for folder in ("pipeline", "run", "settings")
      for path in (SOURCE / folder).glob("*.py")),
    "studies.py", "checks.py",
]  # fmt: skip
NOT_USED = [
    f"datasets/{name}.py" for name in SOURCES.keys() - {"synthetic", "digits", "librispeech"}
] + ["datasets/idx_images.py", "datasets/torchvision_data.py"]

CHANGES: dict[str, list] = {
    "nothing": [nothing],
    "the dates of all files": [touch_all],
    "comments, docstrings and formatting of every module": [everywhere(rewritten)],
    "messages of errors and logs, help texts, captions": [everywhere(reworded)],
    "a comment in the rules or in the config": [
        comment("Snakefile", "config.yaml", "small.yaml", "workflow/rules/kernels.smk")
    ],
    "a new clone, beside the kept `results` and `.snakemake`": [move_to_a_new_clone],
    "`.snakemake` is lost": [delete(".snakemake")],
    "`.snakemake` is of an older Snakemake, in another format": [record_of_an_older_snakemake],
    "a deleted kernel, spectrum, training run or table, while the figures are there": [
        delete(
            "results/spectra", "results/kernels", "results/datasets", "results/conditioning.csv",
            "results/training", "results/training.csv",
        )
    ],
    "a deleted log and a deleted benchmark record": [delete("results/logs", "results/benchmarks")],
    "`seeds`: one added, or two swapped": [
        setting("seeds", [1, 32, 111]),
        setting("seeds", [32, 1]),
    ],
    "`width`": [setting("width", 25)],
    "`depths`: one added": [setting("depths", [0, 1, 2])],
    "`depths`: one taken away": [setting("depths", [2])],
    "`activations`: one taken away": [setting("activations", ["relu"])],
    "`activations`: another order": [setting("activations", ["linear", "relu"])],
    "the data sets of a figure: another order": [setting("figures.fig2", ["digits", "synthetic"])],
    "`bias`": [setting("bias", 0.5)],
    "`trainable`": [setting("trainable", "first")],
    "`prove_smallest`": [setting("prove_smallest", True)],
    "`engine`": [setting("engine", "scalapack")],
    "`block`, which both data sets have of their own": [setting("block", 30)],
    "`block` of one data set": [setting("datasets.digits.block", 40)],
    "`width` of one data set": [setting("datasets.digits.width", 25)],
    "`seed`, `scale`, `unit_norm` or `distinct` of one data set": [
        setting("datasets.digits.seed", 1),
        setting("datasets.digits.scale", [0, 1]),
        setting("datasets.digits.unit_norm", True),
        setting("datasets.digits.distinct", True),
    ],
    "a data set of no figure": [setting("datasets.mnist.samples", 999)],
    "`training.depths`: one added": [setting("training.depths", [1, 2, 3])],
    "`training.depths`: one taken away": [setting("training.depths", [2])],
    "`training.convention`": [setting("training.convention", "paper")],
    "`training.loss`, `seeds`, `activation`, `stop_below` or `tf32`": [
        setting("training.stop_below", 0.001),
        setting("training.tf32", True),
    ],
    "`training.epochs`, which the data set has of its own": [setting("training.epochs", 7)],
    "`training` of one data set: a learning rate added, more epochs, another batch or width": [
        setting("datasets.digits.training.learning_rates", [8, 16, 64, 1e20]),
        setting("datasets.digits.training.width", 25),
    ],
    "`training` of one data set: learning rates in another order": [
        setting("datasets.digits.training.learning_rates", [64, 8, 1e20])
    ],
    "`training.rate_for`": [setting("training.rate_for", "dataset")],
    "`training.thresholds`": [setting("training.thresholds", [1])],
    "`training.planned_tests`": [setting("training.planned_tests", 6)],
    "`training.checkpoint_minutes`": [setting("training.checkpoint_minutes", 3)],
    "`theory.depths`": [setting("theory.depths", [1, 2])],
    "`theory.activations`, `theory.activation_depths`": [
        setting("theory.activations", ["tanh"]),
        setting("theory.activation_depths", [1, 2]),
    ],
    "`sweeps.widths`: one added": [setting("sweeps.widths", [8, 16, 32])],
    "`sweeps.sizes`: one added": [setting("sweeps.sizes", [8, 16, 32])],
    "`sweeps.depths`, `seeds`": [
        setting("sweeps.depths", [1, 3]),
        setting("sweeps.seeds", [1, 3]),
    ],
    "`sweeps.activation`": [setting("sweeps.activation", "linear")],
    "`sweeps.blocks`": [setting("sweeps.blocks", 1)],
    "`architectures.names`: one taken away": [
        setting("architectures.names", ["plain", "residual"])
    ],
    "`architectures.bias`": [setting("architectures.bias", 0.25)],
    "`architectures.depths`, `width`, `seeds`, `activations`, `blocks`": [
        setting("architectures.depths", [1, 3]),
        setting("architectures.width", 13),
    ],
    "`descent.steps`, `depths`, `seeds`, `activation`": [
        setting("descent.steps", 30),
        setting("descent.activation", "tanh"),
    ],
    "`descent.widths`: one added": [setting("descent.widths", [8, 12])],
    "`speed.seeds`, `depths`, `activations`, `samples`, `batch`, `epochs`, learning rates": [
        setting("speed.seeds", [1]),
        setting("speed.cross_entropy.learning_rates", [8]),
    ],
    "`speed.widths`: one added": [setting("speed.widths", [8, 12, 16])],
    "`figures.fig2`: a data set taken away": [setting("figures.fig2", ["digits"])],
    "`keep_kernels`, `device`, `ranks`, `data_dir` where no raw files are read, the mirrors of a"
    " data set": [
        configured({
            **setting("datasets.mnist.mirrors", ["http://127.0.0.1:9/"]),
            "keep_kernels": False, "device": "cpu", "ranks": 4, "data_dir": "data",
        }),
    ],
    "any module of `pipeline`, `run` and `settings`, and of a step how much memory it needs": [
        code(*NO_NUMBERS),
        edited(
            {
                f"steps/{name}.py": in_functions("need")
                for name in COMPUTING
                if name != "sgd"  # which trains as many networks at once as fit on a GPU
            }
        ),
    ],
    "`steps/NAME.py` of a computing step": [code(f"steps/{name}.py") for name in COMPUTING],
    "`datasets/NAME.py` of a data set": [code("datasets/digits.py"), code("datasets/synthetic.py")],
    "`artefacts/NAME.py`: `table`, or what it uses": [
        function(name, "table") for name in DEFAULT
    ],
    "`artefacts/NAME.py`: `draw`, `markdown` or `html`, or what they use": [
        function(name, "draw", "markdown", "html") for name in DRAWN
    ],
    "`artefacts/NAME.py`: what none of these uses": [
        edited({"artefacts/fig2.py": lambda text: f"{text}\nCHANGED = True\n"})
    ],
    **{
        ", ".join(f"`{name}.py`" for name in names): [code(f"{name}.py") for name in tried]
        for names, tried in (
            (
                ("artefacts/output", "artefacts/registry", "artefacts/spec"),
                ("artefacts/output",),
            ),
            (("steps/table",),) * 2,
            (("steps/drawing",),) * 2,
            (("artefacts/sweep_curves",),) * 2,
            (("artefacts/kappa",),) * 2,
            (("artefacts/sweep_panels",),) * 2,
            (("artefacts/conditions",),) * 2,
            (("artefacts/angle_curves",),) * 2,
            (("artefacts/angle_panels",),) * 2,
            (("artefacts/best_rate",),) * 2,
            (("artefacts/rank_correlation",),) * 2,
            (
                tuple(f"artefacts/verdicts/{name}" for name in ("claim", "over_seeds", "trend")),
                ("artefacts/verdicts/claim",),
            ),
            (
                tuple(
                    f"artefacts/theory/{name}"
                    for name in (
                        "formulas", "wide_networks", "fluctuations", "conditioning", "mean_mode",
                        "deep_limits", "residual", "descents",
                    )
                ),
                ("artefacts/theory/formulas",),
            ),
            (("artefacts/claims/kernels", "artefacts/claims/optimisation"),) * 2,
            (("artefacts/claims/measured", "artefacts/claims/page"),) * 2,
            (("networks/mlp", "networks/gaussian"),) * 2,
            (("arrays/backend",),) * 2,
            (("arrays/half", "arrays/symmetric"),) * 2,
            (("steps/spectra",),) * 2,
            (("steps/kernel_errors",),) * 2,
            (("arrays/cuda", "training/sgd"),) * 2,
            (("steps/network_options",),) * 2,
            (("steps/training_task",),) * 2,
            (("steps/checkpoint",),) * 2,
            (("ntk/empirical", "arrays/threads"),) * 2,
            (("ntk/closest_pair",),) * 2,
            (("ntk/eigenvalues",),) * 2,
            (("ntk/rounding",),) * 2,
            (("ntk/rank",),) * 2,
            (
                (
                    "library/of_module", "library/of_function", "library/inputs",
                    "library/kernel", "library/closest", "library/given", "library/matrices",
                    "library/running", "library/gradient_error", "library/operations",
                    "library/perturbation", "library/differentiated",
                    "library/backward_rules", "library/per_sample_gradients", "networks/modules",
                ),
                ("library/of_module", "library/per_sample_gradients", "networks/modules"),
            ),
            (("networks/architectures",),) * 2,
            (("ntk/measure",),) * 2,
            (("ntk/infinite_width", "ntk/dual_activations"),) * 2,
            (("ntk/linearised",),) * 2,
            (("networks/zero_mean",),) * 2,
            (("training/history",),) * 2,
            (("training/learning_rates",),) * 2,
            (("training/descent",),) * 2,
            (("ntk/labels",),) * 2,
            (("training/evolution",),) * 2,
            (("ntk/predictors",),) * 2,
            (("artefacts/interval",),) * 2,
            (("datasets/samples",),) * 2,
            (("datasets/duplicates",),) * 2,
            (("datasets/blocks",),) * 2,
            (("datasets/registry", "datasets/source"), ("datasets/registry",)),
        )
    },
    "`library/eigen.py`, `library/operators.py`, `library/public.py`, `library/plots.py`: of the"
    " library alone": [
        code(*(f"library/{name}.py" for name in ("eigen", "operators", "public", "plots")))
    ],
    "`__main__.py`, `library/command_line.py`, `library/report_page.py`, `library/user_files.py`:"
    " of the command `ntkcond` alone": [
        code("__main__.py", *(f"library/{name}.py" for name in
                              ("command_line", "report_page", "user_files")))
    ],
    "`artefacts/style.py`: a colour, say": [code("artefacts/style.py")],
    "`networks/activations.py`: an activation added, say": [code("networks/activations.py")],
    "`datasets/idx_images.py`, `datasets/torchvision_data.py` and data sets that are not used": [
        code(*NOT_USED)
    ],
    "`steps/scalapack_spectrum.py`, `arrays/block_cyclic.py`, with `engine: local`": [
        code("steps/scalapack_spectrum.py", "arrays/block_cyclic.py")
    ],
    "`steps/download.py`, `datasets/speech/archive.py`: files at hand are kept": [
        code("steps/download.py", "datasets/speech/archive.py")
    ],
    "`datasets/speech/corpus.py`, `datasets/speech/subsets.py`, `steps/corpus.py` (target: a set of"
    " speech)": [
        code(f"{name}.py") for name in ("datasets/speech/corpus", "steps/corpus")
    ],
    "`datasets/speech/extraction.py`, `datasets/speech/log_mel.py`, `datasets/speech/frames.py`,"
    " `datasets/speech/phones.py`, `datasets/librispeech.py` (target: a set of speech)": [
        code(f"datasets/{name}.py") for name in ("speech/log_mel", "librispeech")
    ],
    "torch; array-api-compat; or scipy, for activations and large kernels": [
        version("torch"), version("array-api-compat"), version("scipy")
    ],
    "matplotlib": [version("matplotlib")],
    "scikit-learn, which has the digits": [version("scikit-learn")],
    "torchvision, with which nothing here was read; any other package": [
        version("torchvision", "tqdm", "psutil", "pillow")
    ],
    "a deleted picture or PDF of a figure": [
        delete(f"results/fig2.{suffix}") for suffix in ("png", "pdf")
    ],
    "a deleted CSV of a figure": [delete("results/fig2.csv")],
    "the content of a data set of your own, with or without a newer date (target: that data set)": [
        own_data_set(other_content),
        own_data_set(partial(other_content, date=0)),
    ],
    "the date of a data set of your own (target: that data set)": [own_data_set(Path.touch)],
    "a file more in a corpus of speech, or one less (target: its data set)": [
        speech(another_utterance),
        speech(delete("data/LibriSpeech/train-clean-100/10/7/10-7-0000.flac")),
    ],
    "a file of a corpus with other audio and the same size (target: its data set)": [
        speech(other_audio)
    ],
    "the dates of the files of a corpus (target: its data set)": [speech(touch_all)],
    "the content of the labels of a corpus (target: its data set)": [speech(other_labels)],
}  # fmt: skip
MOST = how_many("CASES_OF_A_LINE", few=1, thorough=100)
CASES = [
    pytest.param(line, change, id=f"{line[:50]}-{number}")
    for place, (line, changes) in enumerate(CHANGES.items())
    for number, change in enumerate(changes)
    # not always the first; of what needs no run, all
    if isinstance(change, dict | Edited) or (number - place) % len(changes) < MOST
]


def runs_after(line: str, number: int) -> str:
    """The cell of a line; where it speaks of NAME, for the module of this case."""
    cell = documented()[line]
    name = {
        "every job of that rule": lambda: COMPUTING[number],
        "every dataset read by it": lambda: (
            "dataset of digits, dataset of digits_unit",
            "dataset of synthetic",
        )[number],
        "that table": lambda: DEFAULT[number],
        "that drawing": lambda: f"draw_{DRAWN[number]}",
    }.get(cell)
    return name() if name else cell


@cache
def before() -> tuple[Dag, dict[Job, set[str]]]:
    """The small config, with a set of speech that no figure has; what its jobs are made with."""
    dag = dag_of(setting("datasets.speech", WITHOUT_LABELS))
    return dag, {one: dag.texts(one) for one in [*dag.default(), *dag.upstream(*speech_jobs())]}


def speech_jobs() -> list[Job]:
    return [job("dataset", dataset="speech")]


@pytest.mark.parametrize(("line", "change"), CASES)
def test_exactly_these_jobs_run(line, change, request, monkeypatch):
    number, cell = int(request.node.callspec.id.rpartition("-")[2]), ""
    cell = runs_after(line, number)
    if isinstance(change, dict | Edited):
        dag, was = before()
        if isinstance(change, dict):
            config = copy.deepcopy(change)
            config["datasets"]["speech"] = WITHOUT_LABELS
            dag = dag_of(config)
        else:
            monkeypatch.setattr(jobs, "CODE", change)
            dag = Dag(Jobs(dag.jobs.config, ROOT))
        targets = speech_jobs() if "speech" in line else []
        among = dag.upstream(*targets) if targets else dag.default()
        changed = [one for one in among if was.get(one) != dag.texts(one)]
        running = Counter(one.rule for one in dag.below(changed, among))
        assert running == expected(dag, cell, among)
        return
    project = request.getfixturevalue("project")
    effect = change(project)
    targets = effect if isinstance(effect, tuple) else ()
    config = yaml.safe_load((project / "small.yaml").read_text("utf-8"))
    wanted = [job("dataset", dataset=Path(path).stem) for path in targets]
    dag = dag_of(config, project)
    among = dag.upstream(*wanted) if wanted else dag.of(MADE)
    assert planned(project, *targets) == expected(dag, cell, among)


def test_versions_of_numpy_h5py_and_pandas_are_in_the_records_of_their_users(finished):
    """Too much runs for a line: all that computes, or all that writes tables."""
    digits = read(finished / "results/datasets/digits.h5")["versions"]
    assert {"numpy", "h5py", "scikit-learn"} <= digits.keys() and "torch" not in digits
    for name in MADE:
        versions = read(finished / f"results/provenance/{name}.json")["versions"]
        assert {"pandas", "h5py"} <= versions.keys()


def test_every_line_of_the_page_is_tried_and_every_module_is_on_it():
    lines = {line for line in documented() if not line.startswith("numpy, h5py")}
    assert lines == set(CHANGES)
    page = (ROOT / "tests/rebuilds.md").read_text("utf-8")
    used = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    named_together = {
        *NO_NUMBERS, *NOT_USED, "datasets/digits.py", "datasets/synthetic.py",
        *(f"steps/{name}.py" for name in COMPUTING),
        *(f"artefacts/{name}.py" for name in SPECS),
    }  # fmt: skip
    for name in used - named_together:
        assert name.endswith("__init__.py") or f"`{name}`" in page
