"""Extreme eigenvalues of an NTK, each with a bound on its error, and the verdict on κ.

κ = λ_max/λ_min (Eq. 6) is only as accurate as λ_min, which for near-parallel data lies many orders
of magnitude below λ_max. So every λ_min has an error bound, and every κ a verdict: `resolved`,
`singular` (κ = ∞, known from the inputs: `ntkcond.ntk.rank`) or `unresolved` (λ_min is below its
bound: κ is large, and its value is unknown).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, cholesky_solver, put, to_numpy, triangular_factor, xp
from ntkcond.networks.mlp import MLP
from ntkcond.run.errors import UserError

UNIT_ROUNDOFF = 2.0**-53
# cuBLAS has failed on matrix-vector products of 2³¹ entries and more (pytorch issue 17897).
ENTRIES_AT_ONCE = 2**31 - 1
FULL_SPECTRUM_UP_TO = 2000  # beyond, Cholesky and Lanczos are faster, leaner and more accurate

RESOLVED, SINGULAR, UNRESOLVED = "resolved", "singular", "unresolved"


class Extremes(NamedTuple):
    """The ends of a spectrum. `error` bounds |computed − exact| for both of them;
    eigenvalues: all of them, (n,) ascending, or None."""

    lambda_max: float
    lambda_min: float
    error: float
    eigenvalues: np.ndarray | None = None


class ConditionNumber(NamedTuple):
    """κ with the interval from its error bound, and the verdict.

    singular: value = lower = upper = ∞. unresolved: value = lower, upper = ∞."""

    value: float
    lower: float
    upper: float
    verdict: str


def rounding(network: MLP, features: int) -> float:
    """e: the relative error that rounding leaves in a float64 inner product of gradients.

    |δK_ij| ≤ e times the product of the norms in it. The worst case grows with the number k of
    terms of a sum. This is an estimate, 4 √k u a stage (`MLP.rounding_stages`), not a guarantee:
    independent roundings of mean zero make one product of k factors 1 + δ exceed it with a
    probability below 10⁻³, and the theorem multiplies that by k for an inner product and by the
    number of entries for a matrix (Higham & Mary, SIAM J. Sci. Comput. 41, A2815, 2019). What
    speaks for it are the errors found in extended precision, all far below (tests).
    """
    stages, longest_sum = network.rounding_stages(features)
    return 4 * UNIT_ROUNDOFF * stages * math.sqrt(longest_sum)


def extreme_eigenvalues(kernel: Array, kernel_error: float = 0.0) -> Extremes:
    """λ_max and λ_min of a symmetric positive semi-definite matrix, with a bound on their error.

    kernel: (n, n) float64, exactly symmetric, contiguous; overwritten if n > FULL_SPECTRUM_UP_TO.
    kernel_error: a bound on the norm of its rounding error, which moves no eigenvalue by more; 0
    bounds the error with respect to the given matrix.
    Full solver: backward stable, error ≤ n ε λ_max (LAPACK Users' Guide, 4.7).
    """
    n = len(kernel)
    if n > FULL_SPECTRUM_UP_TO:
        return _cholesky_lanczos(kernel, kernel_error)
    eigenvalues = to_numpy(xp(kernel).linalg.eigvalsh(kernel))
    error = 2 * UNIT_ROUNDOFF * n * abs(eigenvalues).max() + kernel_error
    return Extremes(float(eigenvalues[-1]), float(eigenvalues[0]), float(error), eigenvalues)


def _cholesky_lanczos(kernel: Array, kernel_error: float) -> Extremes:
    """λ_max by Lanczos; λ_min by Lanczos on the inverse, through a Cholesky factor in K's memory.

    Factorisation and the two triangular solves are exact for some K + E with ‖E‖ ≤ 3 (n+1) u tr K
    (Higham, Accuracy and Stability of Numerical Algorithms, Thms 10.3 and 8.5, with
    ‖ |C||C|ᵀ ‖ ≤ ‖C‖_F² = tr K). K is shifted by the whole error first: a kernel that rounding
    left slightly indefinite then has a factor too.
    """
    n, diagonal = len(kernel), xp(kernel).linalg.diagonal(kernel)

    def product(v: np.ndarray) -> np.ndarray:
        moved, rows = put(v, kernel.device), ENTRIES_AT_ONCE // n
        bands = [kernel[start : start + rows] @ moved for start in range(0, n, rows)]
        return to_numpy(xp(kernel).concat(bands))

    # λ_max of an NTK is far from the rest and needs ten products; λ_min needs more
    lambda_max, residual = _largest(n, product, [lambda _: 0.0], basis=10)
    error = kernel_error + 3 * (n + 1) * UNIT_ROUNDOFF * float(diagonal.sum())
    kernel.reshape(-1)[:: n + 1] += error
    solve = cholesky_solver(kernel)
    if solve is None:
        raise UserError(
            f"a kernel of {n} samples is not positive semi-definite, but every NTK is: its file is"
            " damaged. Delete it and run again"
        )
    # The residual adds a hundredth to the bound at most. Where λ_min is lost in rounding, it lies
    # among many others, and 10⁻¹⁰ would take thousands of products.
    tolerances = [lambda _: 1e-2, lambda value: max(1e-10, 1e-2 * error * value)]
    inverse, inverse_residual = _largest(n, solve, tolerances, basis=20)
    shifted = 1.0 / inverse
    return Extremes(
        lambda_max, shifted - error, error + max(residual, shifted**2 * inverse_residual)
    )


def _largest(
    n: int,
    product: Callable[[np.ndarray], np.ndarray],
    tolerances: Sequence[Callable[[float], float]],
    basis: int,
) -> tuple[float, float]:
    """The largest eigenvalue of a symmetric operator and the norm of its residual, by Lanczos,
    restarted after `basis` vectors. tolerances: relative residuals to reach one after the other,
    by the eigenvalue that the one before has found."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # 0.2 s, saved for small kernels

    def matvec(v: np.ndarray) -> np.ndarray:
        return product(v.ravel())

    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    vector = np.random.default_rng(0).standard_normal(n)  # ARPACK's own start is not repeatable
    value = math.nan
    for tolerance in tolerances:
        (value,), vectors = eigsh(
            operator, k=1, which="LA", v0=vector, tol=tolerance(value), ncv=min(basis, n)
        )
        vector = vectors[:, 0]
    return float(value), float(np.linalg.norm(matvec(vector) - value * vector))


def nonzero_eigenvalues(factor: Array, factor_error: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The non-zero eigenvalues of K = Φ Φᵀ, ascending, and a bound on the error of each.

    factor: Φ (n, d) float64; factor_error: a bound on the norm of its rounding error.
    They are the squared singular values of Φ: a d × d problem for n > d, whose relative error grows
    as √κ where an eigensolver's on K grows as κ. Singular values within their error of zero,
    max(n, d) ε σ_max as in LAPACK's and NumPy's rank plus factor_error, count as zero.
    """
    rows, columns = factor.shape
    if rows > columns:
        factor = triangular_factor(factor)
    sigma = to_numpy(xp(factor).linalg.svdvals(factor))[::-1]
    error = 2 * UNIT_ROUNDOFF * max(rows, columns) * sigma[-1] + factor_error
    sigma = sigma[sigma > error]
    return sigma**2, (2 * sigma + error) * error


def condition_number(extremes: Extremes, n: int, rank_bound: int) -> ConditionNumber:
    """κ of an (n, n) kernel whose rank is known to be at most `rank_bound`."""
    largest, smallest, error = extremes.lambda_max, extremes.lambda_min, extremes.error
    if rank_bound < n:
        return ConditionNumber(math.inf, math.inf, math.inf, SINGULAR)
    lower = (largest - error) / (max(smallest, 0.0) + error)
    lower = lower if lower > 1 else 1.0  # also of a bound that is no number
    if not smallest > error:
        return ConditionNumber(lower, lower, math.inf, UNRESOLVED)
    return ConditionNumber(
        largest / smallest, lower, (largest + error) / (smallest - error), RESOLVED
    )


def spectrum_record(
    kernel: Array, rank_bound: int, kernel_error: float = 0.0
) -> dict[str, float | int | str | np.ndarray]:
    """A kernel's spectrum, by the names of the spectrum file and of results/conditioning.csv;
    `eigenvalues` (n,) only if all were computed.

    kernel, kernel_error: see `extreme_eigenvalues`. rank_bound: `ntkcond.ntk.rank.rank_bound` of
    its inputs; lowered by the samples whose gradient is exactly zero, K_ii = 0.
    """
    n = len(kernel)
    rank_bound = min(rank_bound, int((xp(kernel).linalg.diagonal(kernel) != 0).sum()))
    extremes = extreme_eigenvalues(kernel, kernel_error)
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
    return record


class LinearFactor(NamedTuple):
    """R of a linear network, K = Φ Φᵀ with Φ = X Rᵀ (`ntkcond.networks.mlp.MLP.linear_factor`).
    transposed: Rᵀ, (d, d) float64; norm: ‖R‖, its largest singular value."""

    transposed: Array
    norm: float


def with_norm(factor: Array) -> LinearFactor:
    """From R, (d, d) float64."""
    return LinearFactor(factor.T, float(xp(factor).linalg.matrix_norm(factor, ord=2)))


def linear_spectrum_record(
    kernel: Array, rank_bound: int, relative: float, x: Array, factor: LinearFactor
) -> dict[str, float | int | str | np.ndarray]:
    """`spectrum_record` of a linear network's kernel, and its non-zero spectrum from Φ: rank,
    smallest eigenvalue with its error, κ, and `nonzero_eigenvalues`, padded with NaN to
    min(n, d) entries.

    x: its inputs, (n, d) float64. relative: see `rounding`; here the error of Φ is relative to
    ‖X‖ ‖R‖, and Φ itself may be much smaller.
    """
    size = factor.norm * float(xp(x).linalg.matrix_norm(x))
    values, errors = nonzero_eigenvalues(x @ factor.transposed, relative * size)
    found, missing = len(values) > 0, min(x.shape) - len(values)
    return spectrum_record(kernel, rank_bound, relative * size**2) | {
        "nonzero_rank": len(values),
        "nonzero_lambda_min": values[0] if found else math.nan,
        "nonzero_lambda_min_error": errors[0] if found else math.nan,
        "nonzero_kappa": values[-1] / values[0] if found else math.nan,
        "nonzero_eigenvalues": np.pad(values, (0, missing), constant_values=math.nan),
    }
