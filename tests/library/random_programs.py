"""Random modules, and their kernels beside exact ones.

A program is some blocks on (n, t, d) features, drawn from a seed, each of a kind that led a
certificate astray: masks, gathers, ties, shared weights, complex numbers, caches, own operations.
It is built twice: as a user would, and `exact`, as plain torch in float64 without what rounds,
caches or decides by type. The kernel of the first, in float64 and in float32, is held against
autograd's of the second, from batches of two equal samples: what float32 rounds is wide of that.

All of a draw: python tests/library/random_programs.py --count 10000
"""

import argparse
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import ntkcond

D, T = 6, 3  # features, positions
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh, "relu": torch.relu, "gelu": functional.gelu, "silu": functional.silu,
    "softplus": functional.softplus, "elu": functional.elu, "sin": torch.sin, "abs": torch.abs,
    "relu2": lambda z: torch.relu(z) ** 2, "hardtanh": functional.hardtanh,
    "leaky_relu": functional.leaky_relu, "mish": functional.mish,
}  # fmt: skip


class Block(nn.Module):
    """exact: see above. random: decides between variants."""

    def __init__(self, random: np.random.Generator, exact: bool) -> None:
        super().__init__()
        self.exact = exact
        self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)
        self.setup(random)

    def setup(self, random: np.random.Generator) -> None: ...


class Dense(Block):
    def setup(self, random: np.random.Generator) -> None:
        self.activation = ACTIVATIONS[str(random.choice(list(ACTIVATIONS)))]

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.activation(self.a(x)))


class Shared(Dense):
    """A layer that is used twice."""

    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.activation(self.a(x)) + self.b(x))


class Masked(Block):
    """Attention with a causal mask."""

    def setup(self, random: np.random.Generator) -> None:
        self.how = str(random.choice(["filled", "added", "finfo", "boolean", "causal", "large"]))
        self.v = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.a(x), self.b(x), self.v(x)
        later = torch.ones(T, T, dtype=torch.bool).triu(1)
        if self.how == "boolean":
            return x + functional.scaled_dot_product_attention(q, k, v, attn_mask=~later)
        if self.how == "causal":
            return x + functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        low = {"finfo": torch.finfo(x.dtype).min, "large": -1e9}.get(self.how, -math.inf)
        scores = q @ k.mT / D**0.5
        if self.how in ("added", "finfo"):
            scores = scores + torch.zeros(T, T, dtype=x.dtype).masked_fill(later, low)
        else:
            scores = scores.masked_fill(later, low)
        return x + scores.softmax(-1) @ v


class Buckets(Block):
    """Exact numbers before an exact comparison, and constants of float32."""

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(T, dtype=torch.float32)
        same = ((places[:, None] - places) / 2).floor() == 0
        h = torch.tanh(self.a(x)) * torch.tensor(0.5) + places[:, None].to(x) * 0.25
        return self.b(torch.where(same[None, :, :, None], h[:, None], 0.0).sum(2))


class Choices(Block):
    """The larger of two, which may differ by less than float32 tells."""

    def setup(self, random: np.random.Generator) -> None:
        self.how = str(random.choice(["amax", "max", "pool", "topk", "sort", "maximum"]))
        self.scale = float(random.choice([1.0, 1.0, 1.0, 1e-9]))

    def forward(self, x: Tensor) -> Tensor:
        a = torch.tanh(self.a(x))
        b = a + self.scale * self.b(x)
        if self.how == "maximum":
            return torch.maximum(a, b)
        z = torch.stack([a, b], -1)
        if self.how == "pool":
            return functional.max_pool1d(z.flatten(1)[:, None], 2)[:, 0].reshape(x.shape)
        if self.how == "max":
            return z.max(-1).values
        if self.how == "topk":
            return z.topk(1).values[..., 0]
        return z.sort(-1).values[..., -1] if self.how == "sort" else z.amax(-1)


