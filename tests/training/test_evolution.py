"""The NTK on the way: against autograd, closed forms and matrix powers."""

import h5py
import numpy as np
import pytest
import torch
from scipy import stats

from ntkcond.artefacts import fig_evolution, fig_spectrum, interval
from ntkcond.ntk.labels import alignment
from ntkcond.steps.descent import WATCHED
from ntkcond.training import evolution
from small_descents import ALTERNATING, WIDTH, N, descend, gaussian
from small_networks import mlp

RNG = np.random.default_rng(0)
FACTOR = RNG.standard_normal((6, 9))
KERNEL = FACTOR @ FACTOR.T
Y = np.array([1.0, -1, 1, 1, -1, 1])


def test_modes_are_projections_on_eigenvectors():
    residual = RNG.standard_normal(6)
    modes = evolution.modes(KERNEL, Y, residual)
    assert modes.labels.sum() == pytest.approx(1)
    assert modes.eigenvalues @ modes.labels == pytest.approx(Y @ KERNEL @ Y / (Y @ Y))
    assert modes.eigenvalues @ modes.constant == pytest.approx(KERNEL.sum() / 6)
    assert modes.eigenvalues @ modes.residual == pytest.approx(residual @ KERNEL @ residual)


def test_the_linearised_descent_is_that_of_a_constant_kernel():
    residual, rate = RNG.standard_normal(6), 0.8 / np.linalg.eigvalsh(KERNEL)[-1]
    path = evolution.linearised(evolution.modes(KERNEL, Y, residual), rate, 30)
    for step in (0, 1, 7, 30):
        power = np.linalg.matrix_power(np.eye(6) - rate * KERNEL, step)
        assert path[step] == pytest.approx(np.linalg.norm(power @ residual), rel=1e-12)


def test_alignment_is_that_of_centred_kernels():
    centre = np.eye(6) - 1 / 6
    one, other = centre @ KERNEL @ centre, centre @ np.outer(Y, Y) @ centre
    cosine = (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)
    assert alignment(KERNEL, Y) == pytest.approx(cosine)
    assert alignment(np.outer(Y, Y) + 7, Y) == pytest.approx(1)
    assert np.isnan(alignment(np.ones((6, 6)), Y))


def test_steps_that_are_watched():
    assert evolution.watched(2) == [0, 1, 2]
    watched = evolution.watched(500)
    assert watched[:2] == [0, 1]
    assert watched[-1] == 500
    assert len(watched) <= evolution.WATCHED + 1 == WATCHED
    assert watched == sorted(set(watched))


def test_intervals_are_students():
    values = np.array([1.0, 2, 4, 8, 3])
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert interval.t_interval(values) == pytest.approx((values.mean(), low, high))
    logs = np.exp(interval.t_interval(np.log(values)))
    assert interval.geometric(values) == pytest.approx(tuple(logs))
    assert np.isnan(interval.t_interval(values[:1])[1:]).all()
    assert interval.geometric(np.zeros(3))[0] == 0


def test_the_kernel_on_the_way_is_that_of_autograd(tmp_path):
    """Ten steps of torch's SGD, and Jacobians at the start and the end."""
    steps, depth, seed = 10, 2, 32
    x = gaussian()
    with h5py.File(descend(tmp_path, x, ALTERNATING, steps=steps, rules=["own"])) as file:
        i, j = 1, 1  # depth 2, seed 32
        rate = float(file["learning_rate"][0, i, j])
        recorded = {name: file[f"evolution/{name}"][0, i, j, -1] for name in file["evolution"]}
        assert file["watched"][-1] == steps
        residual = file["residual"][0, i, j]
    network = mlp("relu", depth, WIDTH)
    weights = [torch.tensor(w, requires_grad=True) for w in network.weights(seed, x.shape[1])]
    inputs, signs = torch.tensor(x.astype(float)), torch.tensor(2.0 * ALTERNATING - 1)

    def outputs(*weights: torch.Tensor) -> torch.Tensor:
        a = inputs
        for w in weights[:-1]:
            a = torch.relu(a @ w.T) * (2 / WIDTH) ** 0.5
        return (a @ weights[-1].T)[:, 0]

    def kernel() -> np.ndarray:
        parts = torch.autograd.functional.jacobian(outputs, tuple(weights))
        return sum(p.flatten(1) @ p.flatten(1).T for p in parts).numpy()

    start, optimiser = kernel(), torch.optim.SGD(weights, lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        (0.5 * (outputs(*weights) - signs).square().sum()).backward()
        optimiser.step()
    end = kernel()
    assert residual[-1] == pytest.approx(float((outputs(*weights) - signs).norm()), rel=1e-10)
    change = np.linalg.norm(end - start) / np.linalg.norm(start)
    assert recorded["change"] == pytest.approx(change, rel=1e-8)
    assert recorded["kappa"] == pytest.approx(np.linalg.cond(end), rel=1e-8)
    assert recorded["alignment"] == pytest.approx(alignment(end, signs.numpy()), rel=1e-8)
    cosines = end / np.sqrt(np.outer(end.diagonal(), end.diagonal())) - 2 * np.eye(N)
    angle = np.degrees(np.arccos(cosines.max()))
    assert recorded["min_angle_deg"] == pytest.approx(angle, rel=1e-8)
    assert recorded["verdict"] == b"resolved"


def test_the_kernel_of_a_linear_model_is_constant_and_predicts_its_descent(tmp_path):
    """d = 16 features and 12 samples: K = X Xᵀ, of full rank."""
    x = RNG.standard_normal((N, 16)).astype(np.float32)
    path = descend(tmp_path, x, ALTERNATING, depths=[0, 1], rules=["own"])
    with h5py.File(path) as file:
        assert np.allclose(file["linearised"][0, 0], file["residual"][0, 0], rtol=1e-9)
        assert file["evolution/change"][0, 0].max() == 0
        assert file["evolution/change"][0, 1].max() > 0
    row = fig_evolution.table([path]).query("depth == 0").iloc[-1]
    assert row.linearised_error_mean < 1e-9
    assert not row.own_width
    shares = fig_spectrum.table([path])
    last = shares[shares.position == N]
    assert last.labels_up_to_mean.to_numpy() == pytest.approx(1)
    first = shares[(shares.position == 1) & (shares.depth == 0)].iloc[0]
    assert first.kappa_mean == pytest.approx(np.linalg.cond(x.astype(float)) ** 2)
    assert first.kappa_without_first_mean < first.kappa_mean


def test_of_a_long_spectrum_the_first_and_the_last_positions_are_shown():
    assert fig_spectrum._shown(48) == list(range(48))
    shown = fig_spectrum._shown(512)
    assert shown[:10] == list(range(10))
    assert shown[-1] == 511
    assert len(shown) == len(set(shown)) <= fig_spectrum.POSITIONS


def test_where_kappa_is_not_resolved_there_is_none(tmp_path):
    x = gaussian()
    x[7] = x[3]
    path = descend(tmp_path, x, ALTERNATING)
    assert fig_evolution.table([path]).kappa_mean.isna().all()
    numbers = fig_spectrum.table([path])
    assert numbers.kappa_mean.isna().all()
    assert (numbers.eigenvalue_mean.dropna() > 0).all()
    fig_spectrum.draw(numbers)
    fig_evolution.draw(fig_evolution.table([path]))
