"""Samples as dicts and tuples, outputs by a function, parameters by a pattern (`library.inputs`):
beside autograd, and with one clear reason where they do not fit."""

from collections import UserDict
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import ntkcond
from ntkcond.run.errors import UserError

N = 6


@dataclass
class Answer:
    logits: Tensor


class Encoder(nn.Module):
    """As Hugging Face's: keywords in, an object out; padded."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.base = nn.Embedding(11, 8), nn.Linear(8, 8)
        self.lora_A, self.lora_B = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, scale: float = 1.0) -> Answer:
        h = self.embed(input_ids)
        h = torch.tanh(self.base(h) + scale * self.lora_B(self.lora_A(h)))
        mask = attention_mask[..., None].to(h)
        return Answer(self.head((h * mask).sum(1) / mask.sum(1)))


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one, self.other = nn.Linear(4, 5), nn.Linear(2, 5)

    def forward(self, x: Tensor, more: dict) -> Tensor:
        return (self.one(x) * self.other(more["y"]).tanh()).sum(1)


def batch(n: int = N, seed: int = 0) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 6, (n, 1), generator=random)
    ids = torch.randint(11, (n, 5), generator=random)
    return {"input_ids": ids, "attention_mask": (torch.arange(5) < lengths).long()}


def pair(n: int = N, seed: int = 0) -> tuple[Tensor, dict[str, np.ndarray]]:
    random = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(n, d, generator=random, dtype=torch.float64) for d in (4, 2))
    return x, {"y": y.numpy()}


def rows(module: nn.Module, outputs, n: int = N, names=lambda name: True) -> np.ndarray:
    """Gradients by autograd; outputs: of samples i and i again."""
    weights = [p for name, p in module.named_parameters() if names(name)]
    found = [torch.autograd.grad(outputs([i, i])[0], weights) for i in range(n)]
    return torch.stack([torch.cat([g.flatten() for g in gs]) for gs in found]).numpy()


def of_encoder(module: Encoder, some: dict[str, Tensor], **options):
    return lambda i: module(**{k: v[i] for k, v in some.items()}, **options).logits[:, 1]


def first(answer: Answer) -> Tensor:
    return answer.logits[:, 1]


def close(found, J: np.ndarray, other: np.ndarray | None = None) -> None:
    expected = J @ (J if other is None else other).T
    assert abs(np.asarray(found) - expected).max() <= 1e-12 * abs(expected).max()


@pytest.mark.parametrize("kind", [dict, UserDict])
def test_a_dict_goes_in_as_keywords_and_a_function_takes_the_output(kind):
    module, some, other = Encoder().double(), batch(), batch(4, seed=1)
    J, J2 = rows(module, of_encoder(module, some)), rows(module, of_encoder(module, other), 4)
    kernel = ntkcond.kernel(module, kind(some), output=first)
    close(kernel.matrix, J)
    assert "head.weight" in kernel.layerwise + kernel.by_jacobian
    assert ntkcond.condition_number(kernel).verdict == "resolved"
    close(ntkcond.kernel(module, kind(some), kind(other), output=first).matrix, J, J2)
    close(ntkcond.ntk_operator(module, kind(some), output=first).to_dense(), J)
    close(ntkcond.jacobian(module, kind(some), output=first).to_dense(), J, np.eye(J.shape[1]))


def test_constants_are_the_same_for_all_samples():
    module = Encoder().double()
    J = rows(module, of_encoder(module, batch(), scale=3.0))
    close(ntkcond.kernel(module, {**batch(), "scale": 3.0}, output=first).matrix, J)


def test_parameters_by_a_pattern():
    module = Encoder().double()
    J = rows(module, of_encoder(module, batch()), names=lambda name: "lora" in name)
    kernel = ntkcond.kernel(module, batch(), output=first, parameters=["lora_*"])
    close(kernel.matrix, J)
    assert kernel.layerwise == ("lora_A.weight", "lora_B.weight")
    with pytest.raises(UserError, match=r"no parameter '\*\.lora_\*'"):
        ntkcond.kernel(module, batch(), output=first, parameters="*.lora_*")


def test_a_tuple_goes_in_as_positions_with_what_is_in_it():
    module, (x, more) = Pair().double(), pair()
    J = rows(module, lambda i: module(x[i], {"y": torch.from_numpy(more["y"])[i]}))
    close(ntkcond.kernel(module, (x, more)).matrix, J)
    close(ntkcond.kernel(module, [x, {"y": pd.DataFrame(more["y"])}]).matrix, J)


def test_a_function_of_params_takes_a_sample_of_the_same_form():
    x, more = pair()
    params = {"v": torch.tensor([0.5, -1.0], dtype=torch.float64)}

    def f(params: dict, sample: dict) -> Tensor:
        return (params["v"] * sample["y"]).sum().tanh() * sample["x"].sum()

    kernel = ntkcond.kernel(f, {"x": x, "y": more["y"]}, params=params)
    y = torch.from_numpy(more["y"])
    z = (y @ params["v"]).tanh()
    close(kernel.matrix, ((1 - z**2) * x.sum(1))[:, None].numpy() * more["y"])


def test_equal_samples_are_one():
    module, some = Encoder(), batch()
    for values in some.values():
        values[3] = values[0]
    spectrum = ntkcond.condition_number(module, some, output=first)
    assert (spectrum.verdict, spectrum.rank_bound) == ("singular", N - 1)


def test_samples_of_float32_are_held_against_the_module_in_its_own_type():
    class Scaled(Pair):
        def forward(self, x: Tensor, more: dict) -> Tensor:
            return super().forward(x, more) * torch.finfo(x.dtype).eps * 1e8

    with pytest.raises(UserError, match="another function"):
        ntkcond.kernel(Scaled(), pair())


@pytest.mark.parametrize("call, reason", [
    (lambda: ntkcond.kernel(Encoder(), batch()), r"output=lambda out: out\.logits\[:, 0\]"),
    (lambda: ntkcond.kernel(Encoder(), batch(), output=lambda out: out.logit), "has no attribute"),
    (lambda: ntkcond.kernel(Encoder(), batch(), output=lambda out: out.logits), "3 outputs"),
    (lambda: ntkcond.kernel(Encoder(), {**batch(), "attention_mask": torch.ones(5, 5)}),
     r"not x\['input_ids'\] 6, x\['attention_mask'\] 5"),
    (lambda: ntkcond.kernel(Encoder(), {"scale": 1.0}), "x has no arrays"),
    (lambda: ntkcond.kernel(Encoder(), {**batch(), "mask": "none"}, output=first), "unexpected"),
    (lambda: ntkcond.kernel(Pair(), pair(), (pair()[0], {"z": pair()[0]})), r"not so at x\[1\]"),
    (lambda: ntkcond.kernel(Pair(), (pair()[0] * np.nan, pair()[1])), r"x\[0\] has NaN"),
    (lambda: ntkcond.kernel(Pair(), pair(), batch()), "the same parts"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(call, reason):
    with pytest.raises(UserError, match=reason):
        call()
