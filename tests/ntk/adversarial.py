"""NTKs that are meant to break a certificate, each judged by exact arithmetic.

A case is drawn from a seed: a kernel as the package computes it, its `Spectrum`, and the same
kernel in decimals of any number of digits (`decimal`, whose exponents have no end here). The digits
are doubled until both ends of the spectrum stand. Only float64 inputs, weights and c_σ are shared.
"""

import dataclasses
import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import mpmath
import numpy as np
import torch
from extended_precision import EXACT as SMOOTH
from extended_precision import ntk as ntk_at_infinite_width
from torch import Tensor, nn

from ntkcond.library import of_module
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import measure
from ntkcond.ntk.eigenvalues import Spectrum, spectrum
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import infinite_width_ntk
from ntkcond.ntk.rank import rank_bound
from ntkcond.ntk.rounding import KernelError, gradients_with_error, layer_gradients_with_error
from ntkcond.run.errors import UserError

DIGITS = (50, 100, 200, 400, 800)
LOST = 25  # digits that may be lost on the way, and those that must stand
U = 2.0**-53
CHEAP = 1e-3  # κ n u below which a verdict should not be unresolved


class Undecided(Exception):
    """The sign of a preactivation does not stand in these digits."""


# --- decimals


def digits() -> int:
    return decimal.getcontext().prec


def exactly(values) -> np.ndarray:
    """Decimals of floats, without rounding."""
    return np.frompyfunc(lambda v: Decimal(float(v)), 1, 1)(np.asarray(values, dtype=np.float64))


def _smooth(value: Callable, slope: Callable, far: Callable) -> Callable:
    """By mpmath. far: the limits at ±∞, where exp(−z) is beyond even its exponents."""

    def both(z: Decimal) -> tuple[Decimal, Decimal]:
        flags = decimal.getcontext().flags
        flags[decimal.Inexact] = True
        if z.adjusted() > 8:
            flags[decimal.Underflow] = True
            return far(z)
        tiny = z and z.adjusted() < -2 * DIGITS[-1]
        with mpmath.workdps(digits() + 10):
            here = mpmath.mpf(0 if tiny else str(z))
            a, b = (Decimal(mpmath.nstr(f(here), digits() + 5)) for f in (value, slope))
        return (a + b * z if tiny else a), b

    return both


def _silu_slope(z):
    return (1 + z / (1 + mpmath.exp(z))) / (1 + mpmath.exp(-z))


def _gate(z: Decimal) -> tuple[Decimal, Decimal]:
    return max(z, Decimal(0)), Decimal(int(z > 0))


def _kinked(below: float, above: float, at: float = 0.0) -> Callable:
    def both(z: Decimal) -> tuple[Decimal, Decimal]:
        slope = Decimal(above) if z > 0 else Decimal(below) if z < 0 else Decimal(at)
        return z * slope, slope

    return both


def _hardtanh(z: Decimal) -> tuple[Decimal, Decimal]:
    return max(Decimal(-1), min(Decimal(1), z)), Decimal(int(-1 < z < 1))


# Value and slope; places of kinks.
EXACT: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "relu": (_kinked(0, 1), (0,)),
    "linear": (lambda z: (z, Decimal(1)), ()),
    "relu2": (lambda z: (max(z, 0) ** 2, 2 * max(z, 0)), ()),
    "gelu": (_smooth(*SMOOTH["gelu"], _gate), ()),
    "tanh": (_smooth(*SMOOTH["tanh"], lambda z: (Decimal(1).copy_sign(z), Decimal(0))), ()),
    "sigmoid": (_smooth(*SMOOTH["sigmoid"], lambda z: (Decimal(int(z > 0)), Decimal(0))), ()),
    "silu": (_smooth(lambda z: z / (1 + mpmath.exp(-z)), _silu_slope, _gate), ()),
    "leaky": (_kinked(0.01, 1, 0.01), (0,)),
    "abs": (_kinked(-1, 1), (0,)),
    "hardtanh": (_hardtanh, (-1, 1)),
}


