"""The eigendecomposition of an NTK and what follows from it, each number with an interval.

K = U Λ Uᵀ is computed; the exact NTK K* differs from it by ε at most: by the error of the kernel,
and by the rounding of the decomposition, ‖K − U Λ Uᵀ‖ and ‖Uᵀ U − I‖, which are measured. For each
function of K, an interval follows that holds its value for every positive semi-definite K* with
‖K* − K‖ ≤ ε. So it is as good as the kernel's error: proved, or an estimate (`Kernel.grade`).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from ntkcond.library.inputs import with_hints
from ntkcond.library.kernel import Kernel
from ntkcond.library.matrices import as_kernel, bound_of, unit_of
from ntkcond.library.of_module import condition_number
from ntkcond.library.plots import plot_eigenvalues
from ntkcond.ntk.eigenvalues import SINGULAR, Spectrum
from ntkcond.ntk.labels import alignment_parts
from ntkcond.ntk.rounding import UNIT_ROUNDOFF
from ntkcond.run.errors import UserError
from ntkcond.run.progress import advance, bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
SHARES = 25, 65, 4, 6  # of the time, in percent: κ, eigenvectors, and the two products that measure


class Interval(NamedTuple):
    """A computed number and where the exact one is.

    Attributes
    ----------
    value : float
        As computed.
    low, high : float
        The exact one is between them.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> rank = ntkcond.eigendecomposition(np.eye(3)).effective_rank()
    >>> round(rank.value, 9), rank.low <= 3 <= rank.high
    (3.0, True)
    """

    value: float
    low: float
    high: float


class Prediction(NamedTuple):
    """Outputs of linearised training.

    Attributes
    ----------
    values, errors : (m,) or (m, C) array
        The outputs, and a bound on the error of each.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> eigen = ntkcond.eigendecomposition(np.eye(2))
    >>> eigen.trained(np.ones(2)).values, eigen.trained(np.ones(2)).errors.max() < 1e-12
    (array([1., 1.]), np.True_)
    """

    values: Array
    errors: Array


@dataclass(frozen=True, eq=False, repr=False)
class Eigendecomposition:
    """All eigenvalues and eigenvectors of an (n, n) NTK: what `eigendecomposition` gives.

    Attributes
    ----------
    matrix : (n, n) array
        As computed.
    values : (n,) array
        Eigenvalues, ascending, as computed.
    vectors : (n, n) array
        Eigenvectors, a column each.
    spectrum : Spectrum
        The extremes with κ, interval and verdict.
    error : float
        No exact eigenvalue is further from the computed one (Weyl).
    frobenius : float
        A bound on the Frobenius norm of the kernel's error.
    defect : float
        A bound on how far the matrix of the vectors is from an orthogonal one.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> eigen = ntkcond.eigendecomposition(np.diag([1.0, 3.0]))
    >>> eigen.values, eigen.spectrum.verdict, eigen.error < 1e-13
    (array([1., 3.]), 'resolved', True)
    """

    matrix: Array
    values: Array
    vectors: Array
    spectrum: Spectrum
    error: float
    frobenius: float
    defect: float

    @property
    def condition_number(self) -> float:
        """κ = λ_max/λ_min, of which `spectrum` has the interval and verdict."""
        return self.spectrum.kappa

    @cached_property
    def angles(self) -> Array:
        """How far each exact eigenvector may be from the computed one, (n,), in radians.

        It is π/2 where its eigenvalue is too near another (Davis and Kahan 1970:
        sin θ ≤ ε/(gap − ε)).
        """
        gaps = np.full(len(self.values) + 1, np.inf)
        gaps[1:-1] = np.diff(self.values)
        gap = np.minimum(gaps[:-1], gaps[1:]) - self.error
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = np.where(gap > self.error, self.error / gap, 1.0)
        return np.asarray(np.arcsin(np.minimum(1.0, sine + self.defect)))

    def effective_rank(self) -> Interval:
        """tr K/λ_max, the intrinsic dimension: from 1 to n.

        Returns
        -------
        Interval
        """
        near, _ = self._near_one()
        return _ratio(near._trace(), (float(near.values[-1]), near.error), len(self.values))

    def participation_ratio(self) -> Interval:
        """(tr K)²/‖K‖_F²: n if all eigenvalues are equal, 1 if only one is not 0.

        Returns
        -------
        Interval
        """
        near, _ = self._near_one()
        norm = float(np.linalg.norm(near.matrix))
        off = near.frobenius + _rounding(len(self.values)) * norm
        root = _ratio(near._trace(), (norm, off), math.sqrt(len(self.values)))
        rounding = 4 * UNIT_ROUNDOFF
        return Interval(root.value**2, root.low**2 * (1 - rounding), root.high**2 * (1 + rounding))

    def alignment(self, y: Array | Tensor) -> Interval:
        """The centred kernel–target alignment, from 0 to 1 (Cortes, Mohri and Rostamizadeh 2012).

        Parameters
        ----------
        y : (n,) or (n, C) array
            Labels, a column for each class.

        Returns
        -------
        Interval
            NaN where nothing is left of K or y.

        Raises
        ------
        UserError
            For labels of another shape, NaN or infinite.

        Examples
        --------
        >>> import numpy as np, ntkcond
        >>> y = np.array([1.0, -1.0])
        >>> round(ntkcond.eigendecomposition(np.outer(y, y)).alignment(y).value, 12)
        1.0
        """
        near, _ = self._near_one()
        labels, _ = _near_one(self._labels(y))
        product, kernel_norm, label_norm = map(float, alignment_parts(near.matrix, labels))
        centred = labels - labels.mean(axis=0)
        size, rounding = float(np.sum(centred**2)), 8 * _rounding(len(labels))
        entries = float(np.linalg.norm(near.matrix))
        if not kernel_norm * label_norm:
            return Interval(math.nan, 0.0, 1.0)
        lost = _rounding(len(labels)) * float(np.linalg.norm(labels))  # where the mean is large
        moved = 2 * math.sqrt(size) * lost + lost**2
        off = (near.error + rounding * entries) * size + (near.error + entries) * moved
        norm = kernel_norm * label_norm
        norm_off = (near.frobenius + rounding * entries) * label_norm + rounding * norm
        norm_off += (kernel_norm + near.frobenius) * moved
        return _ratio((product, off), (norm, norm_off), 1.0)

    def complexity(self, y: Array | Tensor) -> Interval:
        """The label complexity Yᵀ K⁻¹ Y, summed over columns (Arora et al. 2019).

        Parameters
        ----------
        y : (n,) or (n, C) array
            Labels.

        Returns
        -------
        Interval
            By monotonicity of the inverse: of K + ε the least, of K − ε the most, ∞ where
            λ_min ≤ ε. Of a singular NTK the value is ∞, though it is finite for labels without a
            part in its kernel, which rounding does not tell.

        Raises
        ------
        UserError
            For labels of another shape, NaN or infinite.

        Examples
        --------
        >>> import numpy as np, ntkcond
        >>> ntkcond.eigendecomposition(np.diag([1.0, 2.0, 4.0])).complexity(np.ones(3)).value
        1.75
        """
        near, exponent = self._near_one()
        labels, of_labels = _near_one(self._labels(y))
        projections, off = self._projections(labels)
        values = np.maximum(near.values, 0.0)
        if self.spectrum.verdict == SINGULAR or near.values[0] <= 0:
            value = math.inf
        else:
            value = float(np.sum(projections**2 / near.values[:, None]))
        low = _inverse_norm(projections, values + near.error) - off / math.sqrt(
            max(values[0] + near.error, np.finfo(float).tiny)
        )
        low, high = max(low, 0.0) ** 2 * (1 - _rounding(len(values))), math.inf
        smallest = float(near.values[0] - near.error)
        if smallest > 0 and self.spectrum.verdict != SINGULAR:
            root = _inverse_norm(projections, near.values - near.error) + off / math.sqrt(smallest)
            high = root**2 * (1 + _rounding(len(values)))
        ends = min(low, value), value, max(high, value)
        low, value, high = (_times_power(part, 2 * of_labels - exponent) for part in ends)
        return Interval(value, math.nextafter(low, 0.0), math.nextafter(high, math.inf))

    def trained(
        self,
        y: Array | Tensor,
        learning_rate: float | None = None,
        steps: float = math.inf,
        f0: Array | Tensor | float = 0.0,
    ) -> Prediction:
        """Outputs on the samples after gradient descent on ½ ‖f − y‖², were the NTK constant:
        f_t = y + (I − η K)ᵗ (f₀ − y) (Jacot et al. 2018, Lee et al. 2019).

        Parameters
        ----------
        y : (n,) or (n, C) array
            Labels.
        learning_rate : float
            η; not needed after all steps, where any small one ends at the same.
        steps : int or math.inf
            t, their number.
        f0 : float, (n,) or (n, C) array
            Outputs at the start.

        Returns
        -------
        Prediction
            (n,) or (n, C).

        Raises
        ------
        UserError
            Where η λ_max may reach 2: the descent diverges.

        Examples
        --------
        >>> import numpy as np, ntkcond
        >>> eigen = ntkcond.eigendecomposition(np.diag([1.0, 2.0]))
        >>> eigen.trained(np.ones(2), learning_rate=0.5, steps=1).values
        array([0.5, 1. ])
        """
        labels, residual = self._start(y, f0)
        q, shift = self._contraction(learning_rate, steps)
        values = np.maximum(self.values, 0.0)
        rate = learning_rate or 0.0  # without one there are infinitely many steps
        factors = (1 - rate * values) ** steps if math.isfinite(steps) else 1.0 * (values == 0)
        projections = self.vectors.T @ residual
        if math.isfinite(steps):
            change = min(2.0, steps * rate * shift * q ** max(steps - 1, 0))
        else:
            change = 0.0 if q < 1 else 1.0
        change += self.defect * 2 + 4 * _rounding(len(values)) * (1 + _power_rounding(steps, q))
        scale = _norms(residual.T).T
        size = float(_norms(scale)[0, 0])
        after = labels + self.vectors @ (factors[:, None] * projections)
        errors = change * scale + UNIT_ROUNDOFF * (size + 2 * abs(labels))
        shape = np.shape(_array(y))
        return Prediction(after.reshape(shape), errors.reshape(shape))

    def predicted(
        self,
        k_test: Kernel | Array | Tensor,
        y: Array | Tensor,
        learning_rate: float | None = None,
        steps: float = math.inf,
        f0: Array | Tensor | float = 0.0,
        f0_test: Array | Tensor | float = 0.0,
        ridge: float = 0.0,
    ) -> Prediction:
        """Outputs on other samples after the descent of `trained`: f₀(x) + k(x)ᵀ φ(K) (y − f₀).

        Parameters
        ----------
        k_test : Kernel or (m, n) array
            The kernel of other samples and these, `kernel(module, x_test, x)`, with its error if it
            is a `Kernel`.
        y : (n,) or (n, C) array
            Labels.
        learning_rate : float
            η; not needed after all steps.
        steps : int or math.inf
            t, their number.
        f0, f0_test : float, or array as y and as the result
            Outputs at the start, on these samples and on the others.
        ridge : float
            r, 0 or above, for kernel ridge regression; after all steps alone.

        Returns
        -------
        Prediction
            (m,) or (m, C). Errors are ∞, never NaN, where nothing is known, as after all steps of
            an NTK that may be singular.

        Raises
        ------
        UserError
            As `trained`, and for another number of columns.

        Notes
        -----
        φ(λ) = (1 − (1 − η λ)ᵗ)/λ, η t for λ = 0; K⁻¹ after all steps; φ(λ) = 1/(λ + r) with a
        ridge. ‖φ(K*) − φ(K)‖ ≤ η² ε Σ s qˢ⁻¹ over s < t, with q the most that ‖I − η K‖ may be, or
        ε/((λ_min + r)(λ*_min + r)).

        Examples
        --------
        >>> import numpy as np, ntkcond
        >>> eigen = ntkcond.eigendecomposition(np.diag([1.0, 3.0]))
        >>> eigen.predicted(np.array([[1.0, 3.0]]), np.array([1.0, 2.0]), ridge=1.0).values
        array([2.])
        """
        kernel, kernel_error = _test_kernel(k_test, len(self.values))
        labels, residual = self._start(y, f0)
        residual, of_residual = _near_one(-residual)
        q, shift = self._contraction(learning_rate, steps)
        ridge, rate = _ridge(ridge), float(learning_rate or 0.0)
        if ridge and math.isfinite(steps):
            raise UserError("a ridge is of regression after all steps: leave out steps=")
        beside = min(1 / rate, float(np.finfo(float).max)) if math.isfinite(steps) else ridge
        near, exponent = self._near_one(beside)
        kernel, of_kernel = _near_one(kernel)
        kernel_error, shift = _times_power(kernel_error, -of_kernel), _times_power(shift, -exponent)
        values, n = np.maximum(near.values, 0.0), len(self.values)
        lowest = max(float(near.values[0]) - near.error, 0.0)
        if math.isfinite(steps):
            rate = _times_power(rate, exponent)
            phi, change, most = _integrated(values, lowest, rate, steps, q, shift)
        else:
            phi, change, most = _inverted(values, lowest, _times_power(ridge, -exponent), shift)
        projections = self.vectors.T @ residual
        start = _columns(_array(f0_test))
        try:
            start = np.broadcast_to(start, (len(kernel), labels.shape[1]))
        except ValueError:
            raise UserError(
                f"f0_test must have the shape of the result, a row for each of {len(kernel)}"
                f" samples, not {np.shape(f0_test)}"
            ) from None
        moved = kernel @ (self.vectors @ (phi[:, None] * projections))
        back = of_kernel + of_residual - exponent
        after = start + np.ldexp(moved, back)
        rounding = self.defect * 2 + 6 * _rounding(n) * (1 + _power_rounding(steps, q))
        norms, scale = _norms(kernel), _norms(residual.T).T
        inner = change + rounding * most
        with np.errstate(invalid="ignore", over="ignore"):
            errors = np.where(norms > 0, norms * inner, 0.0)
            errors = scale * (errors + (kernel_error * most if kernel_error else 0.0))
            errors = np.where(scale > 0, np.ldexp(errors, back) + SMALLEST, 0.0)
        errors += UNIT_ROUNDOFF * abs(after)
        errors = np.where(np.isnan(errors), math.inf, errors)
        shape = (len(kernel), *np.shape(_array(y))[1:])
        return Prediction(after.reshape(shape), errors.reshape(shape))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draws all eigenvalues, largest first: grey below the error of each, where none is known,
        with triangles for those that lie there.

        Parameters
        ----------
        ax : matplotlib.axes.Axes
            New ones by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UserError
            Without Matplotlib.

        Examples
        --------
        >>> import numpy as np, ntkcond
        >>> ax = ntkcond.eigendecomposition(np.diag([0.0, 1.0, 2.0])).plot()
        >>> ax.get_legend_handles_labels()[1]
        ['below the error of eigenvalues', '1 not known']
        """
        return plot_eigenvalues(self.values, self.error, self.spectrum, ax)

    def _near_one(self, size: float = 0.0) -> tuple["Eigendecomposition", int]:
        """2⁻ᵉ K, whose squares neither underflow nor overflow, and e. size: of what is added to K
        or compared with it, which is then below 1 as well."""
        exponent = _exponent(max(float(abs(self.matrix).max()), size))
        matrix, values = (np.ldexp(part, -exponent) for part in (self.matrix, self.values))
        error, frobenius = (_times_power(part, -exponent) for part in (self.error, self.frobenius))
        near = replace(self, matrix=matrix, values=values, error=error, frobenius=frobenius)
        return near, exponent

    def _trace(self) -> tuple[float, float]:
        """tr K and how far that of K* may be."""
        n, trace = len(self.values), float(self.matrix.trace())
        return trace, math.sqrt(n) * self.frobenius + _rounding(n) * trace

    def _labels(self, y: Array | Tensor) -> Array:
        labels = _array(y)
        n = len(self.values)
        if labels.ndim not in (1, 2) or len(labels) != n:
            raise UserError(f"y must be ({n},) or ({n}, C), not {labels.shape}")
        if not np.isfinite(labels).all():
            raise UserError("y has NaN or infinite entries")
        return _columns(labels)

    def _projections(self, labels: Array) -> tuple[Array, float]:
        """Uᵀ Y, (n, C), and how far, in norm, that of the exact eigenvectors of U Λ Uᵀ may be."""
        off = self.defect + _rounding(len(labels))
        return self.vectors.T @ labels, off * float(np.linalg.norm(labels))

    def _start(self, y: Array | Tensor, f0: Array | Tensor | float) -> tuple[Array, Array]:
        """Labels, and f₀ − y, (n, C)."""
        labels = self._labels(y)
        start = _columns(_array(f0))
        try:
            return labels, np.broadcast_to(start, labels.shape) - labels
        except ValueError:
            raise UserError(f"f0 must have the shape of y, not {np.shape(f0)}") from None

    def _contraction(self, learning_rate: float | None, steps: float) -> tuple[float, float]:
        """q, the most that |1 − η λ| may be, and ε with what is made of negative eigenvalues."""
        if not (steps == math.inf or (steps >= 0 and int(steps) == steps)):
            raise UserError(f"steps={steps}: it must be a whole number, 0 or more, or math.inf")
        largest, lowest = float(self.values[-1]) + self.error, float(self.values[0]) - self.error
        shift = self.error + max(0.0, -float(self.values[0]))
        if learning_rate is None:
            if math.isfinite(steps):
                raise UserError(f"steps={steps} need a learning_rate, below 2/λ_max")
            return 0.0 if lowest > 0 else 1.0, shift
        if not learning_rate > 0:
            raise UserError(f"learning_rate={learning_rate}: it must be above 0")
        if learning_rate * largest >= 2:
            raise UserError(
                f"at learning_rate={learning_rate:.4g} the descent diverges: λ_max may be"
                f" {largest:.4g}, and it must be below 2/λ_max = {2 / largest:.4g}"
            )
        q = max(1 - learning_rate * max(lowest, 0.0), learning_rate * largest - 1)
        return q, shift

    def __repr__(self) -> str:
        return f"Eigendecomposition({self.spectrum})"


