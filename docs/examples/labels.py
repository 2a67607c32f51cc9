"""Are these labels easy for this kernel? Effective rank, alignment and label complexity."""

import torch

import ntkcond

torch.manual_seed(0)
x = torch.randn(150, 10)
network = torch.nn.Sequential(torch.nn.Linear(10, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
eigen = ntkcond.eigendecomposition(ntkcond.kernel(network, x))
print(eigen)
print("effective rank", eigen.effective_rank())

for name, y in {
    "linear": torch.sign(x[:, 0]),
    "a product": torch.sign(x[:, 0] * x[:, 1]),
    "random": torch.sign(torch.randn(150)),
}.items():
    print(f"{name}: alignment {eigen.alignment(y).value:.3f}, "
          f"complexity {eigen.complexity(y).value:.1f}")  # fmt: skip
