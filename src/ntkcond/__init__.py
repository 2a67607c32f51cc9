"""ntkcond: how ReLU conditions the neural tangent kernel (arXiv 2305.08813).

A library (`condition_number` and the names beside it) and the workflow that reproduces the paper.
"""

import _signal as signal  # signal itself is Python code, which takes a moment to load
import sys

# python -m is loading a step, as the first of which this file runs. Ctrl-C meanwhile, torch half
# imported, ends it without a traceback. ntkcond.settings.command sees to it afterwards.
if (
    getattr(sys, "argv", [])[:1] == ["-m"]
    and any("ntkcond.steps." in word for word in sys.orig_argv)
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import importlib

# Loaded when first used: the Snakefile imports modules of this package at every start. Written as
# words, so that no result depends on all of them (`ntkcond.run.digests`).
_PUBLIC = {
    "ACTIVATIONS": "networks.activations",
    "Activation": "networks.activations",
    "ClosestPair": "library.closest",
    "Eigendecomposition": "library.eigen",
    "Estimate": "library.operators",
    "ExtremeEigenvalue": "library.operators",
    "Extremes": "ntk.eigenvalues",
    "Interval": "library.eigen",
    "Jacobian": "library.operators",
    "Kernel": "library.kernel",
    "LayerGradient": "networks.mlp",
    "MLP": "networks.mlp",
    "NTKOperator": "library.operators",
    "Operator": "library.operators",
    "Prediction": "library.eigen",
    "SpectralDensity": "library.operators",
    "Spectrum": "ntk.eigenvalues",
    "TransposedJacobian": "library.operators",
    "UserError": "run.errors",
    "closest_pair": "library.closest",
    "condition_number": "library.of_module",
    "eigendecomposition": "library.eigen",
    "empirical_ntk": "ntk.empirical",
    "extreme_eigenvalues": "library.public",
    "gradient_angle": "library.public",
    "infinite_width_ntk": "library.public",
    "jacobian": "library.operators",
    "kernel": "library.of_module",
    "load": "library.kernel",
    "ntk_operator": "library.operators",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("ntkcond")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ntkcond' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ntkcond.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
