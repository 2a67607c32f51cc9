"""Claims about the limit of infinite width, from random networks and matrices of growing width.

A limit counts as reached where the mean over seeds at the largest width agrees with it within
ERRORS standard errors and a bias of BIAS/m, and the root mean square deviation falls with width,
about as 1/√m.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from ntkcond.artefacts.claims.claim import Claim, Evidence, Finding, short
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
    """Of every width and seed, for relu and linear: ratios of norms, and angles, of embeddings and
    of gradients; the entries of K relative to those of G; and κ̄/κ₀ of six random samples. The NTK
    is the layer-wise one, which tests hold against autograd."""
    x = torch.from_numpy(_inputs())
    gram = (x @ x.T).numpy()
    norms = np.sqrt(np.diag(gram))
    six = torch.from_numpy(np.random.default_rng(1).standard_normal((6, FEATURES)))
    kappa0 = torch.linalg.cond(six @ six.T).item()
    found: dict[str, dict[int, list]] = {}
    for width, seed in itertools.product(WIDTHS, SEEDS):
        relu, linear = (MLP(ACTIVATIONS[name], DEPTH, width) for name in ("relu", "linear"))
        weights = [torch.from_numpy(w) for w in relu.weights(seed, FEATURES)]
        kernel = empirical_ntk(linear.layer_gradients(six, weights))
        draw = {"linear κ": np.array([torch.linalg.cond(kernel).item() / kappa0])}
        for name, network in (("relu", relu), ("linear", linear)):
            factors = network.layer_gradients(x, weights)
            embedded = (factors[-1].forward @ factors[-1].forward.T).numpy()
            kernel = empirical_ntk(factors).numpy()
            draw[f"{name} kernel"] = (kernel / gram)[np.triu_indices(len(x))]
            for what, products in (("embedding", embedded), ("gradient", kernel)):
                lengths = np.sqrt(np.diag(products))
                cosines = products[0, 1:] / lengths[0] / lengths[1:]
                draw[f"{name} {what} norm"] = lengths / norms
                draw[f"{name} {what} angle"] = np.arccos(cosines)
        for name, values in draw.items():
            found.setdefault(name, {}).setdefault(width, []).append(values)
    return {
        name: {width: np.array(values) for width, values in widths.items()}
        for name, widths in found.items()
    }


def _agrees(draws: Draws, limit: np.ndarray) -> bool:
    """Whether the draws tend to the limit, as the module says."""
    last = draws[max(draws)]
    error = last.std(axis=0, ddof=1) / math.sqrt(len(last))
    margin = ERRORS * error + BIAS / max(draws) * np.abs(limit)
    near = np.abs(last.mean(axis=0) - limit) <= margin
    return bool(near.all()) and -0.8 < _slope(draws, limit) < -0.2


def _slope(draws: Draws, limit: np.ndarray) -> float:
    """Of the logarithm of the root mean square deviation from the limit against that of width."""
    deviation = [math.sqrt(np.square(draws[width] / limit - 1).mean()) for width in draws]
    return float(np.polyfit(np.log(list(draws)), np.log(deviation), 1)[0])


def _tends(
    setting: str,
    quantity: str,
    draws: Draws,
    stated: np.ndarray,
    corrected: np.ndarray | None = None,
    degrees: bool = False,
) -> Finding:
    """Whether draws tend to the stated limit, or to the corrected one."""
    unit = 180 / math.pi if degrees else 1.0
    last, limit = draws[max(draws)], stated if corrected is None else corrected
    error = last.std(axis=0, ddof=1) / math.sqrt(len(last))
    return Finding(
        f"{setting}, m = {max(draws)}, {len(last)} seeds",
        quantity,
        ", ".join(dict.fromkeys(short(value * unit) for value in np.atleast_1d(stated))),
        ", ".join(short(value * unit) for value in last.mean(axis=0)),
        f"± {short(error.max() * unit)}; deviation falls as m^{_slope(draws, limit):.2f}".replace(
            "-", "−"
        ),
        _agrees(draws, np.broadcast_to(stated, last.shape[1:])),
        corrected is not None and _agrees(draws, np.broadcast_to(corrected, last.shape[1:])),
    )


SETTING = f"l = L = {DEPTH}, θ = 10°, 60°, 120°, norms 1.3 and 2.1"
ONE = np.ones(1)


def _norm(activation: str, what: str, stated: float, corrected: float | None = None):
    sign = "αᴸ" if what == "embedding" else "∇f"

    def test(_: Evidence) -> Iterator[Finding]:
        yield _tends(
            SETTING, f"‖{sign}(x)‖/‖x‖", _measured()[f"{activation} {what} norm"], stated * ONE,
            None if corrected is None else corrected * ONE,
        )  # fmt: skip

    return test


def _angle(activation: str, what: str, limits: np.ndarray):
    sign = "θᴸ" if what == "embedding" else "φ"

    def test(_: Evidence) -> Iterator[Finding]:
        draws = _measured()[f"{activation} {what} angle"]
        yield _tends(SETTING, f"{sign} (degrees)", draws, limits, degrees=True)

    return test


def _embedded(theta: np.ndarray) -> np.ndarray:
    for _ in range(DEPTH):
        theta = g(theta)
    return theta


def linear_kernel(_: Evidence) -> Iterator[Finding]:
    draws = _measured()["linear kernel"]
    yield _tends(SETTING, "K̄ᵢⱼ/Gᵢⱼ", draws, (DEPTH + 1.0) ** 2 * ONE, (DEPTH + 1.0) * ONE)


def linear_condition_number(_: Evidence) -> Iterator[Finding]:
    """Of six samples, which have a Gram matrix of full rank."""
    yield _tends(f"L = {DEPTH}, six random samples", "κ̄/κ₀", _measured()["linear κ"], ONE)


def zero_mean_noise(_: Evidence) -> Iterator[Finding]:
    """Of K's entries, by many small networks. As corrected: the noise falls as the root of the
    width, its mean faster, and the diagonal has none."""
    x = _inputs()
    norms = np.linalg.norm(x, axis=1)
    theta = np.arccos(np.clip(x @ x.T / np.outer(norms, norms), -1, 1))
    limit = (DEPTH + 1) * np.cos(gradient_angle(theta, INFINITELY_WIDE)) * np.outer(norms, norms)
    diagonal = np.eye(len(x), dtype=bool)
    relative, noise, scores = [], [], []
    for width, draws in SMALL:
        kernels = _many_kernels(x, width, draws) / np.outer(norms, norms)
        away = kernels.mean(axis=0) - limit / np.outer(norms, norms)
        deviation = kernels.std(axis=0, ddof=1)
        relative.append(np.abs(away[~diagonal]).max())
        noise.append(deviation.max())
        scores.append(away / (deviation / math.sqrt(draws)))
    biased = max(np.abs(each).max() for each in scores)
    yield Finding(
        f"L = {DEPTH}, four samples, {' and '.join(f'{n:,} draws at m = {m}' for m, n in SMALL)}",
        "largest mean deviation of an entry of K, in standard errors", f"≤ {ERRORS}", short(biased),
        f"of ‖xᵢ‖‖xⱼ‖: mean {' → '.join(map(short, relative))},"
        f" noise {' → '.join(map(short, noise))}",
        bool(biased <= ERRORS),
        bool(
            max(np.abs(each[diagonal]).max() for each in scores) <= ERRORS
            and relative[1] < relative[0] / 2
            and relative[0] < noise[0]
            and 0.4 < noise[1] / noise[0] * math.sqrt(SMALL[1][0] / SMALL[0][0]) < 1.6
        ),
    )  # fmt: skip


SMALL = ((16, 20_000), (64, 4_000))  # widths, and how many networks of each


def _many_kernels(x: np.ndarray, width: int, draws: int) -> np.ndarray:
    """K of many ReLU networks of depth DEPTH, (draws, n, n): Eq. 1 and the chain rule, anew."""
    rng, scale, batch = np.random.default_rng(0), math.sqrt(2 / width), 500
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
            kernel = kernel + (alpha @ alpha.transpose(0, 2, 1)) * (
                delta @ delta.transpose(0, 2, 1)
            )
            if gate is not None:
                delta = gate * (delta @ w)
        kernels.append(kernel)
    return np.concatenate(kernels)


def gaussian_columns(_: Evidence) -> Iterator[Finding]:
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


def _pairs(theta: float) -> tuple[np.ndarray, np.ndarray]:
    """wᵀv₁ and wᵀv₂ of Gaussian w, for vectors of norm 1 at angle θ."""
    u, v = np.random.default_rng(0).standard_normal((2, DRAWS))
    return u, math.cos(theta) * u + math.sin(theta) * v


def _mean_of(samples: Sequence[np.ndarray], limits: Sequence[float], quantity: str) -> Finding:
    means = np.array([each.mean() for each in samples])
    errors = np.array([each.std() for each in samples]) / math.sqrt(DRAWS)
    return Finding(
        "θ = 10°, 60°, 120°, a million draws", quantity, ", ".join(map(short, limits)),
        ", ".join(map(short, means)), f"± {short(errors.max())}",
        bool((np.abs(means - limits) < ERRORS * errors).all()),
    )  # fmt: skip


def both_positive(_: Evidence) -> Iterator[Finding]:
    samples = [np.logical_and(*(side >= 0 for side in _pairs(theta))) for theta in ANGLES]
    limits = [0.5 - theta / (2 * math.pi) for theta in ANGLES]
    yield _mean_of(samples, limits, "share of w with wᵀv₁ ≥ 0 and wᵀv₂ ≥ 0")


def relu_product(_: Evidence) -> Iterator[Finding]:
    samples = [2 * np.prod(np.maximum(_pairs(theta), 0), axis=0) for theta in ANGLES]
    limits = [((math.pi - theta) * math.cos(theta) + math.sin(theta)) / math.pi for theta in ANGLES]
    yield _mean_of(samples, limits, "⟨u₁, u₂⟩ of vectors of norm 1")


def gated_product(_: Evidence) -> Iterator[Finding]:
    """Entries of A₁A₂ᵀ: a diagonal one and one off the diagonal."""
    gates = [2 * np.logical_and(*(side >= 0 for side in _pairs(theta))) for theta in ANGLES]
    u, v = np.random.default_rng(1).standard_normal((2, DRAWS))
    yield _mean_of(
        [gate * u * u for gate in gates],
        [(math.pi - theta) / math.pi for theta in ANGLES],
        "a diagonal entry of A₁A₂ᵀ",
    )
    yield _mean_of([gate * u * v for gate in gates], [0.0] * 3, "another entry of A₁A₂ᵀ")


CLAIMS = [
    Claim(
        "3.1-embedding",
        "v1 and ICLR Thm 3.1; by its name newest Thm 2.3",
        "Wide linear networks keep the norms of embeddings: ‖ᾱˡ(x)‖ = ‖x‖.",
        _norm("linear", "embedding", 1.0),
    ),
    Claim(
        "3.1-gradient",
        "v1 and ICLR Thm 3.1",
        "Gradients of wide linear networks have the norm ‖∇f̄(x)‖ = (L+1)‖x‖.",
        _norm("linear", "gradient", DEPTH + 1.0, math.sqrt(DEPTH + 1)),
        "√(L+1)‖x‖ (v1, Eq. 21).",
        1,
    ),
    Claim(
        "3.1-theta",
        "v1 and ICLR Thm 3.1; by its name newest Thm 2.3",
        "Wide linear networks keep the angles of embeddings: θ̄ˡ = θ.",
        _angle("linear", "embedding", ANGLES),
    ),
    Claim(
        "3.1-phi",
        "v1 and ICLR Thm 3.1; by its name newest Thm 2.3",
        "Gradients of wide linear networks have the angles of the inputs: φ̄ = θ.",
        _angle("linear", "gradient", ANGLES),
    ),
    Claim(
        "3.2-kernel",
        "v1 and ICLR Cor. 3.2",
        "The NTK of wide linear networks is (L+1)² G.",
        linear_kernel,
        "(L+1) G (v1, Eq. 21). Either way κ̄ = κ₀.",
        2,
    ),
    Claim(
        "3.2-kappa",
        "v1 and ICLR Cor. 3.2; by its name newest Cor. 2.4",
        "The NTK of wide linear networks has the condition number of the inputs: κ̄ = κ₀.",
        linear_condition_number,
    ),
    Claim(
        "4.1-norm",
        "v1 Thm 4.1 and Cor. 4.2, ICLR Lemma 4.1; by its name newest Lemma 3.1",
        "Wide ReLU networks keep the norms of embeddings: ‖αˡ(x)‖ = ‖x‖.",
        _norm("relu", "embedding", 1.0),
    ),
    Claim(
        "4.1-theta",
        "v1 Thm 4.1 and Cor. 4.2, ICLR Lemma 4.1; by its name newest Lemma 3.1",
        "In wide ReLU networks embeddings have the angles θˡ = gˡ(θ) (Eq. 7–9).",
        _angle("relu", "embedding", _embedded(ANGLES)),
    ),
    Claim(
        "4.4-phi",
        "v1 Thm 4.4, ICLR Lemma 4.3",
        "In wide ReLU networks cos φ is the sum of Eq. 10.",
        _angle("relu", "gradient", gradient_angle(ANGLES, INFINITELY_WIDE)),
    ),
    Claim(
        "4.4-norm",
        "v1 Thm 4.4, ICLR Lemma 4.3",
        "In wide ReLU networks ‖∇f(x)‖ = (L+1)‖x‖.",
        _norm("relu", "gradient", DEPTH + 1.0, math.sqrt(DEPTH + 1)),
        "√(L+1)‖x‖ (v1, Eq. 39).",
        1,
    ),
    Claim(
        "7-width",
        "v1 and ICLR §7",
        "Finite width only adds noise of mean zero, which tends to 0.",
        zero_mean_noise,
        "The noise falls as 1/√m; its mean is 0 on the diagonal only, elsewhere of order 1/m.",
    ),
    Claim(
        "C.1",
        "v1 Lemma C.1",
        "AᵀA/m tends to the identity for a Gaussian m × d matrix A.",
        gaussian_columns,
    ),
    Claim("D.1", "v1 Lemma D.1", "P[wᵀv₁ ≥ 0 and wᵀv₂ ≥ 0] = 1/2 − θ/2π.", both_positive),
    Claim(
        "D.2",
        "v1 Lemma D.2",
        "After a wide ReLU layer, ⟨u₁, u₂⟩ = ((π − θ) cos θ + sin θ) ‖v₁‖‖v₂‖/π.",
        relu_product,
    ),
    Claim(
        "D.3",
        "v1 Lemma D.3",
        "A₁A₂ᵀ of gated Gaussian matrices is (π − θ)/π times the identity.",
        gated_product,
    ),
]
