"""What a caller gives of a module: itself or a function, parameters, samples and an output."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ntkcond.library.inputs import (
    INNER,
    Choice,
    Samples,
    Wrapped,
    array_of,
    arrays_of,
    is_nested,
    joined,
)
from ntkcond.library.of_function import OfFunction
from ntkcond.run.errors import UserError

SETS = ("x", 2), ("x2", 1)  # names of sets of samples, and how many each must have


def as_module(module: nn.Module | Callable[..., Tensor], params: Any) -> nn.Module:
    if isinstance(module, nn.Module):
        if params is not None:
            raise UserError("params are of a function; a module has its own: leave them out")
        return module
    if not callable(module):
        kind = type(module).__name__
        raise UserError(f"an NTK is that of a torch.nn.Module or of a function, not of a {kind}")
    if params is None:
        raise UserError("the NTK of a function f(params, sample) needs params=")
    return OfFunction(module, params)


def chosen_parameters(module: nn.Module, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the parameters; refuses those that have no real gradient."""
    named = dict(module.named_parameters())
    first = {id(p): name for name, p in named.items()}
    every = [(name, first[id(p)]) for name, p in module.named_parameters(remove_duplicate=False)]
    for name, p in named.items():
        if nn.parameter.is_lazy(p):
            raise UserError(f"{name} has no shape yet: call the module on a sample first")
        if p.is_complex():
            raise UserError(f"{name} is complex: only real parameters have an NTK here")
    if wanted is None:
        names = tuple(name for name, p in named.items() if p.requires_grad)
        if not names:
            raise UserError("no parameter of the module requires a gradient: name some")
    else:
        words = [wanted] if isinstance(wanted, str) else list(wanted)
        for word in words:
            if not any(_is_within(name, word) for name, _ in every):
                raise UserError(f"the module has no parameter {word!r}. It has {', '.join(named)}")
        chosen = {owner for name, owner in every if any(_is_within(name, word) for word in words)}
        names = tuple(name for name in named if name in chosen)
        if not names:
            raise UserError("parameters is empty: name some, or leave it out for all")
    for name in names:
        if not named[name].is_floating_point():
            raise UserError(f"{name} has whole numbers: a gradient needs real ones")
    return names


def _is_within(name: str, word: str) -> bool:
    return name == word or name.startswith(word + ".") or fnmatchcase(name, word)


def refuse_training(module: nn.Module) -> None:
    for name, part in module.named_modules():
        kind = type(part).__name__
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (
            part.training or part.running_mean is None
        ):
            raise UserError(
                f"{name or 'the module'} ({kind}) uses the statistics of the batch, so that samples"
                " depend on each other: call module.eval()"
                + ("" if part.running_mean is not None else ", with track_running_stats=True")
            )
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and part.sparse:
            raise UserError(
                f"{name or 'the module'} ({kind}) has sparse gradients: build it with sparse=False"
            )
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and part.scale_grad_by_freq:
            raise UserError(
                f"{name or 'the module'} ({kind}) divides gradients by how often a token is in the"
                " batch, so that samples depend on each other: build it with"
                " scale_grad_by_freq=False"
            )
        if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
            raise UserError(
                f"{name or 'the module'} ({kind}) is on, so that the output is random: call"
                " module.eval()"
            )


def given(
    module: nn.Module | Callable[..., Tensor], sets: Sequence[Samples], choice: Choice
) -> tuple[nn.Module, tuple[str, ...], list[Tensor], int | str | None]:
    """A module, the names of its chosen parameters, samples as rows of a tensor, one set or two,
    and the output: from what `kernel` takes. Raises UserError for what it does not."""
    output, dtype = choice.output, choice.dtype
    module = as_module(module, choice.params)
    names = chosen_parameters(module, choice.parameters)
    refuse_training(module)
    device = next(p.device for name, p in module.named_parameters() if name in names)
    if device.type == "meta":
        raise UserError(
            "the module is on the meta device, which has no numbers: module.to_empty(device='cpu')"
            " and load its weights"
        )
    if dtype not in (torch.float64, torch.float32):
        raise UserError(f"dtype={dtype}: an NTK is computed in torch.float64 or torch.float32")
    if torch.is_autocast_enabled(device.type):
        raise UserError("autocast lowers the precision by parts: call outside of it, with dtype=")
    select = output if callable(output) else None
    which = None if callable(output) else output
    if not any(map(is_nested, sets)):
        arrays = [array_of(x, device, dtype, *name) for x, name in zip(sets, SETS, strict=False)]
        first, last = arrays[0], arrays[-1]
        if first.shape[1:] != last.shape[1:] or first.dtype != last.dtype:
            shapes = " and ".join(f"{tuple(s.shape)} of {s.dtype}" for s in arrays)
            raise UserError(f"x and x2 must be samples of one shape and type, not {shapes}")
        if select is None:
            return module, names, arrays, which
        return Wrapped(module, select), tuple(INNER + name for name in names), arrays, which
    nested = [arrays_of(x, device, dtype, *name) for x, name in zip(sets, SETS, strict=False)]
    inputs = nested[0][0] if len(nested) == 1 else joined(nested[0][0], nested[1][0])
    numbers = torch.arange(sum(n for _, n in nested), device=device)
    rows = list(numbers.split([n for _, n in nested]))
    return Wrapped(module, select, inputs), tuple(INNER + name for name in names), rows, which


def output_positions(wanted: int | str | None, count: int) -> range:
    """Positions of the outputs that `kernel`'s `output` names."""
    if wanted in ("trace", "all"):
        return range(count)
    if wanted is None and count > 1:
        raise UserError(
            f"the module has {count} outputs: say which, such as output=0, or output='trace' for"
            " the sum of their NTKs, or output='all' for one NTK of all"
        )
    position = 0 if wanted is None else wanted
    is_integer = isinstance(position, int | np.integer) and not isinstance(position, bool)
    if not is_integer or int(position) not in range(count):
        raise UserError(f"output={wanted!r}: it must be 0 to {count - 1}, 'trace' or 'all'")
    return range(int(position), int(position) + 1)
