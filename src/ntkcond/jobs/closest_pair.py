"""The closest pair of gradients: a job for each data set, network and depth."""

from ntkcond.jobs.costs import FLOAT32, FLOAT64, INTERPRETER, Work, factors_bytes, propagation
from ntkcond.jobs.step import network_settings, networks
from ntkcond.run.need import Need

path = "results/angles/{dataset}/{network}/depth{depth}.h5"
settings, jobs = network_settings, networks
spot_check = "angles"

# Of each gradient in `ntkcond.ntk.closest_pair`: in 64, 256 and 512 directions, and 64 products; in
# how many directions all pairs are compared.
COORDINATES, COMPARED = 65 + 257 + 513 + 64, 65
PAIR_TILES = 6 * FLOAT64 * 1024**2  # in the same module


def need(samples: int, features: int, depth: int, width: int) -> Need:
    """The factors of all samples, float32 coordinates, a few tiles."""
    what = f"the closest pair among {samples} samples at depth {depth}, width {width}"
    coordinates = FLOAT32 * samples * COORDINATES + PAIR_TILES
    computing = factors_bytes(samples, features, depth, width) + coordinates
    return Need(what, INTERPRETER + computing, "Lower samples or width in the config")


def work(samples: int, features: int, depth: int, width: int, seeds: int) -> Work:
    """Factors, products with landmarks, all pairs by their first coordinates, some that remain."""
    gradient = features + 2 * depth * width  # entries of its factors
    pairs = samples * (samples + 1024) / 2
    per_pair = 2 * COMPARED + 0.01 * gradient
    per_sample = 2.5 * propagation(features, depth, width) + 1836 * gradient
    return Work(seeds * (samples * per_sample + pairs * per_pair), FLOAT64 * samples * features)
