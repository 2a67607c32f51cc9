"""Training against autograd and torch's own optimiser; the step's resumption and its refusals."""

import math
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP
from ntkcond.run.errors import UserError
from ntkcond.steps import sgd as sgd_step
from ntkcond.training import sgd
from ntkcond.training.history import MEASURES, Epoch, History
from ntkcond.training.sgd import Model, Run
from small_networks import SIGMA, C, mlp
from thoroughness import how_many

KILLS = how_many("TRAINING_KILLS", few=2, thorough=30)
FEATURES, WIDTH, CLASSES, SAMPLES, TESTS = 7, 32, 3, 50, 20


class PlainNetwork(torch.nn.Module):
    """The network as one would write it from the paper, for autograd; in float64."""

    def __init__(
        self, seed: int, depth: int, convention: str, activation: str = "relu", bias: float = 0
    ) -> None:
        super().__init__()
        weights = mlp_of(activation, depth, bias).weights(seed, FEATURES, CLASSES)
        self.weights = torch.nn.ParameterList([torch.from_numpy(w) for w in weights])
        self.convention, self.bias = convention, bias
        self.sigma, self.c = SIGMA[activation], C[activation]

    def layer(self, w: torch.Tensor, x: torch.Tensor, factor: float) -> torch.Tensor:
        z = factor * x @ w[:, : x.shape[-1]].T
        return z + self.bias * w[:, -1] if self.bias else z

    def forward(self, x):
        *hidden, last = self.weights
        authors = self.convention == "authors"
        for w in hidden:
            scale = self.c if authors else self.c / WIDTH
            factor = 1 / math.sqrt(x.shape[-1]) if authors else 1
            x = math.sqrt(scale) * self.sigma(self.layer(w, x, factor))
        return self.layer(last, x, math.sqrt(self.c / x.shape[-1]) if authors else 1)


def mlp_of(activation: str, depth: int, bias: float) -> MLP:
    return MLP(ACTIVATIONS[activation], depth, WIDTH, bias=bias)


def model(
    depth: int, convention: str = "authors", activation: str = "relu",
    loss: str = "cross_entropy", bias: float = 0,
) -> Model:  # fmt: skip
    network = mlp_of(activation, depth, bias)
    return Model(network, sgd.layer_factors(network, FEATURES, convention), loss)


def mean_loss(f: torch.Tensor, y: torch.Tensor, loss: str) -> torch.Tensor:
    if loss == "cross_entropy":
        return torch.nn.functional.cross_entropy(f, y)
    one_hot = torch.nn.functional.one_hot(y, f.shape[1]).to(f.dtype)
    return torch.nn.functional.mse_loss(f, one_hot) * f.shape[1] / 2


def stacked(
    runs: list[Run], depth: int, activation: str = "relu", bias: float = 0
) -> list[torch.Tensor]:
    network = mlp_of(activation, depth, bias)
    return sgd.stacked_weights([run.seed for run in runs], network, FEATURES, CLASSES)


def random_task(labels=(4, -1, 7)) -> sgd.Task:
    rng = np.random.default_rng(0)
    x, x_test = (rng.standard_normal((n, FEATURES), dtype=np.float32) for n in (SAMPLES, TESTS))
    y, y_test = rng.choice(labels, SAMPLES), rng.choice(labels, TESTS)
    return sgd.classification(x, y, x_test, y_test)


