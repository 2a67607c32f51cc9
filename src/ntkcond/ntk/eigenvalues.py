"""The spectrum of an NTK: extreme eigenvalues with what is proven of them, κ, and its verdict.

κ = λ_max/λ_min (Eq. 6) is only as accurate as λ_min, which for near-parallel data lies many orders
of magnitude below λ_max. So a `Spectrum` has an interval for κ, and a verdict: `resolved`,
`singular` (κ = ∞: the rank is known to be below n) or `unresolved` (λ_min is lost in rounding: κ is
large, and its value is unknown). The interval is as good as the weakest of what it rests on, its
grade: `proved`, under a `model` of rounding (`ntkcond.ntk.rounding`), or `estimated`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, to_numpy, triangular_factor, xp
from ntkcond.arrays.half import half_of
from ntkcond.arrays.symmetric import Symmetric
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.rounding import ESTIMATED, PROVED, TINY, UNIT_ROUNDOFF, KernelError
from ntkcond.run.errors import UserError
from ntkcond.run.progress import progress, timed

FULL_SPECTRUM_UP_TO = 2000  # beyond, Cholesky and Lanczos are faster, leaner and more accurate
GRADES = ("proved", "model", "estimated")  # from the strongest

PRECISE = 0.9
# Of an entry of a kernel, for all that its products and sums lose below float64's range.
UNDERFLOW = 2.0**-1000
RESTARTS = 1000  # of Lanczos, then its tolerance is LOOSER times as large
LOOSER = 1e3

RESOLVED, SINGULAR, UNRESOLVED = "resolved", "singular", "unresolved"


class Extremes(NamedTuple):
    """The ends of the spectrum of a given matrix, and where the exact ones lie.

    Attributes
    ----------
    lambda_max, lambda_min : float
        As computed.
    largest, smallest : (float, float)
        (low, high) of λ_max and of λ_min.
    proved : bool
        Whether that is a theorem; if not, λ_max is not above and λ_min not below as far as the
        solver is to be believed.
    norm : float
        λ_max is not above, for certain.
    eigenvalues : (n,) array or None
        All of them, ascending, as computed, where n ≤ 2,000.
    vector : (n,) array or None
        Else the eigenvector of λ_min, of norm 1.
    error : float
        How far the exact λ_min may be from the computed one.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> ntkcond.extreme_eigenvalues(np.diag([1.0, 2.0, 5.0])).eigenvalues
    array([1., 2., 5.])
    """

    lambda_max: float
    lambda_min: float
    largest: tuple[float, float]
    smallest: tuple[float, float]
    proved: bool
    norm: float = math.inf
    eigenvalues: np.ndarray | None = None
    vector: np.ndarray | None = None

    @property
    def error(self) -> float:
        """How far the exact λ_min may be from the computed one."""
        low, high = self.smallest
        return max(self.lambda_min - low, high - self.lambda_min)


@dataclass(frozen=True)
class Spectrum:
    """The ends of the spectrum of an (n, n) NTK, its κ and their verdict.

    Attributes
    ----------
    kappa : float
        λ_max/λ_min; ∞ of a singular NTK, the lower bound of an unresolved one.
    kappa_lower, kappa_upper : float
        Between them the exact κ lies.
    lambda_max, lambda_min : float
        As computed: λ_min may be negative by less than its error.
    error : float
        A bound on the error of λ_min, with that of the kernel, of the grade.
    verdict : str
        "resolved"; "singular", κ = ∞; "unresolved", λ_min is lost in rounding.
    grade : str
        "proved", "model" or "estimated": what the interval rests on.
    kinks : int
        Preactivations so near a kink that rounding may have put them on its other side.
    known_kappa : str
        κ in the digits that are known.
    extremes : Extremes
        Of the matrix as computed.
    kernel_error : KernelError
        How far that is from the exact NTK.
    n : int
        Rows.
    rank_bound : int
        The exact NTK's rank is at most this, for certain.
    smallest_is_above : float or None
        A proven lower bound on λ_min of the computed matrix, of a large one, if it was asked for.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> spectrum = ntkcond.condition_number(np.diag([1.0, 2.0, 4.0]), error=0.1)
    >>> spectrum.verdict, spectrum.grade, round(spectrum.kappa, 9), round(spectrum.error, 9)
    ('resolved', 'proved', 4.0, 0.1)
    """

    extremes: Extremes
    kernel_error: KernelError
    n: int
    rank_bound: int
    smallest_is_above: float | None = None

    @property
    def lambda_max(self) -> float:
        return self.extremes.lambda_max

    @property
    def lambda_min(self) -> float:
        """As computed: it may be negative by less than its error."""
        return self.extremes.lambda_min

    @property
    def grade(self) -> str:
        """The strongest grade that leaves λ_min at least PRECISE of its value; else the sharpest.
        Of a singular NTK: proved."""
        if self.rank_bound < self.n:
            return PROVED
        intervals = self._intervals()
        for grade in sorted(intervals, key=GRADES.index):
            if intervals[grade].smallest[0] > PRECISE * self.lambda_min:
                return grade
        return max(intervals, key=GRADES.index)

    def _intervals(self) -> dict[str, "_Interval"]:
        """Intervals that hold the exact λ_max and λ_min, by grade."""
        ends, above = self.extremes, self.smallest_is_above
        largest, smallest = ends.largest, ends.smallest
        if above is not None:
            largest, smallest = (largest[0], ends.norm), (above, smallest[1])
        intervals = {}
        for grade in (grade for grade in GRADES if grade in self.kernel_error.bounds):
            bound = self.kernel_error.bounds[grade]
            e = bound.norm(largest[1]) + self.n * UNDERFLOW
            intervals[grade if ends.proved or above is not None else ESTIMATED] = _Interval(
                (largest[0] - e, largest[1] + e), (smallest[0] - e, smallest[1] + e), bound.kinks
            )  # where both are estimated, the sharper one stays
        return intervals

    @property
    def _interval(self) -> "_Interval":
        intervals = self._intervals()
        sharpest = max(intervals, key=GRADES.index)
        return intervals[sharpest if self.rank_bound < self.n else self.grade]

    @property
    def error(self) -> float:
        """A bound on the error of λ_min, with that of the kernel, of the grade."""
        low, high = self._interval.smallest
        return max(self.lambda_min - low, high - self.lambda_min)

    @property
    def kinks(self) -> int:
        """Preactivations so near a kink that rounding may have put them on its other side."""
        return self._interval.kinks

    @property
    def verdict(self) -> str:
        if self.rank_bound < self.n:
            return SINGULAR
        return RESOLVED if self._interval.smallest[0] > 0 else UNRESOLVED

    @property
    def kappa(self) -> float:
        """λ_max/λ_min; ∞ of a singular NTK, the lower bound of an unresolved one."""
        if self.verdict == RESOLVED:
            return self.lambda_max / self.lambda_min
        return self.kappa_lower

    @property
    def kappa_lower(self) -> float:
        if self.verdict == SINGULAR:
            return math.inf
        largest, smallest = self._interval.largest[0], self._interval.smallest[1]
        lower = largest / smallest if smallest > 0 else math.nan
        return lower if lower > 1 else 1.0  # also of a bound that is no number

    @property
    def kappa_upper(self) -> float:
        if self.verdict != RESOLVED:
            return math.inf
        return self._interval.largest[1] / self._interval.smallest[0]

    def __str__(self) -> str:
        lost = ""
        if self.verdict == SINGULAR:
            lost = f": the rank is at most {self.rank_bound}"
        elif self.verdict == UNRESOLVED and self.kinks:
            gates = "a preactivation is" if self.kinks == 1 else f"{self.kinks} preactivations are"
            lost = f": {gates} within rounding of a kink"
        elif self.verdict == UNRESOLVED:
            lost = ": λ_min is lost in rounding"
        return (
            f"{self.known_kappa}{lost}, {self.verdict} ({self.grade}); n = {self.n},"
            f" λ_max = {self.lambda_max:.6g}, λ_min = {self.lambda_min:.6g} ± {self.error:.2g}"
        )

    __repr__ = __str__

    @property
    def known_kappa(self) -> str:
        """κ in the digits that are known: with the error of the last, a bound from below, or ∞."""
        if self.verdict == SINGULAR:
            return "κ = ∞"
        if self.verdict == UNRESOLVED:
            return f"κ > {_rounded(self.kappa_lower, 4, math.floor)}"
        off = max(self.kappa_upper - self.kappa, self.kappa - self.kappa_lower, 0.0)
        if off > self.kappa / 4:
            low, high = self.kappa_lower, self.kappa_upper
            return f"κ = {_rounded(low, 2, math.floor)} to {_rounded(high, 2, math.ceil)}"
        off = max(off, 1e-9 * self.kappa)  # more digits than these help nobody
        digits = math.ceil(math.log10(self.kappa / off)) + 1
        value = f"{self.kappa:#.{digits}g}".rstrip(".")
        return f"κ = {value} ± {_rounded(off, 1, math.ceil)}"

    @property
    def record(self) -> dict[str, float | int | str | np.ndarray]:
        """By the names of the spectrum file and of results/conditioning.csv; `eigenvalues` (n,) if
        all were computed, else `smallest_eigenvector` (n,), zero if it was not."""
        record: dict[str, float | int | str | np.ndarray] = {
            "lambda_max": self.lambda_max,
            "lambda_min": self.lambda_min,
            "lambda_min_error": self.error,
            "rank_bound": self.rank_bound,
            "kappa": self.kappa,
            "kappa_lower": self.kappa_lower,
            "kappa_upper": self.kappa_upper,
            "verdict": self.verdict,
            "grade": self.grade,
            "kinks": self.kinks,
        }
        ends = self.extremes
        if ends.eigenvalues is not None:
            record["eigenvalues"] = ends.eigenvalues
        else:
            record["smallest_eigenvector"] = (
                np.zeros(self.n) if ends.vector is None else ends.vector
            )
        if self.smallest_is_above is not None:
            record["smallest_is_above"] = self.smallest_is_above
        return record


def _rounded(value: float, digits: int, direction: Callable[[float], int]) -> str:
    """A bound, as a word: rounded down or up, so that it stays one."""
    if not math.isfinite(value):
        return "∞"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return f"{direction(value / unit) * unit:.{digits}g}"


class _Interval(NamedTuple):
    """largest, smallest: (low, high) of the exact λ_max and λ_min."""

    largest: tuple[float, float]
    smallest: tuple[float, float]
    kinks: int


def spectrum(kernel: Array | Symmetric, error: KernelError, rank_bound: int) -> Spectrum:
    """The spectrum of a computed NTK.

    kernel: (n, n) float64, exactly symmetric; or a large one, `Symmetric`, which is overwritten.
    error: what is known of its error. rank_bound: of the exact NTK, from its inputs
    (`ntkcond.ntk.rank.rank_bound`); samples with a gradient of exactly zero lower it further.
    Raises UserError if the kernel is not positive semi-definite within its error.
    """
    n = len(diagonal(kernel))
    rank_bound = min(rank_bound, n - error.zero_gradients)
    if rank_bound < n and isinstance(kernel, Symmetric):
        extremes = singular_extremes(kernel)  # spares the factor
    else:
        trace = float(diagonal(kernel).sum())
        shift = min(bound.norm(trace) for bound in error.bounds.values())
        extremes = extreme_eigenvalues(kernel, shift, certify=rank_bound == n)
    return Spectrum(extremes, error, n, rank_bound)


def extreme_eigenvalues(
    kernel: Array | Symmetric, kernel_error: float = 0.0, certify: bool = True
) -> Extremes:
    """λ_max and λ_min of a symmetric positive semi-definite matrix, and intervals that hold them.

    kernel: (n, n) float64, exactly symmetric; or a large one, `Symmetric`, which is overwritten.
    kernel_error: by how much, in norm, it may fail to be positive semi-definite. certify: prove the
    intervals, for n ≤ FULL_SPECTRUM_UP_TO (`_enclosures`); beyond, see `_cholesky_lanczos`. Raises
    UserError if it is not positive semi-definite.

    >>> import numpy as np, ntkcond
    >>> extremes = ntkcond.extreme_eigenvalues(np.diag([1.0, 2.0, 5.0]))
    >>> extremes.lambda_min, extremes.lambda_max, extremes.error < 1e-14, extremes.proved
    (1.0, 5.0, True, True)
    """
    if isinstance(kernel, Symmetric):
        return _cholesky_lanczos(kernel, kernel_error)
    n = len(kernel)
    if n > FULL_SPECTRUM_UP_TO:
        return _cholesky_lanczos(half_of(kernel), kernel_error)
    eigenvalues = to_numpy(xp(kernel).linalg.eigvalsh(kernel))
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if certify and (proof := _enclosures(to_numpy(kernel), smallest, largest)):
        return Extremes(largest, smallest, *proof, proved=True, eigenvalues=eigenvalues)
    error = 2 * UNIT_ROUNDOFF * n * abs(eigenvalues).max()  # LAPACK Users' Guide, 4.7
    ends = ((value - error, value + error) for value in (largest, smallest))
    return Extremes(largest, smallest, *ends, proved=False, eigenvalues=eigenvalues)


def _enclosures(
    kernel: np.ndarray, smallest: float, largest: float
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Intervals that hold λ_max and λ_min of a given matrix, for certain; None without a proof.

    If A has a Cholesky factor in floating point, λ_min(A) ≥ −τ; if it has none, λ_min(A) ≤ τ, with
    τ = (n + 2) u tr A, for sums in any order (Rump, BIT Numerical Mathematics 46, 433, 2006;
    Higham, Accuracy and Stability of Numerical Algorithms, Thms 10.3, 10.7). So K − σI for a σ on
    each side of λ_min, and σI − K for λ_max: four factors, little beside the eigenvalues.
    """
    trace, n = float(kernel.trace()), len(kernel)
    if not math.isfinite(trace) or not math.isfinite(largest):
        return None
    below = _enclosed(kernel, smallest, 1.0, trace, n)
    above = below and _enclosed(kernel, -largest, -1.0, -trace, n)
    return above and ((-above[1], -above[0]), below)


