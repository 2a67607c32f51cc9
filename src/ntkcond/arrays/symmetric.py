"""What the extreme eigenvalues of a large symmetric matrix need of it, wherever its entries are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import numpy as np

Track = Callable[[Iterable, int], Iterable]  # passes items on, their number with them


def untracked(items: Iterable, count: int) -> Iterable:
    """No progress is shown."""
    return items


class Symmetric(ABC):
    """An (n, n) float64 matrix: by half in one memory (`ntkcond.arrays.half`), or over the ranks of
    MPI (`ntkcond.arrays.block_cyclic`). Vectors are (n,) float64 on the host."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Rows."""

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """(n,)"""

    @abstractmethod
    def squares(self) -> float:
        """‖K‖_F², the sum of the squares of all entries; λ_max is at most its root."""

    @property
    @abstractmethod
    def roundings(self) -> int:
        """p: how many roundings a term of any sum passes through at most, in `factorise` and in
        each of the two triangular solves of `solve`. So LLᵀ = K + E with |E| ≤ γ_p |L||Lᵀ|, and
        each solve is exact for an L + F with |F| ≤ γ_p |L| (Higham, Accuracy and Stability of
        Numerical Algorithms, Lemmas 3.1 and 8.4, Thms 8.5 and 10.3, whose n is that of a plain
        loop)."""

    @abstractmethod
    def add_to_diagonal(self, shift: float) -> None:
        """K + shift I, in place."""

    @abstractmethod
    def product(self, v: np.ndarray) -> np.ndarray:
        """K v."""

    @abstractmethod
    def factorise(self, track: Track = untracked) -> bool:
        """Replaces K by its Cholesky factor L, K = LLᵀ; False, with K lost, if it has none: K is
        not positive definite. track: may show the progress."""

    @abstractmethod
    def solve(self, v: np.ndarray) -> np.ndarray:
        """K⁻¹ v, once K is factorised."""
