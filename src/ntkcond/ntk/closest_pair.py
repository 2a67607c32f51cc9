"""The closest pair of gradients among many samples: most pairs are ruled out, with proof.

cos φ_ij = ⟨uᵢ, uⱼ⟩ with unit gradients u = ∇f/‖∇f‖ (Def. 2.1). Let p be a gradient's coordinates in
some orthonormal directions, and r = √(1 − ‖p‖²) the length of the rest. By Cauchy–Schwarz

    cos φ_ij ≤ ⟨pᵢ, pⱼ⟩ + rᵢ rⱼ,

a product of short vectors, where a kernel entry takes d + 2 L m. A pair whose right-hand side is
below a known cosine is ruled out. Good directions are the leading ones of the gradients of a few
samples, the landmarks: by the first of them alone most pairs are ruled out, by more of them most
that are left. How many come first is chosen by a sample of rows. Right-hand sides are computed in
float32, with a bound on their rounding.

Bounds on rounding are the classical ones, of sums of k products in any order,
|fl(x·y) − x·y| ≤ γₖ ‖x‖ ‖y‖ with γₖ = k u / (1 − k u) (Higham, Accuracy and Stability of Numerical
Algorithms, 3.1).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ntkcond.arrays.backend import Array, float32_is_exact, on_cpu, to_numpy, xp
from ntkcond.networks.mlp import LayerGradient
from ntkcond.run.errors import UserError

LANDMARKS, SAMPLES_A_LANDMARK = 512, 8  # at most; fewer for few samples
FIRST_DIRECTIONS = (16, 32, 64, 128, 256)  # that may come first; then four times as many, then all
PAIR_COSTS = 2e4  # directions for all pairs, as long as one gathered pair takes
ROWS, COUNTED = 2048, 64  # of the first cosine: its pairs' rows; of these, to choose by, at most
BRUTE_FORCE_UP_TO = 512  # samples: below, landmarks cost as much as all pairs
PAIRS_AT_ONCE = 2048  # gathered one by one; for more than twice as many, a whole tile is faster
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24}
UNDERFLOW = 2.0**-100  # more than all that a sum of fewer than 2²⁰ products loses below 2⁻¹²⁶


class ClosestPair(NamedTuple):
    """The two samples whose gradients have the smallest angle, in degrees; vanished: number of
    samples whose gradient is 0, left out."""

    angle_deg: float
    first: int
    second: int
    vanished: int


class PairTile(NamedTuple):
    """Two ranges of positions among the samples, `rows` at or below `columns`."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class UnitGradients:
    """The unit gradients of the samples `index`, (n,), computed from the factors tile by tile.

    lengths: of each layer the norms of its factors, and the share ‖Aˡ⁻¹‖ ‖Δˡ‖ / ‖∇f‖ that the layer
    has in the gradient's norm, (samples,) each.
    """

    factors: Sequence[LayerGradient]
    lengths: Sequence[tuple[Array, Array, Array]]
    index: Array

    def cosine_error(self, dtype: str) -> float:
        """A bound on the rounding error of a cosine.

        A sum of k products in each of two inner products, their product, a sum over the layers,
        and the four factors themselves rounded to dtype: γ of 2 k + L + 8. In float64 before that:
        k + 4 roundings in a norm, 6 k + 2 L + 50 in both factors of a sample, for two samples.
        """
        longest = max(part.shape[1] for f in self.factors for part in f if part is not None)
        layers = len(self.factors)
        products = gamma(2 * longest + layers + 8, dtype) + UNDERFLOW
        return products + 1.01 * gamma(12 * longest + 4 * layers + 100, "float64")

    def layers(self, positions: slice | Array, dtype: str = "float64") -> Iterator[LayerGradient]:
        """Factors of the unit gradients of some of the samples, layer by layer: those of forward of
        norm 1, those of backward of the layer's share."""
        rows = self.index[positions]
        for (forward, backward), (long, high, share) in zip(
            self.factors, self.lengths, strict=True
        ):
            unit = forward[rows]
            unit /= long[rows, None]
            if backward is None:
                unit *= share[rows, None]
                yield LayerGradient(_as(unit, dtype), None)
            else:
                scaled = backward[rows]
                scaled /= high[rows, None]
                scaled *= share[rows, None]
                yield LayerGradient(_as(unit, dtype), _as(scaled, dtype))

    def cosines(self, rows: slice | Array, columns: slice | Array, dtype: str = "float64") -> Array:
        """cos φ of each of the rows with each of the columns: Σₗ (Aᵣ Aᵪᵀ) ∘ (Δᵣ Δᵪᵀ)."""
        total = None
        for r, c in zip(self.layers(rows, dtype), self.layers(columns, dtype), strict=True):
            product = r.forward @ c.forward.T
            if r.backward is not None:
                product *= r.backward @ c.backward.T
            if total is None:
                total = product
            else:
                total += product
        return total

    def cosines_of_pairs(self, first: Array, second: Array) -> Array:
        """cos φ of each first with its second, float64."""
        total = 0.0
        for f, s in zip(self.layers(first), self.layers(second), strict=True):
            product = (f.forward * s.forward).sum(1)
            if f.backward is not None:
                product *= (f.backward * s.backward).sum(1)
            total = total + product
        return total

    def angle(self, first: int, second: int) -> float:
        """φ of two samples in radians, by the distance of their unit gradients: near parallel
        gradients an arc cosine has lost it to rounding.

        ‖b aᵀ − d cᵀ‖² = ‖b − d‖² ‖a‖² + ‖d‖² ‖a − c‖² + 2 ⟨b − d, d⟩ ⟨a, a − c⟩; the sign that a
        and b share is chosen so that a and c are less than 90° apart, and nothing cancels."""
        pair = xp(self.index).asarray([first, second], device=self.index.device)
        squared = 0.0
        for forward, backward in self.layers(pair):
            (a, c), change = forward, forward[0] - forward[1]
            if backward is None:
                squared += float(change @ change)
                continue
            b, d = backward
            if float(a @ c) < 0:
                a, b, change = -a, -b, -(a + c)
            across = b - d
            squared += float(across @ across) * float(a @ a) + float(d @ d) * float(change @ change)
            squared += 2 * float(across @ d) * float(a @ change)
        return 2 * math.atan2(math.sqrt(max(squared, 0.0)), math.sqrt(max(4 - squared, 0.0)))


