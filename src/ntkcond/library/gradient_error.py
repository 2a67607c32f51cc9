"""The error of a module's gradients, by trial: how far rounding may have moved each of them.

All samples are differentiated again with random errors in every operation (`perturbation`): far
larger than those of rounding, and once as small, unless all that errors change grows with them
(`in_proportion`). What is left to
the operations' values (`Differentiated.separable`) is also differentiated in half batches, in
another order, and some samples alone: what that changes is no rounding.
"""

import contextlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ntkcond.library.differentiated import (
    ByName,
    Differentiated,
    distances,
    norms,
    sizes,
)
from ntkcond.library.perturbation import (
    AS_ROUNDING,
    MARGIN,
    SATURATED,
    Crossed,
    Leaving,
    Perturbed,
    Plain,
    Swapped,
    can_cross,
    coarser,
    in_proportion,
    near_kinks,
    reach_of,
    reaches,
    stirred,
)
from ntkcond.ntk.rounding import TINY
from ntkcond.run.errors import UserError
from ntkcond.run.progress import advance, expect

DIFFERS = {torch.float64: 1e-8, torch.float32: 1e-3}  # relative: far above rounding
DEPENDS = (
    "the gradient of a sample depends on the other samples of its batch, changes from call to call,"
    " or rounds by far more than its type in another batch: the module's NTK is not defined"
)
FEW = 4  # samples that show how its gradients can be computed
FEW_NUMBERS = 4096
RUNS = 6, 1  # with large errors, of few numbers and of many: no luck makes the estimate small
SMALL_RUNS = 2, 1  # with errors as small as rounding's
MORE_RUNS = 20  # as small: one of them passes a kink that is near
GROWS = 8.0  # times what large errors say: what small errors change then does not grow with them
STIRRED = 0.2  # by which weights are moved, relative to 1/√ of those of a unit
ALONE = 32  # samples, of which each is taken alone; of more, FEW
# Units of rounding of float64. At 2⁻³⁷ relative an operation in float32 (steps of 2⁻²⁴) sees no
# errors; at 2⁻²⁷, 2⁻²⁹ and 2⁻³¹ it makes too much of them; of those of numbers that are float32's,
# at 2⁻²³. Others change by as much for each unit.
UNSEEN, HIDDEN, SAME = 2.0**16, (2.0**30, 2.0**26, 2.0**24, 2.0**22), 1e-3
HIDDEN_RUNS = 2
FLOAT32 = 2.0**29  # units of float64 in one of float32


class Recorded(NamedTuple):
    """Gradients and outputs of some samples, what their operations were given at kinks, and whether
    numbers left torch."""

    gradients: ByName
    outputs: Tensor
    plain: Plain
    leaves: bool


class GradientErrors(NamedTuple):
    """For each sample, (n,): the norm of all its gradients; what their products round relative to;
    the norm of their errors; how many of its preactivations are within rounding of a kink."""

    sizes: np.ndarray
    multiplied: np.ndarray
    errors: np.ndarray
    kinks: np.ndarray


def recorded(differentiated: Differentiated, x: Tensor, outputs: range) -> Recorded:
    """One pass of some samples."""
    differentiated.require_in_place(x)
    plain, leaving = Plain(differentiated.run.sources(x)), Leaving(0, 0.0)
    with torch.random.fork_rng(), plain, leaving:
        f, gradients = differentiated.with_outputs(x, outputs, compact=False, held=True)
    advance(len(x))
    return Recorded(gradients, f, plain, leaving.seen)


def planned_runs(few_numbers: bool) -> int:
    """How often `gradient_errors` differentiates all samples at least, beside `recorded`."""
    return RUNS[not few_numbers]


def require_repeatable(
    differentiated: Differentiated, x: Tensor, outputs: range, known: Recorded | None
) -> None:
    """Raises UserError if gradients change from call to call. known: of all samples; where others
    in the batch make a difference, two calls of the same few decide."""
    few = x[:FEW]
    with torch.random.fork_rng():
        torch.manual_seed(1)  # not that of the first call
        second = differentiated.with_outputs(few, outputs, compact=False)[1]
    allowed = DIFFERS[differentiated.dtype] * norms(second) + TINY
    if known is not None:
        rows = torch.arange(len(few), device=x.device)
        if (distances(known.gradients, second, rows) <= allowed).all():
            return
    first = differentiated.with_outputs(few, outputs, compact=False)[1]
    if not (distances(first, second) <= allowed).all():
        raise UserError(DEPENDS)


