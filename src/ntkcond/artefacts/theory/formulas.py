"""Claims about the closed forms of infinite width: exact up to rounding, only inputs are random.

That wide networks have these forms is tested in `ntkcond.artefacts.theory.wide_networks`.
"""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import brentq

from ntkcond.artefacts.verdicts.claim import (
    BELIEF,
    FAILS,
    SLIP,
    UNCONTRADICTED,
    UNDECIDED,
    Claims,
    Finding,
    Findings,
    bounded,
    interval,
    judged,
    short,
)
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import g, gradient_angle, gradient_cosine, infinite_width_ntk

CLAIMS = Claims()
DEPTHS = (1, 2, 3, 5, 10)
DEEP = (*DEPTHS, 30, 100, 1000)
SMALL = np.radians([0.1, 0.5, 1, 2, 5])  # of θ = o(1/L)
LIMIT_TOLERANCE = 1e-3  # of a limit as θ → 0, extrapolated from two angles
NORMS = ((1.0, 1.0), (1.3, 2.1))  # of two samples


def _angle(theta: np.ndarray, depth: int) -> np.ndarray:
    """φ in radians of a ReLU network."""
    return gradient_angle(theta, MLP(ACTIVATIONS["relu"], depth, math.inf))


def _kernel(x: np.ndarray, depth: int, trainable: str = "all") -> np.ndarray:
    return infinite_width_ntk(x, MLP(ACTIVATIONS["relu"], depth, math.inf, trainable=trainable))


def _kappa(kernel: np.ndarray) -> float:
    low, high = np.linalg.eigvalsh(kernel)[[0, -1]]
    return high / low


def _two(a: float, b: float, theta: float) -> np.ndarray:
    """Two samples of norms a and b at an angle, (2, 2)."""
    return np.array([[a, 0.0], [b * math.cos(theta), b * math.sin(theta)]])


def _limits(ratio: Callable[[float, int], float], theta: float = 2e-3) -> np.ndarray:
    """Limits of ratio(θ, L) as θ → 0 for each of DEPTHS, the term linear in θ removed."""
    return np.array([2 * ratio(theta / 2, depth) - ratio(theta, depth) for depth in DEPTHS])


def _are(values: np.ndarray, limit: float) -> bool:
    return np.abs(values / limit - 1).max() < LIMIT_TOLERANCE


@CLAIMS.add(
    "4.3", "v1 Cor. 4.3, ICLR Thm 4.2, newest Lemma E.6",
    "For small angles θˡ = θ − l θ²/3π + o(θ²).",
)  # fmt: skip
def embedding_expansion() -> Findings:
    def ratio(theta: float, layer: int) -> float:
        angle = np.asarray(theta)
        for _ in range(layer):
            angle = g(angle)
        return float((theta - angle) / (layer * theta**2 / (3 * math.pi)))

    limits, quantity = _limits(ratio), "(θ − θˡ) / (l θ²/3π), as θ → 0"
    yield Finding("l = 1 to 10", quantity, "1", interval(limits), "", _are(limits, 1))


def _slopes() -> np.ndarray:
    """(1 − cos φ / cos θ) / (L θ), as θ → 0, for each of DEPTHS."""
    return _limits(
        lambda theta, depth: float(
            (1 - gradient_cosine(theta, depth) / math.cos(theta)) / (depth * theta)
        )
    )


EXPANSION = ("L = 1 to 10", "(1 − cos φ / cos θ) / (L θ), as θ → 0")


@CLAIMS.add(
    "4.5", "v1 Thm 4.5, ICLR Thm 4.4, newest Cor. 3.3",
    "For angles θ = o(1/L), cos φ = (1 − L θ/2π + o(θ)) cos θ.",
)  # fmt: skip
def separation_expansion() -> Findings:
    slopes = _slopes()
    yield Finding(*EXPANSION, "1/2π = 0.1592", interval(slopes), "", _are(slopes, 0.5 / math.pi))


@CLAIMS.add(
    "4.5-proof", "v1 Appendix D.5, last line",
    "In the proof of Thm 4.5, cos φ = (1 − L θ/2 + o(θ)) cos θ.",
    "1 − L θ/2π, as the theorem says.", 6, kind=SLIP,
)  # fmt: skip
def separation_proof() -> Findings:
    slopes = _slopes()
    holds = _are(slopes, 0.5), _are(slopes, 0.5 / math.pi)
    yield Finding(*EXPANSION, "1/2", interval(slopes), "", *holds)


