"""Claims about training, by short descents of small networks: full-batch gradient descent on the
square loss, learning rate 1/λ_max of the NTK at initialisation, labels ±1 at random. What differs
between seeds is judged as in `ntkcond.artefacts.verdicts.over_seeds`.

The paper trains classifiers by SGD on the cross entropy. Its theory, which these claims are about,
is that of gradient descent on the square loss.
"""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from ntkcond.artefacts.verdicts import over_seeds
from ntkcond.artefacts.verdicts.claim import (
    EXPERIMENT,
    LOSS_TO_BOUND,
    THEOREM,
    Claims,
    Findings,
    bounded,
    judged,
    short,
)
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.training.descent import descend

CLAIMS = Claims(kind=EXPERIMENT)
WIDTH = 512  # the paper's
SEEDS = range(3)
MORE_SEEDS = range(5)
WIDTHS = (64, 128, 256)
STEPS = 60
SETTING, CHANGE = f"16 random directions, {STEPS} steps", "‖K₆₀ − K₀‖/‖K₀‖"
ALMOST = 0.1  # "almost constant": of the NTK, by the Frobenius norm


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _spread_out(n: int, features: int) -> np.ndarray:
    """Random directions, (n, features)."""
    return _unit(np.random.default_rng(0).standard_normal((n, features)))


def _close_pairs(n: int, features: int) -> np.ndarray:
    """Random directions, every second one near the one before, (n, features)."""
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((n // 2, features)), 2, axis=0)
    return _unit(centres + 0.1 * rng.standard_normal((n, features)))


class _Run(NamedTuple):
    """residuals: ‖f(X) − y‖ before each step and after the last; change: of the NTK, relative;
    kappa: of the NTK at the start, so that η λ_min = 1/κ."""

    residuals: np.ndarray
    change: float
    kappa: float


def _trained(x: np.ndarray, network: MLP, seed: int, steps: int) -> _Run:
    y = np.random.default_rng(seed).choice([-1.0, 1.0], len(x))
    weights = network.weights(seed, x.shape[1])
    before = empirical_ntk(network.layer_gradients(x, weights))
    smallest, largest = np.linalg.eigvalsh(before)[[0, -1]]
    path = descend(x, y, weights, network, 1 / largest)
    residuals = np.array([state.norm for state in itertools.islice(path, steps + 1)])
    after = empirical_ntk(network.layer_gradients(x, weights))
    change = float(np.linalg.norm(after - before) / np.linalg.norm(before))
    return _Run(residuals, change, largest / smallest)


@functools.cache
def _runs(depth: int) -> list[_Run]:
    """At the paper's width, by seed."""
    x, network = _spread_out(16, 32), MLP(ACTIVATIONS["relu"], depth, WIDTH)
    return [_trained(x, network, seed, STEPS) for seed in MORE_SEEDS]


@CLAIMS.add(
    "6-constant", "v1 and ICLR §6; newest §2 and §5",
    "The NTK of a wide network is almost constant in training, so that κ at its start is enough.",
    kind=THEOREM,
)  # fmt: skip
def almost_constant() -> Findings:
    """The change of K over a descent, against width: whether it tends to 0, by its power of the
    width, which has a spread over seeds."""
    x, relu = _spread_out(16, 32), ACTIVATIONS["relu"]
    changes = np.array([
        [_trained(x, MLP(relu, 3, width), seed, STEPS).change for width in WIDTHS]
        for seed in SEEDS
    ])  # fmt: skip
    powers = np.polyfit(np.log(WIDTHS), np.log(changes).T, 1)[0]
    verdict, p, words = over_seeds.above_zero(pd.DataFrame({3: -powers}))
    mean = changes.mean(axis=0)
    slope = np.polyfit(np.log(WIDTHS), np.log(mean), 1)[0]
    yield judged(
        f"{SETTING}, L = 3, m = {', '.join(map(str, WIDTHS))}", CHANGE, "→ 0",
        ", ".join(map(short, mean)), f"falls as m^{slope:.2f}, {words}".replace("-", "−"),
        verdict, p,
    )  # fmt: skip


@CLAIMS.add(
    "ours-6-constant", "ours; on v1 and ICLR §6; newest §2 and §5",
    "At the paper's width the NTK changes by at most a tenth in training.",
    "At m = 512 that of a deep network changes by more.",
)  # fmt: skip
def almost_constant_at_the_papers_width() -> Findings:
    for depth in (1, 3, 10):
        runs = _runs(depth)
        changes = np.array([run.change for run in runs])
        verdict, p, words = over_seeds.above_zero(pd.DataFrame({depth: np.log(ALMOST / changes)}))
        left = np.mean([run.residuals[-1] / run.residuals[0] for run in runs])
        yield judged(
            f"{SETTING}, L = {depth}, m = {WIDTH}", CHANGE, f"≤ {ALMOST}", short(changes.mean()),
            f"{words}, {short(100 * left)} % of the residual left", verdict, p,
        )  # fmt: skip


@CLAIMS.add(
    "6-smallest", "v1 and ICLR §6, after Du et al.",
    "Gradient descent leaves at most (1 − η λ_min/2)ᵗ of the square loss after t steps.",
    kind=THEOREM,
)  # fmt: skip
def bounded_by_the_smallest_eigenvalue() -> Findings:
    """The largest ratio of the loss to the bound, of each run over all steps; λ_min at the
    start."""
    for depth in (1, 3, 10):
        runs = _runs(depth)
        ratios = [
            np.square(run.residuals[1:] / run.residuals[0])
            / (1 - 0.5 / run.kappa) ** np.arange(1, STEPS + 1)
            for run in runs
        ]
        yield bounded(
            f"{SETTING}, L = {depth}, m = {WIDTH}, η = 1/λ_max, {len(runs)} runs", LOSS_TO_BOUND,
            [ratio.max() for ratio in ratios], "≤ 1",
        )  # fmt: skip


@CLAIMS.add(
    "6-faster", "v1 §6 (a)",
    "Wide networks with ReLU converge faster than linear models and linear networks.",
    "Where nearly parallel samples decide κ; not for random directions in many dimensions.",
)  # fmt: skip
def faster_than_linear() -> Findings:
    """The contraction a step over the last half of the steps, of ReLU and of linear networks of the
    same weights, and of the linear model, L = 0; seed by seed."""
    networks = [("relu", 1), ("linear", 1), ("linear", 0)]
    for words, x, steps in (
        ("16 samples in close pairs, 32 features", _close_pairs(16, 32), 2000),
        ("32 random directions, 256 features", _spread_out(32, 256), 60),
    ):
        rates = np.log([[_rate(x, name, depth, seed, steps) for name, depth in networks]
                        for seed in SEEDS])  # fmt: skip
        relu, linear, model = (f"{rate:.5f}" for rate in np.exp(rates.mean(axis=0)))
        gains = pd.DataFrame(rates[:, 1:] - rates[:, :1], columns=[1, 0])
        verdict, p, spread = over_seeds.above_zero(gains)
        yield judged(
            f"{words}, {steps} steps, L = 1, m = {WIDTH}, {len(SEEDS)} seeds",
            "factor of the residual a step", f"< {linear} (linear network), {model} (model)", relu,
            spread, verdict, p,
        )  # fmt: skip


def _rate(x: np.ndarray, activation: str, depth: int, seed: int, steps: int) -> float:
    residuals = _trained(x, MLP(ACTIVATIONS[activation], depth, WIDTH), seed, steps).residuals
    half = steps // 2
    return math.exp(math.log(residuals[-1] / residuals[half]) / (steps - half))
