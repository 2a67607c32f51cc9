"""What figure 3 as it is planned (studies/paper) can decide: how often `table_depth` says what of
which curve of epochs over ten depths, with three and with five seeds.

    python benchmarks/depth_power.py    writes docs/measured/depth_power.csv

The noise is the pilot's, the study `small` (10,000 samples, seeds 1 and 32, which the plan does not
have): the pooled spread of the logarithm of epochs between seeds, at the best rate of each depth.
Each row of `table_depth` is taken for one of six alike, the hardest case of Holm's correction.
"""

import csv
import datetime
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.artefacts import table_depth
from ntkcond.training.learning_rates import best_rates, first_epochs, runs_at

ROOT = Path(__file__).parents[1]
ROWS = 6  # of the study: three data sets, two losses
DRAWS = 400
DEPTHS = np.arange(1.0, 11)
FLAT = np.maximum(50.0, 100 - 25 * (DEPTHS - 1))
CURVES = {
    "falls from 100 to 50 epochs": 100 * 0.5 ** ((DEPTHS - 1) / 9),
    "falls from 100 to 75 epochs": 100 * 0.75 ** ((DEPTHS - 1) / 9),
    "falls from 100 to 50 by L = 3, then is flat": FLAT,
    "the same, and L = 10 costs 20 %": np.where(DEPTHS == 10, 60, FLAT),
    "the same, and L = 10 costs 50 %": np.where(DEPTHS == 10, 75, FLAT),
    "falls to L = 4, then rises by 5 % a layer":
        50 * np.where(DEPTHS <= 4, 2 ** ((4 - DEPTHS) / 3), 1.05 ** (DEPTHS - 4)),
    "is flat": np.full(10, 50.0),
}  # fmt: skip


def pilots_spread() -> float:
    """The standard deviation of log epochs between the two seeds of `small`."""
    training = pd.read_csv(ROOT / "studies/small/training.csv.gz")
    first = first_epochs(runs_at(training, best_rates(training, "depth")), (1.0, 0.5, 0.3, 0.1))
    pairs = first.pivot(index=["dataset", "depth", "threshold"], columns="seed", values="first")
    logs = np.log(pairs.dropna())
    return float(np.sqrt((logs.diff(axis=1).iloc[:, -1] ** 2 / 2).mean()))


def verdicts(curve: np.ndarray, seeds: int, spread: float) -> Counter:
    found, rng = Counter(), np.random.default_rng(0)
    inside = pd.Series("", index=DEPTHS)
    for _ in range(DRAWS):
        epochs = np.ceil(curve * np.exp(spread * rng.standard_normal((seeds, len(DEPTHS)))))
        runs = pd.DataFrame(epochs, columns=DEPTHS).melt(var_name="depth", value_name="epoch")
        runs = runs.assign(seed=np.tile(np.arange(seeds), len(DEPTHS)), first=runs.epoch)
        row = table_depth.tested(runs, inside)
        for name in ("page_p", "order_p"):
            row[f"{name}_corrected"] = min(1.0, ROWS * row[name])
        found[table_depth.verdict(**row)] += 1
    return found


def main() -> None:
    spread = pilots_spread()
    print(f"spread of the pilot: {spread:.3f} of the logarithm")
    fields = [
        "curve",
        "seeds",
        "spread",
        "holds",
        "not_decided",
        "does_not_hold",
        "command",
        "when",
    ]
    with (ROOT / "docs/measured/depth_power.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(fields)
        for name, curve in CURVES.items():
            for seeds in (3, 5):
                found = verdicts(curve, seeds, spread)
                words = (table_depth.HOLDS, table_depth.UNDECIDED, table_depth.FAILS)
                shares = [round(100 * found[word] / DRAWS, 1) for word in words]
                today = datetime.date.today()
                row = [name, seeds, round(spread, 3), *shares, "python benchmarks/depth_power.py"]
                out.writerow([*row, today])
                print(*row[:6], flush=True)


if __name__ == "__main__":
    main()