def _as(values: Array, dtype: str) -> Array:
    """The values in this type, copied only if of another."""
    functions = xp(values)
    return functions.astype(values, getattr(functions, dtype), copy=False)


def closest_gradients(
    factors: Sequence[LayerGradient],
    tile: int | None = None,
    near: Sequence[tuple[int, int]] = (),
) -> ClosestPair:
    """The smallest angle between gradients, φ = arccos(K_ij / √(K_ii K_jj)) over i ≠ j (Def. 2.1).

    factors: of n samples, from a `ntkcond.networks.mlp.GradientMap`, float64. tile: samples in one
    comparison with as many others. near: pairs of samples that may well have a small angle, as that
    of another initialisation: the search is faster then.

    The result is that of a comparison of all cosines in float64, in some order of summation. Among
    pairs that these cannot distinguish, as with angles below 10⁻⁶ degrees, it is any one; its angle
    is exact to rounding. Remove duplicates and zero rows first (`ntkcond.datasets.duplicates`);
    gradients that vanish, as when a sample switches off a whole layer of a narrow ReLU network, are
    left out here.

    Raises UserError if fewer than two gradients are left, or one is beyond float64.
    """
    samples = len(factors[0].forward)
    tile = tile or (1024 if on_cpu(factors[0].forward) else 4096)
    unit = unit_gradients(factors)
    if len(unit.index) < 2:
        raise UserError(
            f"only {len(unit.index)} of {samples} samples have a gradient other than 0: no angle"
            " exists. A network this narrow and deep is switched off. Raise width"
        )
    if len(unit.index) <= BRUTE_FORCE_UP_TO:
        _, *pair = _all_pairs(unit, tile)
    else:
        place = {sample: position for position, sample in enumerate(to_numpy(unit.index).tolist())}
        known = [(place[a], place[b]) for a, b in near if a in place and b in place]
        _, *pair = _pruned(unit, tile, known)
    first, second = sorted(pair)
    return ClosestPair(
        math.degrees(unit.angle(first, second)),
        int(unit.index[first]),
        int(unit.index[second]),
        samples - len(unit.index),
    )


