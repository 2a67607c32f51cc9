"""What a result will cost: python -m ntkcond.predict results/fig2.pdf

Time, memory and room on the disk of the jobs that would run, a line for each rule, at the rate of
this machine's matrix products, measured first. Takes --configfile, --config and --directory as
Snakemake does, and runs none of them."""

import argparse
import os
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from ntkcond.jobs.registry import STEPS
from ntkcond.plan.graph import Graph, Job
from ntkcond.plan.question import asked, parser, run
from ntkcond.run.files import read_hdf5
from ntkcond.run.units import size

# On one machine; a cluster's requests are for a slower one (`ntkcond.jobs.costs`).
START = 0.5  # seconds: a job of this workflow without its work
BYTES_PER_SECOND = 0.5e9  # a local disk, through HDF5
ROW = "{:<21}{:>6}{:>16}{:>11}{:>11}   {}"


class Cost(NamedTuple):
    """The cost of a job. seconds: with all cores at work; memory, disk: bytes; unknown: the samples
    on whose size it depends, if these are still to be made: the others are 0 then."""

    rule: str
    name: str
    seconds: float
    memory: int = 0
    disk: int = 0
    unknown: str = ""


def main(arguments: argparse.Namespace) -> None:
    """Prints a table. Raises UserError for a mistake."""
    question = asked(arguments)
    jobs = question.freshness.running(question.job)
    if not jobs:
        print(f"{question.path} is up to date: nothing would run")
        return
    report(question.freshness.graph, jobs)
    if question.missing:
        print(question.missing)


def report(graph: Graph, jobs: Sequence[Job]) -> None:
    """Prints the table of these jobs, of which there is at least one."""
    rate = measured_rate()
    made = {path for job in jobs for path in job.outputs}
    costs = [cost(graph, job, rate, made) for job in jobs]
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {rate / 1e9:.0f} Gflop/s in matrix products (measured now)\n")
    print(ROW.format("rule", "jobs", "time", "memory", "on disk", "longest job"))
    for rule in dict.fromkeys(one.rule for one in costs):
        print(_row(rule, [one for one in costs if one.rule == rule]))
    print(_row("in all", costs).rpartition("  ")[0].rstrip())
    if any(job.artefact for job in jobs):
        print("tables and drawings count as half a second each: some take more, theory the most")
    if not graph.config.keep_kernels:
        print("keep_kernels: false: each kernel stays on the disk until its spectrum is there")
    for path, count in Counter(one.unknown for one in costs if one.unknown).items():
        print(f"not counted: {count} whose cost is known once {path} is made")


def _row(name: str, costs: list[Cost]) -> str:
    longest = max(costs, key=lambda one: one.seconds)
    return ROW.format(
        name,
        len(costs),
        duration(sum(one.seconds for one in costs)),
        size(max(one.memory for one in costs)),
        size(sum(one.disk for one in costs)),
        f"{longest.name}, {duration(longest.seconds)}",
    )


def cost(graph: Graph, job: Job, rate: float, made: Collection[str] = ()) -> Cost:
    """rate: operations a second in matrix products. made: files that are made anew. Of an artefact
    and of the list of a corpus only the start of the process is counted."""
    name = "/".join([job.rule, *job.wildcards.values()])
    if job.rule not in STEPS:
        return Cost(job.rule, name, START)
    request = graph.request(job.rule, job.wildcards)
    if None in (request.data.samples, request.data.features):
        samples = graph.job("dataset", dataset=job.wildcards["dataset"]).outputs[0]
        if samples in made or not graph.at(samples).exists():
            return Cost(job.rule, name, 0, unknown=str(graph.at(samples)))
        with read_hdf5(graph.at(samples)) as file:
            size_of = dict(zip(("samples", "features"), file["x"].shape, strict=True))
        request = replace(request, data=replace(request.data, **size_of))
    work = request.work()
    if work is None:
        return Cost(job.rule, name, START)
    seconds = START + work.operations / rate + work.bytes / BYTES_PER_SECOND
    return Cost(job.rule, name, seconds, request.memory() or 0, request.file_bytes())


def measured_rate(n: int = 2048, times: int = 5) -> float:
    """Operations a second in products of (n, n) float64 matrices on all cores, the best of some."""
    import numpy as np

    from ntkcond.run.machine import use_threads

    use_threads(None)
    a, out, seconds = np.ones((n, n)), np.empty((n, n)), []
    for _ in range(times + 1):  # the first starts the threads
        start = time.perf_counter()
        np.matmul(a, a, out=out)
        seconds.append(time.perf_counter() - start)
    return 2 * n**3 / min(seconds)


def duration(seconds: float) -> str:
    """In words: `duration(100)` is '1 min 40 s'."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


if __name__ == "__main__":
    run(main, parser("predict", __doc__))
