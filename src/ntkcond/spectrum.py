"""Extreme eigenvalues of an NTK, each with a bound on its error, and the verdict on κ.

κ = λ_max/λ_min (Eq. 6) is only as good as λ_min, which for near-parallel data lies many orders
of magnitude below λ_max. So every λ_min here comes with a bound on its error, and every κ with
a verdict: `resolved`, `singular` (κ = ∞, known from the inputs: `ntkcond.rank`) or `unresolved`
(λ_min is below its bound: κ is only known to be large).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh

from ntkcond.errors import UserError

UNIT_ROUNDOFF = 2.0**-53
FULL_SPECTRUM_UP_TO = 2000  # beyond, Cholesky and Lanczos are faster, leaner and more accurate

RESOLVED, SINGULAR, UNRESOLVED = "resolved", "singular", "unresolved"


class Extremes(NamedTuple):
    """The ends of a spectrum. `error` bounds |computed − exact| for both of them;
    eigenvalues: all of them, (n,) ascending, where they were computed."""

    lambda_max: float
    lambda_min: float
    error: float
    eigenvalues: np.ndarray | None = None


class ConditionNumber(NamedTuple):
    """κ with the interval that its error bound leaves, and the verdict.

    singular: value = lower = upper = ∞. unresolved: value = lower, upper = ∞."""

    value: float
    lower: float
    upper: float
    verdict: str


def kernel_entry_error(depth: int, width: int, features: int) -> float:
    """Relative rounding error of an NTK entry computed in float64: |δK_ij| ≤ e √(K_ii K_jj).

    Each of the 2L + 1 stages of an entry (forward, backward, Gram) is a product over max(m, d)
    terms. Their worst case is proportional to the number of terms; independent roundings add up as
    its root, and exceed 4 √k u with probability below 10⁻³ each, before the layers' sum averages
    them (Higham & Mary, SIAM J. Sci. Comput. 41, A2815, 2019).
    """
    return 4 * UNIT_ROUNDOFF * (2 * depth + 1) * math.sqrt(max(width if depth else 0, features))


def extreme_eigenvalues(kernel: torch.Tensor, entry_error: float = 0.0) -> Extremes:
    """λ_max and λ_min of a symmetric positive semi-definite matrix, with a bound on their error.

    kernel: (n, n) float64, exactly symmetric, contiguous; its memory is used up when
    n > FULL_SPECTRUM_UP_TO. entry_error: see `kernel_entry_error`; 0 bounds the error with
    respect to the matrix as it is given.

    Full solver: backward stable, error ≤ n ε λ_max (LAPACK Users' Guide, 4.7). Perturbed entries:
    |δK_ij| ≤ e √(K_ii K_jj) moves no eigenvalue by more than e tr K.
    """
    n = len(kernel)
    trace = kernel.diagonal().sum().item()
    if n > FULL_SPECTRUM_UP_TO:
        return _cholesky_lanczos(kernel, entry_error * trace)
    eigenvalues = torch.linalg.eigvalsh(kernel).cpu().numpy()
    error = 2 * UNIT_ROUNDOFF * n * abs(eigenvalues).max() + entry_error * trace
    return Extremes(float(eigenvalues[-1]), float(eigenvalues[0]), float(error), eigenvalues)


def _cholesky_lanczos(kernel: torch.Tensor, entry_error: float) -> Extremes:
    """λ_max by Lanczos; λ_min by Lanczos on the inverse, through a Cholesky factor in K's memory.

    The factorisation is exact for some K + E with ‖E‖ ≤ (n+1) u tr K (Higham, Accuracy and
    Stability of Numerical Algorithms, Thm 10.3, with ‖ |C||C|ᵀ ‖ ≤ ‖C‖_F² = tr K). K is shifted
    by the whole error first: a kernel that rounding left slightly indefinite then has a factor too.
    entry_error: the norm of what rounding may have added to K.
    """
    n = len(kernel)
    lambda_max, residual = _largest(n, lambda v: kernel @ v, kernel.device, tolerance=0.0)
    error = entry_error + (n + 1) * UNIT_ROUNDOFF * kernel.diagonal().sum().item()
    kernel.diagonal().add_(error)
    info = torch.empty((), dtype=torch.int32, device=kernel.device)
    column_major = kernel.mT  # K = Kᵀ, so that LAPACK works in place
    factor, info = torch.linalg.cholesky_ex(column_major, out=(column_major, info))
    if info.item():
        raise UserError(
            f"a kernel of {n} samples is not positive semi-definite, which no NTK can be:"
            " its file is damaged; delete it and run again"
        )

    def solve(v: torch.Tensor) -> torch.Tensor:
        half = torch.linalg.solve_triangular(factor, v[:, None], upper=False)
        return torch.linalg.solve_triangular(factor.mT, half, upper=True)[:, 0]

    inverse, inverse_residual = _largest(n, solve, kernel.device, tolerance=1e-10)
    shifted = 1.0 / inverse
    return Extremes(
        lambda_max, shifted - error, error + max(residual, shifted**2 * inverse_residual)
    )


def _largest(
    n: int,
    product: Callable[[torch.Tensor], torch.Tensor],
    device: torch.device,
    tolerance: float,
) -> tuple[float, float]:
    """The largest eigenvalue of a symmetric operator and the norm of its residual, by Lanczos."""

    def matvec(v: np.ndarray) -> np.ndarray:
        return product(torch.from_numpy(v.ravel()).to(device)).cpu().numpy()

    start = np.random.default_rng(0).standard_normal(n)  # ARPACK's own start is not repeatable
    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    (value,), vectors = eigsh(operator, k=1, which="LA", v0=start, tol=tolerance)
    vector = vectors[:, 0]
    return float(value), float(np.linalg.norm(matvec(vector) - value * vector))


def nonzero_eigenvalues(factor: torch.Tensor) -> np.ndarray:
    """The non-zero eigenvalues of K = Φ Φᵀ, ascending, for a factor Φ (n, d) float64.

    They are the squared singular values of Φ: a d × d problem for n > d, whose relative error grows
    as √κ where an eigensolver's on K grows as κ. Singular values within rounding of zero,
    max(n, d) ε σ_max as in LAPACK's and NumPy's rank, count as zero.
    """
    tolerance = 2 * UNIT_ROUNDOFF * max(factor.shape)
    if factor.shape[0] > factor.shape[1]:
        factor = torch.linalg.qr(factor, mode="r").R
    sigma = torch.linalg.svdvals(factor).cpu().numpy()[::-1]
    return sigma[sigma > tolerance * sigma[-1]] ** 2


def condition_number(extremes: Extremes, n: int, rank_bound: int) -> ConditionNumber:
    """κ of an (n, n) kernel whose rank is known to be at most `rank_bound`."""
    largest, smallest, error = extremes.lambda_max, extremes.lambda_min, extremes.error
    if rank_bound < n:
        return ConditionNumber(math.inf, math.inf, math.inf, SINGULAR)
    lower = (largest - error) / (max(smallest, 0.0) + error)
    if smallest <= error:
        return ConditionNumber(lower, lower, math.inf, UNRESOLVED)
    return ConditionNumber(
        largest / smallest, lower, (largest + error) / (smallest - error), RESOLVED
    )


def spectrum_record(
    kernel: torch.Tensor,
    rank_bound: int,
    entry_error: float = 0.0,
    factor: torch.Tensor | None = None,
) -> dict[str, float | int | str | np.ndarray]:
    """All that is kept of one kernel's spectrum, by the names of the spectrum file and of
    results/conditioning.csv; `eigenvalues` only where all were computed.

    kernel, entry_error: see `extreme_eigenvalues`. rank_bound: `ntkcond.rank.rank_bound` of its
    inputs. factor: Φ with K = Φ Φᵀ where the network is linear, for the `nonzero_` entries.
    """
    n = len(kernel)
    extremes = extreme_eigenvalues(kernel, entry_error)
    kappa = condition_number(extremes, n, rank_bound)
    record = {
        "lambda_max": extremes.lambda_max,
        "lambda_min": extremes.lambda_min,
        "lambda_min_error": extremes.error,
        "rank_bound": rank_bound,
        "kappa": kappa.value,
        "kappa_lower": kappa.lower,
        "kappa_upper": kappa.upper,
        "verdict": kappa.verdict,
    }
    if extremes.eigenvalues is not None:
        record["eigenvalues"] = extremes.eigenvalues
    if factor is not None:
        nonzero = nonzero_eigenvalues(factor)
        smallest, largest = (nonzero[0], nonzero[-1]) if len(nonzero) else (math.nan, math.nan)
        record |= {
            "nonzero_rank": len(nonzero),
            "nonzero_lambda_min": smallest,
            "nonzero_kappa": largest / smallest,
        }
    return record
