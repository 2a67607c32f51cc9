"""Networks beside the paper's, held against the paper's own code and against autograd by hand."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from ntkcond.library.of_module import kernel
from ntkcond.networks import modules
from ntkcond.networks.activations import ACTIVATIONS
from ntkcond.networks.architectures import ARCHITECTURES, seen_as
from ntkcond.networks.mlp import MLP
from ntkcond.ntk.empirical import empirical_ntk
from ntkcond.run.errors import UserError
from ntkcond.settings import fields

RELU = ACTIVATIONS["relu"]


def weights_of(module: torch.nn.Module) -> list[np.ndarray]:
    return [p.detach().numpy() for p in module.parameters()]


def test_every_name_has_a_builder_and_a_title():
    assert modules.BUILDERS.keys() == ARCHITECTURES.keys() == set(fields.ARCHITECTURES)


@pytest.mark.parametrize("activation", ["relu", "linear", "tanh"])
@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize(("name", "bias"), [("plain", 0.0), ("biases", 0.3)])
def test_kernel_is_that_of_the_papers_network(name, bias, depth, activation):
    """Of the same weights; those of biases are the last columns."""
    built = modules.builder(name, bias)
    module = modules.drawn(built((5,), depth, 9, ACTIVATIONS[activation]), seed=1)
    x = np.random.default_rng(0).standard_normal((12, 5))
    network = MLP(ACTIVATIONS[activation], depth, 9, bias=bias)
    weights = weights_of(module)
    assert [w.shape for w in weights] == [w.shape for w in network.weights(1, 5)]
    expected = empirical_ntk(network.gradients(weights)(x))
    assert np.allclose(kernel(module, x).matrix, expected, rtol=1e-12)


def test_residual_and_normalised_networks_are_what_they_say():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 6)))
    scale = math.sqrt(2 / 50)
    module = modules.drawn(modules.residual((6,), 2, 50, RELU), seed=1)
    first, second, last = (torch.from_numpy(w) for w in weights_of(module))
    h = scale * torch.relu(x @ first.T)
    h = (h + scale * torch.relu(h @ second.T)) / math.sqrt(2)
    assert torch.allclose(module(x), h @ last.T)
    module = modules.drawn(modules.normalised((6,), 2, 50, RELU), seed=1)
    h = x
    for w in map(torch.from_numpy, weights_of(module)[:-1]):
        h = torch.relu(h @ w.T)
        h = h - h.mean(1, keepdim=True)
        h = h / h.norm(dim=1, keepdim=True)
    expected = h @ torch.from_numpy(weights_of(module)[-1]).T
    assert torch.allclose(module(x), expected, rtol=1e-3)  # LayerNorm adds 10⁻⁵ to the variance


def test_a_residual_network_with_linear_layers_behind_its_activations():
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 6)))
    scale = math.sqrt(2 / 50)
    module = modules.drawn(modules.residual_linear((6,), 3, 50, RELU), seed=1)
    first, *others, last = (torch.from_numpy(w) for w in weights_of(module))
    h = scale * torch.relu(x @ first.T)
    for inner, outer in zip(others[::2], others[1::2], strict=True):
        h = (h + scale * torch.relu(h @ inner.T) @ outer.T / math.sqrt(50)) / math.sqrt(2)
    assert torch.allclose(module(x), h @ last.T)


def test_a_transformer_is_what_it_says():
    """Squares of 4 × 4 pixels in reading order, the last ones padded; heads one by one."""
    m, (height, across) = 8, (8, 6)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 2, height, across)))
    module = modules.drawn(modules.transformer((2, height, across), 1, m, RELU), seed=1)
    weights = {name: p.detach() for name, p in module.named_parameters()}
    places, first, projections, back, inner, outer, last = weights.values()

    def norm(h: torch.Tensor) -> torch.Tensor:
        h = h - h.mean(-1, keepdim=True)
        return h / torch.sqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)

    padded = torch.zeros(3, 2, 8, 8, dtype=torch.float64)
    padded[..., :across] = x
    squares = [padded[:, :, i : i + 4, j : j + 4] for i in (0, 4) for j in (0, 4)]
    h = (torch.stack([s.flatten(1) for s in squares], 1) @ first.T + places) / m**0.5
    q, k, v = (norm(h) @ projections.T / m**0.5).chunk(3, dim=-1)
    heads = []
    for some in (slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)):
        weight = (q[..., some] @ k[..., some].mT / 2**0.5).softmax(-1)
        heads.append(weight @ v[..., some])
    h = (h + torch.cat(heads, -1) @ back.T / m) / 2**0.5
    hidden = (2 / m) ** 0.5 * torch.relu(norm(h) / m**0.5 @ inner.T)
    h = (h + hidden @ outer.T / m**0.5) / 2**0.5
    expected = (norm(h) / m**0.5).mean(1) @ last.T
    assert torch.allclose(module(x), expected, rtol=1e-10)
    ntk = kernel(module, x)
    assert ntk.by_jacobian == ()
    with pytest.raises(UserError, match="needs images"):
        modules.transformer((40,), 1, 8, RELU)


@pytest.mark.parametrize("name", ["plain", "biases", "residual", "normalised"])
def test_images_are_flattened(name):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 2, 3, 5)))
    image, row = (
        modules.drawn(modules.BUILDERS[name](shape, 2, 8, RELU), seed=1)
        for shape in ((2, 3, 5), (30,))
    )
    assert torch.equal(image(x), row(x.reshape(4, 30)))


def test_what_a_network_takes_of_a_sample():
    """Channels and pixels of an image, or all features."""
    assert seen_as("convolutional", (3, 4, 5), 60) == (3, 20)
    assert seen_as("a user's own", (3, 4, 5), 60) == (3, 20)
    assert seen_as("plain", (3, 4, 5), 60) == (60, 0)
    assert seen_as("a user's own", (), 60) == (60, 0)


@pytest.mark.parametrize("depth", [0, 2])
def test_a_convolutional_network_is_what_it_says(depth):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 2, 4, 5)))
    module = modules.drawn(modules.convolutional((2, 4, 5), depth, 7, RELU), seed=1)
    h = x
    for w in map(torch.from_numpy, weights_of(module)[:-1]):
        h = math.sqrt(2 / (9 * 7)) * torch.relu(torch.nn.functional.conv2d(h, w, padding=1))
    expected = h.sum((2, 3)) / math.sqrt(20) @ torch.from_numpy(weights_of(module)[-1]).T
    assert torch.allclose(module(x), expected)
    with pytest.raises(UserError, match="needs images"):
        modules.convolutional((40,), 1, 8, RELU)


def test_weights_depend_on_seed_and_place_alone():
    first, again, other = (
        weights_of(modules.drawn(modules.plain((5,), 2, 4, activation), seed))
        for activation, seed in ((RELU, 1), (ACTIVATIONS["linear"], 1), (RELU, 2))
    )
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))


def test_a_users_own_file(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from torch import nn\n"
        "def network(shape, depth, width, activation):\n"
        "    return nn.Linear(shape[0], 1)\n"
    )
    built = modules.builder_of_file(mine)((4,), 2, 8, RELU)
    assert isinstance(built, torch.nn.Linear)
    for text, words in (
        ("x = 1", r"has no function network\(shape, depth, width, activation\)"),
        ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def network(:", "SyntaxError"),
    ):
        mine.write_text(text)
        with pytest.raises(UserError, match=words):
            modules.builder_of_file(mine)
    for body, words in (
        ("pass", "returns a NoneType"),
        ("raise KeyError(8)", "network: KeyError: 8"),
    ):
        mine.write_text(f"def network(shape, depth, width, activation): {body}")
        with pytest.raises(UserError, match=words):
            modules.builder_of_file(mine)((4,), 2, 8, RELU)
    mine.write_text("def network(shape): return None")
    with pytest.raises(UserError, match="takes 1 positional argument"):
        modules.builder_of_file(mine)((4,), 2, 8, RELU)
    with pytest.raises(UserError, match="no such file"):
        modules.builder_of_file(tmp_path / "other.py")


def test_bias_is_a_field_of_the_papers_network():
    assert dataclasses.replace(MLP(RELU, 1, 8), bias=0.3).degree is None
