"""The NTK before and after training: is this network near the regime where it stays constant?"""

import numpy as np
import torch

import ntkcond

torch.manual_seed(0)
x = torch.randn(100, 10)
y = torch.sign(x[:, :1] * x[:, 1:2])

for width in (32, 2048):
    network = torch.nn.Sequential(
        torch.nn.Linear(10, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
    )
    before = ntkcond.kernel(network, x)
    start = ntkcond.condition_number(before)
    optimiser = torch.optim.SGD(network.parameters(), lr=50 / start.lambda_max)  # n/2 of 1/λ_max
    for _ in range(300):
        optimiser.zero_grad()
        loss = ((network(x) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
    after = ntkcond.kernel(network, x)
    moved = np.linalg.norm(after.matrix - before.matrix) / np.linalg.norm(before.matrix)
    end = ntkcond.condition_number(after)
    print(f"width {width}: loss {loss.item():.3f}, κ {start.kappa:.0f} → {end.kappa:.0f}, "
          f"K moved by {100 * moved:.0f} %")  # fmt: skip
