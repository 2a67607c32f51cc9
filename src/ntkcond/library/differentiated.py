"""Gradients of a module's outputs with respect to chosen parameters, sample by sample.

In the graph of autograd each parameter meets the samples in some operations. Where these have a
rule (`backward_rules`), one backward pass of all samples together gives the gradients of each:
whatever the module's layers are called, of torch or of a user's own, and for weights that
are used several times. Where a tensor is computed from parameters alone before it meets samples, as
by weight normalisation, the gradients with respect to it are propagated on. On a few samples it is
found out where samples lie in what each operation gives, and checked that gradients add up to
autograd's. What has no rule is differentiated sample by sample, by torch.func.
"""

import contextlib
import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, saved_tensors_hooks
from torch.func import grad, vmap

from ntkcond.library.backward_rules import RULES, VIEWS, Layout, Meeting, gradients, layouts
from ntkcond.library.operations import APART
from ntkcond.library.per_sample_gradients import (
    CANCELS,
    Blocks,
    Explicit,
    Gradients,
    added,
    together,
)
from ntkcond.library.perturbation import Watching, reach_of
from ntkcond.library.running import Running, agree
from ntkcond.run.errors import UserError
from ntkcond.run.units import size

ByName = dict[str, list[Gradients]]  # of a parameter, for each output
SHARED = Layout(0, 0)  # of what does not depend on the samples
STILL = 4  # units of rounding that an output moves by, if other samples of its batch change
Node = Any  # an operation of autograd's graph
Form = tuple  # of a graph, as `_Graph.form` gives it
Answer = TypeVar("Answer")


class Changed(Exception):
    """A parameter has joined `by_jacobian`: gradients of other samples must be computed again."""


def settled(run: Callable[[], Answer]) -> Answer:
    """What it gives, once no parameter changes to `by_jacobian` while it runs."""
    while True:
        try:
            return run()
        except Changed:
            continue


class _Use(NamedTuple):
    """An operation in which a parameter meets the samples: as one of its inputs (`place`), of this
    shape, which is `source` in the graph. whole: that is the parameter, or an arrangement of its
    entries; otherwise something computed from it."""

    node: Node
    place: int
    source: GradientEdge
    shape: Sequence[int]
    whole: bool


class _Plan(NamedTuple):
    """How the gradients of a parameter follow. layouts: of each operation on its way, in order,
    with its name; SHARED where it is on the way only. views: the arrangements of its entries on the
    way, as slices. groups: uses of the same entries, which add
    up; different ones have none in common. mapped: unless so: all are brought to the parameter's
    entries."""

    layouts: list[tuple[str, Layout]]
    views: list[tuple]
    groups: list[list[int]]
    mapped: bool


class _Entries(NamedTuple):
    """How many numbers a sample takes: the graph; for each output what is propagated back, and the
    gradients that are kept; and those of the largest parameter while they are computed and
    multiplied."""

    graph: int
    backward: int
    kept: int
    passing: int


class _Found(NamedTuple):
    """What `Differentiated.check` found out about a module that keeps samples apart, whatever its
    numbers are: it holds for others in a graph of the same form."""

    form: Form
    plans: dict[str, _Plan]
    by_jacobian: frozenset[str]
    calls: int
    saved: int
    results: int
    entries: _Entries
    one_by_one: bool


_FOUND: WeakKeyDictionary[nn.Module, dict[tuple, _Found]] = WeakKeyDictionary()


