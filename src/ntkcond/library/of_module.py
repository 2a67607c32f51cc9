"""The NTK of any torch.nn.Module, and its condition number with a verdict.

K = J Jᵀ, with the gradients of an output with respect to the weights as rows of J: of all samples
by one backward pass together, where the operations that take a weight have a rule
(`backward_rules`); of the others sample by sample (`differentiated`).
"""

import math
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor, nn

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.library.differentiated import ByName, Differentiated, of_rows, settled
from ntkcond.library.given import given, output_positions
from ntkcond.library.gradient_error import (
    FEW,
    FEW_NUMBERS,
    GradientErrors,
    Recorded,
    gradient_errors,
    planned_runs,
    recorded,
    require_apart,
    require_repeatable,
)
from ntkcond.library.inputs import (
    Choice,
    Output,
    Samples,
    Wrapped,
    outer_names,
    with_hints,
)
from ntkcond.library.kernel import UNCERTIFIED, Kernel
from ntkcond.library.matrices import as_kernel, bound_of, entries_of, remember
from ntkcond.library.per_sample_gradients import of_all_outputs, put, room_for
from ntkcond.ntk.eigenvalues import FULL_SPECTRUM_UP_TO, Spectrum, spectrum
from ntkcond.ntk.rounding import ESTIMATED, Bound, KernelError
from ntkcond.run.errors import UserError
from ntkcond.run.progress import advance, bar, expect

HOST = ("cpu",)  # kinds of device
SAFETY = 4.0  # of what random errors change
SAME_WAY = 16  # terms that are added up as one, where all round the same way


@overload
def condition_number(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    dtype: torch.dtype = torch.float64,
) -> Spectrum: ...


@overload
def condition_number(
    kernel: Kernel | np.ndarray | Tensor, /, *, error: float = 0.0
) -> Spectrum: ...


@with_hints
def condition_number(
    module: nn.Module | Callable[..., Tensor] | Kernel | np.ndarray | Tensor,
    x: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    dtype: torch.dtype = torch.float64,
    error: float = 0.0,
) -> Spectrum:
    """κ of a module's NTK on samples, or of a given NTK, with its interval and verdict.

    Parameters
    ----------
    module : torch.nn.Module, function, Kernel or (n, n) array
        A module with x, or an NTK without.
    x : (n, …) array, dict or tuple
        Samples, as `kernel` takes them.
    params, output, parameters, memory, dtype
        Of a module: as of `kernel`.
    error : float
        Of a matrix: a bound on the norm of its error. Added to it are the error of rounding its
        entries to their type, and that of the kernel whose `matrix` it is. A copy of that is a
        matrix like others, and its κ is proved of the copy alone: pass the kernel.

    Returns
    -------
    Spectrum
        κ, λ_max and λ_min with intervals, verdict and grade.

    Raises
    ------
    UserError
        As `kernel` does. If the matrix is not symmetric, has entries that are not finite, or an
        eigenvalue below zero by more than its error. For a kernel of two sets, without a
        certificate, or with an error that could not be estimated.

    Examples
    --------
    >>> import torch, ntkcond
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    ... )
    >>> spectrum = ntkcond.condition_number(network, torch.randn(20, 5))
    >>> spectrum.verdict, spectrum.grade
    ('resolved', 'estimated')
    """
    error = bound_of(error)
    made: Kernel | np.ndarray | Tensor
    if isinstance(module, nn.Module) or (callable(module) and not isinstance(module, Tensor)):
        if x is None:
            raise UserError("condition_number of a module needs samples: give x")
        made = kernel(
            module, x, params=params, output=output, parameters=parameters, memory=memory,
            dtype=dtype, as_tensor=True,
        )  # fmt: skip
        ntk = as_kernel(made)
    elif (
        any(option is not None for option in (x, params, output, parameters))
        or (memory, dtype) != (2e9, torch.float64)
    ):  # fmt: skip
        raise UserError("with a given NTK, pass neither samples nor options of `kernel`")
    else:
        made = module if isinstance(module, Kernel | Tensor) else entries_of(module)
        ntk = as_kernel(made, error)
    if not math.isfinite(ntk.error):
        raise UserError(
            "the error of the NTK could not be estimated: with random errors its gradients are NaN"
            " or infinite. certify=False gives the NTK alone"
        )
    bound = Bound(products=ntk.error + error, kinks=ntk.kinks)
    matrix = _on_its_device(made.matrix if isinstance(made, Kernel) else made, ntk.matrix)
    computed = spectrum(matrix, KernelError({ntk.grade: bound}), ntk.rank_bound)
    if computed.lambda_min < -computed.error:
        raise UserError(
            f"the matrix is no NTK: λ_min = {computed.lambda_min:.4g} is below zero by more than"
            f" its error, {computed.error:.2g}, but every NTK is positive semi-definite"
        )
    return computed


