"""Dual activations: what a layer makes of two correlated Gaussians.

For u, v ~ N(0, 1) at an angle θ, E[u v] = cos θ, a layer's outputs are at the angle θ′ with
cos θ′ = c_σ E[σ(u) σ(v)]. Everything here is in angles and differences from θ = 0: near parallel
inputs a cosine has lost the angle to rounding, and with it the smallest eigenvalue of an NTK.
"""

import functools
import logging
from typing import NamedTuple

import numpy as np

from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.networks.gaussian import (
    Elementwise,
    composite_rule,
    hermite_coefficients,
    moment,
)

log = logging.getLogger("ntkcond")
SERIES = 256, 1024, 4096  # terms of a Hermite series, tried in turn
EXACT = 1e-14  # errors below are rounding
SAFETY = 4.0  # of errors that are estimated
INEXACT = 1e-9  # errors above are worth a warning
REACH = 10.0  # of two-dimensional quadrature: beyond, the density is below 10⁻²²
NODES = (32, 64, 128, 256)  # of Chebyshev interpolation in θ, tried in turn
# In [−1, 1], for angles in [0, π] that are no nodes; steep activations have their all near 0
PROBES = np.sort([*np.linspace(-0.95, 0.95, 8), *(np.geomspace(1e-6, 1e-2, 5) - 1)])
PANELS = (8, 16)  # from −REACH to REACH, tried in turn, each against twice as many


class Dual(NamedTuple):
    """An activation seen by Gaussians at an angle θ, elementwise on [0, π]:

    turn: θ → θ′. loss: θ → c_σ E[σ′(u)²] − c_σ E[σ′(u) σ′(v)]. gain: c_σ E[σ′(u)²].
    steepest: the largest |dθ′/dθ| and |d loss/dθ|. error: of turn and of loss, beside rounding; 0
    for closed forms, else an estimate on the safe side.
    """

    turn: Elementwise
    loss: Elementwise
    gain: float
    steepest: tuple[float, float]
    error: tuple[float, float] = (0.0, 0.0)


@functools.cache
def dual(activation: Activation) -> Dual:
    """In closed form for ReLU, linear and ReLU² (Cho & Saul, 2009, Eq. 4–6), by Hermite series for
    smooth activations, else by quadrature split at the activation's kinks.

    With σ = Σ aₖ hₖ in normalised Hermite polynomials, E[σ(u) σ(v)] = Σ aₖ² cosᵏθ. What is cut off
    is at most E[σ²] − Σ aₖ². Where that is more than rounding, as a kink makes it, see
    `_by_quadrature`; kinks that the activation does not name cost accuracy, which `error` tells.
    """
    for known, closed in CLOSED_FORMS.items():
        if activation is ACTIVATIONS[known]:
            return closed
    numerical = _by_series(activation) or _by_quadrature(activation)
    if not max(numerical.error) <= INEXACT:
        log.warning(
            "%s at infinite width is known only within %.0e, which counts in every verdict on κ. If"
            " it or a derivative of it jumps, name the points: Activation.kinks",
            activation.title, max(numerical.error),
        )  # fmt: skip
    return numerical


def one_minus_cosine(theta: np.ndarray) -> np.ndarray:
    """1 − cos θ, exact to rounding for small angles too."""
    return 2 * np.sin(theta / 2) ** 2


def angle(difference: np.ndarray) -> np.ndarray:
    """θ of 1 − cos θ."""
    difference = np.clip(difference, 0.0, 2.0)
    return 2 * np.arctan2(np.sqrt(difference), np.sqrt(2 - difference))


def _relu(theta: np.ndarray) -> np.ndarray:
    """1 − J₁/π as a sum of positive terms, within θ times the unit roundoff."""
    return one_minus_cosine(theta) * (1 - theta / np.pi) + (theta - np.sin(theta)) / np.pi


def _relu2(theta: np.ndarray) -> np.ndarray:
    """1 − J₂/3π, likewise."""
    rest = 2 * (np.pi - theta) * np.sin(theta) ** 2
    return (1.5 * (2 * theta - np.sin(2 * theta)) + rest) / (3 * np.pi)


