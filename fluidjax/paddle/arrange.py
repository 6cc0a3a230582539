"""paddle.moveaxis, paddle.diagonal, paddle.take_along_axis, paddle.index_put ...: rearranging and
indexed updates, over Fluid's layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layers
from ..base.dtypes import VarType, enum_of
from ..errors import FluidValueError, UnsupportedError
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import INTS, append, chosen, dtype_in, one_of, require, variable
from .counts import cumprod, searchsorted
from .math import mod

# -- shapes ----------------------------------------------------------------------------------------


def _each(inputs: tuple[Any, ...], change: Any) -> Any:
    given = (
        list(inputs[0])
        if len(inputs) == 1 and isinstance(inputs[0], list | tuple)
        else list(inputs)
    )
    outs = [change(x) for x in given]
    return outs[0] if len(outs) == 1 else outs


def atleast_1d(*inputs: Any, name: str | None = None) -> Any:
    """The variables, each with one dimension at least."""
    return _each(inputs, lambda x: layers.reshape(x, [1]) if x.ndim == 0 else x)


def atleast_2d(*inputs: Any, name: str | None = None) -> Any:
    """The variables, each with two dimensions at least: a vector becomes a row."""
    return _each(
        inputs,
        lambda x: (
            layers.reshape(x, [1, 1])
            if x.ndim == 0
            else layers.unsqueeze(x, [0])
            if x.ndim == 1
            else x
        ),
    )


def atleast_3d(*inputs: Any, name: str | None = None) -> Any:
    """The variables, each with three dimensions at least: [N] becomes [1, N, 1], [M, N] becomes [M,
    N, 1].
    """
    added: dict[int, list[int]] = {1: [0, 2], 2: [2]}

    def change(x: Variable) -> Variable:
        return (
            layers.reshape(x, [1, 1, 1])
            if x.ndim == 0
            else layers.unsqueeze(x, added[x.ndim])
            if x.ndim < 3
            else x
        )

    return _each(inputs, change)


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape of a sum of variables of these shapes. Raises FluidValueError if they do not
    fit.
    """
    size = max(len(x_shape), len(y_shape))
    pairs = list(zip(*([1] * (size - len(s)) + list(s) for s in (x_shape, y_shape)), strict=True))
    require(
        all(a == b or 1 in (a, b) or -1 in (a, b) for a, b in pairs),
        f"{list(x_shape)} and {list(y_shape)} cannot be broadcast",
    )
    return [a if b == 1 else b if a == 1 else max(a, b) for a, b in pairs]


def broadcast_tensors(input: Sequence[Variable], name: str | None = None) -> list[Variable]:
    """The variables broadcast to one shape, that of their sum."""
    helper = LayerHelper("broadcast_tensors", name=name)
    outs = [helper.create_variable_for_type_inference(v.dtype) for v in input]
    helper.append_op(type="broadcast_tensors", inputs={"X": list(input)}, outputs={"Out": outs})
    return outs


def moveaxis(x: Variable, source: Any, destination: Any, name: str | None = None) -> Variable:
    """x with dimensions `source` (an integer or a list) at `destination`, the others in their
    order.
    """
    lists = [
        [a % x.ndim for a in (v if isinstance(v, list | tuple) else [v])]
        for v in (source, destination)
    ]
    fits = len(lists[0]) == len(lists[1]) and all(len(set(v)) == len(v) for v in lists)
    require(
        fits,
        f"moveaxis takes as many places as dimensions, each once, not {source!r} to"
        f" {destination!r}",
    )
    at = dict(zip(lists[1], lists[0], strict=True))
    rest = iter(d for d in range(x.ndim) if d not in lists[0])
    return layers.transpose(x, [at[d] if d in at else next(rest) for d in range(x.ndim)], name)


def unflatten(x: Variable, axis: int, shape: Any, name: str | None = None) -> Variable:
    """x with dimension `axis` split into several, of `shape` (-1: the rest)."""
    at = axis % x.ndim
    return layers.reshape(x, [*([0] * at), *shape, *x.shape[at + 1 :]], name=name)


