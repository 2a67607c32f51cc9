"""How labels lie in the eigenvectors of an NTK."""

import numpy as np


def alignment(kernel: np.ndarray, y: np.ndarray) -> float:
    """The centred kernel–target alignment ⟨H K H, y yᵀ⟩/(‖H K H‖ ‖H y yᵀ H‖) with
    H = I − 1 1ᵀ/n, from 0 to 1 (Cortes, Mohri and Rostamizadeh 2012); nan where nothing is left
    of K or y.

    kernel: (n, n); y: (n,), or (n, C), a column for each class."""
    product, kernel_norm, label_norm = alignment_parts(kernel, y)
    norm = kernel_norm * label_norm
    return float(product / norm) if norm else np.nan


def alignment_parts(kernel: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """⟨H K H, y yᵀ⟩, ‖H K H‖ and ‖H y yᵀ H‖, of Frobenius norms."""
    rows = kernel - kernel.mean(axis=0)
    centred = rows - rows.mean(axis=1, keepdims=True)
    labels = (y - y.mean(axis=0)).reshape(len(y), -1)
    product = np.sum(labels * (centred @ labels))
    return product, np.linalg.norm(centred), np.linalg.norm(labels.T @ labels)


def squared_projections(vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
    """‖uᵢᵀ Y‖², (n,). vectors: uᵢ as columns, (n, n); y: (n, C)."""
    squares: np.ndarray = np.square(vectors.T @ y).sum(axis=1)
    return squares