def _enclosed(
    kernel: np.ndarray, value: float, sign: float, trace: float, n: int
) -> tuple[float, float] | None:
    """An interval that holds λ_min of ±K, computed as `value`; trace: of ±K."""

    def slack(sigma: float) -> float:
        """τ of ±K − σI, with the rounding of the difference."""
        moved = UNIT_ROUNDOFF * (abs(kernel.diagonal()).max() + abs(sigma))
        return 1.01 * ((n + 2) * UNIT_ROUNDOFF * max(trace - n * sigma, 0.0) + moved) + n * n * TINY

    def has_factor(sigma: float) -> bool:
        from scipy.linalg import lapack  # 0.1 s

        shifted = sign * kernel
        shifted.reshape(-1)[:: n + 1] -= sigma
        return lapack.dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)[1] == 0

    size = max(abs(value), abs(trace))
    for margin in (n / 8, n, 8 * n, 64 * n):
        apart = margin * UNIT_ROUNDOFF * size / max(1.0, math.sqrt(n))
        low = value - apart - slack(value)
        high = value + apart + slack(value)
        if has_factor(low) and not has_factor(high):
            return float(low - slack(low)), float(high + slack(high))
    return None


def _cholesky_lanczos(kernel: Symmetric, kernel_error: float) -> Extremes:
    """λ_max by Lanczos; λ_min by Lanczos on the inverse, through a Cholesky factor in K's memory.

    Factorisation and the two triangular solves are exact for some K + E with ‖E‖ ≤ 3 p u tr K,
    p = `kernel.roundings` (`backward_error`). K is shifted by the whole error first: a kernel that
    rounding left slightly indefinite then has a factor too. That an eigenvalue lies in each
    interval is proved by its residual; that none lies beyond is Lanczos' convergence from a random
    vector, and no proof: `with_proof` costs a second factor, as long as all the rest.
    """
    n = kernel.n
    # squares of entries below the root of TINY may be lost
    norm = math.sqrt(kernel.squares()) * (1 + n * UNIT_ROUNDOFF) + n * math.sqrt(2 * TINY)
    # λ_max of an NTK is far from the rest and needs ten products; λ_min needs more
    with timed("λ_max"):
        lambda_max, residual, _ = _largest(n, kernel.product, [lambda _: 0.0], basis=10)
    residual += backward_error(kernel)  # of the product that gives it
    solve_error = 3 * backward_error(kernel)
    shift = kernel_error + solve_error
    kernel.add_to_diagonal(shift)
    if not _has_factor(kernel):
        raise UserError(
            f"a kernel of {n} samples is not positive semi-definite, but every NTK is. If it comes"
            " from a file, that is damaged: delete it and run again"
        )
    # The residual adds a hundredth to the bound at most. Where λ_min is lost in rounding, it lies
    # among many others, and 10⁻¹⁰ would take thousands of products.
    tolerances = [lambda _: 1e-2, lambda value: max(1e-10, 1e-2 * shift * value)]
    # K⁻¹ v in place of v: of v, K v − λ v may be κ times as large
    with timed("λ_min"):
        inverse, inverse_residual, vector = _largest(n, kernel.solve, tolerances, basis=20)
    shifted = 1.0 / inverse
    lambda_min, error = shifted - shift, solve_error + shifted * (shifted * inverse_residual)
    return Extremes(
        lambda_max, lambda_min, (lambda_max - residual, lambda_max + residual),
        (lambda_min - error, lambda_min + error), proved=False, norm=norm, vector=vector,
    )  # fmt: skip


