"""One way to the NTK of a module with biases, for `module.py` to time and compare.

    python module_worker.py NAME CASE N FOLDER

Computes K after one of eight samples; saves it as FOLDER/NAME.npy and prints the seconds and by how
many bytes the memory rose.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from kernel_worker import memory, threads
from torch import nn

MEMORY = 2e9  # bytes that ntkcond may take
POSITIONS = 32  # tokens of a sequence


class Residual(nn.Module):
    """ResNet's basic block."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU(), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(short, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.layers(x) + self.shortcut(x)).relu()


def resnet18(width: int) -> nn.Module:
    """For images of 32 × 32: the first convolution is 3 × 3, without pooling."""
    widths = [width, width, 2 * width, 4 * width, 8 * width]
    blocks = [
        block
        for a, b, stride in zip(widths[:-1], widths[1:], (1, 2, 2, 2), strict=True)
        for block in (Residual(a, b, stride), Residual(b, b, 1))
    ]
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 1),
    )  # fmt: skip


class Attention(nn.Module):
    """With projections as linear layers, which all packages know."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Transformer(nn.Module):
    """A transformer of 16 patches of 8 × 8 pixels; the mean of the positions is read out."""

    def __init__(self, width: int = 144, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Linear(192, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        return self.head(self.norm(self.blocks(self.patches(x))).mean(1))


class GPT2(nn.Module):
    """A tiny GPT-2 that classifies sequences by their last token, as Hugging Face's does."""

    def __init__(self, tokens: int = 1000, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(POSITIONS, width)
        self.blocks = nn.Sequential(*(Block(width, 4, causal=True) for _ in range(depth)))
        self.norm, self.score = nn.LayerNorm(width), nn.Linear(width, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return self.score(self.norm(self.blocks(h))[:, -1])


def case(name: str, n: int) -> tuple[nn.Module, torch.Tensor, str | None]:
    """A module, n samples, and which outputs."""
    torch.manual_seed(0)
    shape: tuple[int, ...] = (784,)
    if name == "gpt2":
        return GPT2().double().eval(), torch.randint(1000, (n, POSITIONS)), None
    if name == "tutorial":  # of PyTorch's "Neural Tangent Kernels"
        layers = (
            nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3),
            nn.Flatten(), nn.Linear(32 * 26**2, 10),
        )  # fmt: skip
        return nn.Sequential(*layers).double(), torch.randn(n, 3, 32, 32).double(), "all"
    if name == "mlp":
        module: nn.Module = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        )
    elif name == "cnn":
        shape = 1, 28, 28
        module = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 25, 1),
        )  # fmt: skip
    else:
        shape = 3, 32, 32
        module = resnet18(width=16) if name == "resnet18" else Transformer()
    return module.double().eval(), torch.randn(n, *shape, dtype=torch.float64), None


def ntkcond(module: nn.Module, x: torch.Tensor, output: str | None) -> Callable[[], np.ndarray]:
    import ntkcond

    return lambda: ntkcond.kernel(module, x, output=output, memory=MEMORY).matrix


def unchecked(module: nn.Module, x: torch.Tensor, output: str | None) -> Callable[[], np.ndarray]:
    """Ours without a certificate."""
    import ntkcond

    options = {"output": output, "memory": MEMORY, "certify": False}
    return lambda: ntkcond.kernel(module, x, **options).matrix


def torch_func(module: nn.Module, x: torch.Tensor, output: str | None) -> Callable[[], np.ndarray]:
    """Gradients of all samples, then products."""
    weights = {name: p.detach() for name, p in module.named_parameters()}

    def outputs(weights: dict, sample: torch.Tensor) -> torch.Tensor:
        f = torch.func.functional_call(module, weights, (sample[None],))[0]
        return f if output else f[0]

    differentiate = torch.func.jacrev if output else torch.func.grad
    gradients = torch.func.vmap(differentiate(outputs), (None, 0))
    rows = 1 if output else 0  # dimensions of a gradient before those of the weight, but for n

    def kernel() -> np.ndarray:
        with torch.no_grad():
            per_sample = [g.flatten(0, rows) for g in gradients(weights, x).values()]
            return sum(g.flatten(1) @ g.flatten(1).T for g in per_sample).numpy()

    return kernel


def nngeometry(module: nn.Module, x: torch.Tensor, output: str | None) -> Callable[[], np.ndarray]:
    from nngeometry.gram import GramMatrix
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_default_dtype(torch.float64)  # in which it adds up a convolution's gradients
    loader = DataLoader(TensorDataset(x), batch_size=len(x), collate_fn=lambda _: (x,))

    def kernel() -> np.ndarray:
        gram = GramMatrix(module, loader).to_torch().detach()  # (k, n, k, n)
        return gram.permute(1, 0, 3, 2).flatten(2).flatten(0, 1).numpy()

    return kernel


def main(name: str, which: str, n: str, folder: str) -> None:
    torch.set_num_threads(threads())
    module, x, output = case(which, int(n))
    of_all, of_few = (globals()[name](module, some, output) for some in (x, x[:8]))
    of_few()  # what is set up once
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    start = time.perf_counter()
    matrix = of_all()
    print(time.perf_counter() - start, memory("VmHWM") - before)
    np.save(Path(folder, f"{name}.npy"), matrix)


if __name__ == "__main__":
    main(*sys.argv[1:])