@pytest.mark.parametrize("loss_", sgd.LOSSES)
@pytest.mark.parametrize(("activation", "bias"), [("relu", 0), ("linear", 0), ("tanh", 0.7)])
@pytest.mark.parametrize("convention", sgd.CONVENTIONS)
@pytest.mark.parametrize("depth", [0, 3])
def test_a_step_is_that_of_autograd_and_torchs_sgd(depth, convention, activation, bias, loss_):
    runs = [Run(1, 0.1), Run(1, 2.0), Run(32, 0.5)]
    weights = stacked(runs, depth, activation, bias)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(runs), 9, FEATURES, generator=generator)
    y = torch.randint(CLASSES, (len(runs), 9), generator=generator)
    rates = torch.tensor([run.learning_rate for run in runs])
    trained = model(depth, convention, activation, loss_, bias)
    loss, right = sgd.sgd_step(weights, x, y, rates, trained)
    for r, run in enumerate(runs):
        plain = PlainNetwork(run.seed, depth, convention, activation, bias)
        optimizer = torch.optim.SGD(plain.parameters(), lr=run.learning_rate)
        f = plain(x[r].double())
        expected = mean_loss(f, y[r], loss_)
        expected.backward()
        optimizer.step()
        assert loss[r].item() == pytest.approx(9 * expected.item(), rel=1e-5)
        assert right[r].item() == (f.argmax(-1) == y[r]).sum().item()
        for w, after in zip(weights, plain.weights, strict=True):
            assert torch.allclose(w[r].double(), after.detach(), rtol=1e-4, atol=1e-5)


def test_epochs_are_those_of_a_plain_loop_also_where_the_last_batch_is_smaller():
    task, run, batch = random_task(), Run(1, 0.3), 16  # 50 = 3 × 16 + 2
    plain = PlainNetwork(run.seed, 2, "authors")
    optimizer = torch.optim.SGD(plain.parameters(), lr=run.learning_rate)
    weights, means = stacked([run], 2), []
    for epoch in sgd.epochs(task, model(2), weights, [run], batch, range(1, 4)):
        order = sgd.sample_order(run.seed, epoch.number, SAMPLES)
        losses, right = [], 0
        for rows in np.split(order, range(batch, SAMPLES, batch)):
            f = plain(task.x[rows].double())
            loss = torch.nn.functional.cross_entropy(f, task.y[rows], reduction="sum")
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
            losses.append(loss.item())
            right += (f.argmax(-1) == task.y[rows]).sum().item()
        with torch.no_grad():
            f = plain(task.x_test.double())
        test_loss = torch.nn.functional.cross_entropy(f, task.y_test).item()
        assert epoch.train_loss[0] == pytest.approx(sum(losses) / SAMPLES, rel=1e-4)
        assert epoch.train_accuracy[0] == right / SAMPLES
        assert epoch.test_loss[0] == pytest.approx(test_loss, rel=1e-4)
        assert epoch.test_accuracy[0] == pytest.approx(
            (f.argmax(-1) == task.y_test).double().mean().item()
        )
        assert epoch.wall_s > 0
        means.append(epoch.train_loss[0])
    assert means[2] < means[1] < means[0]  # it learns


@pytest.mark.parametrize("loss", sgd.LOSSES)
def test_the_test_loss_is_torchs(loss):
    task, weights = random_task(), stacked([Run(1, 0.1), Run(32, 0.1)], 2)
    losses, _ = sgd.evaluate(weights, task.x_test, task.y_test, model(2, loss=loss))
    for value, seed in zip(losses, (1, 32), strict=True):
        f = PlainNetwork(seed, 2, "authors")(task.x_test.double())
        assert value.item() == pytest.approx(mean_loss(f, task.y_test, loss).item(), rel=1e-5)


def test_all_runs_together_are_each_alone_also_beside_one_that_diverges():
    task = random_task()
    runs = [Run(1, 0.1), Run(1, 1e6), Run(32, 0.1), Run(32, 1.0)]
    together = stacked(runs, 2)
    all_epochs = list(sgd.epochs(task, model(2), together, runs, 16, range(1, 4)))
    assert not np.isfinite(all_epochs[-1].train_loss[1])
    for r, run in enumerate(runs):
        if r == 1:
            continue
        alone = stacked([run], 2)
        for epoch, of_all in zip(
            sgd.epochs(task, model(2), alone, [run], 16, range(1, 4)), all_epochs, strict=True
        ):
            for name in MEASURES[:-1]:
                value, expected = getattr(epoch, name)[0], getattr(of_all, name)[r]
                assert value == pytest.approx(expected, rel=1e-5)
        for a, b in zip(alone, together, strict=True):
            assert torch.allclose(a[0], b[r], rtol=1e-4, atol=1e-5)