def activated(name: str, z: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes. size: Σ |w| |α|, to which errors of z are relative. Raises Undecided where
    the side of a kink does not stand, unless there are no more digits to come."""
    both, kinks = EXACT[name]
    if decimal.getcontext().flags[decimal.Inexact] and digits() < DIGITS[-1]:
        small = Decimal(10) ** (LOST - digits())
        for kink in kinks:
            if (abs(z - kink) < small * (size + abs(kink))).any():
                raise Undecided
    pairs = [both(v) for v in z.flat]
    shape = np.frompyfunc(Decimal, 1, 1)
    values, slopes = (np.array([p[i] for p in pairs], dtype=object) for i in (0, 1))
    return shape(values).reshape(z.shape), shape(slopes).reshape(z.shape)


def network_kernel(network: MLP, weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """The NTK of Eq. (1), (4) and (5). √(c/m) of a homogeneous network comes last: what is zero
    then is exactly zero."""
    name = next(key for key, known in ACTIVATIONS.items() if known is network.activation)
    k, beta = network.degree, Decimal(float(network.bias))
    square = Decimal(normalisation(network.activation)) / len(weights[0])
    scale = Decimal(1) if k else square.sqrt()

    def with_bias(a: np.ndarray) -> np.ndarray:
        return np.hstack([a, np.full((len(a), 1), beta, dtype=object)]) if network.bias else a

    weights = [exactly(w) for w in weights]
    forward, slopes, powers = [with_bias(exactly(x))], [], [0]
    for w in weights[:-1]:
        value, slope = activated(name, forward[-1] @ w.T, abs(forward[-1]) @ abs(w).T)
        forward.append(with_bias(scale * value))
        slopes.append(scale * slope)
        powers.append((k or 1) * powers[-1] + 1)
    delta, power, total = np.full((len(x), 1), Decimal(1), dtype=object), 0, 0
    for layer in range(network.depth, -1, -1):
        if layer == 0 or network.trainable == "all":
            factor = square ** (powers[layer] + power) if k else 1
            total = total + factor * (forward[layer] @ forward[layer].T) * (delta @ delta.T)
        if layer:
            delta = (delta @ weights[layer][:, : slopes[layer - 1].shape[1]]) * slopes[layer - 1]
            power += ((k or 1) - 1) * powers[layer - 1] + 1
    return total


# --- eigenvalues


def pivots(matrix: np.ndarray) -> tuple[list[Decimal], np.ndarray] | None:
    """D and L of L D Lᵀ, without interchanges; None at a pivot of zero before the last."""
    n, rest = len(matrix), matrix.copy()
    lower, diagonal = np.full((n, n), Decimal(0), dtype=object), []
    for i in range(n):
        diagonal.append(rest[i, i])
        lower[i, i] = Decimal(1)
        if i + 1 < n:
            if not rest[i, i]:
                return None
            lower[i + 1 :, i] = rest[i + 1 :, i] / rest[i, i]
            rest[i + 1 :, i + 1 :] -= np.outer(lower[i + 1 :, i], rest[i, i + 1 :])
    return diagonal, lower


def unlimited(places: int):
    """A context of so many digits, and of exponents without an end."""
    return decimal.localcontext(
        prec=places, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation]
    )


class Ends(NamedTuple):
    """Of an exact kernel: λ_max and λ_min within 10⁻¹²; λ_min 0 of one that is singular, as far as
    all digits say, or, `beyond`, smaller than these digits show. indefinite: λ_min < 0."""

    largest: Decimal
    smallest: Decimal
    matrix: np.ndarray
    indefinite: bool = False
    beyond: bool = False

    @property
    def kappa(self) -> Decimal:
        return self.largest / self.smallest if self.smallest > 0 else Decimal("Infinity")


def _largest(matrix: np.ndarray) -> Decimal:
    """The largest eigenvalue of a matrix that is not zero, by float64 relative to its largest
    entry."""
    size = abs(matrix).max()
    scaled = (matrix / size).astype(np.float64)
    return size * Decimal(float(np.linalg.eigvalsh(scaled)[-1]))


def _ends(matrix: np.ndarray) -> Ends | None:
    """None where the smallest is not told apart from 0."""
    n, size = len(matrix), matrix.diagonal()
    if (size == 0).any():
        largest = _largest(matrix) if size.any() else Decimal(0)
        return Ends(largest, Decimal(0), matrix)
    factors = pivots(matrix)
    if factors is None:
        return None
    small = Decimal(10) ** (LOST - digits())
    if any(abs(d) <= small * abs(s) for d, s in zip(factors[0], size, strict=True)):
        return None
    largest = _largest(matrix)
    if min(factors[0]) < 0:
        return Ends(largest, Decimal(0), matrix, indefinite=True)
    inverse = np.full((n, n), Decimal(0), dtype=object)  # of L
    for i in range(n):
        inverse[i, i] = Decimal(1)
        for j in range(i):
            inverse[i, j] = -(factors[1][i, j:i] @ inverse[j:i, j])
    scaled = inverse / np.array(factors[0], dtype=object)[:, None]
    return Ends(largest, 1 / _largest(inverse.T @ scaled), matrix)


def ends_of(exact: Callable[[], np.ndarray], to_the_end: bool, gram: bool = False) -> Ends:
    """Of the kernel that `exact` computes in the digits of its context. to_the_end: whether more
    digits are tried where 100 show no λ_min. gram: it is of gradients, so that a negative
    eigenvalue is due to too few digits."""
    before = None
    for places in DIGITS:
        with unlimited(places) as context:
            context.clear_flags()
            try:
                matrix = exact()
            except Undecided:
                before = None
                continue
            lost = context.flags[decimal.Underflow] or context.flags[decimal.Overflow]
            now = _ends(matrix)
            if gram and now and now.indefinite:
                now = None
            if now is not None and lost:
                now = now._replace(beyond=True)
            if now is not None and not context.flags[decimal.Inexact]:
                return now
            if now and (places == DIGITS[-1] or (before and _same(now, before))):
                return now
            before, last = now, matrix
            if now is None and places >= 100 and not to_the_end:
                break
    largest = _largest(last) if last.any() else Decimal(0)
    return Ends(largest, Decimal(0), last, beyond=True if lost else not to_the_end)


def _same(a: Ends, b: Ends) -> bool:
    close = Decimal("1e-10")
    return a.indefinite == b.indefinite and all(
        abs(p - q) <= close * abs(p) for p, q in ((a.largest, b.largest), (a.smallest, b.smallest))
    )


# --- cases


class Case(NamedTuple):
    """kernel: as computed, its error and rank bound; or a `spectrum` that may raise UserError.
    exact: the kernel in the digits of the context."""

    spectrum: Callable[[], Spectrum]
    exact: Callable[[], np.ndarray]
    by_inputs: bool = False  # the inputs alone prove that it is singular
    note: str = ""
    unit: float = U  # of the lowest precision inside, or a stated relative error
    gram: bool = True  # of gradients: not indefinite


class NotFinite(Exception):
    """A kernel beyond the range of float64, which `measure` records as unresolved."""


def of_kernel(kernel: np.ndarray, error: KernelError, rank: int) -> Spectrum:
    if not np.isfinite(kernel).all():
        raise NotFinite
    return spectrum(kernel, error, rank)


def network_case(
    network: MLP, weights: list[np.ndarray], x: np.ndarray, layers: bool = False
) -> Case:
    """layers: also a linear network by its layers, as `measure` does."""
    known = layer_gradients_with_error if layers else gradients_with_error
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    rank = len(x)
    if np.array_equal(single.astype(np.float64), x):
        rank = rank_bound(single, network)

    def computed() -> Spectrum:
        with np.errstate(all="ignore"):
            factors, error = known(network, weights)(x)
            return of_kernel(empirical_ntk(factors), error, rank)

    nothing = network.trainable == "first" and not network.bias and not x.any(1).all()
    shapes = f"{network.activation.title} L={network.depth} m={network.width} β={network.bias:g}"
    return Case(
        computed, lambda: network_kernel(network, weights, x), rank < len(x) or nothing,
        f"{shapes} {network.trainable} n={len(x)} d={x.shape[1]}",
    )  # fmt: skip


def drawn_network(rng: np.random.Generator, **fixed) -> tuple[MLP, int]:
    name = fixed.get("activation") or rng.choice(list(ACTIVATIONS))
    depth = fixed.get("depth", int(rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 7])))
    width = fixed.get("width", int(rng.choice([1, 2, 2, 3, 3, 4, 4, 8, 16])))
    if width > 4:
        depth = min(depth, 4)
    trainable = "first" if rng.random() < 0.2 else "all"
    bias = float(rng.choice([0, 0, 0, 0.5, 1.0, rng.exponential()]))
    bias = fixed.get("bias", bias)
    network = MLP(ACTIVATIONS[name], depth, width, trainable=trainable, bias=bias)
    return network, fixed.get("features", int(rng.integers(1, 6)))


def drawn_inputs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    if rng.random() < 0.6:
        x = x.astype(np.float32).astype(np.float64)
    return x


def plain(rng: np.random.Generator, **fixed) -> tuple[MLP, list[np.ndarray], np.ndarray]:
    network, d = drawn_network(rng, **fixed)
    weights = network.weights(int(rng.integers(2**31)), d)
    return network, weights, drawn_inputs(rng, int(rng.integers(2, fixed.get("n", 6))), d)


def gaussian(rng: np.random.Generator) -> Case:
    return network_case(*plain(rng))


def deep(rng: np.random.Generator) -> Case:
    network, weights, x = plain(
        rng, depth=int(rng.integers(8, 21)), width=int(rng.integers(1, 5)), n=4
    )
    return network_case(network, weights, x)


def scales(rng: np.random.Generator) -> Case:
    """Samples, rows of them, features or layers from 1e-300 to 1e300."""
    network, weights, x = plain(rng)
    reach = float(rng.choice([3, 30, 150, 300]))
    with np.errstate(all="ignore"):
        what = rng.integers(5)
        if what == 0:
            x = x * 10 ** rng.uniform(-reach, reach)
        elif what == 1:
            x = x * 10 ** rng.uniform(-reach, reach, (len(x), 1))
        elif what == 2:
            x = x * 10 ** rng.uniform(-reach, reach, (1, x.shape[1]))
        elif what == 3:
            weights = [w * 10 ** rng.uniform(-reach, reach) for w in weights]
        else:
            weights = [w * 10 ** rng.uniform(-reach, reach, (len(w), 1)) for w in weights]
        if rng.random() < 0.3:
            x = x.astype(np.float32).astype(np.float64)
    x = np.nan_to_num(x, nan=0.0, posinf=1e300, neginf=-1e300)
    weights = [np.nan_to_num(w, nan=0.0, posinf=1e300, neginf=-1e300) for w in weights]
    return network_case(network, weights, x, layers=bool(rng.integers(2)))


def offsets(rng: np.random.Generator) -> Case:
    network, weights, x = plain(rng)
    some = rng.random(len(x)) < rng.choice([0.5, 1.0])
    x[some] += 10 ** rng.uniform(0, 12) * rng.choice([np.ones(x.shape[1]), x[0]])
    return network_case(network, weights, x)


def parallel(rng: np.random.Generator) -> Case:
    """Near-parallel, repeated, opposite and zero samples."""
    network, weights, x = plain(rng)
    i, j = rng.choice(len(x), 2, replace=False)
    what = rng.integers(6)
    if what < 3:
        x[j] = x[i] + 10 ** rng.uniform(-16, -1) * rng.standard_normal(x.shape[1])
    elif what == 3:
        x[j] = x[i] * rng.choice([1.0, 2.0, -1.0, 0.75, rng.exponential()])
    elif what == 4:
        x[j] = 0
    else:
        x[j] = np.nextafter(x[i], np.inf)
    return network_case(network, weights, x)


def knots(rng: np.random.Generator) -> Case:
    """Preactivations that are zero but for rounding, or exactly."""
    name = rng.choice(["relu", "relu", "relu", "relu2", "gelu", "tanh"])
    network, weights, x = plain(
        rng, activation=name, depth=int(rng.integers(1, 6)), width=int(rng.integers(1, 7))
    )
    if rng.random() < 0.3:
        x = rng.integers(-3, 4, x.shape).astype(np.float64)
        weights[0] = rng.integers(-2, 3, weights[0].shape).astype(np.float64)
    every = dataclasses.replace(network, trainable="all")
    for layer in range(network.depth):
        if rng.random() < 0.6:
            a = every.layer_gradients(x, weights)[layer].forward
            w = weights[layer]
            for unit in range(len(w)):
                row = a[rng.integers(len(x))]
                if rng.random() < 0.6 and row[-1]:
                    w[unit, -1] = -(w[unit, :-1] @ row[:-1]) / row[-1]
                    if rng.random() < 0.3:
                        w[unit, -1] *= 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -12)
    return network_case(network, weights, x)


def trained(rng: np.random.Generator) -> Case:
    """Weights that are not Gaussian: sparse, whole numbers, of rank one, nearly so, orthogonal; of
    layers of very different sizes."""
    network, weights, x = plain(rng)
    for layer, w in enumerate(weights):
        what = rng.integers(7)
        if what == 0:
            w *= rng.random(w.shape) < 0.5
        elif what == 1:
            w[:] = rng.integers(-2, 3, w.shape)
        elif what in (2, 3):
            w[:] = np.outer(w[:, 0], w[0])
            if what == 3:
                w += 10 ** rng.uniform(-16, -1) * rng.standard_normal(w.shape)
        elif what == 4:
            w *= 10 ** rng.uniform(-12, 12)
        elif what == 5:
            w[:] = np.linalg.svd(w, full_matrices=False)[0] @ np.linalg.svd(w, False)[2]
        else:
            w[: len(w) // 2] = w[len(w) // 2 :][: len(w) // 2]  # twins
        weights[layer] = w
    return network_case(network, weights, x, layers=bool(rng.integers(2)))


def few(rng: np.random.Generator) -> Case:
    network, weights, x = plain(
        rng, features=1, width=int(rng.choice([1, 1, 2])), depth=int(rng.integers(1, 9))
    )
    x = x[: int(rng.integers(2, 4))]
    if rng.random() < 0.3:
        x *= 10 ** rng.uniform(-3, 3)
    return network_case(network, weights, x)


def tanh(rng: np.random.Generator) -> Case:
    network, weights, x = plain(rng, activation=rng.choice(["tanh", "sigmoid", "gelu"]))
    return network_case(network, weights, x * 10 ** rng.uniform(0, 3))


def linear(rng: np.random.Generator) -> Case:
    name, depth = rng.choice(["linear", "relu"]), 0
    if name == "linear":
        depth = int(rng.integers(0, 21))
    network, weights, x = plain(rng, activation=name, depth=depth)
    d = x.shape[1]
    if rng.random() < 0.5:  # a stack that is nearly singular
        weights[0][:, 0] = weights[0][:, -1] * (1 + 10 ** rng.uniform(-16, -2))
        x[:, 0] = x[:, -1] + 10 ** rng.uniform(-12, 0) * rng.standard_normal(len(x))
    if d > 1:
        x = x[: max(2, int(rng.integers(2, d + 2)))]
    return network_case(network, weights, x, layers=bool(rng.integers(2)))


def at_infinite_width(rng: np.random.Generator) -> Case:
    names = ["relu", "relu2", "linear"] * 6 + ["tanh"]  # whose series takes a second
    name, depth = str(rng.choice(names)), int(rng.integers(1, 7))
    n, d = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    x = rng.standard_normal((n, d)) + rng.choice([0.0, 0.0, 10 ** rng.uniform(0, 6)])
    if n > 1 and rng.random() < 0.5:
        x[1] = x[0] * rng.choice([1.0, -1.0, 1.5]) + 10 ** rng.uniform(-15, 0) * rng.normal(size=d)
    smooth = ACTIVATIONS[name].degree is None
    if smooth:
        x, depth = x[:3] / np.linalg.norm(x[:3], axis=1, keepdims=True), min(depth, 2)
    elif rng.random() < 0.3:
        x *= 10 ** rng.uniform(-100, 100) if depth < 3 or name != "relu2" else 1.0
    network = MLP(ACTIVATIONS[name], depth, math.inf)

    def computed() -> Spectrum:
        with np.errstate(all="ignore"):
            kernel = infinite_width_ntk(x, network)
            error = measure.infinite_width_error(network, d, kernel.diagonal())
            return of_kernel(kernel, error, n)

    def exact() -> np.ndarray:
        with mpmath.workdps(50 if smooth else digits() + 10):
            kernel = ntk_at_infinite_width(x, name, depth)
            rows = [[mpmath.nstr(v, digits() + 10) for v in row] for row in kernel.tolist()]
        decimal.getcontext().flags[decimal.Inexact] = True
        return np.array([[Decimal(v) for v in row] for row in rows], dtype=object)

    return Case(computed, exact, note=f"{name} L={depth} n={len(x)} d={d} m=∞")


def matrix(rng: np.random.Generator) -> Case:
    """Given matrices, of κ up to 10¹⁸ and beyond; with an error of a known norm."""
    n, error = int(rng.integers(1, 9)), 0.0
    what = rng.integers(6)
    if what == 0:
        q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        kernel = (q * np.geomspace(10 ** -rng.uniform(0, 18), 1, n)) @ q.T
    elif what == 1:  # exactly positive definite, of determinant one
        reach = 10 ** rng.uniform(0, 6)
        root = np.eye(n) + np.round(np.triu(rng.uniform(-reach, reach, (n, n)), 1))
        kernel = root @ root.T
    elif what == 2:
        kernel = np.diag(10 ** rng.uniform(-20, 0, n) if rng.integers(2) else rng.integers(0, 9, n))
        kernel = kernel.astype(np.float64)
    elif what == 3:
        kernel = np.full((n, n), 1 - 2.0 ** -int(rng.integers(1, 54)))
        np.fill_diagonal(kernel, 1.0)
    elif what == 4:
        root = rng.standard_normal((n, int(rng.integers(1, n + 2))))
        kernel = root @ root.T
    else:  # many equal eigenvalues
        v = rng.standard_normal(n)
        kernel = np.eye(n) - (1 - 10 ** rng.uniform(-17, 0)) * np.outer(v, v) / (v @ v)
    kernel = (kernel + kernel.T) / 2
    truth = kernel.copy()
    if rng.random() < 0.3:
        noise = np.tril(rng.standard_normal((n, n))) * 10 ** rng.uniform(-18, -3)
        kernel = truth + (noise + noise.T) * abs(truth).max()
        error = float(np.linalg.norm(exactly(kernel).astype(object).astype(float) - truth)) * 1.01
        error += 4 * U * float(abs(truth).max())
    if rng.random() < 0.2:
        factor = 2.0 ** int(rng.integers(-990, 960))
        kernel, truth, error = kernel * factor, truth * factor, error * factor
        error += 1e-320 * n if error else 0.0
    if abs(truth).max() < 1e-290:
        error += n * 2.0**-1073

    def computed() -> Spectrum:
        if rng.random() < 0.5:
            return of_module.condition_number(kernel, error=error)
        return spectrum(kernel, KernelError.of_matrix(error), n)

    stated = U if not error else max(U, 10 * error / max(abs(truth).max(), 1e-300))
    return Case(
        computed, lambda: exactly(truth), gram=False, note=f"matrix {what} n={n}", unit=stated
    )


# --- modules: a chain of steps, each with its exact value and the transpose of its derivative


class Step(nn.Module):
    def __init__(self, *about) -> None:
        super().__init__()
        self.about = about


class Cancel(Step):
    """A residual sum of which the large part goes away."""

    def forward(self, z: Tensor) -> Tensor:
        return (z + self.about[0]) - self.about[0]


class Single(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.float().double()


class InPlace(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.mul_(2).add_(1).relu_()


class Gated(Step):
    """a σ(b) of the two halves."""

    def forward(self, z: Tensor) -> Tensor:
        a, b = z.chunk(2, dim=-1)
        return a * (torch.sigmoid(b) if self.about == ("sigmoid",) else nn.functional.silu(b))


class Tied(nn.Module):
    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, z: Tensor) -> Tensor:
        return self.layer(z)


class Largest(Step):
    """The larger of each pair of features."""

    def forward(self, z: Tensor) -> Tensor:
        pairs = z.unflatten(-1, (-1, 2))
        match self.about[0]:
            case "max":
                return pairs.max(-1).values
            case "amax":
                return pairs.amax(-1)
            case "topk":
                return pairs.topk(1, dim=-1).values[..., 0]
            case "sort":
                return pairs.sort(-1).values[..., 1]
            case "maximum":
                return torch.maximum(pairs[..., 0], pairs[..., 1])
        return nn.functional.max_pool1d(z[:, None], 2)[:, 0]


class Abs(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.abs()


TORCH = {
    "relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "silu": nn.SiLU,
    "leaky": nn.LeakyReLU, "abs": Abs, "hardtanh": nn.Hardtanh,
}  # fmt: skip


class Run:
    """One sample's way through the steps: gradients by parameter."""

    def __init__(self) -> None:
        self.gradients: dict[int, np.ndarray] = {}
        self.back: list[Callable[[np.ndarray], np.ndarray]] = []

    def add(self, parameter: Tensor | None, values: np.ndarray) -> None:
        if parameter is not None:
            total = self.gradients.get(id(parameter), 0)
            self.gradients[id(parameter)] = total + values

    def step(self, layer: nn.Module, v: np.ndarray, size: np.ndarray) -> tuple:
        """The value and a size to which its errors are relative."""
        if isinstance(layer, Tied):
            layer = layer.layer
        if isinstance(layer, nn.Linear):
            return self._linear(layer, v)
        if isinstance(layer, nn.LayerNorm | nn.GroupNorm):
            return self._normalised(layer, v), None
        if isinstance(layer, nn.BatchNorm1d):
            mean, var = exactly(layer.running_mean), exactly(layer.running_var)
            root = np.array([(s + Decimal(layer.eps)).sqrt() for s in var], dtype=object)
            return self._affine(layer, (v - mean) / root, lambda g: g / root), None
        if isinstance(layer, Gated):
            half = len(v) // 2
            a, (gate, slope) = v[:half], activated(layer.about[0], v[half:], abs(v[half:]))
            self.back.append(lambda g: np.concatenate([g * gate, g * a * slope]))
            return a * gate, None
        if isinstance(layer, Largest):
            return self._largest(v, size), None
        if isinstance(layer, InPlace):
            value, slope = activated("relu", 2 * v + 1, 2 * size + 1)
            self.back.append(lambda g: 2 * g * slope)
            return value, None
        for name, kind in TORCH.items():
            if type(layer) is kind:
                return self._activation(name, v, size), None
        return v, size  # the identity

    def _activation(self, name: str, v: np.ndarray, size: np.ndarray) -> np.ndarray:
        value, slope = activated(name, v, size)
        self.back.append(lambda g: g * slope)
        return value

    def _largest(self, v: np.ndarray, size: np.ndarray) -> np.ndarray:
        """By (a + b + |a − b|)/2."""
        a, b = v[::2], v[1::2]
        _, side = activated("abs", a - b, size[::2] + size[1::2])
        self.back.append(lambda g: np.stack([g * (1 + side), g * (1 - side)], 1).ravel() / 2)
        return (a * (1 + side) + b * (1 - side)) / 2

    def _linear(self, layer: nn.Linear, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w = exactly(layer.weight.detach())
        b = exactly(layer.bias.detach()) if layer.bias is not None else exactly(np.zeros(len(w)))

        def back(g: np.ndarray) -> np.ndarray:
            self.add(layer.weight, np.outer(g, v))
            self.add(layer.bias, g)
            return g @ w

        self.back.append(back)
        return w @ v + b, abs(w) @ abs(v) + abs(b)

    def _affine(self, layer: nn.Module, unit: np.ndarray, before: Callable) -> np.ndarray:
        w, b = exactly(layer.weight.detach()), exactly(layer.bias.detach())

        def back(g: np.ndarray) -> np.ndarray:
            self.add(layer.weight, g * unit)
            self.add(layer.bias, g)
            return before(g * w)

        self.back.append(back)
        return w * unit + b

    def _normalised(self, layer: nn.Module, v: np.ndarray) -> np.ndarray:
        count = layer.num_groups if isinstance(layer, nn.GroupNorm) else 1
        parts = v.reshape(count, -1)
        size = parts.shape[1]
        off = parts - (parts.sum(1) / size)[:, None]
        roots = [(o @ o / size + Decimal(layer.eps)).sqrt() for o in off]
        root = np.array(roots, dtype=object)[:, None]
        unit = off / root

        def before(g: np.ndarray) -> np.ndarray:
            g = g.reshape(count, -1)
            along = ((g * unit).sum(1) / size)[:, None]
            return ((g - (g.sum(1) / size)[:, None] - unit * along) / root).ravel()

        return self._affine(layer, unit.ravel(), before)


def module_kernel(module: nn.Sequential, x: np.ndarray) -> np.ndarray:
    rows = []
    for sample in exactly(x):
        run, v, size = Run(), sample, abs(sample)
        for layer in module:
            v, size = run.step(layer, v, abs(v) if size is None else size)
        g = np.array([Decimal(1)], dtype=object)
        for back in reversed(run.back):
            g = back(g)
        rows.append(np.concatenate([np.ravel(a) for a in run.gradients.values()]))
    jacobian = np.array(rows, dtype=object)
    return jacobian @ jacobian.T


def drawn_module(
    rng: np.random.Generator, x: np.ndarray, name: str, what: str = "", knots: float = 0.3
) -> nn.Sequential:
    d, m = x.shape[1], int(rng.choice([2, 4, 6]))
    steps: list[nn.Module] = []
    kinds = ["norm", "group", "batch", "gate", "tied", "residual", "plain", "place", "pool"]
    what = what or str(rng.choice(kinds))
    if what == "norm":
        steps += [nn.LayerNorm(d)] if rng.integers(2) else []
        steps += [nn.Linear(d, m), nn.LayerNorm(m), TORCH[name]()]
    elif what == "group":
        steps += [nn.Linear(d, m), nn.GroupNorm(2 if m > 2 else 1, m), TORCH[name]()]
    elif what == "batch":
        norm = nn.BatchNorm1d(m)
        norm.running_mean = torch.from_numpy(rng.standard_normal(m) * 10 ** rng.uniform(-2, 6))
        norm.running_var = torch.from_numpy(10 ** rng.uniform(-8, 2, m))
        steps += [nn.Linear(d, m), norm, TORCH[name]()]
    elif what == "gate":
        steps += [nn.Linear(d, 2 * m), Gated(str(rng.choice(["sigmoid", "silu"])))]
    elif what == "tied":
        layer = nn.Linear(m, m)
        steps += [nn.Linear(d, m), TORCH[name](), layer, TORCH[name](), Tied(layer), TORCH[name]()]
    elif what == "residual":
        steps += [nn.Linear(d, m), Cancel(10 ** rng.uniform(0, 12)), TORCH[name]()]
    elif what == "place":
        steps += [nn.Linear(d, m), InPlace()]
    elif what == "pool":
        ways = ["max", "amax", "topk", "sort", "maximum", "max_pool1d"]
        steps += [nn.Linear(d, 2 * m), Largest(str(rng.choice(ways)))]
    else:
        steps += [nn.Linear(d, m), TORCH[name]()]
    if rng.random() < 0.15:
        steps.insert(int(rng.integers(1, len(steps))), Single())
    if rng.random() < 0.4:
        steps += [nn.Linear(m, m), TORCH[name]()]
    steps += [nn.Linear(m, 1)]
    module = nn.Sequential(*steps).double().eval()
    with torch.no_grad():
        for p in module.parameters():
            values = rng.standard_normal(tuple(p.shape))
            p.copy_(torch.from_numpy(np.asarray(values)))
        if rng.random() < knots and isinstance(steps[0], nn.Linear):  # knots
            for unit in range(len(steps[0].bias)):
                if rng.random() < 0.7:
                    row = torch.from_numpy(x[rng.integers(len(x))])
                    shift = float(rng.choice([-1, 1])) if name == "hardtanh" else 0.0
                    preactivation = steps[0].weight[unit] @ row
                    if what == "pool":  # a tie
                        preactivation -= steps[0].weight[unit ^ 1] @ row + steps[0].bias[unit ^ 1]
                    steps[0].bias[unit] = shift - preactivation
    return module


def module(rng: np.random.Generator) -> Case:
    x = drawn_inputs(rng, int(rng.integers(2, 6)), int(rng.choice([1, 2, 4])))
    if rng.random() < 0.4:
        x[rng.random(len(x)) < 0.7] += 10 ** rng.uniform(0, 12)
    if rng.random() < 0.2:
        x[1] = x[0] * (1 + 10 ** rng.uniform(-14, -1))
    if rng.random() < 0.1:
        x *= 10 ** rng.uniform(-160, 150)
    return module_case(drawn_module(rng, x, str(rng.choice(list(TORCH)))), x)


def module_knots(rng: np.random.Generator) -> Case:
    x = drawn_inputs(rng, int(rng.integers(2, 5)), int(rng.choice([2, 3])))
    name = str(rng.choice(["relu", "leaky", "abs", "hardtanh"]))
    return module_case(drawn_module(rng, x, name, str(rng.choice(["plain", "pool"])), 1.0), x)


def module_case(made: nn.Sequential, x: np.ndarray) -> Case:
    def computed() -> Spectrum:
        return of_module.condition_number(made, torch.from_numpy(x))

    parts = [type(step) for step in made]
    note = f"{' '.join(part.__name__ for part in parts)} n={len(x)} d={x.shape[1]}"
    repeated = len(np.unique(x, axis=0)) < len(x)
    return Case(
        computed, lambda: module_kernel(made, x), repeated, note, 2.0**-24 if Single in parts else U
    )


KINDS: dict[str, Callable[[np.random.Generator], Case]] = {
    "gaussian": gaussian, "deep": deep, "scales": scales, "offsets": offsets, "parallel": parallel,
    "knots": knots, "trained": trained, "few": few, "tanh": tanh, "linear": linear,
    "infinite width": at_infinite_width, "matrix": matrix, "module": module,
    "module knots": module_knots,
}  # fmt: skip


# --- the judge


class Verdict(NamedTuple):
    """outcome: resolved, miss, singular, false (singular), unresolved, refused; cost: κ n u of the
    exact κ. out_of_range: the kernel or κ is beyond what float64 holds. at_kinks: a preactivation
    is within its rounding of a kink."""

    kind: str
    seed: int
    outcome: str
    cost: float = math.inf
    out_of_range: bool = False
    at_kinks: bool = False
    note: str = ""

    @property
    def excused(self) -> str:
        """Why it is unresolved where no bound could resolve it."""
        if self.outcome != "unresolved":
            return ""
        return "out of range" if self.out_of_range else "at a kink" if self.at_kinks else ""


def drawn(kind: str, seed: int) -> Case:
    return KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))


