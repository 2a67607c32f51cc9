"""What a network is: its weights, its options on the command line, and that it loads fast."""

import hashlib
import math
import re
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import fields

import numpy as np
import pytest

from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.mlp import MLP, TRAINABLE
from ntkcond.run.errors import UserError
from ntkcond.steps import network_options
from small_networks import drawn, mlp

# sha256 of the weights, by (seed, depth, width, features, outputs)
WEIGHTS = {
    (1, 0, 8, 5, 1): "78b911a65107106ad0f26363b25d51ff200b27a5c03e20d85f6f82c6fe40d180",
    (1, 3, 8, 5, 1): "c7adaa140d69e062ae7c7c114ea1d7572df25f77cee107f27c6df064b8fbbb8e",
    (32, 3, 8, 5, 1): "00062f7b04b7a27f53c2c9ce7630c302d16b3e7846c0038e21ccdba1c4bc9394",
    (666, 2, 512, 784, 1): "2dba5bec2b55fe6f79eb613cbe58162dc674374ce3c69c0e245337cfd5f26438",
    (555, 1, 16, 3, 10): "eacac0cb4fb8f276416ffade573f9a9c9932b201552facab3b8166edc8390d1c",
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_are_what_they_always_were(case):
    """Another machine, NumPy or device must draw these very numbers."""
    joined = b"".join(w.tobytes() for w in drawn(*case))
    assert hashlib.sha256(joined).hexdigest() == WEIGHTS[case]


def test_weights_depend_on_seed_depth_layer_and_shape_alone():
    first = drawn(1, 3, 8, 5)
    again = drawn(1, 3, 8, 5)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert [w.shape for w in first] == [(8, 5), (8, 8), (8, 8), (1, 8)]
    assert not np.array_equal(first[1], first[2])
    assert not np.array_equal(first[0], drawn(2, 3, 8, 5)[0])
    assert not np.array_equal(first[0], drawn(1, 2, 8, 5)[0])


def test_a_network_loads_without_numpy_and_torch():
    """The Snakefile reads its fields in every job."""
    code = "import sys, ntkcond.networks.mlp; print({'numpy', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


STEP = ["--dataset=x.h5", "--output=y.h5", "--seeds=1"]


def options(**changed) -> ArgumentParser:
    return network_options.parser("A step.", **changed)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("trainable", TRAINABLE)
def test_options_made_from_the_fields_of_a_network_give_it_back(activation, trainable):
    network = mlp(activation, 0, 512, trainable)
    values = {field.name: getattr(network, field.name) for field in fields(MLP)}
    words = [f"--{name}={value}" for name, value in {**values, "activation": activation}.items()]
    arguments = options().parse_args([*STEP, *words])
    assert network_options.network(arguments) == network
    assert network_options.settings(arguments) == {**values, "activation": activation}


def test_only_fields_with_a_default_may_be_left_out(capsys):
    words = ["--activation=relu", "--depth=3", "--width=8"]
    assert network_options.network(options().parse_args([*STEP, *words])) == mlp("relu", 3, 8)
    for word in words:
        with pytest.raises(SystemExit):
            options().parse_args([*STEP, *(other for other in words if other != word)])
        assert f"required: {word.partition('=')[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "word",
    ["--depth=-1", "--width=0", "--activation=rely", "--trainable=x", "--bias=-0.1", "--bias=inf"],
)
def test_values_out_of_range_are_refused(word, capsys):
    words = ["--activation=relu", "--depth=3", "--width=8", word]
    with pytest.raises(SystemExit):
        options().parse_args([*STEP, *words])
    assert f"argument {word.partition('=')[0]}: " in capsys.readouterr().err


def test_a_step_may_have_options_of_its_own_for_some_fields():
    parser = options(without={"depth", "bias", *network_options.NTK_ONLY})
    arguments = parser.parse_args([*STEP, "--activation=tanh", "--width=8"])
    assert network_options.network(arguments, depth=2) == mlp("tanh", 2, 8)
    assert network_options.settings(arguments) == {"activation": "tanh", "width": 8}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"activation": "relu"}, "one of ntkcond.ACTIVATIONS"),
        ({"depth": -1}, "depth=-1: it must be at least 0"),
        ({"width": 0}, "width=0: it must be at least 1"),
        ({"width": math.nan}, "width=nan: it must be at least 1"),
        ({"bias": -0.5}, "bias=-0.5: it must be at least 0"),
        ({"trainable": "last"}, "trainable='last': it must be all or first"),
    ],
)
def test_a_field_out_of_its_range_is_refused(wrong, words):
    fields_of_one = {"activation": ACTIVATIONS["relu"], "depth": 1, "width": 8}
    with pytest.raises(UserError, match=re.escape(words)):
        MLP(**{**fields_of_one, **wrong})
