"""κ during training, and how far the NTK moves: does it stay nearly constant at this width?"""

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
    start = ntkcond.kernel(network, x)
    rate = 50 / ntkcond.condition_number(start).lambda_max  # n/2 of 1/λ_max
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    for step in range(301):
        loss = ((network(x) - y) ** 2).mean()
        if step % 100 == 0:
            kernel = ntkcond.kernel(network, x)
            moved = np.linalg.norm(kernel.matrix - start.matrix) / np.linalg.norm(start.matrix)
            kappa = ntkcond.condition_number(kernel).known_kappa
            print(f"width {width}, step {step}: loss {loss.item():.3f}, {kappa}, "
                  f"K moved by {100 * moved:.0f} %")  # fmt: skip
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
