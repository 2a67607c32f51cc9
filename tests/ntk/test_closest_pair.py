"""The closest pair found by pruning, against all pairs in extended precision on hard data; and the
bounds that rule pairs out, pair by pair. `pytest --thorough`: of more networks, in more tiles."""

import itertools

import numpy as np
import pytest
import torch

from ntkcond.arrays.backend import Device, put, to_numpy, xp
from ntkcond.datasets.samples import choose
from ntkcond.networks.mlp import LayerGradient
from ntkcond.ntk import closest_pair as module
from ntkcond.ntk.closest_pair import ceilings_of, closest_gradients, unit_gradients
from ntkcond.run.errors import UserError
from small_networks import gradients_of, weights_of
from thoroughness import how_many

N, FEATURES = 203, 6


@pytest.fixture(autouse=True)
def _pruning_of_few_samples(monkeypatch):
    monkeypatch.setattr(module, "BRUTE_FORCE_UP_TO", 0)
    monkeypatch.setattr(module, "LANDMARKS", 40)
    monkeypatch.setattr(module, "SAMPLES_A_LANDMARK", 5)
    monkeypatch.setattr(module, "FIRST_DIRECTIONS", (2, 6))


def gaussian(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((N, FEATURES))


def near_ties(rng: np.random.Generator) -> np.ndarray:
    """Fifty pairs at angles that agree to ten digits or so."""
    centres = np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0]
    x = gaussian(rng)
    for pair in range(50):
        one, other = centres[pair % FEATURES], centres[(pair + 1) % FEATURES]
        x[2 * pair] = one
        x[2 * pair + 1] = one + 1e-3 * (1 + 1e-10 * pair) * other
        x[2 * pair : 2 * pair + 2] *= 1.0 + pair
    return x


def near_parallel(rng: np.random.Generator) -> np.ndarray:
    """All within a few hundredths of a degree of one direction, and one pair closer still."""
    x = rng.standard_normal(FEATURES) + 1e-4 * gaussian(rng)
    x[100] = x[17] + 1e-6 * rng.standard_normal(FEATURES)
    return x


def parallel(rng: np.random.Generator) -> np.ndarray:
    """Every sample has multiples: many pairs with an angle of exactly 0 in ReLU networks."""
    return np.repeat(gaussian(rng)[: N // 7 + 1], 7, axis=0)[:N] * np.arange(1, N + 1)[:, None]


def huge_and_tiny(rng: np.random.Generator) -> np.ndarray:
    return gaussian(rng) * 10.0 ** rng.integers(-140, 140, (N, 1))


def clustered(rng: np.random.Generator) -> np.ndarray:
    return 3 * gaussian(rng)[rng.integers(0, 9, N)] + 0.3 * gaussian(rng)


DATA = (gaussian, near_ties, near_parallel, parallel, huge_and_tiny, clustered)
NETWORKS = [("relu", 2), ("linear", 3), ("tanh", 2), ("relu", 5), ("relu", 0), ("relu2", 2)]
SOME = NETWORKS[: how_many("CLOSEST", few=3, thorough=6)]
# of a tile: N is a multiple of 7 and 29; of pairs at once: 4096 takes whole tiles
SIZES = [(29, 1), (64, 4096), (1000, 40), *itertools.product((7, 29, 64, 1000), (1, 40, 4096))]
SIZES = SIZES[: how_many("TILES", few=3, thorough=15)]
EXTENDED = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here"
)


def factors_of(data, activation: str, depth: int, device: Device = "cpu") -> list[LayerGradient]:
    if data is huge_and_tiny and activation == "relu2":
        pytest.skip("squares of squares of 10¹⁴⁰ are beyond float64")
    x = put(data(np.random.default_rng(0)), device)
    return gradients_of(weights_of(1, depth, 9, FEATURES, device), activation)(x)


def exact_cosines(factors: list[LayerGradient]) -> np.ndarray:
    """From whole gradients, in extended precision; −1 for a sample with itself or no gradient."""
    gradients = []
    for forward, backward in factors:
        a = to_numpy(forward).astype(np.longdouble)
        d = np.ones((len(a), 1)) if backward is None else to_numpy(backward)
        d = d.astype(a.dtype)
        gradients.append((d[:, :, None] * a[:, None, :]).reshape(len(a), -1))
    gradients = np.concatenate(gradients, axis=1)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    unit = gradients / np.where(norms == 0, 1, norms)
    cosines = unit @ unit.T
    cosines[norms[:, 0] == 0] = cosines[:, norms[:, 0] == 0] = -1
    np.fill_diagonal(cosines, -1)
    return cosines


@EXTENDED
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("activation", "depth"), SOME)
def test_pruning_finds_the_closest_of_all_pairs(data, activation, depth, device, monkeypatch):
    factors = factors_of(data, activation, depth, device)
    cosines = exact_cosines(factors)
    best, second = np.sort(cosines[np.tril_indices(N, -1)])[:-3:-1]
    for tile, pairs_at_once in SIZES:
        monkeypatch.setattr(module, "PAIRS_AT_ONCE", pairs_at_once)
        pair = closest_gradients(factors, tile, near=[(5, 3), (2, N)] if tile == 29 else ())
        assert best - cosines[pair.first, pair.second] < 2e-15
        if best - second > 2e-15:
            assert cosines[pair.first, pair.second] == best
        assert np.cos(np.radians(pair.angle_deg)) == pytest.approx(float(best), abs=2e-15)