@with_hints
def eigendecomposition(
    kernel: Kernel | Array | Tensor, *, error: float = 0.0
) -> Eigendecomposition:
    """All eigenvalues and eigenvectors of an NTK, with what they say of labels and of training.

    Parameters
    ----------
    kernel : Kernel or (n, n) array
    error : float
        Of a matrix: a bound on the norm of its error, as for `condition_number`.

    Returns
    -------
    Eigendecomposition

    Raises
    ------
    UserError
        As `condition_number` does.

    Examples
    --------
    >>> import numpy as np, ntkcond
    >>> eigen = ntkcond.eigendecomposition(np.diag([1.0, 2.0, 4.0]))
    >>> eigen.values, round(eigen.condition_number, 12)
    (array([1., 2., 4.]), 4.0)
    >>> eigen.complexity(np.ones(3)).value
    1.75
    """
    error = bound_of(error)
    ntk = as_kernel(kernel, error)
    matrix, n = ntk.matrix, len(ntk.matrix)
    near, exponent = _near_one(matrix)
    if not math.isfinite(_times_power(float(near.trace()), exponent)):
        raise UserError(f"the trace of the NTK is beyond float64's range: give K / {2 * n}")
    with bar(f"eigendecomposition, n = {n}", sum(SHARES)):
        known = condition_number(ntk, error=error)
        advance(SHARES[0])
        values, vectors = np.linalg.eigh(near)
        advance(SHARES[1])
        defect = float(np.linalg.norm(vectors.T @ vectors - np.eye(n)))
        advance(SHARES[2])
        off = float(np.linalg.norm(near - (vectors * values) @ vectors.T))
        advance(SHARES[3])
    largest = float(abs(values).max())
    rounding = _rounding(n)
    # rounding of the products that measure: entries of norm 1 and ‖K‖
    defect += math.sqrt(n) * rounding
    off += 2 * math.sqrt(n) * rounding * largest + 2.1 * largest * defect
    off = _times_power(off, exponent)
    if largest:
        off += 8 * n * SMALLEST
    given = ntk.error + error
    is_matrix = not isinstance(kernel, Kernel)
    frobenius = ntk.error + error * math.sqrt(n) if is_matrix else given
    values = np.ldexp(values, exponent)
    return Eigendecomposition(matrix, values, vectors, known, given + off, frobenius, defect)


