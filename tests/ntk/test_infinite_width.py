"""The closed forms at infinite width, held against check values and against Monte Carlo."""

import numpy as np
import pytest

from ntkcond.ntk.infinite_width import g, gradient_angle, infinite_width_ntk
from small_networks import mlp

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
    for depth in range(1, 1001):
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


def test_g_is_the_angle_after_a_wide_relu_layer():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((400_000, 2))
    for theta in (0.3, 1.0, 2.0, 3.0):
        a, b = (np.maximum(weights @ v, 0) for v in ([1, 0], [np.cos(theta), np.sin(theta)]))
        angle = np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        assert g(theta) == pytest.approx(angle, abs=0.01)


def test_properties_of_g():
    """Prop. A.1: increasing, below the identity but at 0."""
    theta = np.linspace(0, np.pi, 1000)
    values = g(theta)
    assert (np.diff(values) > 0).all()
    assert (values[1:] < theta[1:]).all()
    assert values[0] == 0
    assert values[-1] == pytest.approx(np.pi / 2)


def test_infinite_width_ntk_has_the_norms_and_angles_of_the_theorem():
    x = np.random.default_rng(0).standard_normal((6, 4))
    kernel = infinite_width_ntk(x, mlp("relu", 3))
    norms = np.linalg.norm(x, axis=1)
    assert np.diag(kernel) == pytest.approx(4 * norms**2)
    theta = np.arccos(x[0] @ x[1] / norms[0] / norms[1])
    cosine = kernel[0, 1] / np.sqrt(kernel[0, 0] * kernel[1, 1])
    assert np.arccos(cosine) == pytest.approx(float(gradient_angle(theta, mlp("relu", 3))))
