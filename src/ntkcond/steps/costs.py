"""What each artefact cost: results/costs.csv, from the records that Snakemake keeps of its jobs.

A row for each artefact, rule and data set. `jobs` counts those that the artefact was made by,
`jobs_measured` those with a record; `wall_s` and `cpu_s` are sums over these, in seconds, and
`startup_s` of what passed before their work began, by their logs: Python and its packages;
`max_rss_mb` is the largest memory that one of them held, in MB, as far as Snakemake saw it: it
looks at a job at its start and then more and more rarely. What several artefacts share is counted
in each. These numbers differ from run to run.
"""

import re
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ntkcond import command
from ntkcond.storage import write_csv

MEASURES = {"s": "wall_s", "cpu_time": "cpu_s", "max_rss": "max_rss_mb"}


class Artefact(NamedTuple):
    """Its CSV and, for each rule that it was made by, the path of the record, with {columns}. The
    record of a job by itself is named like the job's data set, or in a folder that is."""

    csv: Path
    records: list[str]


def main(arguments: Namespace) -> None:
    """Reads the artefacts' CSVs for what jobs there were, and the record of each."""
    a = arguments
    tables = [costs(artefact, a.records, a.logs) for artefact in a.artefact]
    write_csv(a.output, pd.concat(tables, ignore_index=True))


def costs(artefact: Artefact, folder: Path, logs: Path) -> pd.DataFrame:
    """The rows of one artefact."""
    drawn = pd.read_csv(artefact.csv)
    jobs = {}
    for pattern in artefact.records:
        rule = Path(pattern).parts[0].removesuffix(".tsv")
        keys = [key for key in ("dataset", "activation", "depth") if f"{{{key}}}" in pattern]
        alone = _data_set(Path(pattern)) if len(Path(pattern).parts) > 1 else ""
        rows = drawn[keys].drop_duplicates().to_dict("records") if keys else [{}]
        for row in rows:
            dataset = row.get("dataset", alone)
            jobs[pattern.format(**row)] = {"rule": rule, "dataset": dataset}
    measured = pd.DataFrame(
        [
            {**job, **record(folder / path), **startup(logs / Path(path).with_suffix(".log"))}
            for path, job in jobs.items()
        ],
        columns=["rule", "dataset", *MEASURES.values(), "startup_s"],
    )
    groups = measured.groupby(["rule", "dataset"], sort=False)
    table = groups.agg(
        jobs=("rule", "size"),
        jobs_measured=("wall_s", "count"),
        wall_s=("wall_s", _sum),
        startup_s=("startup_s", _sum),
        cpu_s=("cpu_s", _sum),
        max_rss_mb=("max_rss_mb", "max"),
    )
    table = table.reset_index().round(2)  # the precision of the records
    table.insert(0, "artefact", artefact.csv.stem)
    return table


def _data_set(record: Path) -> str:
    """Of a job by itself: a sweep's folder, or the record's own name."""
    return record.parent.name if record.parts[0] == "sweep" else record.stem


def _sum(values: pd.Series) -> float:
    return values.sum(min_count=1)  # of nothing: unknown, not 0


def record(path: Path) -> dict[str, float]:
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


def artefact(text: str) -> Artefact:
    """results/fig1.csv=fig1.tsv,…"""
    csv, records = text.split("=")
    return Artefact(Path(csv), records.split(","))


if __name__ == "__main__":
    options = command.parser(__doc__)
    options.add_argument(
        "--records", type=Path, required=True, help="folder of Snakemake's records"
    )
    options.add_argument("--logs", type=Path, required=True, help="folder of the jobs' logs")
    options.add_argument(
        "--artefact", type=artefact, action="append", required=True, metavar="CSV=RECORD,…",
        help="an artefact's CSV and the records of the rules that made it",
    )  # fmt: skip
    command.run(main, options)