class _Graph:
    """The graph of some outputs, (n, k): which operations use what each gives."""

    def __init__(self, f: Tensor) -> None:
        self.f = f
        self.users: dict[tuple[Node, int], list[tuple[Node, int]]] = defaultdict(list)
        self.leaves: dict[Tensor, Node] = {}
        self.results: dict[Node, set[int]] = defaultdict(set)
        seen, waiting = {f.grad_fn}, [f.grad_fn]
        while waiting:
            node = waiting.pop()
            for place, (before, number) in enumerate(node.next_functions if node else ()):
                if before is None:
                    continue
                self.users[before, number].append((node, place))
                self.results[before].add(number)
                if before not in seen:
                    seen.add(before)
                    leaf = getattr(before, "variable", None)
                    if leaf is not None:
                        self.leaves[leaf] = before
                    else:
                        waiting.append(before)

    def uses(
        self,
        parameter: Tensor,
        layout: Callable[[Node], Layout | None],
        views: list[tuple] | None = None,
    ) -> list[_Use] | None:
        """The uses of a parameter. layout: of the result of an operation on the way; None if it is
        not known where samples are. None if so somewhere. views: to which arrangements of its
        entries are added."""
        leaf = self.leaves.get(parameter)
        found: list[_Use] = []
        followed: set[Node] = set()
        known = True
        waiting = [] if leaf is None else [(leaf, 0, parameter.shape, True)]
        while waiting:
            before, number, shape, whole = waiting.pop()
            for node, place in self.users[before, number]:
                is_view = node.name() in VIEWS
                of_node = SHARED if is_view else layout(node)
                if is_view and views is not None:
                    views.append((node.name(), _kept(node)))
                if of_node is SHARED:
                    known &= node is not self.f.grad_fn
                    # what several ways lead to is differentiated for all of them together
                    results = sorted(self.results[node]) if node not in followed else ()
                    followed.add(node)
                    for result in results:
                        shape_of = node._input_metadata[result].shape
                        waiting.append((node, result, shape_of, whole and is_view))
                elif of_node is not None:
                    source = GradientEdge(before, number)
                    found.append(_Use(node, place, source, shape, whole))
                known &= of_node is not None
        return found if known else None

    def form(self, parameters: dict[str, Tensor]) -> Form:
        """All that it is but for its real numbers: names of operations and their inputs, shapes,
        and what else autograd keeps of them, as dimensions and positions of slices."""
        names = {p: name for name, p in parameters.items()}
        order = _in_order(self)
        number = {node: i for i, node in enumerate(order)}
        parts = []
        for node in order:
            leaf = getattr(node, "variable", None)
            parts.append((
                node.name() if leaf is None else names.get(leaf, ""),
                tuple((number.get(before), place) for before, place in node.next_functions),
                tuple((tuple(one.shape), one.dtype) for one in node._input_metadata),
                _kept(node),
            ))  # fmt: skip
        return tuple(parts)


def _kept(node: Node) -> tuple:
    """What autograd keeps of an operation, but numbers of tensors."""
    return tuple(_described(getattr(node, word, None)) for word in _kept_words(node.__class__))


@functools.cache
def _kept_words(kind: Any) -> tuple[str, ...]:
    """Attributes of an operation in which autograd keeps what it needs."""
    return tuple(word for word in dir(kind) if word.startswith("_saved_"))


def _described(kept: Any) -> Any:
    """Shapes of tensors; all else as it is."""
    if isinstance(kept, Tensor):
        return tuple(kept.shape), kept.dtype
    if isinstance(kept, list | tuple):
        return tuple(map(_described, kept))
    return kept