def _near_one(values: Array) -> tuple[Array, int]:
    """2⁻ᵉ times them, below 1, and e."""
    exponent = _exponent(float(abs(values).max(initial=0.0)))
    return np.ldexp(values, -exponent), exponent


def _exponent(size: float) -> int:
    """e, so that 2⁻ᵉ times it is from 1/2 to 1; 0 of 0."""
    return math.frexp(size)[1]


def _times_power(value: float, exponent: int) -> float:
    """2ᵉ times it; ∞ where that overflows."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(value, exponent))


def _norms(rows: Array) -> Array:
    """The norm of each row, (rows, 1), without underflow or overflow of squares."""
    size = abs(rows).max(axis=1, keepdims=True, initial=0.0)
    near = rows / np.where((size > 0) & (size < math.inf), size, 1.0)
    return np.asarray(size * np.linalg.norm(near, axis=1, keepdims=True))


def _ratio(above: tuple[float, float], below: tuple[float, float], most: float) -> Interval:
    """The ratio of two numbers that are not negative, each with its error; at most `most`."""
    (a, a_off), (b, b_off) = above, below
    low = max(0.0, (a - a_off) / (b + b_off)) if b + b_off > 0 else 0.0
    high = (a + a_off) / (b - b_off) if b > b_off else most
    value = a / b if b else math.nan
    return Interval(value, min(low, value) * (1 - 4 * UNIT_ROUNDOFF), max(min(high, most), value))


def _integrated(
    values: Array, lowest: float, rate: float, steps: float, q: float, shift: float
) -> tuple[Array, float, float]:
    """φ(λ) = (1 − (1 − η λ)ᵗ)/λ of each eigenvalue, (n,); how far φ(K*) may be from φ(K), and a
    bound on ‖φ(K*)‖. lowest: λ_min of K* is not below."""
    positive = rate * values > np.finfo(np.float64).tiny
    safe = np.where(positive, values, 1.0)
    with np.errstate(divide="ignore"):
        slow = -np.expm1(steps * np.log1p(-np.minimum(rate * safe, 0.5)))
    fast = 1 - (1 - rate * safe) ** steps
    phi = np.where(positive, np.where(rate * safe < 0.5, slow, fast) / safe, rate * steps)
    change = rate * (rate * shift) * steps**2 / 2
    if q < 1:
        change = min(change, rate * (rate * shift) / (1 - q) ** 2)
    return phi, change, min(rate * steps, 2 / lowest if lowest else math.inf)


def _inverted(
    values: Array, lowest: float, ridge: float, shift: float
) -> tuple[Array, float, float]:
    """The same of φ(λ) = 1/(λ + ridge); without a ridge 0 for λ = 0, where labels have no part."""
    damped = values + ridge
    phi = np.where(damped > 0, 1 / np.where(damped > 0, damped, 1.0), 0.0)
    if not lowest + ridge > 0:
        return phi, math.inf, math.inf
    return phi, shift / (lowest + ridge) / float(damped[0]), 1 / (lowest + ridge)


def _ridge(ridge: float) -> float:
    if isinstance(ridge, bool) or not isinstance(ridge, int | float) or not 0 <= ridge < math.inf:
        raise UserError(f"ridge={ridge!r}: it must be a number, 0 or above")
    return float(ridge)


def _inverse_norm(projections: Array, values: Array) -> float:
    """√ Σ pᵢ²/λᵢ, over columns as well."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(projections == 0, 0.0, projections**2 / values[:, None])
    return math.sqrt(float(terms.sum()))


