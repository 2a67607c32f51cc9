"""A ResNet of timm, a quarter as wide: κ of one logit."""

import timm
import torch

import ntkcond

torch.manual_seed(0)
network = timm.create_model("resnet18", channels=(16, 32, 64, 128), num_classes=10)
x = torch.randn(10, 3, 32, 32)
with torch.no_grad():
    for _ in range(20):
        network(x)  # batch normalisation learns its statistics
network.eval()  # in which its statistics are constants

print(ntkcond.condition_number(network, x, output=3))  # "trace": the sum of all logits' NTKs
