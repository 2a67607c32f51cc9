"""What is known of torch's operations: which round, which have kinks, which choose."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

FLOAT32_CONSTANT = 2.0**29  # units of rounding of float64: 2⁻²⁴ relative

# Operations that only move numbers, or ask whether they are equal: they do not round. Names, also
# below, are without the underscore of those that change their first input.
MOVES = {
    "clone", "_to_copy", "cat", "stack", "index", "index_select", "gather", "scatter", "repeat",
    "constant_pad_nd", "select_backward", "slice_backward", "select_scatter", "slice_scatter",
    "flip", "roll", "embedding", "zeros_like", "ones_like", "empty_like", "new_zeros", "full_like",
    "where", "relu", "threshold_backward", "max", "min", "sort", "topk", "tril", "triu", "neg",
    "abs", "sgn", "sign", "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "amax", "amin",
    "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "reflection_pad2d",
    "masked_fill", "replication_pad2d", "copy", "as_strided", "diagonal_backward", "new_empty",
    "eq", "ne", "aminmax", "set", "resize", "resize_as", "squeeze", "unsqueeze", "t", "transpose",
}  # fmt: skip

PRODUCTS = {
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "dot", "addmv", "convolution",
    "convolution_backward",
}  # fmt: skip

WHOLE = {"floor", "ceil", "trunc"}  # whose results are whole numbers, and so exact

# Operations that take no numbers from what they are given, but its shape.
SHAPED = {
    "lift_fresh", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "new_empty_strided",
}  # fmt: skip

# Operations that wait for a value: the program may go on by what it is, of one sample or of all.
DECIDES = {"_local_scalar_dense", "nonzero", "equal", "masked_select", "_unique2", "unique_dim"}
COMPARES = {"gt", "ge", "lt", "le", "eq", "ne", "argmax", "argmin"}


def _added_at(z: Tensor, dim: int, at: Tensor, ones: Tensor, reduce: str = "sum") -> Tensor:
    return z if reduce in CHOICES else z.scatter_add(dim, at, ones)


def _added_along(z: Tensor, dim: int, at: Tensor, ones: Tensor, reduce: str = "sum") -> Tensor:
    return z if reduce in CHOICES else z.index_add(dim, at, ones)


def _put(z: Tensor, at: list, ones: Tensor, accumulate: bool = False, *_: Any) -> Tensor:
    return torch.ops.aten.index_put(z, at, ones, True) if accumulate else z


# Operations that add up at given places. Given zeros and ones: how many terms at each.
CHOICES = {"amax", "amin", "max", "min"}
ADDS_AT: dict[str, Callable[..., Tensor]] = {
    "index_add": _added_along,
    "index_reduce": _added_along,
    "scatter_add": _added_at,
    "scatter_reduce": _added_at,
    "index_put": _put,
    "_index_put_impl": _put,
    "_unsafe_index_put": _put,
}

# Operations that add up terms.
SUMS = PRODUCTS | set(ADDS_AT) | {
    "sum", "mean", "var", "var_mean", "std", "logsumexp", "_softmax", "_softmax_backward_data",
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "avg_pool2d",
    "native_group_norm_backward", "native_batch_norm", "native_batch_norm_backward", "cumsum",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward", "linalg_vector_norm", "prod",
    "_native_batch_norm_legit_no_training", "einsum", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
    "embedding_dense_backward",
}  # fmt: skip

# Operations that give (x − mean)/σ, mean and 1/σ.
NORMALISED = {
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
}  # fmt: skip


def _pair(a: Any, b: Any) -> Iterator[Any]:
    yield a - b


def _constant(z: Any, at: Any) -> Iterator[Any]:
    """Two tensors are compared in the backward pass of amax, whose ties are `Swapped`."""
    if not isinstance(at, Tensor):
        yield z - at


def _whole(z: Any, *_: Any) -> Iterator[Any]:
    yield z - z.round()


def _to_whole(z: Any, dtype: torch.dtype | None = None) -> Iterator[Any]:
    """A boolean is z ≠ 0, an integer without the fraction."""
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        yield from iter([z]) if dtype == torch.bool else _whole(z)


def _shrink(z: Any, at: float = 0.5) -> Iterator[Any]:
    yield from (z + at, z - at)


def _elu(z: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Iterator[Any]:
    """The slope jumps at 0, but for α = 1."""
    if alpha * input_scale != 1:
        yield z


# Distances to the kink of what these operations are given.
KINKS: dict[str, Callable[..., Iterator[Any]]] = {
    "relu": lambda z: iter([z]),
    "leaky_relu": lambda z, *_: iter([z]),
    "rrelu_with_noise": lambda z, *_: iter([z]),
    "_prelu_kernel": lambda z, *_: iter([z]),
    "abs": lambda z: iter([z]),
    "sgn": lambda z: iter([z]),
    "sign": lambda z: iter([z]),
    "threshold": lambda z, at, *_: iter([z - at]),
    "hardtanh": lambda z, low=-1, high=1: iter([z - low, z - high]),
    "hardsigmoid": lambda z: iter([z + 3, z - 3]),
    "hardswish": lambda z: iter([z + 3, z - 3]),
    "hardshrink": _shrink,
    "softshrink": _shrink,
    "elu": _elu,
    "heaviside": lambda z, *_: iter([z]),
    "softplus": lambda z, beta=1, at=20: iter([beta * z - at]),
    "atan2": lambda y, x: iter([torch.where(x < 0, y, 1.0)]),
    "_to_copy": _to_whole,
    "floor": _whole,
    "ceil": _whole,
    "trunc": _whole,
    "frac": _whole,
    "round": lambda z, decimals=0: _whole(z * 10**decimals - 0.5),
    "div": lambda a, b, rounding_mode=None: _whole(a / b) if rounding_mode else iter([]),
    "floor_divide": lambda a, b: _whole(a / b),
    "remainder": lambda a, b: _whole(a / b),
    "fmod": lambda a, b: _whole(a / b),
    "clamp": lambda z, low=None, high=None: (z - at for at in (low, high) if at is not None),
    "clamp_min": _pair,
    "clamp_max": _pair,
    "maximum": _pair,
    "minimum": _pair,
    "fmax": _pair,
    "fmin": _pair,
    "gt": _pair,
    "ge": _pair,
    "lt": _pair,
    "le": _pair,
    "eq": _constant,
    "ne": _constant,
}


# Those whose distances are no differences from their first input.
SCALED = {"div", "floor_divide", "remainder", "fmod", "round", "softplus"}


def _gelu(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    return args[0]


def _gelu_backward(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    gradient, z = args[:2]
    if kwargs.get("approximate") != "tanh":
        return gradient
    return gradient * (1 + z.abs() * (1 + z**2))


def _of_float32_constants(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    return result.abs() * (FLOAT32_CONSTANT if result.dtype == torch.float64 else 1)


def _in_part_float32(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    """Measured against mpmath: off by up to 1.5·10⁷ units."""
    return result.abs() * (2.0**25 if result.dtype == torch.float64 else 1)


def _bessel(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    """Oscillating, also near 0: off by up to 2³³ units, Ai by 2³⁵, measured likewise."""
    return (1 + result.abs()) * (2.0**31 if result.dtype == torch.float64 else 8)


def _polygamma(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    """torch's trigamma is right to 10⁻⁹. In place the order comes second."""
    order = args[1] if isinstance(args[0], Tensor) else args[0]
    return _in_part_float32(args, kwargs, result) if order == 1 else 4 * result.abs()


