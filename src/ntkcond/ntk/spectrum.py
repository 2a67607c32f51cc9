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

from ntkcond.arrays.backend import Array, to_numpy, triangular_factor, xp
from ntkcond.arrays.half import half_of
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.networks.mlp import MLP
from ntkcond.run.errors import UserError
from ntkcond.run.progress import progress, timed

UNIT_ROUNDOFF = 2.0**-53
FULL_SPECTRUM_UP_TO = 2000  # beyond, Cholesky and Lanczos are faster, leaner and more accurate

RESOLVED, SINGULAR, UNRESOLVED = "resolved", "singular", "unresolved"


class Extremes(NamedTuple):
    """The ends of a spectrum. `error` bounds |computed − exact| for both of them. eigenvalues: all
    of them, (n,) ascending; or else vector: the eigenvector of λ_min, (n,) of norm 1, which has
    ‖K v − λ v‖ ≤ error up to the rounding of that product."""

    lambda_max: float
    lambda_min: float
    error: float
    eigenvalues: np.ndarray | None = None
    vector: np.ndarray | None = None


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


def extreme_eigenvalues(kernel: Array | Symmetric, kernel_error: float = 0.0) -> Extremes:
    """λ_max and λ_min of a symmetric positive semi-definite matrix, with a bound on their error.

    kernel: (n, n) float64, exactly symmetric; or a large one, `Symmetric`, which is overwritten.
    kernel_error: a bound on the norm of its rounding error, which moves no eigenvalue by more; 0
    bounds the error with respect to the given matrix.
    Full solver: backward stable, error ≤ n ε λ_max (LAPACK Users' Guide, 4.7). For a large one, and
    for n > FULL_SPECTRUM_UP_TO, see `_cholesky_lanczos`. Raises UserError if it is not positive
    semi-definite.

    >>> import numpy as np, ntkcond
    >>> found = ntkcond.extreme_eigenvalues(np.diag([1.0, 2.0, 5.0]))
    >>> found.lambda_min, found.lambda_max, found.error < 1e-14
    (1.0, 5.0, True)
    """
    if isinstance(kernel, Symmetric):
        return _cholesky_lanczos(kernel, kernel_error)
    n = len(kernel)
    if n > FULL_SPECTRUM_UP_TO:
        return _cholesky_lanczos(half_of(kernel), kernel_error)
    eigenvalues = to_numpy(xp(kernel).linalg.eigvalsh(kernel))
    error = 2 * UNIT_ROUNDOFF * n * abs(eigenvalues).max() + kernel_error
    return Extremes(float(eigenvalues[-1]), float(eigenvalues[0]), float(error), eigenvalues)


def _cholesky_lanczos(kernel: Symmetric, kernel_error: float) -> Extremes:
    """λ_max by Lanczos; λ_min by Lanczos on the inverse, through a Cholesky factor in K's memory.

    Factorisation and the two triangular solves are exact for some K + E with ‖E‖ ≤ 3 p u tr K,
    p = `kernel.roundings` (`backward_error`). K is shifted by the whole error first: a kernel that
    rounding left slightly indefinite then has a factor too.
    """
    n = kernel.n
    # λ_max of an NTK is far from the rest and needs ten products; λ_min needs more
    with timed("λ_max"):
        lambda_max, residual, _ = _largest(n, kernel.product, [lambda _: 0.0], basis=10)
    error = kernel_error + 3 * backward_error(kernel)
    kernel.add_to_diagonal(error)
    if not _has_factor(kernel):
        raise UserError(
            f"a kernel of {n} samples is not positive semi-definite, but every NTK is. If it comes"
            " from a file, that is damaged: delete it and run again"
        )
    # The residual adds a hundredth to the bound at most. Where λ_min is lost in rounding, it lies
    # among many others, and 10⁻¹⁰ would take thousands of products.
    tolerances = [lambda _: 1e-2, lambda value: max(1e-10, 1e-2 * error * value)]
    # K⁻¹ v in place of v: of v, K v − λ v may be κ times as large
    with timed("λ_min"):
        inverse, inverse_residual, vector = _largest(n, kernel.solve, tolerances, basis=20)
    shifted = 1.0 / inverse
    error_here = error + max(residual, shifted**2 * inverse_residual)
    return Extremes(lambda_max, shifted - error, error_here, vector=vector)


def _has_factor(kernel: Symmetric) -> bool:
    """`factorise`, the longest part of a large kernel's spectrum, with its progress."""
    label = f"Cholesky factor, n = {kernel.n}"
    return kernel.factorise(lambda panels, count: progress(panels, count, label))


def singular_extremes(kernel: Symmetric, kernel_error: float = 0.0) -> Extremes:
    """Of a kernel that is known to be singular, so that λ_min is exactly 0. Otherwise as
    `extreme_eigenvalues`, without a factor."""
    largest, residual, _ = _largest(kernel.n, kernel.product, [lambda _: 0.0], basis=10)
    return Extremes(largest, 0.0, kernel_error + backward_error(kernel) + residual)


def backward_error(kernel: Symmetric) -> float:
    """p u tr K: a bound on ‖E‖ for the computed factor of a positive semi-definite K, LLᵀ = K + E,
    since ‖ |L||Lᵀ| ‖ ≤ ‖L‖_F² = tr LLᵀ; and on the change that a solve with L or Lᵀ makes. One more
    than p: for γ_p in place of p u, tr LLᵀ in place of tr K and the rounding of a shift."""
    return (kernel.roundings + 1) * UNIT_ROUNDOFF * float(kernel.diagonal.sum())


