"""The NTK of a module with biases, float64: ours, plain torch.func and nngeometry, in one run.

    .venv/bin/python benchmarks/module.py --rounds 3

One after the other in each round, each in a process of its own (`module_worker.py`); the large
cases in one round. All must agree within 1e-12 of √(K_ii K_jj). Writes docs/measured/module.csv:
medians, and memory beyond inputs and weights; nothing for a package that refuses the module.
"""

import argparse
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from kernel import python_of

WORKER = Path(__file__).with_name("module_worker.py")
TABLE = Path(__file__).parents[1] / "docs/measured/module.csv"
CASES = (
    ("mlp", 100), ("mlp", 500), ("cnn", 100), ("cnn", 500), ("tutorial", 20), ("gpt2", 200),
    ("resnet18", 1000), ("transformer", 1000),
)  # fmt: skip
LARGE = 1000  # samples
WAYS = ("ntkcond", "unchecked", "torch_func", "nngeometry")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    rounds = options.parse_args().rounds
    rows = []
    for which, n in CASES:
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        taken = {}
        with tempfile.TemporaryDirectory() as folder:
            for way in list(WAYS) * (rounds if n < LARGE else 1):
                command = [python_of(way), WORKER, way, which, str(n), folder]
                said = subprocess.run(command, capture_output=True, text=True)
                if said.returncode:
                    print(which, n, way, said.stderr.strip().splitlines()[-1], flush=True)
                    continue
                time, taken[way] = map(float, said.stdout.split()[-2:])
                seconds[way].append(time)
            kernels = {way: np.load(Path(folder, f"{way}.npy")) for way in taken}
        norms = np.sqrt(kernels["ntkcond"].diagonal())
        ours = median(seconds["ntkcond"])
        for way in taken:
            difference = abs(kernels[way] - kernels["ntkcond"]) / np.outer(norms, norms)
            if difference.max() > 1e-12:
                sys.exit(f"{which}, n = {n}: {way} differs by {difference.max():.2g}")
            rows.append({
                "case": which, "n": n, "way": way, "seconds": round(median(seconds[way]), 4),
                "times_ours": round(median(seconds[way]) / ours, 2),
                "extra_mib": round(taken[way] / 2**20), "difference": f"{difference.max():.1e}",
                "command": f"python benchmarks/module.py --rounds {rounds}",
                "when": date.today(),
            })  # fmt: skip
            print(*rows[-1].values(), flush=True)
    pd.DataFrame(rows).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