@CLAIMS.add(
    "newest-3.3", "newest Cor. 3.3",
    "cos φ = (1 − L θ/2π + o(θ)) cos θ at depths L = Ω(1/θ).",
    "At L = o(1/θ), as v1 has it; at L = 1/θ the two sides are 0.865 and 0.841.", 13,
)  # fmt: skip
def separation_at_great_depth() -> Findings:
    """At L = 1/θ; as corrected: what is left of the ratio 1 at L = θ^(−1/2) falls with θ to 0."""

    def sides(theta: float, depth: int) -> tuple[float, float]:
        line = (1 - depth * theta / (2 * math.pi)) * math.cos(theta)
        return float(gradient_cosine(theta, depth)), line

    def ratio(theta: float, depth: int) -> float:
        cosine = float(gradient_cosine(theta, depth))
        return 2 * math.pi * (1 - cosine / math.cos(theta)) / (depth * theta)

    angles = (1e-2, 1e-4, 1e-6)
    deep = [sides(theta, round(1 / theta)) for theta in angles[:2]]
    off = np.abs(np.array([ratio(theta, round(theta**-0.5)) for theta in angles]) - 1)
    yield Finding(
        "θ = 0.01 and 0.0001, L = 1/θ", "cos φ", ", ".join(short(line) for _, line in deep),
        ", ".join(short(cosine) for cosine, _ in deep),
        f"at L = θ^(−1/2), θ to 10⁻⁶, the term in θ is off by {', '.join(map(short, off))}",
        all(abs(cosine - line) < LIMIT_TOLERANCE for cosine, line in deep),
        (np.diff(off) < 0).all() and off[-1] < LIMIT_TOLERANCE,
    )  # fmt: skip


@CLAIMS.add(
    "4.5-order", "v1 Thm 4.5, ICLR Thm 4.4, newest Cor. 3.3",
    "φ > θ for small angles, the more so the deeper the network.",
)  # fmt: skip
def small_angles() -> Findings:
    phi = np.array([_angle(SMALL, depth) for depth in (0, *DEPTHS)]) / SMALL
    setting = "θ = 0.1° to 5°, L = 1 to 10"
    yield bounded(setting, "φ/θ", phi[1:], "> 1")
    quantity = "growth of φ/θ from one of these depths to the next"
    yield bounded(setting, quantity, np.diff(phi, axis=0), "> 0")


@CLAIMS.add(
    "4-separated", "v1 and ICLR §4 and Fig. 1 (60°); newest §3 and Fig. 1 (30°)",
    "φ > θ for all θ below 60°; in the newest version, up to 30°.",
    "So it is, and further: up to 66.8° at L = 1, 69.6° at L = 10.", 11,
    artefact="claims, drawn in fig1",
)  # fmt: skip
def separated_up_to() -> Findings:
    """Where φ(θ) crosses θ."""
    ends = math.radians(30), math.radians(120)
    crossings = [
        math.degrees(brentq(lambda theta, depth=depth: float(_angle(theta, depth)) - theta, *ends))
        for depth in DEEP
    ]
    for stated in (60, 30):
        setting, quantity = f"θ < {stated}°, L = 1 to 1000", "angle up to which φ > θ (degrees)"
        yield bounded(setting, quantity, crossings, f"≥ {stated}")


@CLAIMS.add(
    "4-deeper", "v1 and ICLR §4 and Fig. 1 (60°), newest §3 and Fig. 1 (30°)",
    "Deeper networks have the larger φ where θ < 60°; in the newest version, where θ < 30°.",
    artefact="claims, drawn in fig1",
)  # fmt: skip
def deeper_is_larger() -> Findings:
    theta = np.arange(1, 60, 0.5)
    steps = np.degrees(np.diff([_angle(np.radians(theta), depth) for depth in range(201)], axis=0))
    for end in (60, 30):
        setting = f"θ = 1° to {end - 0.5}°, each L up to 200"
        growth = steps[:, theta < end]
        yield bounded(setting, "growth of φ by one layer (degrees)", growth, "> 0")


