"""NTKs in memory over widths, n, activations …: a job for each sweep, data set and network."""

from collections.abc import Iterator, Sequence
from typing import Any

from ntkcond.jobs import closest_pair, kernel, spectrum
from ntkcond.jobs.costs import FLOAT32, FLOAT64, Work
from ntkcond.jobs.step import DataSet
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.run.need import Need

path = "results/sweeps/{sweep}/{dataset}/{network}.h5"

BAND, BAND_ENTRIES = 256, 2**22  # of `ntkcond.ntk.infinite_width`
# Operations of an entry of a kernel at infinite width, and of each layer of it.
ANGLE, DUAL = 10_000, 3_400
# The data sets of each sweep are those of this figure.
lists = {
    "activations": "fig_activations_ntk",
    "width": "fig_width",
    "samples": "fig_samples",
    "finite": "fig_lambda_min",
    "infinite": "fig2",
    "first_layer": "fig2",
}


names = {"sweep": lambda config: lists}


def jobs(data: DataSet, sweep: str) -> Iterator[dict[str, str]]:
    """Over activations, widths, n, both (finite); at infinite width; of the first layer alone, for
    Thm 5.1."""
    networks = {
        "activations": list(ACTIVATIONS),
        "infinite": data.config.activations,
        "first_layer": ["relu"],
    }.get(sweep, [data.config.sweeps.activation])
    for network in networks:
        if sweep != "infinite" or has_infinite_width(data, network):
            yield {"sweep": sweep, "network": network}


def has_infinite_width(data: DataSet, network: str) -> bool:
    """Whether that NTK is known: norm 1, linear, or homogeneous without biases."""
    activation = ACTIVATIONS[network]
    any_norm = activation.linear or (activation.degree is not None and not data.network.bias)
    return any_norm or "unit_norm" in data.settings


def settings(data: DataSet, sweep: str, network: str) -> dict:
    """sizes: n."""
    defaults, sweeps = data.experiment, data.config.sweeps
    infinite = ["inf"] if has_infinite_width(data, network) else []
    values: dict[str, Any] = {
        "activation": network,
        **{key: value for key, value in vars(data.network).items() if key != "width"},
        "depths": defaults.depths,
        "widths": [defaults.width, *infinite],
        "sizes": [defaults.block],
        "seeds": defaults.seeds,
        "blocks": sweeps.blocks,
    }
    if sweep == "width":
        widths = [*sweeps.widths, *infinite]
        values |= {"depths": sweeps.depths, "widths": widths, "seeds": sweeps.seeds}
    elif sweep in ("samples", "finite"):
        sizes: list = [n for n in sweeps.sizes if data.samples is None or n <= data.samples]
        values |= {"sizes": sizes or [data.samples], "seeds": sweeps.seeds}
        widths = [defaults.width] if sweep == "samples" else [*sweeps.widths, *infinite]
        values |= {"depths": sweeps.depths, "widths": widths}
    elif sweep == "infinite":  # which depends on no seed
        values |= {"widths": ["inf"], "seeds": [0], "blocks": "all"}
    elif sweep == "first_layer":  # the network of Thm 5.1
        values |= {"depths": [1], "trainable": "first"}
    return values


def largest(data: DataSet, **wildcards: str) -> int | None:
    """The largest n."""
    sizes = [data.samples if n == "all" else n for n in settings(data, **wildcards)["sizes"]]
    return None if None in sizes else max(filter(None, sizes))


def sizes(data: DataSet, **wildcards: str) -> dict:
    """At its largest."""
    values = settings(data, **wildcards)
    widths = [width for width in values["widths"] if width != "inf"]
    return {
        "block": largest(data, **wildcards),
        "blocks": None if values["blocks"] == "all" else values["blocks"],
        "width": max(widths, default=1),
        "infinite": not widths,
    }


def need(
    block: int, blocks: int | None, samples: int, features: int, depth: int, width: int
) -> Need:
    """The closest pair of so many blocks, None for all samples; then the largest NTK's spectrum."""
    ntk = kernel.need_of_one(block, samples, features, depth, width)
    searched = samples if blocks is None else min(samples, blocks * block)
    # at infinite width: bands of K, and samples as they are, divided by their norms, and distinct
    copies = 3 * FLOAT64 * searched * features
    bands = 12 * FLOAT64 * min(BAND * block, BAND_ENTRIES) + copies
    angle = closest_pair.need(searched, features, depth, width).bytes
    angle += FLOAT32 * samples * features
    return ntk._replace(bytes=max(angle, ntk.bytes + spectrum.solver_bytes(block) + bands))


def work(
    block: int, blocks: int | None, samples: int, features: int, depths: Sequence[int], width: int,
    seeds: int, linear: bool = False, infinite: bool = False,
) -> Work:  # fmt: skip
    """NTKs and their spectra, all of the largest n. infinite: whether every width is."""
    operations = 0.0
    for depth in depths:
        is_linear = linear or depth == 0
        operations += spectrum.operations(block, singular=is_linear and block > features)
        if not infinite:
            operations += kernel.operations(block, features, depth, width)
        else:
            per_entry = 0 if is_linear else ANGLE + depth * DUAL
            operations += block**2 / 2 * (2 * features + per_entry)
    blocks = min(blocks or samples, samples // block)
    return Work(seeds * blocks * operations, FLOAT64 * samples * features)
