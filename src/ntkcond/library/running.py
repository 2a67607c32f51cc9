"""How a module is run: the one place. Its rules:

- A copy is run, in a type of its own; what the module given does is not touched.
- Each run begins with the state that was given: what a module keeps from one call, as attention
  biases made of its weights, is not there in the next, which may have other weights or errors.
- With gradients, always: under no_grad some modules go another way, or keep what has no graph.
- Never one sample alone: torch's own gradient of batch normalisation can then be wrong. It is
  taken twice.
- What is compiled runs as it is written, operation by operation.
- Weights that the module converts to another type, as routers in float32, keep their graph.
- The copy is held against the module as given, in its own precision: what takes its numbers from
  the type of its input is another function in another type.
"""

import contextlib
import copy
import functools
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
import torch
from torch import Size, Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from ntkcond.library.inputs import Wrapped
from ntkcond.library.perturbation import reach_of
from ntkcond.run.errors import UserError

CLOSE = 4  # units of rounding that need no trial
ATOMS = {FunctionType, BuiltinFunctionType, np.ufunc}
MAPS, LISTS = {dict, OrderedDict}, {list, tuple, set, frozenset}
PLAIN = {int, str, bytes, bool, NoneType, torch.dtype, torch.device, Size}
AGREES = 0.58  # power of ε: rounding is far below it, a use of a weight that was not seen far above