@CLAIMS.add(
    "4-large", "v1 and ICLR §4 and Fig. 1 (60°), newest §3 and Fig. 1 (30°)",
    "Where θ > 60°, φ > 60°: what differs stays apart; in the newest version, φ > 30° where"
    " θ > 30°.",
    artefact="claims, drawn in fig1",
)  # fmt: skip
def large_stay_large() -> Findings:
    for start in (60, 30):
        theta = np.radians(np.arange(start, 180.5, 0.5))
        smallest = [math.degrees(_angle(theta, depth).min()) for depth in DEEP]
        setting = f"θ = {start}° to 180°, L = 1 to 1000"
        yield bounded(setting, "smallest φ (degrees)", smallest, f"> {start}")


@CLAIMS.add(
    "4.6", "v1 Remark 4.6, ICLR Remark 4.5, newest Remark 3.4",
    "Gradients are also farther apart in distance, relative to their norms, (L+1)‖x‖.",
    "Relative to √(L+1)‖x‖.", 1, kind=SLIP,
)  # fmt: skip
def distances() -> Findings:
    a, b = NORMS[1]
    theta, layers = np.radians([1, 5, 10, 30]), np.add(DEPTHS, 1.0)[:, None]

    def distance(angle: np.ndarray) -> np.ndarray:
        return np.sqrt(a**2 + b**2 - 2 * a * b * np.cos(angle))

    ratios = np.array([distance(_angle(theta, depth)) for depth in DEPTHS]) / distance(theta)
    by_text = ratios * np.sqrt(layers) / layers
    yield Finding(
        "norms 1.3 and 2.1, θ = 1° to 30°, L = 1 to 10",
        "‖∇f(x) − ∇f(z)‖ / ((L+1) ‖x − z‖)", "> 1", interval(by_text),
        f"with √(L+1): {interval(ratios)}", by_text.min() > 1, ratios.min() > 1,
    )  # fmt: skip


@CLAIMS.add(
    "2.2", "v1 Prop. 2.2, ICLR Prop. 5.1, newest Prop. 4.1 and §4",
    "If two rows of B have a small angle φ, λ_min(B Bᵀ) = O(φ²) and κ = Ω(1/φ²).",
)  # fmt: skip
def close_rows() -> Findings:
    """λ_min of B Bᵀ as two of its rows approach each other."""
    rng = np.random.default_rng(0)
    angles = np.geomspace(0.1, 1e-4, 7)
    smallest, bound, kappas = [], [], []
    for phi in angles:
        b = rng.standard_normal((20, 40))
        b *= rng.uniform(0.5, 0.9, 20)[:, None] / np.linalg.norm(b, axis=1, keepdims=True)
        across = b[1] - b[0] * (b[0] @ b[1]) / (b[0] @ b[0])
        first, second = np.linalg.norm(b[0]), np.linalg.norm(b[1])
        unit = across / np.linalg.norm(across)
        b[1] = second * (math.cos(phi) * b[0] / first + math.sin(phi) * unit)
        squares = np.linalg.svd(b, compute_uv=False) ** 2
        smallest.append(squares[-1])
        kappas.append(squares[0] / squares[-1])
        product = (first * second) ** 2
        bound.append(2 * product / (first**2 + second**2) * (1 - math.cos(phi)))
    slope, kappa_slope = (
        np.polyfit(np.log(angles), np.log(values), 1)[0] for values in (smallest, kappas)
    )
    below = max(np.divide(smallest, bound))
    for quantity, expected, measured, holds in (
        ("λ_min / its bound ‖bᵢ‖²‖bⱼ‖² 2(1 − cos φ)/(‖bᵢ‖² + ‖bⱼ‖²)", "≤ 1", below,
         below <= 1 + 1e-6),
        ("slope of log λ_min against log φ", "2", slope, abs(slope - 2) < 0.1),
        ("κ φ²", "bounded from below", kappas * angles**2, kappa_slope < -1.9),
    ):  # fmt: skip
        setting = "20 random vectors of norm 0.5 to 0.9, two of them at φ = 0.1 to 0.0001"
        yield Finding(setting, quantity, expected, interval(measured), "", holds)


