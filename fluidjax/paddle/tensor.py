"""paddle.reshape, paddle.gather, paddle.split ...: shapes and indices of Paddle 2.0 on static
variables, over Fluid's layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layers
from ..errors import FluidValueError, UnsupportedError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers import (
    cast,
    diag_embed,
    index_sample,
    rank,
    scatter_nd,
    shape,
    shard_index,
    slice,
    t,
    transpose,
    unbind,
    unstack,
)
from ..layers import clamp as clamp  # in paddle.tensor only, as in the first Paddle 2.0
from ..layers._build import append, chosen
from . import logic, math
from .arrange import broadcast_tensors
from .logic import *  # noqa: F403
from .math import *  # noqa: F403


def assign(x: Any, output: Variable | None = None) -> Variable:
    """A copy of a variable, or of a NumPy array (bool, float32, int32, int64), which the op stores.

    output: a variable to write instead of a new one. Raises FluidTypeError for anything else.
    """
    return layers.assign(x, output)


def concat(x: Any, axis: Any = 0, name: str | None = None) -> Variable:
    """The variables of a list concatenated along `axis` (an integer, or a variable of one element)."""
    return layers.concat(x, axis, name)


def expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x repeated to the shape of y, whose sizes are multiples of x's."""
    return layers.expand_as(x, y, name)


def flip(x: Variable, axis: Any, name: str | None = None) -> Variable:
    """x reversed along these dimensions."""
    return layers.flip(x, axis, name)


def gather_nd(x: Variable, index: Variable, name: str | None = None) -> Variable:
    """Out[i...] = x[index[i..., 0], index[i..., 1], ...]: the last dimension of `index` is an
    index.
    """
    return layers.gather_nd(x, index, name)


def index_select(x: Variable, index: Variable, axis: int = 0, name: str | None = None) -> Variable:
    """The entries `index` (a vector) along dimension `axis`."""
    return layers.index_select(x, index, axis)


def multiplex(inputs: Any, index: Variable, name: str | None = None) -> Variable:
    """Out[i] = inputs[index[i]][i]: each row from one of the variables; index: int32 [N, 1]."""
    return layers.multiplex(inputs, index)


def numel(x: Variable, name: str | None = None) -> Variable:
    """The number of elements when the program runs: int64 [1]."""
    return layers.size(x)


def reshape(x: Variable, shape: Any, name: str | None = None) -> Variable:
    """x in another shape. shape: integers (-1, once: inferred; 0: as in x) and variables, or a
    variable.

    Raises FluidTypeError for another shape, FluidValueError for a shape with two -1 or a 0 beyond
    x's dimensions.
    """
    return layers.reshape(x, shape, name=name)


def scatter(
    x: Variable, index: Variable, updates: Variable, overwrite: bool = True, name: str | None = None
) -> Variable:
    """x with rows `index` replaced by `updates`; without overwrite these rows are the sums of their
    updates.
    """
    return layers.scatter(x, index, updates, overwrite=overwrite, name=name)


