"""The paper's synthetic set: independent standard Gaussian features (Sec. 5.2: 2,000 × 5)."""

from pathlib import Path

import numpy as np

from ntkcond.datasets.samples import Raw
from ntkcond.datasets.source import Source

SOURCE = Source(
    title="synthetic", options={"features"}, required={"samples", "features"}, labels=False
)


def load(data_dir: Path, options: dict) -> Raw:
    """options: samples, features, seed. No labels, and no range of values to scale from."""
    shape = (options["samples"], options["features"])
    stream = np.random.Philox(np.random.SeedSequence([options["seed"], *shape]))
    x = np.random.Generator(stream).standard_normal(shape)
    return Raw(x, None, (-np.inf, np.inf), "standard Gaussian, i.i.d. features")