def _rounding(n: int) -> float:
    """A bound on the relative error of a sum of n products."""
    return 2 * (n + 4) * UNIT_ROUNDOFF


def _power_rounding(steps: float, q: float) -> float:
    """The error of (1 − η λ)ᵗ, in units of rounding: t qᵗ⁻¹, at most."""
    if not math.isfinite(steps):
        return 0.0
    return float(steps * q ** max(steps - 1, 0.0))


def _test_kernel(kernel: Kernel | Array | Tensor, n: int) -> tuple[Array, float]:
    matrix, error = (kernel.matrix, kernel.error) if isinstance(kernel, Kernel) else (kernel, 0.0)
    entries = _array(matrix)
    unit = unit_of(matrix)
    if unit > UNIT_ROUNDOFF:  # rounded to a type of lower precision
        error += (1 + 2 * unit) * unit * float(np.linalg.norm(entries))
    if entries.ndim != 2 or entries.shape[1] != n:
        raise UserError(
            f"k_test must be (m, {n}), of other samples and the {n} of the kernel, not"
            f" {entries.shape}: kernel(module, x_test, x)"
        )
    if math.isnan(error):
        raise UserError("k_test was computed with certify=False: pass its matrix if that is enough")
    return entries, error


def _array(values: Array | Tensor | float) -> Array:
    try:
        if isinstance(values, Tensor):
            values = values.detach().cpu()
            values = (values.double() if values.is_floating_point() else values).numpy()
        if np.iscomplexobj(values):
            raise TypeError("complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"labels, outputs and k_test are of real numbers: {error}") from error


def _columns(values: Array) -> Array:
    """(n, C)"""
    return values if values.ndim == 2 else values.reshape(-1, 1)
