"""Products of a module's NTK with a vector: ours, plain torch.func and curvlinops, in one run.

    .venv/bin/python benchmarks/products.py --rounds 3

One after the other in each round, each in a process of its own (`products_worker.py`), float32, all
in batches of as many samples. Ours is twice in each round: with float64 as well, which is the
default. All must agree within 1e-4 of the norm of K v. Writes docs/measured/products.csv: medians,
and memory beyond inputs and weights.
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

WORKER = Path(__file__).with_name("products_worker.py")
TABLE = Path(__file__).parents[1] / "docs/measured/products.csv"
WAYS = ("ntkcond", "torch_func", "curvlinops", "ntkcond_float64")
CASES = {"mlp": (2000, 50_000), "cnn": (2000,)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    rounds = options.parse_args().rounds
    rows = []
    for which, n in ((which, n) for which, sizes in CASES.items() for n in sizes):
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        taken = {}
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(rounds):
                for way in WAYS:
                    command = [python_of(way), WORKER, way, which, str(n), folder]
                    said = subprocess.run(command, capture_output=True, text=True, check=True)
                    time, taken[way] = map(float, said.stdout.split()[-2:])
                    seconds[way].append(time)
            products = {way: np.load(Path(folder, f"{way}.npy")) for way in WAYS}
        ours, exact = median(seconds["ntkcond"]), products["ntkcond_float64"]
        for way in WAYS:
            off = np.linalg.norm(products[way] - exact) / np.linalg.norm(exact)
            if off > 1e-4:
                sys.exit(f"{which}, n = {n}: {way} differs by {off:.2g}")
            rows.append({
                "case": which, "n": n, "way": way, "seconds": round(median(seconds[way]), 4),
                "times_ours": round(median(seconds[way]) / ours, 2),
                "extra_mib": round(taken[way] / 2**20), "difference": f"{off:.1e}",
                "command": f"python benchmarks/products.py --rounds {rounds}",
                "when": date.today(),
            })  # fmt: skip
            print(*rows[-1].values(), flush=True)
    pd.DataFrame(rows).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main()