class Running:
    """A copy of a module in this type, or in its own (None). Called with samples, and with weights
    in place of some of its own, it gives its outputs, (n, k), with a graph. keeps: whether the
    module given had tensors that it had computed, which here are NaN."""

    def __init__(
        self, module: nn.Module, dtype: torch.dtype | None, device: str | None = None
    ) -> None:
        if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
            raise UserError(
                "the module is of TorchScript, which hides what it computes: give the module that"
                " was scripted or traced"
            )
        self.dtype, self.keeps = dtype, False
        self._fresh: tuple[nn.Module, list[Any]] | None = (
            None  # a copy, and its state when it was made
        )
        try:
            with _Copying(dtype) as copying:
                self.module = copy.deepcopy(module)
            if dtype is not None:
                _own_constants(self.module)
                self.module._apply(lambda t: _with_type(t, dtype, device))
            self.keeps = copying.found
        except Exception as error:  # a user's part may raise anything
            raise UserError(f"the module cannot be copied: {_in_words(error)}") from error

    def __call__(self, x: Tensor, weights: dict[str, Tensor] | None = None) -> Tensor:
        if len(x) == 1:
            return self(torch.cat([x, x]), weights)[:1]
        x = x.clone()  # which the module may change in place
        module = self._as_given()
        try:
            with torch.enable_grad(), _as_written():
                f = functional_call(module, weights, (x,)) if weights else module(x)
        except UserError:
            raise
        except Exception as error:  # a user's module may raise anything
            raise UserError(
                f"the module fails on samples of shape {tuple(x.shape)} and type {x.dtype}:"
                f" {_in_words(error)}{self._hint(error)}"
            ) from error
        if not isinstance(f, Tensor):
            kind = type(f).__name__
            part = ".logits[:, 0]" if hasattr(f, "logits") else "[0]"
            raise UserError(
                f"the module gives a {kind}: say which tensor of it, such as"
                f" output=lambda out: out{part}"
            )
        if f.is_complex() or not f.is_floating_point() or f.ndim < 1 or len(f) != len(x):
            raise UserError(
                f"of {len(x)} samples the module gives a tensor of shape {tuple(f.shape)} and type"
                f" {f.dtype}: it must be ({len(x)}, …), of real numbers"
            )
        return f.reshape(len(x), -1)

    def sources(self, x: Tensor) -> list[Tensor]:
        """What a run's numbers follow from."""
        inputs = self.module.buffers(recurse=False) if isinstance(self.module, Wrapped) else ()
        return [x, *inputs, *self.module.parameters()]

    def finite_in(self, x: Tensor) -> torch.dtype | None:
        """The type of its weights, if its outputs are finite."""
        kind = next((p.dtype for p in self.module.parameters()), x.dtype)
        try:
            f = self(x.to(kind) if x.is_floating_point() else x)
        except UserError:
            return None
        return kind if f.isfinite().all() else None

    def hold_against(self, given: nn.Module, x: Tensor, f: Tensor) -> None:
        """Raises UserError if the module given, in its own types, gives other outputs than f, by
        more than rounding explains. Where it cannot run on x, nothing is known."""
        kinds = {p.dtype for p in given.parameters() if p.is_floating_point()}
        if kinds <= {self.dtype} or not kinds:
            return
        kind = max(kinds, key=lambda dtype: torch.finfo(dtype).eps)
        own = Running(given, None)
        x_own = x.to(kind) if x.is_floating_point() else x
        try:
            f_own = own(x_own).detach()
        except UserError:
            return
        if f_own.shape != f.shape or not f_own.isfinite().all():
            return
        lower, of_lower, at = (own, f_own, x_own)
        if torch.finfo(kind).eps < torch.finfo(f.dtype).eps:
            lower, of_lower, at, kind = self, f, x, f.dtype
        apart = float((f - f_own.to(f.dtype)).abs().max())
        if apart <= CLOSE * torch.finfo(kind).eps * float(f.abs().max()):
            return
        if apart > float(torch.finfo(kind).tiny) + reach_of(
            lambda: lower(at).detach(), of_lower, lower.sources(at), kind
        ):
            raise UserError(
                f"in {_word(f.dtype)} the module is another function than in its own"
                f" {_word(f_own.dtype)}: its outputs differ by up to {apart:.2g}, more than"
                " rounding explains. Where it takes a number from the type of its input, as"
                " torch.finfo(x.dtype).eps, write that number; or compute in its own type:"
                f" dtype={f_own.dtype}"
            )

    def _as_given(self) -> nn.Module:
        """The module with its own structure and attributes, and the same tensors: the copy of the
        last run if it is seen to be as it was."""
        if self._fresh is None or not _is_as(*self._fresh):
            shared: dict[int, Any] = {id(p): p for p in self.module.parameters()}
            with _Sharing():
                module = copy.deepcopy(self.module, shared)
            for part in module.modules():
                if type(part)._apply is nn.Module._apply:
                    part.__dict__["_apply"] = MethodType(_apply, part)
            self._fresh = module, _state(module)
        return self._fresh[0]

    def _hint(self, error: Exception) -> str:
        if other := self._part_of_another():
            return (
                f". A hook names a module itself ({other}), which in a copy is not the one that"
                " runs: let the hook use the module that it is given, or be a method"
            )
        words = str(error).lower()
        mixed = "dtype" in words or ("float" in words and ("double" in words or "int" in words))
        if mixed and re.search(r"\b(long|int|byte|char|short)\b", words):
            return ". x has whole numbers, which stay as they are: give real ones if they are meant"
        if self.dtype == torch.float64 and mixed:
            return (
                ". All else is float64 here: where the module itself makes or asks for numbers of"
                " float32, compute with dtype=torch.float32"
            )
        return ""

    def _part_of_another(self) -> str:
        """The type of a module that a hook names and the copy does not have."""
        parts = list(self.module.modules())
        for part in parts:
            for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values()):
                for cell in getattr(hook, "__closure__", None) or ():
                    named = cell.cell_contents
                    if isinstance(named, nn.Module) and named not in parts:
                        return type(named).__name__
        return ""


@contextlib.contextmanager
def _as_written() -> Iterator[None]:
    """Where torch's compiler was imported: compiled modules and functions run without it."""
    imported = sys.modules.get("torch._dynamo")
    with torch.compiler.set_stance("force_eager") if imported else contextlib.nullcontext():
        yield


