"""What the study figure_3 has found so far, from the jobs that git keeps of it: of the data sets
that have all depths, with the seeds that all of these have.

    python benchmarks/figure_3.py    writes docs/measured/figure_3*.csv and docs/figure_3.png

The same as the study's own fig3, table_epochs and table_depth of these data sets and seeds.
"""

import datetime
import json
from pathlib import Path

import pandas as pd
import yaml
from PIL import Image

from ntkcond.artefacts import fig3, table_depth, table_epochs, training
from ntkcond.run.digests import sha256_of
from ntkcond.run.record import CODE, modules_of, short_digest
from ntkcond.training.learning_rates import first_epochs

ROOT = Path(__file__).parents[1]
STUDY, MEASURED, PICTURE = (
    ROOT / "studies/figure_3",
    ROOT / "docs/measured",
    ROOT / "docs/figure_3.png",
)
CONFIG = yaml.safe_load((STUDY / "config.yaml").read_text("utf-8"))["training"]


def runs() -> pd.DataFrame:
    """Every epoch of the runs, as results/training.csv."""
    found = []
    for dataset in sorted((STUDY / "jobs/training").iterdir()):
        seeds = [{p.stem for p in dataset.glob(f"depth{depth}/*.h5")} for depth in CONFIG["depths"]]
        names = [
            f"seed{seed}" for seed in CONFIG["seeds"] if f"seed{seed}" in set.intersection(*seeds)
        ]
        found += [
            dataset / f"depth{depth}/{name}.h5" for depth in CONFIG["depths"] for name in names
        ]
    return training.table(found)


def tables(of: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By the names of their CSVs."""
    return {
        "figure_3": table_epochs.table(of, CONFIG["thresholds"]),
        "figure_3_verdicts": table_depth.table(of, CONFIG["planned_tests"]),
        "figure_3_rates": of_all_rates(of),
    }


def of_all_rates(of: pd.DataFrame) -> pd.DataFrame:
    """A row for each depth, rate and loss: how many of the runs get there, in how many epochs in
    the mean, those that do not counting one more than they were trained; how many diverge."""
    first = first_epochs(of, CONFIG["thresholds"])
    first["epochs_least"] = first["first"].fillna(first.epochs_trained + 1)
    by = ["dataset", "depth", "learning_rate"]
    numbers = first.groupby([*by, "threshold"], as_index=False, sort=False).agg(
        seeds=("seed", "size"), reached=("first", "count"), epochs_least=("epochs_least", "mean")
    )
    one = of[of.epoch == 1].groupby(by, as_index=False).diverged_epoch.count()
    return numbers.merge(one.rename(columns={"diverged_epoch": "diverged"}), on=by)


def made_of() -> dict[str, str]:
    """Digests of the jobs and of the code of the picture."""
    jobs = [sha256_of(path) for path in sorted(STUDY.glob("jobs/training/**/*.h5"))]
    code = CODE.digests(*modules_of("draw_fig3", "fig3"))
    return {"numbers": short_digest(jobs), "code": short_digest(code)}


def is_todays() -> bool:
    """Whether the picture was drawn of today's jobs by today's code."""
    with Image.open(PICTURE) as picture:
        return json.loads(picture.info.get("provenance", "null")) == made_of()


def main() -> None:
    of, day = runs(), datetime.date.today().isoformat()
    for name, numbers in tables(of).items():
        about = {"command": "python benchmarks/figure_3.py", "when": day}
        numbers.assign(**about).to_csv(MEASURED / f"{name}.csv", index=False)
    drawn = fig3.draw(fig3.table(of, "depth"))
    PICTURE.write_bytes(drawn.rendered(".png", made_of()))


if __name__ == "__main__":
    main()
