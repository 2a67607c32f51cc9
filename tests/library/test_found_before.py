"""What one call finds out about a module is kept for the next (`Differentiated.check`): a module
that has become another in between gets its own kernel, or the reason why it has none."""

import pytest
import torch
from random_programs import gradients
from torch import Tensor, nn

import ntkcond
from ntkcond.library import differentiated
from ntkcond.library.running import Running
from ntkcond.run.errors import UserError

X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Changing(nn.Module):
    """forward: of the module and samples; it changes by attributes that no graph names."""

    def __init__(self, forward) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.does, self.start, self.mixed, self.scale, self.few = forward, 3, False, 1.0, 99
        self.first, self.head = nn.Linear(6, 6), nn.Linear(3, 1)
        self.register_buffer("mix", torch.eye(12))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return self.does(self, x)


def slices(self, x: Tensor) -> Tensor:
    weight = self.first.weight
    return self.head((x @ weight[:, :3]).tanh() + (x @ weight[:, self.start : self.start + 3]))


def plain(self, x: Tensor) -> Tensor:
    return self.head(self.scale * self.first(x).tanh()[:, :3])


def summed(self, x: Tensor) -> Tensor:
    z = self.first(x).tanh()
    return self.head(z.flip(int(not self.mixed))[:, :3] + z[:, :3])


def multiplied(self, x: Tensor) -> Tensor:
    return self.head((self.mix[: len(x), : len(x)] @ self.first(x).tanh())[:, :3])


def by_number(self, x: Tensor) -> Tensor:
    return self.head(self.first(x - x.mean(0) if len(x) > self.few else x).tanh()[:, :3])


def right(module: nn.Module) -> None:
    J = gradients(module, X)
    for certify in (True, False):
        K = ntkcond.kernel(module, X, certify=certify).matrix
        assert abs(K - J @ J.T).max() <= 1e-12 * (J @ J.T).max()


def overlap(module: nn.Module) -> None:
    module.start = 2


def values(module: nn.Module) -> None:
    module.head.weight.data *= 3  # which no version counts
    module.scale = 2.0


def other_weights(module: nn.Module) -> None:
    module.head = nn.Linear(3, 1).double()


@pytest.mark.parametrize("forward, change", [
    (slices, overlap), (plain, values), (plain, other_weights),
])  # fmt: skip
def test_a_changed_module_has_its_own_kernel(forward, change):
    module = Changing(forward)
    right(module)
    assert module in differentiated._FOUND
    change(module)
    right(module)


@pytest.mark.parametrize("forward, attribute, value", [
    (summed, "mixed", True), (multiplied, "mix", torch.ones(12, 12).double()),
])  # fmt: skip
def test_a_module_that_has_come_to_mix_samples_is_refused(forward, attribute, value):
    module = Changing(forward)
    right(module)
    setattr(module, attribute, value)
    for certify in (True, False):
        with pytest.raises(UserError, match="depends on the other"):
            ntkcond.kernel(module, X, certify=certify)


def test_one_that_mixes_more_samples_than_it_was_tried_on_is_refused():
    module = Changing(by_number)
    right(module)
    module.few = 7
    with pytest.raises(UserError, match="depends on the other"):
        ntkcond.kernel(module, X)


def test_randomness_that_is_switched_on_is_refused():
    module = Changing(
        lambda self, x: self.head(self.first(x * (1 + self.few * torch.rand(1).double()))[:, :3])
    )
    module.few = 0
    right(module)
    module.few = 1
    for certify in (True, False):
        with pytest.raises(UserError, match="changes from call to call"):
            ntkcond.kernel(module, X, certify=certify)


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept = None


@pytest.mark.parametrize("parts", [lambda: None, lambda: [Keeping()], lambda: {"a": [1]}])
def test_a_copy_is_used_again_only_if_all_of_its_state_is_seen(parts):
    module = Changing(plain)
    module.parts = parts()
    run = Running(module, torch.float64)
    first = run._as_given()
    seen = not (isinstance(module.parts, list) and isinstance(module.parts[0], nn.Module))
    assert (run._as_given() is first) == seen
    run._as_given().scale = 2.0
    assert run._as_given().scale == 1.0
