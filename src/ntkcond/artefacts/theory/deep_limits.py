"""κ of deep networks at infinite width: how fast its limit is reached, what biases and the scale of
the weights change (newest Thm 4.3, Remark 2.1; Xiao et al. 2020).

If all cosines of gradients tend to c, κ of n samples of norm 1 tends to 1 + n c/(1 − c).
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from ntkcond.artefacts.verdicts.claim import (
    BELIEF,
    Claims,
    Finding,
    Findings,
    bounded,
    interval,
    short,
)
from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.networks.gaussian import moment, normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import products

CLAIMS = Claims()
RELU, LINEAR, TANH = (ACTIVATIONS[name] for name in ("relu", "linear", "tanh"))
ANGLES_DEG = (5, 30, 60, 90)
RATE = (10_000, 30_000)  # depths
DEPTHS = (1, 3, 10, 30, 100)
SAMPLES, FEATURES, ORTHOGONAL = 16, 32, 200
BIAS = 0.3
PHASES = {"ordered": 0.8, "critical": 1.0, "chaotic": 1.25}  # σ_w² over its critical value


def cosine(theta: np.ndarray, network: MLP, weight_variance: float = 1.0) -> np.ndarray:
    """cos φ of samples of norm 1 at angles θ."""
    square, deficit, _ = products(theta, network, weight_variance)
    return 1 - deficit / square


def kappa(network: MLP, weight_variance: float = 1.0, features: int = FEATURES) -> float:
    """κ of SAMPLES random directions."""
    x = np.random.default_rng(0).standard_normal((SAMPLES, features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    pairs = np.triu_indices(SAMPLES, 1)
    kernel = np.eye(SAMPLES)
    kernel[pairs] = kernel.T[pairs] = cosine(np.arccos((x @ x.T)[pairs]), network, weight_variance)
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low


@CLAIMS.add(
    "ours-depth-rate", "ours; an extension of newest Thms 3.5 and 4.3",
    "Depth brings φ and κ to their limits slowly: cos φ − 1/4 falls as (3/8) ln L/L.",
)  # fmt: skip
def slowly() -> Findings:
    """g(θ) = θ − a θ² − a² θ³/2 + …, a = 1/(3π), so that θˡ ≈ 3π/(l + 3/2 ln l): what this adds to
    the sum of Lemma 3.1."""
    theta = np.radians(ANGLES_DEG)
    first, second = (L * (cosine(theta, MLP(RELU, L, math.inf)) - 0.25) for L in RATE)
    slope = (second - first) / math.log(RATE[1] / RATE[0])
    yield Finding(
        f"θ = {', '.join(f'{angle}°' for angle in ANGLES_DEG)}, L from {RATE[0]:,} to {RATE[1]:,}",
        "slope of L (cos φ − 1/4) over ln L", "3/8", interval(slope),
        f"cos φ − 1/4 at L = {RATE[1]:,}: {interval(second / RATE[1])}",
        bool(np.abs(slope / 0.375 - 1).max() < 0.02),
    )  # fmt: skip


@CLAIMS.add(
    "newest-2.1", "newest Remark 2.1", "With biases, results may be others.",
    "They are: with depth κ tends to 1 + 4n/3, not to (n + 3)/3 (`ours-bias-limit`); κ of linear"
    " networks grows with depth and no longer is κ₀. But κ with ReLU stays below it on data"
    " (`ours-2.1-networks`).", kind=BELIEF,
)  # fmt: skip
def others_with_biases() -> Findings:
    """For n random directions; one result that is another is enough."""
    for bias in (BIAS, 1.0):
        where = f"β = {bias:g}, {SAMPLES} random directions of {FEATURES} features, m = ∞"
        deep = kappa(MLP(RELU, RATE[0], math.inf, bias=bias))
        limit = (SAMPLES + 3) / 3
        yield Finding(
            f"{where}, L = {RATE[0]:,}", "κ, against newest Thm 4.3",
            f"not {short(limit)}, within a half", short(deep),
            f"1 + 4n/3 = {short(1 + 4 * SAMPLES / 3)}", abs(deep / limit - 1) > 0.5,
        )  # fmt: skip
        linear = [kappa(MLP(LINEAR, L, math.inf, bias=bias)) for L in (0, 1, 10)]
        yield Finding(
            f"{where}, linear", "κ̄ at L = 10 / at L = 1, against Cor. 2.4", "not 1",
            short(linear[2] / linear[1]), f"L = 1, 10: {', '.join(map(short, linear[1:]))}",
            linear[2] / linear[1] > 1.1,
        )  # fmt: skip


@CLAIMS.add(
    "ours-bias-limit", "ours; on newest Thm 4.3 and Remark 2.1",
    "With biases of any size cos φ of deep ReLU networks tends to 4/7, not 1/4, and κ to 1 + 4n/3,"
    " not (n + 3)/3: the share of the biases in the variance grows with the layers.",
)  # fmt: skip
def another_limit() -> Findings:
    """The variance of layer l is β² l, and θˡ ≈ 3π/2l: Σ β² l (l/L)^(3/2) over Σ β² l."""
    theta = np.radians([60, 90])
    for bias in (BIAS, 1.0):
        before, after = (cosine(theta, MLP(RELU, L, math.inf, bias=bias)) for L in RATE)
        nearer = np.abs(after - 4 / 7) < np.abs(before - 4 / 7)
        yield Finding(
            f"β = {bias:g}, θ = 60°, 90°, L = {RATE[1]:,}", "cos φ", "4/7 = 0.5714, within 0.01",
            interval(after), f"at L = {RATE[0]:,}: {interval(before)}",
            bool((np.abs(after - 4 / 7) < 0.01).all() and nearer.all()),
        )  # fmt: skip


@CLAIMS.add(
    "ours-biases", "ours; on newest Remark 2.1",
    "Biases give linear networks a mean mode, too, which grows with depth. So with them ReLU lowers"
    " κ even of nearly orthogonal samples: at every depth if β ≥ 1, in deep networks if β is"
    " smaller. Without them it raises it.",
)  # fmt: skip
def biases_at_infinite_width() -> Findings:
    deep = {0.1: DEPTHS[-1:], BIAS: DEPTHS[2:]}
    for bias in (0, *deep, 1, 2):
        depths = deep.get(bias, DEPTHS)
        relu, linear = (
            np.array([
                kappa(MLP(activation, L, math.inf, bias=float(bias)), features=ORTHOGONAL)
                for L in depths
            ])
            for activation in (RELU, LINEAR)
        )  # fmt: skip
        yield bounded(
            f"β = {bias:g}, {SAMPLES} random directions of {ORTHOGONAL} features, m = ∞,"
            f" L = {', '.join(map(str, depths))}",
            "κ of ReLU / κ of linear", relu / linear, "< 1" if bias else "> 1",
            f"κ of ReLU {', '.join(map(short, relu))}",
        )  # fmt: skip


@functools.cache
def _variance(activation: Activation, weights: float) -> float:
    """q*, of preactivations in deep layers, with biases BIAS."""
    scale, q = weights * normalisation(activation), 1.0
    for _ in range(300):
        root = math.sqrt(q)
        q = scale * moment(lambda z: activation.value(root * z)) + BIAS**2  # noqa: B023
    return q


def chi(activation: Activation, weights: float) -> float:
    """χ₁ = σ_w² c E[σ′(√q* z)²], by which each deep layer multiplies a perturbation."""
    root = math.sqrt(_variance(activation, weights))
    slope = moment(lambda z: activation.slope(root * z))
    return weights * normalisation(activation) * slope


@functools.cache
def critical(activation: Activation) -> float:
    """σ_w² with χ₁ = 1, for biases BIAS."""
    return float(brentq(lambda weights: chi(activation, weights) - 1, 0.3, 3, xtol=1e-10))


def in_phase(phase: str, depths: Sequence[int]) -> np.ndarray:
    """κ of tanh networks."""
    weights = PHASES[phase] * critical(TANH)
    return np.array([kappa(MLP(TANH, depth, math.inf, bias=BIAS), weights) for depth in depths])


@CLAIMS.add(
    "ours-phases", "ours; on the phases of Xiao, Pennington and Schoenholz 2020, of tanh, m = ∞",
    "Depth lowers κ in the chaotic phase, to 1; raises it in the ordered one, as χ₁⁻ᴸ/L; and at the"
    " edge between them brings it to a limit, (n + 2)/2 for smooth activations.",
)  # fmt: skip
def phases() -> Findings:
    where = f"tanh, β = {BIAS:g}, {SAMPLES} random directions, m = ∞"
    kappas = in_phase("chaotic", (1, 10, 100))
    yield bounded(
        f"{where}, chaotic: χ₁ = {_chi('chaotic')}, L = 100", "κ", kappas[-1], "≤ 1.01",
        f"L = 1, 10, 100: {', '.join(map(short, kappas))}",
    )  # fmt: skip
    depths = np.array([100, 200])
    kappas = in_phase("ordered", depths)
    weights = PHASES["ordered"] * critical(TANH)
    growth = kappas[1] * depths[1] / (kappas[0] * depths[0])
    rate = math.log(growth) / (depths[1] - depths[0]) / -math.log(chi(TANH, weights))
    yield Finding(
        f"{where}, ordered: χ₁ = {_chi('ordered')}, L from 100 to 200",
        "growth of L κ per layer, in units of ln 1/χ₁", "1, within 2 %", short(rate),
        f"κ {', '.join(map(short, kappas))}", abs(rate - 1) < 0.02,
    )  # fmt: skip
    kappas = in_phase("critical", (1, 10, 1000))
    limit = (SAMPLES + 2) / 2
    yield Finding(
        f"{where}, critical: χ₁ = 1, L = 1,000", "κ", f"{limit:g}, within 2 %", short(kappas[-1]),
        f"L = 1, 10, 1,000: {', '.join(map(short, kappas))}",
        abs(kappas[-1] / limit - 1) < 0.02,
    )  # fmt: skip


def _chi(phase: str) -> str:
    return short(chi(TANH, PHASES[phase] * critical(TANH)))
