"""What each rule's jobs ask for, from the sizes in the config alone."""

import copy
import math

import numpy as np
import pytest
import yaml
from snakemake.utils import update_config

from ntkcond.arrays.block_cyclic import BLOCK
from ntkcond.pipeline.config import typed
from ntkcond.pipeline.jobs import Jobs
from ntkcond.run.errors import UserError
from ntkcond.settings import memory
from ntkcond.settings.step import Request
from ntkcond.steps import (
    architecture,
    closest_pair,
    dataset,
    descent,
    kernel,
    scalapack_spectrum,
    sgd,
    spectrum,
    speed,
    sweep,
)
from workflow import ROOT

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
OVERLAY = {
    "seeds": [1, 2, 3],
    "width": 256,
    "ranks": 6,
    "block": 500,
    "datasets": {
        "mine": {"file": "mine.npz", "block": 100},
        "mine_small": {"file": "mine.npz", "samples": 300, "block": 100},
        "mnist": {"training": {"epochs": 7, "batch": 50, "width": 64}},
        "digits": {"block": "all"},
    },
    "training": {"seeds": [1, 2], "learning_rates": [1, 2, 4]},
    "descent": {"depths": [1, 6], "widths": [64], "seeds": [1], "steps": 1000},
    "speed": {"depths": [1, 6], "seeds": [1, 2], "samples": 300, "batch": 40, "epochs": 3},
    "architectures": {"depths": [1, 5], "width": 32, "seeds": [1], "blocks": 2},
    "sweeps": {
        "depths": [1, 3],
        "widths": [64, 2048],
        "sizes": [8, 5000],
        "seeds": [1, 2],
        "blocks": 4,
    },
    "figures": {"fig3": ["digits", "mnist"], "fig_descent": ["mnist"], "fig_evolution": ["mnist"]},
}


def config(**overlay) -> dict:
    merged = copy.deepcopy(CONFIG)
    update_config(merged, copy.deepcopy(OVERLAY))
    update_config(merged, overlay)
    return merged


def request(settings: dict, rule: str, wildcards: dict) -> Request:
    return Jobs(typed(settings), ROOT).request(rule, wildcards)


def of(dataset: str = "mnist", network: str = "relu", depth: int = 4, **more: str) -> dict:
    return {"dataset": dataset, "network": network, "depth": str(depth), **more}


MNIST = {"samples": 60_000, "features": 784}
# The job, and which need it should ask for, with the sizes written out.
JOBS = {
    "kernel": (of(), kernel.need(500, depth=4, width=256, seeds=3, **MNIST)),
    "spectrum": (of(), spectrum.need(500, depth=4, width=256, **MNIST)),
    "scalapack_spectrum": (of(), scalapack_spectrum.need(500, 784, depth=4, width=256, ranks=6)),
    "closest_pair": (of(), closest_pair.need(depth=4, width=256, **MNIST)),
    "sgd": (
        {"dataset": "mnist", "depth": "4", "seed": "1"},
        sgd.need(test_samples=10_000, depth=4, width=64, batch=50, **MNIST),
    ),
    # of the deepest
    "descent": ({"dataset": "mnist", "width": "256"}, descent.need(500, 784, depth=6, width=256)),
    "speed": (  # of all depths
        {"dataset": "mnist", "loss": "square", "width": "64"},
        speed.need(300, 300, 784, depth=6, width=64, batch=40, seeds=2),
    ),
    "architecture": (
        {"dataset": "mnist", "architecture": "convolutional"},
        architecture.need(500, 60_000, features=1, depth=5, width=32, pixels=28 * 28),
    ),
    "sweep": (  # at its largest: widths at one n
        {"dataset": "mnist", "sweep": "width", "network": "relu"},
        sweep.need(500, blocks=4, depth=3, width=2048, **MNIST),
    ),
}


def in_megabytes(count: int) -> int:
    return math.ceil((memory.MARGIN * count + memory.SNAKEMAKE) / 1e6)