def _on_its_device(given: np.ndarray | Tensor, matrix: np.ndarray) -> np.ndarray | Tensor:
    """The matrix where its spectrum is computed: a large one on the GPU that it was given on."""
    large = len(matrix) > FULL_SPECTRUM_UP_TO
    if large and isinstance(given, Tensor) and given.device.type not in HOST:
        return given.detach().to(torch.float64)
    return matrix


@overload
def kernel(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    x2: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    certify: bool = True,
    dtype: torch.dtype = torch.float64,
    as_tensor: Literal[False] = False,
) -> Kernel[np.ndarray]: ...


@overload
def kernel(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    x2: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    certify: bool = True,
    dtype: torch.dtype = torch.float64,
    as_tensor: Literal[True],
) -> Kernel[Tensor]: ...


@overload
def kernel(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    x2: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    certify: bool = True,
    dtype: torch.dtype = torch.float64,
    as_tensor: bool,
) -> Kernel: ...


@with_hints
@torch.inference_mode(False)
def kernel(
    module: nn.Module | Callable[..., Tensor],
    x: Samples,
    x2: Samples = None,
    *,
    params: Any = None,
    output: Output = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
    certify: bool = True,
    dtype: torch.dtype = torch.float64,
    as_tensor: bool = False,
) -> Kernel:
    """The NTK of a module as it is, at its present weights, in its present mode; it is not changed.

    Parameters
    ----------
    module : torch.nn.Module or function
        Or f(params, sample), as torch.func takes it.
    x : (n, …) array, dict or tuple
        Samples: an array of NumPy or torch or a DataFrame. Whole numbers, such as tokens, stay as
        they are. A dict of arrays has keywords of the module's call, a tuple its positions, nested
        or not; numbers and words in it are the same for all samples.
    x2 : (n₂, …) array, dict or tuple
        Other samples: K is (n, n₂) then.
    params : nested dict, list or tuple of tensors
        Of a function: what it is differentiated by.
    output : int, "trace", "all", or function
        Position of an output; "trace", the sum of the NTKs of all outputs; "all", (n k, n₂ k),
        sample by sample; None if there is only one; or a function of what the module returns, such
        as `lambda out: out.logits[:, 0]`.
    parameters : sequence of str
        Names, their beginnings up to a dot, or patterns, such as `"*.lora_*"`. All that require a
        gradient by default.
    memory : float
        Bytes that gradients may take. If they need more, samples are differentiated in parts, and
        again for each part of K's rows whose gradients are kept. K, its copy and the products of a
        band of it come on top.
    certify : bool
        Estimate the error (Notes). It takes two to three times as long as K alone; operations whose
        kinks are not known (`library.operations.LISTED`) and what does not grow with the errors
        need twenty more runs.
    dtype : torch.float64 or torch.float32
        In which all is computed; samples and weights are rounded to it first.
    as_tensor : bool
        K as a tensor on the module's device, in place of NumPy.

    Returns
    -------
    Kernel
        K and what is known of its error.

    Raises
    ------
    UserError
        For parameters without a shape (lazy modules) or not of real numbers; for BatchNorm and
        dropout in training mode; under autocast; if the output is no tensor, not finite, changes
        from call to call, or depends on the other samples, as found by other batches: some
        samples alone, and any two of a batch apart.

    Notes
    -----
    The error is four times what random errors in all operations make of the gradient of every
    sample (`library.gradient_error`); and (4 √s + k/16) u a stage of s terms, k the longest side of
    a weight, relative to the norms of two gradients, with two stages a layer and one more. Where
    these errors change a gradient by more than SATURATED, or a preactivation is at a kink, the
    whole gradient counts as error.

    Examples
    --------
    >>> import torch, ntkcond
    >>> network = torch.nn.Linear(3, 2)
    >>> ntkcond.kernel(network, torch.eye(3), output=0).matrix  # x xᵀ, and 1 for the bias
    array([[2., 1., 1.],
           [1., 2., 1.],
           [1., 1., 2.]])
    >>> ntkcond.kernel(network, torch.eye(3), output="all", parameters=["bias"]).matrix.shape
    (6, 6)
    >>> ntkcond.kernel(network, torch.eye(3), torch.ones(2, 3), output=0).matrix
    array([[2., 2.],
           [2., 2.],
           [2., 2.]])
    """
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not memory > 0:
        raise UserError(f"memory={memory!r}: it must be a number of bytes, such as 2e9")
    memory = min(memory, 2.0**62)
    sets = [x] if x2 is None else [x, x2]
    word = type(module).__name__
    choice = Choice(params, output, parameters, dtype)
    module, names, samples, which = given(module, sets, choice)
    differentiated = Differentiated(module, names, dtype)
    outputs = output_positions(which, differentiated.check(samples[0][:FEW]))
    whole = which == "all"
    ntk = _Computed(differentiated, samples, outputs, whole, memory)
    with bar(f"NTK of a {word}"):
        matrix, errors = settled(lambda: ntk.certified() if certify else (ntk.unchecked(), None))
    rows = [samples[0], samples[-1]]
    weights = sum(p.numel() for p in differentiated.parameters.values())
    rank = min(_rank_bound(module, s, weights, len(outputs), which) for s in rows)
    by_jacobian = tuple(name for name in names if name in differentiated.by_jacobian)
    layerwise = tuple(name for name in names if name not in by_jacobian)
    layerwise, by_jacobian = outer_names(module, layerwise), outer_names(module, by_jacobian)
    error, kinks, grade = math.nan, 0, UNCERTIFIED
    if errors is not None:
        error, kinks, grade = ntk.error(errors), int(errors.kinks.sum()), ESTIMATED
    result = matrix if as_tensor else matrix.cpu().numpy()
    if errors is not None:
        remember(result, error)
    two_sets = x2 is not None
    made = {
        "module": word, "samples": " and ".join(str(len(s)) for s in samples),
        "output": str(which), "weights": str(weights), "torch": torch.__version__,
        "ntkcond": version("ntkcond"),
    }  # fmt: skip
    return Kernel(result, error, rank, layerwise, by_jacobian, kinks, grade, two_sets, made)