def vsplit(x: Variable, num_or_sections: Any, name: str | None = None) -> list[Variable]:
    """x split along its first dimension. Raises FluidValueError for fewer than two dimensions."""
    require(
        x.ndim >= 2,
        f"vsplit takes two dimensions or more, but {x.name!r} has shape {list(x.shape)}",
    )
    return layers.split(x, num_or_sections, 0, name)


def reverse(x: Variable, axis: Any, name: str | None = None) -> Variable:
    """x reversed along these dimensions."""
    return layers.flip(x, list(axis) if isinstance(axis, list | tuple) else [axis], name)


def rot90(
    x: Variable, k: int = 1, axes: Sequence[int] = [0, 1], name: str | None = None
) -> Variable:
    """x rotated k times by 90 degrees, from the first dimension of `axes` towards the second."""
    require(
        len({a % x.ndim for a in axes}) == len(axes) == 2,
        f"rot90 turns in two dimensions, not in {list(axes)}",
    )
    first, second = (a % x.ndim for a in axes)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if k % 4 in (0, 2):
        return layers.flip(x, [first, second], name) if k % 4 else layers.assign(x)
    if k % 4 == 1:
        return layers.transpose(layers.flip(x, [second]), order, name)
    return layers.flip(layers.transpose(x, order), [second], name)


def crop(x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None) -> Variable:
    """The part of x with this shape (default x's; -1: up to the end) that begins at `offsets`
    (default zeros).
    """
    return layers.crop_tensor(x, x.shape if shape is None else shape, offsets, name)


def clone(x: Variable, name: str | None = None) -> Variable:
    """A copy of x, through which gradients flow."""
    return layers.assign(x)


# -- diagonals -------------------------------------------------------------------------------------


def diagflat(x: Variable, offset: int = 0, name: str | None = None) -> Variable:
    """A matrix with the elements of x on the diagonal `offset` above the main one, zeros elsewhere."""
    attrs = {"offset": offset, "padding_value": 0.0}
    return append(
        LayerHelper("diag_v2", name=name), {"X": layers.reshape(x, [-1])}, {"Out": x.dtype}, attrs
    )


def diagonal(
    x: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Variable:
    """The diagonals over dimensions axis1 and axis2, along a new last dimension."""
    attrs = {"offset": offset, "axis1": axis1, "axis2": axis2}
    return append(LayerHelper("diagonal", name=name), {"Input": x}, {"Out": x.dtype}, attrs)


def diagonal_scatter(
    x: Variable,
    y: Variable,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    name: str | None = None,
) -> Variable:
    """x with y on its diagonals over dimensions axis1 and axis2, in the layout of `diagonal`."""
    y = layers.reshape(y, [1, -1]) if y.ndim == 1 else y
    attrs = {"offset": offset, "dim1": axis1, "dim2": axis2}
    return append(
        LayerHelper("fill_diagonal_tensor", name=name), {"X": x, "Y": y}, {"Out": x.dtype}, attrs
    )


def _indices(kind: str, sizes: dict[str, int], offset: int, dtype: Any) -> Variable:
    kept = dtype_in(dtype, "dtype", kind, INTS)
    return append(
        LayerHelper(kind),
        {},
        {"out": kept},
        {**sizes, "offset": offset, "dtype": int(enum_of(kept))},
        stop="out",
    )


def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = "int64") -> Variable:
    """Rows and columns [2, n] of the elements on and below a diagonal of a matrix [row, col]: int32
    or int64.
    """
    return _indices("tril_indices", {"rows": row, "cols": col}, offset, dtype)


def triu_indices(
    row: int, col: int | None = None, offset: int = 0, dtype: Any = "int64"
) -> Variable:
    """Rows and columns [2, n] of the elements on and above a diagonal of a matrix [row, col], or
    [row, row]: int32 or int64.
    """
    return _indices("triu_indices", {"row": row, "col": row if col is None else col}, offset, dtype)