def _has_factor(kernel: Symmetric) -> bool:
    """`factorise`, the longest part of a large kernel's spectrum, with its progress."""
    label = f"Cholesky factor, n = {kernel.n}"
    return kernel.factorise(lambda panels, count: progress(panels, count, label))


def singular_extremes(kernel: Symmetric) -> Extremes:
    """Extremes of a kernel that is known to be singular, so that λ_min of the exact one is 0.
    Otherwise as `extreme_eigenvalues`, without a factor."""
    largest, residual, _ = _largest(kernel.n, kernel.product, [lambda _: 0.0], basis=10)
    error = backward_error(kernel) + residual
    return Extremes(largest, 0.0, (largest - error, largest + error), (-error, error), proved=False)


def backward_error(kernel: Symmetric) -> float:
    """p u tr K: a bound on ‖E‖ for the computed factor of a positive semi-definite K, LLᵀ = K + E,
    since ‖ |L||Lᵀ| ‖ ≤ ‖L‖_F² = tr LLᵀ; and on the change that a solve with L or Lᵀ makes. One more
    than p: for γ_p in place of p u, tr LLᵀ in place of tr K and the rounding of a shift."""
    trace = float(kernel.diagonal.sum())
    return (kernel.roundings + 1) * UNIT_ROUNDOFF * trace + kernel.n * UNDERFLOW