def _rank_bound(
    module: nn.Module, x: Tensor, weights: int, outputs: int, output: int | str | None
) -> int:
    """A bound on the rank of J Jᵀ for one set of samples."""
    if isinstance(module, Wrapped) and module.inputs is not None:
        entries = module.entries(x)
    else:
        entries = x.cpu().numpy().reshape(len(x), -1)
    if entries.dtype.kind == "f":  # 0 and −0 are two inputs: of atan2, say
        entries = np.ascontiguousarray(entries).view(f"i{entries.dtype.itemsize}")
    distinct = len(first_of_each(entries))
    if output == "trace":
        return min(distinct, weights * outputs)
    return min(distinct * outputs if output == "all" else distinct, weights)


def _require_finite(matrix: Tensor, outputs: int, two_sets: bool) -> None:
    """outputs: rows of a sample. Raises UserError for the first sample whose gradient is not
    finite: by the diagonal, or of two sets by a row, or a column, without a finite entry."""
    good = matrix.isfinite()
    lost = [(~good.diagonal(), "")]
    if two_sets:
        lost = [(~good.any(1), ""), (~good.any(0), " of x2")]
    for rows, of_set in lost:
        if rows.any():
            raise UserError(
                f"the gradient of sample {int(rows.nonzero()[0]) // outputs}{of_set} is NaN or"
                " infinite: its NTK is not defined"
            )
    if not good.all():
        raise UserError("the NTK has entries that are NaN or infinite: its gradients are too large")


