"""The NTK at infinite width in extended precision, from the papers' formulas alone: mpmath's closed
forms for homogeneous activations, Hermite series for smooth ones."""

import functools

import mpmath
import numpy as np

from ntkcond.networks.activations import ACTIVATIONS, Activation

DIGITS, TERMS = 50, 220  # of a series: within 10⁻²⁷
LEAK = 0.125  # exact in both precisions
LEAKY = Activation(
    "leaky ReLU",
    lambda z: np.where(z > 0, z, LEAK * z),
    lambda z: np.where(z > 0, 1.0, LEAK),
    degree=1,
)
HERE = {**ACTIVATIONS, "leaky": LEAKY}
# σ and σ′ in mpmath's precision
EXACT = {
    "relu": (lambda z: max(z, 0), lambda z: z > 0),
    "linear": (lambda z: z, lambda z: 1),
    "relu2": (lambda z: max(z, 0) ** 2, lambda z: 2 * max(z, 0)),
    "gelu": (lambda z: z * mpmath.ncdf(z), lambda z: mpmath.ncdf(z) + z * mpmath.npdf(z)),
    "tanh": (mpmath.tanh, lambda z: mpmath.sech(z) ** 2),
    "sigmoid": (lambda z: 1 / (1 + mpmath.exp(-z)), lambda z: 1 / (2 + 2 * mpmath.cosh(z))),
}


def _arc_cosines(cosine):
    """J₀, J₁, J₂ over π (Cho & Saul, 2009, Eq. 4–6)."""
    theta = mpmath.acos(max(-1, min(1, cosine)))
    sine, rest = mpmath.sin(theta), mpmath.pi - theta
    integrals = rest, sine + rest * cosine, 3 * sine * cosine + rest * (1 + 2 * cosine**2)
    return [j / mpmath.pi for j in integrals]


def _leaky(cosine):
    """σ = (1 − a) ReLU + a z."""
    j0, j1, _ = _arc_cosines(cosine)
    a, c = mpmath.mpf(LEAK), 2 / (1 + mpmath.mpf(LEAK) ** 2)
    value = (1 - a) ** 2 * j1 / 2 + a * (1 - a) * cosine + a**2 * cosine
    return c * value, c * ((1 - a) ** 2 * j0 / 2 + a * (1 - a) + a**2)


CLOSED = {
    "relu": lambda cosine: tuple(_arc_cosines(cosine)[1::-1]),
    "relu2": lambda cosine: (_arc_cosines(cosine)[2] / 3, 4 * _arc_cosines(cosine)[1] / 3),
    "linear": lambda cosine: (cosine, mpmath.mpf(1)),
    "leaky": _leaky,
}
SMOOTH = ("tanh", "sigmoid", "gelu")


@functools.cache
def _squares(name):
    """c aₖ² of σ and σ′. The trapezoidal rule converges exponentially for analytic functions."""
    step, points = mpmath.mpf(1) / 8, range(-8 * 16, 8 * 16 + 1)
    by_function = []
    for function in EXACT[name]:
        coefficients = [mpmath.mpf(0)] * TERMS
        for place in points:
            z = place * step
            weight = function(z) * mpmath.npdf(z) * step
            before, here = mpmath.mpf(0), mpmath.mpf(1)
            for k in range(TERMS):
                coefficients[k] += weight * here
                before, here = here, (z * here - mpmath.sqrt(k) * before) / mpmath.sqrt(k + 1)
        by_function.append([a * a for a in coefficients])
    c = 1 / sum(by_function[0])
    return [[c * a for a in squares] for squares in by_function]


def layer(name, cosine):
    """c E[σ(u) σ(v)] and c E[σ′(u) σ′(v)]."""
    if name in CLOSED:
        return CLOSED[name](cosine)
    return tuple(mpmath.polyval(squares[::-1], cosine) for squares in _squares(name))


def ntk(x, name, depth):
    """(n, n) mpmath matrix of the rows of x, for activations that are not homogeneous divided by
    their norms."""
    degree = HERE[name].degree if depth else 1
    rows = [[mpmath.mpf(float(entry)) for entry in row] for row in x]
    norms = [mpmath.sqrt(mpmath.fdot(row, row)) for row in rows]
    kernel = mpmath.matrix(len(x))
    for i, one in enumerate(rows):
        for j, other in enumerate(rows[: i + 1]):
            cosine = mpmath.mpf(1) if i == j else mpmath.fdot(one, other) / norms[i] / norms[j]
            total = cosine
            for _ in range(depth):
                cosine, slope = layer(name, cosine)
                total = total * slope + cosine
            if degree is not None:
                total *= (norms[i] * norms[j]) ** (degree**depth)
            kernel[i, j] = kernel[j, i] = total
    return kernel


def smallest_eigenvalue(kernel):
    return min(mpmath.eigsy(kernel, eigvals_only=True))