def smallest_is_above(kernel: Symmetric, sigma: float) -> float | None:
    """A lower bound on λ_min of the given matrix, σ less the error of the proof; None if there is
    no proof.

    If K − σI has a Cholesky factor in floating point, λ_min(K) ≥ σ − p u tr K (Rump, BIT Numerical
    Mathematics 46, 433, 2006). Eigenvectors and their residuals only show that some eigenvalue is
    near; this shows that none is below. kernel: overwritten.
    """
    error = backward_error(kernel)
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
    reach one after the other, by the eigenvalue that the one before has found. Raises UserError if
    A is beyond float64's range."""
    from scipy.sparse.linalg import (  # 0.2 s, saved for small kernels
        ArpackNoConvergence,
        LinearOperator,
        eigsh,
    )

    vector = np.random.default_rng(0).standard_normal(n)  # ARPACK's own start is not repeatable
    size = float(abs(product(vector)).max())
    if not math.isfinite(size):
        raise UserError(f"a kernel of {n} samples is beyond float64's range. Scale the samples")
    if not size:
        return 0.0, 0.0, vector / np.linalg.norm(vector)
    exponent = math.frexp(size)[1]

    def matvec(v: np.ndarray) -> np.ndarray:
        """A v, by a power of two near size 1: ARPACK takes an eigenvalue below 10⁻¹¹ for
        converged before it is."""
        return np.ldexp(product(v.ravel()), -exponent)

    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    value = math.nan
    for tolerance in tolerances:
        relative = max(tolerance(float(np.ldexp(value, exponent))), UNIT_ROUNDOFF)
        while True:  # of eigenvalues as close as rounding, none converges to the last digit
            try:
                (value,), vectors = eigsh(
                    operator, k=1, which="LA", v0=vector, tol=relative, ncv=min(basis, n),
                    maxiter=RESTARTS,
                )  # fmt: skip
                break
            except ArpackNoConvergence:
                relative *= LOOSER
        vector = vectors[:, 0]
    image = matvec(vector)
    residual = float(np.ldexp(np.linalg.norm(image - value * vector), exponent))
    return float(np.ldexp(value, exponent)), residual, image / np.linalg.norm(image)


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


