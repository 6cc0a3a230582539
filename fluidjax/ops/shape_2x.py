"""Shapes in Paddle 2 and 3: tiles, expansions, pads, diagonals, elements by index along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import FluidValueError, ShapeError
from .checking import Objection, Refuses
from .concrete import integers
from .infer import Spec
from .outside import outside
from .registry import Array, Int64, Ints, op
from .traits import FREE, mixes, sizes_from


def _shape_from_tensors(
    X: Spec, whole: Spec | None, parts: Sequence[Spec] | None, least: int
) -> Spec | None:
    """A shape of known rank but unknown sizes, if tensors hold it: one tensor, or one per
    dimension.
    """
    if whole is None and not parts:
        return None
    count = whole.shape[0] if whole is not None else len(parts or ())
    return Spec((-1,) * max(count, least), X.dtype)


def _expand_spec(
    X: Spec, Shape: Spec | None, expand_shapes_tensor: Sequence[Spec] | None, *, shape: Ints
) -> Spec:
    found = _shape_from_tensors(X, Shape, expand_shapes_tensor, 0)
    return Spec(_expanded("expand_v2", X.shape, shape), X.dtype) if found is None else found


@op(
    outs="Out",
    grad="X",
    infer=_expand_spec,
    rows=mixes(),
    sizes=sizes_from("Shape expand_shapes_tensor"),
)
def expand_v2(
    X: Array, Shape: Array | None, expand_shapes_tensor: list[Array] | None, *, shape: Ints = ()
):
    """Out = X broadcast to `shape`, where -1 keeps X's size; tensors override `shape`."""
    wanted = integers("expand_v2", "Shape", Shape, expand_shapes_tensor, shape)
    return jnp.broadcast_to(X, _expanded("expand_v2", X.shape, wanted))


