"""How fast networks learn, and their NTKs at the start: a job for each data set, loss and width."""

from collections.abc import Mapping, Sequence

from ntkcond.jobs import kernel, sgd, spectrum
from ntkcond.jobs.costs import FLOAT64, INTERPRETER, Work
from ntkcond.jobs.step import DataSet
from ntkcond.run.need import Need

path = "results/speed/{dataset}/{loss}/width{width}.h5"


def losses(config: Mapping) -> list[str]:
    """Those that networks of fig_speed are trained on: with settings of their own."""
    return [key for key, value in config["speed"].items() if isinstance(value, dict)]


names = {"loss": losses}


def jobs(data: DataSet, which: str) -> list[dict[str, str]]:
    widths = data.config["speed"]["widths"]
    return [{"loss": loss, "width": str(m)} for loss in losses(data.config) for m in widths]


def settings(data: DataSet, loss: str, width: str) -> dict:
    """Thresholds in descending order."""
    others = {"widths", *losses(data.config)}
    values = {key: value for key, value in data.config["speed"].items() if key not in others}
    for key, numbers in data.config["speed"][loss].items():
        values[key] = sorted(map(float, numbers), reverse=key == "thresholds")
    values |= {key: data.training[key] for key in ("convention", "bias")}
    return {**values, "block": data.experiment["block"], "loss": loss, "width": int(width)}


def sizes(data: DataSet, loss: str, width: str) -> dict:
    """Those that it trains on."""
    assert data.samples and data.block
    samples = data.config["speed"]["samples"]
    trained = data.samples if samples == "all" else min(data.samples, samples)
    return {"samples": trained, "block": min(data.block, trained)}


def need(
    block: int, samples: int, features: int, depth: int, width: int, batch: int, seeds: int
) -> Need:
    """Training of all seeds together; NTKs before it, with their eigenvectors."""
    ntk = kernel.need(block, samples, features, depth, width).bytes + 6 * FLOAT64 * block**2
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
