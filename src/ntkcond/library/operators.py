"""The Jacobian of a module and its NTK as operators: products with vectors, without the matrices.

J has the gradients of the outputs with respect to the P chosen weights as rows, K = J Jᵀ. A product
takes the samples in batches: Jᵀ u by one backward pass of Σ uᵢ fᵢ, J w by forward-mode
differentiation, K v = J (Jᵀ v). So memory grows with n + P and the size of a batch, not with n² or
n P.

What products alone can say of the spectrum: a Rayleigh quotient vᵀ K v/vᵀ v lies between λ_min and
λ_max, and within ‖K v − λ v‖ of it lies some eigenvalue (Parlett, The Symmetric Eigenvalue Problem,
chapter 4). That none lies beyond needs more: above, the trace; below, K itself, since √κ products
are needed before a vector near λ_min is found, and none tells that it was.
"""

import abc
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from ntkcond.library.differentiated import Differentiated, settled
from ntkcond.library.given import given, output_positions
from ntkcond.library.gradient_error import FEW, require_apart
from ntkcond.library.inputs import Choice, Output, Samples, with_hints
from ntkcond.library.running import AGREES
from ntkcond.run.errors import UserError
from ntkcond.run.progress import advance, bar, expect

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

Vectors = Tensor | np.ndarray  # one, (columns,), or several, (columns, m)
BATCH_BYTES = 2e8  # that the graph of a batch may take, if its size is not given
EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class Estimate:
    """A number that is estimated from random vectors.

    Attributes
    ----------
    value, standard_error : float
        The latter is NaN of a single vector.

    Examples
    --------
    >>> import torch, ntkcond
    >>> K = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3))
    >>> round(K.estimated_trace(products=9).value, 9)  # as many as samples: exact
    6.0
    """

    value: float
    standard_error: float


@dataclass(frozen=True)
class ExtremeEigenvalue:
    """An extreme eigenvalue of an NTK by products alone.

    Attributes
    ----------
    value : float
        A Rayleigh quotient.
    residual : float
        ‖K v − value v‖ of its vector of norm 1; some eigenvalue is at most so far away.
    low, high : float
        Between them the exact one lies for certain, but for the rounding of the products.

    Examples
    --------
    >>> import torch, ntkcond
    >>> K = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3))
    >>> largest = K.largest_eigenvalue()
    >>> round(largest.value, 9), largest.low <= 4 <= largest.high
    (4.0, True)
    """

    value: float
    residual: float
    low: float
    high: float


@dataclass(frozen=True)
class SpectralDensity:
    """The density of eigenvalues, as a mean over random vectors of sums of peaks.

    Attributes
    ----------
    nodes, weights : (probes, steps) array
        Ritz values and their shares, which add up to 1 for each probe.

    Examples
    --------
    >>> import torch, ntkcond
    >>> density = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3)).density(probes=2)
    >>> round(density.share_below(5.0).value, 9), round(density.share_below(0.5).value, 9)
    (1.0, 0.0)
    """

    nodes: np.ndarray
    weights: np.ndarray

    def share_below(self, value: float) -> Estimate:
        """The share of the eigenvalues that are at most `value`.

        Parameters
        ----------
        value : float

        Returns
        -------
        Estimate
        """
        return _mean((self.weights * (self.nodes <= value)).sum(1))

    def moment(self, power: int) -> Estimate:
        """tr Kᵖ/n.

        Parameters
        ----------
        power : int
            p. The moment is exact in the mean up to 2 steps − 1.

        Returns
        -------
        Estimate
        """
        return _mean((self.weights * self.nodes**power).sum(1))

    def smoothed(self, grid: np.ndarray, width: float) -> np.ndarray:
        """The density at the points of a grid, each peak a Gaussian.

        Parameters
        ----------
        grid : (m,) array
        width : float
            Standard deviation of the Gaussians.

        Returns
        -------
        (m,) array
        """
        z = (np.asarray(grid)[:, None] - self.nodes.reshape(1, -1)) / width
        peaks = np.exp(-(z**2) / 2) / (width * math.sqrt(2 * math.pi))
        return np.asarray(peaks @ self.weights.reshape(-1) / len(self.nodes))


