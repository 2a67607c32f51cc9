"""Claims about the closed forms of infinite width: exact up to rounding, nothing random but inputs.

That wide networks have these forms is tested in `ntkcond.artefacts.claims.wide_networks`.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from ntkcond.artefacts.claims.claim import Claim, Evidence, Finding, interval, short
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.infinite_width import g, gradient_angle, gradient_cosine, infinite_width_ntk

DEPTHS = (1, 2, 3, 5, 10)
DEEP = (*DEPTHS, 30, 100, 1000)
SMALL = np.radians([0.1, 0.5, 1, 2, 5])  # of θ = o(1/L)
LIMIT_TOLERANCE = 1e-3  # of a limit as θ → 0, extrapolated from two angles


def _relu(depth: int, trainable: str = "all") -> MLP:
    return MLP(ACTIVATIONS["relu"], depth, math.inf, trainable)


def _limit(ratio, theta: float = 2e-3) -> float:
    """Of ratio(θ) as θ → 0, the term linear in θ removed."""
    return 2 * ratio(theta / 2) - ratio(theta)


def embedding_expansion(_: Evidence) -> Iterator[Finding]:
    def ratio(theta: float, layer: int) -> float:
        angle = np.asarray(theta)
        for _ in range(layer):
            angle = g(angle)
        return float((theta - angle) / (layer * theta**2 / (3 * math.pi)))

    found = [_limit(lambda theta, layer=layer: ratio(theta, layer)) for layer in DEPTHS]
    yield Finding(
        "l = 1 to 10", "(θ − θˡ) / (l θ²/3π), as θ → 0", "1", interval(found), "",
        max(abs(value - 1) for value in found) < LIMIT_TOLERANCE,
    )  # fmt: skip


def _slopes() -> list[float]:
    """(1 − cos φ / cos θ) / (L θ), as θ → 0."""

    def slope(theta: float, depth: int) -> float:
        return float((1 - gradient_cosine(theta, depth) / math.cos(theta)) / (depth * theta))

    return [_limit(lambda theta, depth=depth: slope(theta, depth)) for depth in DEPTHS]


def separation_expansion(_: Evidence) -> Iterator[Finding]:
    found = _slopes()
    error = max(abs(value * 2 * math.pi - 1) for value in found)
    yield Finding(
        "L = 1 to 10", "(1 − cos φ / cos θ) / (L θ), as θ → 0", "1/2π = 0.1592", interval(found),
        "", error < LIMIT_TOLERANCE,
    )  # fmt: skip


def separation_proof(_: Evidence) -> Iterator[Finding]:
    found = _slopes()
    yield Finding(
        "L = 1 to 10", "(1 − cos φ / cos θ) / (L θ), as θ → 0", "1/2", interval(found), "",
        max(abs(2 * value - 1) for value in found) < LIMIT_TOLERANCE,
        max(abs(2 * math.pi * value - 1) for value in found) < LIMIT_TOLERANCE,
    )  # fmt: skip


def small_angles(_: Evidence) -> Iterator[Finding]:
    phi = np.array([gradient_angle(SMALL, _relu(depth)) for depth in (0, *DEPTHS)])
    gain = phi[1:] / SMALL
    yield Finding(
        "θ = 0.1° to 5°, L = 1 to 10", "φ/θ", "> 1", interval(gain.ravel()), "", gain.min() > 1
    )
    steps = np.diff(phi, axis=0) / SMALL
    yield Finding(
        "θ = 0.1° to 5°, L = 1 to 10", "growth of φ/θ from one of these depths to the next", "> 0",
        interval(steps.ravel()), "", steps.min() > 0,
    )  # fmt: skip


def separated_up_to(_: Evidence) -> Iterator[Finding]:
    """Where φ(θ) crosses θ."""
    crossings = []
    for depth in DEEP:
        found = brentq(
            lambda theta, depth=depth: float(gradient_angle(theta, _relu(depth))) - theta,
            math.radians(30), math.radians(120),
        )  # fmt: skip
        crossings.append(math.degrees(found))
    for stated in (60, 30):
        yield Finding(
            f"θ < {stated}°, L = 1 to 1000", "angle up to which φ > θ (degrees)", f"≥ {stated}",
            interval(crossings), "", min(crossings) >= stated,
        )  # fmt: skip


def deeper_is_larger(_: Evidence) -> Iterator[Finding]:
    theta = np.radians(np.arange(1, 60, 0.5))
    phi = np.array([gradient_angle(theta, _relu(depth)) for depth in range(201)])
    steps = np.degrees(np.diff(phi, axis=0))
    yield Finding(
        "θ = 1° to 59.5°, each L up to 200", "growth of φ by one layer (degrees)", "> 0",
        interval(steps.ravel()), "", steps.min() > 0,
    )  # fmt: skip


def large_stay_large(_: Evidence) -> Iterator[Finding]:
    theta = np.radians(np.arange(60, 180.5, 0.5))
    smallest = [math.degrees(gradient_angle(theta, _relu(depth)).min()) for depth in DEEP]
    yield Finding(
        "θ = 60° to 180°, L = 1 to 1000", "smallest φ (degrees)", "> 60", interval(smallest), "",
        min(smallest) > 60,
    )  # fmt: skip


def distances(_: Evidence) -> Iterator[Finding]:
    a, b = 1.3, 2.1

    def distance(angle: np.ndarray) -> np.ndarray:
        return np.sqrt(a**2 + b**2 - 2 * a * b * np.cos(angle))

    theta = np.radians([1, 5, 10, 30])
    ratios = np.array([distance(gradient_angle(theta, _relu(depth))) for depth in DEPTHS])
    ratios = ratios / distance(theta)
    by_text = ratios * np.sqrt(np.add(DEPTHS, 1.0))[:, None] / np.add(DEPTHS, 1.0)[:, None]
    yield Finding(
        "norms 1.3 and 2.1, θ = 1° to 30°, L = 1 to 10",
        "‖∇f(x) − ∇f(z)‖ / ((L+1) ‖x − z‖)", "> 1", interval(by_text.ravel()),
        f"with √(L+1): {interval(ratios.ravel())}",
        by_text.min() > 1, ratios.min() > 1,
    )  # fmt: skip


def close_rows(_: Evidence) -> Iterator[Finding]:
    """λ_min of B Bᵀ as two of its rows approach each other."""
    rng = np.random.default_rng(0)
    angles = np.geomspace(0.1, 1e-4, 7)
    smallest, bound, kappas = [], [], []
    for phi in angles:
        b = rng.standard_normal((20, 40))
        b *= rng.uniform(0.5, 0.9, 20)[:, None] / np.linalg.norm(b, axis=1, keepdims=True)
        across = b[1] - b[0] * (b[0] @ b[1]) / (b[0] @ b[0])
        lengths = np.linalg.norm(b[0]), np.linalg.norm(b[1])
        b[1] = lengths[1] * (
            math.cos(phi) * b[0] / lengths[0] + math.sin(phi) * across / np.linalg.norm(across)
        )
        squares = np.linalg.svd(b, compute_uv=False) ** 2
        smallest.append(squares[-1])
        kappas.append(squares[0] / squares[-1])
        product = (lengths[0] * lengths[1]) ** 2
        bound.append(2 * product / (lengths[0] ** 2 + lengths[1] ** 2) * (1 - math.cos(phi)))
    setting = "20 random vectors of norm 0.5 to 0.9, two of them at φ = 0.1 to 0.0001"
    slope = np.polyfit(np.log(angles), np.log(smallest), 1)[0]
    below = max(np.divide(smallest, bound))
    yield Finding(
        setting, "λ_min / its bound ‖bᵢ‖²‖bⱼ‖² 2(1 − cos φ)/(‖bᵢ‖² + ‖bⱼ‖²)", "≤ 1",
        short(below), "", below <= 1 + 1e-6,
    )  # fmt: skip
    yield Finding(
        setting, "slope of log λ_min against log φ", "2", short(slope), "", abs(slope - 2) < 0.1
    )
    yield Finding(
        setting, "κ φ²", "bounded from below", interval(kappas * angles**2), "",
        bool(np.polyfit(np.log(angles), np.log(kappas), 1)[0] < -1.9),
    )  # fmt: skip


def largest_of_rows(_: Evidence) -> Iterator[Finding]:
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
    """For each kind of set, rows of λ_min(K)/λ_min(G), κ/κ₀ and λ_max(K)/λ_max(G)."""
    found: dict[str, list] = {}
    for kind, x in _random_sets():
        found.setdefault(kind, []).append(_extremes_of_first_layer(x))
    return {kind: np.array(rows) for kind, rows in found.items()}


def _extremes_of_first_layer(x: np.ndarray) -> tuple[float, float, float]:
    """λ_min(K)/λ_min(G), κ/κ₀ and λ_max(K)/λ_max(G)."""
    kernels = infinite_width_ntk(x, _relu(1, "first")), x @ x.T
    (low, high), (low0, high0) = (np.linalg.eigvalsh(kernel)[[0, -1]] for kernel in kernels)
    return low / low0, (high / low) / (high0 / low0), high / high0


def first_layer(_: Evidence) -> Iterator[Finding]:
    for kind, ratios in _first_layer_ratios().items():
        smallest, kappa, _ = ratios.T
        yield Finding(
            kind, "λ_min(K)/λ_min(G)", "> 1", interval(smallest), "", bool(smallest.min() > 1)
        )
        yield Finding(kind, "κ/κ₀", "< 1", interval(kappa), "", bool(kappa.max() < 1))
    low, kappa, _ = _extremes_of_first_layer(np.diag([1.0, 1.0, 2.0, 3.0]))
    for quantity, ratio, expected in (("λ_min(K)/λ_min(G)", low, "> 1"), ("κ/κ₀", kappa, "< 1")):
        yield Finding(
            "orthogonal samples", quantity, expected, short(ratio), "",
            abs(ratio - 1) > 1e-12, math.isclose(ratio, 1, rel_tol=1e-12),
        )  # fmt: skip


def parallel_pair(_: Evidence) -> Iterator[Finding]:
    x = np.array([[1.0, 0.2, 0.0], [2.0, 0.4, 0.0], [0.0, 1.0, 1.0]])
    found = [np.linalg.eigvalsh(infinite_width_ntk(x, _relu(depth))) for depth in DEPTHS]
    share = [abs(values[0]) / values[-1] for values in found]
    yield Finding(
        "three samples, two of them parallel, L = 1 to 10", "|λ_min|/λ_max",
        "0, within the rounding of an angle, 10⁻⁸", interval(share), "", max(share) < 1e-8,
    )  # fmt: skip


def near_identity(_: Evidence) -> Iterator[Finding]:
    z = np.radians([0.1, 1, 5, 10])
    ratio = g(z) / z
    away = (1 - ratio) / (z / (3 * math.pi))
    yield Finding(
        "z = 0.1° to 10°", "g(z)/z", "1, but for z/3π", interval(ratio), "",
        bool(np.abs(away - 1).max() < 0.1),
    )  # fmt: skip


def two_samples_at_infinite_depth(_: Evidence) -> Iterator[Finding]:
    """Extrapolated, an error of order 1/L removed."""
    angle = math.radians(40)
    for a, b in ((1.0, 1.0), (1.3, 2.1)):
        x = np.array([[a, 0.0], [b * math.cos(angle), b * math.sin(angle)]])
        shallow, deep = (
            infinite_width_ntk(x, _relu(depth)) / (depth + 1) for depth in (2000, 4000)
        )
        low, high = np.linalg.eigvalsh(2 * deep - shallow)
        ours = np.linalg.eigvalsh([[a * a, a * b / 4], [a * b / 4, b * b]])
        yield Finding(
            f"two samples of norm {a:g} and {b:g}, L = 4000, extrapolated", "κ", "(n + 4)/3 = 2",
            short(high / low), "", abs(high / low - 2) < 0.01,
            math.isclose(high / low, ours[1] / ours[0], rel_tol=5e-3),
        )  # fmt: skip


def first_layer_proof(_: Evidence) -> Iterator[Finding]:
    for kind, ratios in _first_layer_ratios().items():
        largest = ratios[:, 2]
        yield Finding(
            kind, "λ_max(K)/λ_max(G)", "> 1", interval(largest), "", bool(largest.min() > 1),
            bool(largest.max() < 1),
        )  # fmt: skip


def two_samples(_: Evidence) -> Iterator[Finding]:
    ratios = []
    for a, b in ((1.0, 1.0), (1.3, 2.1)):
        for theta in np.radians([0.5, 1, 5, 10, 30]):
            x = np.array([[a, 0.0], [b * math.cos(theta), b * math.sin(theta)]])
            ends = [
                np.linalg.eigvalsh(infinite_width_ntk(x, _relu(depth)))[[0, -1]]
                for depth in range(11)
            ]
            ratios.append([high / low for low, high in ends])
    kappas = np.array(ratios)
    relative, steps = kappas[:, 1:] / kappas[:, :1], kappas[:, 2:] / kappas[:, 1:-1]
    setting = "two samples, θ = 0.5° to 30°, L = 1 to 10"
    yield Finding(setting, "κ/κ₀", "< 1", interval(relative.ravel()), "", bool(relative.max() < 1))
    yield Finding(
        setting, "κ of one layer more / κ", "< 1", interval(steps.ravel()), "",
        bool(steps.max() < 1),
    )  # fmt: skip


def two_eigenvalues(_: Evidence) -> Iterator[Finding]:
    a, b, phi = 1.3, 2.1, 0.4
    kernel = [[a**2, a * b * math.cos(phi)], [a * b * math.cos(phi), b**2]]
    exact = np.linalg.eigvalsh(kernel)

    def formula(factor: int) -> np.ndarray:
        root = math.sqrt(a**4 + b**4 + factor * a**2 * b**2 * math.cos(2 * phi))
        return (a**2 + b**2 + np.array([-root, root])) / 2

    text, ours = formula(1), formula(2)
    yield Finding(
        "norms 1.3 and 2.1, φ = 0.4", "eigenvalues of the 2 × 2 NTK",
        f"{short(text[0])} and {short(text[1])} by Eq. 44",
        f"{short(exact[0])} and {short(exact[1])}", "",
        bool(np.allclose(text, exact)), bool(np.allclose(ours, exact, rtol=1e-12)),
    )  # fmt: skip


def properties_of_g(_: Evidence) -> Iterator[Finding]:
    z = np.linspace(0, math.pi, 20001)[:-1]
    values = g(z)
    steps = np.diff(values) / np.diff(z)
    setting = "20,000 angles in [0°, 180°)"
    yield Finding(
        setting, "slope of g between neighbours", "> 0", interval(steps), "", steps.min() > 0
    )
    gaps = (z - values)[1:]
    yield Finding(
        setting, "z − g(z) for z > 0", "> 0, and 0 at z = 0", interval(gaps), "",
        bool(gaps.min() > 0 and values[0] == 0),
    )  # fmt: skip


def collapse(_: Evidence) -> Iterator[Finding]:
    layers, angles = 100_000, np.radians([1, 30, 90, 179])
    theta, falls = angles, True
    for _ in range(layers):
        following = g(theta)
        falls = falls and bool((following < theta).all())
        theta = following
    found = theta * layers / (3 * math.pi)
    yield Finding(
        "θ = 1° to 179°, up to 100,000 layers", "gˡ(θ) l / 3π, 1 in the limit if gˡ(θ) → 0",
        "1, and gˡ(θ) falls with every l", interval(found), "",
        falls and bool(np.abs(found - 1).max() < 0.02),
    )  # fmt: skip


def shape_of_the_gram_matrix(_: Evidence) -> Iterator[Finding]:
    n, d = 7, 3
    x = np.random.default_rng(0).standard_normal((n, d))
    gram = x @ x.T
    yield Finding(
        "7 samples of 3 features", "shape of G = X Xᵀ", f"{d} × {d}",
        f"{gram.shape[0]} × {gram.shape[1]}", "", gram.shape == (d, d), gram.shape == (n, n),
    )  # fmt: skip


def isotropic_gaussian(_: Evidence) -> Iterator[Finding]:
    """Data without near-parallel pairs."""
    x = np.random.default_rng(0).standard_normal((500, 784))
    ends = [np.linalg.eigvalsh(infinite_width_ntk(x, _relu(depth)))[[0, -1]] for depth in range(11)]
    kappas = np.array([high / low for low, high in ends])
    rises = int((np.diff(kappas) > 0).sum())
    yield Finding(
        "500 Gaussian samples of 784 features, m = ∞",
        "layers, of ten, with which κ falls; κ at L = 0, 1, 10",
        "10", f"{10 - rises}; {', '.join(short(kappas[i]) for i in (0, 1, 10))}", "", rises == 0,
    )  # fmt: skip


CLAIMS = [
    Claim(
        "2-gram",
        "v1 and ICLR §2",
        "The Gram matrix G = X Xᵀ is in R^(d × d).",
        shape_of_the_gram_matrix,
        "It is n × n.",
        3,
    ),
    Claim(
        "2.2",
        "v1 Prop. 2.2, ICLR Prop. 5.1",
        "If two rows of B have a small angle φ, λ_min(B Bᵀ) = O(φ²) and κ = Ω(1/φ²).",
        close_rows,
    ),
    Claim(
        "2.2-proof",
        "v1 Appendix B",
        "In the proof of Prop. 2.2, c ≤ λ_max ≤ C, where all rows have norms from c to C.",
        largest_of_rows,
        "c² ≤ λ_max ≤ n C²; the proposition needs no more.",
    ),
    Claim(
        "2-parallel",
        "v1 §2, ICLR §5.1",
        "Two samples with parallel gradients make the NTK singular, κ = ∞.",
        parallel_pair,
    ),
    Claim(
        "4-identity",
        "v1 §4 and Fig. 4, ICLR §4, newest Fig. 5",
        "g(z) ≈ z for small z.",
        near_identity,
        artefact="claims, drawn in fig4",
    ),
    Claim(
        "4.3",
        "v1 Cor. 4.3, ICLR Thm 4.2",
        "For small angles θˡ = θ − l θ²/3π + o(θ²).",
        embedding_expansion,
    ),
    Claim(
        "4.5",
        "v1 Thm 4.5, ICLR Thm 4.4; by its name newest Thm 3.2",
        "For small angles cos φ = (1 − L θ/2π + o(θ)) cos θ.",
        separation_expansion,
    ),
    Claim(
        "4.5-order",
        "v1 Thm 4.5, ICLR Thm 4.4",
        "φ > θ for small angles, the more so the deeper the network.",
        small_angles,
    ),
    Claim(
        "4.5-proof",
        "v1 Appendix D.5, last line",
        "In the proof of Thm 4.5, cos φ = (1 − L θ/2 + o(θ)) cos θ.",
        separation_proof,
        "1 − L θ/2π, as the theorem says.",
        6,
    ),
    Claim(
        "4-separated",
        "v1 and ICLR §4 and Fig. 1, key observation (60°); newest (30°)",
        "φ > θ for all θ below 60°; in the newest version, up to 30°.",
        separated_up_to,
        "So it is, and further: up to 66.8° at L = 1, 69.6° at L = 10.",
        11,
        artefact="claims, drawn in fig1",
    ),
    Claim(
        "4-deeper",
        "v1 and ICLR §4 and Fig. 1, newest Fig. 1",
        "Deeper networks have the larger φ where θ < 60°.",
        deeper_is_larger,
        artefact="claims, drawn in fig1",
    ),
    Claim(
        "4-large",
        "v1 and ICLR §4 and Fig. 1",
        "Where θ > 60°, φ > 60°: what differs stays apart.",
        large_stay_large,
        artefact="claims, drawn in fig1",
    ),
    Claim(
        "4.6",
        "v1 Remark 4.6, ICLR Remark 4.5",
        "Gradients are also farther apart in distance, relative to their norms, (L+1)‖x‖.",
        distances,
        "Relative to √(L+1)‖x‖.",
        1,
    ),
    Claim(
        "5.1",
        "v1 Thm 5.1, ICLR Thm 5.3, newest Thm 4.2",
        "One hidden layer, its first weights trained: λ_min(K) > λ_min(G) and κ < κ₀.",
        first_layer,
        "λ_min(K) ≥ λ_min(G) and κ ≤ κ₀: of orthogonal samples both are equal.",
    ),
    Claim(
        "5.1-proof",
        "v1 Appendix D.6",
        "In the proof of Thm 5.1, λ_max(K) > λ_max(G).",
        first_layer_proof,
        "λ_max(K) < λ_max(G), which the theorem needs.",
        5,
    ),
    Claim(
        "5.2",
        "v1 and ICLR Thm 5.2",
        "Of two samples at a small angle, κ < κ₀, and the deeper the smaller.",
        two_samples,
    ),
    Claim(
        "5.2-proof",
        "v1 Appendix D.7, Eq. 44",
        "The NTK of two samples has eigenvalues ½ (a² + b² ± √(a⁴ + b⁴ + a²b² cos 2φ)).",
        two_eigenvalues,
        "2a²b² cos 2φ in place of a²b² cos 2φ.",
        4,
    ),
    Claim(
        "5-generic",
        "v1 and ICLR §5",
        "A deeper network's κ is generically smaller.",
        isotropic_gaussian,
        "It depends on the data: so it is where nearly parallel pairs decide κ.",
        difference=10,
    ),
    Claim(
        "A.1",
        "v1 Prop. A.1 (1, 2) and Fig. 4, newest Fig. 5",
        "g grows, and g(z) ≤ z, with equality at 0 alone.",
        properties_of_g,
        artefact="claims, drawn in fig4",
    ),
    Claim(
        "A.2",
        "v1 Prop. A.1 (3) and Thm A.2",
        "θˡ falls with every layer, and tends to 0: all embeddings become parallel.",
        collapse,
        artefact="claims, drawn in fig4",
    ),
    Claim(
        "newest-4.3-data",
        "newest summary",
        "That limit of κ, (n + 4)/3, is independent of the data.",
        two_samples_at_infinite_depth,
        "κ tends to that of the matrix with ‖xᵢ‖² on its diagonal and ‖xᵢ‖‖xⱼ‖/4 elsewhere.",
        7,
    ),
]