@pytest.mark.parametrize("rule", JOBS)
def test_a_job_asks_for_what_its_sizes_need(rule):
    wildcards, need = JOBS[rule]
    assert request(config(), rule, wildcards).need() == need
    for attempt in (1, 3):
        cuda = 0 if rule == "scalapack_spectrum" else memory.CUDA
        asked = request(config(device="cuda"), rule, wildcards).megabytes(attempt)
        assert asked == 2 ** (attempt - 1) * in_megabytes(need.bytes + cuda)
        asked = request(config(), rule, wildcards).megabytes(attempt)
        assert asked == 2 ** (attempt - 1) * in_megabytes(need.bytes)
        assert asked * 1e6 > need.bytes


def test_a_data_set_asks_for_all_that_is_available():
    """However few samples are taken."""
    few = config(datasets={"mnist": {"samples": 100, "block": 50}})
    asked = request(few, "dataset", {"dataset": "mnist"}).megabytes(1)
    assert asked == in_megabytes(dataset.need(60_000, 784).bytes)


def test_block_all_is_all_samples():
    wildcards = of("digits")
    needed = request(config(), "kernel", wildcards).need()
    assert needed == kernel.need(1437, 1437, 64, 4, 256, seeds=3)


def test_a_spectrum_that_makes_its_large_kernel_asks_for_factors_too():
    settings = config(block="all", keep_kernels=False)
    needed = request(settings, "spectrum", of()).need()
    assert needed == spectrum.need(60_000, depth=4, width=256, makes_kernels=True, **MNIST)
    small = request(settings, "spectrum", of("digits")).need()
    assert small == spectrum.need(1437, 1437, 64, 4, 256)


@pytest.mark.parametrize(
    ("which", "block", "blocks", "depth", "width"),
    [
        ("samples", 5000, 4, 3, 256),
        ("activations", 500, 4, 10, 256),
        ("infinite", 500, None, 10, 1),
        ("first_layer", 500, 4, 1, 256),
    ],
)
def test_each_sweep_asks_for_its_largest_kernel(which, block, blocks, depth, width):
    needed = request(
        config(), "sweep", {"dataset": "mnist", "sweep": which, "network": "relu"}
    ).need()
    assert needed == sweep.need(block, blocks, depth=depth, width=width, **MNIST)


def test_a_sweep_over_all_blocks_needs_room_for_the_closest_pair_of_all_samples():
    few, all_blocks = (
        sweep.need(512, blocks, depth=10, width=512, **MNIST).bytes for blocks in (4, None)
    )
    assert few < 1e9
    assert all_blocks > closest_pair.need(depth=10, width=512, **MNIST).bytes


@pytest.mark.parametrize("rule", [*JOBS, "dataset"])
@pytest.mark.parametrize("name", ["mine", "mine_small"])
def test_a_users_own_set_is_of_unknown_size(rule, name):
    """Its features are, even where samples are given: a fixed request, doubled at each attempt."""
    wildcards = {**JOBS.get(rule, ({},))[0], "dataset": name}
    for attempt in (1, 2, 3):
        asked = request(config(), rule, wildcards).megabytes(attempt)
        assert asked == memory.UNKNOWN_MEGABYTES * 2 ** (attempt - 1)
    if rule != "dataset":
        assert request(config(), rule, wildcards).need() is None


@pytest.mark.parametrize(
    ("rule", "wildcards", "here", "elsewhere"),
    [
        ("dataset", {"dataset": "mnist"}, 1, 1),
        ("dataset", {"dataset": "librispeech"}, 16, 8),
        ("kernel", of("mnist"), 1, 1),  # blocks of 500
        ("kernel", of("mine"), 1, 1),  # of 100
        ("spectrum", of("mnist"), 1, 1),
        ("closest_pair", of("mnist"), 16, 8),  # of all samples
        ("closest_pair", of("digits"), 1, 1),
        ("closest_pair", of("mine"), 16, 8),  # of an unknown number
        ("sweep", {"dataset": "mnist", "sweep": "width", "network": "relu"}, 1, 1),
        ("sweep", {"dataset": "mnist", "sweep": "samples", "network": "relu"}, 16, 8),  # up to 5000
        ("scalapack_spectrum", of("mnist"), 6, 1),  # a core for each rank
        (
            "sgd",
            {"dataset": "mnist", "depth": "4"},
            16 // (5 + 5),
            8,
        ),  # all depths of two sets side by side
        ("descent", {"dataset": "mnist", "width": "256"}, 1, 1),
        ("descent", {"dataset": "mine_small", "width": "256"}, 1, 1),
        ("speed", {"dataset": "mnist", "loss": "square", "width": "64"}, 1, 1),  # of 300 samples
        ("speed", {"dataset": "mine", "loss": "square", "width": "64"}, 1, 1),
        ("architecture", {"dataset": "mnist", "architecture": "plain"}, 1, 1),
        ("variant", {"dataset": "mnist"}, 1, 1),  # of 4,000 samples at most
    ],
)
def test_small_jobs_take_one_thread_and_others_what_there_is(rule, wildcards, here, elsewhere):
    assert request(config(), rule, wildcards).threads(cores=16) == here
    assert request(config(), rule, wildcards).threads(cores=None) == elsewhere


