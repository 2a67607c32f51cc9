"""The closed forms at infinite width, held against check values and against Monte Carlo."""

import dataclasses
import math

import extended_precision
import mpmath
import numpy as np
import pytest
from extended_precision import CLOSED, HERE, SMOOTH

from ntkcond.networks.activations import Activation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk import infinite_width
from ntkcond.ntk.eigenvalues import spectrum
from ntkcond.ntk.infinite_width import entry_error, g, gradient_angle, infinite_width_ntk
from ntkcond.ntk.measure import measure
from ntkcond.ntk.rounding import KernelError
from ntkcond.run.errors import UserError
from small_networks import mlp
from thoroughness import how_many

# φ in degrees at θ_in = 1, 5, 30, 60, 90, computed independently of this package
PHI = {
    1: (4.387, 10.767, 36.749, 61.890, 80.842),
    5: (9.553, 21.368, 50.632, 65.765, 72.621),
    10: (13.386, 28.913, 58.236, 68.069, 71.560),
    1000: (67.720, 73.892, 75.185, 75.297, 75.328),
}


@pytest.mark.parametrize("depth", PHI)
def test_gradient_angle_has_the_check_values(depth):
    theta = np.radians([1, 5, 30, 60, 90])
    phi = np.degrees(gradient_angle(theta, mlp("relu", depth)))
    assert phi == pytest.approx(PHI[depth], abs=6e-4)


def test_what_the_report_says_of_figure_1():
    """Below 60° the gradient angle exceeds the input angle, the more the deeper; above, it stays
    above 60°. The first holds up to 66.8° for L = 1 and 69.6° for L = 10."""
    theta = np.radians(np.linspace(0.5, 180, 360))
    small = np.degrees(theta) < 60
    before = theta
    for depth in (*range(1, 21), *range(30, 101, 10), *range(200, 1001, 100)):
        angle = gradient_angle(theta, mlp("relu", depth))
        assert (angle[small] > before[small]).all()
        assert (angle[~small] > np.radians(60)).all()
        before = angle
    for depth, edge in ((1, 66.8), (10, 69.6)):
        near = np.radians([edge - 0.1, edge + 0.1])
        assert list(gradient_angle(near, mlp("relu", depth)) > near) == [True, False]


def test_gradient_angle_of_depth_zero_is_the_input_angle():
    theta = np.linspace(0.01, 3.0, 50)
    assert gradient_angle(theta, mlp("relu", 0)) == pytest.approx(theta, rel=1e-12)


