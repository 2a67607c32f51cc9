"""The NTK in the course of a descent, and the descent as its NTK at the start predicts it."""

from typing import NamedTuple

import numpy as np

WATCHED = 10  # steps at which the NTK is looked at, at most, beside the start


class Modes(NamedTuple):
    """An NTK's eigenvalues λᵢ, ascending, (n,), and the squared projections on its eigenvectors uᵢ
    of three vectors, (n,) each: labels y and the constant vector, as shares, which add up to 1; and
    the residual at the start, (uᵢᵀ r₀)²."""

    eigenvalues: np.ndarray
    labels: np.ndarray
    constant: np.ndarray
    residual: np.ndarray


def modes(kernel: np.ndarray, y: np.ndarray, residual: np.ndarray) -> Modes:
    """kernel: (n, n) float64; y, residual: (n,)."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    unit = [v / np.linalg.norm(v) for v in (y, np.ones_like(y))]
    return Modes(eigenvalues, *(np.square(v @ vectors) for v in (*unit, residual)))


def linearised(start: Modes, learning_rate: float, steps: int) -> np.ndarray:
    """‖f(X) − y‖ before each step and after the last, (steps + 1,), were the NTK constant:
    ‖rₜ‖² = Σᵢ (1 − η λᵢ)²ᵗ (uᵢᵀ r₀)² (Arora et al. 2019, Lee et al. 2019)."""
    factors = np.square(1 - learning_rate * start.eigenvalues)
    return np.sqrt([float((factors**t) @ start.residual) for t in range(steps + 1)])


def watched(steps: int) -> list[int]:
    """0 and at most WATCHED steps up to the last, evenly spaced in their logarithm."""
    return [0, *sorted({round(step) for step in np.geomspace(1, steps, WATCHED)})]


def relative_change(kernel: np.ndarray, start: np.ndarray) -> float:
    """‖Kₜ − K₀‖/‖K₀‖, of Frobenius norms; nan if K₀ = 0."""
    norm = np.linalg.norm(start)
    return float(np.linalg.norm(kernel - start) / norm) if norm else np.nan