def test_an_epoch_goes_through_every_sample_in_an_order_of_its_own():
    orders = [sgd.sample_order(seed, epoch, 100) for seed in (1, 2) for epoch in (1, 2)]
    assert all(np.array_equal(np.sort(order), np.arange(100)) for order in orders)
    assert all(not np.array_equal(a, b) for a, b in pairwise(orders))
    assert np.array_equal(orders[0], sgd.sample_order(1, 1, 100))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_operations_are_those_that_torch_counts_in_a_plain_loop(depth):
    task, plain = random_task(), PlainNetwork(1, depth, "authors")
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.cross_entropy(plain(task.x.double()), task.y).backward()
        train = counter.get_total_flops()
        with torch.no_grad():
            plain(task.x_test.double())
    test = counter.get_total_flops() - train
    operations = sgd.flops_per_epoch(SAMPLES, TESTS, mlp("relu", depth, WIDTH), FEATURES, CLASSES)
    assert operations == (train, test)


def test_labels_may_be_any_integers():
    rng = np.random.default_rng(0)
    x, y, y_test = np.zeros((50, 2), np.float32), rng.choice([7, -4, 4], 50), np.array([4, 7, -4])
    task = sgd.classification(x, y, x[:3], y_test)
    assert task.labels.tolist() == [-4, 4, 7]
    assert task.y.tolist() == [[-4, 4, 7].index(label) for label in y]
    assert task.y_test.tolist() == [1, 2, 0]


def test_a_batch_may_be_larger_than_the_data_set():
    task, runs = random_task(), [Run(1, 0.1)]
    results = []
    for batch in (SAMPLES, 10 * SAMPLES):
        weights = stacked(runs, 1)
        (epoch,) = sgd.epochs(task, model(1), weights, runs, batch, range(1, 2))
        results.append((epoch.train_loss, weights[0]))
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])


