"""The network of PyTorch's NTK tutorial, all outputs: the tutorial's contraction beside ours."""

import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap

import ntkcond

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3),
    nn.Flatten(), nn.Linear(21632, 10),
).double()  # fmt: skip
params = {name: p.detach() for name, p in network.named_parameters()}
x1, x2 = torch.randn(20, 3, 32, 32).double(), torch.randn(5, 3, 32, 32).double()


def jacobians(x: torch.Tensor) -> list[torch.Tensor]:  # of each parameter, (n, 10, its weights)
    outputs = lambda params, sample: functional_call(network, params, (sample[None],))[0]  # noqa: E731
    return [j.flatten(2) for j in vmap(jacrev(outputs), (None, 0))(params, x).values()]


pairs = zip(jacobians(x1), jacobians(x2), strict=True)
theirs = sum(torch.einsum("Naf,Mbf->NMab", j1, j2) for j1, j2 in pairs)
kernel = ntkcond.kernel(network, x1, x2, output="all", certify=False, as_tensor=True)
ours = kernel.matrix.reshape(20, 10, 5, 10).transpose(1, 2)
print(f"largest difference: {(ours - theirs).abs().max() / theirs.abs().max():.0e}")
print(ntkcond.condition_number(network, x2, output="all"))