class Differentiated:
    """A copy of a module in a type of its own (`run`), and the gradients of its outputs with
    respect to the chosen parameters. by_jacobian: names of those that are differentiated sample by
    sample. Once checked: calls, the products that gradients need; lowest, the type of the lowest
    precision in which the module computes; separable: whether no sample can depend on others;
    own_functions: whether it has operations of a user's own, in which nothing is seen."""

    def __init__(
        self,
        module: nn.Module,
        names: Sequence[str],
        dtype: torch.dtype = torch.float64,
        device: str | None = None,
    ) -> None:
        self.given, self.run = module, Running(module, dtype, device)
        self.dtype = dtype
        self.parameters: dict[str, Tensor] = {}
        for name, p in self.run.module.named_parameters():
            p.requires_grad_(name in names)
            if name in names:
                self.parameters[name] = p
        self.by_jacobian: set[str] = set()
        self.calls, self.lowest = 0, dtype
        self.separable = self.own_functions = self._one_by_one = False
        self._plans: dict[str, _Plan] = {}
        self._results = self._saved = 0  # numbers of a sample that operations give, and keep
        self._entries = _Entries(0, 0, 0, 0)
        self._measured: tuple[Tensor, set[str]] = torch.empty(0), set()

    def check(self, x: Tensor) -> int:
        """The number of outputs; finds out by a few samples which gradients one backward pass
        gives. Raises UserError as `kernel` does."""
        saved, sources = _Saved(), self.run.sources(x)
        with torch.random.fork_rng():
            with Watching(sources) as seen:
                together = self.run(x).detach()
            try:
                with saved_tensors_hooks(saved.pack, _same):
                    f = self.run(x)
            except UserError:  # torch.func.grad in the module has no such hooks
                f = self.run(x)
        self.lowest = max({*seen.kinds, self.dtype}, key=lambda kind: torch.finfo(kind).eps)
        if not together.isfinite().all():
            if self.run.keeps:
                raise UserError(
                    "the module keeps a tensor made of its weights, and does not make it anew"
                )
            kind = Running(self.given, None).finite_in(x)
            hint = (
                f" in {self.dtype}, and none in {kind}: compute with dtype={kind}" if kind else ""
            )
            raise UserError(f"the module's output has NaN or infinite entries{hint}")
        if not agree(together, f):
            raise UserError("the module's output changes from call to call: its NTK is not defined")
        with torch.random.fork_rng():
            others = self.run(torch.cat([x[:1], x[:-1]])).detach()
        key, form = (tuple(self.parameters), self.dtype, len(x)), ()
        if f.requires_grad and not seen.decides and agree(others[1:], together[:-1]):
            form = _Graph(f).form(self.parameters)
            if self._adopt(_FOUND.get(self.given, {}).get(key), form, x):
                return f.shape[1]
        with torch.random.fork_rng():
            alone = torch.cat([self.run(x[i : i + 1]).detach() for i in range(len(x))])
        if not agree(together, alone):
            apart = float((together - alone).abs().max())
            if not apart <= reach_of(lambda: self.outputs(x), together, sources, self.lowest):
                raise UserError(
                    "the module's output for a sample depends on the others of its batch: its NTK"
                    " is not defined"
                )
        if not f.requires_grad:
            raise UserError("the module's output does not depend on the chosen parameters")
        graph = _Graph(self.run(x))
        owned = set(self.parameters.values())
        if any(isinstance(leaf, nn.Parameter) and leaf not in owned for leaf in graph.leaves):
            raise UserError(
                "the module uses a weight that a copy of it does not own, as in a lambda or a hook"
                " that names the module itself: make it a parameter or a method of the part"
            )
        self.own_functions = any(_is_of_a_user(node) for node in _in_order(graph))
        if self.own_functions:
            self._require_seen(graph, x)
        self._plan(graph, x)
        still = (others[0] - together[0]).abs().max() <= STILL * torch.finfo(self.dtype).eps * (
            together.abs().max()
        )
        self.separable = bool(still) and not seen.decides and self._is_separable(graph)
        numbers = saved.numbers(owned) or sum(
            math.prod(one.shape) for node in graph.results for one in node._input_metadata
        )
        self._saved = numbers // len(x)
        self._measure(x)
        if self.separable and form:
            _FOUND.setdefault(self.given, {})[key] = _Found(
                form, dict(self._plans), frozenset(self.by_jacobian), self.calls, self._saved,
                self._results, self._entries, self._one_by_one,
            )  # fmt: skip
        return f.shape[1]

    def _adopt(self, found: _Found | None, form: Form, x: Tensor) -> bool:
        """Takes over what was found out before, if the graph has the same form."""
        if found is None or found.form != form:
            return False
        self.separable, self.by_jacobian = True, set(found.by_jacobian)
        self._plans, self.calls = dict(found.plans), found.calls
        self._saved, self._results, self._entries = found.saved, found.results, found.entries
        self._measured = x[:2], set(found.by_jacobian)
        self._one_by_one = found.one_by_one
        return True

    def _require_seen(self, graph: _Graph, x: Tensor) -> None:
        """Raises UserError where a weight acts within an operation of a user's own, from which
        autograd gives no gradient of it."""
        with torch.no_grad():
            other = {
                name: (1.001 * p + 0.001).requires_grad_()
                for name, p in self.parameters.items()
                if p not in graph.leaves
            }
        if other and not agree(self.run(x, other).detach(), graph.f.detach()):
            raise UserError(
                f"the output depends on {', '.join(other)}, but autograd gives no gradient of that,"
                " as in torch.utils.checkpoint with use_reentrant=True: pass use_reentrant=False"
            )

    def _is_separable(self, graph: _Graph) -> bool:
        """Whether all operations keep samples apart, whatever their values: by their kind, and by
        what the output of one sample back-propagates to the others: nothing."""
        if any(node.name().rstrip("0123456789") not in APART for node in _in_order(graph)):
            return False
        if any(_adds_up_samples(node, len(graph.f)) for node in _in_order(graph)):
            return False
        uses = [pair for some in self._uses(graph).values() for pair in some]
        backs = _of_results(graph.f[0].sum(), [use.node for use, _ in uses])
        n = len(graph.f)
        return not any(
            layout.of(back, n)[:, 1:].any() for (_, layout), back in zip(uses, backs, strict=True)
        )

    def _plan(self, graph: _Graph, x: Tensor) -> None:
        """Finds out how the gradients of each parameter follow; the others join by_jacobian."""
        n, known = len(x), _Layouts(self, graph, x)
        mixed = _mixed(graph.f)
        totals = _gradients(mixed.sum(), list(self.parameters.values()))
        while True:  # a shared tensor is seen to be one before it is seen who uses it
            for parameter in self.parameters.values():
                graph.uses(parameter, known.of)
            if not known.missing:
                break
            known.find()
        every: dict[str, list[_Use]] = {}
        for name, parameter in self.parameters.items():
            way: list[tuple[str, Layout]] = []

            def on_the_way(node: Node, way: list = way) -> Layout | None:
                layout = known.of(node)
                if layout is not None:
                    way.append((node.name(), layout))
                return layout

            views: list[tuple] = []
            uses = graph.uses(parameter, on_the_way, views)
            if uses is None:
                self.by_jacobian.add(name)
            else:
                every[name] = uses
                self._plans[name] = _Plan(way, views, *_groups(uses, parameter))
        nodes = list({use.node: None for uses in every.values() for use in uses})
        backs = dict(zip(nodes, _of_results(mixed.sum(), nodes), strict=True))
        self._results = sum(back.numel() for back in backs.values()) // n
        for name, total in zip(self.parameters, totals, strict=True):
            if every.get(name):
                of_all = self._of_parameter(name, every[name], backs, n, True)
                if of_all is None or not agree(of_all.explicit().sum(0), total.flatten()):
                    self.by_jacobian.add(name)

    def _measure(self, x: Tensor) -> None:
        """How many numbers a sample takes."""
        whole = settled(lambda: self.with_outputs(x, range(1), compact=False)[1])
        self._measured = x[:2], set(self.by_jacobian)
        named = {name: self.parameters[name] for name in sorted(self.by_jacobian)}
        totals = _gradients(self.run(x)[:, 0].sum(), list(named.values()))
        self._one_by_one = not all(
            agree(whole[name][0].explicit().sum(0), total.flatten())
            for name, total in zip(named, totals, strict=True)
        )
        of_each = [by_output[0] for by_output in whole.values()]
        blocks = [b for one in of_each for b in (one.parts if isinstance(one, Blocks) else (one,))]
        products = sum(not isinstance(block, Explicit) for block in blocks)
        self.calls = max(1, products + len(self.by_jacobian))
        self._entries = _Entries(
            graph=self._saved + self._results,
            backward=self._results,
            kept=sum(one.compact().kept for one in of_each),
            passing=max((one.passing for one in of_each), default=0),
        )

    def require_in_place(self, x: Tensor) -> None:
        """Raises Changed if an operation's rows turn out to be those of other samples."""
        if not self.separable and len(x) > 1:
            graph = _Graph(self.run(x))
            self._require_in_place(graph, self._uses(graph))

    def _require_in_place(self, graph: _Graph, uses: dict[str, list[tuple[_Use, Layout]]]) -> None:
        """Finds the operations of which a row does not belong to the sample in its place, or to
        others too: as where samples are sorted. Their parameters join by_jacobian."""
        factors = torch.linspace(1, 2, len(graph.f)).to(graph.f)  # no two are equal
        f = _mixed(graph.f)
        nodes = list({use.node: layout for some in uses.values() for use, layout in some}.items())
        plain, scaled = (_of_results((f * c).sum(), [n for n, _ in nodes]) for c in (1, factors))
        wrong = {
            node
            for (node, layout), one, other in zip(nodes, plain, scaled, strict=True)
            if not _fits(layout, one, other, factors)
        }
        self._join(name for name, some in uses.items() if any(u.node in wrong for u, _ in some))

    def _join(self, names: Iterable[str]) -> None:
        """Names of by_jacobian from now on; raises Changed if there are any."""
        joined = set(names)
        self.by_jacobian |= joined
        if joined:
            raise Changed

    def _uses(self, graph: _Graph) -> dict[str, list[tuple[_Use, Layout]]]:
        """The uses of each parameter that is not differentiated sample by sample, as planned. One
        whose operations are others than on the first samples joins by_jacobian."""
        every, others = {}, []
        for name in sorted(self.parameters.keys() - self.by_jacobian):
            way = iter(self._plans[name].layouts)
            met: list[Layout] = []

            def planned(node: Node, way: Iterator = way, met: list = met) -> Layout | None:
                word, layout = next(way, ("", SHARED))
                if word != node.name():
                    return None
                if layout is not SHARED:
                    met.append(layout)
                return layout

            views: list[tuple] = []
            uses = graph.uses(self.parameters[name], planned, views)
            if uses is None or next(way, None) is not None or views != self._plans[name].views:
                others.append(name)
            else:
                every[name] = list(zip(uses, met, strict=True))
        self._join(others)
        return every

    def outputs(self, x: Tensor) -> Tensor:
        """(n, k), without a graph."""
        return self.run(x).detach()

    def with_outputs(
        self, x: Tensor, outputs: range, compact: bool = True, held: bool = False
    ) -> tuple[Tensor, ByName]:
        """All outputs, (n, k), and the gradients of some. compact: as they are multiplied. held:
        `require_in_place` was called for these samples."""
        if len(x) == 1:
            f, of_both = self.with_outputs(torch.cat([x, x]), outputs, compact, held)
            return f[:1], of_rows(of_both, slice(0, 1))
        f, gradients = self._of_layers(x, outputs, compact, held)
        for name in sorted(self.by_jacobian):
            gradients[name] = []
        for j in outputs if self.by_jacobian else ():
            for name, values in self._of_samples(x, j).items():
                gradients[name].append(Explicit(values.reshape(len(x), -1)))
        return f, gradients

    def _present_entries(self) -> _Entries:
        few, of = self._measured
        if of != self.by_jacobian:
            self._measure(few)
        return self._entries

    def samples_at_once(self, outputs: int, memory: float, n: int) -> tuple[int, int]:
        """How many samples are differentiated at once, and of how many the gradients, of so many
        outputs, are kept, so that both together take so many bytes."""
        graph, backward, kept, passing = self._present_entries()
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
        graph, backward, kept, _ = self._present_entries()
        return min(n, max(1, int(memory / (24 * (graph + outputs * (backward + kept))))))

    def _of_layers(
        self, x: Tensor, outputs: range, compact: bool, held: bool
    ) -> tuple[Tensor, ByName]:
        """Outputs, and gradients with respect to the parameters that have a plan. Raises Changed if
        one turns out to have none for these samples."""
        if self.by_jacobian >= self.parameters.keys():
            return self.outputs(x), {}
        f = self.run(x)
        graph = _Graph(f)
        self.own_functions = self.own_functions or any(map(_is_of_a_user, _in_order(graph)))
        uses = self._uses(graph)
        if not held and not self.separable:
            self._require_in_place(graph, uses)
        nodes = list({use.node: None for some in uses.values() for use, _ in some})
        by_name: ByName = {name: [] for name in uses}
        for j in outputs:
            backs = dict(zip(nodes, _of_results(f[:, j].sum(), nodes), strict=True))
            for name, some in uses.items():
                of_name = self._of_parameter(name, [use for use, _ in some], backs, len(x))
                if of_name is None:
                    self._join([name])
                    raise AssertionError  # which has raised
                by_name[name].append(of_name.compact() if compact else of_name)
        return f.detach(), by_name

    @torch.no_grad()
    def _of_parameter(
        self,
        name: str,
        uses: list[_Use],
        backs: dict[Node, Tensor],
        n: int,
        in_place: bool = False,
    ) -> Gradients | None:
        """The gradients of n samples; None if there is no rule for one of its uses. in_place: with
        entries in the parameter's order, for their total."""
        parameter, plan = self.parameters[name], self._plans[name]
        of_uses: list[Gradients] = []
        layouts_of = (layout for _, layout in plan.layouts if layout is not SHARED)
        for use, layout in zip(uses, layouts_of, strict=True):
            back = backs[use.node]
            if back.numel() != layout.before * n * layout.after:
                return None
            of_use = gradients(Meeting(use.node, use.place, use.shape, back, layout, n))
            if of_use is None:
                return None
            of_uses.append(of_use)
        if not uses:
            return Explicit(parameter.new_zeros(n, 0))
        if not plan.mapped and not in_place:
            groups = [added([of_uses[i] for i in group]) for group in plan.groups]
            return groups[0] if len(groups) == 1 else Blocks(tuple(groups))
        return Explicit(
            torch.stack(
                [
                    _propagated(use, of_use.explicit(), parameter)
                    for use, of_use in zip(uses, of_uses, strict=True)
                ]
            ).sum(0)
        )

    def _of_samples(self, x: Tensor, j: int) -> dict[str, Tensor]:
        """Gradients with respect to the others, (n, …) for each: by torch.func, or one after the
        other where the module does what torch.func cannot, or has a weight elsewhere, too, than as
        its attribute."""
        others = {name: self.parameters[name].detach() for name in sorted(self.by_jacobian)}

        def output(weights: dict[str, Tensor], sample: Tensor) -> Tensor:
            return self.run(torch.stack([sample, sample]), weights)[0, j]

        if not self._one_by_one:
            with (
                contextlib.suppress(RuntimeError, UserError),
                torch.no_grad(),  # none but with respect to `others`
                warnings.catch_warnings(),
            ):
                warnings.filterwarnings("ignore", "There is a performance drop")
                return vmap(grad(output), in_dims=(None, 0))(others, x)
        rows = []
        for sample in x:
            f = self.run(sample[None])[0, j]
            rows.append(_gradients(f, [self.parameters[name] for name in others]))
        return {name: torch.stack([row[i] for row in rows]) for i, name in enumerate(others)}


