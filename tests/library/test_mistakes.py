"""Mistakes in calls of the library are named, with the fix."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ntkcond
from ntkcond import condition_number, eigendecomposition, jacobian, kernel, ntk_operator
from ntkcond.run.errors import UserError

NETWORK = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=math.inf)
FINITE = ntkcond.MLP(ntkcond.ACTIVATIONS["relu"], depth=1, width=5)
M, TWO, X = nn.Linear(3, 1), nn.Linear(3, 2), torch.randn(6, 3)
EIGEN = eigendecomposition(np.diag([1.0, 2.0, 4.0]))
LOADER = DataLoader(TensorDataset(X))
BETWEEN = ntk_operator(M, X, X[:2])


def total(params: dict, sample: torch.Tensor) -> torch.Tensor:
    return sample.sum()


EXTREMES = [
    (np.array([[1.0, 2.0], [3.0, 4.0]]), "not symmetric"), (1j * np.eye(2), "real numbers"),
    (np.diag([-1.0, 1.0]), "below zero"),
    (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semi-definite"),
    (np.diag([1.0, math.nan]), "NaN or infinite"), (np.zeros((0, 0)), "an NTK is an"),
    (np.ones((2, 3)), "an NTK is an"), (torch.eye(2).to_sparse(), "is sparse"),
    (np.ma.masked_array(np.eye(2), np.eye(2)), "has a mask"),
]  # fmt: skip
ANGLES = [
    ((90.0, NETWORK), "in radians"), ((-0.1, NETWORK), "in radians"),
    ((math.nan, NETWORK), "finite real numbers"), ((1.0, FINITE), "width=5: at infinite width"),
    ((1.0, "relu"), "give an ntkcond.MLP"),
]  # fmt: skip
INFINITE = [
    (1j * np.eye(2), NETWORK, "finite real numbers"), (np.zeros((0, 3)), NETWORK, r"\(n, d\)"),
    (np.diag([1.0, math.nan]), NETWORK, "finite real numbers"), (np.ones(3), NETWORK, r"\(n, d\)"),
    (np.eye(2), FINITE, "width=5: at infinite width"),
]  # fmt: skip
SAMPLES = [
    (X[:1], "two samples or more"), (torch.zeros(5, 0), "two samples or more"),
    (X[:1], "x has the shape"), (None, "an array of numbers"), (["a", "b"], "an array of numbers"),
    (X.index_fill(0, torch.tensor([4]), math.nan), "first in sample 4"),
    (X.to(torch.complex64), "complex"), (X.to_sparse(), "x is sparse"),
    (torch.nested.nested_tensor([X, X], layout=torch.jagged), "x is a nested tensor"),
    (X.to("meta"), "x is on the meta device"),
    (LOADER, r"x is a DataLoader.*torch\.cat"),
    (np.ma.masked_array(X.numpy(), mask=X.numpy() > 1), "x has a mask"),
]  # fmt: skip
OTHERS = [
    (lambda: kernel(TWO, X, output=0, memory=100), "more than memory="),
    (lambda: kernel(M, X, memory="4GB"), "memory='4GB'"),
    (lambda: kernel(M, X, memory=math.nan), "memory=nan"),
    (lambda: kernel(M, X, parameters=[]), "parameters is empty"),
    *((lambda p=wrong: kernel(M, X, parameters=p), f"parameters has a {kind}: give names")
      for wrong, kind in (([M.weight], "Parameter"), (M.weight, "Parameter"), (M, "Linear"),
                          (M.named_parameters(), "tuple"), ([None], "NoneType"), (3, "int"))),
    (lambda: jacobian(M, X, parameters=M.parameters()), "parameters has a Parameter: give names"),
    (lambda: kernel(nn.Embedding(3, 2, sparse=True), torch.eye(3)), "sparse gradients"),
    (lambda: kernel(M, X, LOADER), "x2 is a DataLoader"),
    (lambda: ntkcond.gradient_angle(1.0, NETWORK, weight_variance=-1.0), "weight_variance=-1.0"),
    (lambda: condition_number(M, X, outputs=0), r"no option outputs=\. It has output="),
    (lambda: kernel(M, X, tensor=True), r"no option tensor=\. It has as_tensor="),
    (lambda: jacobian(M, X, zzz=1), "It has x=, params=, output=, parameters=, batch=, dtype="),
    (lambda: eigendecomposition(np.eye(2), errors=1.0), "It has error="),
    (lambda: kernel(M, X, X[:, :2]), "x and x2 must be samples of one shape"),
    (lambda: kernel(M, X, torch.tensor([[0.0] * 3, [math.nan] * 3])),
     "x2 has NaN or infinite entries, first in sample 1"),
    (lambda: kernel(total, X), r"f\(params, sample\) needs params="),
    (lambda: kernel(M, X, params={}), "a module has its own"),
    (lambda: kernel(total, X, params={"a": X, "b": 1.0}), "params has a float at b"),
    *((lambda p=params: kernel(total, X, params=p), f"two tensors of the name {name}: rename one")
      for params, name in (({"a.b": X, "a": {"b": X}}, "a.b"), ({0: X, "0": X}, "0"),
                           ({"": X, "params": X}, "params"))),
    *((lambda n=name: kernel(total, X, params={n: X}), f"params may not have the name {name}")
      for name in ("names", "function", "training", "a..b")),
    (lambda: kernel({}, X), "or of a function, not of a dict"),
    (lambda: kernel(M, X, dtype=torch.bfloat16), r"torch\.float64 or"),
    (lambda: condition_number(kernel(M, X, X)), "of two sets of samples"),
    (lambda: ntkcond.closest_pair(kernel(M, X, X)), "of two sets of samples"),
    (lambda: condition_number("K"), "matrix of real numbers"),
    (lambda: condition_number([[2, 1], [1]]), "matrix of real numbers.*inhomogeneous"),
    (lambda: kernel(nn.Linear(3, 1, device="meta"), X), "the module is on the meta device"),
    (lambda: condition_number(np.eye(2) * 1j), "matrix of real numbers"),
    (lambda: condition_number(np.ones((2, 3))), "shape"),
    (lambda: condition_number(np.full((3, 3), math.nan)), "NaN"),
    (lambda: condition_number(np.triu(np.ones((3, 3)))), "symmetric"),
    (lambda: condition_number(np.array([[1.0, 2], [2, 1]])),
     r"no NTK: λ_min = -.* positive semi-definite"),
    (lambda: condition_number(M), "needs samples"),
    (lambda: condition_number(np.eye(2), memory=1e9), "neither samples nor options"),
    (lambda: condition_number(np.eye(2), error="a"), "error=a: a bound"),
    (lambda: condition_number(ntk_operator(M, X)), r"ntkcond\.kernel"),
    (lambda: ntk_operator(M, X, batch=1.5), "batch=1.5"),
    (lambda: ntk_operator(M, X, batch=0), "batch=0"),
    (lambda: ntk_operator(M, X) @ "a", "takes vectors"),
    (lambda: ntk_operator(M, X).density(steps=0), "steps=0"),
    (lambda: ntk_operator(M, X).density(probes=0), "probes=0"),
    (lambda: ntk_operator(M, X).largest_eigenvalue(math.nan), "tolerance=nan"),
    (lambda: ntk_operator(M, X).smallest_eigenvalue(products=0), "products=0"),
    (lambda: ntk_operator(M, X).estimated_trace(5), "products=5: an estimated trace takes 6"),
    (lambda: BETWEEN @ torch.ones(6), r"6 × 2: it takes \(2,\) or \(2, m\), not \(6,\)"),
    *((call, "of two sets of samples is not defined") for call in (
        BETWEEN.diag, BETWEEN.trace, BETWEEN.estimated_trace, BETWEEN.largest_eigenvalue,
        BETWEEN.density)),
    (lambda: jacobian(TWO, X), "say which, such as output=0"),
    (lambda: jacobian(TWO, X, output="trace"), "a Jacobian is of one output"),
    (lambda: jacobian(M, X) @ jacobian(M, X).T, r"use ntk_operator\(module, x, x2\)"),
    (lambda: EIGEN.alignment(np.ones(2)), r"y must be \(3,\) or \(3, C\), not \(2,\)"),
    (lambda: EIGEN.complexity(np.array([1, math.nan, 0])), "y has NaN"),
    (lambda: EIGEN.trained(np.ones(3), 0.51), r"below 2/λ_max = 0\.5"),
    (lambda: EIGEN.trained(np.ones(3), 0), "learning_rate=0"),
    (lambda: EIGEN.trained(np.ones(3), steps=5), "need a learning_rate"),
    (lambda: EIGEN.predicted(np.ones((1, 3)), np.ones(3), ridge=-1), "ridge=-1"),
    (lambda: EIGEN.predicted(np.ones((1, 3)), np.ones(3), 0.1, 5, ridge=1), "leave out steps="),
    (lambda: EIGEN.trained(np.ones(3), 0.1, 1.5), r"steps=1\.5"),
    (lambda: EIGEN.trained(np.ones(3), 0.1, 1, np.ones(2)), "f0 must have the shape of y"),
    (lambda: EIGEN.predicted(np.ones((2, 3)), np.ones(3), f0_test=np.ones(3)), "each of 2 samples"),
    *((lambda y=y: EIGEN.alignment(y), f"are of real numbers: .*{words}") for y, words in (
        (["a", "b", "c"], "string"), ([[1], [2], [3, 4]], "inhomogeneous"),
        (1j * np.eye(3), "complex"), (torch.ones(3).to_sparse(), "to_dense"))),
    (lambda: EIGEN.predicted(np.ones((3, 2)), np.ones(3), 0.1), r"k_test must be \(m, 3\)"),
    (lambda: eigendecomposition(np.array([[1.0, 2.0], [0.0, 1.0]])), "not symmetric"),
    (lambda: eigendecomposition(np.eye(2) * 1e308), "beyond float64's range"),
]  # fmt: skip
CALLS = [
    *((lambda m=matrix: ntkcond.extreme_eigenvalues(m), words) for matrix, words in EXTREMES),
    *((lambda a=given: ntkcond.gradient_angle(*a), words) for given, words in ANGLES),
    *((lambda a=given: ntkcond.infinite_width_ntk(*a), words) for *given, words in INFINITE),
    *((lambda x=x: kernel(M, x), words) for x, words in SAMPLES),
    *((lambda o=output: kernel(TWO, X, output=o), "it must be 0 to 1, 'trace' or 'all'")
      for output in (2, -1, "sum", 0.0, True)),
    *OTHERS,
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[words for _, words in CALLS])
def test_mistakes_are_named(call, words):
    with pytest.raises(UserError, match=words) as caught:
        call()
    assert isinstance(caught.value, ValueError)


def test_autocast_which_lowers_the_precision_is_refused():
    with torch.autocast("cpu"), pytest.raises(UserError, match="autocast lowers the precision"):
        kernel(M, X)
