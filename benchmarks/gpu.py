"""What a CUDA GPU computes, how fast, and whether it agrees with the CPU: one table, one page.

    make gpu                                        at most 30 minutes
    .venv/bin/python benchmarks/gpu.py --help

Without a GPU all parts run at small size, with the GPU's code on the CPU (torch.device("cpu")).
Each part is a process of its own (`gpu_worker.py`). A finished part is a file in OUTPUT/parts; the
table docs/measured/gpu.csv and the page docs/gpu.md are rewritten after each. So a cut-off at any
moment loses the part in progress alone, and the next call continues; those that the workflow
computes resume from its files and checkpoints. Another machine, torch or code, or other samples or
sizes, redo a part.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from ntkcond.run.files import csv_of, write_artefact, write_text
from ntkcond.run.record import CODE

ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("gpu_worker.py")
GPU = torch.cuda.is_available()
SECONDS_TO_END = 15  # of a part that is told to


COLUMNS = (  # of what `gpu_worker.row` gives
    "case", "seconds", "gflops", "type", "rate_gflops", "share", "difference", "tolerance",
    "verdict", "gpu_gb", "result",
)  # fmt: skip


PAGE = """\
# On a GPU

This page says what a CUDA GPU computes, how fast, and whether it agrees with the CPU. `make gpu`
writes it, from its table `docs/measured/gpu.csv`.
{no_gpu}
| machine | |
|---|---|
{facts}

- **Samples**: {samples}.
- **Share**: counted operations a second, relative to a matrix product's (Gflop/s) of the same type,
  measured in the same process.
- **Difference**: the largest to the CPU's result, and its tolerance. Kernels: in units of
  √(K_ii K_jj). Spectra: in units of the sum of both error bounds. Closest pairs: in degrees; the
  pair must be the same. Training: relative difference of the loss.

{sections}
## Not tried

{not_tried}
"""
NO_GPU = """
**No CUDA GPU: torch on the CPU, at small size.** The code of the GPU ran on `torch.device("cpu")`,
the workflow as on any CPU. So this page shows that every part runs, and that kernels, spectra and
closest pairs agree with NumPy's. It says nothing of a GPU.
"""


class Part(NamedTuple):
    """seconds: predicted, on an H100, and at small size on two cores. steps: those with its code.
    needs: a package that a bare machine with torch may lack. resumes: whether the next call
    continues it, so that it may start in what time is left."""

    title: str
    seconds: tuple[int, int]
    steps: tuple[str, ...]
    needs: str | None = None
    resumes: bool = False


NTK = ("kernel", "spectrum", "closest_pair")
PARTS = {  # in the order of their worth
    "tests": Part("The tests that need a GPU", (120, 30), (*NTK, "sgd"), "pytest"),
    "kernel": Part("Kernels", (60, 15), ("kernel",)),
    "spectra": Part("Spectra", (90, 15), ("kernel", "spectrum")),
    "pairs": Part("Closest pairs", (120, 20), ("closest_pair",)),
    "training": Part("Training", (150, 30), ("sgd",)),
    "whole": Part("From data to κ", (330, 30), NTK, "snakemake", resumes=True),
    "table_1": Part("Table 1", (600, 45), ("sgd",), "snakemake", resumes=True),
    "fig3": Part("Figure 3", (450, 30), ("sgd",), "snakemake", resumes=True),
    "fig3_fashion": Part(
        "Figure 3 with Fashion-MNIST", (1000, 600), ("sgd",), "snakemake", resumes=True
    ),
}


def machine() -> dict[str, str]:
    """What numbers and times depend on."""
    facts = {"GPU": "none", "torch": torch.__version__, "NumPy": np.__version__}
    if GPU:
        card = torch.cuda.get_device_properties(0)
        facts |= {"GPU": f"{card.name}, {card.total_memory / 2**30:.0f} GiB"}
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        with contextlib.suppress(OSError):
            done = subprocess.run(query, capture_output=True, text=True, check=False)
            facts["driver"] = done.stdout.partition("\n")[0]
        facts["CUDA"] = str(torch.version.cuda)
    cores = len(os.sched_getaffinity(0))
    return facts | {"Python": platform.python_version(), "CPU cores": str(cores)}


def identity(name: str, facts: dict[str, str], options: argparse.Namespace) -> str:
    """A digest of all that a part's numbers and times depend on."""
    code = CODE.digests(*(f"ntkcond.steps.{step}:main" for step in PARTS[name].steps))
    circumstances = [facts, code, WORKER.read_text("utf-8"), options.small, str(options.data)]
    return hashlib.sha256(repr(circumstances).encode()).hexdigest()


def finished(name: str, facts: dict[str, str], options: argparse.Namespace) -> list[dict] | None:
    """A part's rows, unless they are of another machine, code or size."""
    path = options.output / "parts" / f"{name}.json"
    kept = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    same = kept.get("identity") == identity(name, facts, options)
    return kept["rows"] if same else None


