"""A copy of the project to run Snakemake in, with a config that takes half a minute."""

import ast
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import h5py
import pandas as pd
import pytest
import yaml

from ntkcond.artefacts.registry import SPECS

ROOT = Path(__file__).parents[1]
# Artefacts of each kind, the `kept` of the small config: to make all takes minutes.
MADE = {
    name: SPECS[name]
    for name in (
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig_width",
        "table_epochs",
        "table_generalization",
    )
}
TARGETS = ("all", "kept", "samples")
PROJECT = ("Snakefile", "config.yaml", "config", "profiles", "src", "workflow")
SMALL = {
    "keep": list(MADE),
    "seeds": [1, 32],
    "width": 24,
    "depths": [0, 2],
    "datasets": {
        "synthetic": {"samples": 60, "features": 5, "block": 20},
        # one of the rates diverges, and 97 samples are no multiple of 40
        "digits_unit": {"hold_out": 1700, "depths": [1, 2]},
        "digits": {
            "hold_out": 1700,
            "training": {"learning_rates": [8, 64, 1e20], "epochs": 3, "batch": 40, "width": None},
        },
    },
    "training": {"depths": [1, 2], "seeds": [1, 32], "checkpoint_minutes": 0},
    "descent": {"depths": [1, 2], "widths": [8], "seeds": [1], "steps": 20},
    "speed": {
        "depths": [1, 2],
        "widths": [8, 12],
        "seeds": [1, 32],
        "samples": 60,
        "epochs": 5,
        "cross_entropy": {"learning_rates": [8, 16], "thresholds": [3, 2, 0.001]},
        "square": None,
    },
    "architectures": {"depths": [1, 2], "seeds": [1, 32], "width": 12, "blocks": 1},
    "sweeps": {
        "depths": [1, 2],
        "widths": [8, 16],
        "sizes": [8, 16],
        "seeds": [1, 32],
        "blocks": 2,
    },
}
KERNELS = 8  # data sets × activations × depths


def skip(what: str, reason: str) -> None:
    """Skips a test that needs a disk, slurm or browser; where NTKCOND_TEST_REQUIRE names it, as in
    CI, its lack is a failure."""
    if what in os.environ.get("NTKCOND_TEST_REQUIRE", "").split():
        pytest.fail(f"{reason}, though NTKCOND_TEST_REQUIRE has {what}")
    pytest.skip(reason)


def copy_of_the_project(place: Path) -> Path:
    """The tracked files that a run needs, and the small config, in a new folder."""
    place.mkdir()
    for name in PROJECT:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, place / name, ignore=ignored)
        else:
            shutil.copy2(source, place / name)
    write_config(place, SMALL)
    (place / "data").mkdir()
    return place


def write_config(project: Path, config: dict) -> None:
    (project / "small.yaml").write_text(yaml.safe_dump(config), "utf-8")


def setting(project: Path, path: str, value: object) -> None:
    """Another value of a setting of the small config."""
    config = yaml.safe_load((project / "small.yaml").read_text("utf-8"))
    *parents, last = path.split(".")
    functools.reduce(lambda place, key: place.setdefault(key, {}), parents, config)[last] = value
    write_config(project, config)


def changed(project: Path, name: str) -> None:
    """A new line in each function of a module."""
    path = project / "src/ntkcond" / name
    lines = path.read_text("utf-8").splitlines()
    for node in reversed(ast.parse("\n".join(lines)).body):
        if isinstance(node, ast.FunctionDef):
            lines.insert(node.body[-1].lineno - 1, "    _changed = True")
    path.write_text("\n".join([*lines, "_CHANGED = True"]) + "\n", "utf-8")


def delete(project: Path, *names: str) -> None:
    for name in names:
        path = project / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def command(*arguments: str) -> list[str]:
    """Snakemake with the small config; what it keeps, if no target is given."""
    has_target = any(word.startswith("results/") or word in TARGETS for word in arguments)
    target = () if has_target else ("kept",)
    words = ("snakemake", "-j2", *target, *arguments, "--configfile", "small.yaml")
    return [sys.executable, "-m", *words]


def environment(project: Path) -> dict[str, str]:
    """In which the project's own copy of the package is imported."""
    return {**os.environ, "PYTHONPATH": str(project / "src")}


def at_the_keyboard() -> None:
    """To be run in a new process, for Ctrl-C to reach it: where pytest runs in the background of a
    script, it is ignored, which is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Forks:
    """Runs modules of Python without their start-up (tests/forks.py)."""

    def __init__(self, *packages: str) -> None:
        server = [sys.executable, "-P", Path(__file__).with_name("forks.py"), *packages]
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(server, stdin=pipe, stdout=pipe, text=True)

    def run(
        self,
        folder: Path,
        module: str | None,
        *arguments: str,
        path: Iterable[Path] = (),
        imports: Iterable[str] = (),
    ) -> tuple[subprocess.CompletedProcess, set[str]]:
        """Like `python -m module arguments` in this folder, with these folders on the path of
        Python and these modules imported before; and which modules of ntkcond were loaded."""
        with tempfile.TemporaryDirectory() as output:
            run = {
                "folder": str(folder), "module": module, "arguments": arguments, "output": output,
                "path": [str(entry) for entry in path], "imports": list(imports),
            }  # fmt: skip
            print(json.dumps(run), file=self.server.stdin, flush=True)
            status = int(self.server.stdout.readline())
            said = [Path(output, name).read_text("utf-8") for name in ("stdout", "stderr")]
            loaded = json.loads(Path(output, "loaded").read_text("utf-8"))
        return subprocess.CompletedProcess([module, *arguments], status, *said), set(loaded)

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


@functools.cache
def snakemakes() -> Forks:
    return Forks("snakemake.cli", "h5py", "psutil", "pandas", "yaml")


def snakemake(
    project: Path, *arguments: str, check: bool = True, before: tuple[Path, ...] = ()
) -> subprocess.CompletedProcess:
    """Runs Snakemake in a copy of the project, with the copy's own package and `before` in front of
    it. Its jobs are processes as always."""
    done, _ = snakemakes().run(project, *command(*arguments)[2:], path=[*before, project / "src"])
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def planned(project: Path, *arguments: str, before: tuple[Path, ...] = ()) -> dict[str, int]:
    """How often each rule would run."""
    return jobs_in(snakemake(project, "-n", *arguments, before=before).stdout)


def jobs_in(output: str) -> dict[str, int]:
    """The same, of what a dry run said."""
    table = output.rpartition("Job stats:")[2].partition("\n\n")[0]
    jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.M)}
    return {rule: count for rule, count in jobs.items() if rule not in (*TARGETS, "total")}


def contents(project: Path) -> dict[str, bytes]:
    """Every finished result. Logs, costs and records of time differ from run to run."""
    results = project / "results"
    return {
        path.relative_to(results).as_posix(): without_time(path)
        for path in results.rglob("*")
        if path.suffix in (".h5", ".csv", ".md", ".html", ".pdf", ".png")
        and path.name != "costs.csv"
        and not path.name.endswith(".checkpoint.h5")
    }


def without_time(path: Path) -> bytes:
    """A file's bytes; of training runs, all but how long they took."""
    if path.name == "training.csv":
        return pd.read_csv(path).drop(columns="wall_s").to_csv().encode()
    if path.parts[-4] != "training":
        return path.read_bytes()
    with h5py.File(path) as file:
        arrays = {name: file[name][:].tolist() for name in file if name != "wall_s"}
        attributes = {name: str(file.attrs[name]) for name in file.attrs if name != "wall_s"}
    return repr((arrays, attributes)).encode()
