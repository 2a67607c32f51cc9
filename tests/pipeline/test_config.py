"""The config: what is wrong in it is named, with what is allowed."""

import copy
import math

import pytest
import yaml
from snakemake.utils import update_config

from dag import Dag, Job
from ntkcond.artefacts.registry import SPECS
from ntkcond.datasets.registry import SOURCES
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.pipeline.config import (
    check,
    complete,
    data_set,
    dataset_settings,
    source_of,
    typed,
)
from ntkcond.pipeline.jobs import Jobs
from ntkcond.pipeline.schema import SCHEMA
from ntkcond.run.errors import UserError
from ntkcond.settings.step import DataSet
from ntkcond.steps import sgd, sweep
from ntkcond.training.learning_rates import READINGS
from ntkcond.training.sgd import CONVENTIONS, LOSSES
from workflow import ROOT

DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text("utf-8"))


def changed(path: str, value: object) -> dict:
    """The default config with one setting changed, named like datasets.digits.block."""
    config = copy.deepcopy(DEFAULT)
    *parents, last = path.split(".")
    place = config
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return config


def test_the_default_is_allowed():
    check(DEFAULT, ROOT)


def test_what_is_kept_is_an_artefact():
    with pytest.raises(UserError, match=r"keep: 'fig22' is not an artefact.*'fig2'"):
        check(changed("keep", ["fig22"]), ROOT)


def test_learning_rates_may_be_of_each_depth():
    def data(depths: list[int]) -> DataSet:
        config = changed("training.learning_rates", {1: [64, 4], 3: [32]})
        config["datasets"]["digits"]["training"] = None
        complete(config)
        config["training"]["depths"] = depths
        return data_set(check(config, ROOT), "digits")

    assert sgd.settings(data([1, 3]), "1", "32")["learning_rates"] == [4, 64]
    assert sgd.settings(data([1, 3]), "3", "32")["learning_rates"] == [32]
    with pytest.raises(UserError, match="learning_rates: has none for digits at depth 2"):
        data([1, 2, 3])
    with pytest.raises(UserError, match=r"training\.learning_rates\.1: \[\] is not allowed"):
        check(changed("training.learning_rates", {1: []}), ROOT)


def test_learning_rates_of_each_depth_can_be_text_as_from_the_command_line():
    given = {"digits": {"training": {"learning_rates": {"1": "[3]", "2": ["3"]}}}}
    settings = {"datasets": given}
    complete(settings)
    assert settings["datasets"]["digits"]["training"]["learning_rates"] == {1: [3], 2: [3]}


def test_one_rate_for_all_depths_needs_the_same_rates_at_each():
    config = changed("training.rate_for", "dataset")
    config["datasets"]["digits"]["training"] = {
        "learning_rates": {depth: [8, 64] for depth in DEFAULT["training"]["depths"]}
    }
    check(config, ROOT)
    config["datasets"]["digits"]["training"]["learning_rates"][99] = [4]  # at which none is trained
    check(config, ROOT)
    config["datasets"]["digits"]["training"]["learning_rates"][1] = [64]
    with pytest.raises(UserError, match=r"training\.rate_for: .*digits has others at each\. Use d"):
        check(config, ROOT)


def swept(config: dict, name: str, dataset: str, network: str) -> dict:
    return sweep.settings(data_set(typed(config), dataset), name, network)


def test_sweeps_take_what_fits_the_data_set():
    own = swept(DEFAULT, "samples", "digits", "relu")
    assert own["sizes"] == DEFAULT["sweeps"]["sizes"]  # up to 1,024 of 1,437
    assert own["widths"] == [512]
    few = changed("datasets.digits.hold_out", 1700)
    assert swept(few, "samples", "digits", "relu")["sizes"] == [8, 16, 32, 64]
    assert swept(DEFAULT, "width", "digits", "relu")["widths"][-2:] == [2048, "inf"]
    # the NTK at infinite width is known of inputs of norm 1, or homogeneous activations
    assert swept(DEFAULT, "activations", "digits", "tanh")["widths"] == [512]
    assert swept(DEFAULT, "activations", "digits_unit", "tanh")["widths"] == [512, "inf"]