@CLAIMS.add(
    "2.2-proof", "v1 Appendix B, newest proof of Prop. 4.1",
    "In the proof of Prop. 2.2, c ≤ λ_max ≤ C, where all rows have norms from c to C.",
    "c² ≤ λ_max ≤ n C²; the proposition needs no more.", kind=SLIP,
)  # fmt: skip
def largest_of_rows() -> Findings:
    rng = np.random.default_rng(0)
    low, high, n = 0.5, 0.9, 20
    b = np.abs(rng.standard_normal((n, 40)))  # all in one orthant: far from orthogonal
    b *= rng.uniform(low, high, n)[:, None] / np.linalg.norm(b, axis=1, keepdims=True)
    largest = np.linalg.svd(b, compute_uv=False)[0] ** 2
    yield Finding(
        "20 random vectors of norm 0.5 to 0.9", "λ_max", f"{low} to {high}", short(largest), "",
        low <= largest <= high, low**2 <= largest <= n * high**2,
    )  # fmt: skip


def _random_sets() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for _ in range(20):
        yield "random sets of 20 samples of 30 features", rng.standard_normal((20, 30))
        mean = 3 * rng.standard_normal(30)
        yield "the same about a common mean", rng.standard_normal((20, 30)) + mean


@functools.cache
def _first_layer_ratios() -> dict[str, np.ndarray]:
    """For each kind of set, rows of `_extremes_of_first_layer`."""
    ratios: dict[str, list] = {}
    for kind, x in _random_sets():
        ratios.setdefault(kind, []).append(_extremes_of_first_layer(x))
    return {kind: np.array(rows) for kind, rows in ratios.items()}


def _extremes_of_first_layer(x: np.ndarray) -> tuple[float, float, float]:
    """λ_min(K)/λ_min(G), κ/κ₀ and λ_max(K)/λ_max(G)."""
    kernels = _kernel(x, 1, "first"), x @ x.T
    (low, high), (low0, high0) = (np.linalg.eigvalsh(kernel)[[0, -1]] for kernel in kernels)
    return low / low0, (high / low) / (high0 / low0), high / high0


@CLAIMS.add(
    "5.1", "v1 Thm 5.1, ICLR Thm 5.3",
    "One hidden layer, its first weights trained: λ_min(K) > λ_min(G) and κ < κ₀.",
    "λ_min(K) ≥ λ_min(G) and κ ≤ κ₀: of orthogonal samples both are equal.",
)  # fmt: skip
def first_layer() -> Findings:
    expected = {"λ_min(K)/λ_min(G)": "> 1", "κ/κ₀": "< 1"}
    for kind, ratios in _first_layer_ratios().items():
        for (quantity, relation), ratio in zip(expected.items(), ratios.T, strict=False):
            yield bounded(kind, quantity, ratio, relation)
    ratios = _extremes_of_first_layer(np.diag([1.0, 1.0, 2.0, 3.0]))
    for (quantity, relation), ratio in zip(expected.items(), ratios, strict=False):
        equal = math.isclose(ratio, 1, rel_tol=1e-12)
        yield Finding(
            "orthogonal samples", quantity, relation, short(ratio), "",
            abs(ratio - 1) > 1e-12, equal,
        )  # fmt: skip


@CLAIMS.add(
    "newest-4.2", "newest Thm 4.2",
    "W¹ alone trained, at every depth: λ_min(K) > λ_min(G), κ < κ₀, and the deeper the smaller κ.",
    "λ_min(K) ≥ λ_min(G), κ ≤ κ₀, and κ never rises: of orthogonal samples all are equal.",
)  # fmt: skip
def first_layer_of_deep_networks() -> Findings:
    sets = dict(_random_sets())  # the last of each kind
    sets["60 samples of 5 features"] = np.random.default_rng(0).standard_normal((60, 5))
    for kind, x in sets.items():
        values = np.linalg.eigvalsh([_kernel(x, depth, "first") for depth in range(11)])
        kappas = values[1:, -1] / values[1:, 0]
        if len(x) <= x.shape[1]:  # else λ_min(G) = 0 and κ₀ = ∞
            yield bounded(
                f"{kind}, L = 1 to 10", "λ_min(K)/λ_min(G)", values[1:, 0] / values[0, 0], "> 1"
            )
            kappa0 = values[0, -1] / values[0, 0]
            yield bounded(f"{kind}, L = 1 to 10", "κ/κ₀", kappas / kappa0, "< 1")
        steps = kappas[1:] / kappas[:-1]
        yield bounded(f"{kind}, L = 1 to 10", "κ of one layer more / κ", steps, "< 1")
    x = np.diag([1.0, 1.0, 2.0, 3.0])
    kappas = np.array([_kappa(_kernel(x, depth, "first")) for depth in range(11)])
    off = np.abs(kappas / kappas[0] - 1).max()
    yield Finding(
        "orthogonal samples, L = 1 to 10", "κ/κ₀", "< 1", interval(kappas[1:] / kappas[0]), "",
        (kappas[1:] < kappas[0] * (1 - 1e-12)).all(), off < 1e-12,
    )  # fmt: skip


