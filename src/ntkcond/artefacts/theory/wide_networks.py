"""Claims about the limit of infinite width, from random networks and matrices of growing width.

A limit counts as reached where the mean over seeds at the largest width agrees with it within
ERRORS standard errors and a bias of BIAS/m, and the root mean square deviation falls with width,
about as 1/√m.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from ntkcond.artefacts.verdicts.claim import (
    FAILS,
    HOLDS,
    LEVEL,
    SLIP,
    UNDECIDED,
    Claim,
    Claims,
    Finding,
    Findings,
    Test,
    chance,
    judged,
    short,
)
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.ntk.infinite_width import g, gradient_angle

WIDTHS = (64, 256, 1024)
SEEDS = range(32)
DEPTH = 3
INFINITELY_WIDE = MLP(ACTIVATIONS["relu"], DEPTH, math.inf)
ANGLES = np.radians([10, 60, 120])
NORMS = (1.3, 2.1)
FEATURES = 16
ERRORS = 4  # standard errors that a mean may be off
BIAS = 0.5  # of finite width: a mean may also be off by so much / m, relative
Draws = dict[int, np.ndarray]  # {width: (seeds, values)}


def _inputs() -> np.ndarray:
    """A vector, and one at each of ANGLES to it; (1 + angles, d)."""
    a, b = np.linalg.qr(np.random.default_rng(0).standard_normal((FEATURES, 2)))[0].T
    others = [NORMS[1] * (math.cos(angle) * a + math.sin(angle) * b) for angle in ANGLES]
    return np.array([NORMS[0] * a, *others])


@functools.cache
def _measured() -> dict[str, Draws]:
    """Measurements for every width and seed, of relu and linear: ratios of norms, and angles, of
    embeddings and of gradients; products of δ¹; the entries of K relative to those of G; and κ̄/κ₀
    of six random samples. The NTK is the layer-wise one, which tests hold against autograd."""
    x = _inputs()
    gram = x @ x.T
    norms = np.sqrt(np.diag(gram))
    six = np.random.default_rng(1).standard_normal((6, FEATURES))
    kappa0 = np.linalg.cond(six @ six.T)
    draws: dict[str, dict[int, list]] = {}
    for width, seed in itertools.product(WIDTHS, SEEDS):
        relu, linear = (MLP(ACTIVATIONS[name], DEPTH, width) for name in ("relu", "linear"))
        weights = relu.weights(seed, FEATURES)
        kernel = empirical_ntk(linear.layer_gradients(six, weights))
        draw = {"linear κ": np.array([np.linalg.cond(kernel) / kappa0])}
        for name, network in (("relu", relu), ("linear", linear)):
            factors = network.layer_gradients(x, weights)
            embedded = factors[-1].forward @ factors[-1].forward.T
            kernel = empirical_ntk(factors)
            delta = factors[0].backward
            draw[f"{name} delta"] = delta[1:] @ delta[0]
            draw[f"{name} kernel"] = (kernel / gram)[np.triu_indices(len(x))]
            for what, products in (("embedding", embedded), ("gradient", kernel)):
                lengths = np.sqrt(np.diag(products))
                cosines = products[0, 1:] / lengths[0] / lengths[1:]
                draw[f"{name} {what} norm"] = lengths / norms
                draw[f"{name} {what} angle"] = np.arccos(cosines)
        for name, values in draw.items():
            draws.setdefault(name, {}).setdefault(width, []).append(values)
    return {
        name: {width: np.array(values) for width, values in widths.items()}
        for name, widths in draws.items()
    }


def _agrees(draws: Draws, limit: ArrayLike) -> bool:
    """Whether the draws tend to the limit, as the module says."""
    last = draws[max(draws)]
    error = last.std(axis=0, ddof=1) / math.sqrt(len(last))
    margin = ERRORS * error + BIAS / max(draws) * np.abs(limit)
    near = np.abs(last.mean(axis=0) - limit) <= margin
    return near.all() and -0.8 < _slope(draws, limit) < -0.2


def _slope(draws: Draws, limit: ArrayLike) -> float:
    """Slope of the logarithm of the root mean square deviation from the limit against that of
    width."""
    deviation = [math.sqrt(np.square(draws[width] / limit - 1).mean()) for width in draws]
    return np.polyfit(np.log(list(draws)), np.log(deviation), 1)[0]


def _tends(
    setting: str,
    quantity: str,
    draws: Draws,
    stated: ArrayLike,
    corrected: ArrayLike | None = None,
    unit: float = 1.0,
) -> Finding:
    """Whether draws tend to the stated limit, or to the corrected one, all printed in the unit."""
    last, limit = draws[max(draws)], stated if corrected is None else corrected
    error = last.std(axis=0, ddof=1).max() / math.sqrt(len(last)) * unit
    slope = f"{_slope(draws, limit):.2f}".replace("-", "−")
    return Finding(
        f"{setting}, m = {max(draws)}, {len(last)} seeds",
        quantity,
        ", ".join(dict.fromkeys(short(value * unit) for value in np.atleast_1d(stated))),
        ", ".join(short(value * unit) for value in last.mean(axis=0)),
        f"± {short(error)}; deviation falls as m^{slope}",
        _agrees(draws, stated),
        corrected is not None and _agrees(draws, corrected),
    )


SETTING = f"l = L = {DEPTH}, θ = 10°, 60°, 120°, norms 1.3 and 2.1"


def _norm(what: str, stated: float, corrected: float | None = None) -> Test:
    """what: activation, and embedding or gradient."""
    quantity = "‖αᴸ(x)‖/‖x‖" if "embedding" in what else "‖∇f(x)‖/‖x‖"
    return lambda _: [_tends(SETTING, quantity, _measured()[f"{what} norm"], stated, corrected)]


def _angle(what: str, limits: np.ndarray) -> Test:
    quantity, unit = f"{'θᴸ' if 'embedding' in what else 'φ'} (degrees)", 180 / math.pi
    return lambda _: [_tends(SETTING, quantity, _measured()[f"{what} angle"], limits, unit=unit)]


def _product(layers: int) -> np.ndarray:
    """Product of 1 − θˡ/π over l = 0 to layers − 1, for each of ANGLES."""
    product, theta = np.ones(len(ANGLES)), ANGLES
    for _ in range(layers):
        product, theta = product * (1 - theta / math.pi), g(theta)
    return product


def _embedded(theta: np.ndarray) -> np.ndarray:
    for _ in range(DEPTH):
        theta = g(theta)
    return theta


LINEAR = "v1 and ICLR Thm 3.1; newest: in the proof of Thm 2.3 alone"
LINEAR_GRADIENT = "v1 and ICLR Thm 3.1, newest Thm 2.3"
GRADIENT = "v1 Thm 4.4, ICLR Lemma 4.3, newest Lemma 3.1"
GRADIENT_NORM = DEPTH + 1, math.sqrt(DEPTH + 1)  # as stated, as corrected
CLAIMS = Claims([
    Claim("3.1-embedding", LINEAR,
        "Wide linear networks keep the norms of embeddings: ‖ᾱˡ(x)‖ = ‖x‖.",
        _norm("linear embedding", 1)),
    Claim("3.1-gradient", LINEAR_GRADIENT,
        "Gradients of wide linear networks have the norm ‖∇f̄(x)‖ = (L+1)‖x‖.",
        _norm("linear gradient", *GRADIENT_NORM), "√(L+1)‖x‖ (v1, Eq. 21).", 1, kind=SLIP),
    Claim("3.1-theta", LINEAR, "Wide linear networks keep the angles of embeddings: θ̄ˡ = θ.",
        _angle("linear embedding", ANGLES)),
    Claim("3.1-phi", LINEAR_GRADIENT,
        "Gradients of wide linear networks have the angles of the inputs: φ̄ = θ.",
        _angle("linear gradient", ANGLES)),
    Claim("4.1-norm", "v1 Cor. 4.2, ICLR Lemma 4.1",
        "Wide ReLU networks keep the norms of embeddings: ‖αˡ(x)‖ = ‖x‖.",
        _norm("relu embedding", 1)),
    Claim("4.1-theta", "v1 Thm 4.1, ICLR Lemma 4.1",
        "In wide ReLU networks embeddings have the angles θˡ = gˡ(θ) (Eq. 7–9).",
        _angle("relu embedding", _embedded(ANGLES))),
    Claim("4.4-phi", GRADIENT, "In wide ReLU networks cos φ is the sum of Eq. 10.",
        _angle("relu gradient", gradient_angle(ANGLES, INFINITELY_WIDE))),
    Claim("4.4-norm", GRADIENT, "In wide ReLU networks ‖∇f(x)‖ = (L+1)‖x‖.",
        _norm("relu gradient", *GRADIENT_NORM), "√(L+1)‖x‖ (v1, Eq. 39).", 1, kind=SLIP),
    Claim("4.4-proof", "v1 Appendix D.4, Eq. 36; newest likewise",
        "In the proof of Thm 4.4, ⟨δˡ(x), δˡ(z)⟩ is the product of 1 − θˡ′/π from l−1 to L+1.",
        lambda _: [_tends(
            SETTING.replace("l = L", "l = 1, L"), "⟨δ¹(x), δ¹(z)⟩", _measured()["relu delta"],
            _product(DEPTH + 2), _product(DEPTH),
        )], "From l−1 to L−1, as Eq. 37 has it.", kind=SLIP),
])  # fmt: skip


@CLAIMS.add(
    "3.2-kernel", "v1 and ICLR Cor. 3.2, newest Cor. 2.4",
    "The NTK of wide linear networks is (L+1)² G.",
    "(L+1) G (v1, Eq. 21). Either way κ̄ = κ₀.", 2, kind=SLIP,
)  # fmt: skip
def linear_kernel() -> Findings:
    yield _tends(SETTING, "K̄ᵢⱼ/Gᵢⱼ", _measured()["linear kernel"], (DEPTH + 1) ** 2, DEPTH + 1)


@CLAIMS.add(
    "3.2-kappa", "v1 and ICLR Cor. 3.2, newest Cor. 2.4",
    "The NTK of wide linear networks has the condition number of the inputs: κ̄ = κ₀.",
)  # fmt: skip
def linear_condition_number() -> Findings:
    """Six samples, which have a Gram matrix of full rank."""
    yield _tends(f"L = {DEPTH}, six random samples", "κ̄/κ₀", _measured()["linear κ"], 1)


SMALL = ((16, 20_000), (64, 4_000))  # widths, and how many networks of each


@CLAIMS.add(
    "7-width", "v1 and ICLR §7",
    "Wherever the limit m → ∞ is taken, finite width adds noise of mean zero, which tends to 0.",
)  # fmt: skip
def zero_mean_noise_of_a_layer() -> Findings:
    """The limits of Lemmas C.1, D.2 and D.3, which are those of one layer, by many narrow layers:
    the means agree with the limits, the noise falls as the root of the width."""
    limits = {
        "Lemma C.1: an entry of AᵀA/m": (np.ones(len(ANGLES)), lambda u, v, w: w * w),
        "Lemma D.2: ⟨u₁, u₂⟩": (
            ((math.pi - ANGLES) * SIDES[0] + SIDES[1]) / math.pi,
            lambda u, v, w: 2 * np.maximum(u, 0) * np.maximum(v, 0),
        ),
        "Lemma D.3: an entry of A₁A₂ᵀ": (
            (math.pi - ANGLES) / math.pi, lambda u, v, w: 2 * (u >= 0) * (v >= 0) * w * w,
        ),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    for quantity, (limit, term) in limits.items():
        scores, noise = [], []
        for width, draws in SMALL:
            first, second, w = rng.standard_normal((3, len(ANGLES), draws, width))
            other = SIDES[0][:, None, None] * first + SIDES[1][:, None, None] * second
            values = term(first, other, w).mean(axis=-1)
            noise.append(values.std(axis=-1, ddof=1))
            away = values.mean(axis=-1) - limit
            scores.append(np.abs(away) / noise[-1] * math.sqrt(draws))
        falls = noise[1] / noise[0] * math.sqrt(SMALL[1][0] / SMALL[0][0])
        yield Finding(
            f"θ = 10°, 60°, 120°, {' and '.join(f'{n:,} draws at m = {m}' for m, n in SMALL)}",
            f"{quantity}, mean deviation in standard errors", f"≤ {ERRORS}", short(np.max(scores)),
            f"noise {' → '.join(short(values.max()) for values in noise)}",
            np.max(scores) <= ERRORS and (np.abs(falls - 1) < 0.2).all(),
        )  # fmt: skip


@CLAIMS.add(
    "ours-7-bias", "ours; on v1 and ICLR §7",
    "The entries of K also have a bias: none on the diagonal, elsewhere of order 1/m.",
)  # fmt: skip
def zero_mean_noise() -> Findings:
    """The noise of K's entries, by many small networks of several layers: it falls as the root of
    the width, the mean faster, and the diagonal has none."""
    x = _inputs()
    norms = np.linalg.norm(x, axis=1)
    scale = np.outer(norms, norms)
    theta = np.arccos(np.clip(x @ x.T / scale, -1, 1))
    limit = (DEPTH + 1) * np.cos(gradient_angle(theta, INFINITELY_WIDE))
    diagonal = np.eye(len(x), dtype=bool)
    mean, noise, scores = [], [], []
    for width, draws in SMALL:
        kernels = _many_kernels(x, width, draws) / scale
        away, deviation = kernels.mean(axis=0) - limit, kernels.std(axis=0, ddof=1)
        mean.append(np.abs(away[~diagonal]).max())
        noise.append(deviation.max())
        scores.append(np.abs(away / (deviation / math.sqrt(draws))))
    falls = noise[1] / noise[0] * math.sqrt(SMALL[1][0] / SMALL[0][0])
    means, noises = (" → ".join(map(short, values)) for values in (mean, noise))
    diagonal_score = max(score[diagonal].max() for score in scores)
    yield Finding(
        f"L = {DEPTH}, four samples, {' and '.join(f'{n:,} draws at m = {m}' for m, n in SMALL)}",
        "largest mean deviation of an entry of K, in standard errors",
        f"≤ {ERRORS} on the diagonal, above elsewhere",
        f"{short(diagonal_score)} and {short(np.max(scores))}",
        f"of ‖xᵢ‖‖xⱼ‖: mean {means}, noise {noises}",
        diagonal_score <= ERRORS < np.max(scores) and mean[1] < mean[0] / 2
        and mean[0] < noise[0] and 0.4 < falls < 1.6,
    )  # fmt: skip


CLOSE = {0.2: (1, 6, 25, 100), 0.1: (4, 25, 100, 400)}  # θ: widths m, m θ² = 0.04, 0.25, 1, 4
MANY = 0.95  # "with high probability"


@CLAIMS.add(
    "newest-3.2", "newest Thm 3.2",
    "At finite width, too, φ > θ for small θ with high probability, where m = Ω(1/θ²).",
)  # fmt: skip
def separated_at_finite_width() -> Findings:
    """The share of networks, which grows with m θ²; the last by the binomial distribution."""
    for theta, widths in CLOSE.items():
        x = np.array([[1.0, 0.0], [math.cos(theta), math.sin(theta)]])
        shares, draws = [], 0
        for width in widths:
            kernels = _many_kernels(x, width, 2000 if width <= 25 else 100)
            lengths = np.sqrt(kernels[:, 0, 0] * kernels[:, 1, 1])
            dead = lengths == 0  # no gradient, no angle: not separated
            cosine = kernels[:, 0, 1] / np.where(dead, 1, lengths)
            draws = len(kernels)
            shares.append(np.mean((cosine < math.cos(theta)) & ~dead))
        successes = round(shares[-1] * draws)
        above, below = (
            binomtest(successes, draws, MANY, alternative=side).pvalue
            for side in ("greater", "less")
        )
        grows = (np.diff(shares) >= 0).all()
        yield judged(
            f"L = {DEPTH}, θ = {theta:g}, m θ² = 0.04, 0.25, 1, 4", "share of networks with φ > θ",
            "→ 1", ", ".join(f"{share:.2f}" for share in shares),
            f"m = {', '.join(map(str, widths))}; {draws} networks, share > {MANY}:"
            f" {chance(above)}",
            FAILS if below < LEVEL else HOLDS if grows and above < LEVEL else UNDECIDED, below,
        )  # fmt: skip


def _many_kernels(x: np.ndarray, width: int, draws: int) -> np.ndarray:
    """K of many ReLU networks of depth DEPTH, (draws, n, n): Eq. 1 and the chain rule, anew."""
    rng, scale = np.random.default_rng(0), math.sqrt(2 / width)
    batch = min(500, draws, 10**7 // width**2)  # at a time, for memory
    kernels = []
    for _ in range(draws // batch):
        sizes = [x.shape[1], *[width] * DEPTH, 1]
        weights = [rng.standard_normal((batch, b, a)) for a, b in itertools.pairwise(sizes)]
        forward, gates = [np.broadcast_to(x, (batch, *x.shape))], []
        for w in weights[:-1]:
            z = forward[-1] @ w.transpose(0, 2, 1)
            gates.append(scale * (z > 0))
            forward.append(scale * np.maximum(z, 0))
        delta, kernel = np.ones((batch, len(x), 1)), 0.0
        for w, alpha, gate in zip(weights[::-1], forward[::-1], [*gates[::-1], None], strict=True):
            across = delta @ delta.transpose(0, 2, 1)
            kernel = kernel + (alpha @ alpha.transpose(0, 2, 1)) * across
            if gate is not None:
                delta = gate * (delta @ w)
        kernels.append(kernel)
    return np.concatenate(kernels)


@CLAIMS.add(
    "C.1-proof", "v1 Appendix E.1, Eq. 47; newest likewise",
    "In the proof of Lemma C.1, P[|AᵀA/m − I| ≥ ε] ≤ Var/ε.", "Var/ε² (Chebyshev).",
    kind=SLIP,
)  # fmt: skip
def chebyshev() -> Findings:
    """An entry of AᵀA/m off the diagonal has the variance 1/m."""
    width, epsilon = WIDTHS[0], 0.1
    u, v = np.random.default_rng(0).standard_normal((2, 20_000, width))
    share = np.mean(np.abs((u * v).mean(axis=1)) >= epsilon)
    bounds = [1 / width / epsilon, 1 / width / epsilon**2]
    yield Finding(
        f"m = {width}, ε = {epsilon}, 20,000 draws", "P[|AᵀA/m − I| ≥ ε] of an entry",
        f"≤ {short(bounds[0])}", short(share), f"Var/ε² = {short(bounds[1])}",
        share <= bounds[0], share <= bounds[1],
    )  # fmt: skip


@CLAIMS.add("C.1", "v1 Lemma C.1", "AᵀA/m tends to the identity for a Gaussian m × d matrix A.")
def gaussian_columns() -> Findings:
    """AᵀA/m against the identity."""
    rng = np.random.default_rng(0)
    deviations = []
    for width in WIDTHS:
        a = rng.standard_normal((len(SEEDS), width, FEATURES))
        products = a.transpose(0, 2, 1) @ a / width
        deviations.append(math.sqrt(np.square(products - np.eye(FEATURES)).mean()))
    slope = np.polyfit(np.log(WIDTHS), np.log(deviations), 1)[0]
    yield Finding(
        "m = 64 to 1024, d = 16, 32 draws", "entries of AᵀA/m − I, root mean square", "→ 0",
        short(deviations[-1]), f"falls as m^{slope:.2f}".replace("-", "−"), abs(slope + 0.5) < 0.05,
    )  # fmt: skip


DRAWS = 1_000_000
SIDES = np.cos(ANGLES), np.sin(ANGLES)


def _pairs() -> Iterator[np.ndarray]:
    """For each of ANGLES wᵀv₁ and wᵀv₂ of Gaussian w, (2, draws), for vectors of norm 1."""
    u, v = np.random.default_rng(0).standard_normal((2, DRAWS))
    return (np.array([u, cosine * u + sine * v]) for cosine, sine in zip(*SIDES, strict=True))


def _mean_of(samples: Iterable[np.ndarray], limits: np.ndarray, quantity: str) -> Finding:
    means, errors = np.array([(s.mean(), s.std() / math.sqrt(DRAWS)) for s in samples]).T
    return Finding(
        "θ = 10°, 60°, 120°, a million draws", quantity, ", ".join(map(short, limits)),
        ", ".join(map(short, means)), f"± {short(errors.max())}",
        (np.abs(means - limits) < ERRORS * errors).all(),
    )  # fmt: skip


@CLAIMS.add("D.1", "v1 Lemma D.1", "P[wᵀv₁ ≥ 0 and wᵀv₂ ≥ 0] = 1/2 − θ/2π.")
def both_positive() -> Findings:
    samples = ((pair >= 0).all(axis=0) for pair in _pairs())
    yield _mean_of(samples, 0.5 - ANGLES / (2 * math.pi), "share of w with wᵀv₁ ≥ 0 and wᵀv₂ ≥ 0")


@CLAIMS.add(
    "D.2", "v1 Lemma D.2", "After a wide ReLU layer, ⟨u₁, u₂⟩ = ((π − θ) cos θ + sin θ) ‖v₁‖‖v₂‖/π."
)
def relu_product() -> Findings:
    samples = (2 * np.prod(np.maximum(pair, 0), axis=0) for pair in _pairs())
    limits = ((math.pi - ANGLES) * SIDES[0] + SIDES[1]) / math.pi
    yield _mean_of(samples, limits, "⟨u₁, u₂⟩ of vectors of norm 1")


@CLAIMS.add(
    "D.3", "v1 Lemma D.3", "A₁A₂ᵀ of gated Gaussian matrices is (π − θ)/π times the identity."
)
def gated_product() -> Findings:
    """Entries of A₁A₂ᵀ: a diagonal one and one off the diagonal."""
    gates = [2 * (pair >= 0).all(axis=0) for pair in _pairs()]
    u, v = np.random.default_rng(1).standard_normal((2, DRAWS))
    diagonal = (gate * u * u for gate in gates)
    yield _mean_of(diagonal, (math.pi - ANGLES) / math.pi, "a diagonal entry of A₁A₂ᵀ")
    yield _mean_of((gate * u * v for gate in gates), np.zeros(3), "another entry of A₁A₂ᵀ")
