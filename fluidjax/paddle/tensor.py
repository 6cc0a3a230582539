"""paddle.add, paddle.mean, paddle.reshape ...: functions of Paddle 2.0 on static variables, over Fluid's layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layers
from ..errors import FluidValueError, UnsupportedError
from ..layer_helper import LayerHelper
from ..layers._build import append
from ..variable import Variable
from .adapt import table

_ONE = "abs acos asin atan ceil cos erf exp floor log log1p reciprocal round rsqrt sigmoid sign sin sqrt square tanh"
_TWO = {
    "add": "elementwise_add", "subtract": "elementwise_sub", "multiply": "elementwise_mul", "divide": "elementwise_div",
    "maximum": "elementwise_max", "minimum": "elementwise_min", "mod": "elementwise_mod", "remainder": "elementwise_mod",
    "floor_divide": "elementwise_floordiv",
}  # fmt: skip
_COMPARE = "equal not_equal less_than less_equal greater_than greater_equal"
_REDUCE = "x, axis=None, keepdim=False, name=None"
_REDUCED = "input=x dim=axis keep_dim=keepdim"

_ROWS = {
    **{n: (n, "x, name=None", "") for n in _ONE.split()},
    **{n: (layer, "x, y, name=None", "") for n, layer in _TWO.items()},
    **{n: (n, "x, y, name=None", "") for n in _COMPARE.split()},
    **{n: (n, "x, y, out=None, name=None", "") for n in ("logical_and", "logical_or", "logical_xor")},
    **{n: (f"reduce_{n}", _REDUCE, _REDUCED) for n in ("mean", "max", "min", "all", "any")},
    "logical_not": ("logical_not", "x, out=None, name=None", ""),
    "add_n": ("sum", "inputs, name=None", "x=inputs"),
    "addmm": ("addmm", "input, x, y, beta=1.0, alpha=1.0, name=None", ""),
    "allclose": ("allclose", "x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None", "input=x other=y"),
    "assign": ("assign", "x, output=None", "input=x"),
    "bmm": ("bmm", "x, y, name=None", ""),
    "cast": ("cast", "x, dtype", ""),
    "clip": ("clamp", "x, min=None, max=None, name=None", "input=x"),
    "concat": ("concat", "x, axis=0, name=None", "input=x"),
    "cross": ("cross", "x, y, axis=None, name=None", "input=x other=y dim=axis"),
    "diag_embed": ("diag_embed", "input, offset=0, dim1=-2, dim2=-1", ""),
    "dist": ("dist", "x, y, p=2, name=None", ""),
    "dot": ("dot", "x, y, name=None", ""),
    "expand_as": ("expand_as", "x, y, name=None", "target_tensor=y"),
    "flip": ("flip", "x, axis, name=None", "input=x dims=axis"),
    "gather_nd": ("gather_nd", "x, index, name=None", "input=x"),
    "increment": ("increment", "x, value=1.0, name=None", ""),
    "index_sample": ("index_sample", "x, index", ""),
    "index_select": ("index_select", "x, index, axis=0, name=None", "input=x dim=axis"),
    "is_empty": ("is_empty", "x, name=None", ""),
    "kron": ("kron", "x, y, name=None", ""),
    "logsumexp": ("logsumexp", _REDUCE, "dim=axis"),
    "matmul": ("matmul", "x, y, transpose_x=False, transpose_y=False, name=None", ""),
    "mm": ("matmul", "input, mat2, name=None", "x=input y=mat2"),
    "multiplex": ("multiplex", "inputs, index, name=None", ""),
    "numel": ("size", "x, name=None", "input=x"),
    "rank": ("rank", "input", ""),
    "reshape": ("reshape", "x, shape, name=None", ""),
    "scale": ("scale", "x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None", ""),
    "scatter": ("scatter", "x, index, updates, overwrite=True, name=None", "input=x"),
    "scatter_nd": ("scatter_nd", "index, updates, shape, name=None", ""),
    "scatter_nd_add": ("scatter_nd_add", "x, index, updates, name=None", "ref=x"),
    "shape": ("shape", "input", ""),
    "shard_index": ("shard_index", "input, index_num, nshards, shard_id, ignore_value=-1", ""),
    "slice": ("slice", "input, axes, starts, ends", ""),
    "split": ("split", "x, num_or_sections, axis=0, name=None", "input=x dim=axis"),
    "stack": ("stack", "x, axis=0, name=None", ""),
    "stanh": ("stanh", "x, scale_a=0.67, scale_b=1.7159, name=None", ""),
    "strided_slice": ("strided_slice", "x, axes, starts, ends, strides, name=None", "input=x"),
    "t": ("t", "input, name=None", ""),
    "tile": ("expand", "x, repeat_times, name=None", "expand_times=repeat_times"),
    "trace": ("trace", "x, offset=0, axis1=0, axis2=1, name=None", "input=x dim1=axis1 dim2=axis2"),
    "transpose": ("transpose", "x, perm, name=None", ""),
    "tril": ("tril", "x, diagonal=0, name=None", "input=x"),
    "triu": ("triu", "x, diagonal=0, name=None", "input=x"),
    "unsqueeze": ("unsqueeze", "x, axis, name=None", "input=x axes=axis"),
    "unstack": ("unstack", "x, axis=0, num=None", ""),
}  # fmt: skip

_FUNCTIONS = table(_ROWS, __name__)
globals().update(_FUNCTIONS)


def sum(x: Variable, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """The sum over `axis` (an integer or a list; None: over everything, shape [1]); dtype casts x first."""
    return layers.reduce_sum(x if dtype is None else layers.cast(x, dtype), axis, keepdim, name)


def prod(x: Variable, axis: Any = None, keepdim: bool = False, dtype: Any = None, name: str | None = None) -> Variable:
    """The product over `axis` (an integer or a list; None: over everything, shape [1]); dtype casts x first."""
    return layers.reduce_prod(x if dtype is None else layers.cast(x, dtype), axis, keepdim, name)


def pow(x: Variable, y: Any, name: str | None = None) -> Variable:
    """x ** y; y: a number or a variable."""
    return layers.elementwise_pow(x, y, name=name) if isinstance(y, Variable) else layers.pow(x, y, name)


def squeeze(x: Variable, axis: Any = None, name: str | None = None) -> Variable:
    """x without its dimensions of size 1: those in `axis`, or all. Dimensions of another size stay."""
    axes = [] if axis is None else list(axis) if isinstance(axis, list | tuple) else [axis]
    return layers.squeeze(x, [a for a in axes if x.shape[a] in (1, -1)], name) if axes or axis is None else x


def flatten(x: Variable, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Variable:
    """x with the dimensions from start_axis to stop_axis made one.

    Raises UnsupportedError if more than one dimension of the result is unknown.
    """
    first, last = (a % (x.ndim or 1) for a in (start_axis, stop_axis))
    if first > last:
        raise FluidValueError(f"flatten's start_axis {start_axis} comes after stop_axis {stop_axis} of {x.name!r}")
    merged = x.shape[first : last + 1]
    size = -1 if -1 in merged else _product(merged)
    shape = [*(0 for _ in x.shape[:first]), size, *x.shape[last + 1 :]]
    if shape.count(-1) > 1:
        raise UnsupportedError(
            f"flatten of {x.name!r} {list(x.shape)} leaves two dimensions unknown; give more of its shape"
        )
    return layers.reshape(x, shape, name=name)


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for n in sizes:
        result *= n
    return result


def expand(x: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """x repeated to `shape`, whose -1 keep x's size; dimensions are added in front.

    Raises FluidValueError where x's size is neither 1 nor the wanted one.
    """
    extra = len(shape) - x.ndim
    if extra < 0:
        raise FluidValueError(f"expand's shape {list(shape)} has fewer dimensions than {x.name!r} {list(x.shape)}")
    if extra:
        x = layers.unsqueeze(x, list(range(extra)))
    for have, want in zip(x.shape, shape, strict=True):
        if want not in (-1, have) and have != 1:
            raise FluidValueError(
                f"expand cannot make {list(shape)} of {x.name!r} {list(x.shape)}: only sizes of 1 are repeated"
            )
    return layers.expand(
        x, [want if have == 1 and want > 0 else 1 for have, want in zip(x.shape, shape, strict=True)], name
    )


broadcast_to = expand


def gather(x: Variable, index: Variable, axis: Any = None, name: str | None = None) -> Variable:
    """The slices of x along `axis` (default 0) that `index` names."""
    return layers.gather(x, index) if axis in (None, 0) else layers.index_select(x, index, axis)


def where(condition: Variable, x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x where the condition holds, else y."""
    return append(LayerHelper("where", name=name), {"Condition": condition, "X": x, "Y": y}, {"Out": x.dtype})


