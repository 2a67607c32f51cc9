"""Eigenvalues, effective ranks, alignment, complexity and predictions within their intervals, held
against 40 digits."""

import math

import mpmath
import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from torch import nn

import ntkcond
from ntkcond.library.eigen import eigendecomposition

CASES = {  # logarithms of the largest and the smallest eigenvalue; the norm of the error
    "well conditioned": (1, 0, 1e-8),
    "near parallel samples": (3, -6, 1e-10),
    "the error near λ_min": (2, -5, 0.9e-5),
    "lost in the error": (2, -9, 1e-6),
    "no error but rounding": (2, -3, 0.0),
}
N, OTHERS = 8, 3


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(40):
        yield


def exact_kernel(case: str, seed: int) -> tuple[mpmath.matrix, mpmath.matrix, np.ndarray, float]:
    """K* of all samples and K* of others with these; K as it is computed, and its error's norm."""
    largest, smallest, norm = CASES[case]
    random = np.random.default_rng(seed)
    q, _ = mp.qr(mp.matrix(random.standard_normal((N + OTHERS, N + OTHERS)).tolist()))
    powers = [mpf(10) ** p for p in np.linspace(smallest, largest, N + OTHERS).tolist()]
    whole = q * mp.diag(powers) * q.T
    kernel = whole[:N, :N]
    values = sorted(mp.eigsy(kernel, eigvals_only=True))
    kernel += (mpf(10) ** smallest - values[0]) * mp.eye(N)  # λ_min as said
    others = whole[N:, :N]
    error = random.standard_normal((N, N))
    error = error + error.T
    error *= norm / np.linalg.norm(error)
    computed = np.array(kernel.tolist(), dtype=float) + error
    computed = (computed + computed.T) / 2
    off = mp.matrix(computed.tolist()) - kernel
    return kernel, others, computed, float(mp.mnorm(off, "f") * (1 + mpf(10) ** -15))