def diagonal(kernel: Array | Symmetric) -> np.ndarray:
    """(n,), on the host."""
    if isinstance(kernel, Symmetric):
        return kernel.diagonal
    return to_numpy(xp(kernel).linalg.diagonal(kernel))


def with_proof(computed: Spectrum, kernel: Symmetric) -> Spectrum:
    """With `smallest_is_above`, the proven lower bound on λ_min of the same kernel, overwritten.
    NaN where there is no proof: then κ is unresolved."""
    margin = computed.extremes.error + backward_error(kernel)  # so that a factor exists
    bound = smallest_is_above(kernel, computed.lambda_min - margin)
    return replace(computed, smallest_is_above=math.nan if bound is None else bound)


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


def relative_error(network: MLP, features: int) -> float:
    """e: an estimate of the relative error of the entries of a linear network's Φ, 4 √k u for each
    stage of k terms (`MLP.rounding_stages`). For `nonzero_spectrum`, which decides no verdict."""
    stages, longest_sum = network.rounding_stages(features)
    return 4 * UNIT_ROUNDOFF * stages * math.sqrt(longest_sum)


def nonzero_spectrum(
    network: MLP, x: Array, factor: LinearFactor
) -> dict[str, float | int | np.ndarray]:
    """The non-zero spectrum of a linear network's K = Φ Φᵀ, from Φ: rank, smallest non-zero
    eigenvalue with its error, κ, and `nonzero_eigenvalues`, padded with NaN to min(n, d) entries.

    x: its inputs, with their bias, (n, d) float64. The error of Φ is taken for
    `relative_error` times ‖X‖ ‖R‖; Φ itself may be much smaller.
    """
    values, errors = nonzero_eigenvalues(
        x @ factor.transposed, relative_error(network, x.shape[1]) * linear_size(x, factor)
    )
    some, missing = len(values) > 0, min(x.shape) - len(values)
    return {
        "nonzero_rank": len(values),
        "nonzero_lambda_min": values[0] if some else math.nan,
        "nonzero_lambda_min_error": errors[0] if some else math.nan,
        "nonzero_kappa": values[-1] / values[0] if some else math.nan,
        "nonzero_eigenvalues": np.pad(values, (0, missing), constant_values=math.nan),
    }
