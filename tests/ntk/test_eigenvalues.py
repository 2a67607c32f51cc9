"""Extreme eigenvalues and their error bounds, held against extended precision (mpmath)."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from adversarial import exactly, network_kernel, unlimited

from ntkcond.arrays.backend import put, to_numpy
from ntkcond.arrays.half import PANEL, Half, half_of
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.ntk import eigenvalues as module
from ntkcond.ntk.eigenvalues import (
    Extremes,
    Spectrum,
    extreme_eigenvalues,
    nonzero_eigenvalues,
    nonzero_spectrum,
    smallest_is_above,
    spectrum,
    with_norm,
    with_proof,
)
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.rounding import (
    MODEL,
    PROVED,
    UNIT_ROUNDOFF,
    Bound,
    KernelError,
    gradients_with_error,
    layer_gradients_with_error,
)
from ntkcond.run.errors import UserError
from small_networks import drawn, gradients_of, inputs, weights_of, with_weights

N = 20


@pytest.fixture(autouse=True)
def _fifty_digits():
    with mpmath.workdps(50):
        yield


def matrix_of(kappa: float, seed: int) -> np.ndarray:
    """A symmetric float64 matrix with eigenvalues from 1/κ to 1, evenly spaced in the log."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.standard_normal((N, N)))[0]
    matrix = (q * np.geomspace(1 / kappa, 1, N)) @ q.T
    return (matrix + matrix.T) / 2


def spectrum_of(kernel, error: float = 0.0, rank_bound: int | None = None) -> Spectrum:
    """The spectrum of a matrix with an error of at most this norm."""
    n = kernel.n if isinstance(kernel, Half) else len(kernel)
    return spectrum(kernel, KernelError.of_matrix(error), n if rank_bound is None else rank_bound)


def exact_extremes(matrix: np.ndarray) -> tuple[mpmath.mpf, mpmath.mpf]:
    eigenvalues = mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True)
    return max(eigenvalues), min(eigenvalues)


