"""Bounds on a kernel's rank from the inputs alone, without rounding.

Exact statements on float32 inputs: equal rows, zero rows, parallel rows. They decide which NTKs
are singular, κ = ∞, whatever eigenvalue an eigensolver returns.
"""

import math

import numpy as np

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.networks.mlp import MLP


def distinct_directions(x: np.ndarray, signed: bool) -> int:
    """Number of directions among the rows of x (n, d) float32, zero rows left out.

    signed: x and −x count as two (rays); else as one (lines).
    Each row is divided by its largest entry. Quotients of float32 numbers that differ do so by
    2⁻⁴⁸ at least, which float64 holds apart; equal ones round equally: the count is exact.
    """
    x = x[x.any(axis=1)].astype(np.float64)
    pivot = x[np.arange(len(x)), np.abs(x).argmax(axis=1)]
    unit = x / (np.abs(pivot) if signed else pivot)[:, None]
    return len(first_of_each(unit))


def rank_bound(x: np.ndarray, network: MLP) -> int:
    """An upper bound on the rank of the NTK of x (n, d), for all weights.

    Never above the number of weights P. Linear networks: K = X M Xᵀ has at most the rank of X,
    so at most its distinct lines, of rows and of columns. Homogeneous activations (ReLU): parallel
    rows have parallel gradients, so at most the distinct rays. Others: distinct rows; at infinite
    width, where their rows have norm 1, that is distinct rays too.
    """
    if network.is_linear:  # the columns are no more than the weights of the first layer
        x = network.with_bias(x)
        return min(distinct_directions(a, signed=False) for a in (x, x.T))
    bound = min(len(x), network.weight_count(x.shape[1]))
    if network.degree is not None or network.width == math.inf:
        return min(bound, distinct_directions(x, signed=True))
    return min(bound, len(first_of_each(x)))