def test_properties_of_g():
    """Prop. A.1: increasing, below the identity but at 0; the angle after a wide ReLU layer."""
    theta = np.linspace(0, np.pi, 1000)
    values = g(theta)
    assert (np.diff(values) > 0).all()
    assert (values[1:] < theta[1:]).all()
    assert values[0] == 0
    assert values[-1] == pytest.approx(np.pi / 2)
    cosine = (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi  # Cho and Saul (2009)
    assert np.cos(values) == pytest.approx(cosine, abs=1e-14)


# of each homogeneous activation; a twelfth of them of others
KERNELS = how_many("KERNELS", few=60, thorough=2500)


def of_norm_1(x):
    x = x.astype(np.float64)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def random_case(rng, name):
    """Samples, two of which are at an angle from 1 to one ulp in one feature, and a depth."""
    n, d, depth = rng.integers(2, 9), rng.choice([1, 2, 5, 64, 300]), rng.integers(0, 11)
    x = rng.standard_normal((n, d)).astype(np.float32)
    x[1] = x[0]
    if rng.random() < 0.4:
        feature = rng.integers(d)
        x[1, feature] = np.nextafter(x[0, feature], np.float32(9), dtype=np.float32)
    else:
        x[1] += np.float32(10 ** rng.uniform(-8, 0)) * rng.standard_normal(d).astype(np.float32)
    if rng.random() < 0.2:
        x[-1] = -x[0]
    if rng.random() < 0.2:
        rng.shuffle(x)
    if HERE[name].degree == 1:
        return x, int(depth)
    scale = rng.uniform(0.9, 1.1) if HERE[name].degree else 1.0  # to the power 2ᴸ
    return of_norm_1(x) * np.float32(scale), int(depth)


@pytest.mark.parametrize("name", [*CLOSED, *SMOOTH])
def test_entries_and_smallest_eigenvalue_are_within_their_bounds(name):
    rng = np.random.default_rng(list(name.encode()))
    cases = KERNELS if name in CLOSED else max(6, KERNELS // 12)
    entries, eigenvalues, resolved = [], [], 0
    for _ in range(cases):
        x, depth = random_case(rng, name)
        network = MLP(HERE[name], depth, math.inf)
        with mpmath.workdps(extended_precision.DIGITS):
            exact = extended_precision.ntk(x, name, depth)
            smallest = float(extended_precision.smallest_eigenvalue(exact))
        kernel, relative = infinite_width_ntk(x, network), entry_error(network, x.shape[1])
        off = np.array(
            [float(mpmath.mpf(kernel[place]) - exact[place]) for place in np.ndindex(kernel.shape)]
        ).reshape(kernel.shape)
        norms = np.sqrt([float(exact[i, i]) for i in range(len(x))])
        entries.append(np.abs(off / np.outer(norms, norms)).max() / relative)
        error = KernelError.of_matrix(relative * np.trace(kernel))
        computed = spectrum(kernel, error, rank_bound=len(x))
        eigenvalues.append(abs(computed.lambda_min - smallest) / computed.error)
        resolved += computed.lambda_min > computed.error
    print(
        f"{name}: {cases} NTKs, λ_min of {resolved} above its bound; error / bound at most"
        f" {max(entries):.3f} of an entry, {max(eigenvalues):.3f} of λ_min"
    )
    assert max(*entries, *eigenvalues) <= 1
    assert resolved  # a bound of everything would hold, too


def kappa_of(x: np.ndarray, name: str, depth: int) -> float:
    """In 50 digits."""
    with mpmath.workdps(extended_precision.DIGITS):
        values = mpmath.eigsy(extended_precision.ntk(x, name, depth), eigvals_only=True)
        return float(max(values) / min(values))


@pytest.mark.parametrize(("d", "depth"), [(5, 1), (64, 1), (64, 10)])
def test_kappa_of_samples_one_ulp_apart(d, depth):
    """Before, angles by arccos: at L = 1 1.66e9 in place of 1.51e9 with d = 5, both resolved, and a
    lower bound of 3.0e13 in place of 1.84e9 with d = 64."""
    x = np.random.default_rng(0).standard_normal((6, d)).astype(np.float32)
    x[1] = x[0]
    x[1, 2] = np.nextafter(x[0, 2], np.float32(9), dtype=np.float32)
    (row,) = measure(x, mlp("relu", depth, math.inf), [6], None, [])
    assert row["verdict"] == "resolved"
    assert row["kappa"] == pytest.approx(kappa_of(x, "relu", depth), rel=1e-5)


def close_pair() -> np.ndarray:
    x = np.random.default_rng(3).standard_normal((8, 6))
    x[1] = x[0] + 1e-3 * x[2]
    return of_norm_1(x)


@pytest.mark.parametrize(("name", "depth"), [("leaky", 1), ("relu", 3), ("relu2", 3)])
def test_an_added_activation_with_a_kink_has_the_kappa_of_its_closed_form(name, depth):
    """Before, by a series of 256 terms: leaky ReLU 1.4e7 in place of 47,143 at L = 1, ReLU as a
    stranger 5.3e6 in place of 15,731 at L = 3, all resolved."""
    stranger = dataclasses.replace(HERE[name], title="stranger", c=None)
    (row,) = measure(close_pair(), MLP(stranger, depth, math.inf), [8], None, [])
    assert row["verdict"] == "resolved"
    assert row["kappa"] == pytest.approx(kappa_of(close_pair(), name, depth), rel=1e-8)


HARD = Activation("hard tanh", lambda z: z.clip(-1, 1), lambda z: 1.0 * (abs(z) < 1))


def test_bands_cover_all_rows_once():
    for n in (1, 300, 20_000):  # the last in bands of fewer rows
        bands = list(infinite_width._rows(n))
        assert [row for band in bands for row in range(band.start, band.stop)] == list(range(n))
        assert all((band.stop - band.start) * n <= 2**22 for band in bands)


def test_of_an_activation_with_a_kink_that_it_does_not_name_no_kappa_is_resolved_wrongly():
    """Hard tanh, with and without its kinks."""
    networks = [MLP(dataclasses.replace(HARD, kinks=k), 2, math.inf) for k in ((0.0,), (-1.0, 1.0))]
    nameless, named = (measure(close_pair(), net, [8], None, [])[0] for net in networks)
    assert (nameless["verdict"], named["verdict"]) == ("unresolved", "resolved")
    assert nameless["kappa_lower"] <= named["kappa"]


@pytest.mark.filterwarnings("error")
def test_a_sample_of_zeros_makes_kappa_infinite():
    """As at finite width. Before: a RuntimeWarning and NaN."""
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    x[3] = 0
    for width in (64, math.inf):
        for name in ("relu", "relu2", "linear"):
            (row,) = measure(x, mlp(name, 2, width), [5], None, [0])
            assert (row["verdict"], row["kappa"]) == ("singular", math.inf)
    with pytest.raises(UserError, match="for samples of norm 1; these have 0 to"):
        infinite_width_ntk(x, mlp("tanh", 2))


@pytest.mark.parametrize("name", ["tanh", "gelu"])
def test_of_activations_that_are_not_homogeneous_it_is_the_ntk_of_directions(name):
    """Norms off 1 as float32's rounding makes them do not count; before, up to 1e-5 passed."""
    x = of_norm_1(np.random.default_rng(0).standard_normal((5, 4)))
    exact = x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    network = mlp(name, 2)
    assert infinite_width_ntk(x, network) == pytest.approx(
        infinite_width_ntk(exact, network), rel=1e-14
    )
    with pytest.raises(UserError, match=r"for samples of norm 1.*Set unit_norm: true"):
        infinite_width_ntk(exact * (1 + 5e-6), network)


ADDED = {
    "absolute value": (abs, np.sign, {"degree": 1}),
    "square": (lambda z: z * z, lambda z: 2 * z, {"degree": 2}),
    "cosine": (np.cos, lambda z: -np.sin(z), {"kinks": ()}),
    "constant slope": (lambda z: z + 1, np.ones_like, {}),
    "softplus": (lambda z: np.logaddexp(0, z), lambda z: 1 / (1 + np.exp(-z)), {"kinks": []}),
}


@pytest.mark.parametrize("name", ADDED)
def test_added_activations_of_any_symmetry_have_a_resolved_kappa(name):
    """Even ones map opposite inputs to the same output: θ′ = 0 at θ = π. Before, a NaN."""
    value, slope, about = ADDED[name]
    x = np.random.default_rng(3).standard_normal((6, 6))
    network = MLP(Activation(name, value, slope, **about), 2, math.inf)
    (row,) = measure(of_norm_1(x), network, [6], None, [])
    assert row["verdict"] == "resolved"
    assert 1 < row["kappa"] < 1e4


def test_an_activation_that_jumps_has_no_resolved_kappa():
    """Its derivative is not a function: σ′ = 0 is not the whole of it. Before, 33,852, resolved."""
    for value, slope in (
        (lambda z: 1.0 * (z > 0), np.zeros_like),
        (lambda z: z + (z > 0), np.ones_like),
    ):
        network = MLP(Activation("jump", value, slope), 3, math.inf)
        (row,) = measure(close_pair(), network, [8], None, [])
        assert row["verdict"] == "unresolved"
        assert row["kappa_lower"] >= 1


def test_smallest_angle_of_an_even_activation_is_that_of_all_pairs():
    """An almost opposite pair: 3.5°; the closest inputs are 60° apart."""
    network = MLP(Activation("absolute value", abs, np.sign, degree=1), 1, math.inf)
    x = np.random.default_rng(0).standard_normal((6, 5))
    x[1] = 1e-3 * x[2] - x[0]
    x = of_norm_1(x)
    (row,) = measure(x, network, [6], None, [])
    kernel = infinite_width_ntk(x, network)
    norms = np.sqrt(np.diag(kernel))
    cosines = (kernel / np.outer(norms, norms))[np.tril_indices(6, -1)]
    assert row["min_angle_deg"] == pytest.approx(np.degrees(np.arccos(cosines.max())), rel=1e-6)
    assert row["min_angle_deg"] < 10
