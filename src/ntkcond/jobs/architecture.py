"""NTKs of torch modules beside the paper's networks: a job for each data set and architecture."""

from collections.abc import Iterator, Sequence

from ntkcond.jobs import spectrum
from ntkcond.jobs.costs import FILTER, FLOAT64, INTERPRETER, TORCH, Work
from ntkcond.jobs.settings import Config
from ntkcond.jobs.step import DataSet, block
from ntkcond.networks.architectures import ON_IMAGES, seen_as
from ntkcond.run.need import Need

path = "results/architectures/{dataset}/{architecture}.h5"
largest = block

MODULE = 2_000_000_000  # of gradients at once in `ntkcond.ntk.of_module.kernel`
ALONE = 4  # samples run alone in the same module


def architectures(config: Config) -> list[str]:
    return [*config.architectures.names, *config.architectures.own]


names = {"architecture": architectures}


def jobs(data: DataSet, which: str) -> Iterator[dict[str, str]]:
    for name in architectures(data.config):
        if name not in ON_IMAGES or data.shape:
            yield {"architecture": name}


def files(data: DataSet, architecture: str) -> dict[str, str]:
    modules = data.config.architectures.own
    return {"file": modules[architecture]} if architecture in modules else {}


def settings(data: DataSet, architecture: str) -> dict:
    chosen = data.config.architectures
    return {
        "architecture": architecture,
        **{key: getattr(chosen, key) for key in ("activations", "depths", "width", "seeds")},
        "block": data.experiment.block,
        "blocks": chosen.blocks,
        **({"shape": list(data.shape)} if data.shape else {}),
        **({"bias": chosen.bias} if architecture == "biases" else {}),
    }


def sizes(data: DataSet, architecture: str) -> dict:
    assert data.features
    channels, pixels = seen_as(architecture, data.shape, data.features)
    return {"features": channels, "pixels": pixels}


def need(block: int, samples: int, features: int, depth: int, width: int, pixels: int) -> Need:
    """Gradients of a block, in parts if they are many; of a few samples; an NTK's spectrum."""
    size, positions = (FILTER if pixels else 1), max(1, pixels)
    weights = (width * features + depth * width**2) * size
    activations = (4 * depth + size) * width * positions
    gradients = min(MODULE, FLOAT64 * block * (activations + weights))
    alone = FLOAT64 * ALONE * (activations + 2 * weights)
    total = INTERPRETER + TORCH + gradients + alone + FLOAT64 * 3 * weights
    total += spectrum.solver_bytes(block) + 2 * FLOAT64 * samples * features * positions
    what = f"the NTK of {block} samples at depth {depth}, width {width}, as a torch module"
    return Need(what, total, "Lower block or architectures.width in the config")


def work(
    block: int, blocks: int, features: int, depths: Sequence[int], width: int, seeds: int,
    activations: int, pixels: int,
) -> Work:  # fmt: skip
    operations = 0.0
    for depth in depths:
        weights = (width * features + depth * width**2) * (FILTER if pixels else 1)
        operations += block * weights * (20 * max(1, pixels) + 2 * block)
        operations += spectrum.operations(block)
    return Work(seeds * activations * blocks * operations, 0)
