"""SGD at all learning rates: a job for each data set and depth."""

from collections.abc import Mapping

from ntkcond.jobs.costs import FLOAT32, FLOAT64, INTERPRETER, TORCH, Work
from ntkcond.jobs.step import DataSet
from ntkcond.run.need import Need

path = "results/training/{dataset}/depth{depth}.h5"
unrecorded = ("device", "checkpoint_minutes")
spot_check = "training"
gpu_as_cores = 400  # then 6e12 float32 operations a second, a third of an A100's; not measured

TEST_ROWS = 2000  # test samples that pass through the networks at once
# Training is nothing but float32 products: 61e9 to 79e9 a second on one of these cores.
FLOAT32_ADVANTAGE = 5


def jobs(data: DataSet, which: str = "") -> list[dict[str, str]]:
    return [{"depth": str(depth)} for depth in data.training.depths]


def settings(data: DataSet, depth: str) -> dict:
    values = {key: value for key, value in vars(data.training).items() if key != "depths"}
    rates = data.training.learning_rates
    chosen = rates[int(depth)] if isinstance(rates, Mapping) else rates
    return {"depth": int(depth), **values, "learning_rates": chosen}


def need(
    samples: int, features: int, test_samples: int, depth: int, width: int, batch: int,
    together: int = 1,
) -> Need:  # fmt: skip
    """All samples, twice while they are read; of each network weights, in float64 at first, a
    batch's activations and slopes, and a few layers of test samples."""
    weights = width * features + depth * width**2  # at most as many outputs as neurons
    per_batch = batch * (2 * features + (2 * depth + 4) * width)
    per_run = FLOAT32 * (per_batch + 4 * TEST_ROWS * width) + (FLOAT32 + 2 * FLOAT64) * weights
    read = 2 * FLOAT32 * (samples + test_samples) * features
    return Need(
        f"training {together} networks of depth {depth}, width {width} on {samples} samples",
        INTERPRETER + TORCH + read + together * per_run,
        "Lower samples, batch or width in the config",
    )


def work(
    samples: int, test_samples: int, features: int, depth: int, width: int, seeds: int,
    learning_rates: int, epochs: int,
) -> Work:  # fmt: skip
    """For each weight 6 operations a sample, 2 a test sample."""
    weights = features * width + depth * width**2
    operations = seeds * learning_rates * epochs * (6 * samples + 2 * test_samples) * weights
    return Work(operations / FLOAT32_ADVANTAGE, 2 * 4 * (samples + test_samples) * features)


def side_by_side(data: DataSet) -> int:
    """All jobs of figure 3."""
    return sum(len(jobs(data.other(name))) for name in data.config.figures["fig3"])
