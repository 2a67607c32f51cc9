"""How a module rounds, by trial: its operations with errors far larger than those of rounding.

Every operation on numbers that follow from samples or weights (`Watching`) gets inputs and results
that are off by random relative errors of COARSER units of rounding of their type, inputs of sums of
k terms by √k times as much: Monte Carlo arithmetic (Parker, UCLA CSD-970002, 1997). What that
changes, over COARSER, estimates what rounding itself does: cancellation is seen wherever it
happens, in any range of numbers; within an operation only where it is known (`INSIDE`). What is
exact gets no errors: constants, whole numbers, ±∞ and the largest numbers of a type, as in masks.

A kink is a jump in the derivative, as ReLU's at 0. Its inputs are held against those of the plain
run: one that is as near to the kink as rounding may have moved it is moved across (`Crossed`). Of
operations that are not `LISTED` nobody knows the kinks: what errors as small as those of rounding
change there is measured (`gradient_error`). Where the largest of some entries is chosen, as in max
pooling, ties are decided the other way (`Swapped`). The gradient tells whether either matters.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ntkcond.library.operations import (
    ADDS_AT,
    CHOICES,
    COMPARES,
    CURVED,
    DECIDES,
    INSIDE,
    KINKS,
    LINEAR,
    LISTED,
    MOVES,
    NORMALISED,
    NORMS,
    POOLS,
    PRODUCTS,
    RANKED,
    SCALED,
    SHAPED,
    SUMS,
    WHOLE,
)

COARSER = {torch.float64: 2.0**13, torch.float32: 2.0**6}  # than rounding
AS_ROUNDING = 4.0  # as large as rounding, or a little larger
POOL = 2**20 + 7
MARGIN = 16.0  # of what random errors show, where a kink or a tie is near
LARGEST_INTEGER = 2.0**64  # of torch; above it are masks
NARROW = 1e-3  # of the scale on which a slope changes: errors below it change it in proportion
SATURATED = 0.03  # relative: what changes by more does so in no proportion to the errors


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _rounds(value: Any) -> bool:
    """Whether it has real or complex numbers, and a place in memory: others are zero throughout,
    sparse, or shapes alone."""
    return (
        isinstance(value, Tensor)
        and (value.is_floating_point() or value.is_complex())
        and value.layout == torch.strided
        and not value.is_meta
        and not value._is_zerotensor()
    )


def _tensors(args: Any, kwargs: dict | None = None) -> list[Tensor]:
    found = []
    for a in (
        (*args, *kwargs.values()) if kwargs else args if isinstance(args, list | tuple) else ()
    ):
        if isinstance(a, Tensor):
            found.append(a)
        elif isinstance(a, list | tuple):
            found += _tensors(a)
    return found


class _Operation(NamedTuple):
    """name: without its variant; base: and without the underscore of those that change an input;
    changes: one of its inputs in place; shares: its result is an input, or shares its memory;
    has_words: whether it takes any, which may say how it chooses (`CHOICES`). The rest: whether it
    stands in the list of that name."""

    name: str
    base: str
    changes: bool
    shares: bool
    is_view: bool
    has_words: bool
    shaped: bool
    decides: bool
    compares: bool
    chooses: bool
    moves: bool
    sums: bool
    listed: bool


@functools.cache
def _operation(func: Any) -> _Operation:
    name, changes = func.overloadpacket.__name__, func._schema.is_mutable
    base = name.removesuffix("_")
    shares = any(r.alias_info is not None for r in func._schema.returns)
    return _Operation(
        name, base, changes, shares, shares and not changes,
        any("str" in str(a.type) for a in func._schema.arguments),
        name in SHAPED, name in DECIDES, name in COMPARES, base in POOLS | RANKED, base in MOVES,
        base in SUMS, base in LISTED,
    )  # fmt: skip


class _Seen(NamedTuple):
    """An operation's name; its inputs' distances to its kink, or those it chooses from; whether a
    distance moves with the first input, by as much."""

    name: str
    values: Tensor
    moved: bool = False


class Watching(TorchDispatchMode):
    """Runs operations as they are, and knows which numbers follow from samples or weights: all
    others are constants of the program, which no rounding moves. sources: samples and weights.

    kinds: types of the real numbers that follow from them. decides: whether the program asked for a
    value, or compared some."""

    def __init__(self, sources: Iterable[Tensor]) -> None:
        super().__init__()
        self.kinds: set[torch.dtype] = set()
        self.decides = False
        # By the place in memory; None: of samples, but so far whole numbers, which do not round.
        self._follows: dict[int, bool | None] = {}
        self._places: list[object] = []  # so that none is given to another tensor
        for source in sources:
            self._note(source, source.is_floating_point() or None)

    def _note(self, t: Tensor, follows: bool | None) -> None:
        place = _place(t)
        if place not in self._follows:
            strided = t.layout == torch.strided
            self._places.append(StorageWeakRef(t.untyped_storage()) if strided else t)
        self._follows[place] = follows

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler for it (1.4 s), and ask it at each operation."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs, operation = kwargs or {}, _operation(func)
        given = [] if operation.shaped else [self._state(t) for t in _tensors(args, kwargs)]
        follows = True in given
        whole = not follows and None in given
        self.decides |= operation.decides or (follows and operation.compares)
        result = self._run(func, operation, args, kwargs) if follows else func(*args, **kwargs)
        for t in (result,) if isinstance(result, Tensor) else _tensors(result):
            still = whole and not (_rounds(t) and not _is_whole(t, of_samples=True))
            self._note(t, None if still else follows or whole)
            if (follows or (whole and not still)) and (t.is_floating_point() or t.is_complex()):
                self.kinds.add(t.real.dtype if t.is_complex() else t.dtype)
        return result

    def _state(self, t: Tensor) -> bool | None:
        """Whether a tensor rounds (`_follows`); of what no operation gave, as a buffer, if it is
        not whole."""
        place = _place(t)
        if place not in self._follows:
            self._note(t, _rounds(t) and not _is_whole(t))
        return self._follows[place]

    def _run(self, func: Any, operation: _Operation, args: tuple, kwargs: dict) -> Any:
        """An operation on numbers that follow from samples or weights."""
        return func(*args, **kwargs)


def _place(t: Tensor) -> int:
    if t.layout != torch.strided:
        return id(t)
    return t.untyped_storage()._cdata


def _is_whole(t: Tensor, of_samples: bool = False) -> bool:
    """Whether all entries are whole, infinite or the largest of their type; of all that is in the
    same place. of_samples: and not so large that their type has no others."""
    whole = t.detach()
    if t.layout == torch.strided and not t.is_conj() and not t.is_neg():
        whole = t.new_empty(0).set_(t.untyped_storage())
    if whole.is_complex():
        whole = torch.view_as_real(whole)
    whole = whole.float() if whole.dtype.itemsize == 1 else whole
    exact = (whole == whole.round()) | ~whole.isfinite()
    if of_samples:
        size = whole.abs()
        exact &= (size <= 0.5 / _limits(whole.dtype)[0]) | (size > LARGEST_INTEGER)
    return bool(exact.all())


class Plain(Watching):
    """Keeps distances to kinks, what is chosen from, and names of operations that are not `LISTED`:
    these may have kinks that nobody knows of. linear: whether all operations are `LINEAR` or
    `CURVED`; curved: what may move by little alone, of the latter."""

    def __init__(self, sources: Iterable[Tensor]) -> None:
        super().__init__(sources)
        self.linear, self.unlisted = True, set[str]()
        self.curved: list[Tensor] = []
        self.distances: list[_Seen] = []
        self.choices: list[_Seen] = []

    def _run(self, func: Any, operation: _Operation, args: tuple, kwargs: dict) -> Any:
        self._keep(operation, args, kwargs)
        result = func(*args, **kwargs)
        self._keep_curved(operation, args, result)
        return result

    def _keep(self, operation: _Operation, args: tuple, kwargs: dict) -> None:
        if operation.is_view:
            return
        name = operation.base
        if not _is_listed(operation, args) and any(map(_rounds, _tensors(args))):
            self.unlisted.add(name)
        if name in KINKS:
            moved = name not in SCALED and not operation.changes
            self.distances += [
                _Seen(name, v.detach().clone(), moved and v.shape == args[0].shape)
                for v in _distances(name, args, kwargs)
                if _is_real(v)
            ]
        if operation.chooses and _chooses(args):
            self.choices.append(_Seen(name, args[0].detach().clone()))

    def _keep_curved(self, operation: _Operation, args: tuple, result: Any) -> None:
        name = operation.base
        if not self.linear or operation.is_view or name in LINEAR:
            return
        if name == "div":  # by a constant
            self.linear = not (isinstance(args[1], Tensor) and self._state(args[1]))
        elif name == "pow":
            self.linear = not isinstance(args[1], Tensor) and args[1] in (2, 3)
        elif name in ("native_batch_norm", "native_batch_norm_backward"):  # statistics are given
            self.linear = not (args[5] if name == "native_batch_norm" else args[7])
        elif name in CURVED and not operation.changes:
            self.curved.append(CURVED[name](args, result).detach().clone())
        else:
            self.linear = False


def _distances(name: str, args: tuple, kwargs: dict) -> Iterator[Any]:
    """Distances of what an operation is given to its kink."""
    if name in KINKS and any(map(_is_real, args)):
        named = {key: kwargs[key] for key in kwargs.keys() & {"decimals", "rounding_mode", "dtype"}}
        yield from KINKS[name](*args, **named)


class Perturbed(Plain):
    """Runs operations with random errors. seed: of these; coarser: how many times rounding."""

    def __init__(self, sources: Iterable[Tensor], seed: int, coarser: float) -> None:
        super().__init__(sources)
        self.random, self.coarser = np.random.default_rng(seed), coarser
        self._places_in_pool: list[int] = []

    def _run(self, func: Any, operation: _Operation, args: tuple, kwargs: dict) -> Any:
        self._keep(operation, args, kwargs)
        if operation.is_view or _only_moves(operation, args, kwargs):
            result = func(*args, **kwargs)
            moved = self._moved(result, 1.0) if _lowers(operation.base, args, result) else result
            return _in_place(result, moved) if operation.shares else moved
        growth = math.sqrt(_terms(operation.base, args)) if operation.sums else 1.0
        once = {id(a): self._moved(a, growth) for a in args}  # x == x stays true: isfinite
        given = tuple(once[id(a)] for a in args)
        if operation.name == operation.base:
            result = func(*given, **kwargs)
        else:
            result = func(_in_place(args[0], given[0]), *given[1:], **kwargs)
        moved = self._with_its_own(operation.base, args, given, kwargs, result, growth)
        self._keep_curved(operation, args, moved)
        return _in_place(result, moved) if operation.shares else moved

    def _with_its_own(
        self, name: str, args: tuple, given: tuple, kwargs: dict, result: Any, growth: float
    ) -> Any:
        """The result with errors of the operation, beside those of what it was given."""
        if name in INSIDE:
            size = INSIDE[name](given, kwargs, result)
            result = result + self._error(size, 1.0)
        if name in NORMALISED:
            result = (result[0] + self._shifted(name, args, result, growth), *result[1:])
        if name in PRODUCTS or name in WHOLE:  # that of √k errors in its terms is larger
            return result
        if isinstance(result, tuple | list):
            return type(result)(self._moved(r, 1.0, given=False) for r in result)
        return self._moved(result, 1.0, given=False)

    def _shifted(self, name: str, args: tuple, result: Any, growth: float) -> Tensor:
        """What rounding x − mean changes in a normalised x, relative to x and not to the
        difference: no error of the input has that effect on the exact result."""
        x, rstd = args[0], result[2]
        if not rstd.numel():  # statistics were given
            return torch.zeros_like(result[0])
        noise = self._error(x, growth)
        channels = (-1, *[1] * (x.ndim - 2))
        if name == "native_layer_norm":
            return noise * rstd * (1 if args[2] is None else args[2])
        if name == "native_group_norm":
            noise = (noise.reshape(*rstd.shape, -1) * rstd[..., None]).reshape(x.shape)
        else:
            noise = noise * rstd.reshape(channels)
        return noise * (1 if args[1] is None else args[1].reshape(channels))

    def _moved(self, value: Any, growth: float, given: bool = True) -> Any:
        """With errors of the precision of its type. given: to an operation: not if it is exact."""
        if isinstance(value, list):
            return [self._moved(v, growth, given) for v in value]
        if not isinstance(value, Tensor) or (given and not self._state(value)):
            return value
        if not _rounds(value):
            return value
        if value.is_complex():
            parts = torch.view_as_real(value.resolve_conj())
            return torch.view_as_complex(self._with_errors(parts, growth))
        return self._with_errors(value, growth)

    def _place_in_pool(self) -> int:
        if not self._places_in_pool:
            self._places_in_pool = self.random.integers(POOL, size=256).tolist()[::-1]
        return self._places_in_pool.pop()

    def _with_errors(self, value: Tensor, growth: float) -> Tensor:
        largest = _limits(value.dtype)[1]
        if value.dtype.itemsize == 1:  # float8, in which torch does not compute
            growth *= _limits(value.dtype)[0] / _limits(torch.float32)[0]
            moved = self._with_errors(value.float(), growth)
            return moved.clamp(-largest, largest).to(value.dtype)
        if not value.numel():
            return value
        low, high = torch.aminmax(value)
        tame = -largest / 8 < low.item() <= high.item() < largest / 8  # no masks, nor NaN
        # what an operation has made may be changed in place: fresh memory takes longer
        out = value if tame and _place(value) not in self._follows else None
        moved = self._added(value, value, growth, out)
        return moved if tame else torch.where(value.abs() < largest / 8, moved, value)

    def _error(self, size: Tensor, growth: float) -> Tensor:
        """Errors relative to a size, 0 where it is infinite or of a mask."""
        moved = self._added(torch.zeros_like(size), size, growth, None)
        return torch.where(size.abs() < _limits(size.dtype)[1] / 8, moved, 0.0)

    def _added(self, value: Tensor, size: Tensor, growth: float, out: Tensor | None) -> Tensor:
        unit = min(0.125, growth * self.coarser * _limits(value.dtype)[0] / 2)
        pool, first, n = _pool(value.dtype, value.device), self._place_in_pool(), value.numel()
        if first + n <= POOL:
            noise = pool.narrow(0, first, n).view(value.shape)
            return torch.addcmul(value, size, noise, value=unit, out=out)
        value, size, shape = value.reshape(-1), size.reshape(-1), value.shape
        moved = torch.empty_like(value) if out is None or not out.is_contiguous() else value
        start = 0
        while start < n:
            noise = pool[first : first + n - start]
            part = slice(start, start + len(noise))
            torch.addcmul(value[part], size[part], noise, value=unit, out=moved[part])
            start, first = part.stop, 0
        return moved.view(shape)


class Leaving(TorchFunctionMode):
    """Numbers that leave torch for NumPy or Python have random errors of so many units of rounding
    of their type. seen: whether any left."""

    def __init__(self, seed: int, units: float) -> None:
        super().__init__()
        self.random, self.units, self.seen = np.random.default_rng(seed), units, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in (Tensor.numpy, Tensor.__array__, Tensor.tolist):
            return result
        numbers = np.asarray(result)
        if numbers.dtype.kind != "f":
            return result
        self.seen = True
        if not self.units:  # an array stays in the tensor's memory
            return result
        error = min(0.125, self.units * float(np.finfo(numbers.dtype).eps) / 2)
        moved = numbers * (1 + error * self.random.uniform(-1, 1, numbers.shape))
        return moved.tolist() if func is Tensor.tolist else moved.astype(numbers.dtype)


@functools.cache
def _limits(dtype: torch.dtype) -> tuple[float, float]:
    """The distance from 1 to the next number, and the largest number, of a type."""
    return torch.finfo(dtype).eps, torch.finfo(dtype).max


@functools.cache
def _pool(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Random numbers from −1 to 1. An operation takes those from a random place on: to draw new
    ones for each would take most of the time."""
    numbers = np.random.default_rng(0).uniform(-1, 1, POOL)
    return torch.from_numpy(numbers).to(device, dtype)