def gradient_errors(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    few_numbers: bool,
    first_seed: int,
    known: Recorded | None = None,
    known_sizes: np.ndarray | None = None,
) -> GradientErrors:
    """The errors of the gradients of samples that are differentiated together.

    few_numbers: whether so few are computed that more runs are needed. known: of the same samples,
    if it was kept; known_sizes: of their gradients in other batches, if these are to be compared.
    Raises UserError if outputs or gradients of samples differ in other batches.
    """
    plain = known or recorded(differentiated, x, outputs)
    trial = _Trial(differentiated, x, outputs, plain, first_seed)
    size, multiplied, cancelled = sizes(plain.gradients)
    dtype = differentiated.dtype
    large = coarser(differentiated.lowest)
    runs, small_runs = RUNS[not few_numbers], SMALL_RUNS[not few_numbers]
    some = [trial.with_errors(large) for _ in range(runs)]
    own = differentiated.own_functions or plain.leaves
    if (
        differentiated.separable and not own and differentiated.lowest == dtype
        and all(in_proportion(plain.plain, perturbed) for _, perturbed in some)
        and _apart_at_other_weights(differentiated, x)
    ):  # fmt: skip
        small_runs = 0
    expect(small_runs * len(x))
    unit = np.sqrt(np.mean([changed**2 for changed, _ in some], 0)) / large
    halves = [trial.in_halves(plain.outputs) for _ in range(small_runs)]
    changes, few = [away for away, _ in halves], DIFFERS[dtype]
    suspicious = any(
        not (apart <= few * float(plain.outputs.abs().max()) and (away <= few * size).all())
        for away, apart in halves
    )
    if suspicious:  # what other batches change is no rounding
        expect(small_runs * len(x))
        changes = [trial.with_errors(AS_ROUNDING)[0] for _ in range(small_runs)]
    small = np.zeros(len(x))
    if changes:
        small = np.sqrt(np.mean(np.square(changes), 0)) / AS_ROUNDING
    near = few * size + MARGIN * np.fmax(unit, small) + TINY
    kinks, away = _at_kinks(trial, plain.plain, [perturbed for _, perturbed in some], unit)
    if plain.plain.choices:
        at_ties, of_ties = _at_ties(trial, plain.plain, some[-1][1], near)
        kinks, away = kinks + at_ties, np.maximum(away, of_ties)
    lost = (kinks > 0) | (~(unit * large <= SATURATED * size) & (unit != 0))
    near[lost] = np.inf
    if known_sizes is not None and (abs(size - known_sizes) > near).any():
        raise UserError(DEPENDS)
    error = np.where(lost, size + unit * large, np.fmax(np.fmax(unit, small), away))
    if suspicious or not differentiated.separable:
        error = np.maximum(error, _in_other_batches(differentiated, x, outputs, plain, size, near))
    if plain.plain.unlisted or kinks.any() or (~lost & (small > GROWS * unit + TINY)).any():
        expect(MORE_RUNS * len(x))
        more = [trial.with_errors(AS_ROUNDING)[0] for _ in range(MORE_RUNS)]
        error = np.maximum(error, np.max(more, 0))
    if own and differentiated.lowest == torch.float64:
        error = np.maximum(error, _of_hidden_precision(trial))
    if differentiated.lowest != dtype:
        error = np.maximum(error, torch.finfo(differentiated.lowest).eps / 2 * size)
    error += cancelled * torch.finfo(dtype).eps / 2
    error = np.nan_to_num(error, nan=np.inf)
    return GradientErrors(size, multiplied, error, kinks)


