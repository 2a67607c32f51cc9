"""What a module is called with, and what of its result is taken, as people have them.

A dict (a Hugging Face BatchEncoding is one) goes in as keywords, a tuple or list as positions, each
of arrays with one number of samples. Inside, samples are then their numbers 0 to n − 1: all else
here takes, repeats and orders samples as rows of one tensor.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from ntkcond.library.of_function import OfFunction
from ntkcond.run.errors import UserError

INNER = "module."  # before the names of the parameters of a `Wrapped` module
Samples = Any  # an array, or a nested dict, list or tuple of them
Output = int | str | Callable[[Any], Tensor] | None
CONSTANTS = (bool, int, float, str, type(None))  # in a dict or tuple: the same for all samples
P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Choice:
    """What an NTK is of: the options of `ntkcond.kernel` that its callers share. Raises UserError
    for parameters that are no names."""

    params: Any = None
    output: Output = None
    parameters: Sequence[str] | None = None
    dtype: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        words: Any = self.parameters
        if words is None or isinstance(words, str):
            return
        several = isinstance(words, Iterable) and not isinstance(words, nn.Module | Tensor)
        self.parameters = list(words) if several else [words]
        for word in self.parameters:
            if not isinstance(word, str):
                raise UserError(
                    f"parameters has a {type(word).__name__}: give names, such as"
                    " parameters=['0.weight']; module.named_parameters() has them"
                )


def with_hints(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises UserError for a misspelt option and names the nearest one."""
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for word in options:
            if word not in known:
                near = get_close_matches(word, known, 1) or known[1:]
                raise UserError(
                    f"{function.__name__} has no option {word}=. It has"
                    f" {', '.join(f'{name}=' for name in near)}"
                )
        return function(*args, **options)

    return checked


class Wrapped(nn.Module):
    """A module of which `select` takes the output. inputs: of all samples, which are then called by
    their numbers."""

    def __init__(
        self, module: nn.Module, select: Callable[[Any], Tensor] | None, inputs: Samples = None
    ) -> None:
        super().__init__()
        self.module, self.select = module, select
        self.train(module.training)
        self.names: list[str] = []
        self.inputs = None if inputs is None else self._kept(inputs)

    def forward(self, x: Tensor) -> Tensor:
        rows = x if self.inputs is None else self._rows(self.inputs, x)
        if isinstance(rows, dict) and not isinstance(self.module, OfFunction):
            result = self.module(**rows)
        elif isinstance(rows, list | tuple) and not isinstance(self.module, OfFunction):
            result = self.module(*rows)
        else:
            result = self.module(rows)
        if self.select is None:
            return result
        try:
            return self.select(result)
        except Exception as error:  # a user's function may raise anything
            kind = type(result).__name__
            raise UserError(
                f"output={self.select!r} fails on what the module gives, a {kind}: {error}"
            ) from error

    def _kept(self, inputs: Samples) -> Any:
        """Arrays become buffers, by name."""
        if isinstance(inputs, dict):
            return {key: self._kept(value) for key, value in inputs.items()}
        if isinstance(inputs, list | tuple):
            return tuple(self._kept(value) for value in inputs)
        if isinstance(inputs, Tensor):
            name = f"input{len(self.names)}"
            self.names.append(name)
            self.register_buffer(name, inputs)
            return _Named(name)
        return inputs

    def _rows(self, kept: Any, x: Tensor) -> Any:
        if isinstance(kept, _Named):
            values = getattr(self, kept.name)
            own = next((p.dtype for p in self.module.parameters() if p.is_floating_point()), None)
            rows = values.index_select(0, x)
            return rows.to(own) if own and rows.is_floating_point() else rows
        if isinstance(kept, dict):
            return {key: self._rows(value, x) for key, value in kept.items()}
        if isinstance(kept, tuple):
            return tuple(self._rows(value, x) for value in kept)
        return kept

    def entries(self, x: Tensor) -> np.ndarray:
        """All that samples are, as bytes, (n, …): what two of them share is one sample."""
        rows = [getattr(self, name).index_select(0, x).cpu().numpy() for name in self.names]
        flat = [np.ascontiguousarray(r.reshape(len(x), -1)).view(np.uint8) for r in rows]
        return np.concatenate(flat, axis=1)


class _Named(NamedTuple):
    name: str


def outer_names(module: nn.Module, names: Sequence[str]) -> tuple[str, ...]:
    """Names of the parameters as the module given has them."""
    if isinstance(module, Wrapped):
        return tuple(name.removeprefix(INNER) for name in names)
    return tuple(names)


