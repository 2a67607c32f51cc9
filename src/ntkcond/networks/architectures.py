"""Names of networks beside the paper's, which `ntkcond.networks.modules` builds.

The Snakefile reads them: no torch.
"""

import math
from collections.abc import Sequence

# Name, and title in figures.
ARCHITECTURES = {
    "plain": "fully connected",
    "biases": "with biases",
    "residual": "residual",
    "residual_linear": "residual, linear last",
    "normalised": "normalised",
    "convolutional": "convolutional",
    "transformer": "transformer",
}
ON_IMAGES = ("convolutional", "transformer")  # which need samples that have a shape


def seen_as(name: str, shape: Sequence[int], features: int) -> tuple[int, int]:
    """What a network takes of a sample: channels and pixels of an image, as ON_IMAGES and a user's
    own may; else all features, and 0. shape: channels first; empty if samples are no images."""
    if shape and (name in ON_IMAGES or name not in ARCHITECTURES):
        return shape[0], math.prod(shape[1:])
    return features, 0
