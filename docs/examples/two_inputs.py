"""A module with two inputs: a tuple of arrays, a row of each for every sample."""

import torch
from torch import nn

import ntkcond


class Pairs(nn.Module):
    """Do an image and a text belong together?"""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
        self.words = nn.Embedding(50, 32)

    def forward(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        return (self.image(images) * self.words(texts).mean(1)).sum(1)


torch.manual_seed(0)
images, texts = torch.randn(60, 1, 8, 8), torch.randint(50, (60, 6))
network = Pairs()
print(ntkcond.condition_number(network, (images, texts)))
print("image weights:", ntkcond.condition_number(network, (images, texts), parameters=["image"]))