def test_memory_of_ranks_is_shared_out_among_them():
    six, bytes_ = config(), scalapack_spectrum.need(500, 784, depth=4, width=256, ranks=6).bytes
    assert request(six, "scalapack_spectrum", of()).ranks == 6
    asked = request(six, "scalapack_spectrum", of()).megabytes(1, among=6)
    assert asked == in_megabytes(bytes_ // 6)
    assert request(config(device="cuda"), "scalapack_spectrum", of()).memory() == bytes_
    unknown = request(six, "scalapack_spectrum", of("mine")).megabytes(2, among=6)
    assert unknown == 2 * memory.UNKNOWN_MEGABYTES


@pytest.mark.parametrize(
    ("n", "least"), [(500, 1), (46_340, 1), (46_341, 2), (60_000, 2), (100_000, 5), (10**6, 468)]
)
def test_fewer_ranks_than_32_bits_allow_are_refused(n, least):
    assert scalapack_spectrum.least_ranks(n) == least
    assert scalapack_spectrum.entries_of_rank(n, least) < 2**31
    scalapack_spectrum.require_ranks(least, n)
    for fewer in range(max(1, least - 3), least):
        with pytest.raises(UserError, match=f"Set ranks to {least}$"):
            scalapack_spectrum.require_ranks(fewer, n)


def test_more_ranks_in_one_row_are_refused_too():
    """479 is a prime: each would have a column of tiles more than it can count."""
    with pytest.raises(UserError, match=r"ranks: 479 are too few .* Set ranks to 480$"):
        scalapack_spectrum.require_ranks(479, 10**6)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 7, 16])
@pytest.mark.parametrize("n", [1, 100, 128, 1000, 5001])
def test_no_rank_has_more_entries_than_the_first(n, ranks):
    rows, columns = scalapack_spectrum.grid(ranks)
    assert rows <= columns and rows * columns == ranks

    def entries(row: int, column: int) -> int:
        tile = np.arange(n) // BLOCK
        return int((tile % rows == row).sum() * (tile % columns == column).sum())

    counts = [entries(row, column) for row in range(rows) for column in range(columns)]
    assert sum(counts) == n**2
    assert max(counts) == counts[0] == scalapack_spectrum.entries_of_rank(n, ranks)


def test_large_blocks_take_all_threads():
    large = config(block=5000)
    for rule in ("kernel", "spectrum"):
        assert request(large, rule, of("mnist")).threads(cores=16) == 16


def test_with_auto_small_kernels_leave_the_gpu_to_large_ones_pairs_and_training():
    jobs = Jobs(typed(config(device="auto", datasets={"mnist": {"block": "all"}})), ROOT)

    def device(rule: str, dataset: str, **others: str) -> str:
        return jobs.device(rule, {"dataset": dataset, **others})

    network = {"network": "relu", "depth": "3"}
    assert {device(rule, "digits", **network) for rule in ("kernel", "spectrum")} == {"cpu"}
    assert {device(rule, "mnist", **network) for rule in ("kernel", "spectrum")} == {"auto"}
    assert device("closest_pair", "digits", **network) == "auto"
    assert device("sgd", "digits", depth="1", seed="1") == "auto"
    asked = Jobs(typed(config(device="cuda")), ROOT)
    assert asked.device("kernel", {"dataset": "digits", **network}) == "cuda"