def _arg(layer: Any, x: Variable, axis: int | None, keepdim: bool, dtype: Any) -> Variable:
    out = layer(x, axis) if axis is not None else layer(layers.reshape(x, [-1]), 0)
    if axis is None or x.ndim == 1:
        out = layers.reshape(out, [1] * (x.ndim if keepdim else 1))
    elif keepdim:
        out = layers.unsqueeze(out, [axis])
    return out if dtype in (None, "int64") else layers.cast(out, dtype)


def argmax(
    x: Variable, axis: int | None = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """Index of the first maximum along `axis` (None: in x flattened)."""
    return _arg(layers.argmax, x, axis, keepdim, dtype)


def argmin(
    x: Variable, axis: int | None = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """Index of the first minimum along `axis` (None: in x flattened)."""
    return _arg(layers.argmin, x, axis, keepdim, dtype)


def argsort(x: Variable, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
    """Indices that sort x along `axis`."""
    return layers.argsort(x, axis, descending, name)[1]


def sort(x: Variable, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
    """x sorted along `axis`."""
    return layers.argsort(x, axis, descending, name)[0]


def topk(
    x: Variable, k: Any, axis: int | None = None, largest: bool = True, sorted: bool = True, name: str | None = None
) -> Any:
    """The k largest elements along the last dimension, in order, and their indices.

    Raises UnsupportedError for another axis, or largest=False.
    """
    if axis not in (None, -1, x.ndim - 1) or not largest:
        raise UnsupportedError("topk takes the largest elements of the last dimension; transpose or negate x first")
    return layers.topk(x, k, name)


def cumsum(x: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None) -> Variable:
    """Sums of everything up to each element along `axis` (None: of x flattened); dtype casts x first."""
    x = x if dtype is None else layers.cast(x, dtype)
    return layers.cumsum(layers.reshape(x, [-1]), 0) if axis is None else layers.cumsum(x, axis)


def roll(x: Variable, shifts: Any, axis: Any = None, name: str | None = None) -> Variable:
    """x with its elements moved by `shifts` along `axis`, those that leave coming in again (None: x flattened)."""
    return layers.roll(x, shifts, axis)


def meshgrid(*args: Any, **kwargs: Any) -> Any:
    """Coordinates [N1, N2, ...] from vectors, given apart or in one list."""
    return layers.meshgrid(
        list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args), **kwargs
    )


_OWN = (
    "argmax argmin argsort broadcast_to cumsum expand flatten gather meshgrid pow prod roll sort squeeze sum topk where"
)
__all__ = sorted([*_FUNCTIONS, *_OWN.split()])
