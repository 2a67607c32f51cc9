"""Gradients sample by sample from the operations of a graph of autograd: for each kind of operation
that takes a weight, how the weight's gradients follow from its other inputs, which autograd has
saved, and from the vectors that are back-propagated to its result.

The operations are torch's own, below its layers: attention, recurrent cells and layers of a user's
own are products, sums and convolutions here. What a rule needs is read from the node (`_saved_…`,
as in torch's tutorial of saved tensors); where a version of torch has it otherwise, or an operation
has no rule, the parameter is differentiated sample by sample.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import functional

from ntkcond.library.per_sample_gradients import Embedded, Explicit, Factored, Gradients

# Operations that only arrange entries of a tensor anew, each once at most.
VIEWS = {
    f"{name}Backward{number}"
    for name in (
        "T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze",
        "Slice", "Select", "Split", "SplitWithSizes", "UnsafeSplit", "Unbind", "Alias", "Clone",
    )
    for number in range(3)
}  # fmt: skip


class Layout(NamedTuple):
    """Where the n samples are in a tensor: among its entries in order, (before, n, after)."""

    before: int
    after: int

    def of(self, values: Tensor, n: int) -> Tensor:
        """(before, n, after)."""
        return values.reshape(self.before, n, self.after)


def layouts(shape: Sequence[int], n: int) -> Iterator[Layout]:
    """All that a tensor can have: samples may be an axis of it or a factor of one. An empty one, as
    of a part of the batch that is not there, has none."""
    if 0 in shape:
        return
    before, after = 1, math.prod(shape)
    for size in shape:
        after //= size
        for inner in range(1, size // n + 1) if size % n == 0 else ():
            if size // n % inner == 0:
                yield Layout(before * (size // n // inner), inner * after)
        before *= size


class Meeting(NamedTuple):
    """An operation in which weights meet the n samples. node: of autograd; place: of the weights
    among its inputs; shape: theirs; back: what is back-propagated to its result; layout: its."""

    node: Any
    place: int
    shape: Sequence[int]
    back: Tensor
    layout: Layout
    n: int


def _by_sample(m: Meeting, rows: Tensor) -> Tensor | None:
    """(n, 1, t, k) of rows (R, k), in the order of those of a result (R, …); None where a row has
    parts of several samples."""
    width = math.prod(m.back.shape) // len(rows) if len(rows) else 1
    if m.layout.after % width:
        return None
    apart = rows.reshape(m.layout.before, m.n, m.layout.after // width, rows.shape[-1])
    return apart.transpose(0, 1).flatten(1, 2)[:, None]


def _summed(m: Meeting, values: Tensor) -> Explicit | None:
    """values, of the shape of the result, summed to that of the weights, which were broadcast."""
    shape = [*[1] * (values.ndim - len(m.shape)), *m.shape]
    axis, inner = -1, 0
    before, after = 1, values.numel()
    for d, size in enumerate(values.shape):
        after //= size
        outer, outer_left = divmod(m.layout.before, before)
        inner, inner_left = divmod(m.layout.after, after)
        if not outer_left and not inner_left and outer * m.n * inner == size and shape[d] == 1:
            axis = d
            break
        before *= size
    if axis < 0:
        return None
    apart = values.unflatten(axis, (-1, m.n, inner)).movedim(axis + 1, 0)
    shape.insert(axis, 1)
    over = [d + 1 for d, size in enumerate(shape) if size == 1 and apart.shape[d + 1] > 1]
    return Explicit((apart.sum(over) if over else apart).reshape(m.n, -1))


def _product(m: Meeting, left: Tensor | None, right: Tensor | None) -> Gradients | None:
    """Gradients of left @ right, (R, k) @ (k, p), where the weights are one of the two."""
    if m.place == 1 and left is not None:  # (k, p)
        rows, back = _by_sample(m, left), _by_sample(m, m.back)
        return None if rows is None or back is None else Factored(rows, back, back.shape[-1])
    if m.place == 0 and right is not None:  # (R, k): samples are columns of the result
        columns = m._replace(back=m.back.T.contiguous(), layout=_transposed(m))
        if not columns.layout.before:
            return None
        rows, back = _by_sample(columns, right.T), _by_sample(columns, columns.back)
        return None if rows is None or back is None else Factored(back, rows, rows.shape[-1])
    return None


def _transposed(m: Meeting) -> Layout:
    """Layout of the transposed result, (columns, R); before: 0 where a column has several
    samples."""
    height, width = m.back.shape
    outer, left = divmod(m.layout.before, height)
    good = not left and outer * m.n * m.layout.after == width
    return Layout(outer if good else 0, m.layout.after * height)


def mm(m: Meeting) -> Gradients | None:
    return _product(m, _conjugate(m.node._saved_self), _conjugate(m.node._saved_mat2))


def _conjugate(factor: Tensor | None) -> Tensor | None:
    """What a gradient is multiplied by: of complex numbers the conjugate, as torch defines it."""
    return None if factor is None else factor.conj()


def addmm(m: Meeting) -> Gradients | None:
    node = m.node
    if m.place == 0:
        return _summed(m, m.back * node._saved_beta)
    scaled = m._replace(place=m.place - 1, back=m.back * node._saved_alpha)
    return _product(scaled, _conjugate(node._saved_mat1), _conjugate(node._saved_mat2))


def bmm(m: Meeting) -> Gradients | None:
    """Several products, (g, R, k) @ (g, k, p): of all samples, with weights of each group."""
    (groups, height, width), layout = m.back.shape, m.layout
    if m.place == 1:
        rows, back = m.node._saved_self.conj(), m.back
        (before, rest), (t, split) = divmod(layout.before, groups), divmod(layout.after, width)
    else:  # samples are columns of the results
        rows, back = m.node._saved_mat2.mT.conj(), m.back.mT
        (before, rest), (t, split) = divmod(layout.before, groups * height), (layout.after, 0)
    if rest or split or before * m.n * t != back.shape[1]:
        return None

    def apart(values: Tensor) -> Tensor:
        return values.reshape(groups, before, m.n, t, -1).permute(2, 0, 1, 3, 4).flatten(2, 3)

    b, a = (apart(rows), apart(back)) if m.place == 1 else (apart(back), apart(rows))
    return Factored(b, a, a.shape[-1])


def mv(m: Meeting) -> Gradients | None:
    """(R, k) @ (k,)."""
    if m.place == 0:
        return None
    rows, back = _by_sample(m, m.node._saved_self.conj()), _by_sample(m, m.back[:, None])
    return None if rows is None or back is None else Factored(rows, back, 1)


def convolution(m: Meeting) -> Gradients | None:
    node, back = m.node, m.back
    if m.layout.after % math.prod(back.shape[1:]) or back.is_complex():
        return None
    if m.place == 2:
        return _summed(m._replace(shape=(*m.shape, *[1] * (back.ndim - 2))), back)
    groups, outer, images = node._saved_groups, m.layout.before, len(back) // m.n

    def apart(values: Tensor) -> Tensor:  # (n, images of a sample, …)
        split = values.reshape(outer, m.n, images // outer, *values.shape[1:])
        return split.transpose(0, 1).flatten(1, 2)

    x, of_result = apart(node._saved_input), apart(back)
    if node._saved_transposed:  # from the result to the input it is a convolution
        x, of_result = of_result, x
    by_group = of_result.flatten(3).unflatten(2, (groups, -1)).transpose(1, 2)
    unfold = functools.partial(  # without the node, which would keep the graph alive
        _patches, groups=groups, kernel=m.shape[2:], stride=node._saved_stride,
        padding=node._saved_padding, dilation=node._saved_dilation, places=of_result.shape[3:],
    )  # fmt: skip
    return Factored(by_group.mT.flatten(2, 3), x, math.prod(m.shape[1:]), unfold)


def _patches(
    x: Tensor,
    groups: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    places: Sequence[int],
) -> Tensor:
    """Patches of images (n, images, channels, …), (n, groups, images · places, channels ·
    kernel)."""
    d = len(kernel)
    windows = functional.pad(x.flatten(0, 1), [p for size in padding[::-1] for p in (size, size)])
    for axis in range(d):  # a view of all windows; its copy is faster than functional.unfold
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        windows = windows.unfold(2 + axis, reach, stride[axis])[..., :: dilation[axis]]
        windows = windows.narrow(2 + axis, 0, places[axis])
    order = 0, 1, *range(2 + d, 2 + 2 * d), *range(2, 2 + d)
    by_group = windows.permute(order).unflatten(1, (groups, -1)).flatten(2, 2 + d).flatten(3)
    return by_group.unflatten(0, (len(x), -1)).transpose(1, 2).mT.flatten(2, 3)


def embedding(m: Meeting) -> Gradients | None:
    node, back = m.node, m.back
    if node._saved_scale_grad_by_freq or m.layout.after % back.shape[-1]:
        return None
    index = m.layout._replace(after=m.layout.after // back.shape[-1]).of(node._saved_indices, m.n)
    by_sample = m.layout.of(back, m.n).transpose(0, 1).reshape(m.n, -1, back.shape[-1])
    index = index.transpose(0, 1).flatten(1)
    skipped = node._saved_padding_idx  # of no row: −1, unsigned
    if 0 <= skipped < m.shape[0]:
        by_sample = by_sample * (index != skipped)[..., None]
    return Embedded(index, by_sample, m.shape[0])


def layer_norm(m: Meeting) -> Gradients | None:
    node = m.node
    if m.place == 2:
        return _summed(m, m.back)
    return _summed(m, m.back * ((node._saved_input - node._saved_result1) * node._saved_result2))


def group_norm(m: Meeting) -> Gradients | None:
    node, back = m.node, m.back
    m = m._replace(shape=(*m.shape, *[1] * (back.ndim - 2)))
    if m.place == 2:
        return _summed(m, back)
    x, (mean, scale) = node._saved_input, (node._saved_result1, node._saved_result2)
    grouped = x.reshape(*mean.shape, -1)
    return _summed(m, back * ((grouped - mean[..., None]) * scale[..., None]).reshape(x.shape))


def batch_norm(m: Meeting) -> Gradients | None:
    """With fixed statistics."""
    node, back = m.node, m.back
    if node._saved_training:
        return None
    m = m._replace(shape=(*m.shape, *[1] * (back.ndim - 2)))
    if m.place == 2:
        return _summed(m, back)
    mean, variance = (
        v.reshape(m.shape) for v in (node._saved_running_mean, node._saved_running_var)
    )
    return _summed(m, back * ((node._saved_input - mean) * (variance + node._saved_eps).rsqrt()))


def mul(m: Meeting) -> Gradients | None:
    other = m.node._saved_other if m.place == 0 else m.node._saved_self
    return _summed(m, m.back * other.conj())


def div(m: Meeting) -> Gradients | None:
    by = m.node._saved_other.conj()
    return _summed(m, m.back / by if m.place == 0 else -m.back * m.node._saved_self.conj() / by**2)


def add(m: Meeting) -> Gradients | None:
    return _summed(m, m.back if m.place == 0 else m.back * m.node._saved_alpha)


def sub(m: Meeting) -> Gradients | None:
    return _summed(m, m.back if m.place == 0 else -m.back * m.node._saved_alpha)


def expand(m: Meeting) -> Gradients | None:
    return _summed(m, m.back)


def repeat(m: Meeting) -> Gradients | None:
    """Along the first axis."""
    size = math.prod(m.shape)
    if m.layout.after != size:
        return None
    return Explicit(m.layout.of(m.back, m.n).sum(0))


def prelu(m: Meeting) -> Gradients | None:
    return _summed(m, m.back * m.node._saved_self.clamp(max=0)) if m.place == 1 else None


Rule = Callable[[Meeting], Gradients | None]
RULES: dict[str, Rule] = {
    "MmBackward0": mm,
    "AddmmBackward0": addmm,
    "BmmBackward0": bmm,
    "MvBackward0": mv,
    "ConvolutionBackward0": convolution,
    "EmbeddingBackward0": embedding,
    "NativeLayerNormBackward0": layer_norm,
    "NativeGroupNormBackward0": group_norm,
    "NativeBatchNormBackward0": batch_norm,
    "MulBackward0": mul,
    "DivBackward0": div,
    "AddBackward0": add,
    "SubBackward0": sub,
    "ExpandBackward0": expand,
    "RepeatBackward0": repeat,
    "PreluKernelBackward0": prelu,
}


def gradients(meeting: Meeting) -> Gradients | None:
    """Gradients of the weights, sample by sample, in the order of their shape; None where there is
    no rule, or the operation has what none covers."""
    rule = RULES.get(meeting.node.name())
    if rule is None:
        return None
    try:
        result: Any = rule(meeting)
    except AttributeError:  # of another version of torch
        return None
    if result is None:
        return None
    tensors = {k: v.detach() for k, v in result._asdict().items() if isinstance(v, Tensor)}
    return result._replace(**tensors)  # what autograd has saved has a graph of its own
