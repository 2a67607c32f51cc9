"""A setting that changes nothing says so, and no other does."""

import copy

import pytest
import yaml
from snakemake.utils import update_config

from ntkcond.plan import config, effects
from ntkcond.plan.graph import Graph
from workflow import ROOT

DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))
OVERLAYS = sorted((ROOT / "config").glob("*.yaml"))


def unused(*targets: str, file: dict | None = None, typed: dict | None = None) -> list[str]:
    """Of the settings of a file and of the command line, for a run of these targets."""
    given = copy.deepcopy(file or {})
    update_config(given, copy.deepcopy(typed or {}))
    settings = copy.deepcopy(DEFAULT)
    update_config(settings, copy.deepcopy(given))
    config.remove_unset(settings)
    graph = Graph(settings, ROOT)
    jobs = [
        job for target in targets or graph.targets() for job in graph.upstream(graph.maker(target))
    ]
    return effects.unused(graph, DEFAULT, given, typed or {}, list(dict.fromkeys(jobs)))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["results/fig1.pdf", "results/conditioning.csv"])
def test_an_overlay_may_hold_more_than_a_run_needs(overlay, target):
    assert unused(target, file=yaml.safe_load(overlay.read_text("utf-8"))) == []


def test_a_copy_of_the_default_as_an_overlay_is_silent():
    assert unused(file=DEFAULT) == []


def test_what_overrides_a_setting_is_named():
    line = "training.epochs: 41 has no effect, overridden by datasets.digits.training.epochs: 40"
    assert unused(typed={"training": {"epochs": 41}}) == [line]
    assert unused(file={"training": {"epochs": 41}}) == [line]
    kernel = "results/kernels/digits/relu/depth2.h5"
    line = "block: 41 has no effect, overridden by datasets.digits.block: 48"
    assert unused(kernel, typed={"block": 41}) == [line]


def test_a_setting_that_one_data_set_takes_has_an_effect():
    assert unused(typed={"block": 41}) == []  # synthetic has none of its own
    file = {"figures": {"fig3": ["digits", "mnist"]}}
    assert unused(file=file, typed={"training": {"epochs": 41}}) == []
    both = {"training": {"epochs": 41}, "datasets": {"digits": {"training": {"epochs": 41}}}}
    assert unused(typed=both) == []  # the epochs are as asked for


def test_of_the_command_line_a_setting_that_this_run_does_not_need_is_named():
    line = "width: 41 has no effect: nothing in this run depends on it"
    assert unused("results/fig1.pdf", typed={"width": 41}) == [line]
    assert unused("results/fig2.pdf", typed={"width": 41}) == []
    # training takes no blocks, whoever else overrides them
    line = "block: 41 has no effect: nothing in this run depends on it"
    assert unused("results/fig3.pdf", typed={"block": 41}) == [line]


def test_a_data_set_of_no_figure_is_named_once():
    mine = {"datasets": {"mine": {"file": "x.npy", "block": 3}}}
    assert unused(file=mine) == ["datasets.mine has no effect: no figure depends on it"]
    assert unused(file={**mine, "figures": {"fig2": ["mine"]}}) == []
    samples = {"datasets": {"mnist": {"samples": 1000}}}
    assert unused("results/datasets/mnist.h5", typed=samples) == []


def test_what_changes_no_number_has_an_effect_all_the_same():
    how = {"device": "cpu", "data_dir": "x", "keep_kernels": False}
    assert unused(typed={**how, "training": {"checkpoint_minutes": 1}}) == []


def test_an_empty_list_has_an_effect():
    assert unused(file={"architectures": {"names": [], "own": {"mine": "mine.py"}}}) == []


def test_a_setting_taken_back_and_one_beyond_the_samples_are_no_mistakes():
    assert unused(file={"datasets": {"digits": {"hold_out": 0, "training": None}}}) == []
    assert unused(typed={"sweeps": {"sizes": [8, 99_999]}}) == []
