"""Norms of gradients by their factors are those of the NTK's diagonal."""

import numpy as np

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.steps.gradient_norm import gradient_norms


def test_they_are_the_root_of_the_diagonal():
    network = MLP(activation=ACTIVATIONS["relu"], depth=2, width=24)
    x = np.random.default_rng(0).standard_normal((30, 5))
    factors = network.initial_gradients(1, 5)(x)
    diagonal = np.diag(empirical_ntk(factors))
    np.testing.assert_allclose(gradient_norms(factors), np.sqrt(diagonal), rtol=1e-12)