@pytest.mark.parametrize("kappa", [1e4, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("cholesky", [False, True], ids=["full", "cholesky-lanczos"])
def test_bound_holds_against_extended_precision(kappa, cholesky, device, monkeypatch):
    if cholesky:
        monkeypatch.setattr(module, "FULL_SPECTRUM_UP_TO", 0)
    for seed in range(2):
        matrix = matrix_of(kappa, seed)
        largest, smallest = exact_extremes(matrix)
        computed = spectrum_of(put(matrix.copy(), device))
        assert computed.extremes.proved != cholesky
        assert abs(computed.lambda_min - smallest) <= computed.error
        low, high = computed.extremes.largest
        assert low <= largest <= high < 1 + 1e-12
        assert computed.error < 1e-13  # and says something: λ_max is 1
        assert computed.kappa_lower <= float(largest / smallest) <= computed.kappa_upper
        if kappa <= 1e12:
            assert computed.verdict == "resolved"
            assert computed.kappa == pytest.approx(float(largest / smallest), rel=1e-13 * kappa)


def with_eigenvalues(eigenvalues: np.ndarray) -> tuple[np.ndarray, float]:
    """Two Householder reflections of a diagonal matrix in extended precision, rounded to float64,
    and the norm of that rounding."""
    n, rng = len(eigenvalues), np.random.default_rng(0)
    matrix = np.diag(eigenvalues)
    for _ in range(2):
        v = rng.standard_normal(n).astype(np.longdouble)
        v /= np.sqrt((v * v).sum())
        image = (matrix * v).sum(1)
        cross = np.outer(v, image - (v @ image) * v)
        matrix -= 2 * (cross + cross.T)
    rounded = np.tril(matrix).astype(np.float64)
    rounded += np.tril(rounded, -1).T
    return rounded, float(np.sqrt(((matrix - rounded) ** 2).sum()))


def test_both_routes_agree_on_a_large_kernel(device):
    """n above FULL_SPECTRUM_UP_TO takes Cholesky and Lanczos, on half of the kernel."""
    n = module.FULL_SPECTRUM_UP_TO + 1
    kernel = empirical_ntk(gradients_of(drawn(0, 2, 64, 40), "relu")(inputs(n, 40)))
    full = np.linalg.eigvalsh(kernel)
    moved = put(kernel.copy(), device)
    extremes = extreme_eigenvalues(moved)
    assert extremes.eigenvalues is None
    assert np.array_equal(to_numpy(moved), kernel)
    residual = kernel @ extremes.vector - extremes.lambda_min * extremes.vector
    assert np.linalg.norm(residual) <= extremes.error
    assert np.linalg.norm(extremes.vector) == pytest.approx(1)
    assert extremes.lambda_max == pytest.approx(full[-1], rel=1e-12)
    assert abs(extremes.lambda_min - full[0]) <= extremes.error
    assert extremes.lambda_min == pytest.approx(full[0], rel=1e-6)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
@pytest.mark.parametrize("smallest", [1e-8, 1e-10, 0.0])
def test_a_planted_smallest_eigenvalue(smallest, device):
    """λ_min above and below its bound; the proof that none is smaller, which fails if one is."""
    n = 2 * PANEL + 17
    eigenvalues = np.geomspace(np.longdouble(1e-7), np.longdouble(1), n)
    eigenvalues[0] = smallest
    kernel, rounding_error = with_eigenvalues(eigenvalues)
    computed = spectrum_of(half_of(put(kernel, device)), rounding_error)
    assert computed.grade == "estimated"  # that none is smaller is not proved
    assert abs(computed.lambda_min - smallest) <= computed.error
    low, high = computed.extremes.largest
    assert low - rounding_error <= 1 <= min(high, computed.extremes.norm) + rounding_error
    assert computed.kappa_lower <= (1 / smallest if smallest else np.inf) <= computed.kappa_upper
    loop = 3 * (n + 1) * UNIT_ROUNDOFF * np.trace(kernel)
    assert computed.error - rounding_error < 1.2 * loop  # 2 PANEL terms in place of n
    resolved = computed.lambda_min > computed.error
    assert computed.verdict == ("resolved" if resolved else "unresolved")

    def proven(sigma: float) -> float | None:
        return smallest_is_above(half_of(put(kernel, device)), sigma)

    if smallest == 1e-8:
        assert resolved and 0.4 * smallest < proven(0.5 * smallest) <= 0.5 * smallest
    assert proven(smallest + 2 * computed.error) is None
    assert proven(5e-8) is None  # between the two smallest


def planted(lambda_max: float, lambda_min: float, error: float, n: int = 3) -> Extremes:
    ends = ((value - error, value + error) for value in (lambda_max, lambda_min))
    return Extremes(lambda_max, lambda_min, *ends, proved=True)


def test_the_interval_of_kappa_has_every_quotient_within_the_error():
    exact = KernelError.of_matrix(0.0)
    computed = Spectrum(planted(10.0, 2.0, 0.5), exact, n=3, rank_bound=3)
    kappas = computed.kappa, computed.kappa_lower, computed.kappa_upper
    assert kappas == (5.0, 9.5 / 2.5, 10.5 / 1.5)
    assert (computed.verdict, computed.grade, computed.error) == ("resolved", "proved", 0.5)
    lost = Spectrum(planted(10.0, 0.2, 0.5), exact, n=3, rank_bound=3)
    assert lost.kappa == lost.kappa_lower == 9.5 / 0.7
    assert (lost.kappa_upper, lost.verdict) == (math.inf, "unresolved")
    assert "κ > 13.57: λ_min is lost in rounding, unresolved (proved)" in str(lost)
    singular = Spectrum(planted(1.0, -3e-17, 1e-13), exact, n=10, rank_bound=9)
    assert (singular.verdict, singular.kappa, singular.grade) == ("singular", math.inf, "proved")


def test_the_strongest_grade_with_a_precise_smallest_eigenvalue_is_told():
    bounds = {PROVED: Bound(products=1.0), MODEL: Bound(products=0.1, kinks=2)}
    for lambda_min, told in ((20.0, PROVED), (2.0, MODEL), (0.5, MODEL), (0.05, MODEL)):
        computed = Spectrum(planted(100.0, lambda_min, 0.0), KernelError(bounds), 3, 3)
        assert computed.grade == told
        assert computed.verdict == ("unresolved" if lambda_min == 0.05 else "resolved")
        assert computed.error == pytest.approx(bounds[told].products)
        assert computed.kinks == bounds[told].kinks
    unproved = planted(10.0, 2.0, 0.0)._replace(proved=False)
    computed = Spectrum(unproved, KernelError(bounds), 3, 3)
    assert (computed.grade, computed.error) == ("estimated", pytest.approx(0.1))


def test_gradients_within_an_error_have_a_kernel_within_its_bound():
    """‖(Φ + δ)(Φ + δ)ᵀ − Φ Φᵀ‖ of random Φ and δ, and of δ along Φ, where the bound is sharp."""
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-2, 1.0):
        phi = rng.standard_normal((5, 8))
        for delta in (rng.standard_normal((5, 8)), phi):
            moved = scale * delta
            computed = (phi + moved) @ (phi + moved).T
            bound = Bound(features=float((moved**2).sum()))
            off = np.linalg.norm(computed - phi @ phi.T, 2)
            assert off <= bound.norm(np.linalg.norm(computed, 2))


def test_eigenvalues_by_lanczos_are_the_same_bits_again():
    kernel, _ = with_eigenvalues(np.linspace(0.1, 1, PANEL + 50))
    first, again = (extreme_eigenvalues(half_of(kernel)) for _ in range(2))
    assert first[:3] == again[:3]
    assert np.array_equal(first.vector, again.vector)


@pytest.mark.parametrize("exponent", [-1040, -110, 900])
def test_lanczos_converges_at_every_scale(exponent):
    """Both ends lie near many others. ARPACK's tolerance has a floor of 10⁻¹¹ of no scale, at
    which it took a tiny kernel's λ_max, or a huge one's λ_min, for found when it was not."""
    ends = 0.98, 2.05
    values = np.concatenate([np.linspace(1, 2, PANEL + 50), ends])
    found = spectrum_of(half_of(np.diag(np.ldexp(values, exponent))))
    exact = ends[1] / ends[0]
    assert found.kappa_lower <= exact <= found.kappa_upper
    if exponent > -1000:  # else subnormal: what they lose is in the error
        assert found.kappa_upper / found.kappa_lower - 1 < 1e-7


@pytest.mark.parametrize("apart", [1e-9, 1e-15])
def test_largest_eigenvalues_that_agree_in_nearly_all_digits(apart):
    values = np.random.default_rng(0).random(PANEL + 50) + 0.1
    values[-6:] = 5 * (1 + apart * values[-6:])
    found = spectrum_of(half_of(np.diag(values)))
    exact = values.max() / values.min()
    assert found.kappa_lower <= exact <= found.kappa_upper < exact * (1 + 1e-6)


def test_a_large_kernel_of_zeros_and_one_beyond_the_range():
    n = PANEL + 50
    zero = spectrum_of(half_of(np.zeros((n, n))))
    assert (zero.lambda_max, zero.verdict) == (0, "unresolved")
    with pytest.raises(UserError, match="is beyond float64's range"):
        spectrum_of(half_of(np.full((n, n), 1e308) + 1e307 * np.eye(n)))


def test_a_proof_holds_for_every_kernel_within_the_error(device):
    n = PANEL + 50
    kernel, _ = with_eigenvalues(np.linspace(0.1, 1, n))
    computed = spectrum_of(half_of(put(kernel, device)), 0.01)
    computed = with_proof(computed, half_of(put(kernel, device)))
    assert 0.1 - 1e-5 < computed.smallest_is_above < 0.1
    assert (computed.grade, computed.verdict) == ("proved", "resolved")
    top = np.linalg.norm(kernel) + 0.01  # ‖K‖_F
    assert top / 0.09 <= computed.kappa_upper < 1.001 * top / 0.09


def test_an_eigenvalue_that_is_not_the_smallest_is_found_out(device):
    """As if Lanczos had missed the smallest: its vector and residual would be those of the next."""
    n = PANEL + 50
    eigenvalues = np.linspace(0.1, 1, n)
    kernel, _ = with_eigenvalues(eigenvalues)
    computed = spectrum_of(half_of(put(kernel, device)))
    assert computed.grade == "estimated"
    proven = with_proof(computed, half_of(put(kernel, device)))
    assert 0.1 - 1e-9 < proven.smallest_is_above < 0.1
    assert (proven.verdict, proven.kappa) == ("resolved", computed.kappa)
    low, high = computed.extremes.smallest
    apart = eigenvalues[1] - eigenvalues[0]
    ends = computed.extremes._replace(
        lambda_min=eigenvalues[1], smallest=(low + apart, high + apart)
    )
    missed = with_proof(replace(computed, extremes=ends), half_of(put(kernel, device)))
    assert math.isnan(missed.smallest_is_above)
    assert (missed.verdict, missed.kappa_upper) == ("unresolved", math.inf)


def test_a_singular_kernel_needs_no_factor(device, monkeypatch):
    monkeypatch.setattr(Half, "factorise", None)
    x = inputs(PANEL + 50, 40)
    kernel = x @ x.T
    record = spectrum_of(half_of(put(kernel, device)), rank_bound=40).record
    assert (record["verdict"], record["lambda_min"]) == ("singular", 0.0)
    assert record["lambda_max"] == pytest.approx(np.linalg.eigvalsh(kernel)[-1], rel=1e-12)
    assert not record["smallest_eigenvector"].any()


@pytest.mark.parametrize("shape", [(30, 7), (7, 30)])
def test_nonzero_eigenvalues_of_a_linear_network_keep_their_digits(shape, device):
    """κ = 10¹⁴ of Φ Φᵀ, which no float64 eigensolver resolves, from Φ with κ = 10⁷."""
    rng = np.random.default_rng(0)
    short = min(shape)
    sigma = np.geomspace(1e-7, 1, short)
    left = np.linalg.qr(rng.standard_normal((shape[0], short)))[0]
    right = np.linalg.qr(rng.standard_normal((shape[1], short)))[0]
    factor = (left * sigma) @ right.T
    eigenvalues, errors = nonzero_eigenvalues(put(factor, device))
    exact = mpmath.svd_r(mpmath.matrix(factor.tolist()), compute_uv=False)
    assert len(eigenvalues) == short
    assert abs(eigenvalues[0] - min(exact) ** 2) <= errors[0] < 1e-6 * eigenvalues[0]
    assert eigenvalues[0] == pytest.approx(float(min(exact) ** 2), rel=1e-7)
    assert eigenvalues[-1] == pytest.approx(float(max(exact) ** 2), rel=1e-12)


def test_record_of_a_linear_network_with_more_samples_than_features(device):
    """Rank ≤ d < n: κ = ∞, not the −6·10¹⁴ that rounding noise would make of it."""
    x, weights = inputs(200, 5, device), weights_of(0, 4, 64, 5, device)
    network = with_weights(weights, "linear")
    factors, error = gradients_with_error(network, weights)(x)
    computed = spectrum(empirical_ntk(factors), error, rank_bound=5)
    assert (computed.kappa, computed.verdict) == (math.inf, "singular")
    assert abs(computed.lambda_min) < computed.error
    record = nonzero_spectrum(network, x, with_norm(network.linear_factor(weights)))
    gram = np.linalg.eigvalsh(to_numpy(factors[0].forward.T @ factors[0].forward))
    assert record["nonzero_rank"] == 5
    assert record["nonzero_eigenvalues"] == pytest.approx(gram, rel=1e-10)
    assert record["nonzero_kappa"] == pytest.approx(gram[-1] / gram[0], rel=1e-10)


@pytest.mark.parametrize(("width", "depth", "features"), [(3, 12, 8), (16, 4, 6)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_bound_on_rounding_holds_for_narrow_deep_and_ill_conditioned_networks(
    activation, width, depth, features, device
):
    """‖K − K_exact‖, also of two nearly equal samples, and by both ways of a linear network."""
    if activation == "relu2":
        depth = min(depth, 6)  # beyond, powers of 2 to the depth overflow
    for seed, apart in enumerate((1.0, 1e-3, 1e-6)):
        x = np.random.default_rng(seed).standard_normal((4, features))
        x[1] = x[0] + apart * x[2]
        weights = drawn(seed, depth, width, features)
        moved = [put(w, device) for w in weights]
        network = with_weights(moved, activation)
        for made in (gradients_with_error, layer_gradients_with_error):
            factors, error = made(network, moved)(put(x, device))
            kernel = to_numpy(empirical_ntk(factors))
            with unlimited(50):
                off = exactly(kernel) - network_kernel(network, weights, x)
            off = np.linalg.norm(off.astype(np.float64), 2)
            for bound in error.bounds.values():
                assert off <= bound.norm(np.linalg.norm(kernel, 2))


def test_only_gates_that_are_shut_for_certain_make_the_kernel_singular(device):
    """A narrow ReLU network that switches a sample off; K_ii = 0 alone may be underflow."""
    weights = [put(a, device) for a in (np.eye(2), np.ones((1, 2)))]
    gradients = gradients_with_error(with_weights(weights, "relu"), weights)
    x = np.array([[1.0, 0.5], [2, -1], [-1, -2]])
    factors, error = gradients(put(x, device))
    computed = spectrum(empirical_ntk(factors), error, rank_bound=3)
    assert (computed.verdict, computed.rank_bound) == ("singular", 2)
    factors, error = gradients(put(1e-170 * x[:2], device))
    kernel = empirical_ntk(factors)
    assert not to_numpy(kernel).any()
    assert spectrum(kernel, error, rank_bound=2).verdict == "unresolved"
    for matrix in (np.diag([1.0, 1, 0]), np.zeros((3, 3))):
        computed = spectrum_of(put(matrix, device))
        assert computed.verdict == "unresolved" and computed.error > 0
