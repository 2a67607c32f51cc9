"""Training of the paper's networks (§6, Figure 3): plain SGD on the cross entropy, or on the square
loss, many at once.

    a⁰ = x,   aˡ = σ(βₗ Wˡ aˡ⁻¹) for l = 1..L,   f = β_{L+1} Wᴸ⁺¹ aᴸ,   one output a class

with all Wˡ i.i.d. N(0, 1) and the factors βₗ of a convention (`layer_factors`); biases β b, if
there are some, are added to each Wˡ aˡ⁻¹ after its factor. Runs of one depth,
a seed and a learning rate each, go through the same operations side by side, along a leading axis R
of every tensor. The gradient is written out, three matrix products a layer, and the last adds it to
the weights; tests/training/test_sgd.py holds it against autograd.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from ntkcond.arrays import cuda
from ntkcond.networks.gaussian import normalisation
from ntkcond.networks.mlp import MLP
from ntkcond.run.errors import UserError
from ntkcond.training.history import Epoch, History

CONVENTIONS = ("authors", "paper")
LOSSES = ("cross_entropy", "square")  # of f and a class y: −log softmax(f)_y, ½ ‖f − e_y‖²
TEST_ROWS = 2000  # test samples evaluated at once


@dataclass(frozen=True)
class Task:
    """A classification task: x (n, d) float32, y (n,) int64 in 0..C−1, likewise for testing or
    None; labels (C,): the label of each class in the data set."""

    x: torch.Tensor
    y: torch.Tensor
    x_test: torch.Tensor | None
    y_test: torch.Tensor | None
    labels: np.ndarray

    def on(self, device: torch.device | str) -> "Task":
        """A copy on a device."""
        tensors = (self.x, self.y, self.x_test, self.y_test)
        return Task(*(t if t is None else t.to(device) for t in tensors), self.labels)


@dataclass(frozen=True)
class Model:
    """A network to train, scaled by the factors β₁ … β_{L+1} of `layer_factors`, on one of
    LOSSES."""

    network: MLP
    factors: tuple[float, ...]
    loss: str = "cross_entropy"

    def inputs(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        """The inputs of a layer with this factor, which shall not scale its biases β b."""
        return self.network.with_bias(x, factor)


class Run(NamedTuple):
    """One training: of the initialisation and sample order of a seed, at a learning rate."""

    seed: int
    learning_rate: float


def classification(
    x: np.ndarray,
    y: np.ndarray | None,
    x_test: np.ndarray | None = None,
    y_test: np.ndarray | None = None,
) -> Task:
    """The task of learning the labels y (n,) of x (n, d): any integers; classes in their order.

    Raises UserError for no labels or fewer than two different ones, for a wrong number of them,
    and for a test label that is not in the training split.
    """
    if y is None:
        raise UserError("no labels to learn. Give the data set an array y")
    if len(y) != len(x):
        raise UserError(f"y has {len(y)} labels for {len(x)} samples; make them equal")
    labels, classes = np.unique(y, return_inverse=True)
    if len(labels) < 2:
        raise UserError(f"every label is {labels[0]}: nothing to learn. Give y two classes or more")
    tested = x_test is not None and y_test is not None
    if tested:
        if x_test.shape[1] != x.shape[1]:
            test_features = x_test.shape[1]
            raise UserError(
                f"x has {x.shape[1]} features and x_test has {test_features}; make them equal"
            )
        if len(y_test) != len(x_test):
            raise UserError(
                f"y_test has {len(y_test)} labels for {len(x_test)} samples; make them equal"
            )
        unknown = np.setdiff1d(y_test, labels)
        if len(unknown):
            raise UserError(f"y_test has the label {unknown[0]}, which y lacks. Remove its samples")
    # copies, aligned by torch: another alignment may change the rounding of a product
    return Task(
        torch.tensor(x),
        torch.tensor(classes),
        torch.tensor(x_test) if tested else None,
        torch.tensor(np.searchsorted(labels, y_test)) if tested else None,
        labels,
    )


def layer_factors(network: MLP, features: int, convention: str) -> tuple[float, ...]:
    """β₁ … β_{L+1}.

    "authors": as in the authors' scripts, every layer including the output is divided by the root
    of its input width and multiplied by √c_σ: f starts near 1 for inputs of mean square 1.
    "paper": Eq. (1) literally; f starts near ‖x‖. For ReLU and linear networks the two differ by a
    factor √(c_σ/d): a learning rate of the one acts as c_σ/d of it in the other, on another loss.
    """
    inside, outside = scales(network, features, convention)
    hidden = math.sqrt(normalisation(network.activation) / network.width)  # √c_σ: the layer below
    factors = [inside, *[hidden] * network.depth]
    factors[-1] *= outside
    return tuple(factors)


def scales(network: MLP, features: int, convention: str) -> tuple[float, float]:
    """s and t of a convention, whose network is t times that of Eq. (1) at s x, but for the biases
    of f, which keep their size."""
    if convention == "paper":
        return 1.0, 1.0
    return 1 / math.sqrt(features), math.sqrt(normalisation(network.activation))


def stacked_weights(
    seeds: Sequence[int],
    network: MLP,
    features: int,
    classes: int,
    device: torch.device | str = "cpu",
) -> list[torch.Tensor]:
    """`MLP.weights` of each seed side by side: W¹ (R, m, d) … Wᴸ⁺¹ (R, C, m) float32."""
    drawn = {seed: network.weights(seed, features, classes) for seed in set(seeds)}
    layers = zip(*(drawn[seed] for seed in seeds), strict=True)
    return [torch.from_numpy(np.stack(layer)).to(device, torch.float32) for layer in layers]


def logits(weights: Sequence[torch.Tensor], x: torch.Tensor, model: Model) -> torch.Tensor:
    """f (R, b, C) of the samples x (R, b, d)."""
    for w, factor in zip(weights[:-1], model.factors, strict=False):
        x = model.network.activation.value(_product(model.inputs(x, factor), w.mT, factor))
    factor = model.factors[-1]
    return _product(model.inputs(x, factor), weights[-1].mT, factor)


def sgd_step(
    weights: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor, rates: torch.Tensor, model: Model
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step on the mean loss of a batch, in place.

    x: (R, b, d), y: (R, b), rates: (R,). Returns, before the step and for each run, the sum of the
    samples' losses and the number of those classified correctly, (R,) each.
    """
    inputs, slopes = [model.inputs(x, model.factors[0])], []
    for layer, w in enumerate(weights[:-1]):
        z = _product(inputs[-1], w.mT, model.factors[layer])
        slopes.append(model.network.activation.slope(z))
        value = model.network.activation.value(z)
        inputs.append(model.inputs(value, model.factors[layer + 1]))
    f = _product(inputs[-1], weights[-1].mT, model.factors[-1])

    correct = (f.argmax(-1) == y).sum(-1)
    # δ: the loss's gradient at each layer's Wa, times the learning rate
    loss, delta = losses(f, y, model.loss)
    delta.mul_(rates.view(-1, 1, 1) / y.shape[-1])
    for layer in range(len(weights) - 1, -1, -1):
        factor, w, below = model.factors[layer], weights[layer], None
        if layer:
            slope = slopes[layer - 1]
            below = _product(delta, w[..., : slope.shape[-1]], factor).mul_(slope)
        w.baddbmm_(delta.mT, inputs[layer], alpha=-factor)
        delta = below
    return loss, correct