class Ties(Block):
    """The largest of three, of which two are equal and the third differs by less than float32
    tells."""

    def forward(self, x: Tensor) -> Tensor:
        a = torch.tanh(self.a(x))
        return torch.stack([a, a, a + 1e-9 * self.b(x)], -1).max(-1).values


class Experts(Block):
    """Samples sorted by their expert, and put back."""

    def forward(self, x: Tensor) -> Tensor:
        order = (x.mean((1, 2)) > 0).long().argsort(stable=True)
        return torch.tanh(self.a(x[order]))[order.argsort()] + self.b(x)


class Differences(Block):
    """A layer at neighbouring inputs, whose gradients cancel; so wide that pairs of positions are
    multiplied."""

    def setup(self, random: np.random.Generator) -> None:
        self.wide, self.narrow = nn.Linear(D, 48), nn.Linear(48, D)
        self.h = float(random.choice([1e-2, 1e-3]))

    def forward(self, x: Tensor) -> Tensor:
        y = x.mean(1)
        slope = (self.wide(y + self.h).tanh() - self.wide(y).tanh()) / self.h
        return self.narrow(slope)[:, None]


class Embedded(Block):
    """Differences of rows of a table, by tokens that the signs of a sample give."""

    def setup(self, random: np.random.Generator) -> None:
        self.table = nn.Parameter(torch.randn(8, D))

    def forward(self, x: Tensor) -> Tensor:
        words = ((x[..., :3] > 0) * torch.tensor([1, 2, 4])).sum(-1)
        rows = functional.embedding(words, self.table)
        return self.a(x) + rows - 0.999 * rows.roll(1, 1)


class Complex(Block):
    """What cancels among complex numbers."""

    def setup(self, random: np.random.Generator) -> None:
        self.c = float(random.choice([0.0, 1e4]))

    def forward(self, x: Tensor) -> Tensor:
        z = torch.complex(self.a(x), self.b(x))
        if not self.exact:
            z = (z + self.c) - self.c
        z = torch.fft.ifft(torch.fft.fft(z, dim=1) * torch.exp(1j * z.real), dim=1)
        return z.real + z.imag.tanh()


class Cached(Block):
    """Keeps something made of its weights."""

    def setup(self, random: np.random.Generator) -> None:
        self.s, self.kept = nn.Parameter(torch.randn(D)), None

    def forward(self, x: Tensor) -> Tensor:
        if self.kept is None or self.exact:
            self.kept = self.s**2
        return torch.tanh(self.a(x)) * self.kept


class Stem(Block):
    """Batch normalisation whose gradient arrives permuted."""

    def setup(self, random: np.random.Generator) -> None:
        self.conv, self.norm = nn.Conv2d(1, D, 3, padding=1), nn.BatchNorm2d(D)
        self.norm.running_mean = torch.randn(D)
        self.norm.running_var = torch.rand(D) + 0.5

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.norm(self.conv(x[:, None])).flatten(2).transpose(1, 2)
        return self.a(torch.tanh(tokens).reshape(len(x), T, D, D).mean(2))


class Normed(Block):
    """RMSNorm, whose eps is that of its type."""

    def setup(self, random: np.random.Generator) -> None:
        self.norm = nn.RMSNorm(D, eps=torch.finfo(torch.float32).eps if self.exact else None)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.norm(3e-4 * x))


class Statistics(Block):
    """A normalisation by hand, and by layers."""

    def setup(self, random: np.random.Generator) -> None:
        self.layer, self.group = nn.LayerNorm(D), nn.GroupNorm(1, T)

    def forward(self, x: Tensor) -> Tensor:
        return self.group(self.layer(self.a(x)) + 2.0) / (1 + x.var(-1, keepdim=True))


class Slivers(Block):
    """A direction that float32 cannot tell, with a small share in the result."""

    def forward(self, x: Tensor) -> Tensor:
        a = x[..., :3]
        b = 1.3 * a + 1e-8 * x[..., 3:]
        c = a.roll(-1, -1) * b.roll(-2, -1) - a.roll(-2, -1) * b.roll(-1, -1)
        direction = c / ((c**2).sum(-1, keepdim=True) + 1e-34).sqrt()
        return self.b(torch.tanh(x)) + 0.01 * functional.pad(direction, (0, D - 3))


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            return g * (1 - torch.tanh(x) ** 2)