# J₀ = π − θ is the slope of ReLU, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)
# (1 + 2 cos² θ); E[σ′σ′] of ReLU² has J₁.
CLOSED_FORMS = {
    "relu": Dual(
        lambda theta: angle(_relu(theta)), lambda theta: theta / np.pi, 1.0,
        steepest=(1.0, 0.32),
    ),
    "relu2": Dual(
        lambda theta: angle(_relu2(theta)), lambda theta: 4 / 3 * _relu(theta), 4 / 3,
        steepest=(1.16, 0.78),
    ),
    "linear": Dual(lambda theta: theta, np.zeros_like, 1.0, steepest=(1.0, 0.0)),
}  # fmt: skip


def _exact_normalisation(activation: Activation) -> float:
    """c_σ, also where the activation states a rounded one."""
    return 1 / moment(activation.value, activation.kinks)


def _by_series(activation: Activation) -> Dual | None:
    """None unless the series is exact to rounding."""
    c, quotients = _exact_normalisation(activation), []
    for function in (activation.value, activation.slope):
        whole = c * moment(function, activation.kinks)
        for terms in SERIES:
            squares = c * hermite_coefficients(function, terms) ** 2
            if whole - squares.sum() < EXACT * whole:
                break
        else:
            return None
        squares = squares[: np.flatnonzero(squares > EXACT / terms * whole)[-1] + 1]
        # Σ aₖ² (1 − ρᵏ) = (1 − ρ) Σ qⱼ ρʲ with qⱼ = Σ aₖ² over k > j
        quotients.append(np.cumsum(squares[:0:-1])[::-1] if len(squares) > 1 else np.zeros(1))

    def difference(quotient: np.ndarray, theta: np.ndarray) -> np.ndarray:
        powers = np.polynomial.polynomial.polyval(np.cos(theta), quotient)
        return one_minus_cosine(theta) * powers

    value, slope = (functools.partial(difference, quotient) for quotient in quotients)
    # Horner's rule: two roundings a term, of a sum of positive coefficients
    summation = 2 * max(map(len, quotients)) * np.finfo(float).eps * max(1.0, whole)
    return _dual(activation, value, slope, whole, 2 * EXACT + summation)