def _expanded(kind: str, have: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    more = len(wanted) - len(have)
    fits = more >= 0 and all(
        w in (n, -1) or n == -1 or (n == 1 and w > 0)
        for w, n in zip(wanted[more:], have, strict=True)
    )
    if not fits or any(w < 0 for w in wanted[:more]):
        raise ShapeError(
            f"{kind} gives {list(have)} a shape with dimensions in front and other sizes for 1, not"
            f" {list(wanted)}"
        )
    return (
        *wanted[:more],
        *(n if w == -1 else w for w, n in zip(wanted[more:], have, strict=True)),
    )


@op(outs="Out", grad="X Y", nograd="Y", rows=mixes(), shape_of=("Y",))
def expand_as_v2(X: Array, Y: Array | None, *, target_shape: Ints = ()):
    """Out = X broadcast to the shape of Y, or to target_shape without Y."""
    return jnp.broadcast_to(
        X, _expanded("expand_as_v2", X.shape, target_shape if Y is None else Y.shape)
    )


def _tile_spec(
    X: Spec,
    RepeatTimes: Spec | None,
    repeat_times_tensor: Sequence[Spec] | None,
    *,
    repeat_times: Ints,
) -> Spec:
    found = _shape_from_tensors(X, RepeatTimes, repeat_times_tensor, X.ndim)
    if found is not None:
        return found
    rank = max(X.ndim, len(repeat_times))
    have, times = ((1,) * (rank - len(v)) + tuple(v) for v in (X.shape, repeat_times))
    return Spec(tuple(-1 if n < 0 else n * m for n, m in zip(have, times, strict=True)), X.dtype)


@op(
    outs="Out",
    grad="X",
    infer=_tile_spec,
    rows=mixes(),
    sizes=sizes_from("RepeatTimes repeat_times_tensor"),
)
def tile(
    X: Array,
    RepeatTimes: Array | None,
    repeat_times_tensor: list[Array] | None,
    *,
    repeat_times: Ints = (),
):
    """Out = X repeated repeat_times[i] times along axis i; the shorter of the two gets leading
    ones.
    """
    times = integers("tile", "RepeatTimes", RepeatTimes, repeat_times_tensor, repeat_times)
    if any(n < 0 for n in times):
        raise ShapeError(f"tile repeats no less than 0 times, not {list(times)}")
    return jnp.tile(X, times)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _checked_pad(x: Any, pads: Sequence[int], mode: str, data_format: str) -> None:
    if x.ndim != 5 or len(pads) != 6 or mode not in _MODES or data_format not in ("NCDHW", "NDHWC"):
        raise ShapeError(
            f"pad3d takes five dimensions, six paddings, a mode of {', '.join(_MODES)} and"
            f" data_format NCDHW or NDHWC, not {list(x.shape)}, {list(pads)}, {mode!r},"
            f" {data_format!r}"
        )


def _pad_spec(
    X: Spec, Paddings: Spec | None, *, paddings: Ints, mode: str, value: float, data_format: str
) -> Spec:
    first = 2 if data_format == "NCDHW" else 1
    pads = (0,) * 6 if Paddings is not None else paddings
    _checked_pad(X, pads, mode, data_format)
    more = {first: pads[4] + pads[5], first + 1: pads[2] + pads[3], first + 2: pads[0] + pads[1]}
    shape = [
        n + more.get(i, 0) if n >= 0 and not (i in more and Paddings is not None) else -1
        for i, n in enumerate(X.shape)
    ]
    return Spec(tuple(shape), X.dtype)


@op(
    outs="Out",
    grad="X",
    infer=_pad_spec,
    rows=mixes("X"),
    sizes=sizes_from("Paddings"),
)
def pad3d(
    X: Array,
    Paddings: Array | None,
    *,
    paddings: Ints = (),
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCDHW",
):
    """Out = X [N, C, D, H, W] or [N, D, H, W, C] with margins: paddings are left, right (W), top,
    bottom (H), front, back (D).

    mode: constant (`value`), reflect, replicate or circular. Paddings overrides the attribute.
    """
    pads = integers("pad3d", "Paddings", Paddings, None, paddings)
    _checked_pad(X, pads, mode, data_format)
    pairs = [(pads[4], pads[5]), (pads[2], pads[3]), (pads[0], pads[1])]
    sides = X.shape[2:] if data_format == "NCDHW" else X.shape[1:4]
    if mode == "reflect" and any(max(pair) >= n for pair, n in zip(pairs, sides, strict=True)):
        raise ShapeError(
            f"pad3d by reflection takes margins below the sides {list(sides)}, not {list(pads)}"
        )
    all = [(0, 0), (0, 0), *pairs] if data_format == "NCDHW" else [(0, 0), *pairs, (0, 0)]
    if mode == "constant":
        return lax.pad(X, np.asarray(value, X.dtype), [(*pair, 0) for pair in all])
    return jnp.pad(X, all, _MODES[mode])


def _diag_spec(X: Spec, *, offset: int, padding_value: float) -> Spec:
    if X.ndim == 1:
        n = -1 if X.shape[0] < 0 else X.shape[0] + abs(offset)
        return Spec((n, n), X.dtype)
    return Spec((_diagonal_length(X.shape, offset),), X.dtype)


def _diagonal_length(shape: Sequence[int], offset: int) -> int:
    """The length of a matrix' diagonal; -1 if a side is unknown."""
    rows, columns = shape
    return -1 if min(shape) < 0 else max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


@op(outs="Out", grad="X", infer=_diag_spec, rows=mixes())
def diag_v2(X: Array, *, offset: int = 0, padding_value: float = 0.0):
    """Out = the matrix with the vector X on its diagonal number `offset` and padding_value
    elsewhere, or that diagonal of a matrix X.
    """
    if X.ndim not in (1, 2):
        raise ShapeError(f"diag_v2 takes a vector or a matrix, not {list(X.shape)}")
    if X.ndim == 2:
        return jnp.diagonal(X, offset)
    return jnp.where(
        jnp.eye(X.shape[0] + abs(offset), k=offset, dtype=bool),
        jnp.diag(X, offset),
        np.asarray(padding_value, X.dtype),
    )


def _diagonal_spec(Input: Spec, *, offset: int, axis1: int, axis2: int) -> Spec:
    axes = axis1 % Input.ndim, axis2 % Input.ndim
    rest = [n for i, n in enumerate(Input.shape) if i not in axes]
    return Spec((*rest, _diagonal_length([Input.shape[a] for a in axes], offset)), Input.dtype)


@op(outs="Out", grad="Input", infer=_diagonal_spec, rows=mixes())
def diagonal(Input: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1):
    """Out [..., n] = diagonal number `offset` of the planes of axis1 and axis2."""
    return jnp.diagonal(Input, offset, axis1, axis2)


def _along(slot: str, attr: str) -> Refuses:
    """Indices along an axis; negative ones count from its end."""

    def refuses(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
        size = inputs[slot].shape[attrs[attr]]
        yield from outside("index", inputs["Index"], -size, size)

    return refuses


def _places(kind: str, given: Array, index: Array, axis: int) -> tuple[Array, ...]:
    """The positions in `given` of the elements that Index names along an axis, in the shape of
    Index. Raises ShapeError.
    """
    others = [i for i in range(given.ndim) if i != axis % given.ndim]
    if index.ndim != given.ndim or any(index.shape[i] > given.shape[i] for i in others):
        raise ShapeError(
            f"{kind} takes an Index no larger than Input but along the axis, not"
            f" {list(index.shape)} for {list(given.shape)}"
        )
    places = list(jnp.indices(index.shape, sparse=True))
    places[axis] = jnp.where(index < 0, index + given.shape[axis], index)
    return tuple(places)


def _like_index(Input: Spec, Index: Spec, **_: Any) -> Spec:
    return Spec(Index.shape, Input.dtype)


@op(
    outs="Result",
    grad="Input Index",
    nograd="Index",
    infer=_like_index,
    rows=mixes(),
    bounds=FREE,
    refuses=_along("Input", "Axis"),
)
def take_along_axis(Input: Array, Index: Array, *, Axis: int):
    """Result[i, j, ...] = Input[i, Index[i, j, ...], ...] along Axis, in the shape of Index;
    negative indices count from the end.

    Raises ShapeError if Index is larger than Input along another axis.
    """
    return (
        jnp.asarray(Input)
        .at[_places("take_along_axis", Input, Index, Axis % Input.ndim)]
        .get(mode="promise_in_bounds")
    )


_REDUCE = {
    "assign": "set", "add": "add", "sum": "add", "mul": "multiply", "multiply": "multiply", "amin": "min", "amax": "max", "mean": "add",
}  # fmt: skip


def _neutral(how: str, dtype: Any) -> Any:
    """The neutral element of a reduction."""
    if how in ("min", "max"):
        floats = jnp.issubdtype(dtype, jnp.floating)
        low, high = (-np.inf, np.inf) if floats else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return high if how == "min" else low
    return 1 if how == "multiply" else 0


@op(
    outs="Result",
    grad="Input Index Value",
    nograd="Index",
    rows=mixes(),
    bounds=FREE,
    refuses=_along("Input", "Axis"),
)
def put_along_axis(
    Input: Array,
    Index: Array,
    Value: Array,
    *,
    Axis: int,
    Reduce: str = "assign",
    Include_self: bool = True,
):
    """Result = Input with Value assigned at Index along Axis, or combined by Reduce with the
    elements there.

    Reduce: assign, add (sum), mul (multiply), amin, amax, mean. Include_self false: the old
    elements do not count.
    """
    if Reduce not in _REDUCE:
        raise FluidValueError(f"put_along_axis reduces by {', '.join(_REDUCE)}, not by {Reduce!r}")
    at = _places("put_along_axis", Input, Index, Axis % Input.ndim)
    how, target = _REDUCE[Reduce], jnp.asarray(Input)
    if not Include_self and how != "set":
        target = target.at[at].set(jnp.asarray(_neutral(how, target.dtype), target.dtype))
    out = getattr(target.at[at], how)(jnp.broadcast_to(Value, Index.shape).astype(Input.dtype))
    if Reduce != "mean":
        return out
    many = jnp.maximum(jnp.full(Input.shape, int(Include_self), Input.dtype).at[at].add(1), 1)
    return out / many if jnp.issubdtype(Input.dtype, jnp.inexact) else lax.div(out, many)


@op(
    outs="Out",
    grad="X Index AddValue",
    nograd="Index",
    rows=mixes(),
    bounds=FREE,
    refuses=_along("X", "axis"),
)
def index_add(X: Array, Index: Array, AddValue: Array, *, axis: int = 0):
    """Out = X with AddValue[..., i, ...] added at Index[i] along `axis`."""
    at = (slice(None),) * (axis % X.ndim) + (Index,)
    return jnp.asarray(X).at[at].add(AddValue)


@op(outs="Out", grad="X", rows=mixes("X"))
def fill_any(X: Array, *, value: float = 0.0):
    """Out = `value` in X's shape; the gradient is zero."""
    return jnp.full(X.shape, value, X.dtype)


@op(outs="Out", grad="X", rows=mixes())
def pixel_unshuffle(X: Array, *, downscale_factor: int = 1, data_format: str = "NCHW"):
    """Out[n, c r^2 + i r + j, h, w] = X[n, c, h r + i, w r + j], r the downscale_factor; channels
    last with NHWC.
    """
    x, r = _first(X, data_format, "pixel_unshuffle"), downscale_factor
    n, c, h, w = x.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: the sides of {list(X.shape)} do not divide by {r}")
    out = (
        x.reshape(n, c, h // r, r, w // r, r)
        .transpose(0, 1, 3, 5, 2, 4)
        .reshape(n, c * r * r, h // r, w // r)
    )
    return out if data_format == "NCHW" else out.transpose(0, 2, 3, 1)


@op(outs="Out", grad="X", rows=mixes())
def channel_shuffle(X: Array, *, groups: int, data_format: str = "NCHW"):
    """Out[n, i groups + g] = X[n, g C / groups + i]: the channels of the groups, interleaved;
    channels last with NHWC.
    """
    x = _first(X, data_format, "channel_shuffle")
    n, c, h, w = x.shape
    if c % groups:
        raise ShapeError(f"channel_shuffle: {c} channels do not divide by {groups}")
    out = x.reshape(n, groups, c // groups, h, w).swapaxes(1, 2).reshape(x.shape)
    return out if data_format == "NCHW" else out.transpose(0, 2, 3, 1)


def _first(x: Any, data_format: str, kind: str) -> Any:
    if x.ndim != 4 or data_format not in ("NCHW", "NHWC"):
        raise ShapeError(
            f"{kind} takes four dimensions and data_format NCHW or NHWC, not {list(x.shape)} and"
            f" {data_format!r}"
        )
    return x if data_format == "NCHW" else x.transpose(0, 3, 1, 2)


@op(outs="Out", grad="X", rows=mixes())
def repeat_interleave(
    X: Array,
    RepeatsTensor: Array | None,
    *,
    Repeats: int = 0,
    dim: int = 0,
    output_size: Int64 = -1,
):
    """Out = X with each element repeated Repeats times along `dim`."""
    if RepeatsTensor is not None:
        raise ShapeError(
            "repeat_interleave takes Repeats; a number for each element (RepeatsTensor) is not"
            " supported"
        )
    return jnp.repeat(X, Repeats, dim)