def vander(
    x: Variable, n: int | None = None, increasing: bool = False, name: str | None = None
) -> Variable:
    """The powers n - 1, ..., 1, 0 of a vector's elements as columns, in ascending order with
    `increasing`. n: default x's size.
    """
    require(x.ndim == 1, f"vander takes a vector, but {x.name!r} has shape {list(x.shape)}")
    count = x.shape[0] if n is None else n
    require(count >= 0, f"vander takes no negative number of columns, such as {count}")
    column = layers.unsqueeze(x, [1])
    ones = layers.full_like(column, 1.0)
    if count <= 1:
        return layers.slice(ones, [1], [0], [count])
    powers = cumprod(layers.concat([ones, *([column] * (count - 1))], 1), 1)
    return powers if increasing else layers.flip(powers, [1], name)


def logspace(
    start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: Any = None, name: str | None = None
) -> Variable:
    """base ** exponent for `num` evenly spaced exponents from start to stop. Each is a number, or a
    variable of one element. dtype: default float32.
    """
    kind = enum_of(dtype or "float32")
    numbers = {"Start": start, "Stop": stop, "Base": base}
    slots = {
        s: v if isinstance(v, Variable) else layers.fill_constant([1], kind, v)
        for s, v in numbers.items()
    }
    slots["Num"] = num if isinstance(num, Variable) else layers.fill_constant([1], "int32", num)
    return append(
        LayerHelper("logspace", name=name), slots, {"Out": kind}, {"dtype": int(kind)}, stop="Out"
    )


# -- places ----------------------------------------------------------------------------------------


def take_along_axis(
    arr: Variable, indices: Variable, axis: int, broadcast: bool = True
) -> Variable:
    """arr[indices[i], j, ...] along `axis`: one element for each element of `indices`.

    broadcast: the other dimensions of both are broadcast first.
    """
    if broadcast:
        arr, indices = _except(arr, indices, axis % arr.ndim)
    attrs = {"Axis": axis % arr.ndim}
    return append(
        LayerHelper("take_along_axis"),
        {"Input": arr, "Index": indices},
        {"Result": arr.dtype},
        attrs,
    )


def _except(arr: Variable, indices: Variable, axis: int) -> tuple[Variable, Variable]:
    """Both broadcast to each other in all dimensions but one."""
    require(
        arr.ndim == indices.ndim,
        f"{arr.name!r} has {arr.ndim} dimensions, but its indices {indices.name!r} have"
        f" {indices.ndim}",
    )
    shape = broadcast_shape([1 if d == axis else n for d, n in enumerate(arr.shape)],
                            [1 if d == axis else n for d, n in enumerate(indices.shape)])  # fmt: skip
    shapes = [
        [v.shape[axis] if d == axis else n for d, n in enumerate(shape)] for v in (arr, indices)
    ]
    return _expanded(arr, shapes[0]), _expanded(indices, shapes[1])


def _expanded(x: Variable, shape: Sequence[int]) -> Variable:
    if list(x.shape) == list(shape):
        return x
    return append(LayerHelper("expand_v2"), {"X": x}, {"Out": x.dtype}, {"shape": list(shape)})


