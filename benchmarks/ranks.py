"""Spectra by MPI ranks against one process, on the first samples of a data set: time of each part,
memory of a rank, and how far λ_min and λ_max are apart in units of their bounds."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import pandas as pd
from product_rate import product_rate

from ntkcond.steps.scalapack_spectrum import need as need_of

PARTS = {  # of the log
    "kernel_s": r"(?:tiles of the kernel|^\S+ \S+ kernel .*)",
    "lambda_max_s": "λ_max",
    "factor_s": "Cholesky factor.*",
    "lambda_min_s": "λ_min",
    "residual_s": "residual of the eigenvector",
}


def step(name: str, options: list[str], folder: Path) -> str:
    """Runs it, and returns its log."""
    log = folder / f"{name}.log"
    command = [sys.executable, "-m", f"ntkcond.steps.{name}", *options, "--log", str(log)]
    subprocess.run(command, check=True)
    return log.read_text("utf-8")


def parts(log: str) -> dict[str, float]:
    """Seconds of each part that it tells of."""
    seconds = {}
    for part, label in PARTS.items():
        if told := re.search(rf"{label}: done in ([\d.]+) s", log, re.M):
            seconds[part] = float(told[1])
    return seconds


def measured(folder: Path, network: list[str], n: int, ranks: int) -> dict:
    """One spectrum; ranks: 0 for one process with all threads."""
    base = ["--dataset", str(folder / "samples.h5"), "--seeds", "1", *network]
    output = ["--output", str(folder / "spectrum.h5")]
    if ranks:
        more = ["--block", "all", "--ranks", str(ranks)]
        log = step("scalapack_spectrum", [*base, *output, *more], folder)
        (peak,) = re.findall(r"peak memory of a rank: \d+ to (\d+) MB", log)
    else:
        kernel = str(folder / "kernel.h5")
        log = step("kernel", [*base, "--output", kernel, "--block", "all"], folder)
        log += step("spectrum", [*base, *output, "--kernel", kernel], folder)
        Path(kernel).unlink()
        peak = re.findall(r"peak memory (\d+) MB", log)[-1]
    with h5py.File(folder / "spectrum.h5") as file:
        names = ("lambda_max", "lambda_min", "lambda_min_error", "kappa")
        values = {name: float(file[name][0, 0]) for name in names}
        values["verdict"] = file["verdict"].asstr()[0, 0]
    return {"n": n, "ranks": ranks, **parts(log), "peak_mb": int(peak), **values}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("dataset", type=Path, help="results/datasets/*.h5")
    options.add_argument("--sizes", type=int, nargs="+", default=[4000, 10_000, 20_000])
    options.add_argument("--ranks", type=int, nargs="+", default=[0, 1, 2, 4], help="0: none")
    options.add_argument("--depth", type=int, default=3)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--output", type=Path, help="a CSV file")
    a = options.parse_args()
    network = ["--activation", "relu", "--depth", str(a.depth), "--width", str(a.width)]
    rows = []
    for _ in range(a.rounds):
        for n in a.sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                with h5py.File(a.dataset) as source, h5py.File(folder / "samples.h5", "w") as file:
                    file["x"] = source["x"][:n]
                    features = file["x"].shape[1]
                for ranks in a.ranks:
                    row = {"rate": product_rate(), **measured(folder, network, n, ranks)}
                    row["factor_of_rate"] = n**3 / 3 / row["factor_s"] / row["rate"]
                    if ranks:
                        need = need_of(n, features, a.depth, a.width, ranks).bytes / ranks
                        row["needed_mb"] = round(need / 1e6)
                    if rows and rows[-1]["n"] == n:
                        error = row["lambda_min_error"] + rows[-1]["lambda_min_error"]
                        row["apart"] = abs(row["lambda_min"] - rows[-1]["lambda_min"]) / error
                    rows.append(row)
                    print(pd.DataFrame([row]).to_string(index=False), flush=True)
    if a.output:
        pd.DataFrame(rows).to_csv(a.output, index=False)


if __name__ == "__main__":
    main()