def not_tried(name: str, options: argparse.Namespace, left: float) -> str:
    """Why a part does not start now; empty if it does."""
    part = PARTS[name]
    if name not in options.parts:
        return "not asked for"
    if part.needs and not importlib.util.find_spec(part.needs):
        return f"{part.needs} is not installed"
    if name == "fig3_fashion" and not options.data:
        return "no MNIST files here (`--data`); the digits stood in for MNIST"
    needed = 60 if part.resumes and GPU else part.seconds[options.small]
    return f"takes some {needed} s, {max(left, 0):.0f} s were left" if left < needed else ""


def run(name: str, facts: dict[str, str], options: argparse.Namespace, left: float) -> str:
    """Runs a part for `left` seconds at most; what became of it, empty if it finished."""
    command = [sys.executable, WORKER, name, "--output", options.output]
    command += ["--identity", identity(name, facts, options), "--caller", str(os.getpid())]
    command += ["--small"] if options.small else []
    command += ["--data", options.data] if options.data else []
    log = options.output / "parts" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        status = process.wait(left)
    except subprocess.TimeoutExpired:
        return "cut off: no time was left" + ("; resumes" if PARTS[name].resumes else "")
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):  # as Ctrl-C does, then for good
            if process.poll() is None:
                os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(SECONDS_TO_END)
    last = " ".join(log.read_text("utf-8").strip().splitlines()[-1:])
    return f"failed: {last} ({log.name})" if status else ""


def main(options: argparse.Namespace) -> bool:
    """Runs what is not finished and reports after each part. Whether nothing failed or differs."""
    facts = machine()
    end = time.monotonic() + 60 * options.minutes
    print(", ".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
    outcomes = {name: "not reached" for name in PARTS if not finished(name, facts, options)}
    good = report(facts, outcomes, options)
    for name in outcomes:
        start = time.monotonic()
        left = end - start - SECONDS_TO_END
        outcomes[name] = not_tried(name, options, left) or run(name, facts, options, left)
        seconds = time.monotonic() - start
        print(f"{name}: {outcomes[name] or 'finished'} ({seconds:.0f} s)", flush=True)
        good = report(facts, outcomes, options)
    return good


def report(facts: dict[str, str], outcomes: dict[str, str], options: argparse.Namespace) -> bool:
    """Writes table and page of what is finished. Whether nothing failed or differs."""
    parts = {name: finished(name, facts, options) or [] for name in PARTS}
    rows = [{"part": name, **row} for name, rows in parts.items() for row in rows]
    table = pd.DataFrame(rows, columns=["part", *COLUMNS])
    table = table.assign(command="make gpu", when=date.today().isoformat())
    write_artefact({options.table: csv_of(table)}, None)
    write_text(options.page, page(table, facts, outcomes, options))
    failed = any(outcome.startswith("failed") for outcome in outcomes.values())
    return not failed and "differs" not in table["verdict"].to_numpy()


def page(table: pd.DataFrame, facts: dict, outcomes: dict, options: argparse.Namespace) -> str:
    """In Markdown: the machine, a section for each part that ran, and what did not."""
    sections = [
        f"## {PARTS[name].title}\n\n{as_markdown(rows)}\n"
        for name, rows in table.groupby("part", sort=False)
    ]
    lost = [f"- {PARTS[name].title}: {why}." for name, why in outcomes.items() if why]
    return PAGE.format(
        no_gpu="" if GPU else NO_GPU,
        facts="\n".join(f"| {name} | {value} |" for name, value in facts.items()),
        samples="MNIST" if options.data else "random ones with MNIST's 784 features",
        sections="\n".join(sections),
        not_tried="\n".join(([] if GPU else ["- Every part at full size, on a GPU."]) + lost),
    )


def as_markdown(rows: pd.DataFrame) -> str:
    """A part's rows, without empty columns."""
    lines = [
        {
            "": row.case,
            "seconds": f"{row.seconds:.3g}",
            "Gflop/s": f"{row.gflops:,.0f}",
            "share": f"{row.share:.0%} of {row.rate_gflops:,.0f}, {row.type}",
            "difference": f"{row.difference:.1e} ≤ {row.tolerance:.0e}",
            "verdict": row.verdict,
            "GPU memory": f"{row.gpu_gb:.2f} GB",
            "result": row.result,
        }
        for row in rows.itertuples()
    ]
    cells = pd.DataFrame(lines).map(lambda cell: "" if "nan" in cell else cell)
    cells = cells.loc[:, (cells != "").any()]
    table = [list(cells.columns), ["---"] * len(cells.columns), *cells.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def data_folder() -> Path | None:
    """Where MNIST's files are: NTKCOND_TEST_DATA, or data/."""
    folders = [os.environ.get("NTKCOND_TEST_DATA"), ROOT / "data"]
    resolved = (Path(folder).resolve() for folder in folders if folder)
    return next((folder for folder in resolved if (folder / "MNIST/raw").is_dir()), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="at most")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/gpu")
    parser.add_argument("--table", type=Path, default=ROOT / "docs/measured/gpu.csv")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/gpu.md")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of raw files")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART")
    parser.add_argument("--small", action="store_true", default=not GPU, help="on a GPU, too")
    options = parser.parse_args()
    options.output = options.output.resolve()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(not main(options))
    except KeyboardInterrupt:
        sys.exit("ended; the next call continues")