def _apply(part: nn.Module, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    """In place of torch's own, for `Module.to` and its like: the part gets other tensors, made from
    those that it has. (torch's puts numbers of another type into the same tensor, which under
    torch.func crashes.)"""
    for child in part.children() if recurse else ():
        child._apply(convert)
    for tensors in (part._parameters, part._buffers):
        for name, tensor in tensors.items():
            tensors[name] = None if tensor is None else convert(tensor)  # type: ignore[assignment]
    return part


def _is_as(module: nn.Module, state: list[Any]) -> bool:
    try:
        return bool(_state(module) == state)
    except Exception:  # of keys that do not compare
        return False


def _state(module: nn.Module) -> list[Any]:
    """All that a run may change in a module, but for entries of tensors; equal to no other where it
    has objects of which that is not known."""
    parts = list(module.modules())
    state = _State(parts)
    try:
        return [
            [(key, state.of(value)) for key, value in vars(part).items() if key != "_apply"]
            for part in parts
        ]
    except Exception:  # a user's object may raise anything
        return [float("nan")]


class _State:
    """What the attributes of a module's parts are. What `copy.deepcopy` leaves the same object is
    only that; an object of Python classes is its attributes, where they are met first."""

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        self.parts, self.met = set(parts), set[int]()
        self.weights = {id(p) for part in parts for p in part._parameters.values()}

    def of(self, value: Any) -> Any:
        """Equal only for the same objects in the same places, and numbers of one type and value."""
        kind: Any = type(value)
        if kind in PLAIN:
            return kind, value
        if kind in MAPS or kind in LISTS:
            if id(value) in self.met:
                return _Same(value)
            self.met.add(id(value))
        if kind in MAPS:
            return kind, [(key, self.of(v)) for key, v in value.items()] if value else ()
        if kind in LISTS:
            return kind, [self.of(v) for v in value]
        if kind in (float, complex) or (issubclass(kind, np.number) and kind.__module__ == "numpy"):
            return kind, repr(value)
        if isinstance(value, nn.Module):  # one in a plain list is no part: its state is not seen
            return _Same(value) if value in self.parts else float("nan")
        if isinstance(value, nn.Parameter) and id(value) not in self.weights:
            return float("nan")  # of an object: it is copied, and may be changed in place
        if kind in ATOMS or isinstance(value, Tensor | type | Enum):
            return _Same(value)
        if kind is MethodType:
            return _Same(value.__func__), self.of(value.__self__)
        if not _is_its_attributes(kind):
            return float("nan")
        if id(value) in self.met:
            return _Same(value)
        self.met.add(id(value))
        return _Same(value), self.of(vars(value))


class _Plain:
    """An object that has nothing but attributes."""


@functools.cache
def _is_its_attributes(kind: type) -> bool:
    """Whether an object of this class has nothing else, and is copied by them."""
    sizes = "__basicsize__", "__dictoffset__", "__weakrefoffset__"
    ways = "__reduce_ex__", "__reduce__", "__getstate__"
    same = all(getattr(kind, word) == getattr(_Plain, word) for word in (*sizes, *ways))
    return same and not hasattr(kind, "__deepcopy__")


class _Same:
    """Equal to those of the same object, which it keeps: its address is not given to another."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


class _Copying(TorchFunctionMode):
    """A copy of a tensor that was computed from others, as a pruned weight, is NaN: the module has
    to compute it again, from its own weights, before it is used."""

    def __init__(self, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.dtype, self.found = dtype, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__ and args[0].grad_fn is not None:
            self.found = True
            return torch.full_like(args[0].detach(), float("nan"), dtype=self.dtype)
        return func(*args, **(kwargs or {}))


class _Sharing(TorchFunctionMode):
    """Tensors are not copied."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is Tensor.__deepcopy__ else func(*args, **(kwargs or {}))


def _own_constants(module: nn.Module) -> None:
    """What a part takes from its own type is written out, before it has another."""
    for part in module.modules():
        if isinstance(part, nn.RMSNorm) and part.eps is None:
            known = [p.dtype for p in (part.weight, *module.parameters()) if p is not None]
            part.eps = torch.finfo(known[0] if known else torch.float32).eps


def _with_type(values: Tensor, dtype: torch.dtype, device: str | None) -> Tensor:
    """Real numbers in this type, complex ones (buffers) in the one twice as wide."""
    if values.is_complex():
        dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    elif not values.is_floating_point():
        dtype = values.dtype
    return values.to(device=device, dtype=dtype)


def _in_words(error: Exception) -> str:
    if isinstance(error, RuntimeError | ValueError | TypeError | IndexError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def agree(a: Tensor, b: Tensor) -> bool:
    """But for rounding."""
    scale = torch.maximum(a.abs().max(), b.abs().max())
    return bool((a - b).abs().max() <= torch.finfo(a.dtype).eps ** AGREES * scale)
