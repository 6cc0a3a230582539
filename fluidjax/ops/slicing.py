"""Slicing, cropping and padding of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..errors import ShapeError, UnsupportedError
from ..ir.desc import OpDesc
from .checking import VALUE, Objection
from .concrete import are_numbers, integers, is_negative, is_number, is_size, scalars
from .conditions import attribute, inner_axes
from .infer import Spec
from .ragged import Ragged
from .registry import Array, Ints, grad_of, op
from .symbolic import largest, smallest, take
from .traits import Attrs, mixes, row_wise, sizes_from

_SLICE_TENSORS = "StartsTensor EndsTensor StartsTensorList EndsTensorList"
_STRIDE_TENSORS = (
    "StartsTensor EndsTensor StridesTensor StartsTensorList EndsTensorList StridesTensorList"
)
TO_THE_END = 10000000  # Fluid's `end` for the last element


def _without(dims: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """The dims without the axes in `gone`; [1] if none is left, because Paddle 1.8.5 has no 0-d
    tensors.
    """
    left = tuple(n for i, n in enumerate(dims) if i not in gone)
    return left or (1,) if gone else left


def _gone(op: str, dims: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """Like _without. Raises ShapeError if a removed dim has more than one element."""
    wide = next((i for i in gone if dims[i] > 1), None)
    if wide is not None:
        raise ShapeError(
            f"op '{op}' has decrease_axis {list(gone)}, and dimension {wide} of what it takes has"
            f" {dims[wide]} elements"
        )
    return _without(dims, gone)


def _end(axis: int, start: int, end: int, dropped: Sequence[int]) -> int:
    """`end`, or the end of the axis if [-1:0] means one element (start is -1 and end is start + 1)."""
    return TO_THE_END if (start, end) == (-1, 0) and axis in dropped else end


def bounds(size: int, start: int, end: int) -> tuple[int, int]:
    """Start and end within a dim of `size`; negative ones count from its end."""
    first = largest(start + size if is_negative(start) else start, 0)
    whole = not is_number(size) and is_number(end) and end >= TO_THE_END
    end_at = largest(end + size if is_negative(end) else end, 0)
    last = size if whole else smallest(end_at, size)
    if not are_numbers([first, last]):
        return smallest(first, last), last  # nothing, if the dim is too small for it
    if last <= first:
        raise ShapeError(f"slice [{start}:{end}] of a dim of size {size} holds nothing")
    return first, last


def _open(i: int, infer_flags: Sequence[int], tensors: bool) -> bool:
    """Whether tensors decide the size of the i-th of the axes: its flag is -1, or there are tensors
    without flags.
    """
    return infer_flags[i] == -1 if i < len(infer_flags) else tensors and not infer_flags


def _one_element(op: OpDesc, slot: str, at: int) -> bool:
    """Whether all sizes are known; the size of a removed dim is, wherever its element is."""
    axes, gone = op.attrs["axes"], op.attrs.get("decrease_axis", ())
    return axes[at] in gone if slot.endswith("List") else all(a in gone for a in axes)


def _check_axes(
    op: str, Input: Spec, axes: Ints, decrease_axis: Ints, tensors: bool, **bounds: Ints
) -> None:
    """Raises ShapeError unless the attributes name a part of each of the axes."""
    for name, values in {"axes": axes, "decrease_axis": decrease_axis}.items():
        if any(not -Input.ndim <= a < Input.ndim for a in values):
            raise ShapeError(
                f"op '{op}' has {name} {list(values)}, and its Input{list(Input.shape)} has"
                f" {Input.ndim} dimensions"
            )
    for name, values in bounds.items():
        if len(values) != len(axes) and not (tensors and not values):
            raise ShapeError(
                f"op '{op}' takes as many {name} as axes, not {len(values)} for {len(axes)}"
            )


def _slice_spec(
    Input: Spec, StartsTensor: Any, EndsTensor: Any, StartsTensorList: Any, EndsTensorList: Any, *,
    axes: Ints, starts: Ints, ends: Ints, infer_flags: Ints, decrease_axis: Ints,
) -> Spec:  # fmt: skip
    tensors = any((StartsTensor, EndsTensor, StartsTensorList, EndsTensorList))
    _check_axes("slice", Input, axes, decrease_axis, tensors, starts=starts, ends=ends)
    dims = list(Input.shape)
    for i, axis in enumerate(axes):
        at = axis % Input.ndim
        if _open(i, infer_flags, tensors):
            dims[at] = -1
        elif dims[at] >= 0:
            first, last = bounds(dims[at], starts[i], _end(axis, starts[i], ends[i], decrease_axis))
            dims[at] = last - first
    return Spec(_gone("slice", dims, decrease_axis), Input.dtype)


def _beyond(inputs: Mapping[str, Any], attrs: Attrs) -> Iterator[Objection]:
    """Elements to take that do not exist."""
    shape = (
        inputs["Input"].rows.shape if isinstance(inputs["Input"], Ragged) else inputs["Input"].shape
    )
    first = scalars(inputs.get("StartsTensor"), inputs.get("StartsTensorList"), attrs["starts"])
    for axis, at in zip(attrs["axes"], first, strict=True):
        size = shape[axis]
        if axis in attrs["decrease_axis"] and not isinstance(at, int):
            yield (
                (at < -size) | (at >= size),
                f"takes element {VALUE} of axis {axis}, which has {size}",
                at,
            )


@op(
    "slice",
    outs="Out",
    grad=f"Input {_SLICE_TENSORS}",
    nograd=_SLICE_TENSORS,
    infer=_slice_spec,
    rows=row_wise(
        "Input",
        when=inner_axes("axes", "Input"),
        lod=lambda attrs, _: None if tuple(attrs["axes"][:1]) == (0,) else "Input",
    ),
    sizes=sizes_from(_SLICE_TENSORS, _one_element),
    refuses=_beyond,
)
def slice_(
    Input: Array, StartsTensor: Array | None, EndsTensor: Array | None,
    StartsTensorList: list[Array] | None, EndsTensorList: list[Array] | None, *,
    axes: Ints, starts: Ints = (), ends: Ints = (), infer_flags: Ints = (), decrease_axis: Ints = (),
):  # fmt: skip
    """Out = Input[..., starts[i]:ends[i], ...] on each axes[i]; the dims in `decrease_axis`, of
    size 1, are removed.

    Tensors override attributes. On an axis of `decrease_axis`, a start may be known only when the
    step runs.
    """
    first = scalars(StartsTensor, StartsTensorList, starts)
    last = scalars(EndsTensor, EndsTensorList, ends)
    low, high = [0] * Input.ndim, list(Input.shape)
    X = Input
    for axis, a, b in zip(axes, first, last, strict=True):
        at = axis % X.ndim
        dropped = axis in decrease_axis
        if is_size(a) and is_size(b) and (not dropped or is_number(X.shape[at])):
            low[at], high[at] = bounds(X.shape[at], a, _end(axis, a, b, decrease_axis))
        elif dropped:
            X = lax.dynamic_slice_in_dim(X, a, 1, axis=at)
            high[at] = 1
        else:
            raise UnsupportedError(
                f"op 'slice' cannot cut axis {axis} at a position that is not known before it runs:"
                " XLA's shapes are static; give constants, or take one element with decrease_axis"
            )
    X = lax.slice(X, low, high)
    return X.reshape(_without(X.shape, [a % X.ndim for a in decrease_axis])) if decrease_axis else X


def steps(size: int, start: int, end: int, stride: int) -> tuple[int, int]:
    """(lowest element, number of elements) of a dim of `size` at this stride; end -1 with a
    negative stride means past element 0.

    A negative stride takes the range's lowest element and every |stride|-th above it, then reverses
    the order; Python would begin at `start`, Paddle does not.
    """
    if stride == 0:
        raise ShapeError("strided_slice: a stride is 0")
    first = start + size if start < 0 else start
    last = end + size if end < 0 and not (end == -1 and stride < 0) else end
    low, high = (first, last) if stride > 0 else (last + 1, first + 1)
    low, high = max(low, 0), min(high, size)
    count = len(range(low, high, abs(stride)))
    if count == 0:
        raise ShapeError(
            f"strided_slice [{start}:{end}:{stride}] of a dim of size {size} holds nothing"
        )
    return low, count


def _strided_spec(
    Input: Spec, StartsTensor: Any, EndsTensor: Any, StridesTensor: Any, StartsTensorList: Any, EndsTensorList: Any,
    StridesTensorList: Any, *, axes: Ints, starts: Ints, ends: Ints, strides: Ints, infer_flags: Ints, decrease_axis: Ints,
) -> Spec:  # fmt: skip
    whole = any((StartsTensor, EndsTensor, StridesTensor))
    tensors = whole or any((StartsTensorList, EndsTensorList, StridesTensorList))
    _check_axes(
        "strided_slice",
        Input,
        axes,
        decrease_axis,
        tensors,
        starts=starts,
        ends=ends,
        strides=strides,
    )
    # as in 1.8.5: with tensors as bounds, no dim is known
    dims = [-1] * Input.ndim if whole else list(Input.shape)
    for i, axis in enumerate(axes):
        if _open(i, infer_flags, tensors):
            dims[axis] = -1
        elif dims[axis] >= 0:
            dims[axis] = steps(
                dims[axis], starts[i], _end(axis, starts[i], ends[i], decrease_axis), strides[i]
            )[1]
    return Spec(_gone("strided_slice", dims, decrease_axis), Input.dtype)


@op(
    outs="Out",
    grad=f"Input {_STRIDE_TENSORS}",
    nograd=_STRIDE_TENSORS,
    infer=_strided_spec,
    rows=row_wise("Input", when=inner_axes("axes", "Input")),
    sizes=sizes_from(_STRIDE_TENSORS),
)
def strided_slice(
    Input: Array, StartsTensor: Array | None, EndsTensor: Array | None, StridesTensor: Array | None,
    StartsTensorList: list[Array] | None, EndsTensorList: list[Array] | None, StridesTensorList: list[Array] | None, *,
    axes: Ints, starts: Ints = (), ends: Ints = (), strides: Ints = (), infer_flags: Ints = (), decrease_axis: Ints = (),
):  # fmt: skip
    """Out = Input[..., starts[i]:ends[i]:strides[i], ...] on each axes[i]; a stride may be
    negative.
    """
    first = integers("strided_slice", "StartsTensor", StartsTensor, StartsTensorList, starts)
    last = integers("strided_slice", "EndsTensor", EndsTensor, EndsTensorList, ends)
    by = integers("strided_slice", "StridesTensor", StridesTensor, StridesTensorList, strides)
    low, high, step, flipped = [0] * Input.ndim, list(Input.shape), [1] * Input.ndim, []
    for axis, a, b, s in zip(axes, first, last, by, strict=True):
        size, b, step[axis] = Input.shape[axis], _end(axis, a, b, decrease_axis), abs(s)
        if s < 0:
            flipped.append(axis)
        if are_numbers([size, a, b]):
            low[axis], count = steps(size, a, b, s)
            high[axis] = low[axis] + (count - 1) * abs(s) + 1
        elif s > 0:
            low[axis], high[axis] = bounds(size, a, b)
        else:
            above = (0 if b == -1 else b + 1), (TO_THE_END if a == -1 else a + 1)
            low[axis], high[axis] = bounds(size, *above)
    X = lax.slice(Input, low, high, step)
    X = lax.rev(X, flipped) if flipped else X
    return X.reshape(_without(X.shape, decrease_axis)) if decrease_axis else X


def cropped(X: Array, shape: Sequence[int], offsets: Sequence[Any]) -> Array:
    """The box of X that begins at `offsets`, which may be known only when the step runs."""
    offsets = offsets or [0] * X.ndim
    if not all(isinstance(n, int) for n in offsets):
        return lax.dynamic_slice(X, _starts(offsets), shape)
    if any(a < 0 or a + n > size for a, n, size in zip(offsets, shape, X.shape, strict=True)):
        raise ShapeError(
            f"a box of shape {list(shape)} at {list(offsets)} is not inside {list(X.shape)}"
        )
    return lax.slice(X, offsets, [a + n for a, n in zip(offsets, shape, strict=True)])


def _uncropped(X: Array, d_Out: Array, offsets: Sequence[Any]) -> Array:
    """Zeros of X's shape with d_Out at `offsets`."""
    offsets = offsets or [0] * X.ndim
    if all(isinstance(n, int) for n in offsets):
        edges = [
            (a, size - a - n, 0) for a, n, size in zip(offsets, d_Out.shape, X.shape, strict=True)
        ]
        return lax.pad(d_Out, np.zeros((), d_Out.dtype), edges)
    return lax.dynamic_update_slice(jnp.zeros(X.shape, d_Out.dtype), d_Out, _starts(offsets))