class _Trial:
    """Runs of the same samples, each with other errors. known: of the plain run."""

    def __init__(
        self,
        differentiated: Differentiated,
        x: Tensor,
        outputs: range,
        known: Recorded,
        first_seed: int,
    ) -> None:
        self.differentiated, self.x, self.outputs = differentiated, x, outputs
        self.gradients, self.leaves, self.seed = known.gradients, known.leaves, first_seed
        self.sources = differentiated.run.sources(x)

    def with_errors(self, units: float) -> tuple[np.ndarray, Perturbed]:
        """Changes of all gradients, (n,), by random errors of so many units of rounding."""
        perturbed = Perturbed(self.sources, self.seed, units)
        self.seed += 1
        return self.under(perturbed), perturbed

    def in_halves(self, outputs: Tensor) -> tuple[np.ndarray, float]:
        """The same with errors as small as those of rounding, in half batches and another order;
        and the largest change of an output."""
        away, apart = np.zeros(len(self.x)), 0.0
        perturbed = Perturbed(self.sources, self.seed, AS_ROUNDING)
        self.seed += 1
        for some in _halves(self.x):
            f, after = self._run(perturbed, self.x[some])
            away[some.cpu().numpy()] = distances(self.gradients, after, some)
            apart = max(apart, float((f - outputs[some]).abs().max()))
        return away, apart

    def under(self, mode: Plain | Crossed | Swapped | Leaving) -> np.ndarray:
        """Changes of all gradients, (n,)."""
        return distances(self.gradients, self._run(mode, self.x)[1])

    def _run(self, mode: Plain | Crossed | Swapped | Leaving, x: Tensor) -> tuple[Tensor, ByName]:
        also: Leaving | None = None
        if self.leaves and isinstance(mode, Perturbed):
            also = Leaving(self.seed, mode.coarser)
        try:
            with torch.random.fork_rng(), mode, also or contextlib.nullcontext():
                result = self.differentiated.with_outputs(x, self.outputs, False, held=True)
            advance(len(x))
            return result
        except UserError as error:
            raise UserError(
                f"the error of the NTK could not be estimated, since with random errors {error}."
                " certify=False gives the NTK alone"
            ) from error