def is_nested(x: Samples) -> bool:
    """Whether x is a dict, or a list or tuple of arrays, and no array itself."""
    if hasattr(x, "to_numpy"):  # a DataFrame
        return False
    if isinstance(x, Mapping):
        return True
    return isinstance(x, list | tuple) and any(_holds_arrays(part) for part in x)


def _holds_arrays(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_holds_arrays, x))
    return isinstance(x, Tensor | np.ndarray | Mapping) or hasattr(x, "to_numpy")


def array_of(
    x: Any, device: torch.device, dtype: torch.dtype, name: str, fewest: int = 2
) -> Tensor:
    """(n, …) of this type, or whole numbers, on the device. name: for messages. Raises UserError
    for what is no array of samples."""
    if isinstance(x, DataLoader):
        raise UserError(
            f"{name} is a DataLoader: give its samples as one tensor, such as"
            " torch.cat([x for x, _ in loader])"
        )
    if isinstance(x, np.ma.MaskedArray):
        raise UserError(f"{name} has a mask: give the samples that are to count, as a plain array")
    if hasattr(x, "to_numpy"):  # a DataFrame
        x = x.to_numpy()
    if isinstance(x, np.ndarray):
        x = np.ascontiguousarray(x)  # torch takes no view that runs backwards
    try:
        x = torch.as_tensor(x).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{name} must be an array of numbers, a sample a row: {error}") from error
    if x.is_nested:
        raise UserError(f"{name} is a nested tensor: give samples of one shape, as a plain tensor")
    if x.is_meta:
        raise UserError(
            f"{name} is on the meta device, which has no numbers: give it on a CPU or GPU"
        )
    if x.ndim < 1 or len(x) < fewest or not x.numel():
        samples = "a sample" if fewest == 1 else "two samples"
        raise UserError(f"{name} has the shape {tuple(x.shape)}: it must have {samples} or more")
    if x.is_complex():
        raise UserError(f"{name} is complex: give real samples")
    if x.layout != torch.strided:
        raise UserError(f"{name} is sparse: give {name}.to_dense()")
    if x.is_inference():
        x = x.clone()
    if not x.is_floating_point():
        return x.to(device)
    if not x.isfinite().all():
        row = int((~x.isfinite()).reshape(len(x), -1).any(1).nonzero()[0])
        raise UserError(f"{name} has NaN or infinite entries, first in sample {row}")
    return x.to(device, dtype)


def arrays_of(
    x: Any, device: torch.device, dtype: torch.dtype, name: str, fewest: int = 2
) -> tuple[Any, int]:
    """The same of a nested dict, list or tuple, and the number of samples. Constants stay."""
    found: dict[str, int] = {}

    def converted(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: converted(part, f"{name}[{key!r}]") for key, part in value.items()}
        if isinstance(value, list | tuple) and is_nested(value):
            return tuple(converted(part, f"{name}[{i}]") for i, part in enumerate(value))
        if isinstance(value, CONSTANTS):
            return value
        array = array_of(value, device, dtype, name, fewest)
        found[name] = len(array)
        return array

    arrays = converted(x, name)
    if not found:
        raise UserError(f"{name} has no arrays: give the samples that the module is called with")
    if len(set(found.values())) > 1:
        counts = ", ".join(f"{place} {count}" for place, count in found.items())
        raise UserError(f"{name} must have one number of samples in all its parts, not {counts}")
    return arrays, next(iter(found.values()))


def joined(x: Any, x2: Any, where: str = "x") -> Any:
    """The samples of two nested sets. Raises UserError where their forms differ."""
    if isinstance(x, dict) and isinstance(x2, dict) and x.keys() == x2.keys():
        return {key: joined(x[key], x2[key], f"{where}[{key!r}]") for key in x}
    if isinstance(x, tuple) and isinstance(x2, tuple) and len(x) == len(x2):
        pairs = enumerate(zip(x, x2, strict=True))
        return tuple(joined(a, b, f"{where}[{i}]") for i, (a, b) in pairs)
    if isinstance(x, Tensor) and isinstance(x2, Tensor):
        if x.shape[1:] == x2.shape[1:] and x.dtype == x2.dtype:
            return torch.cat([x, x2])
    elif type(x) is type(x2) and isinstance(x, CONSTANTS) and x == x2:
        return x
    raise UserError(f"x and x2 must have the same parts, of one shape and type: not so at {where}")
