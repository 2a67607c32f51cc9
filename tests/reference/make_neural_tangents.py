"""Makes neural_tangents.json: NTKs at infinite width by an independent implementation.

    python3.11 -m venv nt
    nt/bin/pip install neural-tangents==0.6.5 jax==0.4.25 jaxlib==0.4.25 'numpy<2' 'scipy<1.13'
    nt/bin/python tests/reference/make_neural_tangents.py

Not part of ntkcond's environment. Its layers are W_std W x / √fan-in with W ~ N(0, 1): W_std = √d
in the first, √c_σ in the others and no biases make its networks those of the paper's Eq. (1).
"""

import json
import math
from pathlib import Path

import jax
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

# Layers of neural-tangents, and c_σ. Its Gelu has the closed form of Tsuchida et al. (2021).
LAYERS = {
    "relu": (stax.Relu, 2.0),
    "linear": (stax.Identity, 1.0),
    "erf": (stax.Erf, math.pi / 2 / math.asin(2 / 3)),
    "gelu": (stax.Gelu, None),
}


def kernel(activation: str, depth: int, x: np.ndarray) -> np.ndarray:
    layer, c = LAYERS[activation]
    if c is None:
        c = 1 / mean_square(layer)
    layers = [stax.Dense(1, W_std=math.sqrt(x.shape[1]), parameterization="ntk")]
    for _ in range(depth):
        layers += [layer(), stax.Dense(1, W_std=math.sqrt(c), parameterization="ntk")]
    _, _, kernel_of = stax.serial(*layers)
    return np.array(kernel_of(x, None, "ntk"))


def mean_square(layer) -> float:
    """E[σ(z)²] by its own dual: a layer of unit weights on an input of norm 1."""
    _, _, kernel = stax.serial(stax.Dense(1, W_std=1.0), layer(), stax.Dense(1, W_std=1.0))
    return float(kernel(np.ones((1, 1)), None, "nngp")[0, 0])


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    kernels = [
        {"activation": activation, "depth": depth, "kernel": kernel(activation, depth, x).tolist()}
        for activation in LAYERS
        for depth in (1, 3, 8)
    ]
    target = Path(__file__).with_name("neural_tangents.json")
    target.write_text(json.dumps({"x": x.tolist(), "kernels": kernels}, indent=1) + "\n", "utf-8")