@CLAIMS.add(
    "newest-E.4", "newest Lemma E.4",
    "Gating the rows of A by a wide random W raises λ_min(B) and lowers λ_max(B), B = A Aᵀ.",
    "≥ and ≤: where rows of A are orthogonal, B′ = B.",
)  # fmt: skip
def gated_rows() -> Findings:
    """In the limit B′ᵢⱼ = Bᵢⱼ (1 − θᵢⱼ/π), with the angles of what W is applied to."""
    rng = np.random.default_rng(0)

    def ratios(a: np.ndarray) -> np.ndarray:
        """λ_min(B′)/λ_min(B) and λ_max(B′)/λ_max(B)."""
        v = rng.standard_normal((len(a), 10))
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        gates = 1 - np.arccos(np.clip(v @ v.T, -1, 1)) / math.pi
        np.fill_diagonal(gates, 1)
        gated, gram = (np.linalg.eigvalsh(b)[[0, -1]] for b in (a @ a.T * gates, a @ a.T))
        return gated / gram

    smallest, largest = np.transpose([ratios(rng.standard_normal((20, 30))) for _ in range(20)])
    setting = "20 random A of 20 rows, W applied to random vectors"
    yield bounded(setting, "λ_min(B′)/λ_min(B)", smallest, "> 1")
    yield bounded(setting, "λ_max(B′)/λ_max(B)", largest, "< 1")
    smallest, largest = ratios(np.diag(np.linspace(1, 2, 20)))
    equal = np.allclose([smallest, largest], 1, rtol=1e-12)
    for quantity, expected, ratio, strict in (
        ("λ_min(B′)/λ_min(B)", "> 1", smallest, smallest > 1 + 1e-12),
        ("λ_max(B′)/λ_max(B)", "< 1", largest, largest < 1 - 1e-12),
    ):
        setting = "A with orthogonal rows"
        yield Finding(setting, quantity, expected, short(ratio), "", strict, equal)


@CLAIMS.add(
    "2-parallel", "v1 §2, ICLR §5.1",
    "Two samples with parallel gradients make the NTK singular, κ = ∞.",
)  # fmt: skip
def parallel_pair() -> Findings:
    x = np.array([[1.0, 0.2, 0.0], [2.0, 0.4, 0.0], [0.0, 1.0, 1.0]])
    eigenvalues = [np.linalg.eigvalsh(_kernel(x, depth)) for depth in DEPTHS]
    share = [abs(values[0]) / values[-1] for values in eigenvalues]
    yield Finding(
        "three samples, two of them parallel, L = 1 to 10", "|λ_min|/λ_max",
        "0, within the rounding of an angle, 10⁻⁸", interval(share), "", max(share) < 1e-8,
    )  # fmt: skip


@CLAIMS.add(
    "4-identity", "v1 §4 and Fig. 4, ICLR §4, newest Fig. 5", "g(z) ≈ z for small z.",
    artefact="claims, drawn in fig4",
)  # fmt: skip
def near_identity() -> Findings:
    z = np.radians([0.1, 1, 5, 10])
    ratio = g(z) / z
    away = (1 - ratio) / (z / (3 * math.pi))
    holds = np.abs(away - 1).max() < 0.1
    yield Finding("z = 0.1° to 10°", "g(z)/z", "1, but for z/3π", interval(ratio), "", holds)


def _infinitely_deep(x: np.ndarray) -> np.ndarray:
    """K/(L+1) as L → ∞, an error of order 1/L removed."""
    shallow, deep = (_kernel(x, depth) / (depth + 1) for depth in (2000, 4000))
    return 2 * deep - shallow