def _starts(offsets: Sequence[Any]) -> list[Any]:
    """Offsets, some of them known, in one dtype."""
    return [jnp.asarray(n).astype(jnp.int32) for n in offsets]


def _crop_spec(X: Spec, Y: Spec | None, Offsets: Any, *, shape: Ints, offsets: Ints) -> Spec:
    return Spec(Y.shape if Y is not None else _whole(shape, X.shape), X.dtype)


def _whole(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(size if n == -1 else n for n, size in zip(shape, dims, strict=True))


@op(outs="Out", infer=_crop_spec, rows=mixes(), shape_of=("Y",))
def crop(X: Array, Y: Array | None, Offsets: Array | None, *, offsets: Ints = (), shape: Ints = ()):
    """Out = X[offsets : offsets + shape], with the shape of Y if given; -1 in `shape` means X's
    dim.
    """
    return cropped(
        X, Y.shape if Y is not None else _whole(shape, X.shape), scalars(Offsets, None, offsets)
    )


@grad_of("crop", "X Offsets", nograd="Y Offsets")
def crop_grad(X: Array, Offsets: Array | None, d_Out: Array, *, offsets: Ints):
    """d_X = d_Out where Out was taken from, 0 elsewhere."""
    return _uncropped(X, d_Out, scalars(Offsets, None, offsets))


def _box(shape: Sequence[int], offsets: Sequence[Any], dims: Sequence[int]) -> list[int]:
    """The shape of the box; -1 means all elements after the offset."""
    out = []
    for i, n in enumerate(shape):
        start = offsets[i] if offsets else 0
        if n == -1 and not isinstance(start, int):
            raise UnsupportedError(
                "op 'crop_tensor' cannot take shape -1 at an offset that depends on data"
            )
        out.append(dims[i] - start if n == -1 else n)
    return out


def _crop_tensor_spec(
    X: Spec,
    Shape: Any,
    Offsets: Any,
    ShapeTensor: Any,
    OffsetsTensor: Any,
    *,
    shape: Ints,
    offsets: Ints,
) -> Spec:
    if Shape is not None or ShapeTensor:
        return Spec(tuple(n if n > 0 else -1 for n in shape) or (-1,) * X.ndim, X.dtype)
    if Offsets is not None or OffsetsTensor:
        return Spec(tuple(shape), X.dtype)
    full = _box(shape, offsets, X.shape)
    return Spec(
        tuple(
            -1 if size == -1 and n == -1 else m
            for n, m, size in zip(shape, full, X.shape, strict=True)
        ),
        X.dtype,
    )


def _box_is_known(op: OpDesc, slot: str, at: int) -> bool:
    """The offset of the box decides its size only if its shape has a -1, or may have one."""
    return slot.startswith("Offsets") and not (
        op.input("Shape") or op.input("ShapeTensor") or -1 in op.attrs.get("shape", ())
    )


@op(
    outs="Out",
    infer=_crop_tensor_spec,
    rows=mixes(),
    sizes=sizes_from("Shape ShapeTensor Offsets OffsetsTensor", _box_is_known),
)
def crop_tensor(
    X: Array, Shape: Array | None, Offsets: Array | None, ShapeTensor: list[Array] | None,
    OffsetsTensor: list[Array] | None, *, offsets: Ints = (), shape: Ints = (),
):  # fmt: skip
    """Out = X[offsets : offsets + shape]; -1 in `shape` means all elements after the offset."""
    start = scalars(Offsets, OffsetsTensor, offsets)
    dims = integers("crop_tensor", "Shape", Shape, ShapeTensor, shape)
    if (Shape is not None or ShapeTensor) and 0 in dims:
        raise ShapeError(
            "crop_tensor takes sizes other than 0 from tensors (-1: all after the offset), not"
            f" {list(dims)}"
        )
    return cropped(X, _box(dims, start, X.shape), start)


@grad_of("crop_tensor", "X Offsets OffsetsTensor", nograd="Shape Offsets ShapeTensor OffsetsTensor")
def crop_tensor_grad(
    X: Array,
    Offsets: Array | None,
    OffsetsTensor: list[Array] | None,
    d_Out: Array,
    *,
    offsets: Ints,
):
    """d_X = d_Out where Out was taken from, 0 elsewhere."""
    return _uncropped(X, d_Out, scalars(Offsets, OffsetsTensor, offsets))


def _edges(paddings: Sequence[int]) -> list[tuple[int, int, int]]:
    return [(a, b, 0) for a, b in zip(paddings[::2], paddings[1::2], strict=True)]


@op(
    outs="Out",
    rows=row_wise("X", when=attribute("paddings", lambda p: not any(p[:2]))),
)
def pad(X: Array, *, paddings: Ints, pad_value: float = 0.0):
    """Out = X with paddings[2 i] before and paddings[2 i + 1] after dim i, filled with pad_value."""
    return lax.pad(X, np.asarray(pad_value, X.dtype), _edges(paddings))


@grad_of("pad", "")
def pad_grad(d_Out: Array, *, paddings: Ints):
    """d_X = d_Out without its border."""
    return lax.pad(d_Out, np.zeros((), d_Out.dtype), [(-a, -b, 0) for a, b, _ in _edges(paddings)])


def _pad2d_spec(
    X: Spec, Paddings: Any, *, paddings: Ints, data_format: str, mode: str, pad_value: float
) -> Spec:
    if X.ndim != 4:
        raise ShapeError(f"pad2d takes images of four dimensions, not {list(X.shape)}")
    at = 1 if data_format == "NHWC" else 2
    if Paddings is not None:
        return Spec(tuple(-1 if i in (at, at + 1) else n for i, n in enumerate(X.shape)), X.dtype)
    grown = {at: paddings[0] + paddings[1], at + 1: paddings[2] + paddings[3]}
    return Spec(
        tuple(n if n == -1 else n + grown.get(i, 0) for i, n in enumerate(X.shape)), X.dtype
    )


@op(
    outs="Out",
    grad="X Paddings",
    nograd="Paddings",
    infer=_pad2d_spec,
    rows=row_wise("X"),
    sizes=sizes_from("Paddings"),
)
def pad2d(
    X: Array, Paddings: Array | None, *,
    paddings: Ints, pad_value: float = 0.0, mode: str = "constant", data_format: str = "NCHW",
):  # fmt: skip
    """Out = images X with [top, bottom, left, right] = paddings around; mode: constant, reflect or
    edge.
    """
    top, bottom, left, right = integers("pad2d", "Paddings", Paddings, None, paddings)
    image = [(top, bottom), (left, right)]
    border = [(0, 0), *image, (0, 0)] if data_format == "NHWC" else [(0, 0), (0, 0), *image]
    if mode == "constant":
        return lax.pad(X, np.asarray(pad_value, X.dtype), [(a, b, 0) for a, b in border])
    if mode == "reflect" and not are_numbers(X.shape):
        for axis, (a, b) in enumerate(border):
            X = _reflected(X, axis, a, b) if a or b else X
        return X
    return jnp.pad(X, border, mode=mode)


def _reflected(x: Array, axis: int, before: int, after: int) -> Array:
    """x with an axis of any length reflected at its ends."""
    last = x.shape[axis] - 1
    at = jnp.abs(jnp.arange(last + 1 + before + after) - before)
    return take(x, last - jnp.abs(last - at), axis)


@op(
    outs="Out",
    infer=lambda X, Y, *, pad_value: Spec(X.shape, Y.dtype),
    rows=mixes("X"),
    shape_of=("X",),
)
def pad_constant_like(X: Array, Y: Array, *, pad_value: float = 0.0):
    """Out = Y, padded at the end of each dim to X's shape with pad_value."""
    edges = [(0, n - m, 0) for n, m in zip(X.shape, Y.shape, strict=True)]
    return lax.pad(Y, np.asarray(pad_value, Y.dtype), edges)


@grad_of("pad_constant_like", "Y", nograd="X")
def pad_constant_like_grad(Y: Array, d_Out: Array):
    """d_Y = the part of d_Out that Y fills."""
    return lax.slice(d_Out, [0] * Y.ndim, Y.shape)


def _columns(X: Sequence[Array], start_index: int, length: int) -> list[Array]:
    """Columns [start_index, start_index + length) of each X [rows, columns]; length -1: to the end."""
    width = X[0].shape[1]
    start = start_index + width if start_index < 0 else start_index
    return [lax.slice_in_dim(x, start, width if length < 0 else start + length, axis=1) for x in X]


@op(outs="Out", grad="X", rows=mixes("X"))
def partial_concat(X: list[Array], *, start_index: int = 0, length: int = -1):
    """Out = the columns [start_index, start_index + length) of X[0], X[1], ... side by side."""
    return jnp.concatenate(_columns(X, start_index, length), axis=1)


@op(outs="Out", grad="X", rows=mixes("X"))
def partial_sum(X: list[Array], *, start_index: int = 0, length: int = -1):
    """Out = the sum over X[0], X[1], ... of the columns [start_index, start_index + length)."""
    first, *others = _columns(X, start_index, length)
    for each in others:
        first = first + each
    return first