def _at_kinks(
    trial: _Trial, plain: Plain, perturbed: Sequence[Perturbed], unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many preactivations of each sample are so near a kink that rounding may have moved them
    across, where that changes its gradient; and how far it does elsewhere, (n,)."""
    n = len(trial.x)
    found = [near_kinks(plain, one, n) for one in perturbed]
    kinks, away = np.max([counts.numpy() for counts, _ in found], 0), np.zeros(n)
    moves = max(found, key=lambda one: int(one[0].sum()))[1]
    same = all(np.array_equal(counts.numpy() > 0, kinks > 0) for counts, _ in found)
    if kinks.any() and same and can_cross(plain, moves):
        expect(2 * n)
        for sign in (1.0, -1.0):
            away = np.maximum(away, trial.under(Crossed(trial.sources, moves, sign)))
        kinks = np.where(away <= 4 * MARGIN * unit + TINY, 0, kinks)
    return kinks, np.where(kinks > 0, 0.0, away) / MARGIN


def _at_ties(
    trial: _Trial, plain: Plain, perturbed: Perturbed, near: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How often the gradient of a sample becomes another where its ties are decided the other way;
    and how far it moves elsewhere, (n,). near: by how much rounding may change each."""
    changes, away = np.zeros(len(trial.x), dtype=np.int64), np.zeros(len(trial.x))
    reach = reaches(plain, perturbed, len(trial.x))
    if reach is None:
        return changes + 1, away
    expect(4 * len(trial.x))
    for odd in (False, True):
        for by_value in (False, True):
            swapped = trial.under(Swapped(trial.sources, reach, odd, by_value))
            changes += ~(swapped <= near)
            away = np.maximum(away, swapped)
    return changes, np.where(changes > 0, 0.0, away) / MARGIN


def _of_hidden_precision(trial: _Trial) -> np.ndarray:
    """What is computed outside of torch, as in NumPy's float32, may have rounded unseen, (n,): it
    shows in errors near its own, which then change what they reach in no proportion."""
    expect(HIDDEN_RUNS * (1 + len(HIDDEN)) * len(trial.x))

    def change(seed: int, units: float) -> np.ndarray:
        """What errors change, for each unit; of what leaves torch alone, if anything does."""
        mode = Leaving(seed, units) if trial.leaves else Perturbed(trial.sources, seed, units)
        return trial.under(mode) / units

    found = np.zeros(len(trial.x))
    for seed in range(HIDDEN_RUNS):  # the same errors, of several sizes
        unseen = change(seed, UNSEEN)
        for units in HIDDEN:
            away = change(seed, units)
            sizes = [float(np.linalg.norm(one)) for one in (unseen, away)]
            if max(sizes) > (1 + SAME) * min(sizes):
                found = np.maximum(found, np.maximum(unseen, away) * FLOAT32)
    return found


def _in_other_batches(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    plain: Recorded,
    size: np.ndarray,
    near: np.ndarray,
) -> np.ndarray:
    """How much gradients may differ in other batches, (n,): in halves, in another order, and where
    samples are alone, the most of any, relative to its size or not, whichever is less. size: of
    each; near: by how much rounding may change it."""
    share, most = 0.0, 0.0
    batches = (*_halves(x), *_alone(size)) if len(x) > 1 else ()
    expect(sum(map(len, batches)))
    for some in batches:
        f, gradients = differentiated.with_outputs(x[some], outputs, compact=False)
        advance(len(some))
        _require_same(differentiated, x, f, plain.outputs, some)
        away = distances(plain.gradients, gradients, some)
        place = some.cpu().numpy()
        if (~(away <= near[place])).any():
            raise UserError(DEPENDS)
        share = max(share, float(np.max(away / np.maximum(size[place], TINY))))
        most = max(most, float(np.max(away)))
    return np.minimum(share * size, most)


def _apart_at_other_weights(differentiated: Differentiated, x: Tensor) -> bool:
    """Whether all outputs are the same in half batches, in another order, at weights of which none
    is zero: nothing hides there what depends on other samples."""
    weights = {}
    for name, p in differentiated.run.module.named_parameters():
        by = STIRRED / math.sqrt(max(1, math.prod(p.shape[1:])))
        weights[name] = stirred(p, by) if p.is_floating_point() else p.detach()
    expect(2 * len(x))
    with torch.random.fork_rng(), contextlib.suppress(UserError):
        f = differentiated.run(x, weights).detach()
        advance(len(x))
        allowed = DIFFERS[differentiated.dtype] * f.abs().max()
        apart = [f[some] - differentiated.run(x[some], weights).detach() for some in _halves(x)]
        advance(len(x))
        return all(bool(one.abs().max() <= allowed) for one in apart)
    return False


def _halves(x: Tensor) -> tuple[Tensor, ...]:
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x))).to(x.device)
    return tuple(order.split(-(-len(x) // 2)))


def _groups(x: Tensor, alone: bool) -> list[Tensor]:
    """Some samples alone; and rows and columns of a square: no two are in the same ones of both."""
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(x))).to(x.device)
    side = math.isqrt(len(x) - 1) + 1
    columns = [order[i::side] for i in range(side)]
    some = [] if alone else [*order.split(side), *columns]
    return [*order[: 2 * FEW].split(1), *some]


def _alone(size: np.ndarray) -> list[Tensor]:
    """Samples, each alone: all of few; of more those with the least and the largest gradients."""
    order = np.argsort(size, kind="stable")
    if len(size) > ALONE:
        order = np.r_[order[: FEW // 2], order[-FEW // 2 :]]
    return [torch.tensor([i]) for i in order]


def _require_same(
    differentiated: Differentiated, x: Tensor, f: Tensor, outputs: Tensor, some: Tensor
) -> None:
    """Holds outputs of some samples against those of all together."""
    apart = float((f - outputs[some]).abs().max())
    allowed = DIFFERS[differentiated.dtype] * float(outputs.abs().max())
    if apart <= allowed:
        return
    together = differentiated.outputs(x)  # `outputs` may be of other batches
    if not apart <= reach_of(
        lambda: differentiated.outputs(x), together, differentiated.run.sources(x),
        differentiated.lowest,
    ):  # fmt: skip
        raise UserError(
            "the module's output for a sample depends on the others of its batch, changes from"
            " call to call, or rounds by far more than float64 in another batch: its NTK is not"
            " defined"
        )


def require_apart(
    differentiated: Differentiated, x: Tensor, at_once: int, known: Tensor | None = None
) -> None:
    """Raises UserError if an output depends on other samples: some are alone; and unless all
    operations keep samples apart, any two of a batch are apart in one of two runs. Or if the module
    is another function than in its own type. known: the outputs of all, if at hand."""
    at_once = max(at_once, 2)
    for start in range(0, len(x), at_once):
        part = x[start : start + at_once]
        outputs = differentiated.outputs(part) if known is None else known[start:][:at_once]
        differentiated.run.hold_against(differentiated.given, part, outputs)
        advance(len(part))
        for some in _groups(part, differentiated.separable):
            of_some = differentiated.outputs(part[some])
            _require_same(differentiated, part, of_some, outputs, some)
