"""What each artefact cost, from Snakemake's records of its jobs.

Which jobs those are, the provenance of the artefact and of its inputs says.
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
What each artefact cost: a row for each artefact, rule and data set that it was made by. ``jobs``:
how many; ``jobs_measured``: those whose time was recorded; ``wall_s``, ``cpu_s``: their seconds,
added up; ``startup_s``: the part of ``wall_s`` before their work began, which loads Python and its
packages; ``max_rss_mb``: the largest memory that one of them was seen to hold. Jobs that several
artefacts need count for each. All are of the last run of a job, on the machine and under the load
of that run.

**The paper** has no such table. Its authors give 4 to 10 hours on one A100 for the NTK part of
each run, at the full size of their data sets.
""",
)

RECORDS, LOGS = Path("results/benchmarks"), Path("results/logs")
MEASURES = {"s": "wall_s", "cpu_time": "cpu_s", "max_rss": "max_rss_mb"}


def table(artefacts: list[Path]) -> pd.DataFrame:
    """A row for each artefact, rule and data set. artefacts: their provenance.

    `jobs` counts those that the artefact depends on, `jobs_measured` those with a record; `wall_s`
    and `cpu_s` are sums over these, in seconds, and `startup_s` of what passed before their work
    began, by their logs: Python and its packages; `max_rss_mb` is the largest memory that one of
    them held, in MB, as far as Snakemake saw it: it looks at a job at its start and then more and
    more rarely. What several artefacts share is counted in each. These numbers differ from run to
    run."""
    return pd.concat(map(costs, artefacts), ignore_index=True)


def costs(artefact: Path) -> pd.DataFrame:
    """The rows of one artefact."""
    jobs = dict.fromkeys([*jobs_of(record.read(artefact)), (artefact.stem, artefact.stem)])
    measured = pd.DataFrame(
        [
            {
                "rule": rule,
                "dataset": dataset_of(job),
                **measures(RECORDS / f"{job}.tsv"),
                **startup(LOGS / f"{job}.log"),
            }
            for rule, job in jobs
        ],
        columns=["rule", "dataset", *MEASURES.values(), "startup_s"],
    )
    groups = measured.groupby(["rule", "dataset"], sort=False)
    found = groups.agg(
        jobs=("rule", "size"),
        jobs_measured=("wall_s", "count"),
        wall_s=("wall_s", _sum),
        startup_s=("startup_s", _sum),
        cpu_s=("cpu_s", _sum),
        max_rss_mb=("max_rss_mb", "max"),
    )
    found = found.reset_index().round(2)  # the precision of the records
    found.insert(0, "artefact", artefact.stem)
    return found


def jobs_of(provenance: dict | None) -> Iterator[tuple[str, str]]:
    """(rule, job) of all that a result depends on, inputs first; job: the path of its log and
    record, such as kernel/digits/relu/depth2."""
    for option, paths in (provenance or {}).get("inputs", {}).items():
        rule = option.partition("/")[0]
        for path in map(Path, paths):
            if not record.is_result(path):
                continue  # a user's own file
            yield from jobs_of(record.read(path) if path.exists() else None)
            inner = "/".join(path.with_suffix("").parts[2:])
            yield rule, rule if rule in SPECS else f"{rule}/{inner}"


def dataset_of(job: str) -> str:
    """kernel/digits/relu/depth2 and sweep/width/digits/relu are of digits; an artefact of none."""
    parts = job.split("/")
    return "" if len(parts) == 1 else parts[2 if parts[0] == "sweep" else 1]


def _sum(values: pd.Series) -> float:
    return values.sum(min_count=1)  # of nothing: unknown, not 0


def measures(path: Path) -> dict[str, float]:
    """Time and memory of a job; empty if it has no record, as a job of another machine's results.
    Snakemake writes NA for the memory of a job shorter than its first look."""
    if not path.is_file():
        return {}
    row = pd.read_csv(path, sep="\t").iloc[-1]
    return {name: row[column] for column, name in MEASURES.items()}


def startup(log: Path) -> dict[str, float]:
    """Of a job, by its log; empty where that does not tell."""
    found = re.search(r"start-up ([\d.]+) s", log.read_text("utf-8")) if log.is_file() else None
    return {"startup_s": float(found[1])} if found else {}
