"""Too many samples for K in memory: products, trace, λ_max and the density of eigenvalues."""

import torch

import ntkcond

torch.manual_seed(0)
x = torch.randn(5000, 20)  # K would take 200 MB; of 500,000 samples 2 TB
network = torch.nn.Sequential(torch.nn.Linear(20, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1))
K = ntkcond.ntk_operator(network, x, dtype=torch.float32)
print(K)
print(K @ torch.ones(5000))
print("trace", K.trace(), "estimated", K.estimated_trace(products=30))
print("λ_max", K.largest_eigenvalue(tolerance=1e-4))
density = K.density(probes=4, steps=20)
for value in (1, 10, 100):
    share = density.share_below(value)
    print(f"{100 * share.value:.0f} ± {100 * share.standard_error:.0f} % of eigenvalues ≤ {value}")