@EXTENDED
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("activation", "depth"), SOME)
def test_no_cosine_is_above_its_ceiling(data, activation, depth, device):
    factors = factors_of(data, activation, depth, device)
    unit = unit_gradients(factors)
    index = to_numpy(unit.index)
    exact = exact_cosines(factors)[np.ix_(index, index)]
    ceilings = ceilings_of(unit)
    for directions in (1, 12, 40):
        z = to_numpy(ceilings.first(directions))
        assert z.dtype == np.float32
        assert z.shape[1] == 1 + min(directions, ceilings.directions)
        assert (exact <= z @ z.T + ceilings.slack).all()
    assert ceilings.slack < 1e-4
    for dtype in ("float32", "float64"):
        error = np.abs(to_numpy(unit.cosines(slice(None), slice(None), dtype)) - exact)
        np.fill_diagonal(error, 0)
        assert error.max() <= unit.cosine_error(dtype) < 3000 * np.finfo(dtype).eps


def a_pair_that_float32_puts_below_others() -> tuple[np.ndarray, tuple[int, int]]:
    """Samples of norm 1, and the closest pair, cos φ = 0.504 + 33 u, u = 2⁻²⁴.

    Unit vectors, which become the directions, so that coordinates are those of the samples; and
    four pairs. Each has four common coordinates of product 0.126. The closest has 284 more of
    7.4·10⁻⁹: less than half a digit of any partial sum, so that float32 loses them, one by one in
    whatever order. The others have none of these, and a cosine that is lower by 8 u and more.
    """
    d, u = 400, 2.0**-24
    common = np.arange(0, d, d // 4)
    free = np.setdiff1d(np.arange(d), common[:, None] + np.arange(4))
    small, alone = free[100:], (free[:50], free[50:100])  # the last: not common, to norm 1
    closest = 4 * 0.126 + 7.4e-9 * len(small)
    pairs = np.zeros((4, 2, d))
    for pair, lower in zip(pairs, (0, 8 * u, 9 * u, 10 * u), strict=True):
        pair[:, common] = np.sqrt(0.126 if lower == 0 else (closest - lower) / 4)
        pair[:, small] = np.sqrt(7.4e-9) if lower == 0 else 0
        for sample, places in zip(pair, alone, strict=True):
            sample[places] = np.sqrt((1 - sample @ sample) / len(places))
        common = common + 1  # far from parallel to the pairs before
    n = d + 8
    x, landmarks = np.empty((n, d)), np.arange(d) * n // d
    others = np.setdiff1d(np.arange(n), landmarks)
    x[landmarks], x[others] = np.eye(d), pairs.reshape(8, d)
    return x, (others[0], others[1])


def test_ceilings_are_close_where_the_directions_span_all_gradients(device):
    """Those of a linear network of six features lie in six dimensions, fewer than landmarks."""
    x = gaussian(np.random.default_rng(0))
    unit = unit_gradients([LayerGradient(put(x, device), None)])
    ceilings, tile = ceilings_of(unit), module.PairTile(slice(100, N), slice(0, 100))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert ceilings.slack < 1e-4
    assert np.abs(to_numpy(ceilings.products(tile)) - x[100:] @ x[:100].T).max() < 1e-4


@pytest.mark.parametrize("pairs_at_once", [1, 4096])  # else whole tiles, in float32 and float64
def test_a_pair_whose_float32_product_is_too_low_is_not_ruled_out(
    device, monkeypatch, pairs_at_once
):
    """The slack decides: without it the others, found first, rule the closest pair out."""
    x, (first, second) = a_pair_that_float32_puts_below_others()
    monkeypatch.setattr(module, "LANDMARKS", x.shape[1])
    monkeypatch.setattr(module, "SAMPLES_A_LANDMARK", 1)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", pairs_at_once)
    factors = [LayerGradient(put(x, device), None)]
    z = to_numpy(ceilings_of(unit_gradients(factors)).coordinates)
    cosines, ceilings = (np.tril(product, -1) for product in (x @ x.T, z @ z.T))
    assert np.unravel_index(cosines.argmax(), cosines.shape) == (second, first)
    second_best = np.sort(cosines.ravel())[-2]
    assert second_best < cosines[second, first]
    if ceilings[second, first] >= second_best:
        pytest.skip("products of float32 are more accurate here: the slack does not decide")
    pair = closest_gradients(factors)
    assert (pair.first, pair.second) == (first, second)


def test_samples_without_a_gradient_are_left_out_and_counted(device):
    factors = factors_of(gaussian, "relu", 2, device)
    alone = closest_gradients(factors)
    concat = xp(factors[0].forward).concat
    padded = [
        LayerGradient(*(part if part is None else concat([0 * part[:3], part]) for part in layer))
        for layer in factors
    ]
    pair = closest_gradients(padded, tile=10)
    assert (pair.first, pair.second) == (alone.first + 3, alone.second + 3)
    assert pair.angle_deg == pytest.approx(alone.angle_deg, rel=1e-12)
    assert (alone.vanished, pair.vanished) == (0, 3)
    zero = factors_of(lambda rng: 0 * gaussian(rng)[:3], "relu", 2, device)
    with pytest.raises(UserError, match="only 0 of 3 samples have a gradient other than 0"):
        closest_gradients(zero)


def test_two_samples_at_an_obtuse_angle(device):
    x = put(np.array([[1.0, 0.0], [-1.0, 1.0]]), device)
    pair = closest_gradients([LayerGradient(x, None)], tile=1)
    assert (pair.angle_deg, pair.first, pair.second) == (pytest.approx(135), 0, 1)


def test_gradients_beyond_float64_are_named(device):
    x = put(np.full((3, 2), 1e200), device)
    with pytest.raises(UserError, match="3 gradients are beyond the range of float64"):
        closest_gradients([LayerGradient(x, x)])


def test_products_of_less_than_float32_are_not_relied_upon():
    """TF32 and bfloat16 round more than the bound allows for."""
    factors = factors_of(gaussian, "relu", 2, torch.device("cpu"))
    torch.set_float32_matmul_precision("medium")
    try:
        assert ceilings_of(unit_gradients(factors)).coordinates.dtype == torch.float64
        lower = closest_gradients(factors)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert lower == closest_gradients(factors)


@pytest.mark.parametrize("depth", [0, 3])
def test_closest_of_5000_mnist_images_is_that_of_all_pairs(real_mnist, depth, monkeypatch):
    x = choose(real_mnist, 5000, seed=0, scale=(-1, 1)).x.astype(np.float64)
    factors = gradients_of(weights_of(1, depth, 64, 784), "relu")(x)
    kernel = np.zeros((5000, 5000))  # by neither ours nor tiles
    for forward, backward in factors:
        product = forward @ forward.T
        kernel += product if backward is None else product * (backward @ backward.T)
    norms = np.sqrt(kernel.diagonal())
    cosines = kernel / norms / norms[:, None]
    np.fill_diagonal(cosines, -1)
    first, second = sorted(divmod(int(cosines.argmax()), 5000))

    monkeypatch.setattr(module, "LANDMARKS", 512)
    whole = []
    alone = module.UnitGradients.cosines_of_pairs
    monkeypatch.setattr(
        module.UnitGradients,
        "cosines_of_pairs",
        lambda self, a, b: (whole.append(len(self.index[a])), alone(self, a, b))[1],
    )
    pair = closest_gradients(factors)
    assert (pair.first, pair.second) == (first, second)
    assert np.cos(np.radians(pair.angle_deg)) == pytest.approx(cosines.max(), abs=1e-14)
    assert sum(whole) < 0.001 * 5000**2 / 2  # and the others were ruled out


@pytest.mark.cuda
@pytest.mark.parametrize(("activation", "depth"), NETWORKS)
def test_closest_pair_on_cuda_is_that_on_the_cpu(activation, depth):
    on_cpu, on_cuda = (
        closest_gradients(factors_of(clustered, activation, depth, device))
        for device in ("cpu", torch.device("cuda"))
    )
    assert on_cuda.angle_deg == pytest.approx(on_cpu.angle_deg, rel=1e-9)
    assert (on_cuda.first, on_cuda.second) == (on_cpu.first, on_cpu.second)