def judged(kind: str, seed: int) -> Verdict:
    case = drawn(kind, seed)
    try:
        computed = case.spectrum()
    except NotFinite:
        return Verdict(kind, seed, "unresolved", out_of_range=True, note=case.note)
    except UserError as error:
        refused = Verdict(kind, seed, "refused", note=f"{case.note}: {error}")
        if kind != "matrix":
            return refused
        with unlimited(50):  # one that is positive definite must not be
            indefinite = ends_of(case.exact, to_the_end=True).indefinite
        return refused if indefinite else refused._replace(outcome="false")
    with unlimited(50):
        return _compared(kind, seed, case, computed)


def _compared(kind: str, seed: int, case: Case, computed: Spectrum) -> Verdict:
    ends = ends_of(case.exact, computed.verdict != "unresolved", case.gram)
    note = f"{case.note}: {computed}; κ = {ends.kappa:.12g}"
    tiny = not 1e-280 < computed.lambda_max < 1e300
    cost = float(min(ends.kappa, Decimal("1e300"))) * computed.n * case.unit
    verdict = Verdict(kind, seed, computed.verdict, cost, tiny, computed.kinks > 0, note)
    if computed.verdict == "singular":
        true = ends.smallest == 0 and not ends.indefinite and (case.by_inputs or not ends.beyond)
        return verdict if true else verdict._replace(outcome="false")
    outside = missed(computed, ends)
    if outside or (computed.verdict == "resolved" and (ends.indefinite or ends.smallest == 0)):
        return verdict._replace(outcome="miss", note=f"{outside}: {note}")
    return verdict


