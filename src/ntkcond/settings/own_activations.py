"""Activations of a user's own, each in a Python file, known by their names as ours are.

`own_activations: {silu: silu.py}` in the config. The process that reads the config registers them,
and each step those that its command line names.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ntkcond.networks.activations import ACTIVATIONS, Activation
from ntkcond.run.errors import UserError

FLAG = "--own_activation"  # of steps: NAME=FILE
_registered: list[str] = []


def register(files: Mapping[str, Path | str]) -> None:
    """Adds the activation of each file to ACTIVATIONS, in place of those registered before. Raises
    UserError for a name of ours, and for a file without an activation."""
    while _registered:
        del ACTIVATIONS[_registered.pop()]
    for name, path in files.items():
        if name in ACTIVATIONS:
            raise UserError(f"own_activations.{name}: ntkcond has one of this name. Rename yours")
        ACTIVATIONS[name] = of_file(path)
        _registered.append(name)


def of_file(path: Path | str) -> Activation:
    """The `activation` of a Python file. Raises UserError if it cannot be had."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file may raise
        raise UserError(f"{path}: {type(error).__name__}: {error}. Correct the file") from error
    activation = getattr(module, "activation", None)
    if not isinstance(activation, Activation):
        raise UserError(f"{path}: has no activation = Activation(…). Add it (docs/extending.md)")
    if (wrong := wrong_at(activation)) is not None:
        raise UserError(
            f"{path}: at z = {wrong:.4g} slope is not the derivative of value. Correct it, or name"
            " the kink there: kinks=(…)"
        )
    return activation


def wrong_at(activation: Activation, step: float = 2e-3, most: float = 8.0) -> float | None:
    """A z, `|z| ≤ most`, at which a central difference of sixth order of the value is not the
    slope: a wrong slope, or a kink that is not named. A kernel's certificate takes both as right.
    """
    import numpy as np

    z = np.arange(-most, most, step) + step / 3
    for kink in activation.kinks:
        z = z[abs(z - kink) > 4 * step]
    value: Any = activation.value

    def difference(k: int) -> Any:
        return (value(z + k * step) - value(z - k * step)) / step

    with np.errstate(all="ignore"):  # what is no number is wrong
        quotient = (45 * difference(1) - 9 * difference(2) + difference(3)) / 60
        slope: Any = activation.slope(z)
        rounding = 1e-14 * abs(value(z)) / step
        right = abs(quotient - slope) <= rounding + 1e-7 * (1 + abs(slope))
    return None if right.all() else float(z[~right][0])


def options(files: Mapping[str, str]) -> list[str]:
    """The options of a command line that names these files."""
    return [f"{FLAG}={name}={path}" for name, path in files.items()]


def named_in(words: Sequence[str]) -> dict[str, str]:
    """The files that a command line names."""
    given = [word.removeprefix(f"{FLAG}=") for word in words if word.startswith(f"{FLAG}=")]
    return {name: path for name, _, path in (word.partition("=") for word in given)}