class Operator(abc.ABC):
    """A linear operator, which is not a matrix: what `Jacobian` and `NTKOperator` share.

    `@` takes a vector (columns,) or several as columns (columns, m), NumPy or torch, and gives the
    same kind. Raises UserError for vectors of another length.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns.
    dtype : torch.dtype
        In which it computes.
    device : torch.device
    name : str
        Class of the module.
    T : Operator
        The transpose.

    Examples
    --------
    >>> import numpy as np, torch, ntkcond
    >>> K = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3))
    >>> isinstance(K, ntkcond.Operator), K @ np.ones(3)
    (True, array([4., 4., 4.]))
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    name: str

    @abc.abstractmethod
    def _times(self, v: Tensor) -> Tensor: ...

    @abc.abstractmethod
    def _work(self, columns: int) -> int:
        """Samples that a product with so many vectors differentiates."""

    @property
    @abc.abstractmethod
    def T(self) -> "Operator":
        """The transpose."""

    @overload
    def __matmul__(self, v: Tensor) -> Tensor: ...

    @overload
    def __matmul__(self, v: np.ndarray) -> np.ndarray: ...

    def __matmul__(self, v: Vectors) -> Vectors:
        if not isinstance(v, Tensor | np.ndarray):
            kind = type(v).__name__
            raise UserError(f"the operator takes vectors, NumPy or torch, not a {kind}")
        given = v if isinstance(v, Tensor) else torch.from_numpy(np.ascontiguousarray(v))
        if given.ndim not in (1, 2) or given.shape[0] != self.shape[1]:
            rows, columns = self.shape
            raise UserError(
                f"the operator is {rows} × {columns}: it takes ({columns},) or ({columns}, m), not"
                f" {tuple(given.shape)}"
            )
        here = given.to(self.device, self.dtype)
        vectors = here[:, None] if here.ndim == 1 else here
        with bar(f"{type(self).__name__} @", self._work(vectors.shape[1])):
            result = self._times(vectors).reshape(self.shape[0], *given.shape[1:])
        if isinstance(v, Tensor):
            return result.to(v.device, v.dtype if v.is_floating_point() else self.dtype)
        return np.asarray(result.cpu().numpy(), v.dtype if v.dtype.kind == "f" else None)

    def to_dense(self) -> Tensor:
        """The matrix, column by column.

        Returns
        -------
        (rows, columns) tensor
            On its device, of its type.
        """
        with bar(f"matrix of a {type(self).__name__}", self._work(self.shape[1])):
            return self._times(torch.eye(self.shape[1], dtype=self.dtype, device=self.device))

    def to_scipy(self) -> "LinearOperator":
        """The same for SciPy's solvers, on NumPy vectors.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
        """
        from scipy.sparse.linalg import LinearOperator

        kind = np.dtype(str(self.dtype).removeprefix("torch."))
        return LinearOperator(
            self.shape, dtype=kind, matvec=lambda v: self @ v.reshape(-1),
            rmatvec=lambda v: self.T @ v.reshape(-1), matmat=lambda v: self @ v,
            rmatmat=lambda v: self.T @ v,
        )  # fmt: skip

    def __repr__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        rows, columns = self.shape
        return f"{type(self).__name__}({rows} × {columns}, {kind} on {self.device}, of {self.name})"


class Jacobian(Operator):
    """J of a module's outputs on n samples with respect to P weights: what `jacobian` gives.

    (n, P); (n k, P) for all k outputs, sample by sample. `J @ J.T` is an `NTKOperator`.

    Examples
    --------
    >>> import torch, ntkcond
    >>> J = ntkcond.jacobian(torch.nn.Linear(3, 1), torch.eye(3))
    >>> J, J @ torch.ones(4)
    (Jacobian(3 × 4, float64 on cpu, of Linear), tensor([2., 2., 2.]))
    """

    def __init__(self, network: "_Network", x: Tensor) -> None:
        self.network, self.x = network, x
        self.shape = len(x) * len(network.outputs), network.weights
        self.dtype, self.device, self.name = network.dtype, x.device, network.name

    def _times(self, v: Tensor) -> Tensor:
        return self.network.forwards(self.x, v).flatten(0, 1)

    def _work(self, columns: int) -> int:
        return columns * len(self.x)

    @property
    def T(self) -> "TransposedJacobian":
        return TransposedJacobian(self)

    @overload  # type: ignore[override]  # takes more than an operator: mypy allows no method that
    def __matmul__(self, v: "TransposedJacobian") -> "NTKOperator": ...

    @overload
    def __matmul__(self, v: Tensor) -> Tensor: ...

    @overload
    def __matmul__(self, v: np.ndarray) -> np.ndarray: ...

    def __matmul__(self, v: Any) -> Any:
        if isinstance(v, TransposedJacobian):
            return _product(self, v.jacobian)
        return super().__matmul__(v)


class TransposedJacobian(Operator):
    """Jᵀ, (P, n): what the `T` of a `Jacobian` is.

    Examples
    --------
    >>> import torch, ntkcond
    >>> J = ntkcond.jacobian(torch.nn.Linear(3, 1), torch.eye(3))
    >>> J.T @ torch.ones(3)
    tensor([1., 1., 1., 3.])
    """

    def __init__(self, jacobian: Jacobian) -> None:
        self.jacobian, self.shape = jacobian, (jacobian.shape[1], jacobian.shape[0])
        self.dtype, self.device, self.name = jacobian.dtype, jacobian.device, jacobian.name

    def _times(self, v: Tensor) -> Tensor:
        outputs = len(self.jacobian.network.outputs)
        return self.jacobian.network.backwards(
            self.jacobian.x, v.reshape(len(self.jacobian.x), outputs, v.shape[1])
        )

    def _work(self, columns: int) -> int:
        return columns * len(self.jacobian.x)

    @property
    def T(self) -> Jacobian:
        return self.jacobian


class NTKOperator(Operator):
    """K = J₁ J₂ᵀ of a module, (n₁, n₂): what `ntk_operator` gives.

    Products, diagonal, trace, and what they say of the spectrum. K = Σⱼ J₁ⱼ J₂ⱼᵀ, summed over
    outputs, or of all outputs apart.

    Attributes
    ----------
    is_symmetric : bool
        Whether rows and columns are the same samples.

    Examples
    --------
    >>> import torch, ntkcond
    >>> K = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3))
    >>> K
    NTKOperator(3 × 3, float64 on cpu, of Linear)
    >>> K.diag()
    tensor([2., 2., 2.], dtype=torch.float64)
    """

    def __init__(self, network: "_Network", x1: Tensor, x2: Tensor, summed: bool) -> None:
        self.network, self.x1, self.x2, self.summed = network, x1, x2, summed
        each = 1 if summed else len(network.outputs)
        self.shape = len(x1) * each, len(x2) * each
        self.dtype, self.device, self.name = network.dtype, x1.device, network.name

    @property
    def T(self) -> "NTKOperator":
        return NTKOperator(self.network, self.x2, self.x1, self.summed)

    def _times(self, v: Tensor) -> Tensor:
        network, outputs = self.network, len(self.network.outputs)
        if not self.summed:
            w = network.backwards(self.x2, v.reshape(len(self.x2), outputs, v.shape[1]))
            return network.forwards(self.x1, w).flatten(0, 1)
        total = v.new_zeros(self.shape[0], v.shape[1])
        for j in range(outputs):
            u = v.new_zeros(len(self.x2), outputs, v.shape[1])
            u[:, j] = v
            total += network.forwards(self.x1, network.backwards(self.x2, u))[:, j]
        return total

    def _work(self, columns: int) -> int:
        each = columns * (len(self.network.outputs) if self.summed else 1)
        return each * (len(self.x1) + len(self.x2))

    @property
    def is_symmetric(self) -> bool:
        """Whether rows and columns are the same samples."""
        return self.x1 is self.x2

    def diag(self) -> Tensor:
        """The diagonal: squared norms of gradients, one backward pass a batch.

        Returns
        -------
        (n,) or (n k,) tensor

        Raises
        ------
        UserError
            Of two sets of samples.
        """
        self._require_symmetric("the diagonal")
        with bar("diagonal of an NTK", len(self.x1)):
            squares = self.network.squares(self.x1)
        return squares.sum(1) if self.summed else squares.flatten()

    def trace(self) -> float:
        """tr K, the sum of the diagonal.

        Returns
        -------
        float

        Raises
        ------
        UserError
            Of two sets of samples.
        """
        return float(self.diag().sum())

    def estimated_trace(self, products: int = 30, seed: int = 0) -> Estimate:
        """tr K by Hutch++ (Meyer, Musco, Musco and Woodruff 2021): exact on the range of K times
        random signs, a third of the products, where the largest eigenvalues are; the mean of
        zᵀ K z on what is left.

        Parameters
        ----------
        products : int
            Products with K, 6 or more.
        seed : int
            Of the random signs.

        Returns
        -------
        Estimate

        Raises
        ------
        UserError
            For fewer products, and of two sets of samples.
        """
        self._require_symmetric("the trace")
        if products < 6:
            raise UserError(f"products={products}: an estimated trace takes 6 or more")
        third = min(products // 3, self.shape[0])
        signs = self._signs(2 * third, seed).T
        with bar("estimated trace of an NTK", self._work(3 * third)):
            q, _ = np.linalg.qr(self @ signs[:, :third])
            largest = float(np.sum(q * (self @ q)))
            z = signs[:, third:] - q @ (q.T @ signs[:, third:])
            rest = _mean(np.sum(z * (self @ z), axis=0))
        return Estimate(largest + rest.value, rest.standard_error)

    def largest_eigenvalue(self, tolerance: float = 1e-8, seed: int = 0) -> ExtremeEigenvalue:
        """λ_max by Lanczos.

        Parameters
        ----------
        tolerance : float
            Residual to reach, relative to it.
        seed : int
            Of the first vector.

        Returns
        -------
        ExtremeEigenvalue
            λ_max is not below `low`, nor above the trace, `high`. That it is within the residual of
            `value` is not proved, though likely: Lanczos starts from a random vector.

        Raises
        ------
        UserError
            For a tolerance that is no number, and of two sets of samples.
        """
        with bar("largest eigenvalue of an NTK", None):
            value, residual, rounding = self._extreme("LA", tolerance, seed, None)
            return ExtremeEigenvalue(value, residual, value - rounding, self.trace() + rounding)

    def smallest_eigenvalue(
        self, tolerance: float = 1e-4, products: int = 300, seed: int = 0
    ) -> ExtremeEigenvalue:
        """An upper bound on λ_min by Lanczos.

        Parameters
        ----------
        tolerance : float
            Residual to reach, relative to it.
        products : int
            Products with K, at most.
        seed : int
            Of the first vector.

        Returns
        -------
        ExtremeEigenvalue
            `low` is 0: products bound λ_min by nothing else. Where κ is large `value` may be far
            too large: `condition_number` of the kernel decides.

        Raises
        ------
        UserError
            For fewer than one product, a tolerance that is no number, and of two sets of samples.
        """
        with bar("smallest eigenvalue of an NTK", None):
            value, residual, rounding = self._extreme("SA", tolerance, seed, products)
        return ExtremeEigenvalue(value, residual, 0.0, max(value, 0.0) + rounding)

    def density(self, probes: int = 10, steps: int = 30, seed: int = 0) -> SpectralDensity:
        """The density of eigenvalues by stochastic Lanczos quadrature (Ubaru, Chen and Saad, SIAM
        J. Matrix Anal. Appl. 38, 1075, 2017).

        Parameters
        ----------
        probes : int
            Random vectors, which are multiplied at once.
        steps : int
            Products with each.
        seed : int
            Of the random vectors.

        Returns
        -------
        SpectralDensity

        Raises
        ------
        UserError
            For fewer than one probe or step, and of two sets of samples.
        """
        self._require_symmetric("the density")
        if probes < 1 or steps < 1:
            raise UserError(f"probes={probes}, steps={steps}: each must be 1 or more")
        steps = min(steps, self.shape[0])
        start = self._signs(probes, seed).T / math.sqrt(self.shape[0])
        basis = [torch.from_numpy(start).to(self.device, self.dtype)]  # each (n, probes)
        diagonal, beside = np.zeros((probes, steps)), np.zeros((probes, steps))
        with bar("density of an NTK's eigenvalues", self._work(probes * steps)):
            for step in range(steps):
                v = self._times(basis[-1])
                diagonal[:, step] = (v * basis[-1]).sum(0).cpu().numpy()
                for _ in range(2):  # against all before: rounding makes copies of eigenvalues else
                    for q in basis:
                        v = v - q * (q * v).sum(0)
                size = v.norm(dim=0)
                beside[:, step] = size.cpu().numpy()
                basis.append(v / size.clamp(min=torch.finfo(self.dtype).tiny))
        return _quadrature(diagonal, beside[:, :-1])

    def _signs(self, probes: int, seed: int) -> np.ndarray:
        """(probes, n)"""
        return np.random.default_rng(seed).choice([-1.0, 1.0], (probes, self.shape[0]))

    def _extreme(
        self, which: str, tolerance: float, seed: int, products: int | None
    ) -> tuple[float, float, float]:
        """A Ritz value, its residual, and how far rounding may have moved it."""
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        if not 0 <= tolerance < math.inf:
            raise UserError(f"tolerance={tolerance}: it must be 0 or above")
        if products is not None and products < 1:
            raise UserError(f"products={products}: it must be 1 or more")

        self._require_symmetric("an eigenvalue")
        n = self.shape[0]
        start = np.random.default_rng(seed).standard_normal(n)
        basis = min(n, 20)
        limit = None if products is None else max(1, products // (basis // 2))
        try:
            _, vectors = eigsh(
                self.to_scipy(), k=1, which=which, v0=start, tol=tolerance, ncv=basis, maxiter=limit
            )
            vector = vectors[:, 0]
        except ArpackNoConvergence as error:
            found = error.eigenvectors
            vector = found[:, 0] if found.size else self._descended(start, products or 300)
        vector = vector / np.linalg.norm(vector)
        image = np.asarray(self @ vector)
        value = float(vector @ image)
        residual = float(np.linalg.norm(image - value * vector))
        rounding = torch.finfo(self.dtype).eps * math.sqrt(n + self.network.weights)
        return value, residual, rounding * self.trace()

    def _descended(self, start: np.ndarray, products: int) -> np.ndarray:
        """The Ritz vector of the smallest Ritz value after some steps of Lanczos."""
        basis, images = [start / np.linalg.norm(start)], []
        for _ in range(min(products, self.shape[0], 60)):
            images.append(np.asarray(self @ basis[-1]))
            v = images[-1].copy()
            for _ in range(2):
                q = np.array(basis)
                v -= q.T @ (q @ v)
            size = np.linalg.norm(v)
            if size <= EPS * np.linalg.norm(images[-1]):
                break
            basis.append(v / size)
        q, a = np.array(basis[: len(images)]), np.array(images)
        _, vectors = np.linalg.eigh((q @ a.T + a @ q.T) / 2)
        return np.asarray(q.T @ vectors[:, 0])

    def _require_symmetric(self, what: str) -> None:
        if not self.is_symmetric:
            raise UserError(f"{what} of a kernel of two sets of samples is not defined")


@with_hints
def jacobian(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    batch: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Jacobian:
    """J of a module as it is, as an operator (n, P); the module is copied.

    Parameters
    ----------
    module, x, params, parameters, dtype
        As of `kernel`.
    output : int, "all", or function
        As of `kernel`; with "all" J is (n k, P), sample by sample.
    batch : int
        Samples that are differentiated at once.

    Returns
    -------
    Jacobian
        Its columns are the weights in the order of `module.named_parameters()`.

    Raises
    ------
    UserError
        As `kernel` does.

    Examples
    --------
    >>> import torch, ntkcond
    >>> J = ntkcond.jacobian(torch.nn.Linear(3, 1), torch.eye(3))
    >>> J.to_dense()
    tensor([[1., 0., 0., 1.],
            [0., 1., 0., 1.],
            [0., 0., 1., 1.]], dtype=torch.float64)
    >>> (J @ J.T).to_dense()
    tensor([[2., 1., 1.],
            [1., 2., 1.],
            [1., 1., 2.]], dtype=torch.float64)
    """
    if output == "trace":
        raise UserError('a Jacobian is of one output, or of output="all"')
    choice = Choice(params, output, parameters, dtype)
    network, (samples,) = _network(module, [x], choice, batch)
    return Jacobian(network, samples)


@with_hints
def ntk_operator(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    x2: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    batch: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> NTKOperator:
    """K = J Jᵀ of a module as it is, as an operator (n, n), or (n, n₂) with other samples x2; the
    module is copied.

    Parameters
    ----------
    module, x, x2, params, output, parameters, dtype
        As of `kernel`.
    batch : int
        Samples that are differentiated at once.

    Returns
    -------
    NTKOperator
        Its products have no certificate.

    Raises
    ------
    UserError
        As `kernel` does.

    Examples
    --------
    >>> import torch, ntkcond
    >>> K = ntkcond.ntk_operator(torch.nn.Linear(3, 1), torch.eye(3))
    >>> K @ torch.ones(3), K.trace()
    (tensor([4., 4., 4.]), 6.0)
    """
    sets = [x] if x2 is None else [x, x2]
    choice = Choice(params, output, parameters, dtype)
    network, samples = _network(module, sets, choice, batch)
    return NTKOperator(network, samples[0], samples[-1], output == "trace")


def _product(left: Jacobian, right: Jacobian) -> NTKOperator:
    """J₁ J₂ᵀ."""
    if left.network is not right.network:
        raise UserError("a product of Jacobians needs one module: use ntk_operator(module, x, x2)")
    return NTKOperator(left.network, left.x, right.x, summed=False)


@torch.inference_mode(False)
def _network(
    module: nn.Module | Callable[..., Tensor],
    sets: Sequence[Samples],
    choice: Choice,
    batch: int | None,
) -> tuple["_Network", list[Tensor]]:
    name = type(module).__name__
    wrapped, names, rows, which = given(module, sets, choice)
    samples = [some.clone() for some in rows]
    differentiated = Differentiated(wrapped, names, choice.dtype)
    few = samples[0][:FEW]
    outputs = output_positions(which, differentiated.check(few))
    at_once, _ = differentiated.samples_at_once(len(outputs), BATCH_BYTES, 10**9)
    with bar(f"samples of a {name}"):
        expect(sum(map(len, samples)))
        for part in samples:
            settled(partial(require_apart, differentiated, part, at_once))
    if batch is None:
        batch = 4 * at_once  # one backward pass, without gradients of samples
    elif isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise UserError(f"batch={batch}: it must be a number of samples, 1 or more")
    return _Network(differentiated, outputs, batch, few, name), samples


class _Network:
    """A module that is differentiated both ways, some samples at once. few: samples to try on."""

    def __init__(
        self,
        differentiated: Differentiated,
        outputs: range,
        batch: int,
        few: Tensor,
        name: str,
    ) -> None:
        self.differentiated, self.outputs, self.batch = differentiated, outputs, batch
        self.dtype, self.name = differentiated.dtype, name
        self.parameters = differentiated.parameters
        self.weights = sum(p.numel() for p in self.parameters.values())
        # attention has forward-mode derivatives in its plain form alone
        self.attention: Callable[[], AbstractContextManager[None]] = nullcontext
        self.along = self._forward_mode
        if not self._holds(few):
            self.attention = partial(sdpa_kernel, SDPBackend.MATH)
            for way in (self._forward_mode, self._twice_backwards, self._one_by_one):
                self.along = way
                if self._holds(few):
                    return
            raise UserError(
                "the products of the Jacobian and of its transpose contradict each other: an"
                " operation of the module has a wrong derivative"
            )

    @torch.inference_mode(False)
    def backwards(self, x: Tensor, u: Tensor) -> Tensor:
        """Jᵀ u, (P, m); u: (n, k, m)."""
        total = u.new_zeros(u.shape[2], self.weights)
        leaves = list(self.parameters.values())
        for part in self._parts(x):
            f = self._chosen(self.differentiated.run(x[part]))
            for column in range(u.shape[2]):
                last = column == u.shape[2] - 1
                gradients = torch.autograd.grad(
                    f, leaves, u[part, :, column], retain_graph=not last, allow_unused=True
                )
                for (start, p), g in zip(self._places(), gradients, strict=True):
                    if g is not None:
                        total[column, start : start + p.numel()] += g.reshape(-1)
                advance(len(f))
        return total.T

    @torch.inference_mode(False)
    def forwards(self, x: Tensor, w: Tensor) -> Tensor:
        """J w, (n, k, m); w: (P, m)."""
        result = w.new_zeros(len(x), len(self.outputs), w.shape[1])
        for column in range(w.shape[1]):
            tangents = {
                name: w[start : start + p.numel(), column].reshape(p.shape)
                for name, (start, p) in zip(self.parameters, self._places(), strict=True)
            }
            for part in self._parts(x):
                result[part, :, column] = self.along(x[part], tangents)
                advance(len(x[part]))
        return result

    @torch.inference_mode(False)
    def squares(self, x: Tensor) -> Tensor:
        """Squared norms of gradients, (n, k)."""
        at_once = self.differentiated.checked_at_once(len(self.outputs), 5 * BATCH_BYTES, len(x))
        rows = []
        for start in range(0, len(x), at_once):
            part = x[start : start + at_once]
            of_part = partial(self.differentiated.with_outputs, part, self.outputs)
            gradients = settled(of_part)[1]
            advance(len(part))
            by_output = zip(*gradients.values(), strict=True)
            rows.append(torch.stack([sum(g.squares() for g in one) for one in by_output], 1))
        return torch.cat(rows)

    def _forward_mode(self, x: Tensor, tangents: dict[str, Tensor]) -> Tensor:
        def outputs(weights: dict[str, Tensor]) -> Tensor:
            return self._chosen(self.differentiated.run(x, weights))

        weights = {name: p.detach() for name, p in self.parameters.items()}
        own = {name: t.clone() for name, t in tangents.items()}  # a change of weights is one of it
        with torch.no_grad(), self.attention():
            along: Tensor = jvp(outputs, (weights,), (own,))[1]
        return along.detach()

    def _twice_backwards(self, x: Tensor, tangents: dict[str, Tensor]) -> Tensor:
        """Jᵀ u is linear in u: its derivative along w is J w."""
        leaves = list(self.parameters.values())
        with torch.enable_grad(), self.attention():
            f = self._chosen(self.differentiated.run(x))
            u = torch.zeros_like(f, requires_grad=True)
            gradients = torch.autograd.grad(f, leaves, u, create_graph=True, allow_unused=True)
            pairs = zip(gradients, tangents.values(), strict=True)
            terms = [(g * t).sum() for g, t in pairs if g is not None]
            return torch.autograd.grad(torch.stack(terms).sum(), u)[0]

    def _one_by_one(self, x: Tensor, tangents: dict[str, Tensor]) -> Tensor:
        """By the gradient of each output of each sample."""
        f, leaves = self._chosen(self.differentiated.run(x)), list(self.parameters.values())
        result = torch.zeros_like(f)
        for place in np.ndindex(*f.shape):
            gradients = torch.autograd.grad(f[place], leaves, retain_graph=True, allow_unused=True)
            pairs = zip(gradients, tangents.values(), strict=True)
            result[place] = sum((g * t).sum() for g, t in pairs if g is not None)
        return result.detach()

    def _holds(self, few: Tensor) -> bool:
        """Whether J w can be found so, and agrees with Jᵀ u: uᵀ (J w) = (Jᵀ u)ᵀ w."""
        random = np.random.default_rng(0)

        def signs(*shape: int) -> Tensor:
            return torch.from_numpy(random.choice([-1.0, 1.0], shape)).to(few.device, self.dtype)

        tangents = {name: signs(*p.shape) for name, p in self.parameters.items()}
        try:
            with warnings.catch_warnings():  # torch's own modules, when they are first loaded
                warnings.simplefilter("ignore", DeprecationWarning)
                along = self.along(few, tangents)
        except (RuntimeError, NotImplementedError, UserError):
            return False
        for u in (signs(*along.shape), torch.ones_like(along)):
            back = self.backwards(few, u[:, :, None])[:, 0]
            terms = back * torch.cat([t.reshape(-1) for t in tangents.values()])
            apart = ((u * along).sum() - terms.sum()).abs()
            size = along.abs().sum() + terms.abs().sum()
            if not apart <= torch.finfo(self.dtype).eps ** AGREES * size:
                return False
        return True

    def _chosen(self, f: Tensor) -> Tensor:
        return f[:, self.outputs.start : self.outputs.stop]

    def _places(self) -> Iterator[tuple[int, Tensor]]:
        """Each parameter with its first position among all weights."""
        start = 0
        for p in self.parameters.values():
            yield start, p
            start += p.numel()

    def _parts(self, x: Tensor) -> Iterator[slice]:
        for start in range(0, len(x), self.batch):
            yield slice(start, start + self.batch)


def _mean(values: np.ndarray) -> Estimate:
    n = len(values)
    error = float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    return Estimate(float(values.mean()), error)


def _quadrature(diagonal: np.ndarray, beside: np.ndarray) -> SpectralDensity:
    """Gauss quadrature from the tridiagonal matrices of Lanczos (Golub and Welsch 1969); one that
    ends early, at an invariant subspace, is cut there."""
    from scipy.linalg import eigh_tridiagonal

    nodes, weights = np.zeros_like(diagonal), np.zeros_like(diagonal)
    for row, (a, b) in enumerate(zip(diagonal, beside, strict=True)):
        end = np.flatnonzero(b <= 1e-12 * abs(a).max())
        steps = int(end[0]) + 1 if len(end) else len(a)
        values, vectors = eigh_tridiagonal(a[:steps], b[: steps - 1])
        nodes[row, :steps], weights[row, :steps] = values, vectors[0] ** 2
    return SpectralDensity(nodes, weights)
