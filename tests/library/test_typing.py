"""The public names as an editor and a type checker see them."""

import inspect
import re
import typing
from pathlib import Path

import pytest
from mypy import api

import ntkcond

FUNCTIONS = [name for name in ntkcond.__all__ if inspect.isfunction(getattr(ntkcond, name))]
CLASSES = [name for name in ntkcond.__all__ if inspect.isclass(getattr(ntkcond, name))]
SOURCE = Path(ntkcond.__file__).parents[1]

OF_A_USER = """
import math
from collections.abc import Callable
from typing import assert_type

import numpy as np
import torch
from torch import Tensor, nn

import ntkcond

network, x, y = nn.Linear(3, 1), torch.eye(3), np.ones(3)


def f(params: dict[str, Tensor], sample: Tensor) -> Tensor:
    return params["w"] @ sample


def kappa(kernel: ntkcond.Kernel) -> float:
    return ntkcond.condition_number(kernel).kappa


def chosen(as_tensor: bool) -> ntkcond.Kernel:
    return ntkcond.kernel(network, x, as_tensor=as_tensor)


kernel = ntkcond.kernel(network, x, output=0, parameters=["weight"], memory=1e9)
assert_type(kernel, ntkcond.Kernel[np.ndarray])
assert_type(ntkcond.kernel(network, x, x, as_tensor=True).matrix, Tensor)
assert_type(ntkcond.kernel(f, x, params={"w": x}, certify=False).shape, tuple[int, int])
kappa(kernel) + kappa(ntkcond.kernel(network, x, as_tensor=True)) + kappa(chosen(True))
kernel.save("k.h5")
assert_type(ntkcond.load("k.h5"), ntkcond.Kernel[np.ndarray])

spectrum: ntkcond.Spectrum = ntkcond.condition_number(network, x, dtype=torch.float32)
assert_type(spectrum.extremes, ntkcond.Extremes)
assert_type(ntkcond.condition_number(kernel.matrix, error=1e-9).verdict, str)
assert_type(ntkcond.extreme_eigenvalues(np.eye(3), kernel_error=0.1), ntkcond.Extremes)
assert_type(ntkcond.closest_pair(kernel), ntkcond.ClosestPair)

eigen: ntkcond.Eigendecomposition = ntkcond.eigendecomposition(kernel)
assert_type(eigen.alignment(y), ntkcond.Interval)
assert_type(eigen.trained(y, learning_rate=0.1, steps=3), ntkcond.Prediction)
eigen.plot(ax=None).set_title("a title")

K = ntkcond.ntk_operator(network, x, batch=2)
J = ntkcond.jacobian(network, x)
assert_type(K, ntkcond.NTKOperator)
assert_type(J, ntkcond.Jacobian)
assert_type(J.T, ntkcond.TransposedJacobian)
assert_type(J @ J.T, ntkcond.NTKOperator)
assert_type(K @ x, Tensor)
assert_type(K.T @ y, np.ndarray)
assert_type(K.largest_eigenvalue(tolerance=1e-3), ntkcond.ExtremeEigenvalue)
assert_type(K.density(probes=2), ntkcond.SpectralDensity)
assert_type(K.estimated_trace(), ntkcond.Estimate)
operators: list[ntkcond.Operator] = [J, J.T, K]

relu: ntkcond.Activation = ntkcond.ACTIVATIONS["relu"]
wide = ntkcond.MLP(relu, depth=1, width=math.inf)
assert_type(ntkcond.gradient_angle(1.0, wide, weight_variance=2.0), np.ndarray)
assert_type(ntkcond.infinite_width_ntk(x, wide), np.ndarray)
factors: list[ntkcond.LayerGradient] = wide.initial_gradients(1, 3)(y)
ntkcond.empirical_ntk(factors)
refused: type[ValueError] = ntkcond.UserError
print(ntkcond.__version__.split("."))
"""

