"""Does κ(ReLU)/κ(linear) of real data follow from the linearised NTK? At m = ∞ and 512.

    .venv/bin/python benchmarks/when.py results/datasets/{mnist,fashion_mnist,librispeech}.h5

Each data set as it is, less its mean, and whitened, at three n/d. The rule is
`ntkcond.ntk.linearised.predicted_kappa`; MNIST helped to find it, the others did not. Writes
docs/measured/when.csv. Minutes.
"""

import argparse
import math
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.linearised import mean_cosine, predicted_kappa
from ntkcond.run.files import read_hdf5

TABLE = Path(__file__).parents[1] / "docs/measured/when.csv"
SIZES = (0.1, 0.3, 0.6)  # n/d, with the number of directions that vary as d
SAMPLES = 4000  # from which mean and covariance are taken
LEAST = 1e-3  # of the largest variance: directions below are left out
DEPTHS = (1, 3, 10)
WIDTH, SEEDS = 512, (1, 32, 111)


def kappa(kernel: np.ndarray) -> float:
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low if low > 0 else math.inf


def variants(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    centred = x - x.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(x))
    kept = variances > LEAST * variances[-1]
    yield "as it is", x
    yield "centred", centred
    yield "whitened", centred @ directions[:, kept] / np.sqrt(variances[kept])


def rows(path: Path) -> Iterator[dict]:
    with read_hdf5(path) as file:
        x = file["x"][:SAMPLES].astype(np.float64)
    x = np.unique(x, axis=0)[np.random.default_rng(0).permutation(len(np.unique(x, axis=0)))]
    sets = dict(variants(x))
    d = sets["whitened"].shape[1]
    relu = ACTIVATIONS["relu"]
    for variant, samples in sets.items():
        for size in SIZES:
            some = samples[: round(size * d)]
            for depth in DEPTHS:
                network = MLP(relu, depth, math.inf)
                at_width = [
                    kappa(
                        empirical_ntk(
                            MLP(relu, depth, WIDTH).initial_gradients(s, some.shape[1])(some)
                        )
                    )
                    for s in SEEDS
                ]
                yield {
                    "dataset": path.stem, "variant": variant, "n": len(some), "d": d,
                    "depth": depth, "mean_cosine": mean_cosine(some),
                    "linear_kappa": kappa(some @ some.T),
                    "relu_kappa": kappa(infinite_width_ntk(some, network)),
                    "predicted_kappa": predicted_kappa(some, network),
                    "relu_kappa_512": np.median(at_width),
                }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("files", nargs="+", type=Path)
    table = pd.DataFrame([row for path in options.parse_args().files for row in rows(path)])
    table["off"] = table.predicted_kappa / table.relu_kappa
    truth, rule = (table[name] < table.linear_kappa for name in ("relu_kappa", "predicted_kappa"))
    table["sign_right"] = truth == rule
    table["command"], table["when"] = "python benchmarks/when.py …", date.today()
    table.to_csv(TABLE, index=False, float_format="%.5g")
    for name, some in table.groupby("dataset"):
        away = np.exp(np.abs(np.log(some.off)))
        print(
            f"{name}: sign right in {some.sign_right.sum()} of {len(some)}; off by a factor of"
            f" {away.median():.2f} in the median, {away.max():.2f} at most"
        )
    print(table.drop(columns=["command", "when"]).to_string())


if __name__ == "__main__":
    main()
