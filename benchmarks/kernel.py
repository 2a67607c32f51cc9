"""The empirical NTK against every package that computes one, and against a matrix product.

    make bench                                      all of it, in minutes
    .venv/bin/python benchmarks/kernel.py --help

Each package works in an environment of its own, benchmarks/environments/NAME, made the first time
(a network is needed for that), and in a process of its own that keeps x and the weights
(`kernel_worker.py`). In each repeat they compute one after the other, each right after a matrix
product of (n × m) (m × n), by the faster of NumPy and torch. All must agree with ours on the same
weights, within 1e-12 of √(K_ii K_jj) in float64. Writes kernel.csv, .pdf and .png.

Share of the rate: useful operations a second, in units of the matrix product's. Useful: two
products a layer for each entry of K on and below the diagonal, one forward and one backward pass;
what an implementation computes beyond that does not count. Memory: by how much that of the
process rises in its first computation above what it was with inputs and weights loaded.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from product_rate import LIBRARIES, read

from ntkcond.artefacts import style
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP

HERE = Path(__file__).parent
WORKER = HERE / "kernel_worker.py"
TORCH = ["torch==2.13.0", "numpy==2.4.6"]
PACKAGES = {  # what each environment holds; none: this one
    "ntkcond": [],
    "asdfghjkl": ["asdfghjkl==0.1a5", *TORCH],
    "curvlinops": ["curvlinops-for-pytorch==3.0.1", *TORCH],  # for products.py
    "nngeometry": ["nngeometry==0.4", "torchvision==0.28.0", *TORCH],
    "neural_tangents": [
        "neural-tangents==0.6.5", "jax==0.4.25", "jaxlib==0.4.25", "numpy<2", "scipy<1.13",
    ],
    "torchntk": ["numba", *TORCH[:1]],  # which it imports
    "jacobian": [],
    "before": [],
}  # fmt: skip
TITLES = {
    "ntkcond": "ntkcond",
    "asdfghjkl": "asdfghjkl, class-wise Hadamard",
    "nngeometry": "nngeometry, GramMatrix",
    "neural_tangents": "neural-tangents, structured derivatives",
    "torchntk": "torchntk, explicit_ntk",
    "jacobian": "torch.func, Jacobian",
    "before": "ntkcond, an older version",
}
FEATURES, WIDTH = 784, 512
CASES = [  # n, L, type
    (500, 3, "float64"), (512, 10, "float64"), (1000, 5, "float64"), (2000, 10, "float64"),
    (2000, 10, "float32"),
]  # fmt: skip
JACOBIAN_LIMIT = 3  # depth: its gradients are 4 GB then, and would be 50 GB of 2000 at L = 10
FARTHEST = 5  # times our time, in the picture
# In float32 another order of summation flips a few ReLUs of a million: 0.007 was measured.
AGREE = {"float64": 1e-12, "float32": 0.03}


def python_of(name: str) -> str:
    """The interpreter with this package; its environment is made if it is missing."""
    if not PACKAGES.get(name):
        return sys.executable
    folder = HERE / "environments" / name
    python, ready = folder / "bin/python", folder / "ready"
    if not ready.exists():
        print(f"setting up {', '.join(PACKAGES[name])}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        ready.touch()
    return str(python)


class Worker:
    """A process that computes K with one package, when told to."""

    def __init__(self, name: str, inputs: Path, sources: dict[str, Path | None]) -> None:
        """sources: folders from which a package is imported that is not installed."""
        self.name, self.folder = name, inputs.parent
        source = sources.get(name)
        environment = {**os.environ, "PYTHONPATH": str(source)} if source else None
        self.process = subprocess.Popen(
            [python_of(name), WORKER, name, inputs, self.folder], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=(self.folder / f"{name}.log").open("w"),
        )  # fmt: skip
        self.answer()  # ready

    def answer(self) -> str:
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit(f"{self.name} failed:\n{(self.folder / f'{self.name}.log').read_text()}")
        return line

    def seconds(self) -> float:
        print("run", file=self.process.stdin, flush=True)
        return float(self.answer())

    def finish(self) -> tuple[np.ndarray, int]:
        """K and the bytes that it took."""
        self.process.stdin.close()
        taken = int(self.answer())
        self.process.wait()
        return np.load(self.folder / f"{self.name}.npy"), taken


def useful_operations(n: int, depth: int) -> float:
    """Multiplications and additions, as defined above."""
    entries = n * (n + 1) / 2
    passes = 2 * n * WIDTH * (FEATURES + 2 * (depth - 1) * WIDTH)
    return passes + entries * 2 * (FEATURES + 2 * depth * WIDTH)


def measure(n: int, depth: int, dtype: str, names: list[str], options) -> pd.DataFrame:
    """A row for each package and repeat: its seconds, and those of the product beside it."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "inputs.npz")
        x = np.random.default_rng(0).standard_normal((n, FEATURES))
        weights = MLP(ACTIVATIONS["relu"], depth, WIDTH).weights(0, FEATURES)
        np.savez(inputs, *(array.astype(dtype) for array in (x, *weights)))
        sources = {"torchntk": options.torchntk, "before": options.before}
        yardsticks = [Worker(f"{name}_product", inputs, sources) for name in LIBRARIES]
        workers = [Worker(name, inputs, sources) for name in names]
        rows = []
        for repeat in range(-1, options.repeats):
            for worker in workers:
                if worker.name == "jacobian" and repeat != 0:
                    continue  # once, it takes so long
                product = min(worker.seconds() for worker in yardsticks for _ in range(3))
                seconds = worker.seconds()
                if repeat >= 0:  # the first compiles, and fills caches
                    rows.append((worker.name, repeat, seconds, product))
        for worker in yardsticks:
            worker.finish()
        kernels = {worker.name: worker.finish() for worker in workers}
    table = pd.DataFrame(rows, columns=["package", "repeat", "seconds", "product_seconds"])
    ours = kernels["ntkcond"][0]
    norms = np.sqrt(ours.diagonal())
    differences = {
        name: float((abs(k - ours) / norms / norms[:, None]).max())
        for name, (k, _) in kernels.items()
    }
    if max(differences.values()) > AGREE[dtype]:
        sys.exit(f"the packages do not agree: {differences}")
    table["difference"] = table["package"].map(differences)
    table["extra_mib"] = table["package"].map({k: v / 2**20 for k, (_, v) in kernels.items()})
    return table.assign(n=n, depth=depth, dtype=dtype)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Medians over repeats for each case and package, and the range of the ratio to ours."""
    rows = []
    for (n, depth, dtype), case in table.groupby(["n", "depth", "dtype"], sort=False):
        ours = case[case["package"] == "ntkcond"].set_index("repeat")["seconds"]
        rate = 2 * n * n * WIDTH / median(case["product_seconds"])
        for name, group in case.groupby("package", sort=False):
            seconds = group.set_index("repeat")["seconds"]
            ratios = (seconds / ours).dropna()
            rows.append({
                "n": n, "depth": depth, "dtype": dtype, "package": name,
                "times_ours": median(ratios), "least": ratios.min(), "most": ratios.max(),
                "share_of_rate": useful_operations(n, depth) / median(seconds) / rate,
                "seconds": median(seconds), "product_gflops": rate / 1e9,
                "extra_mib": group["extra_mib"].iloc[0], "difference": group["difference"].iloc[0],
            })  # fmt: skip
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame):
    """How many times our time each package takes, a panel a case: a point, its number, and the
    range over repeats as a line. What is beyond FARTHEST has its number alone."""
    with style.look():
        cases = list(table.groupby(["n", "depth", "dtype"], sort=False))
        names = list(table["package"].unique())
        figure = style.figure(height=0.75 + 0.24 * len(names), width=7)
        panels = figure.subplots(1, len(cases), sharey=True, sharex=True)
        for panel, ((n, depth, dtype), case) in zip(panels, cases, strict=True):
            for row in case.itertuples():
                y, colour = names.index(row.package), style.COLOURS[names.index(row.package)]
                near = row.times_ours <= FARTHEST
                if near:
                    panel.plot([row.least, row.most], [y, y], color=colour, linewidth=1)
                    panel.plot(row.times_ours, y, "o", color=colour)
                words = f"{row.times_ours:.1f} ×" if near else f"{row.times_ours:.0f} × →"
                panel.text(FARTHEST + 2.5, y, words, ha="right", va="center", fontsize=7)
            panel.axvline(1, color=style.GREY, linewidth=0.8)
            panel.set(xlim=(0, FARTHEST + 2.6), xticks=range(1, FARTHEST + 1))
            panel.set_title(f"$n$ = {n:,}\n$L$ = {depth}\n{dtype}", fontsize=7)
        panels[0].set_yticks(range(len(names)), [TITLES[name] for name in names])
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        figure.supxlabel("time, in units of ntkcond's: median and range of repeats", fontsize=7)
    return figure


def main(options: argparse.Namespace) -> None:
    for library in LIBRARIES:
        print(f"{library} multiplies by {read(library, 'float64', 2)[1]}")
    tables = []
    for n, depth, dtype in CASES:
        names = [name for name in TITLES if name not in ("torchntk", "jacobian", "before")]
        if options.before:
            names.append("before")
        if options.torchntk and dtype == "float32":  # the only type it has
            names.append("torchntk")
        if depth <= JACOBIAN_LIMIT:
            names.append("jacobian")
        case = summary(measure(n, depth, dtype, names, options))
        print(f"\nn = {n}, L = {depth}, {dtype}, d = {FEATURES}, m = {WIDTH}", end="; ")
        print(f"matrix products {case['product_gflops'].iloc[0]:.0f} Gflop/s")
        for row in case.itertuples():
            print(
                f"  {TITLES[row.package]:40} {row.times_ours:7.2f} × ours"
                f" ({row.least:.2f} to {row.most:.2f}), {row.share_of_rate:4.0%} of the rate,"
                f" {row.extra_mib:5.0f} MiB, differs by {row.difference:.0e}",
                flush=True,
            )
        tables.append(case)
    table = pd.concat(tables).assign(command="make bench", when=date.today().isoformat())
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "kernel.csv", index=False)
    figure = draw(table)
    for suffix in ("pdf", "png"):
        figure.save(options.output / f"kernel.{suffix}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--torchntk", type=Path, help="a checkout of it; it is in no index")
    parser.add_argument("--before", type=Path, help="the folder src of an older version of ntkcond")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    main(parser.parse_args())
