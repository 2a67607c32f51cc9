"""Claims about the closed forms of infinite width: exact up to rounding, only inputs are random.

That wide networks have these forms is tested in `ntkcond.artefacts.claims.wide_networks`.
"""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import brentq

from ntkcond.artefacts.claims.claim import Claims, Finding, Findings, bounded, interval, short
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
    """Of ratio(θ, L) as θ → 0 for each of DEPTHS, the term linear in θ removed."""
    return np.array([2 * ratio(theta / 2, depth) - ratio(theta, depth) for depth in DEPTHS])


def _are(values: np.ndarray, limit: float) -> bool:
    return np.abs(values / limit - 1).max() < LIMIT_TOLERANCE


@CLAIMS.add("4.3", "v1 Cor. 4.3, ICLR Thm 4.2", "For small angles θˡ = θ − l θ²/3π + o(θ²).")
def embedding_expansion() -> Findings:
    def ratio(theta: float, layer: int) -> float:
        angle = np.asarray(theta)
        for _ in range(layer):
            angle = g(angle)
        return float((theta - angle) / (layer * theta**2 / (3 * math.pi)))

    found, quantity = _limits(ratio), "(θ − θˡ) / (l θ²/3π), as θ → 0"
    yield Finding("l = 1 to 10", quantity, "1", interval(found), "", _are(found, 1))


def _slopes() -> np.ndarray:
    """(1 − cos φ / cos θ) / (L θ), as θ → 0, for each of DEPTHS."""
    return _limits(
        lambda theta, depth: float(
            (1 - gradient_cosine(theta, depth) / math.cos(theta)) / (depth * theta)
        )
    )


EXPANSION = ("L = 1 to 10", "(1 − cos φ / cos θ) / (L θ), as θ → 0")


@CLAIMS.add(
    "4.5", "v1 Thm 4.5, ICLR Thm 4.4; by its name newest Thm 3.2",
    "For small angles cos φ = (1 − L θ/2π + o(θ)) cos θ.",
)  # fmt: skip
def separation_expansion() -> Findings:
    found = _slopes()
    yield Finding(*EXPANSION, "1/2π = 0.1592", interval(found), "", _are(found, 0.5 / math.pi))


@CLAIMS.add(
    "4.5-proof", "v1 Appendix D.5, last line",
    "In the proof of Thm 4.5, cos φ = (1 − L θ/2 + o(θ)) cos θ.",
    "1 − L θ/2π, as the theorem says.", 6,
)  # fmt: skip
def separation_proof() -> Findings:
    found = _slopes()
    holds = _are(found, 0.5), _are(found, 0.5 / math.pi)
    yield Finding(*EXPANSION, "1/2", interval(found), "", *holds)


@CLAIMS.add(
    "4.5-order", "v1 Thm 4.5, ICLR Thm 4.4",
    "φ > θ for small angles, the more so the deeper the network.",
)  # fmt: skip
def small_angles() -> Findings:
    phi = np.array([_angle(SMALL, depth) for depth in (0, *DEPTHS)]) / SMALL
    setting = "θ = 0.1° to 5°, L = 1 to 10"
    yield bounded(setting, "φ/θ", phi[1:], "> 1")
    quantity = "growth of φ/θ from one of these depths to the next"
    yield bounded(setting, quantity, np.diff(phi, axis=0), "> 0")


@CLAIMS.add(
    "4-separated", "v1 and ICLR §4 and Fig. 1, key observation (60°); newest (30°)",
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
    "4-deeper", "v1 and ICLR §4 and Fig. 1, newest Fig. 1",
    "Deeper networks have the larger φ where θ < 60°.", artefact="claims, drawn in fig1",
)  # fmt: skip
def deeper_is_larger() -> Findings:
    theta = np.radians(np.arange(1, 60, 0.5))
    steps = np.degrees(np.diff([_angle(theta, depth) for depth in range(201)], axis=0))
    setting = "θ = 1° to 59.5°, each L up to 200"
    yield bounded(setting, "growth of φ by one layer (degrees)", steps, "> 0")


@CLAIMS.add(
    "4-large", "v1 and ICLR §4 and Fig. 1", "Where θ > 60°, φ > 60°: what differs stays apart.",
    artefact="claims, drawn in fig1",
)  # fmt: skip
def large_stay_large() -> Findings:
    theta = np.radians(np.arange(60, 180.5, 0.5))
    smallest = [math.degrees(_angle(theta, depth).min()) for depth in DEEP]
    yield bounded("θ = 60° to 180°, L = 1 to 1000", "smallest φ (degrees)", smallest, "> 60")


