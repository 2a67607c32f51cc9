"""What each artefact cost, from Snakemake's records of its jobs.

The provenance of the artefact and of its inputs names these jobs.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ntkcond.artefacts.registry import SPECS
from ntkcond.artefacts.spec import Spec
from ntkcond.run import record

SPEC = Spec(
    title="Table, what each artefact cost",
    section="∑ Costs",
    inputs=("artefacts",),
    files=(".csv",),
    costs=False,
    caption="""
What the numbers of each artefact cost: a row for each artefact, and each rule and data set that
they depend on. To draw them takes a second or two more.
``jobs``: how many; ``jobs_measured``: those with a recorded time; ``wall_s``, ``cpu_s``: the sum of
their seconds; ``startup_s``: the part of ``wall_s`` before their work began, which loads Python and
its packages; ``peak_memory_mb``: the largest memory of any of them. Jobs that several artefacts
need count for each. All are of the last run of a job, on the machine and under the load of that
run.

**The paper** has no such table. Its authors give 4 to 10 hours on one A100 for the NTK part of
each run, at the full size of their data sets.
""",
)

# by Snakemake, whose looks at CPU time and memory miss most of a job of less than half a second
SAMPLED = {"s": "wall_s", "cpu_time": "cpu_s", "max_rss": "peak_memory_mb"}
# by the job itself, on Linux
LOGGED = re.compile(  # ntkcond.settings.command.COSTS
    r"start-up (?P<startup_s>[\d.]+) s, .* CPU (?P<cpu_s>[\d.]+) s, "
    r"peak memory (?P<peak_memory_mb>\d+) MB"
)
MEASURES = ("wall_s", "startup_s", "cpu_s", "peak_memory_mb")


def table(artefacts: list[Path]) -> pd.DataFrame:
    """A row for each artefact, rule and data set. artefacts: their provenance.

    `jobs` counts the jobs that the artefact depends on, `jobs_measured` those with a record;
    `wall_s` and `cpu_s` are their sums in seconds, `startup_s` that of the time before their work
    began; `peak_memory_mb` is the largest memory of one of them in MB. Shared jobs count for each
    artefact. These numbers differ from run to run."""
    return pd.concat(map(costs, artefacts), ignore_index=True)


def costs(artefact: Path) -> pd.DataFrame:
    """The rows of one artefact."""
    results = artefact.parents[1]  # of another workflow's module below its prefix
    made_with = record.read(artefact)
    jobs = dict.fromkeys([*jobs_of(made_with, results), (artefact.stem, artefact.stem)])
    rows = [
        {"rule": rule, "dataset": dataset_of(job), **measures(job, results)} for rule, job in jobs
    ]
    measured = pd.DataFrame(rows, columns=["rule", "dataset", *MEASURES])
    totals = measured.groupby(["rule", "dataset"], sort=False).agg(
        jobs=("rule", "size"),
        jobs_measured=("wall_s", "count"),
        wall_s=("wall_s", _sum),
        startup_s=("startup_s", _sum),
        cpu_s=("cpu_s", _sum),
        peak_memory_mb=("peak_memory_mb", "max"),
    )
    totals = totals.reset_index().round(2)  # the precision of the records
    totals.insert(0, "artefact", artefact.stem)
    return totals


def jobs_of(provenance: dict | None, results: Path) -> Iterator[tuple[str, str]]:
    """(rule, job) of all jobs that a result depends on, inputs first; job: the path of its log and
    record, such as kernel/digits/relu/depth2. A user's own files have none. results: the folder of
    all results."""
    for option, paths in (provenance or {}).get("inputs", {}).items():
        rule = option.partition("/")[0]
        for path in filter(record.is_result, map(Path, paths)):
            place = results.parent / path
            yield from jobs_of(record.read(place) if place.exists() else None, results)
            inner = "/".join(path.with_suffix("").parts[2:])
            yield rule, rule if rule in SPECS else f"{rule}/{inner}"


def dataset_of(job: str) -> str:
    """digits for kernel/digits/relu/depth2 and sweep/width/digits/relu; empty for an artefact."""
    parts = job.split("/")
    return "" if len(parts) == 1 else parts[2 if parts[0] == "sweep" else 1]


def _sum(values: pd.Series) -> float:
    return values.sum(min_count=1)  # without records: unknown, not 0


def measures(job: str, results: Path) -> dict[str, float]:
    """Time and memory of a job, by its log and Snakemake's record; empty without them, as for
    results of another machine."""
    path, log = results / f"benchmarks/{job}.tsv", results / f"logs/{job}.log"
    values = dict[str, float]()
    if path.is_file():
        row = pd.read_csv(path, sep="\t").iloc[-1]
        values = {name: row[column] for column, name in SAMPLED.items()}
    if log.is_file() and (logged := LOGGED.search(log.read_text("utf-8"))):
        values |= {name: float(text) for name, text in logged.groupdict().items()}
    return values