@pytest.mark.parametrize("name", [1, "007", "NA", "nan", "a b", "../x"])
def test_a_data_set_has_a_name_that_files_and_tables_can_have(name):
    config = copy.deepcopy(DEFAULT)
    config["datasets"][name] = {"source": "mnist"}
    with pytest.raises(UserError, match="begins with a letter"):
        check(config, ROOT)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("widht", 512, "widht: no such setting. Did you mean 'width'?"),
        ("datasets.digits.blok", 3, "datasets.digits.blok: digits has no such setting. Did you"),
        (
            "datasets.minst",
            {"samples": 9},
            "datasets.minst: no known data set is called 'minst'. Did you mean 'mnist'?",
        ),
        ("figures.fig2", ["digits", "fashion"], "figures.fig2: 'fashion' is not a data set"),
        ("depths", [0, -1], "depths[1]: -1 is not allowed; it must be a whole number from 0 on"),
        ("width", 0, "width: 0 is not allowed; it must be a whole number from 1 on"),
        (
            "trainable",
            "second",
            "trainable: 'second' is not allowed; it must be all or first",
        ),
        ("block", 3.5, "block: 3.5 is not allowed; it must be a whole number from 2 on, or all"),
        ("block", 2001, "block: 2001 is larger than the 2000 samples of synthetic"),
        ("datasets.digits.block", 1438, "block: 1438 is larger than the 1437 samples of digits"),
        ("datasets.mnist.samples", 60001, "samples: 60001 is more than the 60000"),
        ("datasets.digits.hold_out", 1797, "datasets.digits.hold_out: 1797 of the 1797 samples"),
        (
            "datasets.digits.scale",
            [0, float("inf")],
            "datasets.digits.scale[1]: inf is not allowed",
        ),
        ("datasets.mnist.file", "x.npy", "mnist is a set that ntkcond knows; name yours"),
        ("seeds", [2**64], "seeds[0]: 18446744073709551616 is not allowed"),
        ("datasets.digits.scale", [1, -1], "datasets.digits.scale: [1, -1] is no interval"),
        ("datasets.synthetic.scale", [0, 1], "synthetic has no such setting"),
        ("datasets.synthetic", {"features": 5}, "datasets.synthetic.samples: synthetic needs"),
        ("datasets.mine", {"source": "custom"}, "datasets.mine.file: custom needs a value"),
        ("datasets.a/b", {"file": "x.npy"}, "it must be a name of letters, digits, _ and -"),
        ("device", "gpu", "device: 'gpu' is not allowed; it must be auto, cpu or cuda"),
        ("activations", ["relu", "relu"], "activations: ['relu', 'relu'] is not allowed"),
        (
            "activations",
            ["relu", "gleu"],
            "activations[1]: 'gleu' is not allowed. Did you mean 'gelu'?",
        ),
        ("seeds", [], "seeds: [] is not allowed; it must be a list of different whole numbers"),
        ("keep_kernels", "no", "keep_kernels: 'no' is not allowed; it must be true or false"),
        ("figures.fig2", [], "figures.fig2: [] is not allowed; it must be a list of at least"),
        ("figures.fig3", ["synthetic"], "figures.fig3: synthetic has no labels to learn"),
        ("training.epoch", 3, "training.epoch: no such setting. Did you mean 'epochs'?"),
        ("training.learning_rates", [0], "learning_rates[0]: 0 is not allowed; it must be a num"),
        ("training.learning_rates", ["1e-3"], "'1e-3' is not allowed; it must be a number above"),
        ("training.learning_rates", [], "training.learning_rates: [] is not allowed"),
        ("training.convention", "ntk", "convention: 'ntk' is not allowed; it must be authors or"),
        ("training.batch", 0, "training.batch: 0 is not allowed; it must be a whole number from"),
        ("training.stop_below", 0.1, "0.1 ends the runs of digits before the loss 0.01 of train"),
        ("training.stop_below", -1, "training.stop_below: -1 is not allowed; it must be a train"),
        ("datasets.digits.training.epochs", 0, "datasets.digits.training.epochs: 0 is not"),
        ("datasets.digits.training.rate_for", "depth", "is one for all data sets: training.rate"),
        ("datasets.librispeech.mel", 40, "mel 40 × splice 16 makes 640 features, not 768. Change"),
        ("datasets.librispeech.normalise", "all", "'all' is not allowed; it must be utterance, sp"),
        ("datasets.librispeech.bad_utterances", "drop", "must be refuse or skip"),
        ("datasets.librispeech.subset", "../etc", "datasets.librispeech.subset: '../etc' is not"),
        ("datasets.librispeech.scale", [0, 1], "librispeech has no such setting"),
        ("datasets.mnist.mirrors", ["ftp://x"], "datasets.mnist.mirrors[0]: 'ftp://x' is not"),
        ("datasets.mnist.mirrors", ["http://x\n"], "datasets.mnist.mirrors[0]: 'http://x\\n' is"),
        ("depths", [1.0], "depths[0]: 1.0 is not allowed; it must be a whole number from 0 on"),
        ("width", 10**400, "0… is not allowed; it must be a whole number from 1 on, at most 10⁹"),
        ("width", 10**10, "width: 10000000000 is not allowed; it must be a whole number from 1 on"),
        ("bias", math.nan, "bias: nan is not allowed; it must be a number from 0 on"),
        ("bias", math.inf, "bias: inf is not allowed; it must be a number from 0 on"),
        ("training.learning_rates", [math.nan], "training.learning_rates[0]: nan is not allowed"),
        ("training.stop_below", math.nan, "training.stop_below: nan is not allowed; it must be a"),
        ("data_dir", "da{t}a", "data_dir: 'da{t}a' is not allowed; it must be a folder for raw"),
        ("datasets.mine", {"file": "a\n.npy"}, "datasets.mine.file: 'a\\n.npy' is not allowed; it"),
        (
            "datasets." + "a" * 41,
            {"source": "mnist"},
            "_ and -, at most 40, that begins with",
        ),
        ("datasets.digits\n", {"source": "mnist"}, "begins with a letter (but not NA or nan)"),
        ("datasets.digits.a\nb", 1, r"datasets.digits.'a\nb': digits has no such setting. Known:"),
        ("training.a\nb", 1, r"training.'a\nb': no such setting. Known: activation, batch"),
        ("architectures.own", {"mine": "absent.py"}, "absent.py: no such file. Correct the path"),
        ("own_activations", {"silu": "absent.py"}, "absent.py: no such file. Correct the path"),
        (
            "own_activations",
            {"silu": "silu.txt"},
            "own_activations.silu: 'silu.txt' is not allowed",
        ),
        ("own_activations", {"relu": __file__}, "own_activations.relu: ntkcond has one of this"),
        ("own_activations", {"silu": __file__}, "has no activation = Activation(…). Add it"),
        ("datasets.mnist.samples", [], "datasets.mnist.samples: [] is not allowed; it must be a"),
        ("datasets.mnist.samples", [9, 9], "samples: [9, 9] is not allowed; it must be a whole nu"),
        ("datasets.mnist.samples", [9, 1], "datasets.mnist.samples[1]: 1 is not allowed; it must"),
        ("datasets.mnist.samples", [9, [9]], "datasets.mnist.samples[1]: [9] is not allowed; it"),
        ("datasets.mnist.samples", [9, 70000], "datasets.mnist.samples: 70000 is more than the"),
        ("datasets.mnist.samples", ["x", 9], "datasets.mnist.samples[0]: 'x' is not allowed; it"),
        ("datasets.digits.samples", [9, 99], "block: 48 is larger than the 9 samples of digits_9"),
        (
            "datasets." + "a" * 40,
            {"source": "mnist", "samples": [512, "all"]},
            "a_512' is not allowed; it must be a name of letters, digits, _ and -, at most 40",
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(path, value, message):
    with pytest.raises(UserError) as caught:
        check(changed(path, value), ROOT)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


# Each optional setting of a data set, a value, and other ways to say that there is none.
OFF = {
    "source": ("digits", []),
    "samples": (1000, ["all", ["all"]]),
    "seed": (1, [0]),
    "scale": ([-1, 1], []),
    "unit_norm": (True, [False]),
    "distinct": (True, [False]),
    "hold_out": (300, [0]),
    "seeds": ([5], [DEFAULT["seeds"]]),
    "width": (64, [DEFAULT["width"]]),
    "depths": ([1], [DEFAULT["depths"]]),
    "block": (40, [DEFAULT["block"]]),
    "prove_smallest": (True, [False]),
    "engine": ("scalapack", ["local"]),
    "bias": (0.5, [0]),
    "trainable": ("first", ["all"]),
    "training": ({"epochs": 3, "width": 9}, [{}, {"epochs": None, "width": None}]),
}
OF_SPEECH = {
    "subset": ("dev-clean", ["train-clean-100"]),
    "mel": (24, [48]),
    "splice": (8, [16]),
    "features": (9, [768]),
    "normalise": ("none", ["global"]),
    "bad_utterances": ("skip", ["refuse"]),
    "labels": ("phones.txt", []),
    "hold_out": (300, [0]),
}


def records(entry: dict) -> list:
    """What the jobs of a data set with these settings, named digits, are made with."""
    config = copy.deepcopy(DEFAULT)
    config["datasets"]["digits"] = copy.deepcopy(entry)
    complete(config)
    if entry.get("source") != "librispeech":  # whose files are not here
        check(config, ROOT)
    return made_with(Dag(Jobs(typed(config), ROOT)), "fig2", "fig3")


def made_with(dag: Dag, *names: str) -> list:
    """Of these artefacts and all upstream."""
    return [
        (one, dag.jobs.settings(one.rule, dict(one.wildcards)), dag.inputs(one))
        for one in dag.upstream(*map(Job, names))
    ]


@pytest.mark.parametrize("setting", OFF)
def test_what_is_set_can_be_taken_back(setting):
    value, others = OFF[setting]
    without = records({})
    assert (records({setting: value}) == without) == (setting == "source")
    for off in (None, *others):
        assert records({setting: off}) == without


@pytest.mark.parametrize("setting", OF_SPEECH)
def test_what_is_set_of_speech_can_be_taken_back(setting):
    speech = {"source": "librispeech", "samples": 1000}
    value, others = OF_SPEECH[setting]
    without = records(speech)
    assert records({**speech, setting: value}) != without
    for off in (None, *others):
        assert records({**speech, setting: off}) == without


def test_every_optional_setting_can_be_taken_back():
    entry = SCHEMA["properties"]["datasets"]["additionalProperties"]
    assert entry["properties"].keys() == {
        *OFF, *OF_SPEECH, "file", "mirrors", "ranks", "shape",
    }  # fmt: skip


def test_a_data_set_can_be_taken_back_and_what_is_needed_cannot():
    config = changed("datasets.mnist", None)
    complete(config)
    check(config, ROOT)
    assert "mnist" not in config["datasets"]
    config["width"] = None
    complete(config)
    with pytest.raises(UserError, match=r"^width: is missing"):
        check(config, ROOT)


def test_a_missing_setting_is_named():
    config = copy.deepcopy(DEFAULT)
    del config["figures"]["fig2"]
    with pytest.raises(UserError, match=r"figures\.fig2: is missing"):
        check(config, ROOT)


def test_every_job_is_known_without_the_plain_network():
    dag = Dag(Jobs(typed(changed("architectures.names", ["residual"])), ROOT))
    made = [path for one in dag.upstream(Job("fig2")) for path in one.outputs]
    assert "results/kernels/digits/relu/depth1.h5" in made


def test_a_data_set_overrides_global_settings_for_itself():
    config = changed("datasets.digits.width", 64)
    assert vars(data_set(typed(config), "digits").experiment) == {
        "seeds": DEFAULT["seeds"], "width": 64, "depths": DEFAULT["depths"], "block": 48,
        "prove_smallest": False, "trainable": "all", "bias": 0,
    }  # fmt: skip
    assert data_set(typed(config), "synthetic").experiment.width == DEFAULT["width"]


def test_a_data_set_overrides_training_for_itself():
    config = changed("datasets.digits.training", {"epochs": 7, "learning_rates": [4, 0.5]})
    own = data_set(typed(config), "digits").training
    assert (own.epochs, own.learning_rates) == (7, [0.5, 4])  # from small to large
    assert own.batch == DEFAULT["training"]["batch"]
    assert data_set(typed(config), "mnist").training.epochs == DEFAULT["training"]["epochs"]
    for path, value, width in (
        ("seeds", [1], DEFAULT["width"]),
        ("datasets.mnist.width", 64, 64),
        ("datasets.mnist.training", {"width": 32}, 32),
        ("training.width", 16, 16),
    ):
        assert data_set(typed(changed(path, value)), "mnist").training.width == width


def test_one_source_can_be_shown_at_two_sizes():
    config = changed("datasets.mnist_small", {"source": "mnist", "samples": 1000})
    config["figures"]["fig2"].append("mnist_small")
    checked = check(config, ROOT)
    assert dataset_settings(checked, "mnist_small")["source"] == "mnist"
    assert data_set(checked, "mnist_small").samples == 1000
    assert data_set(checked, "mnist").samples == 60000


def test_a_folder_in_the_place_of_a_file_is_called_one():
    config = changed("datasets.mine", {"file": "docs"})
    config["figures"]["fig2"] = ["mine"]
    with pytest.raises(UserError, match=r"mine\.file: .*docs is a folder\. Name a file in it"):
        check(config, ROOT)


def test_the_recipe_of_two_widths_in_one_figure():
    page = (ROOT / "config/README.md").read_text("utf-8").partition("### Two widths in one")[2]
    recipe = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    config = copy.deepcopy(DEFAULT)
    update_config(config, recipe)
    upstream = made_with(Dag(Jobs(check(config, ROOT), ROOT)), "fig2")
    widths = {settings["width"] for job, settings, _ in upstream if job.rule == "kernel"}
    assert widths == {512, 2048}
    one, other = (settings for job, settings, _ in upstream if job.rule == "dataset")
    assert one == other  # the same samples


def jobs(config: dict) -> list:
    """All that the artefacts depend on, inputs in their order."""
    return made_with(Dag(Jobs(check(config, ROOT), ROOT)), *SPECS)


def test_a_list_of_sizes_is_as_if_each_data_set_were_written():
    listed = changed("datasets.digits.samples", [100, 60, "all"])
    listed["datasets"]["mine"] = {"file": "config.yaml", "samples": [9, 8], "block": 2}
    listed["figures"] |= {"fig2": ["synthetic", "digits", "mine"], "fig_samples": ["digits_60"]}
    written = changed("figures", {figure: [] for figure in DEFAULT["figures"]})
    digits = written["datasets"]["digits"]
    for n in (100, 60):
        written["datasets"][f"digits_{n}"] = {**digits, "source": "digits", "samples": n}
    for name, n in {"mine_9": 9, "mine": 8}.items():
        written["datasets"][name] = {"file": "config.yaml", "samples": n, "block": 2}
    sizes = ["digits_100", "digits_60", "digits"]
    for figure, shown in DEFAULT["figures"].items():
        written["figures"][figure] = sizes if shown == ["digits"] else shown
    written["figures"]["fig2"] = ["synthetic", *sizes, "mine_9", "mine"]
    written["figures"]["fig_samples"] = ["digits_60"]
    assert jobs(listed) == jobs(written)


def test_a_figure_lists_each_size_once():
    config = changed("datasets.mnist.samples", [512, "all"])
    config["figures"]["fig2"] = ["mnist", "digits", "mnist_512"]
    assert check(config, ROOT).figures["fig2"] == ["mnist_512", "mnist", "digits"]


def test_a_size_does_not_take_the_name_of_another_data_set():
    config = changed("datasets.mnist.samples", [512, 1024, "all"])
    config["datasets"]["mnist_1024"] = {"source": "mnist", "samples": 1024}
    with pytest.raises(UserError) as caught:
        check(config, ROOT)
    assert str(caught.value) == (
        "datasets.mnist.samples: 1024 makes a data set mnist_1024, which the config has already."
        " Rename or remove one of the two"
    )


def test_sizes_can_be_text_as_from_the_command_line():
    config = changed("datasets.mnist.samples", "[512, all]")
    complete(config)
    assert data_set(typed(config), "mnist_512").samples == 512


def test_the_study_of_whole_data_sets_has_its_sizes_in_order():
    config = copy.deepcopy(DEFAULT)
    update_config(config, yaml.safe_load((ROOT / "studies/whole/config.yaml").read_text("utf-8")))
    whole = check(config, ROOT)
    sizes = [2**k for k in range(9, 16)]
    mnist = [*(f"mnist_{n}" for n in sizes), "mnist"]
    assert whole.figures["fig2"] == [
        *mnist, "fashion_mnist_512", "fashion_mnist_4096", "fashion_mnist",
        "librispeech_512", "librispeech_4096", "librispeech",
    ]  # fmt: skip
    assert [data_set(whole, name).samples for name in mnist] == [*sizes, 60000]


def test_every_activation_of_the_registry_may_be_named():
    check(changed("activations", list(ACTIVATIONS)), ROOT)
    check(changed("training.activation", "tanh"), ROOT)


def test_the_schema_knows_the_conventions_and_readings_of_the_code():
    known = SCHEMA["properties"]["training"]["properties"]
    for name, words in {"convention": CONVENTIONS, "loss": LOSSES, "rate_for": READINGS}.items():
        assert list(known[name]["enum"]) == list(words)


def test_the_default_config_has_every_data_set_that_the_code_knows():
    there = {source_of(typed(DEFAULT), name) for name in DEFAULT["datasets"]}
    assert there == SOURCES.keys() - {"custom"}


def speech_config(data_dir, **settings) -> dict:
    config = changed("datasets.speech", {"source": "librispeech", "samples": 512, **settings})
    config["figures"]["fig2"] = ["speech"]
    config["data_dir"] = str(data_dir)
    return config


def test_a_set_of_speech_takes_what_it_does_not_say_from_the_recipe():
    own = dataset_settings(typed(speech_config("data")), "speech")
    assert (own["mel"], own["splice"], own["features"]) == (48, 16, 768)
    assert (own["subset"], own["normalise"]) == ("train-clean-100", "global")


@pytest.mark.parametrize(
    ("folders", "below", "settings", "message"),
    [
        ([], "", {"subset": "dev-cleen"}, "could be downloaded. Did you mean 'dev-clean'?"),
        (["LibriSpeech/dev-clean"], "", {"subset": "dev-clean"}, "no FLAC file in it. Put the"),
        (["LibriSpeech/dev-clean"], "LibriSpeech", {"subset": "dev-clean"}, "one folder too deep"),
        ([], "absent", {}, "absent: no such folder. Make it first"),
        ([], "", {"labels": "/no/phones.txt"}, "datasets.speech.labels: /no/phones.txt: no such"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_corpus_is_said_at_start(tmp_path, folders, below, settings, message):
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(UserError) as caught:
        check(speech_config(tmp_path / below, **settings), ROOT)
    assert message in str(caught.value)


def test_an_empty_name_of_a_setting_is_shown():
    with pytest.raises(UserError, match=r"^'': no such setting"):
        check({**DEFAULT, "": 1}, ROOT)
