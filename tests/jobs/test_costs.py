"""What a job asks a cluster for: more when there is more to do, never less than was measured."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ntkcond.jobs import closest_pair, costs, dataset, kernel, scalapack_spectrum, sgd, spectrum
from ntkcond.ntk.empirical import empirical_ntk
from small_networks import mlp

SIZES = {
    "block": 512, "samples": 4096, "features": 100, "depth": 4, "width": 256, "seeds": 5,
    "learning_rates": 14, "epochs": 20, "test_samples": 10_000, "ranks": 6,
}  # fmt: skip
WORK = {
    kernel.work: ("block", "samples", "features", "depth", "width", "seeds"),
    spectrum.work: ("block", "samples", "features", "depth", "width", "seeds"),
    scalapack_spectrum.work: ("block", "samples", "features", "depth", "width", "seeds", "ranks"),
    closest_pair.work: ("samples", "features", "depth", "width", "seeds"),
    sgd.work: (
        "samples",
        "test_samples",
        "features",
        "depth",
        "width",
        "seeds",
        "learning_rates",
        "epochs",
    ),
}


@pytest.mark.parametrize("work", WORK)
def test_work_grows_with_each_size_and_threads_share_it(work):
    sizes = {name: SIZES[name] for name in WORK[work]}
    before = work(**sizes)
    for name in sizes:
        more = work(**{**sizes, name: 2 * sizes[name]})
        assert more.operations > before.operations
        assert more.bytes >= before.bytes
    large = before._replace(operations=1e14)
    assert costs.minutes(large, 8, 1) < costs.minutes(large, 1, 1) / 4


@pytest.mark.parametrize("n", [100, 512, 1000])
@pytest.mark.parametrize(("features", "depth", "width"), [(784, 3, 256), (20, 10, 128), (64, 0, 8)])
def test_operations_of_a_kernel_are_those_that_torch_counts(n, features, depth, width):
    network = mlp("relu", depth, width)
    weights = network.initial_weights(0, features, torch.device("cpu"))
    x = torch.ones(n, features, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        empirical_ntk(network.layer_gradients(x, weights))
    work = kernel.work(n, n, features, depth, width, seeds=1)
    assert 0.99 < work.operations / counter.get_total_flops() < 1.25


@pytest.mark.parametrize("depth", [0, 1, 10])
def test_operations_of_a_linear_kernel_do_not_grow_with_depth(depth):
    n, features = 1000, 300
    cpu = torch.device("cpu")
    gradients = mlp("linear", depth, 256).initial_gradients(0, features, cpu)
    x = torch.ones(n, features, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        empirical_ntk(gradients(x))
    work = kernel.work(n, n, features, depth, 256, seeds=1, linear=True)
    assert 0.99 < work.operations / counter.get_total_flops() < 1.25


def test_a_data_set_takes_more_with_more_samples():
    small, large = dataset.work(60_000, 784), dataset.work(120_000, 784)
    assert large.operations > small.operations and large.bytes > small.bytes
    assert dataset.need(120_000, 784).bytes > dataset.need(60_000, 784).bytes


@pytest.mark.parametrize("need", [None, 3_000_000_000])
@pytest.mark.parametrize("work", [None, costs.Work(1e13, 1e9)])
def test_each_attempt_asks_for_twice_as_much(need, work):
    for attempt in (1, 2):
        assert costs.megabytes(need, attempt + 1) == 2 * costs.megabytes(need, attempt)
        assert costs.minutes(work, 1, attempt + 1) == 2 * costs.minutes(work, 1, attempt)


def test_a_job_without_work_still_has_time_to_start():
    assert costs.minutes(costs.Work(0, 0), 1, 1) == costs.START


def test_requests_are_above_what_was_measured():
    """Peak memory and seconds of the steps, with one thread: all of MNIST, blocks of 512, L = 10,
    m = 512, one seed."""
    n, samples, d, depth, m = 512, 60_000, 784, 10, 512
    measured = {  # bytes, seconds
        kernel: (352e6, 28.3),
        spectrum: (250e6, 4.1),
    }
    for step, (peak, seconds) in measured.items():
        sizes = (n, samples, d, depth, m)
        need, work = step.need(*sizes), step.work(*sizes, 1)
        assert costs.megabytes(need.bytes, 1) * 1e6 > peak + costs.SNAKEMAKE
        assert 60 * (costs.minutes(work, 1, 1) - costs.START) > seconds


@pytest.mark.parametrize(
    "depth, seeds, peak",
    [(3, 1, 2.530e9), (10, 1, 6.097e9), (1, 2, 2.398e9), (3, 2, 4.411e9), (10, 2, 11.414e9)],
)
def test_a_kernel_of_several_initialisations_holds_the_factors_of_two(depth, seeds, peak):
    """Peak memory of the NTKs of 60,000 images, m = 512 (studies/whole): one initialisation, of
    Fashion-MNIST, and two, of MNIST."""
    need = kernel.need(60_000, 60_000, 784, depth, 512, seeds=seeds)
    assert peak < need.bytes < 1.35 * peak