def put_along_axis(
    arr: Variable,
    indices: Variable,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Variable:
    """arr with `values` (a number or a variable) at indices along `axis`; reduce: "assign", "add",
    "multiply" ("mul"), "amax", "amin" or "mean" of the values at one index, with the old element if
    include_self. Raises FluidValueError for another.
    """
    known = ("assign", "add", "mul", "multiply", "mean", "amin", "amax")
    one_of(reduce, "reduce", "put_along_axis", known)
    at = axis % arr.ndim
    if broadcast:
        indices = _except(arr, indices, at)[1]
    if not isinstance(values, Variable):
        values = layers.full_like(layers.cast(indices, arr.dtype), values)
    values = _expanded(values, indices.shape)
    attrs = {"Axis": at, "Reduce": reduce, "Include_self": include_self}
    return append(
        LayerHelper("put_along_axis"),
        {"Input": arr, "Index": indices, "Value": values},
        {"Result": arr.dtype},
        attrs,
    )


def take(x: Variable, index: Variable, mode: str = "raise", name: str | None = None) -> Variable:
    """The elements of x flattened at `index`, in index's shape. mode: treatment of indices out of
    range: "raise" (negative ones count from the end), "wrap", "clip" (to the nearest; negative ones
    to the first). Raises FluidValueError for another.
    """
    one_of(mode, "mode", "take", ("raise", "wrap", "clip"))
    flat, at = layers.reshape(x, [-1]), layers.reshape(variable(index, "index", "take", INTS), [-1])
    size = layers.cast(layers.size(flat), at.dtype)
    if mode == "wrap":
        at = mod(at, size)
    elif mode == "clip":
        none, last = (
            layers.fill_constant([1], at.dtype, 0),
            layers.elementwise_sub(size, layers.fill_constant([1], at.dtype, 1)),
        )
        at = layers.elementwise_min(layers.elementwise_max(at, none), last)
    else:
        below = layers.cast(layers.less_than(at, layers.full_like(at, 0)), at.dtype)
        at = layers.elementwise_add(at, layers.elementwise_mul(below, size))
    return layers.reshape(layers.gather(flat, at), index.shape, name=name)


def masked_fill(x: Variable, mask: Variable, value: Any, name: str | None = None) -> Variable:
    """x with `value` (a number or a variable) where `mask` is true, both broadcast to x."""
    if not isinstance(value, Variable):
        value = layers.fill_constant([1], x.dtype, value)
    if any(tuple(v.shape) != tuple(x.shape) for v in (mask, value)):
        mask, value, x = broadcast_tensors([mask, value, x])
    return chosen(mask, value, x, name)


def index_add(
    x: Variable, index: Variable, axis: int, value: Variable, name: str | None = None
) -> Variable:
    """x with `value`'s slices added to those at `index` along `axis`; repeated indices add up."""
    return append(
        LayerHelper("index_add", name=name),
        {"X": x, "Index": index, "AddValue": value},
        {"Out": x.dtype},
        {"axis": axis},
    )


def index_fill(
    x: Variable, index: Variable, axis: int, value: Any, name: str | None = None
) -> Variable:
    """x with `value` (a number or a variable of one element) in all slices at `index` along `axis`."""
    at = axis % x.ndim
    if not isinstance(value, Variable):
        value = layers.fill_constant([1], x.dtype, value)
    order = [at, *(d for d in range(x.ndim) if d != at)]
    filled = index_put(layers.transpose(x, order), [index], value)
    return layers.transpose(filled, [order.index(d) for d in range(x.ndim)], name)


def index_put(
    x: Variable,
    indices: Sequence[Variable],
    value: Variable,
    accumulate: bool = False,
    name: str | None = None,
) -> Variable:
    """x after x[indices] = value, where `indices` has one variable for each leading dimension (or
    is a mask).

    accumulate: `value` is added instead, and repeated indices add up.
    """
    slots = {"x": x, "indices": list(indices), "value": value}
    return append(
        LayerHelper("index_put", name=name), slots, {"out": x.dtype}, {"accumulate": accumulate}
    )


def select_scatter(
    x: Variable, values: Variable, axis: int, index: int, name: str | None = None
) -> Variable:
    """x with `values` as its slice number `index` along `axis`."""
    at = axis % x.ndim
    place = index % x.shape[at] if x.shape[at] > 0 else index
    slots = {"Input": x, "ValueTensor": layers.cast(values, x.dtype)}
    attrs = {
        "axes": [at],
        "starts": [place],
        "ends": [place + 1],
        "steps": [1],
        "decrease_axes": [at],
        "dtype": int(x.dtype),
        "shape": [],
    }
    return append(LayerHelper("set_value", name=name), slots, {"Out": x.dtype}, attrs)


def repeat_interleave(
    x: Variable, repeats: Any, axis: int | None = None, name: str | None = None
) -> Variable:
    """Each slice of x along `axis` (None: each element) repeated `repeats` times: a number, or a
    vector with one number per slice.
    """
    row, at = (layers.reshape(x, [-1]), 0) if axis is None else (x, axis)
    if not isinstance(repeats, Variable):
        return append(
            LayerHelper("repeat_interleave", name=name),
            {"X": row},
            {"Out": x.dtype},
            {"Repeats": repeats, "dim": at},
        )
    ends = layers.cumsum(layers.cast(repeats, "int64"), 0)
    places = layers.range(0, layers.reduce_max(ends), 1, "int64")
    return layers.index_select(row, searchsorted(ends, places, right=True), at)


def unique_consecutive(
    x: Variable, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, dtype: Any = "int64",
    name: str | None = None,
) -> Any:  # fmt: skip
    """x without elements (along `axis` slices) that equal the one before; on request also the
    position of each element of x among them, and the length of each run: vectors of `dtype`, int32
    or int64.
    """
    kept = dtype_in(dtype, "dtype", "unique_consecutive", INTS)
    attrs = {
        "return_inverse": return_inverse,
        "return_counts": return_counts,
        "axis": [] if axis is None else [axis],
    }
    outs = {
        "Out": x.dtype,
        **({"Index": kept} if return_inverse else {}),
        **({"Counts": kept} if return_counts else {}),
    }
    attrs["dtype"] = int(enum_of(kept))
    return append(
        LayerHelper("unique_consecutive", name=name), {"X": x}, outs, attrs, stop="Index Counts"
    )


def combinations(
    x: Variable, r: int = 2, with_replacement: bool = False, name: str | None = None
) -> Variable:
    """All combinations of r elements of a vector, in order, as rows; with_replacement: an element
    may be chosen again.

    Raises FluidValueError unless x is a vector of known size, and for a negative r.
    """
    known = x.ndim == 1 and x.shape[0] >= 0 and r >= 0
    require(
        known,
        f"combinations takes a vector of known size and r >= 0, not {x.name!r} {list(x.shape)}"
        f" and {r}",
    )
    from itertools import combinations as chosen
    from itertools import combinations_with_replacement as again

    import numpy as np

    rows = list((again if with_replacement else chosen)(range(x.shape[0]), r))
    require(bool(rows) and r > 0, f"no {r} of {x.shape[0]} elements can be chosen")
    places = np.array(rows, "int64")
    return layers.reshape(
        layers.gather(x, layers.assign(places.reshape(-1))), list(places.shape), name=name
    )


# -- the same elements seen otherwise --------------------------------------------------------------


def view(x: Variable, shape_or_dtype: Any, name: str | None = None) -> Variable:
    """x in another shape. Raises UnsupportedError for a dtype, because a static program has no
    bytes to reinterpret.
    """
    if isinstance(shape_or_dtype, str | VarType):
        raise UnsupportedError(
            f"view of {x.name!r} as another dtype is not supported; cast computes the numbers in"
            " another dtype"
        )
    return layers.reshape(x, shape_or_dtype, name=name)


def view_as(x: Variable, other: Variable, name: str | None = None) -> Variable:
    """x in the shape of another variable. Raises FluidValueError if more than one of its
    dimensions is unknown.
    """
    if list(other.shape).count(-1) > 1:
        raise FluidValueError(
            f"view_as must know the shape of {other.name!r}, and {list(other.shape)} leaves more"
            " than one size open"
        )
    return layers.reshape(x, other.shape, name=name)


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shape", "broadcast_tensors", "clone", "combinations", "crop", "diagflat",
    "diagonal", "diagonal_scatter", "index_add", "index_fill", "index_put", "logspace", "masked_fill", "moveaxis",
    "put_along_axis", "repeat_interleave", "reverse", "rot90", "select_scatter", "take", "take_along_axis", "tril_indices",
    "triu_indices", "unflatten", "unique_consecutive", "vander", "view", "view_as", "vsplit",
]  # fmt: skip
