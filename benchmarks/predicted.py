"""Predicted against measured time and memory of the finished jobs that a result depends on, from
their logs, as a CSV:

    python benchmarks/predicted.py results/fig_whole.pdf --directory runs/whole \\
        --configfile studies/whole/config.yaml --longer-than 10

Of a large kernel's spectrum also the seconds of its parts, for all initialisations together.
"""

import csv
import re
import sys
from pathlib import Path

from ntkcond.artefacts.costs import LOGGED
from ntkcond.jobs.registry import STEPS
from ntkcond.plan.question import asked, parser
from ntkcond.predict import cost, measured_rate

WORK = re.compile(r"work ([\d.]+) s")
PARTS = {
    "reading_s": r"reading the kernel: done in ([\d.]+) s",
    "largest_s": r"λ_max: done in ([\d.]+) s",
    "factor_s": r"Cholesky factor, n = \d+: done in ([\d.]+) s",
    "smallest_s": r"λ_min: done in ([\d.]+) s",
    "residual_s": r"residual of the eigenvector: done in ([\d.]+) s",
}


def main() -> None:
    options = parser("predict", __doc__)
    options.prog = "python benchmarks/predicted.py"
    options.add_argument("--rules", nargs="+", default=list(STEPS))
    options.add_argument("--gflops", type=float, help="of that run; measured now by default")
    options.add_argument("--longer-than", type=float, default=0, metavar="SECONDS")
    a = options.parse_args()
    question = asked(a)
    rate = 1e9 * a.gflops if a.gflops else measured_rate()
    rows = []
    for job in question.freshness.graph.upstream(question.job):
        log = Path("results/logs", job.rule, *Path(job.outputs[0]).parts[2:]).with_suffix(".log")
        text = log.read_text("utf-8") if log.is_file() else ""
        logged = LOGGED.search(text)
        if job.rule not in a.rules or not logged:
            continue
        seconds, memory = float(WORK.search(text)[1]), float(logged["peak_memory_mb"]) / 1e3
        if seconds > a.longer_than:
            expected = cost(question.freshness.graph, job, rate)
            parts = {name: re.findall(part, text) for name, part in PARTS.items()}
            rows.append({
                "job": expected.name,
                "seconds": seconds,
                "predicted_s": round(expected.seconds, 1),
                "time_ratio": round(expected.seconds / seconds, 2),
                "memory_gb": memory,
                "predicted_gb": round(expected.memory / 1e9, 2),
                "memory_ratio": round(expected.memory / 1e9 / memory, 2),
                **{name: round(sum(map(float, some)), 1) or "" for name, some in parts.items()},
                "gflops": round(rate / 1e9),
            })  # fmt: skip
    table = csv.DictWriter(sys.stdout, rows[0] if rows else ["job"], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)


if __name__ == "__main__":
    main()