def losses(f: torch.Tensor, y: torch.Tensor, loss: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Their sum over samples, (R,), and the gradient of each with respect to f, (R, b, C).

    f: (R, b, C); y: (R, b), classes; loss: one of LOSSES."""
    target = y.unsqueeze(-1)
    if loss == "square":
        gradient = f.clone()
    else:
        log_p = f.log_softmax(-1)
        total = -log_p.gather(-1, target).sum((-2, -1))
        gradient = log_p.exp_()
    gradient.scatter_(-1, target, gradient.gather(-1, target) - 1)
    if loss == "square":
        total = 0.5 * gradient.square().sum((-2, -1))
    return total, gradient


def evaluate(
    weights: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor, model: Model
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean loss and accuracy, (R,) float64 each, on x (n, d) with the classes y (n,)."""
    runs = len(weights[0])
    loss = torch.zeros(runs, dtype=torch.float64, device=x.device)
    correct = torch.zeros(runs, dtype=torch.float64, device=x.device)
    for rows, target in zip(x.split(TEST_ROWS), y.split(TEST_ROWS), strict=True):
        f = logits(weights, rows.expand(runs, -1, -1), model)
        correct += (f.argmax(-1) == target).sum(-1)
        loss += losses(f, target.expand(runs, -1), model.loss)[0]
    return loss / len(x), correct / len(x)


def epochs(
    task: Task,
    model: Model,
    weights: list[torch.Tensor],
    runs: Sequence[Run],
    batch: int,
    numbers: range,
) -> Iterator[Epoch]:
    """Trains `weights`, in place, through the epochs of these numbers, the first of all being 1.

    Each epoch takes all n samples in an order that depends on seed and number alone: training that
    resumes equals training without interruption. The last batch is smaller if n is no multiple of
    `batch`. Data, order and totals stay on the device; totals are fetched once an epoch.
    """
    n, device = len(task.x), task.x.device
    rates = torch.tensor([run.learning_rate for run in runs], dtype=torch.float32, device=device)
    seeds, seed_of_run = np.unique([run.seed for run in runs], return_inverse=True)
    seed_of_run = torch.from_numpy(seed_of_run).to(device)
    loss = torch.zeros(len(runs), dtype=torch.float64, device=device)
    correct = torch.zeros(len(runs), dtype=torch.float64, device=device)

    def step(rows: torch.Tensor) -> None:
        x = task.x.index_select(0, rows.reshape(-1)).view(*rows.shape, -1)
        batch_totals = sgd_step(weights, x, task.y[rows], rates, model)
        loss.add_(batch_totals[0])
        correct.add_(batch_totals[1])

    steps: dict[int, Callable[[torch.Tensor], None]] = {}  # by size of the batch
    for number in numbers:
        started = time.perf_counter()
        loss.zero_()
        correct.zero_()
        orders = np.stack([sample_order(seed, number, n) for seed in seeds])
        order = torch.from_numpy(orders).to(device)[seed_of_run]
        for rows in order.split(batch, dim=1):
            size = rows.shape[1]
            if size not in steps:
                on_gpu = device.type == "cuda"
                state = [*weights, loss, correct]
                steps[size] = cuda.recorded(step, rows, state) if on_gpu else step
            steps[size](rows)
        train = (loss / n).cpu().numpy(), (correct / n).cpu().numpy()
        test = (np.full(len(runs), np.nan),) * 2
        if task.x_test is not None:
            measured = evaluate(weights, task.x_test, task.y_test, model)
            test = tuple(values.cpu().numpy() for values in measured)
        yield Epoch(number, *train, *test, time.perf_counter() - started)


def until_ended(
    task: Task,
    model: Model,
    weights: list[torch.Tensor],
    runs: Mapping[int, Run],
    batch: int,
    history: History,
    done: int = 0,
) -> Iterator[tuple[list[torch.Tensor], int]]:
    """Trains runs, by their numbers in a history, until each has diverged or stopped or all its
    epochs are over; after each epoch, the weights of those that go on and the epochs done.

    A run that has ended leaves the others: on a GPU the graph is recorded again, for fewer runs.
    """
    last = next(iter(history.measures.values())).shape[1]
    active = history.going_on(runs)
    while active and done < last:
        some, left = [runs[i] for i in active], active
        for epoch in epochs(task, model, weights, some, batch, range(done + 1, last + 1)):
            history.record(active, epoch)
            done, left = epoch.number, history.going_on(active)
            if len(left) < len(active):
                weights = [w[[i in left for i in active]] for w in weights]
            yield weights, done
            if len(left) < len(active):
                break
        active = left


def sample_order(seed: int, epoch: int, n: int) -> np.ndarray:
    """The order of n samples in an epoch, (n,) int64: from a counter-based stream."""
    words = [int(seed), epoch, *b"order"]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words))).permutation(n)


def flops_per_epoch(
    samples: int, test_samples: int, network: MLP, features: int, classes: int
) -> tuple[int, int]:
    """Operations in the matrix products of one run's epoch, training and testing: 2 for each weight
    and sample forward, for its gradient, and backward but for the first layer."""
    weights = network.weight_count(features, classes)
    first = features * (int(network.width) if network.depth else classes)
    return samples * (6 * weights - 2 * first), test_samples * 2 * weights


def _product(a: torch.Tensor, b: torch.Tensor, factor: float) -> torch.Tensor:
    """factor · a b along the leading axis, in one call."""
    return torch.baddbmm(a.new_empty(1, 1, 1), a, b, beta=0, alpha=factor)
