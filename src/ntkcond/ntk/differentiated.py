"""Gradients of a module's outputs with respect to chosen parameters, sample by sample.

Layers that have a rule (`ntkcond.ntk.per_sample_gradients`) need one backward pass for all samples
together. On a few samples it is checked that their gradients can be told apart by sample and add up
to autograd's; in every pass, by its graph, that no parameter has another use. The other parameters
are differentiated sample by sample, by torch.func.
"""

import copy
import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.func import functional_call, grad, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from ntkcond.ntk.per_sample_gradients import Explicit, Gradients, Rule, rule
from ntkcond.ntk.perturbation import reach_of
from ntkcond.run.errors import UserError
from ntkcond.run.units import size

ByName = dict[str, list[Gradients]]  # of a parameter, for each output or use
AGREES = 0.58  # power of ε: rounding is far below it, a use of a weight that was not seen far above


class _Layer(NamedTuple):
    """names: of its chosen parameters, by their names in the layer."""

    rule: Rule
    names: dict[str, str]


class _Use(NamedTuple):
    """A call of a layer that has a rule: its input, what it gave, and where that stands in the
    graph, before anything changes it in place."""

    rule: Rule
    layer: nn.Module
    inputs: Tensor
    result: Tensor
    edge: GradientEdge


class _Entries(NamedTuple):
    """How many numbers a sample takes: the graph with what layers were given and gave; for each
    output what is propagated back, and the gradients that are kept; and those of the largest
    parameter while they are computed and multiplied."""

    graph: int
    backward: int
    kept: int
    passing: int