def scatter_nd_add(
    x: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """x plus `updates` at the indices in the last dimension of `index`; repeated indices add up."""
    return layers.scatter_nd_add(x, index, updates, name)


def split(
    x: Variable, num_or_sections: Any, axis: Any = 0, name: str | None = None
) -> list[Variable]:
    """`x` split along `axis`: into this many equal pieces, or pieces of these sizes (-1: the rest;
    variables allowed).

    Raises FluidTypeError for other arguments, FluidValueError if the size is not divisible.
    """
    return layers.split(x, num_or_sections, axis, name)


def stack(x: Any, axis: int = 0, name: str | None = None) -> Variable:
    """The variables of a list, all of one shape, stacked along a new dimension."""
    return layers.stack(x, axis)


def strided_slice(
    x: Variable, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None
) -> Variable:
    """slice with a step, which may be negative: x[starts[i]:ends[i]:strides[i]] along axes[i]."""
    return layers.strided_slice(x, axes, starts, ends, strides)


def tile(x: Variable, repeat_times: Any, name: str | None = None) -> Variable:
    """x repeated repeat_times[i] times along dimension i; integers and variables, or a variable."""
    return layers.expand(x, repeat_times, name)


def tril(x: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The lower triangle of each matrix: elements up to `diagonal` right of the main one; zeros
    above.
    """
    return layers.tril(x, diagonal, name)


def triu(x: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """The upper triangle of each matrix: elements from `diagonal` right of the main one on; zeros
    below.
    """
    return layers.triu(x, diagonal, name)


def unsqueeze(x: Variable, axis: Any, name: str | None = None) -> Variable:
    """x with dimensions of size 1 inserted at these axes of the result; axis: an integer, a list,
    or variables.
    """
    return layers.unsqueeze(x, axis, name)


def squeeze(x: Variable, axis: Any = None, name: str | None = None) -> Variable:
    """x without its dimensions of size 1: those in `axis`, or all. Dimensions of another size stay."""
    axes = [] if axis is None else list(axis) if isinstance(axis, list | tuple) else [axis]
    return (
        layers.squeeze(x, [a for a in axes if x.shape[a] in (1, -1)], name)
        if axes or axis is None
        else x
    )


def flatten(
    x: Variable, start_axis: int = 0, stop_axis: int = -1, name: str | None = None
) -> Variable:
    """x with the dimensions from start_axis to stop_axis merged.

    Raises UnsupportedError if more than one dimension of the result is unknown.
    """
    first, last = (a % (x.ndim or 1) for a in (start_axis, stop_axis))
    if first > last:
        raise FluidValueError(
            f"flatten's start_axis {start_axis} comes after stop_axis {stop_axis} of {x.name!r}"
        )
    merged = x.shape[first : last + 1]
    size = -1 if -1 in merged else _product(merged)
    shape = [*(0 for _ in x.shape[:first]), size, *x.shape[last + 1 :]]
    if shape.count(-1) > 1:
        raise UnsupportedError(
            f"flatten of {x.name!r} {list(x.shape)} leaves two dimensions unknown; give more of its"
            " shape"
        )
    return layers.reshape(x, shape, name=name)


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for n in sizes:
        result *= n
    return result


def expand(x: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """x repeated to `shape`, where -1 keeps x's size; leading dimensions are added.

    Raises FluidValueError if x's size is neither 1 nor the requested one.
    """
    extra = len(shape) - x.ndim
    if extra < 0:
        raise FluidValueError(
            f"expand's shape {list(shape)} has fewer dimensions than {x.name!r} {list(x.shape)}"
        )
    if extra:
        x = layers.unsqueeze(x, list(range(extra)))
    for have, want in zip(x.shape, shape, strict=True):
        if want not in (-1, have) and have != 1:
            raise FluidValueError(
                f"expand cannot make {list(shape)} of {x.name!r} {list(x.shape)}: only sizes of 1"
                " are repeated"
            )
    return layers.expand(
        x,
        [want if have == 1 and want > 0 else 1 for have, want in zip(x.shape, shape, strict=True)],
        name,
    )


broadcast_to = expand


def gather(x: Variable, index: Variable, axis: Any = None, name: str | None = None) -> Variable:
    """The slices of x along `axis` (default 0) at `index`."""
    return layers.gather(x, index) if axis in (None, 0) else layers.index_select(x, index, axis)


def where(condition: Variable, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """x where the condition is true, else y; numbers become variables of the other's dtype. Without
    both: nonzero's columns.

    Raises FluidValueError if only one of x and y is given.
    """
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise FluidValueError("where takes both x and y, or neither")
    numbers = [isinstance(v, Variable) for v in (x, y)]
    dtype = x.dtype if numbers[0] else y.dtype if numbers[1] else None
    x, y = (
        v if isinstance(v, Variable) else layers.fill_constant([1], dtype or "float32", v)
        for v in (x, y)
    )
    if tuple(x.shape) != tuple(condition.shape) or tuple(y.shape) != tuple(condition.shape):
        condition, x, y = broadcast_tensors([condition, x, y])
    return chosen(condition, x, y, name)


def _arg(layer: Any, x: Variable, axis: int | None, keepdim: bool, dtype: Any) -> Variable:
    out = layer(x, axis) if axis is not None else layer(layers.reshape(x, [-1]), 0)
    if axis is None or x.ndim == 1:
        out = layers.reshape(out, [1] * (x.ndim if keepdim else 1))
    elif keepdim:
        out = layers.unsqueeze(out, [axis])
    return out if dtype in (None, "int64") else layers.cast(out, dtype)


def argmax(
    x: Variable,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: Any = "int64",
    name: str | None = None,
) -> Variable:
    """Index of the first maximum along `axis` (None: in x flattened)."""
    return _arg(layers.argmax, x, axis, keepdim, dtype)


def argmin(
    x: Variable,
    axis: int | None = None,
    keepdim: bool = False,
    dtype: Any = "int64",
    name: str | None = None,
) -> Variable:
    """Index of the first minimum along `axis` (None: in x flattened)."""
    return _arg(layers.argmin, x, axis, keepdim, dtype)


def argsort(
    x: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> Variable:
    """Indices that sort x along `axis`."""
    return layers.argsort(x, axis, descending, name)[1]


def sort(
    x: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> Variable:
    """x sorted along `axis`."""
    return layers.argsort(x, axis, descending, name)[0]


def topk(
    x: Variable,
    k: Any,
    axis: int | None = None,
    largest: bool = True,
    sorted: bool = True,
    name: str | None = None,
) -> Any:
    """The k largest (or smallest) elements along `axis` (default the last), in order, and their
    indices.
    """
    inputs, attrs = ({"X": x, "K": k}, {}) if isinstance(k, Variable) else ({"X": x}, {"k": int(k)})
    attrs |= {"axis": -1 if axis is None else axis, "largest": largest, "sorted": sorted}
    helper = LayerHelper("top_k_v2", name=name)
    return append(helper, inputs, {"Out": x.dtype, "Indices": "int64"}, attrs, stop="Indices")


def chunk(x: Variable, chunks: int, axis: Any = 0, name: str | None = None) -> list[Variable]:
    """x split into this many equal pieces along `axis`."""
    return layers.split(x, chunks, axis, name)


def masked_select(x: Variable, mask: Variable, name: str | None = None) -> Variable:
    """The elements of x where `mask`, of the same shape, is true: a vector whose length depends on
    data.

    Raises FluidValueError for a mask of another shape.
    """
    sizes = zip(x.shape, mask.shape, strict=False)
    if len(x.shape) != len(mask.shape) or [1 for a, b in sizes if a != b and -1 not in (a, b)]:
        raise FluidValueError(
            f"masked_select takes a mask of x's shape {list(x.shape)}, not of shape"
            f" {list(mask.shape)}; expand it"
        )
    return layers.gather_nd(x, layers.where(mask), name)


def nonzero(x: Variable, as_tuple: bool = False) -> Any:
    """The indices where x is not 0: [n, rank of x], int64; as_tuple: its columns, each [n, 1]."""
    return layers.nonzero(x, as_tuple)


def reshape_(x: Variable, shape: Any, name: str | None = None) -> Variable:
    """reshape(x, shape); a static program has nothing to write in place."""
    return reshape(x, shape, name)


def scatter_(
    x: Variable, index: Variable, updates: Variable, overwrite: bool = True, name: str | None = None
) -> Variable:
    """scatter(x, index, updates, overwrite); a static program has nothing to write in place."""
    return scatter(x, index, updates, overwrite, name)


def squeeze_(x: Variable, axis: Any = None, name: str | None = None) -> Variable:
    """squeeze(x, axis); a static program has nothing to write in place."""
    return squeeze(x, axis, name)


def unsqueeze_(x: Variable, axis: Any, name: str | None = None) -> Variable:
    """unsqueeze(x, axis); a static program has nothing to write in place."""
    return unsqueeze(x, axis, name)


def roll(x: Variable, shifts: Any, axis: Any = None, name: str | None = None) -> Variable:
    """x with its elements rotated by `shifts` along `axis` (None: x flattened)."""
    return layers.roll(x, shifts, axis)


def meshgrid(*args: Any, **kwargs: Any) -> Any:
    """Coordinates [N1, N2, ...] from vectors, given separately or in one list."""
    return layers.meshgrid(
        list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args),
        **kwargs,
    )


__all__ = [
    "argmax", "argmin", "argsort", "assign", "broadcast_to", "cast", "chunk", "concat", "diag_embed", "expand", "expand_as",
    "flatten", "flip", "gather", "gather_nd", "index_sample", "index_select", "masked_select", "meshgrid", "multiplex",
    "nonzero", "numel", "rank", "reshape", "reshape_", "roll", "scatter", "scatter_", "scatter_nd", "scatter_nd_add", "shape",
    "shard_index", "slice", "sort", "split", "squeeze", "squeeze_", "stack", "strided_slice", "t", "tile", "topk", "transpose",
    "tril", "triu", "unbind", "unsqueeze", "unsqueeze_", "unstack", "where",
]  # fmt: skip
__all__ += logic.__all__
__all__ += math.__all__
