"""What a job costs before it computes, and the share of that in a run.

    python benchmarks/startup.py
    python benchmarks/startup.py --results results --cores 2 --elapsed 600

The second adds, for a finished run that took --elapsed seconds, what its jobs did with the time of
the cores, from results/benchmarks (Snakemake's records) and results/logs.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from ntkcond.artefacts import costs

PROJECT = Path(__file__).parents[1]
STEPS = ("kernel", "spectrum", "closest_pair", "sweep", "descent", "sgd", "table", "drawing")


def seconds(command: list[str], repeats: int) -> tuple[float, float]:
    """Wall and CPU time of a command, medians."""
    wall, cpu = [], []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
        wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def spent(results: Path, cores: int, elapsed: float) -> pd.DataFrame:
    """Core seconds of a run: start-up and work of each rule's jobs, and what was left over."""
    rows = []
    records = results / "benchmarks"
    for path in sorted(records.rglob("*.tsv")):
        job = path.relative_to(records).with_suffix("")
        rows.append({"rule": job.parts[0], **costs.measures(job.as_posix(), results)})
    jobs = pd.DataFrame(rows).assign(jobs=1)
    table = jobs.groupby("rule", sort=False)[["jobs", "wall_s", "startup_s"]].sum()
    table["work_s"] = table.wall_s - table.startup_s
    table = table.sort_values("wall_s", ascending=False)
    table.loc["all jobs"] = table.sum()
    table.loc["Snakemake and waiting", "wall_s"] = cores * elapsed - table.wall_s["all jobs"]
    table["share"] = table.wall_s / (cores * elapsed)
    return table.round({"wall_s": 1, "startup_s": 1, "work_s": 1, "share": 3})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--results", type=Path, help="of a finished run")
    options.add_argument("--cores", type=int, default=2)
    options.add_argument("--elapsed", type=float, help="seconds that the run took")
    a = options.parse_args()
    print(f"{'':34} {'wall s':>7} {'CPU s':>7}")
    commands = {"Python": ["-c", ""], "torch": ["-c", "import torch"]}
    commands |= {f"step {name}": ["-c", f"import ntkcond.steps.{name}"] for name in STEPS}
    commands["Snakemake, default config, dry run"] = ["-m", "snakemake", "-n", "--forceall"]
    for name, words in commands.items():
        wall, cpu = seconds([sys.executable, *words], a.repeats)
        print(f"{name:34} {wall:7.2f} {cpu:7.2f}")
    if a.results:
        if not a.elapsed:
            options.error("--results needs --elapsed")
        print(spent(a.results, a.cores, a.elapsed).to_string(na_rep=""))


if __name__ == "__main__":
    main()