def distances(some: ByName, others: ByName, rows: Tensor | None = None) -> np.ndarray:
    """Norms of the differences of all gradients of each sample, of all outputs together, (n,).
    rows: of `some`, if others has these samples only."""
    squared = []
    for name in some:
        one, other = together(some[name]), together(others[name])
        if len(one) != len(other):
            one, other = some[name], others[name]
        for a, b in zip(one, other, strict=True):
            squared.append((a if rows is None else a.rows(rows)).apart(b))
    return torch.stack(squared).sum(0).sqrt().cpu().numpy()


def norms(gradients: ByName) -> np.ndarray:
    """Norms of all gradients of each sample, of all outputs together, (n,)."""
    squared = [g.squares() for by_output in gradients.values() for g in together(by_output)]
    return torch.stack(squared).sum(0).sqrt().cpu().numpy()


def sizes(gradients: ByName) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Norms of all gradients of each sample, of all outputs together, (n,); what their products
    round relative to; and the size of what was added up in those that are far smaller than it."""
    squared = []
    for norm, terms, multiplied in (g.sizes() for some in gradients.values() for g in some):
        lost = torch.where(terms > CANCELS * norm, terms, 0.0)
        squared.append(torch.stack([norm, multiplied, lost]) ** 2)
    of_all = torch.stack(squared).sum(0).sqrt().cpu().numpy()
    return of_all[0], of_all[1], of_all[2]


def of_rows(gradients: ByName, index: Tensor | slice) -> ByName:
    """The gradients of some of the samples."""
    return {name: [g.rows(index) for g in by_output] for name, by_output in gradients.items()}


class _Saved:
    """What autograd saves for the backward pass."""

    def __init__(self) -> None:
        self._kept: dict[int, Tensor] = {}

    def pack(self, values: Tensor) -> Tensor:
        self._kept[values.untyped_storage().data_ptr()] = values
        return values

    def numbers(self, parameters: set[Tensor]) -> int:
        """How many, without those of parameters."""
        own = {p.untyped_storage().data_ptr() for p in parameters}
        sizes = [v.untyped_storage().nbytes() for ptr, v in self._kept.items() if ptr not in own]
        return sum(sizes) // 8


def _same(values: Tensor) -> Tensor:
    return values


class _Layouts:
    """Where samples are in what the operations of a graph give: found by what is back-propagated to
    them, which grows with the factor of each sample's outputs. found: of an operation, SHARED if
    there is nothing of a single sample, None if several are possible."""

    def __init__(self, owner: Differentiated, graph: _Graph, x: Tensor) -> None:
        self.owner, self.graph, self.x = owner, graph, x
        self.found: dict[Node, Layout | None] = {}
        self.missing: dict[Node, None] = {}

    def of(self, node: Node) -> Layout | None:
        """Where it is not known, the node joins `missing`."""
        if node not in self.found:
            self.missing[node] = None
        return self.found.get(node)

    def find(self) -> None:
        """Finds those that are missing."""
        nodes = list(self.missing)
        self.missing.clear()
        possible = _possible(self.graph, nodes)
        for node, some in zip(nodes, possible, strict=True):
            self.found[node] = some[0] if len(some) == 1 else None if some else SHARED
            if node.name() not in RULES and some:
                self.found[node] = None
        unclear = {node: some for node, some in zip(nodes, possible, strict=True) if len(some) > 1}
        if not unclear or len(self.x) < 3:
            return
        fewer = _Graph(self.owner.run(self.x[:-1]))  # with another number fewer layouts agree
        twins = dict(zip(_in_order(self.graph), _in_order(fewer), strict=False))
        again = {node: twins[node] for node in unclear if node in twins}
        for node, some in zip(again, _possible(fewer, list(again.values())), strict=True):
            both = [layout for layout in unclear[node] if layout in some]
            if len(both) == 1 and node.name() == again[node].name() and node.name() in RULES:
                self.found[node] = both[0]


def _is_of_a_user(node: Node) -> bool:
    """Whether an operation is a torch.autograd.Function, which may compute outside of torch."""
    return isinstance(node, torch.autograd.function.BackwardCFunction)


def _adds_up_samples(node: Node, n: int) -> bool:
    """Whether an operation is a product whose sums may run over samples: zeros may hide that."""
    kind = node.name()
    if kind not in ("MmBackward0", "AddmmBackward0"):
        return False
    if getattr(node, f"_saved_{'self' if kind == 'MmBackward0' else 'mat1'}_sym_sizes")[1] % n:
        return False
    before = node.next_functions[-1][0]
    while before is not None and before.name() in VIEWS:
        before = before.next_functions[0][0]
    return getattr(before, "variable", None) is None


def _in_order(graph: _Graph) -> list[Node]:
    """Its operations, in an order that follows from its form alone."""
    return [graph.f.grad_fn, *graph.results]


def _possible(graph: _Graph, nodes: Sequence[Node]) -> list[list[Layout]]:
    """Layouts of what each operation gives that agree with what is back-propagated."""
    n = len(graph.f)
    factors = 2.0 ** (torch.arange(n) % 8).to(graph.f)
    f = _mixed(graph.f)
    plain, scaled = (_of_results((f * c).sum(), nodes) for c in (1, factors))
    return [
        [layout for layout in layouts(one.shape, n) if _fits(layout, one, other, factors)]
        for one, other in zip(plain, scaled, strict=True)
    ]


def _mixed(f: Tensor) -> Tensor:
    """One number of each sample, (n,), that depends on all of its outputs."""
    return f @ torch.linspace(1, 2, f.shape[1]).to(f)


def _fits(layout: Layout, plain: Tensor, scaled: Tensor, factors: Tensor) -> bool:
    """Whether what is back-propagated grows with the factor of its sample."""
    n = len(factors)
    if plain.numel() != layout.before * n * layout.after:
        return False
    if plain.dtype.itemsize == 1:  # float8, in which torch does not multiply
        plain, scaled = plain.to(factors), scaled.to(factors)
    return agree(layout.of(scaled, n), layout.of(plain, n) * factors[:, None])


def _groups(uses: Sequence[_Use], parameter: Tensor) -> tuple[list[list[int]], bool]:
    """Groups of uses: those of the same entries of the parameter together; and whether entries of
    different ones overlap, or are no entries of it."""
    if not all(use.whole for use in uses):
        return [], True
    if len(uses) == 1:
        return [[0]], False
    groups: dict[GradientEdge | tuple, list[int]] = {}
    for i, use in enumerate(uses):
        groups.setdefault((use.source.node, use.source.output_nr), []).append(i)
    places: list[Tensor] = []
    merged: list[list[int]] = []
    for group in groups.values():
        use = uses[group[0]]
        count = math.prod(use.shape)
        index = torch.arange(1, count + 1, dtype=torch.float64).to(parameter.device)
        if parameter.dtype == torch.float32 and count >= 1 << 24:
            return [], True
        place = _propagated(use, index.to(parameter.dtype)[None], parameter)[0]
        same = [i for i, other in enumerate(places) if torch.equal(place, other)]
        if same:
            merged[same[0]] += group
        elif any(bool(((place != 0) & (other != 0)).any()) for other in places):
            return [], True
        else:
            places.append(place)
            merged.append(list(group))
    return merged, False


def _propagated(use: _Use, values: Tensor, parameter: Tensor) -> Tensor:
    """From gradients with respect to what an operation takes, (m, entries), to those with respect
    to the parameter, (m, weights)."""
    if getattr(use.source.node, "variable", None) is parameter:
        return values
    shaped = values.reshape(-1, *use.shape)

    def back(some: Tensor, batched: bool) -> Tensor:
        (gradient,) = torch.autograd.grad(
            [use.source], [parameter], [some], retain_graph=True, allow_unused=True,
            is_grads_batched=batched,
        )  # fmt: skip
        return torch.zeros_like(parameter) if gradient is None else gradient

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "There is a performance drop")
            return back(shaped, True).reshape(len(values), -1)
    except RuntimeError:  # an operation that has no rule for many at once
        return torch.stack([back(row, False).flatten() for row in shaped])


def _of_results(f: Tensor, nodes: Sequence[Node]) -> list[Tensor]:
    """Gradients of a number with respect to what each operation gives."""
    edges = [GradientEdge(node, 0) for node in nodes]
    shapes = [node._input_metadata[0].shape for node in nodes]
    gradients_of = _gradients(f, [f.new_zeros(()).expand(shape) for shape in shapes], edges)
    return [(g.to_dense() if g.is_sparse else g).contiguous() for g in gradients_of]


def _gradients(
    f: Tensor, wanted: Sequence[Tensor], edges: Sequence[GradientEdge] | None = None
) -> list[Tensor]:
    """Gradients of a number with respect to each, zero where it does not depend on it; the graph is
    kept. edges: where they stand in the graph, if not by themselves."""
    if not wanted or not f.requires_grad:
        return [torch.zeros_like(w) for w in wanted]
    try:
        found = torch.autograd.grad(f, edges or wanted, retain_graph=True, allow_unused=True)
    except RuntimeError as error:  # such as checkpoints that only .backward() can use
        hint = ". Call torch.utils.checkpoint with use_reentrant=False" * (
            "use_reentrant" in str(error)
        )
        raise UserError(
            f"the module has no gradients that autograd can take: {str(error).rstrip('.')}{hint}"
        ) from error
    return [torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