def smallest_angle(factors: Sequence[LayerGradient]) -> float:
    """The angle of the closest pair, in degrees; nan if fewer than two gradients do not vanish."""
    if len(factors[0].forward) < 2:
        return math.nan
    try:
        return closest_gradients(factors).angle_deg
    except UserError:
        return math.nan


@np.errstate(over="ignore", invalid="ignore")  # raises UserError instead
def unit_gradients(factors: Sequence[LayerGradient]) -> UnitGradients:
    """The gradients that do not vanish. No norm is squared, which might leave float64's range."""
    functions = xp(factors[0].forward)
    norms = []
    for forward, backward in factors:
        long = _norms(forward)
        norms.append((long, functions.ones_like(long) if backward is None else _norms(backward)))
    size = functions.stack([long * high for long, high in norms])
    largest = functions.max(size, axis=0)
    finite = functions.isfinite(largest)
    if not finite.all():
        raise UserError(
            f"{int((~finite).sum())} gradients are beyond the range of float64. Lower"
            " the depth, or scale the samples down"
        )
    shares = size / _or_one(largest)
    shares /= _or_one(functions.linalg.vector_norm(shares, axis=0))
    lengths = [
        (_or_one(long), _or_one(high), share)
        for (long, high), share in zip(norms, shares, strict=True)
    ]
    return UnitGradients(factors, lengths, functions.nonzero(largest)[0])


def _norms(rows: Array) -> Array:
    """‖·‖ of each row, scaled by its largest entry to avoid overflow."""
    norm, norms = xp(rows).linalg.vector_norm, []
    for start in range(0, len(rows), 1024):
        some = rows[start : start + 1024]
        largest = norm(some, axis=1, ord=math.inf)
        norms.append(largest * norm(some / _or_one(largest)[:, None], axis=1))
    return xp(rows).concat(norms)


def _or_one(lengths: Array) -> Array:
    """Divisors: 0 becomes 1, so that 0 / 0 gives 0."""
    return xp(lengths).where(lengths == 0, 1.0, lengths)


def gamma(terms: int, dtype: str) -> float:
    """γ of a sum of `terms` products."""
    product = terms * UNIT_ROUNDOFF[dtype]
    return product / (1 - product) if product < 0.5 else math.inf


PairCosine = tuple[float, int, int]  # a cosine, and the positions of its two samples


def _tiles(n: int, tile: int) -> Iterator[PairTile]:
    """On and below the diagonal."""
    for row in range(0, n, tile):
        for column in range(0, row + 1, tile):
            yield PairTile(slice(row, min(row + tile, n)), slice(column, min(column + tile, n)))


def _without_the_diagonal(values: Array, tile: PairTile) -> Array:
    """Sets −∞ on and above the diagonal of K."""
    if tile.rows == tile.columns:
        positions = xp(values).arange(len(values), device=values.device)
        values[positions[:, None] <= positions] = -math.inf
    return values


def _largest(values: Array, tile: PairTile) -> PairCosine:
    position = int(values.argmax())
    i, j = divmod(position, values.shape[1])
    return float(values[i, j]), tile.rows.start + i, tile.columns.start + j


def _all_pairs(unit: UnitGradients, edge: int) -> PairCosine:
    """Every cosine in float64."""
    largest = []
    for tile in _tiles(len(unit.index), edge):
        values = unit.cosines(tile.rows, tile.columns)
        largest.append(_largest(_without_the_diagonal(values, tile), tile))
    return max(largest)


@dataclass(frozen=True)
class Ceilings:
    """Upper bounds of cosines: cos φ_ij ≤ ⟨zᵢ, zⱼ⟩ + slack as computed, where z, (n, k + 1), are
    the coordinates p in k directions, the leading ones first, and the length r of the rest. delta:
    a bound on the error of a gradient's coordinates."""

    coordinates: Array
    delta: float
    slack: float

    @property
    def directions(self) -> int:
        """k."""
        return self.coordinates.shape[1] - 1

    def first(self, k: int) -> Array:
        """z in the first k directions alone, (n, k + 1)."""
        if k >= self.directions:
            return self.coordinates
        q = self.coordinates[:, :k]
        return xp(q).concat([q, _rest(q, self.delta)[:, None]], axis=1)

    def products(self, tile: PairTile) -> Array:
        """⟨zᵢ, zⱼ⟩ of a tile, slack not added."""
        z = self.coordinates
        return _without_the_diagonal(z[tile.rows] @ z[tile.columns].T, tile)


