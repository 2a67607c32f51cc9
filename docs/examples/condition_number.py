"""κ of your network's NTK, and whether to believe it."""

import torch

import ntkcond

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(20, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
x = torch.randn(200, 20, dtype=torch.float64)

kernel = ntkcond.kernel(network, x)
print(kernel)
print(ntkcond.condition_number(kernel))
print(ntkcond.closest_pair(kernel))

x[7] = x[3] + 1e-9 * torch.randn(20)  # so near that λ_min is lost in rounding
print(ntkcond.condition_number(network, x))