def _elu_backward(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    """CELU has 1/α in float32."""
    alpha, _, inverse, _, z = args[1:6]
    if inverse == 1 or alpha * inverse == 1:
        return result.abs()
    return _of_float32_constants(args, kwargs, result) * (1 + abs(inverse * z))


def _distance(args: tuple, kwargs: dict, result: Tensor) -> Tensor:
    """√(‖a‖² + ‖b‖² − 2 a·b)."""
    a, b = args[0], args[1]
    terms = (a**2).sum(-1)[..., :, None] + (b**2).sum(-1)[..., None, :]
    return math.sqrt(a.shape[-1]) * terms / result.clamp(min=torch.finfo(result.dtype).tiny)


# Errors within an operation that no relative error of its inputs and its result has: absolute, in
# units of rounding. 1 + erf and 1 + tanh of GELU cancel; a difference of squares; a constant of
# float32 in torch's code for float64.
INSIDE: dict[str, Callable[[tuple, dict, Tensor], Tensor]] = {
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "_log_softmax": lambda args, kwargs, result: 1 + result.abs(),
    "hardsigmoid_backward": _of_float32_constants,
    "digamma": lambda args, kwargs, result: 1 + result.abs(),
    "logit": lambda args, kwargs, result: 1 + result.abs(),
    "special_ndtr": lambda args, kwargs, result: 1 + result.abs(),
    "polygamma": _polygamma,
    "special_airy_ai": lambda *given: 2 * _bessel(*given),
    **dict.fromkeys((f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")), _bessel),
    "elu_backward": _elu_backward,
    "_euclidean_dist": _distance,
}


# Operations that choose among all entries of a window, or along a dimension.
POOLS = {
    "max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
}  # fmt: skip
RANKED = {
    "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "sort", "argsort", "topk",
    "kthvalue", "median", "nanmedian", "cummax", "cummin",
}  # fmt: skip


# Operations without a jump in value or slope, or which see theirs in another operation.
SMOOTH = {
    "_adaptive_avg_pool2d_backward", "_log_softmax_backward_data", "_prelu_kernel_backward",
    "_scaled_dot_product_efficient_attention_backward", "_unsafe_view", "acos", "acosh",
    "_safe_softmax", "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "add",
    "addcdiv", "addcmul",
    "addr", "asin", "asinh", "atan", "atanh", "avg_pool2d_backward", "avg_pool3d",
    "avg_pool3d_backward", "celu", "col2im", "cos", "cosh", "cumprod", "detach", "elu_backward",
    "erf", "erfc", "exp", "exp2", "expm1", "fill", "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward", "glu", "glu_backward", "hardshrink_backward",
    "hardswish_backward", "hardtanh_backward", "im2col", "index_put", "isfinite", "isinf",
    "isnan", "leaky_relu_backward", "lerp", "log", "log10", "log1p", "log2",
    "log_sigmoid_backward", "log_sigmoid_forward", "logaddexp", "logcumsumexp",
    "max_pool3d_with_indices_backward", "mish", "mish_backward", "mul", "new_empty_strided",
    "new_full", "new_ones", "pixel_shuffle", "pixel_unshuffle", "pow", "reciprocal",
    "reflection_pad1d", "reflection_pad1d_backward", "reflection_pad2d_backward",
    "reflection_pad3d", "reflection_pad3d_backward", "replication_pad1d",
    "replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d",
    "replication_pad3d_backward", "rrelu_with_noise_backward", "rsqrt", "rsub", "selu",
    "sigmoid", "sigmoid_backward", "silu", "silu_backward", "sin", "sinc", "sinh",
    "softplus_backward", "softshrink_backward", "sqrt", "square", "sub", "tan", "tanh",
    "tanh_backward", "unfold_backward", "unsafe_split", "upsample_bicubic2d",
    "upsample_bicubic2d_backward", "upsample_bilinear2d", "upsample_bilinear2d_backward",
    "upsample_linear1d", "upsample_linear1d_backward", "upsample_nearest1d",
    "upsample_nearest1d_backward", "upsample_nearest2d", "upsample_nearest2d_backward",
    "upsample_nearest3d", "upsample_nearest3d_backward", "upsample_trilinear3d",
    "upsample_trilinear3d_backward", "zero",
}  # fmt: skip

# Operations that pass errors on in proportion, whatever their size: linear in each input, or with
# kinks and choices alone (`KINKS`, `POOLS`); and backward passes of those and of `CURVED`.
LINEAR = PRODUCTS | POOLS | {
    "clone", "cat", "stack", "index_select", "gather", "select_backward", "slice_backward",
    "constant_pad_nd", "flip", "roll", "repeat", "embedding", "embedding_dense_backward", "neg",
    "zeros_like", "ones_like", "new_zeros", "where", "masked_fill", "tril", "triu", "_unsafe_view",
    "sum", "mean", "add", "sub", "rsub", "mul", "addcmul", "square", "fill", "copy", "relu", "abs",
    "threshold", "threshold_backward", "leaky_relu", "leaky_relu_backward", "hardtanh",
    "hardtanh_backward", "_prelu_kernel", "_prelu_kernel_backward", "clamp", "clamp_min",
    "clamp_max", "maximum", "minimum", "avg_pool2d", "avg_pool2d_backward", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward", "max_pool2d_with_indices_backward", "tanh_backward",
    "sigmoid_backward", "gelu_backward", "silu_backward", "mish_backward", "softplus_backward",
    "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward",
    "native_group_norm_backward", "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip

# Others do so where errors move this by little: an input, on the scale of the slope, or log 1/σ.
CURVED: dict[str, Callable[[tuple, Any], Tensor]] = {
    **dict.fromkeys(
        ("tanh", "sigmoid", "gelu", "silu", "mish", "exp", "sin", "cos", "erf", "_softmax",
         "_log_softmax"),
        lambda args, result: args[0],
    ),
    "softplus": lambda args, result: args[0] * (args[1] if len(args) > 1 else 1),
    "native_layer_norm": lambda args, result: result[2].log(),
    "native_group_norm": lambda args, result: result[2].log(),
    "_scaled_dot_product_flash_attention_for_cpu": lambda args, result: result[1],  # log Σ exp
}  # fmt: skip
NORMS = {"linalg_vector_norm": 1, "_cdist_forward": 2, "_cdist_backward": 3}  # place of the order
LISTED = MOVES | SUMS | NORMALISED | set(KINKS) | set(INSIDE) | POOLS | RANKED | SMOOTH

# Operations of which a sample's numbers do not choose what becomes of another's; others may. That
# they keep samples apart shows on a few.
APART = {
    f"{name}Backward"
    for name in (
        "Abs", "AdaptiveAvgPool2D", "Add", "Addmm", "Alias", "AvgPool2D", "AvgPool3D", "Baddbmm",
        "Bmm", "Cat", "Celu", "Clamp", "ClampMax", "ClampMin", "Clone", "ConstantPadNd",
        "Convolution", "Cos", "Div", "Dot", "Elu", "Embedding", "Erf", "Exp", "Expand", "Expm1",
        "Flip", "Gelu", "Glu", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyRelu",
        "LinalgVectorNorm", "Log", "Log1P", "LogSigmoid", "LogSoftmax", "MaskedFill",
        "MaxPool2DWithIndices", "MaxPool3DWithIndices", "Mean", "Mish", "Mm", "Mul", "Mv",
        "NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm", "Neg", "Norm", "Permute", "Pow",
        "PreluKernel", "Reciprocal", "Relu", "Repeat", "ReshapeAlias", "Roll", "Rsqrt", "Rsub",
        "ScaledDotProductEfficientAttention", "ScaledDotProductFlashAttentionForCpu", "Select",
        "Sigmoid", "Silu", "Sin", "Slice", "Softmax", "Softplus", "Softshrink", "Split",
        "SplitWithSizes", "Sqrt", "Squeeze", "Stack", "Std", "Sub", "Sum", "T", "Tanh", "Threshold",
        "ToCopy", "Transpose", "Unbind", "Unfold", "UnsafeSplit", "UnsafeView", "Unsqueeze",
        "UpsampleBilinear2D", "UpsampleNearest2D", "Var", "View", "Where",
    )
} | {"torch::autograd::AccumulateGrad"}  # fmt: skip
