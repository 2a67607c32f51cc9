"""Random programs (`random_programs`), a few of each kind; and that each rule by which a module is
run, taken back alone, is missed by them."""

import math

import mpmath
import numpy as np
import pytest
import torch
from random_programs import KINDS, findings
from torch import Tensor, nn

import ntkcond
from ntkcond.library import (
    differentiated,
    gradient_error,
    operators,
    per_sample_gradients,
    perturbation,
    running,
)
from ntkcond.library.differentiated import Differentiated
from ntkcond.library.running import Running


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_of_random_programs_are_within_their_errors(kind):
    others = np.random.default_rng(list(KINDS).index(kind)).choice(list(KINDS), 1)
    assert findings(1, [kind, *map(str, others)]) == []


def _fill_without_gradients(monkeypatch) -> None:
    check = Differentiated.check

    def filled(self, x: Tensor) -> int:
        with torch.no_grad():
            self.run.module(x)
        return check(self, x)

    monkeypatch.setattr(Differentiated, "check", filled)
    monkeypatch.setattr(Running, "_as_given", lambda self: self.module)


def _one_sample_alone(monkeypatch) -> None:
    call, layers = Running.__call__, Differentiated._of_layers

    def alone(self, x: Tensor, weights: dict | None = None) -> Tensor:
        return self.module(x.clone()).reshape(1, -1) if len(x) == 1 else call(self, x, weights)

    def with_outputs(self, x: Tensor, outputs: range, compact: bool = True, held: bool = False):
        return layers(self, x, outputs, compact, held)

    monkeypatch.setattr(Running, "__call__", alone)
    monkeypatch.setattr(Differentiated, "with_outputs", with_outputs)


def _pairs_that_cancel(monkeypatch) -> None:
    for module in (per_sample_gradients, differentiated):
        monkeypatch.setattr(module, "CANCELS", math.inf)
    sizes = per_sample_gradients.Factored.sizes

    def of_sums(self) -> per_sample_gradients.Sizes:
        return sizes(self)._replace(multiplied=sizes(self).norms)

    monkeypatch.setattr(per_sample_gradients.Factored, "sizes", of_sums)


def _another_function(monkeypatch) -> None:
    monkeypatch.setattr(Running, "hold_against", lambda *a: None)
    monkeypatch.setattr(running, "_own_constants", lambda module: None)


def _second_derivatives_as_they_come(monkeypatch) -> None:
    monkeypatch.setattr(
        operators._Network, "_holds", lambda self, few: self.along.__name__ == "_twice_backwards"
    )


def _rows_as_planned(monkeypatch) -> None:
    monkeypatch.setattr(Differentiated, "_require_in_place", lambda *a: None)


def _large_errors_alone(monkeypatch) -> None:
    monkeypatch.setattr(gradient_error, "AS_ROUNDING", 2.0**6)


def _reals_alone(monkeypatch) -> None:
    rounds = perturbation._rounds
    monkeypatch.setattr(perturbation, "_rounds", lambda v: rounds(v) and not v.is_complex())


def _own_operations_as_they_seem(monkeypatch) -> None:
    monkeypatch.setattr(gradient_error, "HIDDEN_RUNS", 0)


def _dependence_below_notice(monkeypatch) -> None:
    monkeypatch.setattr(gradient_error, "_in_other_batches", lambda *a: 0.0)


@pytest.mark.parametrize("take_back, kind", [
    (_fill_without_gradients, "cached"), (_one_sample_alone, "stem"),
    (_pairs_that_cancel, "differences"), (_another_function, "normed"),
    (_second_derivatives_as_they_come, "once"), (_rows_as_planned, "experts"),
    (_large_errors_alone, "slivers"), (_reals_alone, "complex"),
    (_own_operations_as_they_seem, "ownprecision"), (_dependence_below_notice, "equilibrium"),
])  # fmt: skip
def test_a_rule_that_is_taken_back_is_missed(monkeypatch, take_back, kind):
    take_back(monkeypatch)
    every = (fault for seed in range(10) for fault in findings(seed, [kind]))
    assert any("off by" in fault or "said" in fault for fault in every)


def test_the_gradient_of_digamma_is_within_its_error():
    """torch's trigamma is right to 10⁻⁹, which no error of inputs or results shows."""
    mpmath.mp.dps = 30
    torch.manual_seed(0)
    layer, x = nn.Linear(6, 5).double(), torch.randn(5, 6, dtype=torch.float64)

    class Evidence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor) -> Tensor:
            return torch.digamma(nn.functional.softplus(self.layer(x)) + 1).sum(1)

    z = layer(x).detach().numpy()
    slope = np.vectorize(lambda v: float(mpmath.psi(1, float(v))))(np.log1p(np.exp(z)) + 1)
    slope /= 1 + np.exp(-z)
    exact = (slope @ slope.T) * (x.numpy() @ x.numpy().T + 1)
    kernel = ntkcond.kernel(Evidence(), x)
    off = np.linalg.norm(kernel.matrix - exact)
    assert 1e-12 * np.trace(exact) < off <= kernel.error < 1e-6 * np.trace(exact)


def twice(z: Tensor, other: Tensor) -> dict[str, Tensor]:
    """The largest of three values of which the first stands twice."""
    three = torch.stack([z, z, other], -1)
    return {
        "amax": three.amax(-1), "max": three.max(-1).values, "topk": three.topk(1).values[..., 0],
        "sort": three.sort(-1).values[..., -1],
        "pool": nn.functional.max_pool1d(three.flatten(1)[:, None], 3)[:, 0],
    }  # fmt: skip


class Largest(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.a, self.b, self.o, self.how = *(nn.Linear(6, 60) for _ in "ab"), nn.Linear(60, 1), how

    def forward(self, x: Tensor) -> Tensor:
        return self.o(twice(self.a(x), self.b(x))[self.how])


@pytest.mark.parametrize("how", ["amax", "max", "topk", "sort", "pool"])
def test_a_third_value_within_rounding_of_one_that_stands_twice_is_a_tie(how):
    torch.manual_seed(0)
    module, x = Largest(how).double(), torch.randn(8, 6, dtype=torch.float64)
    assert ntkcond.kernel(module, x).kinks == 0
    with torch.no_grad():  # sample 0: equal in exact arithmetic
        z = module.a(x[:1])[0, 0] - module.b(x[:1])[0, 0]
        module.b.bias[0] += z
    assert ntkcond.kernel(module, x).kinks >= 1
