"""A small CNN before and after training: its NTK's condition number, whether it can be trusted, and
which two images decide it. docs/library.md tells it; this makes its numbers and its picture:

    python docs/examples/tutorial.py
"""

import csv
import datetime
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import ntkcond
from ntkcond.artefacts import style

HERE = Path(__file__).parents[1]
STEPS = 300


def digits(n: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    """The first n of scikit-learn's digits, (n, 1, 8, 8) in [−1, 1], and ±1 for odd and even."""
    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy(images[:n] / 8 - 1).reshape(-1, 1, 8, 8)
    return x, torch.from_numpy(labels[:n] % 2 * 2.0 - 1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 9, 1),
    ).double()  # fmt: skip


def train(cnn: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """The square loss at each step of gradient descent."""
    optimiser, losses = torch.optim.SGD(cnn.parameters(), lr=0.05), []
    for _ in range(STEPS):
        loss = (cnn(x)[:, 0] - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def main() -> dict[str, float]:
    """The numbers of the tutorial, by their names; draws its picture."""
    x, y = digits()
    cnn, numbers = network(), {}
    spectra, pairs = {}, {}
    for state in ("before", "after"):
        kernel = ntkcond.kernel(cnn, x)
        spectrum = ntkcond.condition_number(kernel)
        print(f"{state} training: {spectrum}")
        pairs[state] = ntkcond.closest_pair(kernel)
        spectra[state] = np.linalg.eigvalsh(kernel.matrix)[::-1]
        assert spectrum.verdict == "resolved"
        numbers |= {
            f"κ {state}": spectrum.kappa,
            f"λ_min {state}": spectrum.lambda_min,
            f"error {state}": spectrum.error,
            f"angle {state}": pairs[state].angle_deg,
            f"first {state}": pairs[state].first,
            f"second {state}": pairs[state].second,
        }
        if state == "before":
            losses = train(cnn, x, y)
            numbers |= {"loss before": losses[0], "loss after": losses[-1]}
    numbers["growth of λ_min"] = numbers["λ_min after"] / numbers["λ_min before"]
    draw(x, spectra, pairs)
    return numbers


@style.look()
def draw(x: torch.Tensor, spectra: dict, pairs: dict) -> None:
    figure = style.figure(height=2.0)
    panels = figure.subplot_mosaic([["spectrum", "first", "second"]], width_ratios=[2, 1, 1])
    for (state, eigenvalues), dashes in zip(spectra.items(), ("-", "--"), strict=True):
        look = {"color": style.COLOURS[0], "linestyle": dashes, "label": f"{state} training"}
        panels["spectrum"].semilogy(range(1, len(eigenvalues) + 1), eigenvalues, **look)
    panels["spectrum"].set(xlabel="position, largest first", ylabel=r"eigenvalue $\lambda$")
    panels["spectrum"].set_title("spectrum of the NTK")
    panels["spectrum"].legend()
    pair = pairs["before"]
    for name, sample in (("first", pair.first), ("second", pair.second)):
        panels[name].imshow(x[sample, 0], cmap="gray_r")
        panels[name].set(xticks=[], yticks=[])
        panels[name].spines[:].set_visible(False)
        panels[name].set_title(f"image {sample}")
    figure.save(HERE / "tutorial.png")


if __name__ == "__main__":
    with Path(HERE, "measured/tutorial.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["quantity", "value", "unit", "command", "when"])
        for name, value in main().items():
            unit, today = "°" if "angle" in name else "", datetime.date.today()
            row = (
                f"tutorial, {name}",
                f"{value:.6g}",
                unit,
                "python docs/examples/tutorial.py",
                today,
            )
            rows.writerow(row)