@CLAIMS.add(
    "4.6", "v1 Remark 4.6, ICLR Remark 4.5",
    "Gradients are also farther apart in distance, relative to their norms, (L+1)‖x‖.",
    "Relative to √(L+1)‖x‖.", 1,
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
    "2.2", "v1 Prop. 2.2, ICLR Prop. 5.1",
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
    "2.2-proof", "v1 Appendix B",
    "In the proof of Prop. 2.2, c ≤ λ_max ≤ C, where all rows have norms from c to C.",
    "c² ≤ λ_max ≤ n C²; the proposition needs no more.",
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
    found: dict[str, list] = {}
    for kind, x in _random_sets():
        found.setdefault(kind, []).append(_extremes_of_first_layer(x))
    return {kind: np.array(rows) for kind, rows in found.items()}


def _extremes_of_first_layer(x: np.ndarray) -> tuple[float, float, float]:
    """λ_min(K)/λ_min(G), κ/κ₀ and λ_max(K)/λ_max(G)."""
    kernels = _kernel(x, 1, "first"), x @ x.T
    (low, high), (low0, high0) = (np.linalg.eigvalsh(kernel)[[0, -1]] for kernel in kernels)
    return low / low0, (high / low) / (high0 / low0), high / high0


@CLAIMS.add(
    "5.1", "v1 Thm 5.1, ICLR Thm 5.3, newest Thm 4.2",
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
    "2-parallel", "v1 §2, ICLR §5.1",
    "Two samples with parallel gradients make the NTK singular, κ = ∞.",
)  # fmt: skip
def parallel_pair() -> Findings:
    x = np.array([[1.0, 0.2, 0.0], [2.0, 0.4, 0.0], [0.0, 1.0, 1.0]])
    found = [np.linalg.eigvalsh(_kernel(x, depth)) for depth in DEPTHS]
    share = [abs(values[0]) / values[-1] for values in found]
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


@CLAIMS.add(
    "newest-4.3-data", "newest summary", "That limit of κ, (n + 4)/3, is independent of the data.",
    "κ tends to that of the matrix with ‖xᵢ‖² on its diagonal and ‖xᵢ‖‖xⱼ‖/4 elsewhere.", 7,
)  # fmt: skip
def two_samples_at_infinite_depth() -> Findings:
    """Extrapolated, an error of order 1/L removed."""
    for a, b in NORMS:
        x = _two(a, b, math.radians(40))
        shallow, deep = (_kernel(x, depth) / (depth + 1) for depth in (2000, 4000))
        kappa, ours = _kappa(2 * deep - shallow), _kappa([[a * a, a * b / 4], [a * b / 4, b * b]])
        yield Finding(
            f"two samples of norm {a:g} and {b:g}, L = 4000, extrapolated", "κ", "(n + 4)/3 = 2",
            short(kappa), "", abs(kappa - 2) < 0.01, math.isclose(kappa, ours, rel_tol=5e-3),
        )  # fmt: skip


@CLAIMS.add(
    "5.1-proof", "v1 Appendix D.6", "In the proof of Thm 5.1, λ_max(K) > λ_max(G).",
    "λ_max(K) < λ_max(G), which the theorem needs.", 5,
)  # fmt: skip
def first_layer_proof() -> Findings:
    for kind, ratios in _first_layer_ratios().items():
        largest = ratios[:, 2]
        holds = largest.min() > 1, largest.max() < 1
        yield Finding(kind, "λ_max(K)/λ_max(G)", "> 1", interval(largest), "", *holds)


@CLAIMS.add(
    "5.2", "v1 and ICLR Thm 5.2",
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
    "2a²b² cos 2φ in place of a²b² cos 2φ.", 4,
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
    "A.1", "v1 Prop. A.1 (1, 2) and Fig. 4, newest Fig. 5",
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
    "A.2", "v1 Prop. A.1 (3) and Thm A.2",
    "θˡ falls with every layer, and tends to 0: all embeddings become parallel.",
    artefact="claims, drawn in fig4",
)  # fmt: skip
def collapse() -> Findings:
    layers, theta, falls = 100_000, np.radians([1, 30, 90, 179]), True
    for _ in range(layers):
        following = g(theta)
        falls = falls and (following < theta).all()
        theta = following
    found = theta * layers / (3 * math.pi)
    yield Finding(
        "θ = 1° to 179°, up to 100,000 layers", "gˡ(θ) l / 3π, 1 in the limit if gˡ(θ) → 0",
        "1, and gˡ(θ) falls with every l", interval(found), "",
        falls and np.abs(found - 1).max() < 0.02,
    )  # fmt: skip


@CLAIMS.add(
    "2-gram", "v1 and ICLR §2", "The Gram matrix G = X Xᵀ is in R^(d × d).", "It is n × n.", 3
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
    "5-generic", "v1 and ICLR §5", "A deeper network's κ is generically smaller.",
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
