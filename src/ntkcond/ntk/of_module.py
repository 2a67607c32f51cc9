"""The NTK of any torch.nn.Module, and its condition number with a verdict.

K = J Jᵀ, with the gradients of an output with respect to the weights as rows of J, in float64. The
layers of `ntkcond.ntk.per_sample_gradients` need one backward pass for all samples together. What
is left, such as a weight that is used elsewhere as well, is differentiated sample by sample
(`ntkcond.ntk.differentiated`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ntkcond.datasets.duplicates import first_of_each
from ntkcond.ntk.closest_pair import ClosestPair
from ntkcond.ntk.differentiated import ByName, Differentiated, distances, norms, of_rows
from ntkcond.ntk.perturbation import (
    COARSER,
    MARGIN,
    SATURATED,
    Perturbed,
    Plain,
    Swapped,
    reach_of,
    reaches,
    undecided,
)
from ntkcond.ntk.rounding import ESTIMATED, PROVED, TINY, Bound, KernelError
from ntkcond.ntk.spectrum import Spectrum, spectrum
from ntkcond.run.errors import UserError

DIFFERS = 1e-8  # relative: far above rounding
DEPENDS = (
    "the gradient of a sample depends on the other samples of its batch, or changes from call to"
    " call: the module's NTK is not defined"
)
FEW = 4  # samples that show how its gradients can be computed
SAFETY = 4.0  # of what random errors change
RUNS = 8, 2  # with random errors, of few numbers and of many: no luck makes the estimate small


@dataclass(frozen=True)
class Kernel:
    """An NTK.

    matrix: (n, n) float64, exactly symmetric; (n k, n k) for all k outputs, sample by sample.
    error: the norm of its rounding error is at most this, as far as an estimate can say (`kernel`).
    rank_bound: its rank is at most this: the number of weights, of distinct samples.
    layerwise, by_jacobian: names of the parameters whose gradients came from their layers, and of
    the others. kinks: preactivations so near a kink of their activation, as ReLU's, that rounding
    may have put them on its other side. grade: "estimated"; "proved" of a given matrix.
    """

    matrix: np.ndarray
    error: float
    rank_bound: int
    layerwise: tuple[str, ...]
    by_jacobian: tuple[str, ...]
    kinks: int = 0
    grade: str = ESTIMATED


def condition_number(
    module: nn.Module | Kernel | np.ndarray,
    x: Tensor | np.ndarray | None = None,
    *,
    error: float = 0.0,
    **options: Any,
) -> Spectrum:
    """κ of a module's NTK on the samples x, or of a given NTK, with its interval and verdict.

    error: of a matrix, a bound on the norm of its error; that of rounding its entries to their type
    is added. options: those of `kernel`, of a module. Raises UserError as `kernel` does, and if the
    matrix is not symmetric, has entries that are not finite, or an eigenvalue below zero by more
    than its error.

    >>> import torch, ntkcond
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
    ... )
    >>> spectrum = ntkcond.condition_number(network, torch.randn(20, 5))
    >>> spectrum.verdict, spectrum.grade
    ('resolved', 'estimated')
    """
    if isinstance(module, nn.Module):
        if x is None:
            raise UserError("condition_number of a module needs samples: give x")
        ntk = kernel(module, x, **options)
    elif x is not None or options:
        raise UserError("with a given NTK, pass neither samples nor options of `kernel`")
    else:
        ntk = _as_kernel(module, error)
    bound = Bound(products=ntk.error + error, kinks=ntk.kinks)
    computed = spectrum(ntk.matrix, KernelError({ntk.grade: bound}), ntk.rank_bound)
    if computed.lambda_min < -computed.error:
        raise UserError(
            f"the matrix is no NTK: λ_min = {computed.lambda_min:.4g} is below zero by more than"
            f" its error, {computed.error:.2g}, but every NTK is positive semi-definite"
        )
    return computed


def closest_pair(kernel: Kernel | np.ndarray) -> ClosestPair:
    """The two rows of an NTK whose gradients have the smallest angle, arccos K_ij/√(K_ii K_jj)
    (Def. 2.1). Near 0 the rounding of K moves it by some 10⁻⁶ degrees.

    Raises UserError if fewer than two gradients do not vanish, and as `condition_number` does.

    >>> import numpy as np, ntkcond
    >>> pair = ntkcond.closest_pair(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> pair.first, pair.second, round(pair.angle_deg, 6)
    (0, 1, 60.0)
    """
    matrix = _as_kernel(kernel).matrix
    norms = np.sqrt(matrix.diagonal())
    index = np.flatnonzero(norms)
    if len(index) < 2:
        raise UserError("fewer than two gradients do not vanish: no pair has an angle")
    cosines = matrix[np.ix_(index, index)] / np.outer(norms[index], norms[index])
    np.fill_diagonal(cosines, -math.inf)
    first, second = np.unravel_index(cosines.argmax(), cosines.shape)
    angle = math.degrees(math.acos(max(-1.0, min(1.0, cosines[first, second]))))
    i, j = sorted((int(index[first]), int(index[second])))
    return ClosestPair(angle, i, j, len(matrix) - len(index))


def _as_kernel(kernel: Kernel | np.ndarray, allowed: float = 0.0) -> Kernel:
    """A matrix as a kernel; its error is that of entries rounded to a type below float64. allowed:
    by how much its diagonal may be below zero."""
    if isinstance(kernel, Kernel):
        return kernel
    entries = kernel.detach().cpu().numpy() if isinstance(kernel, Tensor) else np.asarray(kernel)
    if entries.dtype.kind not in "fiu":
        raise UserError(f"an NTK is a matrix of real numbers, not of {entries.dtype}")
    matrix = entries.astype(np.float64)
    if matrix.ndim != 2 or len(matrix) != matrix.shape[1] or not len(matrix):
        raise UserError(f"an NTK is an (n, n) matrix, not one of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise UserError("the matrix has entries that are NaN or infinite")
    if (matrix.diagonal() < -allowed).any():
        raise UserError("the matrix is no NTK: it has a squared norm below zero on its diagonal")
    if not np.array_equal(matrix, matrix.T):
        raise UserError("the matrix is not symmetric: give (K + K.T) / 2 if rounding made it so")
    rough = entries.dtype.kind == "f" and np.finfo(entries.dtype).eps > np.finfo(np.float64).eps
    error = np.finfo(entries.dtype).eps / 2 * float(np.trace(matrix)) if rough else 0.0
    return Kernel(matrix, float(error), len(matrix), (), (), grade=PROVED)


def kernel(
    module: nn.Module,
    x: Tensor | np.ndarray,
    *,
    output: int | str | None = None,
    parameters: Sequence[str] | None = None,
    memory: float = 2e9,
) -> Kernel:
    """The NTK of a module as it is, at its present weights, in its present mode; it is not changed.

    x: (n, …) samples, NumPy or torch; computed in float64 on the module's device; whole numbers,
    such as tokens, stay as they are. output: position of an output; "trace", the sum of the NTKs of
    all outputs, (n, n); "all", (n k, n k); None if there is only one. parameters: names, or their
    beginnings up to a dot; all that require a gradient by default. memory: bytes that gradients may
    take; if they need more, samples are differentiated in parts, and again for each part of K's
    rows whose gradients are kept. K, its copy and the products of a band of it come on top.

    The error is an estimate: four times what random errors in all operations make of the gradient
    of every sample (`ntkcond.ntk.perturbation`); and 4 √s u a stage of s terms, relative to the
    norms of two gradients, with two stages a layer and one more, for u of the lowest precision that
    the module computes in. Where these errors change a gradient by more than SATURATED, or a
    preactivation is at a kink, the whole gradient counts as error.

    Raises UserError for parameters without a shape (lazy modules) or not of real numbers; for
    BatchNorm and dropout in training mode; if the output is no tensor, not finite, changes from
    call to call, or depends on the other samples, as found by half batches in another order.

    >>> import torch, ntkcond
    >>> network = torch.nn.Linear(3, 2)
    >>> ntkcond.kernel(network, torch.eye(3), output=0).matrix  # x xᵀ, and 1 for the bias
    array([[2., 1., 1.],
           [1., 2., 1.],
           [1., 1., 2.]])
    >>> ntkcond.kernel(network, torch.eye(3), output="all", parameters=["bias"]).matrix.shape
    (6, 6)
    """
    names = _chosen(module, parameters)
    _refuse_training(module)
    device = next(p.device for name, p in module.named_parameters() if name in names)
    samples = _samples(x, device)
    differentiated = Differentiated(module, names)
    outputs = _outputs(output, differentiated.check(samples[:FEW]))
    sizes = differentiated.samples_at_once(len(outputs), memory, len(samples))
    for part in _parts(len(samples), sizes[0]):
        differentiated.tell_apart(samples[part])
    sizes = differentiated.samples_at_once(len(outputs), memory, len(samples))
    matrix = gram(differentiated, samples, outputs, output == "all", *sizes)
    if not np.isfinite(matrix.diagonal()).all():
        first = int(np.flatnonzero(~np.isfinite(matrix.diagonal()))[0])
        sample = first // len(outputs) if output == "all" else first
        raise UserError(
            f"the gradient of sample {sample} is NaN or infinite: its NTK is not defined"
        )
    at_once = differentiated.checked_at_once(len(outputs), memory, len(samples))
    bound = _error(matrix, differentiated, samples, outputs, at_once)
    distinct = len(first_of_each(samples.cpu().numpy().reshape(len(samples), -1)))
    weights = sum(p.numel() for name, p in module.named_parameters() if name in names)
    rank = min(distinct, weights)
    if output == "trace":
        rank = min(distinct, weights * len(outputs))
    elif output == "all":
        rank = min(distinct * len(outputs), weights)
    by_jacobian = tuple(name for name in names if name in differentiated.by_jacobian)
    layerwise = tuple(name for name in names if name not in by_jacobian)
    error = bound.norm(float(np.trace(matrix)))
    return Kernel(matrix, error, rank, layerwise, by_jacobian, bound.kinks)


def _chosen(module: nn.Module, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the parameters; refuses those that have no real gradient."""
    named = dict(module.named_parameters())
    first = {id(p): name for name, p in named.items()}
    every = [(name, first[id(p)]) for name, p in module.named_parameters(remove_duplicate=False)]
    for name, p in named.items():
        if nn.parameter.is_lazy(p):
            raise UserError(f"{name} has no shape yet: call the module on a sample first")
        if p.is_complex():
            raise UserError(f"{name} is complex: only real parameters have an NTK here")
    if wanted is None:
        names = tuple(name for name, p in named.items() if p.requires_grad)
        if not names:
            raise UserError("no parameter of the module requires a gradient: name some")
    else:
        words = [wanted] if isinstance(wanted, str) else list(wanted)
        for word in words:
            if not any(_is_within(name, word) for name, _ in every):
                raise UserError(f"the module has no parameter {word!r}. It has {', '.join(named)}")
        chosen = {owner for name, owner in every if any(_is_within(name, word) for word in words)}
        names = tuple(name for name in named if name in chosen)
        if not names:
            raise UserError("parameters is empty: name some, or leave it out for all")
    for name in names:
        if not named[name].is_floating_point():
            raise UserError(f"{name} has whole numbers: a gradient needs real ones")
    return names


def _is_within(name: str, word: str) -> bool:
    return name == word or name.startswith(word + ".")


def _refuse_training(module: nn.Module) -> None:
    for name, part in module.named_modules():
        kind = type(part).__name__
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (
            part.training or part.running_mean is None
        ):
            raise UserError(
                f"{name or 'the module'} ({kind}) uses the statistics of the batch, so that samples"
                " depend on each other: call module.eval()"
                + ("" if part.running_mean is not None else ", with track_running_stats=True")
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise UserError(
                f"{name or 'the module'} ({kind}) is on, so that the output is random: call"
                " module.eval()"
            )


def _samples(x: Tensor | np.ndarray, device: torch.device) -> Tensor:
    """(n, …) float64, or whole numbers, on the device."""
    if isinstance(x, np.ndarray):
        x = np.ascontiguousarray(x)  # torch takes no view that runs backwards
    try:
        x = torch.as_tensor(x).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"x must be an array of numbers, a sample a row: {error}") from error
    if x.ndim < 1 or len(x) < 2 or not x.numel():
        raise UserError(f"x has the shape {tuple(x.shape)}: it must have two samples or more")
    if x.is_complex():
        raise UserError("x is complex: give real samples")
    if not x.is_floating_point():
        return x.to(device)
    if not x.isfinite().all():
        row = int((~x.isfinite()).reshape(len(x), -1).any(1).nonzero()[0])
        raise UserError(f"x has NaN or infinite entries, first in sample {row}")
    return x.to(device, torch.float64)


def _outputs(wanted: int | str | None, count: int) -> range:
    """Their positions."""
    if wanted in ("trace", "all"):
        return range(count)
    if wanted is None and count > 1:
        raise UserError(
            f"the module has {count} outputs: say which, such as output=0, or output='trace' for"
            " the sum of their NTKs, or output='all' for one NTK of all"
        )
    position = 0 if wanted is None else wanted
    is_integer = isinstance(position, int | np.integer) and not isinstance(position, bool)
    if not is_integer or int(position) not in range(count):
        raise UserError(f"output={wanted!r}: it must be 0 to {count - 1}, 'trace' or 'all'")
    return range(int(position), int(position) + 1)


def gram(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    whole: bool,
    at_once: int,
    rows_kept: int,
) -> np.ndarray:
    """K: (n, n), the sum over outputs; or (n k, n k). So many samples are differentiated at once,
    and the gradients of so many are kept."""
    n, k = len(x), len(outputs) if whole else 1
    matrix = torch.zeros(n, k, n, k, dtype=torch.float64, device=x.device)
    parts = _parts(n, at_once)
    together = rows_kept // at_once  # parts
    pairs = [(a, b) for a, b in product(range(len(outputs)), repeat=2) if whole or a == b]

    def add(rows: slice, gradients: ByName, columns: slice, other: ByName) -> None:
        for name, (a, b) in product(gradients, pairs):
            place = (rows, a, columns, b) if whole else (rows, 0, columns, 0)
            matrix[place] += gradients[name][a].gram(other[name][b])

    def fill(start: int) -> None:  # so that gradients are gone before the next
        kept = [(rows, differentiated(x[rows], outputs)) for rows in parts[start:][:together]]
        for i, (rows, gradients) in enumerate(kept):
            for columns, other in kept[: i + 1]:
                add(rows, gradients, columns, other)
        for columns in parts[:start]:
            other = differentiated(x[columns], outputs)
            for rows, gradients in kept:
                add(rows, gradients, columns, other)

    for start in range(0, len(parts), together):
        fill(start)
    flat = matrix.reshape(n * k, n * k).cpu().numpy()
    lower = np.tril(flat)
    return lower + np.tril(lower, -1).T  # the two halves of a product round differently


def _parts(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _error(
    matrix: np.ndarray, differentiated: Differentiated, x: Tensor, outputs: range, at_once: int
) -> Bound:
    """See `kernel`. Raises UserError if outputs or gradients of samples differ in other batches:
    they depend on the other samples, or on chance, also where outputs do not show it, as below a
    head of zeros."""
    n, k = len(x), len(matrix) // len(x)
    sizes = np.sqrt(np.maximum(matrix.diagonal(), 0).reshape(n, k).sum(1))
    weights = sum(p.numel() for p in differentiated.parameters.values())
    squared, kinks = np.zeros(n), 0
    runs = RUNS[n * weights > 4096]
    first, second = (differentiated(x[:FEW], outputs) for _ in range(2))
    if not (distances(first, second) <= DIFFERS * norms(first) + TINY).all():
        raise UserError(DEPENDS)
    for number, part in enumerate(_parts(n, at_once)):
        samples, size = x[part], sizes[part]
        plain, squares = Plain(), np.zeros(len(samples))
        at_kinks = np.zeros(len(samples), dtype=np.int64)
        with torch.random.fork_rng():
            with plain:
                gradients = differentiated(samples, outputs)
            for run in range(runs):
                with Perturbed(runs * number + run) as perturbed:
                    moved = differentiated(samples, outputs)
                squares += distances(gradients, moved) ** 2 / runs
                at_kinks = np.maximum(at_kinks, undecided(plain, perturbed, len(samples)).numpy())
            away = np.sqrt(squares)
            near = DIFFERS * size + MARGIN / COARSER * away + TINY
            if plain.choices:
                reach = reaches(plain, perturbed, len(samples))
                at_kinks += _at_ties(differentiated, samples, outputs, gradients, near, reach)
            lost = (at_kinks > 0) | (~(away <= SATURATED * size) & (away != 0))
            near[lost] = math.inf
            _compare_batches(differentiated, samples, outputs, gradients, size, near)
        kinks += int(at_kinks.sum())
        error = np.where(lost, size + away, away / COARSER)
        with np.errstate(over="ignore"):
            squared[part] = np.nan_to_num(error, nan=math.inf) ** 2
    stages = 2 * differentiated.calls + 1
    terms = max(p.numel() for p in differentiated.parameters.values())
    counted = 4 * differentiated.unit_roundoff * stages * math.sqrt(terms)
    flushed = TINY * weights * len(matrix) * (matrix.any() or bool(x.any()))
    products = counted * float(np.trace(matrix)) + flushed
    return Bound(SAFETY**2 * float(squared.sum()), products, kinks)


def _at_ties(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    gradients: ByName,
    near: np.ndarray,
    reach: list[Tensor] | None,
) -> np.ndarray:
    """How often the gradient of a sample becomes another where its ties are decided the other way,
    (n,). near: by how much rounding may change each; reach: of `reaches`."""
    changes = np.zeros(len(x), dtype=np.int64)
    if reach is None:
        return changes + 1
    for odd in (False, True):
        with Swapped(reach, odd):
            swapped = differentiated(x, outputs)
        changes += ~(distances(gradients, swapped) <= near)
    return changes


def _compare_batches(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    gradients: ByName,
    size: np.ndarray,
    near: np.ndarray,
) -> None:
    """Holds gradients of a batch, of norms `size`, and outputs against those of its halves, in
    another order. near: by how much rounding may change each gradient."""
    if (abs(norms(gradients) - size) > near).any():  # K had other batches
        raise UserError(DEPENDS)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x))).to(x.device)
    f = differentiated.outputs(x)
    scale = float(f.abs().max())
    for part in _parts(len(x), -(-len(x) // 2)):
        some = order[part]
        apart = float((differentiated.outputs(x[some]) - f[some]).abs().max())
        allowed = DIFFERS * scale
        if not apart <= allowed and not apart <= reach_of(lambda: differentiated.outputs(x), f):
            raise UserError(
                "the module's output for a sample depends on the others of its batch, or changes"
                " from call to call: its NTK is not defined"
            )
        away = distances(of_rows(gradients, some), differentiated(x[some], outputs))
        if (~(away <= near[some.cpu().numpy()])).any():
            raise UserError(DEPENDS)
