"""A function of parameters and a sample, as torch.func takes it, as a module."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ntkcond.run.errors import UserError


class OfFunction(nn.Module):
    """f(params, sample) for each sample of a batch, by torch.vmap. params: a nested dict, list or
    tuple of tensors, copied; they are named by their keys, with dots in between. Raises UserError
    for anything else in it, and for two of one name."""

    def __init__(self, function: Callable[..., Tensor], params: Any) -> None:
        super().__init__()
        self.function = function
        self.names: Any = None  # taken, before the names of params
        self.names = self._register(params, "")
        if not any(True for _ in self.parameters()):
            raise UserError("params is empty: give the tensors that the function depends on")

    def forward(self, x: Tensor) -> Tensor:
        named = dict(self.named_parameters())
        return torch.vmap(self.function, in_dims=(None, 0))(_filled(self.names, named), x)

    def _register(self, params: Any, name: str) -> Any:
        """The same with names in place of tensors, which become parameters."""
        inner = f"{name}." if name else ""
        if isinstance(params, dict):
            return {key: self._register(value, f"{inner}{key}") for key, value in params.items()}
        if isinstance(params, list | tuple):
            items = [self._register(value, f"{inner}{i}") for i, value in enumerate(params)]
            return _like(params, items)
        name = name or "params"
        if not isinstance(params, Tensor):
            kind = type(params).__name__
            raise UserError(f"params has a {kind} at {name}: all of it must be tensors")
        *parents, last = name.split(".")
        place: nn.Module = self
        try:
            for parent in parents:
                if parent not in dict(place.named_children()):
                    place.add_module(parent, nn.Module())
                place = place.get_submodule(parent)
            if last in dict(place.named_parameters(recurse=False)):
                raise UserError(f"params has two tensors of the name {name}: rename one")
            real = params.is_floating_point() or params.is_complex()
            value = nn.Parameter(params.detach().clone(), requires_grad=real)
            place.register_parameter(last, value)
        except KeyError as error:
            raise UserError(f"params may not have the name {name}: {error}") from error
        return name


def _filled(names: Any, named: dict[str, nn.Parameter]) -> Any:
    if isinstance(names, dict):
        return {key: _filled(value, named) for key, value in names.items()}
    if isinstance(names, list | tuple):
        return _like(names, [_filled(value, named) for value in names])
    return named[names]


def _like(params: Any, items: list[Any]) -> Any:
    """A list, tuple or named tuple of the same type."""
    return type(params)(*items) if hasattr(params, "_fields") else type(params)(items)
