"""Claims about training, by short descents of small networks: full-batch gradient descent on the
square loss, learning rate 1/λ_max of the NTK at initialisation, labels ±1 at random.

The paper trains classifiers by SGD on the cross entropy. Its theory, which these claims are about,
is that of gradient descent on the square loss.
"""

import itertools
import math

import numpy as np

from ntkcond.artefacts.claims.claim import Claims, Finding, Findings, bounded, short
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.training.descent import descend

CLAIMS = Claims()
WIDTH = 512  # the paper's
SEEDS = range(3)
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


def _trained(x: np.ndarray, network: MLP, seed: int, steps: int) -> tuple[np.ndarray, float]:
    """‖f(X) − y‖ before each step and after the last, and the relative change of the NTK."""
    y = np.random.default_rng(seed).choice([-1.0, 1.0], len(x))
    weights = network.weights(seed, x.shape[1])
    before = empirical_ntk(network.layer_gradients(x, weights))
    rate = 1 / np.linalg.eigvalsh(before)[-1]
    path = descend(x, y, weights, network, rate)
    residuals = np.array([state.norm for state in itertools.islice(path, steps + 1)])
    after = empirical_ntk(network.layer_gradients(x, weights))
    return residuals, float(np.linalg.norm(after - before) / np.linalg.norm(before))


@CLAIMS.add(
    "6-constant", "v1 and ICLR §6; newest §2 and §5",
    "The NTK of a wide network is almost constant in training, so that κ at its start is enough.",
)  # fmt: skip
def almost_constant() -> Findings:
    """The change of K over a descent, against width: whether it tends to 0."""
    x, relu = _spread_out(16, 32), ACTIVATIONS["relu"]
    changes = [
        np.mean([_trained(x, MLP(relu, 3, width), seed, STEPS)[1] for seed in SEEDS])
        for width in WIDTHS
    ]
    slope = np.polyfit(np.log(WIDTHS), np.log(changes), 1)[0]
    yield Finding(
        f"{SETTING}, L = 3, m = {', '.join(map(str, WIDTHS))}", CHANGE, "→ 0",
        ", ".join(map(short, changes)), f"falls as m^{slope:.2f}".replace("-", "−"),
        slope < -0.3,
    )  # fmt: skip


@CLAIMS.add(
    "ours-6-constant", "ours; on v1 and ICLR §6; newest §2 and §5",
    "At the paper's width the NTK changes by at most a tenth in training.",
    "At m = 512 that of a deep network changes by more.",
)  # fmt: skip
def almost_constant_at_the_papers_width() -> Findings:
    """One seed, three depths."""
    x = _spread_out(16, 32)
    for depth in (1, 3, 10):
        residuals, change = _trained(x, MLP(ACTIVATIONS["relu"], depth, WIDTH), 0, STEPS)
        left = f"{short(100 * residuals[-1] / residuals[0])} % of the residual left"
        where = f"{SETTING}, L = {depth}, m = {WIDTH}"
        yield bounded(where, CHANGE, change, f"≤ {ALMOST}", left)


@CLAIMS.add(
    "6-faster", "v1 §6 (a)",
    "Wide networks with ReLU converge faster than linear models and linear networks.",
    "Where nearly parallel samples decide κ; not for random directions in many dimensions.",
)  # fmt: skip
def faster_than_linear() -> Findings:
    """The contraction a step over the last half of the steps, of ReLU and of linear networks of the
    same weights, and of the linear model, L = 0."""
    networks = [("relu", 1), ("linear", 1), ("linear", 0)]
    for words, x, steps in (
        ("16 samples in close pairs, 32 features", _close_pairs(16, 32), 2000),
        ("32 random directions, 256 features", _spread_out(32, 256), 60),
    ):
        rates = np.array([[_rate(x, name, depth, seed, steps) for name, depth in networks]
                          for seed in SEEDS])  # fmt: skip
        relu, linear, model = (f"{rate:.5f}" for rate in np.exp(np.log(rates).mean(axis=0)))
        yield Finding(
            f"{words}, {steps} steps, L = 1, m = {WIDTH}, {len(SEEDS)} seeds",
            "factor of the residual a step", f"< {linear} (linear network), {model} (model)", relu,
            "", (rates[:, :1] < rates[:, 1:]).all(),
        )  # fmt: skip


def _rate(x: np.ndarray, activation: str, depth: int, seed: int, steps: int) -> float:
    residuals, _ = _trained(x, MLP(ACTIVATIONS[activation], depth, WIDTH), seed, steps)
    half = steps // 2
    return math.exp(math.log(residuals[-1] / residuals[half]) / (steps - half))