def _by_quadrature(activation: Activation) -> Dual:
    """By c/2 E[(f(u) − f(v))²], f = σ or σ′, at Chebyshev points in θ and interpolated between.

    As functions of θ these are smooth on [0, π] where those of cos θ have a root. Points and panels
    are doubled until both are exact to rounding; `error` has what is left.
    """
    c = _exact_normalisation(activation)

    def at(place: np.ndarray, panels: int) -> np.ndarray:
        """place: in [−1, 1]. Of σ divided by sin θ/2: near θ = 0 exact to rounding, relative."""
        theta = np.pi * (place + 1) / 2
        values = np.array([_half_squares(activation, angle, panels) for angle in theta])
        return c * values / np.stack([np.sin(theta / 2), np.ones_like(theta)], axis=1)

    for panels in PANELS:
        error = np.abs(at(PROBES, 2 * panels) - at(PROBES, panels)).max()
        if error < EXACT:
            break
    for nodes in NODES:
        series = np.polynomial.chebyshev.chebinterpolate(
            functools.partial(at, panels=2 * panels), nodes - 1
        )
        cut = np.abs(series[nodes // 2 :]).sum(axis=0).max()
        if cut < max(10 * EXACT, error):
            break
    between = np.polynomial.chebyshev.chebval(PROBES, series).T - at(PROBES, 2 * panels)

    def interpolated(which: int, theta: np.ndarray) -> np.ndarray:
        return np.polynomial.chebyshev.chebval(2 * theta / np.pi - 1, series[:, which])

    moments = np.array([
        [moment(f, activation.kinks, count) for f in (activation.value, activation.slope)]
        for count in (320, 311)
    ])  # fmt: skip
    doubt = np.abs(np.diff(moments, axis=0)).max() / moments[0].max()
    error = SAFETY * (error + max(cut, np.abs(between).max())) + doubt
    return _dual(
        activation,
        lambda theta: np.sin(theta / 2) * interpolated(0, theta),
        lambda theta: interpolated(1, theta),
        c * moments[0, 1],
        error,
    )


def _half_squares(activation: Activation, theta: float, panels: int) -> list[float]:
    """½ E[(f(u) − f(v))²] of σ and σ′, for u, v at an angle θ, by Gauss–Legendre quadrature over
    two independent Gaussians, whose panels end where u or v is at a kink."""
    kinks, pairs = np.array(activation.kinks), np.add.outer
    if theta < np.pi / 2:  # u = a p + b q, v = a p − b q with a > b
        a, b, sign = np.cos(theta / 2), np.sin(theta / 2), 1
    else:  # u = a p + b q, v = b q − a p
        a, b, sign = np.sin(theta / 2), np.cos(theta / 2), -1
    crossings = pairs(kinks, -sign * kinks).ravel() / (2 * b)
    plain = np.linspace(-REACH, REACH, panels + 1)
    q, q_weights = composite_rule(np.concatenate([plain, crossings.clip(-REACH, REACH)]))
    at_kinks = [pairs(-b * q, kinks) / a, pairs(b * q, sign * kinks) / a]
    edges = [np.broadcast_to(plain, (len(q), len(plain))), *at_kinks]
    p, p_weights = composite_rule(np.concatenate(edges, axis=1).clip(-REACH, REACH))
    u, v = a * p + b * q[:, None], sign * (a * p - b * q[:, None])
    weights = p_weights * np.exp(-p * p / 2) * (q_weights * np.exp(-q * q / 2))[:, None]
    return [
        float(((f(u) - f(v)) ** 2 * weights).sum() / (4 * np.pi))
        for f in (activation.value, activation.slope)
    ]


def _dual(
    activation: Activation, value: Elementwise, slope: Elementwise, gain: float, error: float
) -> Dual:
    """value: θ → 1 − cos θ′, slope: θ → loss; error: of slope, and of value relative to sin θ/2."""
    z = np.linspace(0.01, REACH, 1000)
    parity = 0
    for sign in (-1, 1):
        if np.allclose(activation.value(-z), sign * activation.value(z), rtol=1e-14, atol=0):
            parity = sign

    def turn(theta: np.ndarray) -> np.ndarray:
        if not parity:
            return angle(value(theta))
        turned = angle(value(np.minimum(theta, np.pi - theta)))  # near θ = π, too, exact
        return np.where((theta < np.pi / 2) | (parity > 0), turned, np.pi - turned)

    small = np.geomspace(1e-10, 0.01, 200)
    grid = np.concatenate([[0.0], small, np.linspace(0.01, np.pi - 0.01, 2000)[1:-1]])
    grid = np.concatenate([grid, np.pi - small[::-1], [np.pi]])
    steepest = [1.1 * (np.abs(np.diff(f(grid))) / np.diff(grid)).max() for f in (turn, slope)]
    # 1 − cos θ′ within δ is θ′ within δ/sin θ′, and never farther off than √(2 δ)
    inside = grid[(grid > 0) & (grid < (np.pi / 2 if parity else np.pi))]
    off, sine = 2 * error * np.sin(inside / 2), np.sin(turn(inside))
    turn_error = np.minimum(off / np.maximum(sine, off), np.sqrt(2 * off)).max()
    return Dual(
        turn, slope, gain, (float(steepest[0]), float(steepest[1])),
        (float(max(error, turn_error)), float(error)),
    )  # fmt: skip


@functools.cache
def scaled(activation: Activation, factor: float) -> Activation:
    """z → σ(factor z); its c is computed."""
    return Activation(
        activation.title,
        lambda z: activation.value(factor * z),
        lambda z: factor * activation.slope(factor * z),
        kinks=tuple(kink / factor for kink in activation.kinks),
    )