def smallest_is_above(kernel: Symmetric, sigma: float, kernel_error: float = 0.0) -> float | None:
    """A lower bound on λ_min, σ less the error of the proof; None if there is no proof. It is
    proven of the given matrix; of the exact NTK as far as kernel_error, an estimate, is a bound.

    If K − σI has a Cholesky factor in floating point, λ_min(K) ≥ σ − p u tr K (Rump, BIT Numerical
    Mathematics 46, 433, 2006). Eigenvectors and their residuals only show that some eigenvalue is
    near; this shows that none is below. kernel: overwritten. kernel_error: see
    `extreme_eigenvalues`.
    """
    error = backward_error(kernel) + kernel_error
    kernel.add_to_diagonal(-sigma)
    return sigma - error if _has_factor(kernel) else None


def _largest(
    n: int,
    product: Callable[[np.ndarray], np.ndarray],
    tolerances: Sequence[Callable[[float], float]],
    basis: int,
) -> tuple[float, float, np.ndarray]:
    """The largest eigenvalue of a symmetric operator A, ‖A v − λ v‖ of the vector v that was found,
    and A v/‖A v‖, by Lanczos, restarted after `basis` vectors. tolerances: relative residuals to
    reach one after the other, by the eigenvalue that the one before has found."""
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
    image = matvec(vector)
    residual = float(np.linalg.norm(image - value * vector))
    return float(value), residual, image / np.linalg.norm(image)


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


def diagonal(kernel: Array | Symmetric) -> np.ndarray:
    """(n,), on the host."""
    if isinstance(kernel, Symmetric):
        return kernel.diagonal
    return to_numpy(xp(kernel).linalg.diagonal(kernel))


def spectrum_record(
    kernel: Array | Symmetric, rank_bound: int, kernel_error: float = 0.0
) -> dict[str, float | int | str | np.ndarray]:
    """A kernel's spectrum, by the names of the spectrum file and of results/conditioning.csv;
    `eigenvalues` (n,) if all were computed; of a large one `smallest_eigenvector` (n,), zero if the
    kernel is known to be singular.

    kernel, kernel_error: see `extreme_eigenvalues`. rank_bound: `ntkcond.ntk.rank.rank_bound` of
    its inputs; lowered by the samples whose gradient is exactly zero, K_ii = 0.
    """
    squared_norms = diagonal(kernel)
    n = len(squared_norms)
    rank_bound = min(rank_bound, int((squared_norms != 0).sum()))
    if rank_bound < n and isinstance(kernel, Symmetric):
        extremes = singular_extremes(kernel, kernel_error)  # spares the factor
    else:
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
    elif isinstance(kernel, Symmetric):
        record["smallest_eigenvector"] = np.zeros(n) if extremes.vector is None else extremes.vector
    return record


def with_proof(
    record: dict[str, float | int | str | np.ndarray], kernel: Symmetric, kernel_error: float
) -> dict[str, float | int | str | np.ndarray]:
    """The record of a resolved kernel with `smallest_is_above`, the proven lower bound on λ_min.
    Where there is no proof the bound is NaN, κ keeps its lower bound, and it is unresolved.

    kernel: overwritten. kernel_error: see `extreme_eigenvalues`.
    """
    margin = record["lambda_min_error"] + backward_error(kernel)  # so that a factor exists
    bound = smallest_is_above(kernel, record["lambda_min"] - margin, kernel_error)
    if bound is not None:
        return {**record, "smallest_is_above": bound}
    unknown = {"kappa": record["kappa_lower"], "kappa_upper": math.inf, "verdict": UNRESOLVED}
    return {**record, **unknown, "smallest_is_above": math.nan}


class LinearFactor(NamedTuple):
    """R of a linear network, K = Φ Φᵀ with Φ = X Rᵀ (`ntkcond.networks.mlp.MLP.linear_factor`).
    transposed: Rᵀ, (d, d) float64; norm: ‖R‖, its largest singular value."""

    transposed: Array
    norm: float


def with_norm(factor: Array) -> LinearFactor:
    """From R, (d, d) float64."""
    return LinearFactor(factor.T, float(xp(factor).linalg.matrix_norm(factor, ord=2)))


def linear_size(x: Array, factor: LinearFactor) -> float:
    """‖X‖_F ‖R‖, which ‖Φ‖ does not exceed. x: (n, d) float64."""
    return factor.norm * float(xp(x).linalg.matrix_norm(x))


def linear_spectrum_record(
    kernel: Array | Symmetric, rank_bound: int, relative: float, x: Array, factor: LinearFactor
) -> dict[str, float | int | str | np.ndarray]:
    """`spectrum_record` of a linear network's kernel, and its non-zero spectrum from Φ: rank,
    smallest eigenvalue with its error, κ, and `nonzero_eigenvalues`, padded with NaN to
    min(n, d) entries.

    x: its inputs, (n, d) float64. relative: see `rounding`; here the error of Φ is relative to
    ‖X‖ ‖R‖, and Φ itself may be much smaller.
    """
    size = linear_size(x, factor)
    values, errors = nonzero_eigenvalues(x @ factor.transposed, relative * size)
    found, missing = len(values) > 0, min(x.shape) - len(values)
    return spectrum_record(kernel, rank_bound, relative * size**2) | {
        "nonzero_rank": len(values),
        "nonzero_lambda_min": values[0] if found else math.nan,
        "nonzero_lambda_min_error": errors[0] if found else math.nan,
        "nonzero_kappa": values[-1] / values[0] if found else math.nan,
        "nonzero_eigenvalues": np.pad(values, (0, missing), constant_values=math.nan),
    }
