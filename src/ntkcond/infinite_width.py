"""ReLU networks at infinite width: angles between embeddings and between gradients.

Angles are in radians; Theorem and equation numbers are those of arXiv 2305.08813v1.
"""

import numpy as np
from numpy.typing import ArrayLike


def g(theta: ArrayLike) -> np.ndarray:
    """Angle between the embeddings after one ReLU layer (Eq. 8):
    g(θ) = arccos(((π − θ) cos θ + sin θ)/π), elementwise on [0, π]."""
    theta = np.asarray(theta, dtype=np.float64)
    cosine = ((np.pi - theta) * np.cos(theta) + np.sin(theta)) / np.pi
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def gradient_cosine(theta_in: ArrayLike, depth: int, trainable: str = "all") -> np.ndarray:
    """cos φ of a ReLU network of depth L (Thm 4.4, Eq. 10), elementwise.

    cos φ = 1/(L+1) · Σₗ cos θˡ · Πₗ′ (1 − θˡ′/π), l = 0..L, l′ = l..L−1, θˡ = gˡ(θ_in);
    summed by Horner's rule from l = 0 on, in one pass over the layers. trainable: all, or first,
    the gradient with respect to W¹ alone: the summand of l = 0.
    """
    theta = np.asarray(theta_in, dtype=np.float64)
    total = np.cos(theta)
    for _ in range(depth):
        total = total * (1.0 - theta / np.pi)
        theta = g(theta)
        if trainable == "all":
            total += np.cos(theta)
    return total / (depth + 1) if trainable == "all" else total


def gradient_angle(theta_in: ArrayLike, depth: int, trainable: str = "all") -> np.ndarray:
    """φ of a ReLU network of depth L (Thm 4.4), elementwise on [0, π]; linear ones: φ = θ_in."""
    return np.arccos(np.clip(gradient_cosine(theta_in, depth, trainable), -1.0, 1.0))
