"""paddle.nansum, paddle.quantile, paddle.cummax, paddle.mode ...: Paddle 2's statistics along an
axis.
"""

from __future__ import annotations

from typing import Any

from .. import layers
from ..base.dtypes import enum_of
from ..graph.variable import Variable
from ..layer_helper import LayerHelper
from ..layers._build import INTS, append, chosen, dtype_in, require
from .math import isnan


def _reduced(kind: str, x: Variable, axis: Any, keepdim: bool, name: str | None) -> Variable:
    axes = [] if axis is None else list(axis) if isinstance(axis, list | tuple) else [axis]
    attrs = {"dim": axes or [0], "keep_dim": keepdim, "reduce_all": not axes}
    return append(LayerHelper(kind, name=name), {"X": x}, {"Out": x.dtype}, attrs)


def amax(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Maximum over `axis` (an integer or a list; None: everything, shape [1]); equal ones share the
    gradient evenly.
    """
    return _reduced("reduce_amax", x, axis, keepdim, name)


def amin(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """Minimum over `axis` (an integer or a list; None: everything, shape [1]); equal ones share the
    gradient evenly.
    """
    return _reduced("reduce_amin", x, axis, keepdim, name)


def count_nonzero(
    x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The number of elements along `axis` that are not 0: int64; nan is not 0."""
    return layers.reduce_sum(layers.cast(layers.cast(x, "bool"), "int64"), axis, keepdim, name)


def nansum(
    x: Variable, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The sum over `axis` with 0 in place of nan; dtype casts x first."""
    x = x if dtype is None else layers.cast(x, dtype)
    return layers.reduce_sum(chosen(isnan(x), layers.full_like(x, 0.0), x), axis, keepdim, name)


def nanmean(
    x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The mean over `axis`, ignoring nan; nan if there is nothing else."""
    there = layers.reduce_sum(layers.cast(layers.logical_not(isnan(x)), x.dtype), axis, keepdim)
    return layers.elementwise_div(nansum(x, axis, None, keepdim), there, name=name)


def nanmedian(
    x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None
) -> Variable:
    """The median over `axis` (an integer, a list, or None: everything), ignoring nan; the mean of
    two middle elements.
    """
    axes = [] if axis is None else list(axis) if isinstance(axis, list | tuple) else [axis]
    outs = {"Out": x.dtype, "MedianIndex": "int64"}
    attrs = {"axis": axes, "keepdim": keepdim, "mode": "avg"}
    return append(LayerHelper("nanmedian", name=name), {"X": x}, outs, attrs, stop="MedianIndex")[0]


def quantile(x: Variable, q: Any, axis: Any = None, keepdim: bool = False) -> Variable:
    """The q-quantiles of x along `axis`, interpolated linearly: float64. q: a number in [0, 1], or
    a list, whose results go along a new first dimension. nan if an element is nan. Raises
    FluidValueError for a q outside of [0, 1] or an unknown size.
    """
    return _quantile(x, q, axis, keepdim, False)


def nanquantile(x: Variable, q: Any, axis: Any = None, keepdim: bool = False) -> Variable:
    """The quantile, ignoring nan; nan if there is nothing else."""
    return _quantile(x, q, axis, keepdim, True)


def _quantile(x: Variable, q: Any, axis: Any, keepdim: bool, ignore_nan: bool) -> Variable:
    shares = list(q) if isinstance(q, list | tuple) else [q]
    require(
        bool(shares) and all(0 <= s <= 1 for s in shares),
        f"quantile's q lies between 0 and 1, unlike {q!r}",
    )
    rows, gone = _last(x, axis)
    n = rows.shape[-1]
    require(
        n > 0,
        f"quantile must know how many elements there are, but {x.name!r} has shape {list(x.shape)}",
    )
    lacking = layers.reduce_sum(layers.cast(isnan(rows), "float64"), -1, True)
    ordered = layers.cast(layers.argsort(rows, -1)[0], "float64")  # nan comes last
    shape = [
        1 if d in gone else size for d, size in enumerate(x.shape) if keepdim or d not in gone
    ] or [1]
    outs = [
        layers.reshape(_between(ordered, lacking, share, n, ignore_nan), shape) for share in shares
    ]
    return layers.stack(outs) if len(shares) > 1 else outs[0]


def _last(x: Variable, axis: Any) -> tuple[Variable, list[int]]:
    """x with the dimensions of `axis` merged as its last one, and these dimensions."""
    if axis is None:
        return layers.reshape(x, [-1]), list(range(x.ndim))
    axes = [a % x.ndim for a in (axis if isinstance(axis, list | tuple) else [axis])]
    others = [d for d in range(x.ndim) if d not in axes]
    transposed = layers.transpose(x, others + axes)
    return layers.reshape(transposed, [*(transposed.shape[: len(others)]), -1]), axes


def _between(
    ordered: Variable, lacking: Variable, share: float, n: int, ignore_nan: bool
) -> Variable:
    """The element at position share * (count - 1) of sorted rows, interpolated; if nan counts, the
    last element, which is nan.
    """
    if ignore_nan:
        at = layers.scale(layers.scale(lacking, -1.0, float(n - 1)), float(share))
        at = layers.elementwise_max(at, layers.fill_constant([1], "float64", 0.0))
    else:
        whole = layers.cast(layers.greater_than(lacking, layers.full_like(lacking, 0.0)), "float64")
        at = layers.scale(layers.scale(whole, -1.0, 1.0), float(share) * (n - 1))
        at = layers.elementwise_add(at, layers.scale(whole, float(n - 1)))
    low, high = layers.floor(at), layers.ceil(at)
    first, second = (_taken(ordered, layers.cast(i, "int64")) for i in (low, high))
    slots = {"X": first, "Y": second, "Weight": layers.elementwise_sub(at, low)}
    return append(LayerHelper("lerp"), slots, {"Out": "float64"})


def _taken(x: Variable, index: Variable) -> Variable:
    return append(
        LayerHelper("take_along_axis"),
        {"Input": x, "Index": index},
        {"Result": x.dtype},
        {"Axis": x.ndim - 1},
    )


def kthvalue(
    x: Variable, k: int, axis: int | None = None, keepdim: bool = False, name: str | None = None
) -> Any:
    """The k-th smallest element along `axis` (default the last), counted from 1, and its index."""
    attrs = {"k": k, "axis": -1 if axis is None else axis, "keepdim": keepdim}
    return append(
        LayerHelper("kthvalue", name=name),
        {"X": x},
        {"Out": x.dtype, "Indices": "int64"},
        attrs,
        stop="Indices",
    )


def mode(x: Variable, axis: int = -1, keepdim: bool = False, name: str | None = None) -> Any:
    """The most frequent element along `axis`, the smallest of several, and its last index."""
    attrs = {"axis": axis, "keepdim": keepdim}
    return append(
        LayerHelper("mode", name=name),
        {"X": x},
        {"Out": x.dtype, "Indices": "int64"},
        attrs,
        stop="Indices",
    )


def _extreme(kind: str, x: Variable, axis: int | None, dtype: Any, name: str | None) -> Any:
    kept = dtype_in(dtype, "dtype", kind, INTS)
    row, at = (layers.reshape(x, [-1]), -1) if axis is None else (x, axis)
    attrs = {"axis": at, "dtype": int(enum_of(kept))}
    return append(
        LayerHelper(kind, name=name),
        {"x": row},
        {"out": x.dtype, "indices": kept},
        attrs,
        stop="indices",
    )


def cummax(
    x: Variable, axis: int | None = None, dtype: Any = "int64", name: str | None = None
) -> Any:
    """The running maximum along `axis` (None: of x flattened), and its last index: int32 or int64."""
    return _extreme("cummax", x, axis, dtype, name)


def cummin(
    x: Variable, axis: int | None = None, dtype: Any = "int64", name: str | None = None
) -> Any:
    """The running minimum along `axis` (None: of x flattened), and its last index: int32 or int64."""
    return _extreme("cummin", x, axis, dtype, name)


def cumprod(
    x: Variable, dim: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """Cumulative products along `dim` (None: of x flattened); dtype casts x first."""
    x = x if dtype is None else layers.cast(x, dtype)
    row, at = (layers.reshape(x, [-1]), 0) if dim is None else (x, dim)
    return append(LayerHelper("cumprod", name=name), {"X": row}, {"Out": x.dtype}, {"dim": at})


def logcumsumexp(
    x: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """log of the cumulative sums of exp(x) along `axis` (None: of x flattened); dtype casts x
    first.
    """
    x = x if dtype is None else layers.cast(x, dtype)
    row, at = (layers.reshape(x, [-1]), 0) if axis is None else (x, axis)
    return append(
        LayerHelper("logcumsumexp", name=name), {"X": row}, {"Out": x.dtype}, {"axis": at}
    )


def diff(
    x: Variable,
    n: int = 1,
    axis: int = -1,
    prepend: Variable | None = None,
    append: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Differences of neighbours along `axis`, n times; for bools whether they differ.

    prepend, append: values put before and after x first. Raises FluidValueError for n below 1.
    """
    require(n >= 1, f"diff is taken at least once, not {n} times")
    at = axis % x.ndim
    whole = [v for v in (prepend, x, append) if v is not None]
    out = layers.concat(whole, at) if len(whole) > 1 else x
    for _ in range(n):
        out = _steps(
            out, at, layers.logical_xor if x.desc.dtype == "bool" else layers.elementwise_sub
        )
    return out


def _steps(x: Variable, axis: int, op: Any) -> Variable:
    """op(the next element, each element) along an axis."""
    return op(layers.slice(x, [axis], [1], [2**31 - 1]), layers.slice(x, [axis], [0], [-1]))


def _areas(y: Variable, x: Variable | None, dx: float | None, axis: int) -> tuple[Variable, int]:
    """The areas of the trapezoids between neighbours."""
    at = axis % y.ndim
    require(x is None or dx is None, "trapezoid takes x or dx, not both")
    sums = _steps(y, at, layers.elementwise_add)
    if x is None:
        return layers.scale(sums, 0.5 * (1.0 if dx is None else float(dx))), at
    across = x.ndim == y.ndim
    widths = _steps(x, at if across else 0, layers.elementwise_sub)
    if not across:
        widths = layers.reshape(widths, [*([1] * at), -1, *([1] * (y.ndim - at - 1))])
    return layers.scale(layers.elementwise_mul(sums, widths), 0.5), at


def trapezoid(
    y: Variable,
    x: Variable | None = None,
    dx: float | None = None,
    axis: int = -1,
    name: str | None = None,
) -> Variable:
    """The area under y along `axis` by the trapezoidal rule. x: the positions of the points; dx:
    their distance (default 1).
    """
    areas, at = _areas(y, x, dx, axis)
    return layers.reduce_sum(areas, at, name=name)


def cumulative_trapezoid(
    y: Variable,
    x: Variable | None = None,
    dx: float | None = None,
    axis: int = -1,
    name: str | None = None,
) -> Variable:
    """The areas under y up to each point after the first along `axis`. x, dx: as in trapezoid."""
    areas, at = _areas(y, x, dx, axis)
    return layers.cumsum(areas, at)


def bincount(
    x: Variable, weights: Variable | None = None, minlength: int = 0, name: str | None = None
) -> Variable:
    """The counts of each number from 0 to the greatest in the vector x, or the sums of their
    weights; at least minlength of them.
    """
    out = "int64" if weights is None else weights.dtype
    return append(
        LayerHelper("bincount", name=name),
        {"X": x, "Weights": weights},
        {"Out": out},
        {"minlength": minlength},
    )


def bucketize(
    x: Variable,
    sorted_sequence: Variable,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Variable:
    """searchsorted(sorted_sequence, x) for a vector of bounds. Raises FluidValueError if it is not
    a vector.
    """
    require(
        sorted_sequence.ndim == 1,
        f"bucketize takes a vector of bounds, not one of shape {list(sorted_sequence.shape)}",
    )
    return searchsorted(sorted_sequence, x, out_int32, right, name)


def searchsorted(
    sorted_sequence: Variable,
    values: Variable,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Variable:
    """The position at which each value would be inserted into its sorted row: before equal ones, or
    after them with `right`.
    """
    slots = {"SortedSequence": sorted_sequence, "Values": values}
    attrs = {"out_int32": out_int32, "right": right}
    return append(
        LayerHelper("searchsorted", name=name),
        slots,
        {"Out": "int32" if out_int32 else "int64"},
        attrs,
        stop="Out",
    )


__all__ = [
    "amax", "amin", "bincount", "bucketize", "count_nonzero", "cummax", "cummin", "cumprod", "cumulative_trapezoid", "diff",
    "kthvalue", "logcumsumexp", "mode", "nanmean", "nanmedian", "nanquantile", "nansum", "quantile", "searchsorted", "trapezoid",
]  # fmt: skip