def missed(computed: Spectrum, ends: Ends) -> str:
    """What of a spectrum does not hold the exact value, if anything: κ, or λ_max and λ_min in any
    of its grades, also where that grade is not the one that is told."""
    close = Decimal("1e-11")
    low, high = computed.kappa_lower, computed.kappa_upper
    if ends.smallest > 0 and not ends.indefinite:
        if not Decimal(low) <= ends.kappa * (1 + close):
            return "κ below"
        if not ends.kappa * (1 - close) <= Decimal(high):
            return "κ above"
    with unlimited(100):
        for grade, interval in computed._intervals().items():
            for name, (low, high) in (("λ_max", interval.largest), ("λ_min", interval.smallest)):
                if not within(low, high, name, ends):
                    return f"{name} ({grade})"
    return ""


def within(low: float, high: float, name: str, ends: Ends) -> bool:
    """Whether an eigenvalue is in the interval; where 10⁻¹¹ decides, by the signs of pivots."""
    value = ends.largest if name == "λ_max" else ends.smallest
    if ends.indefinite and name == "λ_min":
        return True
    if math.isnan(low) or math.isnan(high):
        return True
    close = Decimal("1e-11") * abs(value)
    low_holds = low == -math.inf or Decimal(low) <= value - close
    high_holds = high == math.inf or Decimal(high) >= value + close
    if low_holds and high_holds:
        return True
    if value == 0:
        return Decimal(low) <= 0 <= Decimal(high)
    n = len(ends.matrix)

    def below(sigma: float) -> int | None:
        """How many eigenvalues are below σ; None where a pivot of exactly zero does not tell."""
        shifted = pivots(ends.matrix - Decimal(sigma) * exactly(np.eye(n)))
        return None if shifted is None or 0 in shifted[0] else sum(d < 0 for d in shifted[0])

    if name == "λ_max":
        low_holds |= below(low) in (None, *range(n))
        high_holds |= below(high) in (None, n)
    else:
        low_holds |= below(low) in (None, 0)
        high_holds |= below(high) in (None, *range(1, n + 1))
    return low_holds and high_holds
