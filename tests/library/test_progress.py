"""One bar for a call of the library, from two seconds on (`ntkcond.run.progress`)."""

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from tqdm.std import tqdm

import ntkcond
from ntkcond.run import progress

torch.manual_seed(0)
X = torch.randn(40, 6)
RELU = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2))
OPERATOR = ntkcond.ntk_operator(RELU, X, output="trace")
JACOBIAN = ntkcond.jacobian(RELU, X, output=0)


class Mixing(nn.Module):
    """Its samples are not seen to be apart: they are tried in other batches too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        f = self.inner(x)
        return f[torch.argsort(torch.argsort(f[:, 0]))][torch.argsort(f[:, 0])]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(call: Callable[[], object], stream: type[io.StringIO] = Terminal) -> str:
    """What a call writes to standard error."""
    with contextlib.redirect_stderr(stream()) as said:
        call()
    return said.getvalue()


@pytest.fixture
def bars(monkeypatch) -> list[tqdm]:
    """All bars, each with the percentages that it had."""
    made: list[tqdm] = []

    class Kept(tqdm):
        def __init__(self, *args, **options) -> None:
            super().__init__(*args, **options)
            self.seen: list[float] = []
            made.append(self)

        def update(self, n: float = 1) -> bool | None:
            shown = super().update(n)
            self.seen.append(self.n)
            return shown

    monkeypatch.setattr("tqdm.auto.tqdm", Kept)
    monkeypatch.setattr(progress, "tqdm", Kept)
    return made


KERNEL = ntkcond.kernel(RELU, X, output=0)
CALLS = {
    "kernel": lambda: ntkcond.kernel(RELU, X, output=0),
    "kernel of parts": lambda: ntkcond.kernel(RELU, X, output="trace", memory=1e5),
    "kernel of two sets": lambda: ntkcond.kernel(RELU, X, X[:9], output="all", memory=2e5),
    "kernel of mixed samples": lambda: ntkcond.kernel(Mixing(), X, output=0),
    "kernel alone": lambda: ntkcond.kernel(Mixing(), X, output=0, certify=False, memory=1e5),
    "condition number": lambda: ntkcond.condition_number(RELU, X, output=1),
    "eigendecomposition": lambda: ntkcond.eigendecomposition(KERNEL),
    "products": lambda: OPERATOR @ np.ones((40, 3)),
    "matrix": OPERATOR.to_dense,
    "trace": OPERATOR.trace,
    "estimated trace": OPERATOR.estimated_trace,
    "density": lambda: OPERATOR.density(probes=2, steps=3),
    "Jacobian": lambda: JACOBIAN.T @ torch.ones(40),
    "operator of mixed samples": lambda: ntkcond.ntk_operator(Mixing(), X, output=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_bar_goes_from_nothing_to_all_and_says_so_from_its_first_second(
    name, bars, monkeypatch
):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert "%|" in written(CALLS[name])
    (bar,) = bars
    assert bar.disable and bar.total == 100  # disabled: closed
    assert bar.n == pytest.approx(100)
    assert len(bar.seen) > 1 and max(bar.seen) < 100 + 1e-9
    *before, _ = bar.seen  # the last one fills what was planned and not needed
    assert before[-1] > 99.99


def test_a_bar_without_an_end_counts(bars, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert " gradients [" in written(OPERATOR.largest_eigenvalue)
    (bar,) = bars
    assert bar.total is None and bar.n >= 80


def test_below_two_seconds_there_is_none(bars):
    assert progress.DELAY == 2.0
    assert written(CALLS["kernel"]) == written(CALLS["eigendecomposition"]) == ""
    assert [bar.n for bar in bars] == [100, 100]


def test_after_two_seconds_there_is_one(bars, monkeypatch):
    """By a clock that is faster."""
    now = iter(range(10**6))
    monkeypatch.setattr(tqdm, "_time", staticmethod(lambda: next(now)), raising=False)
    monkeypatch.setattr("tqdm.std.time", lambda: next(now))
    said = written(CALLS["kernel"])
    assert "NTK of a Sequential:" in said
    assert said.endswith("\r") and not said.split("\r")[-2].strip()  # and then it is gone


@pytest.mark.parametrize("where", ["a file", "TQDM_DISABLE"])
def test_there_is_none_in_a_file_or_against_ones_wish(where, bars, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    if where == "TQDM_DISABLE":
        monkeypatch.setenv("TQDM_DISABLE", "1")
    assert written(CALLS["kernel"], io.StringIO if where == "a file" else Terminal) == ""
    assert len(bars) == 1


def test_after_a_mistake_the_next_call_has_its_own(bars):
    with pytest.raises(ntkcond.UserError, match="is NaN or infinite"):
        ntkcond.kernel(nn.Sequential(nn.Linear(6, 1), Root()), X)
    written(CALLS["kernel"])
    assert len(bars) == 2 and bars[1].n == 100


class Root(nn.Module):
    """Finite, with a gradient that is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.detach()).abs().sqrt()