class _Computed:
    """K of one set of samples, or of two, and what rounding did to it. samples: one or two sets;
    checks run over all of them together. whole: all outputs apart."""

    def __init__(
        self,
        differentiated: Differentiated,
        samples: list[Tensor],
        outputs: range,
        whole: bool,
        memory: float,
    ) -> None:
        self.differentiated, self.samples, self.outputs = differentiated, samples, outputs
        self.whole, self.memory = whole, memory
        self.all = torch.cat(samples)

    def matrix(self, known: Recorded | None = None) -> tuple[Tensor, Tensor | None]:
        """(n k, n k), symmetric, or (n₁ k, n₂ k); and the outputs of all samples, if they were in
        one batch. known: of these, if at hand.
        Raises UserError for the first sample with a gradient that is not finite."""
        at_once, rows_kept = self.differentiated.samples_at_once(
            len(self.outputs), self.memory, len(self.all)
        )
        if not self.differentiated.separable:  # in the batches that are held against others
            at_once = min(at_once, self._checked_at_once())
        first, n = self.samples[0], len(self.all)
        k = len(self.outputs) if self.whole else 1
        rows, columns = _parts(0, len(first), at_once), _parts(len(first), n, at_once)
        symmetric = not columns
        columns = columns or rows
        start = columns[0].start
        matrix = torch.zeros(
            len(first), k, n - start, k, dtype=self.differentiated.dtype, device=first.device
        )
        together = max(1, rows_kept // at_once)  # parts
        blocks = range(0, len(rows), together)
        outputs = {} if known is None else {0: known.outputs}  # from these samples on
        if known is None:
            again = [part for b in blocks for part in (rows[:b] if symmetric else columns)]
            expect(sum(part.stop - part.start for part in (*rows, *again)))

        def add(row: slice, gradients: ByName, column: slice, other: ByName) -> None:
            place = matrix[row, :, column.start - start : column.stop - start]
            for name, some in gradients.items():
                if self.whole:
                    place += of_all_outputs(some, other[name]).view_as(place)
                else:
                    for one, another in zip(some, other[name], strict=True):
                        place[:, 0, :, 0] += one.gram(another)

        def of(part: slice) -> ByName:
            if known is None:
                f, gradients = self.differentiated.with_outputs(self.all[part], self.outputs)
                outputs[part.start] = f
                advance(part.stop - part.start)
                return gradients
            return known.gradients if part == slice(0, n) else of_rows(known.gradients, part)

        def fill(number: int) -> None:  # so that gradients are gone before the next
            some = rows[number:][:together]
            row, gradients = slice(some[0].start, some[-1].stop), of_all(some)
            if symmetric:
                add(row, gradients, row, gradients)
            for column in rows[:number] if symmetric else columns:
                add(row, gradients, column, of(column))

        def of_all(parts: list[slice]) -> ByName:
            if len(parts) == 1:
                return of(parts[0])
            start, count = parts[0].start, parts[-1].stop - parts[0].start
            whole: ByName = {}
            for part in parts:
                for name, by_output in of(part).items():
                    if name not in whole:
                        whole[name] = [room_for(gradients, count) for gradients in by_output]
                    for room, gradients in zip(whole[name], by_output, strict=True):
                        put(room, slice(part.start - start, part.stop - start), gradients)
            return whole

        for number in blocks:
            fill(number)
        every = next(iter(outputs.values())) if len(outputs) == 1 else None
        flat = matrix.reshape(len(first) * k, -1)
        _require_finite(flat.tril() if symmetric else flat, k, not symmetric)
        if symmetric:
            flat.tril_()  # the two halves of a product round differently
            flat += flat.tril(-1).T
        return flat, every

    def unchecked(self) -> Tensor:
        """K, of samples that do not depend on each other."""
        expect(len(self.all))
        matrix, outputs = self.matrix()
        require_apart(self.differentiated, self.all, self._checked_at_once(), outputs)
        return matrix

    def _checked_at_once(self) -> int:
        return self.differentiated.checked_at_once(len(self.outputs), self.memory, len(self.all))

    def certified(self) -> tuple[Tensor, GradientErrors]:
        """K, and how far rounding may have moved the gradients."""
        at_once, known = self._checked_at_once(), None
        expect((2 + planned_runs(self._few())) * len(self.all))
        if at_once == len(self.all):
            known = recorded(self.differentiated, self.all, self.outputs)
        matrix, outputs = self.matrix(known)
        require_repeatable(self.differentiated, self.all, self.outputs, known)
        require_apart(self.differentiated, self.all, at_once, outputs)
        return matrix, self._errors(matrix, at_once, known)

    def _errors(self, matrix: Tensor, at_once: int, known: Recorded | None) -> GradientErrors:
        few, k = self._few(), matrix.shape[0] // len(self.samples[0])
        sizes = None
        if known is None and len(self.samples) == 1:
            squares = matrix.diagonal().double().clamp(min=0).reshape(-1, k).sum(1)
            sizes = squares.sqrt().cpu().numpy()
        parts = [
            gradient_errors(
                self.differentiated, self.all[part], self.outputs, few, part.start, known,
                None if sizes is None else sizes[part],
            )
            for part in self._batches(at_once)
        ]  # fmt: skip
        return GradientErrors(*map(np.concatenate, zip(*parts, strict=True)))

    def _few(self) -> bool:
        """Whether so few numbers are computed that luck could make their error small."""
        weights = sum(p.numel() for p in self.differentiated.parameters.values())
        return len(self.all) * weights <= FEW_NUMBERS

    def _batches(self, at_once: int) -> list[slice]:
        """All samples together, or as `matrix` has them."""
        first, n = len(self.samples[0]), len(self.all)
        whole = at_once == n
        return [slice(0, n)] if whole else _parts(0, first, at_once) + _parts(first, n, at_once)

    def error(self, errors: GradientErrors) -> float:
        """A bound on the norm of K's error."""
        differentiated, n = self.differentiated, len(self.samples[0])
        stages = 2 * differentiated.calls + 1
        terms = max(p.numel() for p in differentiated.parameters.values())
        weights = sum(p.numel() for p in differentiated.parameters.values())
        longest = max(max(p.shape, default=1) for p in differentiated.parameters.values())
        # equal terms all round the same way
        counted = 4 * math.sqrt(terms) + longest / SAME_WAY
        counted *= torch.finfo(differentiated.dtype).eps / 2 * stages
        k = len(self.outputs) if self.whole else 1
        flushed = torch.finfo(differentiated.dtype).tiny * weights * n * k
        if not (errors.sizes.any() or bool(self.all.any())):
            flushed = 0.0
        sizes, multiplied, moved = [], [], []
        for part in (slice(0, n), slice(n, None) if len(self.samples) > 1 else slice(0, n)):
            sizes.append(math.sqrt(float(np.sum(errors.sizes[part] ** 2))))
            multiplied.append(math.sqrt(float(np.sum(errors.multiplied[part] ** 2))))
            with np.errstate(over="ignore"):
                moved.append(SAFETY * math.sqrt(float(np.sum(errors.errors[part] ** 2))))
        products = counted * multiplied[0] * multiplied[1] + flushed
        if len(self.samples) == 1:
            return Bound(moved[0] ** 2, products).norm(sizes[0] ** 2)
        return products + sizes[0] * moved[1] + moved[0] * sizes[1] + moved[0] * moved[1]


def _parts(start: int, stop: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]