def _pruned(unit: UnitGradients, edge: int, near: Sequence[tuple[int, int]] = ()) -> PairCosine:
    """The largest cosine, tile by tile: by more and more directions pairs are ruled out whose
    ceilings are below the largest cosine so far. near: pairs to start from."""
    ceilings = ceilings_of(unit)
    best, k = _start(unit, ceilings, near)
    levels = [ceilings.first(count) for count in sorted({k, min(4 * k, ceilings.directions)})]
    if levels[-1].shape != ceilings.coordinates.shape:
        levels.append(ceilings.coordinates)
    slack = ceilings.slack + unit.cosine_error("float64")  # of cosines that ceilings compare with
    for tile in _tiles(len(unit.index), edge):
        best = max(best, _best_of_tile(unit, tile, levels, best, slack))
    return best


def _start(
    unit: UnitGradients, ceilings: Ceilings, near: Sequence[tuple[int, int]]
) -> tuple[PairCosine, int]:
    """A large cosine, of the pairs `near` and those with the highest ceiling in some rows; and how
    many directions shall come first, by how many pairs of these rows each choice would leave."""
    z, functions, n = ceilings.coordinates, xp(unit.index), len(unit.index)
    count = min(ROWS, -(-n // 16))
    rows = functions.arange(count, device=z.device) * n // count
    highest, columns = functions.full((count,), -math.inf, dtype=z.dtype, device=z.device), rows + 0
    for start in range(0, n, ROWS):
        values = z[rows] @ z[start : start + ROWS].T
        inside = (rows >= start) & (rows < start + ROWS)  # each with itself
        values[inside, rows[inside] - start] = -math.inf
        position = values.argmax(1)
        value = values[functions.arange(count, device=z.device), position]
        higher = value > highest
        highest[higher], columns[higher] = value[higher], position[higher] + start
    pairs = functions.asarray(list(near) or [(0, 1)], device=z.device).T
    best = max(_best_of_pairs(unit, rows, columns), _best_of_pairs(unit, *pairs))

    threshold = best[0] - ceilings.slack - unit.cosine_error("float64")
    some = rows[:: -(-count // COUNTED)]
    costs = {}
    for k in {min(k, ceilings.directions) for k in (*FIRST_DIRECTIONS, ceilings.directions)}:
        first = ceilings.first(k)
        left = int((first[some] @ first.T > threshold).sum()) - len(some)
        costs[k] = k + PAIR_COSTS * max(left, 0) / (len(some) * n)
    return best, min(costs, key=costs.__getitem__)


def _best_of_tile(
    unit: UnitGradients, tile: PairTile, levels: Sequence[Array], best: PairCosine, slack: float
) -> PairCosine:
    """The largest cosine among pairs of a tile whose ceilings, by each of `levels`, are not below
    the best one by more than the slack. If they are many, cosines of the whole tile in float32 rule
    some out; if many remain, it is computed in float64."""
    z = levels[0]
    values, threshold = z[tile.rows] @ z[tile.columns].T, best[0] - slack
    flat = xp(values).nonzero((values > threshold).reshape(-1))[0]
    first, second = flat // values.shape[1], flat % values.shape[1]
    if tile.rows == tile.columns:
        first, second = first[first > second], second[first > second]
    for z in levels[1:]:
        rows, columns = z[tile.rows], z[tile.columns]
        left = [
            (rows[first[part]] * columns[second[part]]).sum(1) > threshold
            for part in _parts(len(first), PAIRS_AT_ONCE)
        ]
        if left:
            kept = xp(flat).concat(left)
            first, second = first[kept], second[kept]
    if len(first) > 2 * PAIRS_AT_ONCE:
        dtype = _fast_dtype(unit)
        values = unit.cosines(tile.rows, tile.columns, dtype)[first, second]
        errors = unit.cosine_error(dtype) + unit.cosine_error("float64") + UNIT_ROUNDOFF[dtype]
        kept = values > best[0] - errors
        first, second = first[kept], second[kept]
        if len(first) > 2 * PAIRS_AT_ONCE:
            values = unit.cosines(tile.rows, tile.columns)
            return _largest(_without_the_diagonal(values, tile), tile)
    if not len(first):
        return (-math.inf, 0, 0)
    return _best_of_pairs(unit, first + tile.rows.start, second + tile.columns.start)


def _parts(n: int, size: int) -> Iterator[slice]:
    yield from (slice(start, start + size) for start in range(0, n, size))


def _best_of_pairs(unit: UnitGradients, first: Array, second: Array) -> PairCosine:
    largest = []
    for start in range(0, len(first), PAIRS_AT_ONCE):
        f, s = first[start : start + PAIRS_AT_ONCE], second[start : start + PAIRS_AT_ONCE]
        cosines = unit.cosines_of_pairs(f, s)
        position = int(cosines.argmax())
        largest.append((float(cosines[position]), int(f[position]), int(s[position])))
    return max(largest)


def _fast_dtype(unit: UnitGradients) -> str:
    """float32, unless its products are less precise than γ says."""
    return "float32" if float32_is_exact(unit.index) else "float64"


def ceilings_of(unit: UnitGradients) -> Ceilings:
    """In the leading directions of landmarks, up to `LANDMARKS` samples at even distances.

    Let G hold the landmarks' unit gradients (parameters × landmarks), M = GᵀG their cosines, T the
    leading eigenvectors of M over the roots of their eigenvalues, all of it as computed, and
    B = G T. With e ≥ ‖BᵀB − I‖, which is measured, the polar factor W of B has orthonormal columns
    and B = W S, ‖S − I‖ ≤ e. The coordinates p = Wᵀu of a unit gradient u are within e of
    Bᵀu = Tᵀ (Gᵀu), so within δ, the sum of e and of all rounding on the way, of the q that is kept.
    Hence ⟨pᵢ, pⱼ⟩ ≤ ⟨qᵢ, qⱼ⟩ + 2 δ + δ², and 1 − ‖p‖² ≤ 1 − ‖q‖² + 2 δ (1 + δ), whose root, rounded
    up, is kept as r. ‖(q, r)‖² ≤ 1 + 4 δ bounds the rounding of the product itself. All of it holds
    of some columns of W as well.
    """
    n, dtype = len(unit.index), _fast_dtype(unit)
    functions, device = xp(unit.index), unit.index.device
    count = min(LANDMARKS, -(-n // SAMPLES_A_LANDMARK))
    landmarks = functions.arange(count, device=device) * n // count
    gram = unit.cosines(landmarks, landmarks)
    eigenvalues, vectors = functions.linalg.eigh((gram + gram.T) / 2)
    # directions with a tiny share of the landmarks would only amplify rounding
    leading = eigenvalues > 1e-5 * count
    to_coordinates = functions.flip(
        vectors[:, leading] / functions.sqrt(eigenvalues[leading]), axis=1
    )

    cosine_error = unit.cosine_error("float64")
    sums = gamma(2 * count + 2, "float64")
    norm = functions.linalg.matrix_norm  # Frobenius
    size, k = float(norm(to_coordinates)), to_coordinates.shape[1]
    orthonormal = functions.eye(k, dtype=gram.dtype, device=device)
    away = to_coordinates.T @ gram @ to_coordinates - orthonormal
    e = float(norm(away)) + 1.01 * size**2 * count * (cosine_error + sums)
    delta = e + 1.01 * size * math.sqrt(count) * (cosine_error + sums) + 2 * UNIT_ROUNDOFF[dtype]

    kept = functions.empty((n, k + 1), dtype=getattr(functions, dtype), device=device)
    for rows in _parts(n, 1024):
        q = _as(unit.cosines(rows, landmarks) @ to_coordinates, dtype)
        kept[rows, :-1] = q
        kept[rows, -1] = _rest(q, delta)
    product = gamma(k + 1, dtype) * (1 + 5 * delta)
    # one more rounding: of the threshold
    slack = 2 * delta + delta**2 + product + 2 * UNIT_ROUNDOFF[dtype] + UNDERFLOW
    return Ceilings(kept, delta, slack)


def _rest(q: Array, delta: float) -> Array:
    """r, (n,), rounded up, of coordinates q within delta of the exact ones; of their type."""
    rest = 1 - (_as(q, "float64") ** 2).sum(1) + 3 * delta
    dtype = "float32" if q.dtype == xp(q).float32 else "float64"
    return _as(xp(q).sqrt(rest.clip(0)) * (1 + 4 * UNIT_ROUNDOFF[dtype]), dtype)