class Differentiated:
    """A copy of a module in a type of its own, and the gradients of its outputs with respect to the
    chosen parameters. by_jacobian: names of those that are differentiated sample by sample.
    Once checked: calls of layers and of other parameters; the unit_roundoff of the lowest precision
    in which the module computes."""

    def __init__(
        self,
        module: nn.Module,
        names: Sequence[str],
        dtype: torch.dtype = torch.float64,
        device: str | None = None,
    ) -> None:
        try:
            self.module = copy.deepcopy(module)._apply(lambda t: _with_type(t, dtype, device))
        except (RuntimeError, TypeError) as error:
            raise UserError(f"the module cannot be copied: {error}") from error
        self.dtype = dtype
        self.parameters: dict[str, Tensor] = {}
        for name, p in self.module.named_parameters():
            p.requires_grad_(name in names)
            if name in names:
                self.parameters[name] = p
        named = {id(p): name for name, p in self.parameters.items()}
        self._layers: dict[nn.Module, _Layer] = {}
        for layer in self.module.modules():
            direct = dict(layer.named_parameters(recurse=False))
            chosen = {
                word: named[id(p)]
                for word, p in direct.items()
                if word in ("weight", "bias") and id(p) in named
            }
            layer_rule = rule(layer)
            if chosen and layer_rule:
                self._layers[layer] = _Layer(layer_rule, chosen)
        of_layers = {name for layer in self._layers.values() for name in layer.names.values()}
        self.by_jacobian = set(self.parameters) - of_layers
        self.calls, self.unit_roundoff = 0, math.nan
        self._entries = _Entries(0, 0, 0, 0)

    def check(self, x: Tensor) -> int:
        """The number of outputs; finds out by a few samples which layers' gradients can be told
        apart by sample. Raises UserError as `kernel` does."""
        with torch.random.fork_rng():
            with torch.no_grad(), _Precisions() as seen:
                together = self._outputs(x)
            with torch.no_grad():
                alone = torch.cat([self._outputs(x[i : i + 1]) for i in range(len(x))])
            f, uses = self._recorded(x)
        if not together.isfinite().all():
            raise UserError("the module's output has NaN or infinite entries")
        if not _agree(together, f):
            raise UserError("the module's output changes from call to call: its NTK is not defined")
        if not _agree(together, alone):
            apart = float((together - alone).abs().max())
            if not apart <= reach_of(lambda: self._outputs(x), together, self.dtype):
                raise UserError(
                    "the module's output for a sample depends on the others of its batch: its NTK"
                    " is not defined"
                )
        if not f.requires_grad:
            raise UserError("the module's output does not depend on the chosen parameters")
        owned = set(self.parameters.values())
        if any(leaf not in owned for leaf in _uses(f)):
            raise UserError(
                "the module uses a weight that a copy of it does not own, as in a lambda or a hook"
                " that names the module itself: make it a parameter or a method of the part"
            )
        mixed = f @ torch.linspace(1, 2, f.shape[1], dtype=f.dtype, device=f.device)
        plain = self._told_apart(mixed, uses)
        totals = _gradients(mixed.sum(), list(self.parameters.values()))
        expected = dict(zip(self.parameters, totals, strict=True))
        by_layers = self._by_name(uses, plain)
        for name, by_use in by_layers.items():
            total = torch.stack([gradients.total() for gradients in by_use]).sum(0)
            if not _agree(total, expected[name].flatten()):
                self.by_jacobian.add(name)
        self.unit_roundoff = max(torch.finfo(t).eps for t in seen.kinds | {torch.float64}) / 2
        self._measure(x, uses, by_layers)
        return f.shape[1]

    def _measure(self, x: Tensor, uses: list[_Use], by_layers: ByName) -> None:
        """How many numbers a sample takes."""
        first = [by_output[0] for by_output in self(x, range(1)).values()]
        self.calls = len(uses) + len(self.by_jacobian)
        results = sum(use.result[0].numel() for use in uses)
        self._entries = _Entries(
            graph=sum(use.inputs[0].numel() for use in uses) + 2 * results,
            backward=results,
            kept=sum(one.kept for one in first),
            passing=max(one.passing for one in [*first, *chain.from_iterable(by_layers.values())]),
        )

    def tell_apart(self, x: Tensor) -> bool:
        """Finds the layers of which a row does not belong to the sample in its place, or to others
        too: as where samples are sorted. Their parameters join by_jacobian. Whether any did. Of all
        samples, which `check` sees a few of."""
        f, uses = self._recorded(x)
        before = set(self.by_jacobian)
        plain = self._told_apart(f.sum(1), uses)
        if self.by_jacobian != before:
            self._measure(x[:1], uses, self._by_name(uses, plain))
        return self.by_jacobian != before

    def _told_apart(self, f: Tensor, uses: list[_Use]) -> list[Tensor]:
        """The vectors back-propagated to each use; f: a number of each sample. If each is that of
        its own sample alone, it grows as the number that multiplies this sample's f."""
        factors = 2.0 ** torch.from_numpy(np.random.default_rng(0).integers(0, 4, len(f))).to(f)
        plain, scaled = (_of_results((f * c).sum(), uses) for c in (1, factors))
        for use, one, other in zip(uses, plain, scaled, strict=True):
            by_sample = len(use.inputs) == len(one) == len(f)  # and again in each pass
            if not by_sample or not _agree(other, one * factors.reshape(-1, *[1] * (one.ndim - 1))):
                self.by_jacobian |= set(self._layers[use.layer].names.values())
        return plain

    def outputs(self, x: Tensor) -> Tensor:
        """(n, k), without a graph."""
        with torch.no_grad():
            return self._outputs(x)

    def outputs_with_graph(self, x: Tensor) -> Tensor:
        """(n, k), to be differentiated with respect to `parameters`."""
        return self._outputs(x)

    def __call__(self, x: Tensor, outputs: range) -> ByName:
        """For each parameter, for each output, the gradients of all samples."""
        return self.with_outputs(x, outputs)[1]

    def with_outputs(
        self, x: Tensor, outputs: range, compact: bool = True
    ) -> tuple[Tensor, ByName]:
        """All outputs, (n, k), and the gradients of some. compact: as they are multiplied."""
        f, gradients = self._of_layers(x, outputs, compact)
        for name in sorted(self.by_jacobian):
            gradients[name] = []
        for j in outputs if self.by_jacobian else ():
            for name, values in self._of_samples(x, j).items():
                gradients[name].append(Explicit(values.reshape(len(x), -1)))
        return f, gradients

    def samples_at_once(self, outputs: int, memory: float, n: int) -> tuple[int, int]:
        """How many samples are differentiated at once, and of how many the gradients, of so many
        outputs, are kept, so that both together take so many bytes."""
        graph, backward, kept, passing = self._entries
        keeping = 8 * outputs * kept
        computing = 8 * (graph + outputs * backward + passing) + keeping
        if n * computing <= memory:
            return n, n
        at_once = max(1, int(memory / (4 * computing)))
        rows = int((memory - at_once * computing) / keeping)
        if rows < 1:
            raise UserError(
                f"the gradients of a sample take {size(computing)}, and those that they are"
                f" multiplied with {size(keeping)}, more than memory={size(memory)}. Raise it, or"
                " choose fewer parameters"
            )
        return min(at_once, rows), rows

    def checked_at_once(self, outputs: int, memory: float, n: int) -> int:
        """How many samples are differentiated at once to be held against two other runs of them,
        with the same memory."""
        graph, backward, kept, _ = self._entries
        return min(n, max(1, int(memory / (24 * (graph + outputs * (backward + kept))))))

    def _outputs(self, x: Tensor, weights: dict[str, Tensor] | None = None) -> Tensor:
        """(n, k)."""
        try:
            x = x.clone()  # which the module may change in place
            f = functional_call(self.module, weights, (x,)) if weights else self.module(x)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise UserError(
                f"the module fails on samples of shape {tuple(x.shape)} and type {x.dtype}: {error}"
            ) from error
        if not isinstance(f, Tensor):
            kind = type(f).__name__
            raise UserError(f"the module gives a {kind}: wrap it in one that gives a tensor")
        if f.is_complex() or not f.is_floating_point() or f.ndim < 1 or len(f) != len(x):
            raise UserError(
                f"of {len(x)} samples the module gives a tensor of shape {tuple(f.shape)} and type"
                f" {f.dtype}: it must be ({len(x)}, …), of real numbers"
            )
        return f.reshape(len(x), -1)

    def _recorded(self, x: Tensor) -> tuple[Tensor, list[_Use]]:
        """The outputs, and every call of a layer that has a rule and a chosen parameter."""
        uses: list[_Use] = []

        def record(layer: nn.Module, args: tuple, named: dict, result: Tensor) -> None:
            if result.requires_grad:  # not under torch.utils.checkpoint
                inputs = args[0] if args else next(iter(named.values()))
                edge = get_gradient_edge(result)
                uses.append(_Use(self._layers[layer].rule, layer, inputs.detach(), result, edge))

        hooks = [layer.register_forward_hook(record, with_kwargs=True) for layer in self._layers]
        try:
            with torch.enable_grad():
                return self._outputs(x), uses
        finally:
            for hook in hooks:
                hook.remove()

    def _of_layers(self, x: Tensor, outputs: range, compact: bool = True) -> tuple[Tensor, ByName]:
        """Outputs, and gradients with respect to the parameters of layers. One that is used
        elsewhere as well joins by_jacobian."""
        if self.by_jacobian >= self.parameters.keys():
            return self.outputs(x), {}
        f, uses = self._recorded(x)
        for use in uses:  # such as one that sees some of the samples
            if not len(use.inputs) == len(use.result) == len(x):
                self.by_jacobian |= set(self._layers[use.layer].names.values())
        called = Counter(name for use in uses for name in self._layers[use.layer].names.values())
        used = _uses(f)
        for name, p in self.parameters.items():
            if not called[name] or called[name] != used[p]:
                self.by_jacobian.add(name)
        by_name: ByName = {name: [] for name in sorted(self.parameters.keys() - self.by_jacobian)}
        for j in outputs:
            backs = _of_results(f[:, j].sum(), uses)
            for name, by_use in self._by_name(uses, backs).items():
                if name in by_name and len(by_use) == 1:
                    by_name[name].append(by_use[0].compact() if compact else by_use[0])
                elif name in by_name:
                    added = torch.stack([gradients.explicit() for gradients in by_use]).sum(0)
                    by_name[name].append(Explicit(added))
        return f.detach(), by_name

    def _by_name(self, uses: list[_Use], backs: list[Tensor]) -> ByName:
        """For each parameter, its gradients by each use."""
        parts: ByName = {}
        for use, back in zip(uses, backs, strict=True):
            names = self._layers[use.layer].names
            if not self.by_jacobian.issuperset(names.values()):
                of_use = use.rule(use.layer, use.inputs, back)
                for word, name in names.items():
                    parts.setdefault(name, []).append(of_use[word])
        return parts

    def _of_samples(self, x: Tensor, j: int) -> dict[str, Tensor]:
        """Gradients with respect to the others, (n, …) for each: by torch.func, or one after the
        other where the module does what torch.func cannot."""
        others = {name: self.parameters[name].detach() for name in sorted(self.by_jacobian)}

        def output(weights: dict[str, Tensor], sample: Tensor) -> Tensor:
            return self._outputs(sample[None], weights)[0, j]

        try:
            with torch.no_grad(), warnings.catch_warnings():  # none but with respect to `others`
                warnings.filterwarnings("ignore", "There is a performance drop")
                return vmap(grad(output), in_dims=(None, 0))(others, x)
        except (RuntimeError, UserError):
            rows = []
            for sample in x:
                with torch.enable_grad():
                    f = self._outputs(sample[None])[0, j]
                rows.append(_gradients(f, [self.parameters[name] for name in others]))
            return {name: torch.stack([row[i] for row in rows]) for i, name in enumerate(others)}


