"""Gradient angles against input angles at infinite width: the numbers of these figures."""

import math

import numpy as np
import pandas as pd

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import gradient_angle

THETA_DEG = np.linspace(0.0, 180.0, 361)


def curve(activation: str, depth: int, **variance: float) -> pd.DataFrame:
    """Columns activation, depth, weight_variance if given, theta_in_deg, phi_deg; for each half
    degree, inputs of norm 1."""
    network = MLP(ACTIVATIONS[activation], depth, math.inf)
    phi_deg = np.degrees(gradient_angle(np.radians(THETA_DEG), network, **variance))
    about = {"activation": activation, "depth": depth, **variance}
    return pd.DataFrame({**about, "theta_in_deg": THETA_DEG, "phi_deg": phi_deg})
