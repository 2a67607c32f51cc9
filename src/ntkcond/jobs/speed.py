"""How fast networks learn, and their NTKs at the start: a job for each data set, loss and width."""

from collections.abc import Sequence

from ntkcond.jobs import kernel, sgd, spectrum
from ntkcond.jobs.costs import FLOAT64, INTERPRETER, Work
from ntkcond.jobs.settings import Config, SpeedOnLoss, set_values
from ntkcond.jobs.step import DataSet
from ntkcond.run.need import Need

path = "results/speed/{dataset}/{loss}/width{width}.h5"


def losses(config: Config) -> dict[str, SpeedOnLoss]:
    """Those that networks of fig_speed are trained on."""
    values = set_values(config.speed)
    return {key: values[key] for key in values if isinstance(values[key], SpeedOnLoss)}


names = {"loss": losses}


def jobs(data: DataSet, which: str) -> list[dict[str, str]]:
    widths = data.config.speed.widths
    return [{"loss": loss, "width": str(m)} for loss in losses(data.config) for m in widths]


def settings(data: DataSet, loss: str, width: str) -> dict:
    """Thresholds in descending order."""
    chosen, others = losses(data.config), {"widths", *losses(data.config)}
    return {
        **{key: value for key, value in set_values(data.config.speed).items() if key not in others},
        "learning_rates": sorted(map(float, chosen[loss].learning_rates)),
        "thresholds": sorted(map(float, chosen[loss].thresholds), reverse=True),
        "convention": data.training.convention,
        "bias": data.training.bias,
        "block": data.experiment.block,
        "loss": loss,
        "width": int(width),
    }


def largest(data: DataSet, **wildcards: str) -> int | None:
    """Those that it trains on."""
    samples = data.config.speed.samples
    if not isinstance(samples, int):
        return data.samples
    return samples if data.samples is None else min(data.samples, samples)


def sizes(data: DataSet, loss: str, width: str) -> dict:
    trained = largest(data)
    assert trained and data.block
    return {"samples": trained, "block": min(data.block, trained)}


def need(
    block: int, samples: int, features: int, depth: int, width: int, batch: int, seeds: int
) -> Need:
    """Training of all seeds together; NTKs before it, with their eigenvectors."""
    ntk = kernel.need_of_one(block, samples, features, depth, width).bytes + 6 * FLOAT64 * block**2
    training = sgd.need(samples, features, 0, depth, width, batch, seeds)
    return training._replace(bytes=training.bytes + ntk - INTERPRETER)


def work(
    block: int, samples: int, features: int, depths: Sequence[int], width: int, seeds: int,
    learning_rates: int, activations: int, epochs: int,
) -> Work:  # fmt: skip
    """All training of all networks, and their NTKs at the start."""
    operations, runs = 0.0, (seeds, learning_rates, epochs)
    for depth in depths:
        operations += sgd.work(samples, 0, features, depth, width, *runs).operations
        ntk = kernel.operations(block, features, depth, width) + 2 * spectrum.operations(block)
        operations += seeds * ntk
    return Work(activations * operations, FLOAT64 * samples * features)
