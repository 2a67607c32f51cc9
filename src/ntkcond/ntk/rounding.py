"""What rounding does to an NTK that is computed from factored gradients: bounds of two grades.

K = Φ Φᵀ, a row of Φ the gradient of a sample. With computed factors, Φ + δΦ, and products of them
that are rounded as well,

    ‖δK‖ ≤ 2 ‖Φ + δΦ‖ ‖δΦ‖ + ‖δΦ‖² + ‖rounding of the products‖.

*proved*: each error is followed through all layers and gates, in the worst case: sums of k terms in
any order err by k u times the norms (Jeannerod & Rump, SIAM J. Matrix Anal. Appl. 34, 338, 2013),
and a matrix enlarges what comes in by its spectral norm. That loses 2.8 a layer of m = 512.

*model*: roundings have mean zero, each given those before it (Connolly, Higham & Mary, SIAM J. Sci.
Comput. 43, A566–A585, 2021). Then δΦ is, to first order, a martingale with values in the matrices,
and ‖δΦ‖_F exceeds LAMBDA times the root of its summed squared steps with a probability below
2 exp(−LAMBDA²/2) = 3·10⁻¹⁴ (Pinelis, Ann. Probab. 22, 1679, 1994). Steps are measured: noise as
large as the rounding of each layer passes, linearised, through the layers that follow, and back.

A preactivation within its error of a kink may lie on either side, and the slope jumps there. The
jump is then a part of the error, and the number of such gates is given. Underflow counts as
TINY for each product, so that a processor may flush subnormal numbers to zero.

docs/rounding.md derives both, step by step.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, Device, is_numpy, put, to_numpy, xp
from ntkcond.networks.activations import Activation
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP, LayerGradient, Trace
from ntkcond.run.errors import UserError

UNIT_ROUNDOFF = 2.0**-53
TINY = 2.0**-1022
PROVED, MODEL, ESTIMATED = "proved", "model", "estimated"  # grades, from the strongest
LAMBDA = 8.0
ELEMENTARY = 8  # units of rounding of exp, tanh and the like, and of what is made of them
SECOND_ORDER = 1.01  # terms in u², and the rounding of the bounds themselves
# So that no luck makes the noise small: so many rows at least, of each of which a weight matrix
# near rank one leaves a single number; and so many entries a layer.
ROWS_OF_NOISE, ENTRIES_OF_NOISE = 256, 1 << 13
AT_ONCE = 512  # samples: more pass in parts, which keep within a cache


class Bound(NamedTuple):
    """Bounds on an NTK's error. features: on ‖δΦ‖_F, squared; products: on the norm of what the
    rounding of products adds to K; kinks: gates that may be on either side. Those of samples add
    up."""

    features: float = 0.0
    products: float = 0.0
    kinks: int = 0

    def joined(self, other: "Bound") -> "Bound":
        """Bounds for the samples of both."""
        return Bound(*(a + b for a, b in zip(self, other, strict=True)))

    def norm(self, largest: float) -> float:
        """A bound on ‖δK‖. largest: a bound on the largest eigenvalue of the computed matrix."""
        moved = math.sqrt(self.features)
        size = math.sqrt(max(largest, 0.0) + self.products)
        return self.products + (2 * size + moved) * moved


@dataclass(frozen=True)
class KernelError:
    """What is known of the error of a computed NTK.

    bounds: by grade. zero_gradients: samples whose gradient is proven to be exactly zero.
    """

    bounds: dict[str, Bound]
    zero_gradients: int = 0

    def joined(self, other: "KernelError") -> "KernelError":
        """The error for the samples of both: bounds add up."""
        both = {g: self.bounds[g].joined(other.bounds[g]) for g in self.bounds if g in other.bounds}
        return KernelError(both, self.zero_gradients + other.zero_gradients)

    def scaled(self, factor: float, added: float = 0.0) -> "KernelError":
        """The error of factor times K; added: to the error of its products."""
        bounds = {
            grade: Bound(factor * b.features, factor * b.products + added, b.kinks)
            for grade, b in self.bounds.items()
        }
        return KernelError(bounds, self.zero_gradients)

    @classmethod
    def of_matrix(cls, error: float, grade: str = PROVED) -> "KernelError":
        """The error of a matrix, at most this in norm."""
        return cls({grade: Bound(products=error)})


class _Shape(NamedTuple):
    """An activation, away from its kinks: |σ″| ≤ min(bend, relative |σ′|). jumps: of each kink its
    place, the jump of σ′ and its largest value there."""

    bend: float
    relative: float
    jumps: tuple[tuple[float, float, float], ...]


@functools.cache
def _shape(activation: Activation) -> _Shape:
    """bend of an activation that does not state it: from differences on a grid. Raises UserError if
    its slope is not that of its values."""

    def slope(z: np.ndarray) -> np.ndarray:
        return np.asarray(activation.slope(z), dtype=np.float64)

    _require_slope(activation)
    jumps = []
    for kink in activation.kinks:
        near = 1e-9 * max(1.0, abs(kink))
        below, above = slope(np.array([kink - near, kink + near]))
        if abs(above - below) > 1e-6 * max(abs(above), abs(below), 1e-3):
            jumps.append((kink, abs(above - below), max(abs(above), abs(below))))
    if activation.bend is not None:
        return _Shape(*activation.bend, tuple(jumps))
    z = np.linspace(-40, 40, 2**18)
    step = z[1] - z[0]
    steep = abs(np.diff(slope(z))) / step
    for kink, _, _ in jumps:
        steep[abs(z[:-1] - kink) <= 2 * step] = 0
    return _Shape(1.1 * float(steep.max()), math.inf, tuple(jumps))


def _require_slope(activation: Activation) -> None:
    """No other number tells a wrong derivative: each gives a kernel."""
    z, h = np.linspace(-6, 6, 240), 1e-5  # symmetric, none at 0
    for kink in activation.kinks:
        z = z[abs(z - kink) > 2 * h]
    stated = np.asarray(activation.slope(z), dtype=np.float64)
    ahead, behind = (np.asarray(activation.value(z + d), dtype=np.float64) for d in (h, -h))
    apart = abs((ahead - behind) / (2 * h) - stated)
    if wrong := np.flatnonzero(~(apart <= 1e-3 * max(1e-3, abs(stated).max()))).tolist():
        i = wrong[0]
        raise UserError(
            f"activation {activation.title!r}: its slope at {z[i]:.3g} is {stated[i]:.4g}, but its"
            f" values rise by {(ahead[i] - behind[i]) / (2 * h):.4g}. Correct its slope, or name"
            " where it jumps as kinks"
        )


class _Weights(NamedTuple):
    """A weight matrix, W/scale in float32, and upper bounds on ‖W‖₂, ‖W‖_F, and the norms of its
    rows and columns."""

    single: Array
    scale: float
    spectral: float
    frobenius: float
    rows: float
    columns: float


def _prepared(w: Array) -> _Weights:
    """Once for all samples."""
    functions = xp(w)
    largest = float(functions.max(functions.abs(w)))
    if not 0 < largest < math.inf:
        return _Weights(_single(w), 1.0, largest, largest, largest, largest)
    scale = 2.0 ** max(-1022, math.frexp(largest)[1] - 1)  # float32 has a shorter range
    small = _single(w / largest)
    squares = small * small
    rows, columns = (math.sqrt(float(functions.max(squares.sum(axis)))) for axis in (1, 0))
    frobenius = math.sqrt(float(squares.sum()))
    bounds = (_spectral_norm(small, frobenius), frobenius, rows, columns)
    bounds = (SECOND_ORDER * largest * bound for bound in bounds)
    return _Weights(_single(w / scale), scale, *bounds)


def _spectral_norm(w: Array, frobenius: float) -> float:
    """A bound on ‖W‖₂, W float32: σI − WWᵀ has a Cholesky factor in floating point, so that
    ‖W‖₂² ≤ σ and the errors of both (`ntkcond.ntk.eigenvalues`)."""
    functions = xp(w)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    m, terms = len(gram), max(w.shape)
    vector = gram[0] + 1e-3 * functions.linalg.vector_norm(gram[0])
    for _ in range(20):
        vector = gram @ (vector / functions.linalg.vector_norm(vector))
    estimate = float(functions.linalg.vector_norm(vector))
    unit = float(functions.finfo(gram.dtype).eps) / 2
    for sigma in (1.05 * estimate, 1.5 * estimate):
        shifted = -gram
        diagonal = shifted.reshape(-1)[:: m + 1]
        diagonal += sigma
        if _has_factor(shifted):
            error = unit * ((terms + 2) * frobenius**2 + 1.01 * (m + 2) * m * sigma)
            return min(math.sqrt(sigma + error), frobenius)
    return frobenius


def _has_factor(matrix: Array) -> bool:
    """Whether a symmetric matrix has a Cholesky factor in floating point."""
    if is_numpy(matrix):  # not SciPy's: its library and NumPy's would wait for each other's threads
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return False
        return True
    import torch

    return torch.linalg.cholesky_ex(matrix).info.item() == 0


def _single(a: Array) -> Array:
    """In float32."""
    return a.astype(np.float32) if is_numpy(a) else a.to(xp(a).float32)


def row_norms(a: Array) -> np.ndarray:
    """(n,) of (n, m), on the host, without overflow or underflow on the way."""
    squares = np.einsum("ij,ij->i", a, a) if is_numpy(a) else (a * a).sum(1)
    plain = np.sqrt(to_numpy(squares))
    if ((plain > 1e-140) & (plain < 1e140)).all():
        return plain
    largest = _largest(a)
    safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    scaled = a / put(safe, a.device)[:, None]
    return largest * np.sqrt(to_numpy((scaled * scaled).sum(1)))


def _largest(a: Array) -> np.ndarray:
    """The largest |aᵢⱼ| of each row, (n,) on the host."""
    if is_numpy(a):  # without an array in between
        return np.maximum(a.max(axis=1), -a.min(axis=1))
    return to_numpy(xp(a).max(xp(a).abs(a), axis=1))


class _Error(NamedTuple):
    """The norm `size` (n,) of a vector of m entries of each of n samples, and its error.

    worst: a bound on the norm of the error, (n,). certain: what of it no model makes smaller, (n,).
    noise: of the model, (passes, n, m) float32 in units of `unit`, (n,). rounded: under the model,
    the last rounding, which the noise of what follows counts, (n,).
    """

    size: np.ndarray
    worst: np.ndarray
    certain: np.ndarray
    noise: Array
    unit: np.ndarray
    rounded: np.ndarray

    def by_grade(self) -> "_Size":
        """Under the model: LAMBDA times the root mean square of the noise, and what is certain."""
        noise = self.noise
        if is_numpy(noise):  # without an array in between
            squares = np.einsum("pij,pij->i", noise, noise)
        else:
            squares = to_numpy((noise * noise).sum((0, 2)))
        mean = squares.astype(np.float64) / len(noise)
        model = LAMBDA * np.sqrt(mean) * self.unit + self.certain + self.rounded
        return _Size(self.size, {PROVED: self.worst, MODEL: model})


class _Size(NamedTuple):
    """The norm of a vector of each of n samples, and bounds on its error, by grade; (n,) each."""

    norm: np.ndarray
    error: dict[str, np.ndarray]

    def of(self, rows: slice) -> "_Size":
        """The part of some of the samples."""
        return _Size(self.norm[rows], {grade: e[rows] for grade, e in self.error.items()})


class _Arrived(NamedTuple):
    """An `_Error` of a product with W. entrywise: bounds on the error of every entry, by grade.
    noisy: whether it has noise, (n,)."""

    error: _Error
    entrywise: dict[str, np.ndarray]
    noisy: np.ndarray


def _passes(network: MLP, samples: int) -> int:
    """Passes of noise through the network, for the NTK of so many samples."""
    return math.ceil(max(ROWS_OF_NOISE, ENTRIES_OF_NOISE / network.width) / samples)


class _Pass:
    """The errors of some samples on their way through the layers. samples: of one NTK."""

    def __init__(self, network: MLP, samples: int) -> None:
        self.network, self.shape = network, _shape(network.activation)
        self.scale = math.sqrt(normalisation(network.activation) / network.width)
        self.rough = network.activation.rough
        self.passes = _passes(network, samples)
        self.random = np.random.default_rng(0)

    def exact(self, size: np.ndarray, like: Array) -> _Error:
        """No error: vectors of these norms. like: (…, m) float32."""
        none = np.zeros(len(size))
        noise = xp(like).zeros(
            (self.passes, len(size), like.shape[-1]), dtype=like.dtype, device=like.device
        )
        return _Error(size, none, none, noise, none, none)

    def product(self, before: _Error, w: _Weights, back: bool) -> _Arrived:
        """The error of α Wᵀ, or back of δ W, from that of α or δ."""
        single = w.single if back else w.single.T
        terms, m = single.shape
        longest = w.columns if back else w.rows
        roundings = (terms + 2) * UNIT_ROUNDOFF * before.size
        flushed = np.where(before.size > 0, terms * TINY, 0.0)
        worst = w.spectral * before.worst + w.frobenius * roundings + math.sqrt(m) * flushed
        certain = w.spectral * before.certain + math.sqrt(m) * flushed
        # A partial sum of W α is W without some columns times α without their entries: all of them
        # together are at most `terms` vectors of norm ‖W‖ ‖α‖. Roundings of α count with them.
        steps = math.sqrt(terms + ELEMENTARY**2) * UNIT_ROUNDOFF * w.spectral * before.size
        steps /= math.sqrt(m)
        came = w.scale * before.unit
        near = (came > 1e-6 * steps) & (came < math.inf)
        unit = np.where(near, came, np.maximum(came, steps))
        unit = np.where((unit > 0) & np.isfinite(unit), unit, 1.0)
        noise = self._signs(len(unit), m, single)
        noise *= _column(steps / unit, noise)
        if before.unit.any():
            moved = before.noise.reshape(-1, terms) @ single  # of all passes in one product
            moved = moved.reshape(noise.shape)
            if not near.all():
                moved *= _column(came / unit, noise)
            noise += moved
        error = _Error(np.zeros(0), worst, certain, noise, unit, np.zeros(0))
        if back:
            return _Arrived(error, {}, steps > 0)
        largest = _top(noise)
        entrywise = {
            PROVED: np.minimum(worst, longest * (before.worst + roundings) + flushed),
            MODEL: LAMBDA * largest * unit + certain,
        }
        return _Arrived(error, entrywise, largest > 0)

    def _signs(self, n: int, m: int, like: Array) -> Array:
        """Random signs, (passes, n, m) float32."""
        count = self.passes * n * m
        bits = np.frombuffer(self.random.bytes(-(-count // 8)), np.uint8)
        signs = np.unpackbits(bits, count=count).astype(np.float32)
        signs *= 2
        signs -= 1
        return put(signs.reshape(self.passes, n, m), like.device)

    def gate(self, z: Array, slope: Array, arrived: _Arrived) -> "_Gate":
        """z: preactivations, (n, m), with an error; slope: σ′ of them, times the layer's scale."""
        # a smooth slope of zero has underflowed
        steepest = _largest(slope) / self.scale + (TINY if self.shape.bend else 0.0)
        kinks: dict[str, list[_Kink]] = {}
        most: dict[str, np.ndarray] = {}
        for grade, bound in arrived.entrywise.items():
            kinks[grade], most[grade] = [], steepest + self._bent(steepest, bound)
        for place, jump, side in self.shape.jumps:
            distance = xp(z).abs(z - place if place else z)
            closest = to_numpy(xp(z).min(distance, axis=1))
            for grade, bound in arrived.entrywise.items():
                rows = np.flatnonzero((closest <= bound) & (bound > 0))
                if len(rows):
                    which, columns = np.nonzero(to_numpy(distance)[rows] <= bound[rows, None])
                    kinks[grade].append(_Kink(jump, rows[which], columns))
                    most[grade][rows] = np.maximum(most[grade][rows], side)
        flat, bends = self.network.activation.flat, {}
        if flat < math.inf:
            bends = {
                g: ~(abs(z) - put(e, z.device)[:, None] > flat)
                for g, e in arrived.entrywise.items()
            }
        if not self.shape.bend:  # nothing else asks for the noise
            arrived = arrived._replace(error=arrived.error._replace(noise=arrived.error.noise[:0]))
        return _Gate(arrived, slope, *self._relative(slope, steepest), most, kinks, bends)

    def _relative(self, slope: Array, steepest: np.ndarray) -> tuple[Array, np.ndarray, np.ndarray]:
        """Slopes in float32, relative to `unit`, (n,), so that they keep within its range."""
        largest = self.scale * steepest
        if ((largest > 1e-3) & (largest < 1e3)).all():
            return _single(slope), np.ones(len(largest)), steepest
        safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        relative = _single(slope / put(safe, slope.device)[:, None])
        return relative, np.where(largest > 0, safe, 0.0), steepest

    def _bent(self, steepest: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """By how much |σ′| may grow where a preactivation moves so far."""
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.expm1(self.shape.relative * moved) * steepest
        relative = np.where(moved > 0, relative, 0.0)
        return np.fmin(self.shape.bend * moved, relative)

    def activated(self, gate: "_Gate", noise: Array, value: Array) -> _Error:
        """The error of a layer's output, value: (n, m), with a bias (n, m + 1). noise: that has
        arrived."""
        size, error = row_norms(value), gate.arrived.error
        rounded = ELEMENTARY * UNIT_ROUNDOFF * size
        flushed = np.where(gate.most[PROVED] > 0, math.sqrt(value.shape[1]) * TINY, 0.0)
        worst = self.scale * gate.most[PROVED] * error.worst + rounded + flushed
        certain = self.scale * gate.most[MODEL] * error.certain + flushed
        for kink in gate.kinks[MODEL]:  # which stops the noise
            reach = kink.jump * gate.arrived.entrywise[MODEL]
            certain += self.scale * reach * np.bincount(kink.rows, minlength=len(size))
        noise, unit = noise * gate.relative, error.unit * gate.unit
        noise, unit, lost = _in_range(noise, unit, gate, gate.arrived.noisy)
        certain = np.where(lost, math.inf, certain)
        if value.shape[1] > noise.shape[2]:  # the bias has no error
            noise = xp(noise).concat([noise, 0 * noise[..., :1]], axis=2)
        return _Error(size, worst, certain, noise, unit, rounded)

    def returned(self, gate: "_Gate", came: _Arrived, arriving: Array, delta: Array) -> _Error:
        """The error of δ = σ′ arriving. arriving: (n, m), or one row for all; delta: (n, m)."""
        n, shape, forward = len(delta), self.shape, gate.arrived
        arrived, size = row_norms(arriving), row_norms(delta)
        arrived = np.broadcast_to(arrived, (n,))
        rounded = 2 * ELEMENTARY * UNIT_ROUNDOFF * size
        if self.rough:
            rounded += self.scale * self.rough * ELEMENTARY * UNIT_ROUNDOFF * arrived
        flushed = math.sqrt(delta.shape[1]) * TINY * (1 + arrived)
        errors = {}
        for grade, incoming in ((PROVED, came.error.worst), (MODEL, came.error.certain)):
            errors[grade] = self.scale * gate.most[grade] * incoming
            errors[grade] += np.where(gate.most[grade] > 0, flushed, 0.0)
            for kink in gate.kinks[grade]:
                errors[grade] += self.scale * kink.norm(arriving, n)
        errors[PROVED] += rounded
        if shape.bend:
            bound = forward.entrywise[PROVED]
            with np.errstate(over="ignore", invalid="ignore"):
                relative = np.where(bound > 0, np.expm1(shape.relative * bound), 0.0)
            bent = arriving * gate.bends.get(PROVED, 1)
            moved = np.minimum(forward.error.worst * _largest(bent), bound * row_norms(bent))
            errors[PROVED] += np.fmin(self.scale * shape.bend * moved, relative * size)
        noise, unit = came.error.noise * gate.relative, came.error.unit * gate.unit
        noisy = came.noisy
        if shape.bend:
            noise, unit = self._with_bend(gate, arriving, noise, unit)
            noisy = noisy | (forward.noisy & (arrived > 0))
        noise, unit, lost = _in_range(noise, unit, gate, noisy)
        certain = np.where(lost, math.inf, errors[MODEL])
        return _Error(size, errors[PROVED], certain, noise, unit, rounded)

    def _with_bend(
        self, gate: "_Gate", arriving: Array, noise: Array, unit: np.ndarray
    ) -> tuple[Array, np.ndarray]:
        """And the noise of the slope itself, |σ″| times that of the preactivation."""
        functions, error = xp(gate.slope), gate.arrived.error
        limit = self.scale * self.shape.bend
        arriving = arriving * gate.bends.get(MODEL, 1)
        steep = arriving * limit
        if self.shape.relative < math.inf:
            bend = functions.abs(gate.slope) * self.shape.relative
            steep = arriving * functions.clip(bend, 0, limit)
        largest = np.broadcast_to(_largest(steep), unit.shape)
        safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        bend_unit = error.unit * np.where(largest > 0, safe, 0.0)
        joint = np.maximum(unit, bend_unit)
        joint = np.where((joint > 0) & np.isfinite(joint), joint, 1.0)
        turned = error.noise * _single(steep / put(safe.copy(), steep.device)[:, None])
        turned *= _column(bend_unit / joint, turned)
        return noise * _column(unit / joint, noise) + turned, joint


class _Kink(NamedTuple):
    """Preactivations that may be on either side of a kink, and by how much σ′ differs there."""

    jump: float
    rows: np.ndarray
    columns: np.ndarray

    def norm(self, arriving: Array, n: int) -> np.ndarray:
        """The norm of jump times what arrives there, for each sample; (n,)."""
        rows = self.rows if len(arriving) == n else np.zeros_like(self.rows)
        values = to_numpy(arriving)[rows, self.columns]
        return np.sqrt(np.bincount(self.rows, (self.jump * values) ** 2, minlength=n))


class _Gate(NamedTuple):
    """A layer's σ′. relative: in float32, in units of `unit`, (n,). most: its largest value between
    exact and computed preactivations, by grade. bends: where it may change there, (n, m), of an
    activation with flat parts."""

    arrived: _Arrived
    slope: Array
    relative: Array
    unit: np.ndarray
    steepest: np.ndarray
    most: dict[str, np.ndarray]
    kinks: dict[str, list[_Kink]]
    bends: dict[str, Array]


def _in_range(
    noise: Array, unit: np.ndarray, gate: _Gate, noisy: np.ndarray
) -> tuple[Array, np.ndarray, np.ndarray]:
    """Noise of a size that float32 holds through the next layer, and its unit; and whether it is
    lost, (n,): there was some, noisy (n,), a slope is no underflow, and nothing is left in float32,
    as where neurons of very different size meet."""
    top = _top(noise)
    lost = noisy & (gate.steepest > 1e-290) & ~(top > 0)
    if ((top > 0) & (top < 1e-6)).any():
        safe = np.where(top > 0, np.fmax(top, 1e-37), 1.0)
        noise, unit = noise * _column(1 / safe, noise), unit * safe
    return noise, unit, lost


def _top(noise: Array) -> np.ndarray:
    """The largest of each sample, (n,) on the host."""
    functions = xp(noise)
    top = functions.max(noise, axis=(0, 2)), -functions.min(noise, axis=(0, 2))
    return np.maximum(*(to_numpy(a) for a in top)).astype(np.float64)


def _column(values: np.ndarray, like: Array) -> Array:
    """(1, n, 1) float32."""
    return put(np.nan_to_num(values).astype(np.float32), like.device)[None, :, None]


Known = tuple[list[LayerGradient], KernelError]  # factored gradients, and the error of their NTK


@dataclass(frozen=True)
class WithError:
    """A function from samples x, (n, d) float64 on the weights' device. together: of each so many
    of them, in one pass; None where a pass costs little."""

    network: MLP
    of_all: Callable[[Array], Known]
    together: Callable[[Array, int], list[Known]] | None = None

    def __call__(self, x: Array) -> Known:
        return self.of_all(x)

    def blocks(self, x: np.ndarray, n: int, device: Device) -> Iterator[Known]:
        """What is known of each n samples; small blocks pass together. x: (blocks n, d) on the
        host; device: that of the weights."""
        count = max(1, AT_ONCE // (n * _passes(self.network, n))) if self.together else 1
        for start in range(0, len(x), count * n):
            samples = put(x[start : start + count * n].astype(np.float64), device)
            if count > 1 and self.together:
                yield from self.together(samples, n)
            else:
                yield self.of_all(samples)


def gradients_with_error(network: MLP, weights: Sequence[Array]) -> WithError:
    """`MLP.gradients`, and what is known of the error of their NTK: a function from x, (n, d)
    float64 on the weights' device.

    weights: W¹ … Wᴸ⁺¹ of one output, float64. Both grades; of an activation that does not state its
    `bend`, an estimate.

    >>> import numpy as np, ntkcond
    >>> network = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=64)
    >>> factors, error = gradients_with_error(network, network.initial_weights(1, 5))(np.eye(5))
    >>> error.bounds["model"].norm(10.0) < error.bounds["proved"].norm(10.0) < 1e-11
    True
    """
    if network.is_linear:
        return _of_linear(network, weights)
    return layer_gradients_with_error(network, weights)


def layer_gradients_with_error(network: MLP, weights: Sequence[Array]) -> WithError:
    """`gradients_with_error`; by layers also of a linear network (`MLP.layer_gradients`)."""
    known = [_prepared(w) for w in weights]

    def of_all(x: Array) -> Known:
        parts = [slice(start, start + AT_ONCE) for start in range(0, len(x), AT_ONCE)]
        factors, error = _of_part(network, x[parts[0]], weights, known)[0]
        if len(parts) == 1:
            return factors, error
        whole = [_room(layer, len(x)) for layer in factors]
        for part in parts:
            if part.start:
                factors, more = _of_part(network, x[part], weights, known)[0]
                error = error.joined(more)
            for room, layer in zip(whole, factors, strict=True):
                room.forward[part] = layer.forward
                if room.backward is not None:
                    room.backward[part] = layer.backward
        return whole, error

    def together(x: Array, n: int) -> list[Known]:
        return _of_part(network, x, weights, known, n)

    return WithError(network, of_all, together)


def _room(layer: LayerGradient, n: int) -> LayerGradient:
    """For the factors of n samples."""

    def room(a: Array | None) -> Array | None:
        return None if a is None else xp(a).empty((n, a.shape[1]), dtype=a.dtype, device=a.device)

    return LayerGradient(*(room(a) for a in layer))


@np.errstate(over="ignore", invalid="ignore")  # then the bound is no number, and K unresolved
def _of_part(
    network: MLP,
    x: Array,
    weights: Sequence[Array],
    known: Sequence[_Weights],
    block: int | None = None,
) -> list[Known]:
    """What is known of each block of so many samples; of all together by default."""
    trace = Trace([], [], [], [], [])
    factors = network.layer_gradients(x, weights, trace)
    n = len(x)
    block = block or n
    way = _Pass(network, block)
    error = way.exact(row_norms(trace.forward[0]), known[0].single)
    forward, gates = [error.by_grade()], []
    for z, slope, value, w in zip(trace.z, trace.slopes, trace.forward[1:], known, strict=False):
        arrived = way.product(error, w, back=False)
        gates.append(way.gate(z, slope, arrived))
        error = way.activated(gates[-1], arrived.error.noise, value)
        forward.append(error.by_grade())
    error = way.exact(np.ones(n), known[-1].single[:, :1])
    backward = [error.by_grade()]
    for layer in range(network.depth, 0, -1):
        gate, w, arriving = gates[layer - 1], known[layer], trace.arriving[-layer]
        m = gate.slope.shape[1]  # without the bias
        w = w._replace(single=w.single[:, :m])
        if layer == network.depth:  # W alone, exactly
            came = _Arrived(way.exact(np.zeros(n), w.single), {}, np.zeros(n, dtype=bool))
        else:
            came = way.product(error, w, back=True)
        error = way.returned(gate, came, arriving, trace.deltas[-layer])
        backward.insert(0, error.by_grade())
    of_blocks = []
    for start in range(0, n, block):
        rows = slice(start, start + block)
        kinks = {
            grade: sum(
                int(((k.rows >= start) & (k.rows < start + block)).sum())
                for gate in gates
                for k in gate.kinks[grade]
            )
            for grade in (PROVED, MODEL)
        }
        of_block = [factor.rows(rows) for factor in factors]
        sizes = ([size.of(rows) for size in way[: len(factors)]] for way in (forward, backward))
        error = _collected(*sizes, of_block, kinks)
        if network.activation.bend is None:
            error = KernelError({ESTIMATED: error.bounds[MODEL]})
        of_blocks.append((of_block, error))
    return of_blocks


def _collected(
    forward: Sequence[_Size],
    backward: Sequence[_Size],
    factors: Sequence[LayerGradient],
    kinks: dict[str, int],
) -> KernelError:
    """From the errors of both factors of each layer."""
    bounds, gone = {}, np.ones(len(forward[0].norm), dtype=bool)
    for grade in (PROVED, MODEL):
        squared, products = np.zeros(len(gone)), 0.0
        for a, d, factor in zip(forward, backward, factors, strict=True):
            of_a, of_d = a.error[grade], d.error[grade]
            squared += (of_a * d.norm + a.norm * of_d + of_a * of_d) ** 2
            size = (a.norm * d.norm) ** 2
            lengths = [p.shape[1] for p in factor if p is not None]
            relative = _rounding_of_products(grade, lengths, len(forward))
            flushed = lengths[0] * d.norm**2 + lengths[-1] * a.norm**2 + 1
            products += float((relative * size + TINY * np.where(size > 0, flushed, 0.0)).sum())
            if grade == PROVED:
                gone &= (a.norm + of_a == 0) | (d.norm + of_d == 0)  # their product may underflow
        bounds[grade] = Bound(
            SECOND_ORDER**2 * float(squared.sum()), SECOND_ORDER * products, kinks[grade]
        )
    return KernelError(bounds, int(gone.sum()))


def _rounding_of_products(grade: str, lengths: Sequence[int], layers: int) -> float:
    """The rounding of an entry of (A Aᵀ) ∘ (Δ Δᵀ), relative to the norms in it, with that of the
    sum of layers; under the model, of the matrix relative to the sum of these norms' squares, each
    entry below the diagonal standing in two places."""
    if grade == PROVED:
        return (sum(lengths) + layers + 4) * UNIT_ROUNDOFF
    roots = sum(math.sqrt(k) for k in lengths) + math.sqrt(layers) + 4
    return math.sqrt(2) * LAMBDA * roots * UNIT_ROUNDOFF


def _of_linear(network: MLP, weights: Sequence[Array]) -> WithError:
    """K = Φ Φᵀ with Φ = X Rᵀ, R the triangular factor of the stacked S (`MLP.linear_factor`): the
    errors of S, of RᵀR as it is found, of Φ, and of its products."""
    factor = network.linear_factor(weights)
    of_stack, of_factor = _stack_error(network, weights, factor)
    spectral = _largest_singular_value(factor)
    frobenius = float(xp(factor).linalg.matrix_norm(factor))
    d, transposed = len(factor), factor.T
    diagonal = network.depth == 0 or network.trainable == "first"

    def of_all(x: Array) -> Known:
        inputs = network.with_bias(x)
        features = LayerGradient(inputs @ transposed, None)
        size, squares = row_norms(inputs), row_norms(features.forward) ** 2
        bounds = {}
        for grade in (PROVED, MODEL):
            moved = (d + 2) * frobenius if grade == PROVED else LAMBDA * math.sqrt(d + 2) * spectral
            moved = of_stack[grade] + UNIT_ROUNDOFF * (2 * spectral if diagonal else moved)
            moved = size * moved + np.where(size > 0, d * math.sqrt(d) * TINY, 0.0)
            products = size**2 * of_factor[grade] + TINY * np.where(size > 0, d, 0)
            products += _rounding_of_products(grade, [d], 1) * squares
            bounds[grade] = Bound(
                SECOND_ORDER**2 * float((moved**2).sum()), SECOND_ORDER * float(products.sum())
            )
        return [features], KernelError(bounds, int((size == 0).sum()))

    return WithError(network, of_all)


def _stack_error(
    network: MLP, weights: Sequence[Array], factor: Array
) -> tuple[dict[str, float], dict[str, float]]:
    """Bounds on ‖δS‖_F and on ‖RᵀR − SᵀS‖, by grade."""
    none = {PROVED: 0.0, MODEL: 0.0}
    if not network.depth:
        return none, none
    products, deltas = network.linear_parts(weights)
    known = [_prepared(w) for w in weights]
    relative = _relative_errors(network, known, deltas)
    norms = [_norm(delta) for delta in deltas]
    if network.trainable == "first":
        return {g: relative[0][g] * norms[0] * math.sqrt(len(factor)) for g in none}, none
    way = _Pass(network, len(factor))
    column = way.exact(np.ones(len(factor)), known[0].single)
    squared = dict(none)
    for layer, product in enumerate(products):
        if layer:
            arrived = way.product(column, known[layer - 1], back=False).error
            column = _scaled(arrived, row_norms(product.T), way.scale, len(product))
        for grade, errors in column.by_grade().error.items():
            moved = float(np.linalg.norm(errors))
            rounded = (relative[layer][grade] + ELEMENTARY * UNIT_ROUNDOFF) * _norm(product)
            step = (moved + rounded) * norms[layer]
            squared[grade] += step * step  # ** raises OverflowError
    functions = xp(factor)
    stack = functions.concat([p * n for p, n in zip(products, norms, strict=True)])
    residual = _norm(factor.T @ factor - stack.T @ stack)
    rows, total = len(stack) + len(factor), _norm(stack)
    largest = _largest_singular_value(factor)
    of_factor = {
        PROVED: residual + 2 * rows * UNIT_ROUNDOFF * total * total,
        MODEL: residual + 2 * LAMBDA * math.sqrt(rows) * UNIT_ROUNDOFF * total * largest,
    }
    return {grade: math.sqrt(value) for grade, value in squared.items()}, of_factor


def _relative_errors(
    network: MLP, known: Sequence[_Weights], deltas: Sequence[Array]
) -> list[dict[str, float]]:
    """Relative errors of the norms of δ¹ … δᴸ⁺¹, each a product of the weights behind it."""
    way, width = _Pass(network, 1), int(network.width)
    vector = way.exact(np.ones(1), known[-1].single[:, :1])
    relative = [{PROVED: 0.0, MODEL: 0.0}]
    for w, delta in zip(known[:0:-1], reversed(deltas[:-1]), strict=True):
        arrived = way.product(vector, w._replace(single=w.single[:, :width]), back=True).error
        vector = _scaled(arrived, np.array([_norm(delta)]), way.scale, width)
        size = max(float(vector.size[0]), TINY)
        errors = vector.by_grade().error
        relative.append({grade: float(error[0]) / size for grade, error in errors.items()})
    return relative[::-1]


def _scaled(arrived: _Error, size: np.ndarray, scale: float, m: int) -> _Error:
    """The error of a layer without an activation; m with its bias."""
    noise, rounded = arrived.noise, 4 * UNIT_ROUNDOFF * size
    if m > noise.shape[2]:
        noise = xp(noise).concat([noise, 0 * noise[..., :1]], axis=2)
    worst, certain = scale * arrived.worst + rounded, scale * arrived.certain
    return _Error(size, worst, certain, noise, scale * arrived.unit, rounded)


def _largest_singular_value(a: Array) -> float:
    """NaN of a matrix that is not finite, on which LAPACK fails."""
    finite = math.isfinite(float(_largest(a).max()))
    return float(xp(a).linalg.matrix_norm(a, ord=2)) if finite else math.nan


def _norm(a: Array) -> float:
    return float(xp(a).linalg.vector_norm(xp(a).reshape(a, (-1,))))
