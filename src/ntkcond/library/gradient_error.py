"""The error of a module's gradients, by trial: how far rounding may have moved each of them.

All samples are differentiated again with random errors in every operation (`perturbation`), every
other time in half batches and in another order: a gradient that
depends on the other samples of its batch differs then by far more than rounding makes of it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ntkcond.library.differentiated import ByName, Differentiated, distances, norms, of_rows
from ntkcond.library.perturbation import (
    AS_ROUNDING,
    MARGIN,
    SATURATED,
    Perturbed,
    Plain,
    Swapped,
    coarser,
    reach_of,
    reaches,
    undecided,
)
from ntkcond.ntk.rounding import TINY
from ntkcond.run.errors import UserError

DIFFERS = {torch.float64: 1e-8, torch.float32: 1e-3}  # relative: far above rounding
DEPENDS = (
    "the gradient of a sample depends on the other samples of its batch, or changes from call to"
    " call: the module's NTK is not defined"
)
FEW = 4  # samples that show how its gradients can be computed
FEW_NUMBERS = 4096
RUNS = 8, 2  # with random errors, of few numbers and of many: no luck makes the estimate small
UNLISTED_RUNS = 20  # with errors as small as rounding's: one of them passes a kink that is near


class Recorded(NamedTuple):
    """Gradients and outputs of some samples, and what their operations were given at kinks."""

    gradients: ByName
    outputs: Tensor
    plain: Plain


class GradientErrors(NamedTuple):
    """For each sample, (n,): the norm of all its gradients, that of their errors, and how many of
    its preactivations are within rounding of a kink."""

    sizes: np.ndarray
    errors: np.ndarray
    kinks: np.ndarray


def recorded(differentiated: Differentiated, x: Tensor, outputs: range) -> Recorded:
    """One pass of some samples."""
    with torch.random.fork_rng(), Plain() as plain:
        f, gradients = differentiated.with_outputs(x, outputs, compact=False)
    return Recorded(gradients, f, plain)


def require_repeatable(differentiated: Differentiated, x: Tensor, outputs: range) -> None:
    """Raises UserError if gradients change from call to call."""
    first, second = (differentiated(x[:FEW], outputs) for _ in range(2))
    allowed = DIFFERS[differentiated.dtype] * norms(first) + TINY
    if not (distances(first, second) <= allowed).all():
        raise UserError(DEPENDS)


def gradient_errors(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    few_numbers: bool,
    first_seed: int,
    known: Recorded | None = None,
    sizes: np.ndarray | None = None,
) -> GradientErrors | None:
    """The errors of the gradients of samples that are differentiated together; None if a layer was
    found whose rows belong to other samples: its parameters have joined `by_jacobian`.

    few_numbers: whether so few are computed that more runs are needed. known: of the same samples,
    if it was kept; sizes: of their gradients in other batches, if these are to be compared. Raises
    UserError if outputs or gradients of samples differ in other batches.
    """
    plain, n = known or recorded(differentiated, x, outputs), len(x)
    size = norms(plain.gradients)
    scale, differs = float(plain.outputs.abs().max()), DIFFERS[differentiated.dtype]
    order = torch.from_numpy(np.random.default_rng(0).permutation(n)).to(x.device)
    halves = order.split(-(-n // 2))
    natural: list[Perturbed] = []

    def run(
        number: int,
        batches: Sequence[Tensor | slice],
        errors: float = coarser(differentiated.dtype),
    ) -> tuple[np.ndarray, float]:
        """Squared changes of all gradients, (n,), and the largest of an output, by random errors
        of so many units of rounding, and other batches."""
        squares, f_away = np.zeros(n), 0.0
        perturbed = Perturbed(first_seed + number, errors)
        for batch in batches:
            before = {name: [g.rows(batch) for g in some] for name, some in plain.gradients.items()}
            with torch.random.fork_rng(), perturbed:
                f, after = differentiated.with_outputs(x[batch], outputs, compact=False)
            place = batch if isinstance(batch, slice) else batch.cpu().numpy()
            squares[place] = distances(before, after) ** 2
            f_away = max(f_away, float((f - plain.outputs[batch]).abs().max()))
        if len(batches) == 1:
            natural.append(perturbed)
        return squares, f_away

    runs = RUNS[0] if few_numbers else RUNS[1]
    squares = [run(number, [slice(None)])[0] for number in range(0, runs, 2)]
    in_halves = [run(number, halves) for number in range(1, runs, 2)]
    suspicious = any(
        not f_away <= differs * scale or (~(np.sqrt(changed) <= differs * size)).any()
        for changed, f_away in in_halves
    )
    if not suspicious:
        squares += [changed for changed, _ in in_halves]
    else:  # what other batches change is no rounding
        squares += [run(number, [slice(None)])[0] for number in range(1, runs, 2)]
    away = np.sqrt(np.mean(squares, 0))
    kinks = np.max([undecided(plain.plain, one, n).numpy() for one in natural], 0)
    near = differs * size + MARGIN / natural[0].coarser * away + TINY
    if plain.plain.choices:
        reach = reaches(plain.plain, natural[-1], n)
        kinks = kinks + _at_ties(differentiated, x, outputs, plain.gradients, near, reach)
    lost = (kinks > 0) | (~(away <= SATURATED * size) & (away != 0))
    near[lost] = math.inf
    if sizes is not None and (abs(size - sizes) > near).any():
        raise UserError(DEPENDS)
    if suspicious:
        if differentiated.tell_apart(x):
            return None
        _compare_batches(differentiated, x, outputs, plain, halves, near)
    error = np.where(lost, size + away, away / natural[0].coarser)
    if plain.plain.unlisted or (kinks > 0).any():
        numbers = range(runs, runs + UNLISTED_RUNS)
        changed = [run(number, [slice(None)], AS_ROUNDING)[0] for number in numbers]
        error = np.maximum(error, np.sqrt(np.max(changed, 0)))
    return GradientErrors(size, np.nan_to_num(error, nan=math.inf), kinks)


def _at_ties(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    gradients: ByName,
    near: np.ndarray,
    reach: list[Tensor] | None,
) -> np.ndarray:
    """How often the gradient of a sample becomes another where its ties are decided the other way,
    (n,). near: by how much rounding may change each; reach: of `reaches`."""
    changes = np.zeros(len(x), dtype=np.int64)
    if reach is None:
        return changes + 1
    for odd in (False, True):
        with Swapped(reach, odd):
            swapped = differentiated(x, outputs)
        changes += ~(distances(gradients, swapped) <= near)
    return changes


def _compare_batches(
    differentiated: Differentiated,
    x: Tensor,
    outputs: range,
    plain: Recorded,
    halves: tuple[Tensor, ...],
    near: np.ndarray,
) -> None:
    """Holds gradients and outputs of a batch against those of its halves, in another order. near:
    by how much rounding may change each gradient."""
    allowed = DIFFERS[differentiated.dtype] * float(plain.outputs.abs().max())
    for some in halves:
        f, gradients = differentiated.with_outputs(x[some], outputs)
        apart = float((f - plain.outputs[some]).abs().max())
        if not apart <= allowed and not apart <= reach_of(
            lambda: differentiated.outputs(x), plain.outputs, differentiated.dtype
        ):
            raise UserError(
                "the module's output for a sample depends on the others of its batch, changes from"
                " call to call, or rounds by far more than float64 in another batch: its NTK is not"
                " defined"
            )
        away = distances(of_rows(plain.gradients, some), gradients)
        if (~(away <= near[some.cpu().numpy()])).any():
            raise UserError(DEPENDS)
