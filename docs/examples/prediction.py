"""What a wide network will predict on test data, from its NTK at the start, without training it."""

import torch

import ntkcond

torch.manual_seed(0)
x, x_test = torch.randn(60, 10), torch.randn(5, 10)
y = torch.sin(x.sum(1))
network = torch.nn.Sequential(torch.nn.Linear(10, 8192), torch.nn.Tanh(), torch.nn.Linear(8192, 1))

eigen = ntkcond.eigendecomposition(ntkcond.kernel(network, x))
k_test = ntkcond.kernel(network, x_test, x)
rate = 1 / float(eigen.values[-1])
with torch.no_grad():
    f0, f0_test = network(x)[:, 0], network(x_test)[:, 0]
predicted = eigen.predicted(k_test, y, rate, 500, f0, f0_test)

for _ in range(500):  # the same descent, for real
    network.zero_grad()
    ((network(x)[:, 0] - y) ** 2).sum().div(2).backward()
    with torch.no_grad():
        for p in network.parameters():
            p -= rate * p.grad
for value, error, trained in zip(*predicted, network(x_test)[:, 0].tolist(), strict=True):
    print(f"predicted {value:6.3f} ± {error:.0e}, trained {trained:6.3f}")