DEEPEST = "L = 4000, extrapolated"


@CLAIMS.add(
    "newest-4.3-data", "newest summary page, on Thm 4.3",
    "That limit of κ, (n + 4)/3 for inputs of norm 1, is independent of the data.",
    "It is, and is (n + 3)/3.", 7,
)  # fmt: skip
def limit_of_other_data() -> Findings:
    """Two samples at several angles."""
    kappas = [_kappa(_infinitely_deep(_two(1, 1, theta))) for theta in np.radians([5, 40, 120])]
    yield Finding(
        f"two samples of norm 1, θ = 5°, 40°, 120°, {DEEPEST}", "κ", "(n + 4)/3 = 2",
        ", ".join(map(short, kappas)), "", np.allclose(kappas, 2, rtol=5e-3),
        np.allclose(kappas, 5 / 3, rtol=5e-3),
    )  # fmt: skip


@CLAIMS.add(
    "newest-4.3-proof", "newest proof of Thm 4.3",
    "In the limit K/(L+1) has one eigenvalue 1 + n/4, and the others are 3/4.",
    "1 + (n − 1)/4; the others are 3/4.", 7, kind=SLIP,
)  # fmt: skip
def eigenvalues_at_infinite_depth() -> Findings:
    n = 6
    x = np.random.default_rng(0).standard_normal((n, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    *others, largest = np.linalg.eigvalsh(_infinitely_deep(x))
    same = np.allclose(others, 0.75, rtol=5e-3)
    yield Finding(
        f"{n} random inputs of norm 1, {DEEPEST}", "eigenvalues of K/(L+1)",
        f"{1 + n / 4:g}, the others 0.75", f"{short(largest)}, the others {interval(others)}", "",
        same and abs(largest - 1 - n / 4) < 0.01, same and abs(largest - 1 - (n - 1) / 4) < 0.01,
    )  # fmt: skip


@CLAIMS.add(
    "ours-4.3-norms", "ours; an extension of newest Thm 4.3",
    "For inputs of any norm κ tends to that of the matrix with ‖xᵢ‖² on its diagonal and"
    " ‖xᵢ‖‖xⱼ‖/4 elsewhere.",
)  # fmt: skip
def other_norms_at_infinite_depth() -> Findings:
    a, b = NORMS[1]
    kappa = _kappa(_infinitely_deep(_two(a, b, math.radians(40))))
    limit = _kappa([[a * a, a * b / 4], [a * b / 4, b * b]])
    yield Finding(
        f"two samples of norm {a:g} and {b:g}, {DEEPEST}", "κ", short(limit), short(kappa), "",
        math.isclose(kappa, limit, rel_tol=5e-3),
    )  # fmt: skip


@CLAIMS.add(
    "newest-3.5-proof", "newest proof of Thm 3.5", "For many layers l, θˡ ≈ θ/(1 + l θ/3π)."
)
def angle_after_many_layers() -> Findings:
    theta, layers = np.radians([0.1, 1, 10, 30, 90]), 10_000
    angle = theta
    for _ in range(layers):
        angle = g(angle)
    ratio = angle * (1 + layers * theta / (3 * math.pi)) / theta
    holds = np.abs(ratio - 1).max() < 0.01
    yield Finding(
        f"θ = 0.1° to 90°, l = {layers:,}", "θˡ (1 + l θ/3π)/θ", "1", interval(ratio), "", holds
    )


@CLAIMS.add("newest-fig-2-limit", "newest Fig. 2", "For ReLU², GELU and tanh φ → 90° as L → ∞.")
def other_activations_at_infinite_depth() -> Findings:
    """At depths from 10 to 300: GELU takes about 100 layers to come near."""
    theta = np.radians([1, 5, 30])
    for name in ("relu2", "gelu", "tanh"):
        smallest = [
            math.degrees(gradient_angle(theta, MLP(ACTIVATIONS[name], depth, math.inf)).min())
            for depth in (10, 30, 100, 300)
        ]
        yield Finding(
            f"{ACTIVATIONS[name].title}, θ = 1°, 5°, 30°, L = 10, 30, 100, 300",
            "smallest φ (degrees)", "→ 90", ", ".join(map(short, smallest)), "",
            abs(smallest[-1] - 90) < 0.1,
        )  # fmt: skip


@CLAIMS.add(
    "newest-tradeoff", "newest §5",
    "At infinite depth all pairs are equally separated, and generalisation could become trivial,"
    " close to random guessing.", "About their own mean the predictions stay good.",
    kind=BELIEF,
)  # fmt: skip
def guessing_at_great_depth() -> Findings:
    """Kernel regression with the NTK at infinite width, of labels ±1 by the side of a plane. That
    the accuracy falls is tested; that its limit is guessing can only not be contradicted."""
    rng, n = np.random.default_rng(0), 80
    x = rng.standard_normal((2 * n, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y, depths = np.sign(x[:, 0]), (1, 10, 100, 1000)
    percent, centred = [], []
    for depth in depths:
        kernel = _kernel(x, depth)
        predicted = kernel[n:, :n] @ np.linalg.solve(kernel[:n, :n], y[:n])
        percent.append(100 * np.mean(np.sign(predicted) == y[n:]))
        centred.append(100 * np.mean(np.sign(predicted - predicted.mean()) == y[n:]))
    guessing = 100 / math.sqrt(4 * n)  # the standard error of it
    away, falls = abs(percent[-1] - 50), percent[0] - percent[-1]
    verdict = UNCONTRADICTED if falls > 2 * math.sqrt(2) * guessing else UNDECIDED
    yield judged(
        f"{n} samples of 5 features, {n} to test, L = {', '.join(map(str, depths))}",
        "test accuracy of kernel regression (%)", "→ 50", ", ".join(map(short, percent)),
        f"± {short(guessing)}; about the mean of the predictions {', '.join(map(short, centred))}",
        FAILS if away > 3 * guessing else verdict,
    )  # fmt: skip


@CLAIMS.add(
    "5.1-proof", "v1 Appendix D.6", "In the proof of Thm 5.1, λ_max(K) > λ_max(G).",
    "λ_max(K) < λ_max(G), which the theorem needs.", 5, kind=SLIP,
)  # fmt: skip
def first_layer_proof() -> Findings:
    for kind, ratios in _first_layer_ratios().items():
        largest = ratios[:, 2]
        holds = largest.min() > 1, largest.max() < 1
        yield Finding(kind, "λ_max(K)/λ_max(G)", "> 1", interval(largest), "", *holds)


@CLAIMS.add(
    "5.2", "v1 and ICLR Thm 5.2, newest Thm F.1",
    "Of two samples at a small angle, κ < κ₀, and the deeper the smaller.",
)  # fmt: skip
def two_samples() -> Findings:
    samples = [_two(*norms, theta) for norms in NORMS for theta in np.radians([0.5, 1, 5, 10, 30])]
    kappas = np.array([[_kappa(_kernel(x, depth)) for depth in range(11)] for x in samples])
    setting = "two samples, θ = 0.5° to 30°, L = 1 to 10"
    yield bounded(setting, "κ/κ₀", kappas[:, 1:] / kappas[:, :1], "< 1")
    yield bounded(setting, "κ of one layer more / κ", kappas[:, 2:] / kappas[:, 1:-1], "< 1")


@CLAIMS.add(
    "5.2-proof", "v1 Appendix D.7, Eq. 44",
    "The NTK of two samples has eigenvalues ½ (a² + b² ± √(a⁴ + b⁴ + a²b² cos 2φ)).",
    "2a²b² cos 2φ in place of a²b² cos 2φ.", 4, kind=SLIP,
)  # fmt: skip
def two_eigenvalues() -> Findings:
    (a, b), phi = NORMS[1], 0.4
    across = a * b * math.cos(phi)
    exact = np.linalg.eigvalsh([[a**2, across], [across, b**2]])

    def formula(factor: int) -> np.ndarray:
        root = math.sqrt(a**4 + b**4 + factor * a**2 * b**2 * math.cos(2 * phi))
        return (a**2 + b**2 + np.array([-root, root])) / 2

    text, ours = formula(1), formula(2)
    yield Finding(
        "norms 1.3 and 2.1, φ = 0.4", "eigenvalues of the 2 × 2 NTK",
        f"{' and '.join(map(short, text))} by Eq. 44", " and ".join(map(short, exact)), "",
        np.allclose(text, exact), np.allclose(ours, exact, rtol=1e-12),
    )  # fmt: skip


@CLAIMS.add(
    "5.2-normalised", "v1 Appendix D.7, newest Thm F.1",
    "Of the NTK of two samples, K/(L+1)² has ‖x₁‖² and ‖x₂‖² on its diagonal.", "K/(L+1) has.", 1,
    kind=SLIP,
)  # fmt: skip
def normalised_kernel() -> Findings:
    (a, b), depth = NORMS[1], 3
    diagonal = np.diag(_kernel(_two(a, b, 0.4), depth)) / [a * a, b * b]
    yield Finding(
        f"norms {a:g} and {b:g}, L = {depth}", "Kᵢᵢ/(L+1)²/‖xᵢ‖²", "1",
        interval(diagonal / (depth + 1) ** 2), f"with L+1: {interval(diagonal / (depth + 1))}",
        np.allclose(diagonal, (depth + 1) ** 2), np.allclose(diagonal, depth + 1),
    )  # fmt: skip


@CLAIMS.add(
    "A.1", "v1 Prop. A.1 (1, 2) and Fig. 4, newest Prop. A.1 and Fig. 5",
    "g grows, and g(z) ≤ z, with equality at 0 alone.", artefact="claims, drawn in fig4",
)  # fmt: skip
def properties_of_g() -> Findings:
    z = np.linspace(0, math.pi, 20001)[:-1]
    values, setting = g(z), "20,000 angles in [0°, 180°)"
    yield bounded(setting, "slope of g between neighbours", np.diff(values) / np.diff(z), "> 0")
    gaps = (z - values)[1:]
    holds = gaps.min() > 0 and values[0] == 0
    yield Finding(setting, "z − g(z) for z > 0", "> 0, and 0 at z = 0", interval(gaps), "", holds)


@CLAIMS.add(
    "A.2", "v1 and newest Prop. A.1 (3) and Thm A.2",
    "θˡ falls with every layer, and tends to 0: all embeddings become parallel.",
    artefact="claims, drawn in fig4",
)  # fmt: skip
def collapse() -> Findings:
    layers, theta, falls = 100_000, np.radians([1, 30, 90, 179]), True
    for _ in range(layers):
        following = g(theta)
        falls = falls and (following < theta).all()
        theta = following
    scaled = theta * layers / (3 * math.pi)
    yield Finding(
        "θ = 1° to 179°, up to 100,000 layers", "gˡ(θ) l / 3π, 1 in the limit if gˡ(θ) → 0",
        "1, and gˡ(θ) falls with every l", interval(scaled), "",
        falls and np.abs(scaled - 1).max() < 0.02,
    )  # fmt: skip


@CLAIMS.add(
    "2-gram",
    "v1, ICLR and newest §2",
    "The Gram matrix G = X Xᵀ is in R^(d × d).",
    "It is n × n.",
    3,
    kind=SLIP,
)
def shape_of_the_gram_matrix() -> Findings:
    n, d = 7, 3
    x = np.random.default_rng(0).standard_normal((n, d))
    shape = (x @ x.T).shape
    yield Finding(
        "7 samples of 3 features", "shape of G = X Xᵀ", f"{d} × {d}", f"{shape[0]} × {shape[1]}",
        "", shape == (d, d), shape == (n, n),
    )  # fmt: skip


@CLAIMS.add(
    "5-generic", "v1 and ICLR §5, newest §4", "A deeper network's κ is generically smaller.",
    "It depends on the data: so it is where nearly parallel pairs decide κ.", 10,
)  # fmt: skip
def isotropic_gaussian() -> Findings:
    """Data without near-parallel pairs."""
    x = np.random.default_rng(0).standard_normal((500, 784))
    kappas = np.array([_kappa(_kernel(x, depth)) for depth in range(11)])
    rises = (np.diff(kappas) > 0).sum()
    yield Finding(
        "500 Gaussian samples of 784 features, m = ∞",
        "layers, of ten, with which κ falls; κ at L = 0, 1, 10",
        "10", f"{10 - rises}; {', '.join(map(short, kappas[[0, 1, 10]]))}", "", rises == 0,
    )  # fmt: skip