def distances(some: ByName, others: ByName) -> np.ndarray:
    """Norms of the differences of all gradients of each sample, of all outputs together, (n,)."""
    squared = [
        one.apart(other)
        for name in some
        for one, other in zip(some[name], others[name], strict=True)
    ]
    return torch.stack(squared).sum(0).sqrt().cpu().numpy()


def norms(gradients: ByName) -> np.ndarray:
    """Norms of all gradients of each sample, of all outputs together, (n,)."""
    squared = [g.squares() for by_output in gradients.values() for g in by_output]
    return torch.stack(squared).sum(0).sqrt().cpu().numpy()


def of_rows(gradients: ByName, index: Tensor) -> ByName:
    """The gradients of some of the samples."""
    return {name: [g.rows(index) for g in by_output] for name, by_output in gradients.items()}


class _Precisions(TorchDispatchMode):
    """kinds: the types of real numbers that operations give."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[torch.dtype] = set()

    def __torch_dispatch__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor) and value.is_floating_point():
                self.kinds.add(value.dtype)
        return result


def _of_results(f: Tensor, uses: list[_Use]) -> list[Tensor]:
    """Gradients of a number with respect to what each call gave."""
    return _gradients(f, [use.result for use in uses], [use.edge for use in uses])


def _gradients(
    f: Tensor, wanted: Sequence[Tensor], edges: Sequence[GradientEdge] | None = None
) -> list[Tensor]:
    """Gradients of a number with respect to each, zero where it does not depend on it; the graph is
    kept. edges: where they stand in the graph, if they were changed later."""
    if not wanted or not f.requires_grad:
        return [torch.zeros_like(w) for w in wanted]
    try:
        gradients = torch.autograd.grad(f, edges or wanted, retain_graph=True, allow_unused=True)
    except RuntimeError as error:  # such as checkpoints that only .backward() can use
        raise UserError(f"the module has no gradients that autograd can take: {error}") from error
    return [torch.zeros_like(w) if g is None else g for g, w in zip(gradients, wanted, strict=True)]


def _with_type(values: Tensor, dtype: torch.dtype, device: str | None) -> Tensor:
    """Real numbers in this type, complex ones (buffers) in the one twice as wide."""
    if values.is_complex():
        dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    elif not values.is_floating_point():
        dtype = values.dtype
    return values.to(device=device, dtype=dtype)


def _uses(f: Tensor) -> Counter[Tensor]:
    """How often each parameter is used in the computation of f, by its graph."""
    used: Counter[Tensor] = Counter()
    seen, waiting = set(), [f.grad_fn]
    while waiting:
        node = waiting.pop()
        for following, _ in node.next_functions if node else ():
            leaf = getattr(following, "variable", None)
            if leaf is not None:
                used[leaf] += 1
            elif following and following not in seen:
                seen.add(following)
                waiting.append(following)
    return used


def _agree(a: Tensor, b: Tensor) -> bool:
    """But for rounding."""
    scale = torch.maximum(a.abs().max(), b.abs().max())
    return bool((a - b).abs().max() <= torch.finfo(a.dtype).eps ** AGREES * scale)