X = np.zeros((4, 2), np.float32)
WRONG = {
    "no labels": ((X, None), "no labels"),
    "one class": ((X, np.array([3, 3, 3, 3])), "every label is 3"),
    "too few labels": ((X, np.array([0, 1])), "y has 2 labels for 4 samples"),
    "unknown test label": (
        (X, np.array([0, 1, 0, 1]), X[:2], np.array([1, 5])), "y_test has the label 5"
    ),
    "too few test labels": (
        (X, np.array([0, 1, 0, 1]), X[:2], np.array([1])), "y_test has 1 labels for 2 samples"
    ),
    "other features in the test split": (
        (X, np.array([0, 1, 0, 1]), X[:2, :1], np.array([1, 0])), "x_test has 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_learned_is_refused(case):
    arguments, message = WRONG[case]
    with pytest.raises(UserError, match=message):
        sgd.classification(*arguments)


def test_without_a_test_split_only_training_is_measured():
    whole = random_task()
    task = sgd.classification(whole.x.numpy(), whole.y.numpy())
    runs = [Run(1, 0.1)]
    (epoch,) = sgd.epochs(task, model(1), stacked(runs, 1), runs, 16, range(1, 2))
    assert np.isnan(epoch.test_loss).all()
    assert np.isnan(epoch.test_accuracy).all()
    history = History(1, 1)
    history.record([0], epoch)
    assert history.diverged_epoch.tolist() == [0]


def recorded(history: History, epochs: list[dict[int, float]]) -> History:
    """epochs: the loss of each run that goes on."""
    for number, losses in enumerate(epochs, 1):
        one = np.ones(len(losses))
        epoch = Epoch(number, np.array([*losses.values()]), one, one, one, 4.0)
        history.record([*losses], epoch)
    return history


def test_a_run_that_diverges_is_recorded_with_its_epoch_and_nothing_after_it():
    history = recorded(History(runs=2, epochs=3), [{0: 3.0, 1: 2.0}, {0: np.nan, 1: 1.0}, {1: 0.5}])
    assert history.diverged_epoch.tolist() == [2, 0]
    assert np.array_equal(
        history.measures["train_loss"], [[3, np.nan, np.nan], [2, 1, 0.5]], equal_nan=True
    )
    assert history.going_on([0, 1]) == [1]
    assert np.array_equal(history.measures["wall_s"], [[2, 2, np.nan], [2, 2, 4]], equal_nan=True)
    history, one = History(1, 1), np.ones(1)  # of the loss on the test split too
    history.record([0], Epoch(1, one, one, np.array([np.inf]), one, 1.0))
    assert history.diverged_epoch.tolist() == [1]


def test_a_run_that_stops_below_a_loss_has_nothing_after_it():
    history = History(runs=3, epochs=3, stop_below=1.0)
    recorded(history, [{0: 1.0, 1: 2.0, 2: 0.9}, {0: 0.9, 1: 1.5}, {1: 0.5}])
    assert history.stopped_epoch.tolist() == [2, 3, 1]
    assert history.diverged_epoch.tolist() == [0, 0, 0]
    assert history.going_on(range(3)) == []
    expected = [[1, 0.9, np.nan], [2, 1.5, 0.5], [0.9, np.nan, np.nan]]
    assert np.array_equal(history.measures["train_loss"], expected, equal_nan=True)
    assert np.isnan(history.measures["test_accuracy"][0, 2])


def test_runs_that_end_leave_the_others_which_go_on_as_if_alone():
    """One of three diverges, one stops early."""
    task, rates = random_task(), (0.3, 1e9, 0.05)
    alone = []
    for rate in rates:
        history = History(1, 6)
        for _ in sgd.until_ended(
            task, model(2), stacked([Run(1, rate)], 2), {0: Run(1, rate)}, 16, history
        ):
            pass
        alone.append(history.measures["train_loss"][0])
    stop = alone[0][2] * 1.0001
    runs = [Run(1, rate) for rate in rates]
    history, sizes = History(3, 6, stop), []
    training = sgd.until_ended(task, model(2), stacked(runs, 2), dict(enumerate(runs)), 16, history)
    for weights, _ in training:
        sizes.append(len(weights[0]))
    assert sizes == sorted(sizes, reverse=True) and sizes[0] < 3 and sizes[-1] == 1
    assert (history.diverged_epoch > 0).tolist() == [False, True, False]
    assert history.stopped_epoch.tolist() == [3, 0, 0]
    losses = history.measures["train_loss"]
    assert losses[2] == pytest.approx(alone[2], rel=1e-5)
    assert losses[0, :3] == pytest.approx(alone[0][:3], rel=1e-5) and np.isnan(losses[0, 3:]).all()


@pytest.mark.cuda
def test_a_gpu_gives_what_a_cpu_gives():
    """With the step recorded as a graph, and a smaller last batch."""
    task, runs = random_task(), [Run(1, 0.1), Run(32, 0.3)]
    results = {}
    for device in ("cpu", "cuda"):
        weights = [w.to(device) for w in stacked(runs, 3)]
        epochs = sgd.epochs(task.on(device), model(3), weights, runs, 16, range(1, 4))
        results[device] = list(epochs), [w.cpu() for w in weights]
    for cpu, cuda in zip(results["cpu"][0], results["cuda"][0], strict=True):
        assert cuda.train_loss == pytest.approx(cpu.train_loss, rel=1e-4)
        assert cuda.test_loss == pytest.approx(cpu.test_loss, rel=1e-4)
    for cpu, cuda in zip(results["cpu"][1], results["cuda"][1], strict=True):
        assert torch.allclose(cpu, cuda, rtol=1e-3, atol=1e-4)


@pytest.fixture
def dataset(tmp_path) -> Path:
    task = random_task()
    with h5py.File(tmp_path / "some.h5", "w") as file:
        file["x"], file["x_test"] = task.x.numpy(), task.x_test.numpy()
        file["y"], file["y_test"] = task.labels[task.y], task.labels[task.y_test]
    return tmp_path / "some.h5"


def step(dataset: Path, output: Path, **changed) -> list[str]:
    """The options that train four runs, one of which diverges."""
    words = {
        "dataset": dataset, "output": output, "depth": 2, "width": WIDTH, "activation": "relu",
        "convention": "authors", "loss": "cross_entropy", "seeds": "1,32",
        "learning-rates": "0.1,1e9", "batch": 16, "epochs": 40, "stop-below": 0, "tf32": "false",
        "threads": 1, "device": "cpu", "checkpoint-minutes": 60,
        **changed,
    }  # fmt: skip
    return [f"--{name}={value}" for name, value in words.items()]


def to_be_killed(*arguments, **changed) -> subprocess.Popen:
    command = [sys.executable, "-m", "ntkcond.steps.sgd", *step(*arguments, **changed)]
    return subprocess.Popen(command)


def measured(path: Path) -> dict[str, bytes]:
    with h5py.File(path) as file:
        return {name: file[name][:].tobytes() for name in file if name != "wall_s"}


def run(*arguments, **changed) -> None:
    options = sgd_step.OPTIONS.parse_args(step(*arguments, **changed))
    options.record = None
    sgd_step.main(options)


def test_killed_again_and_again_training_ends_with_the_same_bits(dataset, tmp_path):
    """Also of runs that stop early."""
    whole, killed = tmp_path / "whole.h5", tmp_path / "killed.h5"
    checkpoint = tmp_path / "killed.checkpoint.h5"
    many = {"epochs": 40 * KILLS, "learning-rates": "0.1,0.3,1e9"}
    run(dataset, whole, **many)
    with h5py.File(whole) as file:  # late enough to be killed before
        every = file["train_loss"][:]
    many["stop-below"] = every[:, 1, 9 * every.shape[-1] // 10].max()
    run(dataset, whole, **many)
    with h5py.File(whole) as file:
        assert (file["stopped_epoch"][:, 1] > 0).all()
        stopped = file["stopped_epoch"][0, 1]
        assert np.array_equal(file["train_loss"][0, 1, :stopped], every[0, 1, :stopped])
        assert np.isnan(file["train_loss"][0, 1, stopped:]).all()
    chance, resumed = random.Random(1), 0

    def saved() -> int:
        return checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0

    for kill in range(KILLS):
        log = tmp_path / f"{kill}.log"
        process = to_be_killed(dataset, killed, **many, **{"checkpoint-minutes": 0, "log": log})
        for _ in range(chance.randint(1, 12)):  # epochs of some hundred
            before = saved()
            while process.poll() is None and saved() == before:
                time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        assert process.poll() is None, "it was too fast to be killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        resumed += "resumes from" in log.read_text()
        assert not killed.exists()
    assert to_be_killed(dataset, killed, **many).wait() == 0  # with the record that it resumes
    assert measured(killed) == measured(whole)
    assert resumed == KILLS - 1
    print(f"{KILLS} kills, {resumed} resumed, 0 differences")
    assert not checkpoint.exists()
    assert not list(tmp_path.glob(".*.tmp"))
    with h5py.File(killed) as file:
        assert (file["diverged_epoch"][:, 2] > 0).all()
        assert (file["diverged_epoch"][:, :2] == 0).all()


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_not_taken_up(dataset, tmp_path, caplog):
    output, checkpoint = tmp_path / "out.h5", tmp_path / "out.checkpoint.h5"
    run(dataset, output)
    expected = measured(output)
    process = to_be_killed(dataset, output, **{"epochs": 100_000, "checkpoint-minutes": 0})
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    run(dataset, output)
    assert "is of other settings or code" in caplog.text
    assert measured(output) == expected
    checkpoint.write_bytes(b"no HDF5 at all")
    run(dataset, output)
    assert "out.checkpoint.h5 cannot be read" in caplog.text
    assert "training starts anew" in caplog.text
    assert measured(output) == expected


def test_the_step_says_which_data_set_has_nothing_to_learn(dataset, tmp_path):
    with h5py.File(dataset, "r+") as file:
        del file["y"]
    with pytest.raises(UserError, match=r"some: no labels to learn\. Give the data set an array y"):
        run(dataset, tmp_path / "out.h5")
    assert not (tmp_path / "out.h5").exists()