def stirred(p: Tensor, by: float) -> Tensor:
    """A weight that is moved by random numbers of up to so much."""
    pool, n = _pool(p.dtype, p.device), p.numel()
    noise = pool[:n] if n <= POOL else pool.repeat(-(-n // POOL))[:n]
    return torch.add(p.detach(), noise.view(p.shape), alpha=by)


def _chooses(args: tuple) -> bool:
    """Whether an operation of `POOLS` or `RANKED` does: max(a, b) is maximum(a, b)."""
    return _is_real(args[0]) and not (len(args) > 1 and _is_real(args[1]))


class Swapped(Watching):
    """Runs operations as they are, but for ties: each choice is made after the first and the second
    by size, the third and the fourth …, have come nearer by `reach`, or, odd, the second and the
    third. by_value: what has the same value goes together. reaches: of each choice in turn, to be
    broadcast (`reaches`)."""

    def __init__(
        self, sources: Iterable[Tensor], reaches: list[Tensor], odd: bool, by_value: bool
    ) -> None:
        super().__init__(sources)
        self.reaches, self.odd, self.by_value = iter(reaches), odd, by_value
        self._moved = _Moved()

    def _run(self, func: Any, operation: _Operation, args: tuple, kwargs: dict) -> Any:
        name = operation.name
        if name == "eq" and len(args) == 2:  # the gradient of amax goes where self == result
            args = self._moved.instead(args)
        chooses = operation.chooses and _chooses(args)
        reach = next(self.reaches, None) if chooses else None
        if reach is None:
            return func(*args, **kwargs)
        z = args[0]
        if name in POOLS:
            moved = self._winners(z, func, name, args, kwargs)
        else:
            moved = self._by_rank(z, func._schema, args, kwargs)
        self._moved.keep(z, z - reach * moved)
        return func(z - reach * moved, *args[1:], **kwargs)

    def _winners(self, z: Tensor, func: Any, name: str, args: tuple, kwargs: dict) -> Tensor:
        """1 of the largest of each window; by_value: of all entries as large."""
        spatial = 3 if "3d" in name else 2
        flat, largest = z.flatten(-spatial), None
        moved = torch.zeros_like(flat)
        while True:
            lowered = torch.where(moved > 0, -math.inf, flat).reshape(z.shape)
            at = func(lowered, *args[1:], **kwargs)[1].flatten(-spatial)
            found = flat.gather(-1, at)
            largest = found if largest is None else largest
            new = (found == largest) & (moved.gather(-1, at) == 0)
            if not new.any():
                return moved.reshape(z.shape)
            moved = moved.scatter_add(-1, at, new.to(z.dtype)).clamp(max=1)
            if not self.by_value:
                return moved.reshape(z.shape)

    def _by_rank(self, z: Tensor, schema: Any, args: tuple, kwargs: dict) -> Tensor:
        """1 of what is to become smaller, −1 of what is to become larger."""
        names = [a.name for a in schema.arguments]
        passed = {**dict(zip(names, args, strict=False)), **kwargs}
        dims = passed.get("dim", -1 if "dim" in names else None)
        if dims is None or dims == []:
            dims = list(range(z.ndim))
        dims = [dims] if isinstance(dims, int) else list(dims)
        last = z.movedim(dims, list(range(-len(dims), 0)))
        flat = last.reshape(*last.shape[: -len(dims)], -1)
        rank = flat.argsort(-1, descending=True).argsort(-1)
        if self.by_value:
            ordered = flat.sort(-1, descending=True).values
            steps = (ordered.diff(dim=-1) != 0).cumsum(-1)
            rank = torch.cat([torch.zeros_like(rank[..., :1]), steps], -1).gather(-1, rank)
        sign = 1.0 - 2.0 * ((rank + self.odd) % 2)
        return sign.to(z.dtype).reshape(last.shape).movedim(list(range(-len(dims), 0)), dims)


class Crossed(Watching):
    """Runs operations as they are, but with what is near their kinks on its other side, there and
    in all that follows. by: of each distance in turn, by how much it is moved, or None."""

    def __init__(self, sources: Iterable[Tensor], by: list[Tensor | None], sign: float) -> None:
        super().__init__(sources)
        self.by, self.sign = iter(by), sign
        self._moved = _Moved()

    def _run(self, func: Any, operation: _Operation, args: tuple, kwargs: dict) -> Any:
        args = self._moved.instead(args)
        count = sum(map(_is_real, _distances(operation.base, args, kwargs)))
        if not count:
            return func(*args, **kwargs)
        z: Tensor = args[0]
        for move in [next(self.by, None) for _ in range(count)]:
            if move is not None and isinstance(z, Tensor) and move.shape == z.shape:
                z = z + self.sign * move
                self._moved.keep(args[0], z)
        return func(z, *args[1:], **kwargs)


class _Moved:
    """Tensors that stand in place of others, wherever these are used."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, torch.Size], tuple[Tensor, Tensor]] = {}

    def keep(self, given: Tensor, moved: Tensor) -> None:
        self._of[_place(given), given.shape] = given, moved  # which stays, so that its place does

    def instead(self, args: tuple) -> tuple:
        return tuple(
            self._of.get((_place(a), a.shape), (a, a))[1] if isinstance(a, Tensor) else a
            for a in args
        )


def _only_moves(operation: _Operation, args: tuple, kwargs: dict) -> bool:
    """Whether an operation gives numbers that it is given: the backward pass asks which."""
    if operation.name == "linalg_vector_norm":
        return len(args) > 1 and math.isinf(args[1])
    return (operation.moves and "reduce" not in kwargs) or _has_choice(operation, args)


def _has_choice(operation: _Operation, args: tuple) -> bool:
    return operation.has_words and any(isinstance(a, str) and a in CHOICES for a in args)


def _is_listed(operation: _Operation, args: tuple) -> bool:
    if _has_choice(operation, args):
        return False
    if operation.base in NORMS:  # others are no smooth functions
        order = NORMS[operation.base]
        return all(a == 2 for a in args[order : order + 1])
    return operation.listed


def _in_place(values: Any, moved: Any) -> Any:
    """Tensors with other numbers."""
    for old, new in zip(_tensors((values,)), _tensors((moved,)), strict=True):
        if new is not old:
            old.copy_(new)
    return values


def _lowers(name: str, args: tuple, result: Any) -> bool:
    """Whether a move is to a type of lower precision."""
    if name not in ("_to_copy", "copy"):
        return False
    source = args[0] if name == "_to_copy" else args[1]
    if not (_is_real(source) and _is_real(result)):
        return False
    return torch.finfo(result.dtype).eps > torch.finfo(source.dtype).eps


def _terms(name: str, args: tuple) -> int:
    """How many a sum has, at most."""
    if name in ADDS_AT:
        ones = (torch.ones_like(a) if _rounds(a) else a for a in args[1:])
        counts = ADDS_AT[name](torch.zeros_like(args[0]), *ones)
        return max(1, int(counts.abs().max())) if counts.numel() else 1
    real = [a for a in args if _rounds(a) and a.ndim]
    if name == "addbmm":
        return real[1].shape[0] * real[1].shape[-1]
    if name in ("mm", "bmm", "mv", "dot"):
        return real[0].shape[-1]
    if name in ("addmm", "baddbmm", "addmv"):
        return real[1].shape[-1]
    if name.startswith("convolution"):  # input, weight; or gradient, input, weight
        return math.prod(real[2 if name.endswith("backward") else 1].shape[1:])
    return max(1, math.prod(real[0].shape[1:])) if real else 1


def coarser(dtype: torch.dtype) -> float:
    """COARSER, of a module in this type."""
    return COARSER.get(dtype, AS_ROUNDING)


def reach_of(
    run: Callable[[], Tensor], plain: Tensor, sources: Iterable[Tensor], dtype: torch.dtype
) -> float:
    """By how much rounding may change what a run gives: infinite where random errors saturate."""
    reach, sources = 0.0, list(sources)
    for seed, errors in enumerate((coarser(dtype),) * 2 + (AS_ROUNDING,) * 2):
        with Perturbed(sources, seed, errors):
            away = float((run() - plain).abs().max())
        if errors > AS_ROUNDING and not away <= SATURATED * float(plain.abs().max()):
            return math.inf
        reach = max(reach, MARGIN / errors * away)
    return reach


def reaches(plain: Plain, perturbed: Perturbed, samples: int) -> list[Tensor] | None:
    """By how much rounding may have moved what each operation chooses from; None where both runs
    differ in their operations."""
    moved = []
    if len(plain.choices) != len(perturbed.choices):
        return None
    for before, after in zip(plain.choices, perturbed.choices, strict=True):
        if before.name != after.name or before.values.shape != after.values.shape:
            return None
        away = (after.values - before.values).abs()
        rows = away.ndim > 0 and len(away) == samples
        dims = tuple(range(1, away.ndim)) if rows else tuple(range(away.ndim))
        reach = away.amax(dims, keepdim=True) if dims and away.numel() else away
        moved.append(MARGIN / perturbed.coarser * reach)
    return moved


def in_proportion(plain: Plain, perturbed: Perturbed) -> bool:
    """Whether what errors change grows with them, but at kinks and choices."""
    return (
        plain.linear
        and perturbed.linear
        and len(plain.curved) == len(perturbed.curved)
        and all(map(_moved_by_little, plain.curved, perturbed.curved))
    )


def _moved_by_little(before: Tensor, after: Tensor) -> bool:
    away = (after - before).abs().nan_to_num(nan=0.0)  # of infinite ones, as in masks
    return not away.numel() or float(away.max()) <= NARROW


def near_kinks(
    plain: Plain, perturbed: Perturbed, samples: int
) -> tuple[Tensor, list[Tensor | None]]:
    """How many inputs of each sample are so near a kink that rounding may have moved them across,
    (samples,), and by how much each must be moved to be across (`Crossed`). Where operations differ
    between both runs, or do not tell samples apart, all are."""
    total = torch.zeros(samples, dtype=torch.int64)
    moves: list[Tensor | None] = []
    if len(plain.distances) != len(perturbed.distances):
        return total + 1, moves
    for before, after in zip(plain.distances, perturbed.distances, strict=True):
        if before.name != after.name or before.values.shape != after.values.shape:
            return total + 1, []
        a, b = before.values, after.values
        rows = a.ndim > 0 and len(a) == samples
        a, b = (v.reshape(samples if rows else 1, -1) for v in (a, b))
        away = (b - a).abs().nan_to_num(nan=0.0)  # of infinite ones, as in masks
        reach = away.amax(1, keepdim=True) if a.numel() else a.new_zeros(len(a), 1)
        reach = MARGIN / perturbed.coarser * reach
        near = (a.abs() <= reach) & ((a != 0) | (b != 0)) & (reach > 0)
        moves.append((2 * reach * near).reshape(before.values.shape) if near.any() else None)
        total += near.sum(1).cpu() if rows else near.sum().cpu()
    return total, moves


def can_cross(plain: Plain, moves: list[Tensor | None]) -> bool:
    """Whether `Crossed` moves all that is near a kink."""
    pairs = zip(plain.distances, moves, strict=True)
    return bool(moves) and all(move is None or seen.moved for seen, move in pairs)