def within(interval, exact) -> bool:
    return (
        interval.low <= exact <= interval.high and interval.low <= interval.value <= interval.high
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_every_interval_holds_the_exact_number(case, seed):
    kernel, others, computed, norm = exact_kernel(case, seed)
    random = np.random.default_rng(seed)
    y = random.choice([-1.0, 1.0], (N, 2))
    eigen = eigendecomposition(computed, error=norm)
    values, vectors = mp.eigsy(kernel)
    order = sorted(range(N), key=lambda i: values[i])
    for i, place in enumerate(order):
        assert abs(values[place] - mpf(float(eigen.values[i]))) <= eigen.error
        own = mp.matrix(eigen.vectors[:, i].tolist())
        apart = own - vectors[:, place] * mp.fdot(own, vectors[:, place])
        assert mp.asin(min(mp.norm(apart) / mp.norm(own), mpf(1))) <= eigen.angles[i]
    trace = mp.fsum(values)
    assert within(eigen.effective_rank(), trace / max(values))
    assert within(eigen.participation_ratio(), trace**2 / mp.fsum(v**2 for v in values))
    labels = mp.matrix(y.tolist())
    complexity = mp.fsum((labels.T * mp.lu_solve(kernel, labels[:, c]))[c] for c in range(2))
    assert within(eigen.complexity(y), complexity)
    centre = mp.eye(N) - mp.ones(N) / N
    centred, both = centre * kernel * centre, centre * labels * labels.T * centre
    cosine = mp.fsum(a * b for a, b in zip(centred, both, strict=True))
    assert within(eigen.alignment(y), cosine / (mp.mnorm(centred, "f") * mp.mnorm(both, "f")))
    rate = 1.0 / float(eigen.values[-1])
    powered = mp.eye(N) - mpf(rate) * kernel
    for steps in (0, 1, 7, 1000, math.inf):
        start = random.standard_normal((N, 2))
        residual = mp.matrix(start.tolist()) - labels
        left = powered**steps * residual if math.isfinite(steps) else 0 * residual
        trained = eigen.trained(y, rate, steps, start)
        assert trained.values.shape == (N, 2)
        exact = labels + left
        for i in range(N):
            for c in range(2):
                assert abs(mpf(float(trained.values[i, c])) - exact[i, c]) <= trained.errors[i, c]
        k_test = np.array(others.tolist(), dtype=float)
        predicted = eigen.predicted(k_test, y, rate, steps, start, 2.0)
        change = mp.lu_solve(kernel, residual[:, 0] - left[:, 0])
        of_others = mp.matrix(k_test.tolist()) * change
        for i in range(OTHERS):
            off = abs(mpf(float(predicted.values[i, 0])) - (2 - of_others[i]))
            assert off <= predicted.errors[i, 0]
    for ridge in (0.0, 1e-3 * float(eigen.values[-1]), 10.0):
        predicted = eigen.predicted(k_test, y, ridge=ridge)
        damped = kernel + mpf(ridge) * mp.eye(N)
        exact = mp.matrix(k_test.tolist()) * mp.lu_solve(damped, labels[:, 0])
        for i in range(OTHERS):
            off = abs(mpf(float(predicted.values[i, 0])) - exact[i])
            assert off <= predicted.errors[i, 0]


@pytest.mark.parametrize("power", [-1000, -540, -500, 1000])
def test_intervals_hold_where_squares_underflow_or_overflow(power):
    kernel, others, computed, norm = exact_kernel("well conditioned", 0)
    unit, y = mpf(2) ** power, np.random.default_rng(0).choice([-1.0, 1.0], N)
    kernel, labels = unit * kernel, mp.matrix(y.tolist())
    eigen = eigendecomposition(np.ldexp(computed, power), error=math.ldexp(norm, power))
    centre = mp.eye(N) - mp.ones(N) / N
    centred, of_labels = centre * kernel * centre, centre * labels
    cosine = (of_labels.T * centred * of_labels)[0] / (
        mp.mnorm(centred, "f") * mp.norm(of_labels) ** 2
    )
    alignment, complexity = eigen.alignment(1e-200 * y), eigen.complexity(y)
    assert within(alignment, cosine) and alignment.high - alignment.low < 1e-6
    assert within(complexity, (labels.T * mp.lu_solve(kernel, labels))[0])
    trace, squares = mp.fsum(kernel[i, i] for i in range(N)), mp.mnorm(kernel, "f") ** 2
    assert within(eigen.participation_ratio(), trace**2 / squares)
    k_test = np.ldexp(np.array(others.tolist(), dtype=float), power)
    rate = 1 / float(eigen.values[-1])
    for options in ({}, {"ridge": math.ldexp(0.5, power)}, {"learning_rate": rate, "steps": 7}):
        predicted = eigen.predicted(k_test, y, **options)
        solved = mp.lu_solve(kernel + mpf(options.get("ridge", 0)) * mp.eye(N), labels)
        if "steps" in options:
            solved -= (mp.eye(N) - mpf(rate) * kernel) ** 7 * solved
        exact = mp.matrix(k_test.tolist()) * solved
        assert predicted.errors.max() < 1e-4
        for i in range(OTHERS):
            assert abs(mpf(float(predicted.values[i])) - exact[i]) <= predicted.errors[i]


def test_a_prediction_is_never_nan():
    """Of a singular NTK nothing is known after all steps; with a ridge it is."""
    eigen = eigendecomposition(np.ones((3, 3)))
    k_test, y = np.ones((2, 3)), np.arange(3.0)
    for ridge, known in ((0.0, False), (1.0, True)):
        predicted = eigen.predicted(k_test, y, ridge=ridge)
        assert np.isfinite(predicted.values).all()
        assert (predicted.errors < 1e-12).all() if known else np.isinf(predicted.errors).all()
    assert np.allclose(eigen.predicted(k_test, y, ridge=1.0).values, 3 / 4)
    assert not np.isnan(eigen.trained(y).errors).any()
    good = eigendecomposition(np.diag([1.0, 2.0, 4.0]))
    without, with_rate = good.trained(y), good.trained(y, 0.1)
    assert np.array_equal(without.values, with_rate.values)
    assert np.array_equal(good.predicted(k_test, y).values, good.predicted(k_test, y, 0.1).values)


@pytest.mark.parametrize("seed", range(2))
def test_intervals_are_no_wider_than_they_need_to_be(seed):
    _, others, computed, norm = exact_kernel("well conditioned", seed)
    y = np.random.default_rng(seed).choice([-1.0, 1.0], N)
    eigen = eigendecomposition(computed, error=norm)
    for interval in (
        eigen.effective_rank(), eigen.participation_ratio(), eigen.complexity(y), eigen.alignment(y)
    ):  # fmt: skip
        assert interval.high - interval.low < 100 * norm * interval.value
    rate = 1 / eigen.values[-1]
    scale = np.linalg.norm(y)
    assert eigen.trained(y, rate, 20).errors.max() < 100 * norm * scale
    k_test = np.array(others.tolist(), dtype=float)
    assert eigen.predicted(k_test, y, rate, 20).errors.max() < 1000 * norm * scale


def test_bounds_that_forget_the_error_are_found_out():
    """The same intervals, had the error been taken for 0."""
    missed = 0
    for seed in range(6):
        kernel, _, computed, _ = exact_kernel("near parallel samples", seed)
        eigen, y = eigendecomposition(computed), np.ones(N)
        ones = mp.ones(N, 1)
        missed += not within(eigen.complexity(y), (ones.T * mp.lu_solve(kernel, ones))[0])
    assert missed


def test_a_singular_kernel_has_no_finite_complexity_and_says_so():
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    ntk = ntkcond.kernel(nn.Linear(4, 1), torch.cat([x, x[:1]]))
    eigen = eigendecomposition(ntk)
    assert eigen.condition_number == math.inf and eigen.spectrum.verdict == "singular"
    complexity = eigen.complexity(np.ones(7))
    assert complexity.value == complexity.high == math.inf and complexity.low >= 0
    four = eigendecomposition(np.diag([1.0, 2.0, 4.0]))
    assert repr(four).startswith("Eigendecomposition(κ = 4.000")


def test_a_module_trains_as_its_kernel_predicts_where_it_is_linear():
    """Gradient descent on a linear model, by autograd."""
    torch.manual_seed(0)
    module, x, x_test = (
        nn.Linear(5, 1).double(),
        torch.randn(4, 5).double(),
        torch.randn(3, 5).double(),
    )
    y = torch.tensor([1.0, -1.0, 1.0, 1.0]).double()
    eigen = eigendecomposition(ntkcond.kernel(module, x))
    k_test = ntkcond.kernel(module, x_test, x)
    rate = 0.9 / float(eigen.values[-1])
    with torch.no_grad():
        f0, f0_test = module(x)[:, 0], module(x_test)[:, 0]
    expected = eigen.trained(y, rate, 30, f0), eigen.predicted(k_test, y, rate, 30, f0, f0_test)
    optimiser = torch.optim.SGD(module.parameters(), lr=rate)
    for _ in range(30):
        optimiser.zero_grad()
        ((module(x)[:, 0] - y) ** 2).sum().div(2).backward()
        optimiser.step()
    for prediction, samples in zip(expected, (x, x_test), strict=True):
        f = module(samples)[:, 0].detach().numpy()
        assert (abs(f - prediction.values) <= prediction.errors + 1e-13).all()
        assert prediction.errors.max() < 1e-9


def test_the_participation_ratio_of_equal_eigenvalues_is_within_its_interval():
    for n in range(2, 60):
        ratio = eigendecomposition(np.eye(n) * 0.1).participation_ratio()
        assert ratio.low <= n <= ratio.high