WRONG = {
    "ntkcond.condition_number(network, x, outputs=0)": "call-overload",
    "ntkcond.condition_number(network)": "call-overload",
    "ntkcond.condition_number(kernel, x)": "call-overload",
    "ntkcond.condition_number(kernel, memory=1e9)": "call-overload",
    "ntkcond.kernel(network, x, certfy=False)": "call-overload",
    "ntkcond.kernel(network, x, x, 0)": "call-overload",
    "ntkcond.jacobian(network, x, outputs=0)": "call-arg",
    "ntkcond.ntk_operator(network, x, batches=2)": "call-arg",
    "ntkcond.eigendecomposition(kernel, errors=1.0)": "call-arg",
    "ntkcond.extreme_eigenvalues(kernel, 0.1)": "call-arg",
    "eigen.trained(y, rate=0.1)": "call-arg",
    "K.density(probe=2)": "call-arg",
    "J @ 1": "operator",
    "kernel.matrix.detach()": "attr-defined",
    "ntkcond.kapa": "attr-defined",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory, request) -> list[tuple[int, str]]:
    """(line, kind) of all that `mypy --strict` finds in a user's file, with a line for each of
    WRONG at its end."""
    folder = tmp_path_factory.mktemp("types")
    script, config = folder / "script.py", folder / "mypy.ini"
    script.write_text(OF_A_USER + "\n".join(WRONG), "utf-8")
    config.write_text(f"[mypy]\nmypy_path = {SOURCE}\n", "utf-8")
    kept = request.config.cache.mkdir("mypy")  # torch's types take ten seconds at first
    options = ["--strict", "--follow-imports=silent", f"--config-file={config}"]
    said, trouble, _ = api.run([*options, f"--cache-dir={kept}", str(script)])
    assert not trouble
    found = re.findall(r"^\S*script\.py:(\d+): error: .*\[(\S+)\]$", said, re.M)
    assert len(found) == said.count(": error:"), said
    return [(int(line), kind) for line, kind in found]


def test_a_users_file_passes_mypy_strict_and_each_mistake_is_an_error(errors):
    names = set(re.findall(r"ntkcond\.(\w+)", OF_A_USER))
    assert names == {*ntkcond.__all__, "__version__"}
    first = OF_A_USER.count("\n") + 1
    expected = [(first + i, kind) for i, kind in enumerate(WRONG.values())]
    assert sorted(set(errors)) == expected  # of overloads it also says which option it may be


def functions() -> dict[str, object]:
    """All that can be called by a public name: functions, and the methods of classes."""
    found = {name: getattr(ntkcond, name) for name in FUNCTIONS}
    for name in CLASSES:
        for part, value in vars(getattr(ntkcond, name)).items():
            value = value.fget if isinstance(value, property) else value
            if inspect.isfunction(value) and not part.startswith("_"):
                found[f"{name}.{part}"] = value
    return found


@pytest.mark.parametrize("name", functions())
def test_every_option_is_named_and_every_result_is_public(name):
    """And described, of a function, in NumPy's form."""
    function = functions()[name]
    signature = inspect.signature(function)
    kinds = {p.kind for p in signature.parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert signature.return_annotation is not inspect.Signature.empty
    for word in re.findall(r"\w+", str(signature.return_annotation)):
        ours = getattr(inspect.getmodule(function), word, None)
        if inspect.isclass(ours) and ours.__module__.startswith("ntkcond."):
            assert word in ntkcond.__all__, f"{name} gives {word}, which is not public"
    if "." in name:
        return
    words = inspect.getdoc(function) or ""
    described = re.search(r"\nParameters\n-+\n(.*?)\n\n", words, re.S)
    assert described and "\nReturns\n---" in words and "\nExamples\n---" in words
    named = re.findall(r"^(\w[\w, ]*)(?: :.*)?$", described[1], re.M)
    assert sorted(", ".join(named).split(", ")) == sorted(signature.parameters)


def test_hints_can_be_resolved():
    """As an editor does that runs the code, for completion."""
    for name in FUNCTIONS:
        assert "return" in typing.get_type_hints(getattr(ntkcond, name))