class Once(Block):
    """An operation whose second derivative is wrong."""

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.tanh(self.a(x)) if self.exact else _Once.apply(self.a(x)))


class _NumpySin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.detach().numpy().astype(np.float32))).to(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.from_numpy(np.cos(x.detach().numpy().astype(np.float32))).to(g)


class OwnPrecision(Block):
    """An operation that computes in NumPy's float32."""

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.sin(self.a(x)) if self.exact else _NumpySin.apply(self.a(x)))


class Lowered(Block):
    """A softmax in float32, as in many transformers, whatever the rest computes in."""

    def forward(self, x: Tensor) -> Tensor:
        scores = self.a(x) @ self.b(x).mT / D**0.5
        if not self.exact:
            return x + functional.softmax(scores.float(), -1).to(x) @ x
        return x + functional.softmax(scores, -1) @ x


class Equilibrium(Block):
    """An iteration that ends when the whole batch has converged."""

    def forward(self, x: Tensor) -> Tensor:
        u, z = self.a(x), torch.zeros_like(x)
        for _ in range(200):
            new = 0.5 * torch.tanh(self.b(z)) + u
            apart, z = (new - z).norm(), new
            if apart < 1e-9 * new.norm():
                break
        return z


class Inside(Block):
    """A gradient within the module, as of physics-informed networks."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(torch.tanh(self.a(y)).sum(), y, create_graph=True)
        return self.b(slope)


class Gated(Block):
    def forward(self, x: Tensor) -> Tensor:
        z = self.a(x)
        return torch.where(z > 0, z, 0.1 * z) + torch.sgn(z) * torch.relu(self.b(x).abs() - 0.1)


class PerSample(Block):
    """What is differentiated sample by sample."""

    def setup(self, random: np.random.Generator) -> None:
        self.pair = nn.Bilinear(D, D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.pair(self.a(x), torch.tanh(self.b(x)))


KINDS: dict[str, type[Block]] = {
    kind.__name__.lower(): kind
    for kind in (
        Dense, Shared, Masked, Buckets, Choices, Ties, Experts, Differences, Embedded, Complex,
        Cached, Stem, Normed, Statistics, Slivers, Once, OwnPrecision, Lowered, Equilibrium, Inside,
        Gated, PerSample,
    )
}  # fmt: skip
ONLY_64 = {"normed", "ownprecision", "equilibrium"}  # which are others in float32


class Program(nn.Module):
    def __init__(self, seed: int, exact: bool, kinds: list[str]) -> None:
        super().__init__()
        torch.manual_seed(seed)
        random = np.random.default_rng(seed)
        self.blocks = nn.ModuleList(KINDS[kind](random, exact) for kind in kinds)
        self.head, self.pairs = nn.Linear(D, 1), bool(random.integers(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x) + 0.5 * x
        return self.head(x[:, 0] - x[:, 1] if self.pairs else x.mean(1))


def kinds_of(seed: int) -> list[str]:
    random = np.random.default_rng(10**9 + seed)
    return [str(kind) for kind in random.choice(list(KINDS), random.integers(1, 4))]


def gradients(module: nn.Module, x: Tensor) -> np.ndarray:
    """(n, weights), by autograd, from batches of two equal samples."""
    rows, weights = [], list(module.parameters())
    for sample in x:
        f = module(torch.stack([sample, sample])).reshape(2, -1)[0, 0]
        found = torch.autograd.grad(f, weights, allow_unused=True)
        pairs = zip(weights, found, strict=True)
        rows.append(torch.cat([(p * 0 if g is None else g).flatten() for p, g in pairs]))
    return torch.stack(rows).detach().numpy()


def findings(seed: int, kinds: list[str] | None = None) -> list[str]:
    """What is wrong with the kernels of a program; refusals are said, and are no fault."""
    kinds = kinds or kinds_of(seed)
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 8))
    x = torch.from_numpy(random.standard_normal((n, T, D))).float()
    exact, module = (Program(seed, one, kinds).eval() for one in (True, False))
    exact.load_state_dict(module.state_dict())
    J = gradients(exact.double(), x.double())
    true = J @ J.T
    faults = []
    memory = float(random.choice([2e9, 2e9, 6e4]))
    for dtype in (torch.float64, torch.float32):
        if dtype == torch.float32 and ONLY_64 & set(kinds):
            continue
        given = module if dtype == torch.float32 or set(kinds) & {"normed"} else module.double()
        faults += _compared(given, x, true, dtype, memory, kinds)
        module = Program(seed, False, kinds).eval()
    return [f"{'+'.join(kinds)} {seed}: {fault}" for fault in faults]


def _compared(
    module: nn.Module, x: Tensor, true: np.ndarray, dtype: torch.dtype, memory: float, kinds: list
) -> list[str]:
    word, n = str(dtype).removeprefix("torch."), len(x)
    own = 1e-13 * np.trace(true)  # what the exact one may be off by
    known = {"error": 1e-5 * np.trace(true)}  # of what has no certificate
    options = {"dtype": dtype, "memory": memory}

    def certified() -> str:
        kernel = ntkcond.kernel(module, x, **options)
        known["error"] = kernel.error
        off = np.linalg.norm(kernel.matrix.astype(float) - true)
        if not off <= 2 * kernel.error + own:
            return f"off by {off / kernel.error:.3g} of its error"
        spectrum, values = ntkcond.condition_number(kernel), np.linalg.eigvalsh(true)
        low, high = values[-1] / (values[0] + own), values[-1] / max(values[0] - own, 1e-300)
        said = f"{spectrum.kappa_lower:.6g} to {spectrum.kappa_upper:.6g}"
        inside = spectrum.kappa_lower <= high and low <= spectrum.kappa_upper
        return "" if spectrum.verdict != "resolved" or inside else f"κ {low:.6g}, said {said}"

    def of_two_sets() -> str:
        # what float32 cannot tell differs from batch to batch by more than the error of the first
        certify = dtype == torch.float32 and "slivers" in kinds
        two = ntkcond.kernel(module, x, x[1:], certify=certify, **options)
        error = two.error if certify else known["error"]
        off = np.linalg.norm(two.matrix.astype(float) - true[:, 1:])
        within = off <= 2 * error + own
        return "" if within else f"of two sets, off by {off / error:.3g} of the error"

    def product() -> str:
        # a product has no certificate: of what batches change, or of what float32 cannot tell
        if "equilibrium" in kinds or (dtype == torch.float32 and "slivers" in kinds):
            return ""
        found = np.asarray(ntkcond.ntk_operator(module, x, dtype=dtype) @ np.ones(n))
        off = np.linalg.norm(found - true.sum(1))
        within = off <= 2 * known["error"] * math.sqrt(n) + own * n
        return "" if within else f"operator off by {off / known['error']:.3g}"

    faults = []
    for part in (certified, of_two_sets, product):
        try:
            fault = part()
        except ntkcond.UserError as error:
            fault = f"refused: {error}"
        except Exception as error:
            fault = f"crash: {type(error).__name__}: {error}"
        if fault:
            faults.append(f"{word}: {fault}")
        if fault.startswith("refused") and "slivers" in kinds:  # of which float32 knows nothing
            break
    return faults


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--kinds", nargs="*")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seen: Counter[str] = Counter()
    for seed in range(chosen.first, chosen.first + chosen.count):
        found = findings(seed, chosen.kinds)
        seen["programs"] += 1
        for fault in found:
            refused = ": refused" in fault
            seen["refused" if refused else "wrong"] += 1
            print(fault[:300], flush=True)
    print(dict(seen))
    sys.exit(bool(seen["wrong"]))


if __name__ == "__main__":
    main()
