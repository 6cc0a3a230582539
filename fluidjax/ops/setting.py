"""Ops that set a part of a tensor, in Paddle 2 and 3: slices, masks, indices, diagonals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..base.dtypes import name_of, numpy_dtype
from ..errors import FluidValueError, ShapeError
from .checking import Objection
from .concrete import integers, known
from .infer import Spec
from .outside import outside
from .registry import Array, Float64s, Floats, Int64, Ints, Longs, Scalars, grad_of, op
from .traits import FREE, mixes, sizes_from


def _part(X: Array, axes: Sequence[int], bounds: Sequence[Sequence[int]]) -> tuple[slice, ...]:
    part = [slice(None)] * X.ndim
    for i, axis in enumerate(axes):
        start, end, step = (b[i] for b in bounds)
        if step == 0:
            raise ShapeError("set_value takes steps other than 0")
        part[axis] = slice(start, end, step)
    return tuple(part)


def _same(Input: Spec, *_: Any, **__: Any) -> Spec:
    return Input


@op(
    outs="Out",
    grad="ValueTensor StartsTensorList EndsTensorList StepsTensorList Input",
    infer=_same,
    rows=mixes(),
    nograd="StartsTensorList EndsTensorList StepsTensorList",
    sizes=sizes_from("StartsTensorList EndsTensorList StepsTensorList"),
    inplace={"Out": "Input"},
)
def set_value(
    Input: Array, ValueTensor: Array | None, StartsTensorList: list[Array] | None, EndsTensorList: list[Array] | None,
    StepsTensorList: list[Array] | None, *, dtype: int = 5, axes: Longs = (), starts: Longs = (), ends: Longs = (),
    steps: Longs = (), decrease_axes: Longs = (), none_axes: Longs = (), values: Scalars = (), shape: Longs = (),
    bool_values: Ints = (), fp32_values: Floats = (), int32_values: Ints = (), int64_values: Longs = (), fp64_values: Float64s = (),
):  # fmt: skip
    """Out = Input with the slice starts:ends:steps along `axes` set to ValueTensor, or to `values`
    of `shape`, broadcast.

    The slice lacks the decrease_axes, and has ones at none_axes. Before Paddle 2.5 each dtype had
    its own attribute of values.
    """
    tensors = {
        "Starts": (StartsTensorList, starts),
        "Ends": (EndsTensorList, ends),
        "Steps": (StepsTensorList, steps),
    }
    bounds = [
        integers("set_value", f"{name}TensorList", given, None, plain)
        for name, (given, plain) in tensors.items()
    ]
    part = _part(Input, axes, [b or (1,) * len(axes) for b in bounds])
    value = ValueTensor
    if value is None:
        held = fp32_values or fp64_values or int32_values or int64_values or bool_values
        # `values` become Input's dtype at once, whatever `dtype` says
        value = (
            np.asarray(values) if values else np.asarray(held, numpy_dtype(name_of(dtype)))
        ).reshape(shape)
    target = (
        np.empty(Input.shape, np.bool_)[part].shape
        if np.prod(Input.shape) < 2**20
        else _shape_of(Input.shape, part)
    )
    seen = [n for i, n in enumerate(target) if i not in decrease_axes]
    for axis in none_axes:
        seen.insert(axis, 1)
    value = jnp.broadcast_to(
        jnp.asarray(value, Input.dtype).reshape(_trimmed(value.shape, len(seen))), seen
    )
    return jnp.asarray(Input).at[part].set(value.reshape(target))


def _shape_of(shape: Sequence[int], part: Sequence[slice]) -> tuple[int, ...]:
    return tuple(len(range(*p.indices(n))) for n, p in zip(shape, part, strict=True))


def _trimmed(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    """A shape without leading ones that exceed the rank of the slice."""
    more = len(shape) - rank
    return tuple(shape[more:]) if more > 0 and all(n == 1 for n in shape[:more]) else tuple(shape)


def _beyond(inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Iterator[Objection]:
    """Indices outside of their axis; negative ones count from its end."""
    for size, index in zip(inputs["x"].shape, inputs["indices"], strict=False):
        if index.dtype != bool:
            yield from outside("index", index, -size, size)


@op(
    outs="out",
    grad="x indices value",
    nograd="indices",
    rows=mixes(),
    bounds=FREE,
    refuses=_beyond,
)
def index_put(x: Array, indices: list[Array], value: Array, *, accumulate: bool = False):
    """out = x with value stored (or, with `accumulate`, added) at x[indices[0], indices[1], ...],
    by numbers or one mask.
    """
    if len(indices) == 1 and indices[0].dtype == bool:
        mask = indices[0].reshape(indices[0].shape + (1,) * (x.ndim - indices[0].ndim))
        if value.size != 1 and known(indices[0]) is None:
            raise FluidValueError("index_put by a mask takes one value for all places")
        return jnp.where(mask, x + value.reshape(()) if accumulate else value.reshape(()), x)
    at = jnp.asarray(x).at[tuple(indices)]
    return at.add(value) if accumulate else at.set(value)


@op(outs="out", grad="x mask value", nograd="mask", rows=mixes())
def masked_fill(x: Array, mask: Array, value: Array):
    """out = value where mask, else x; all broadcast."""
    return jnp.where(mask, value.reshape(()) if value.size == 1 else value, x)


@op(outs="Out", rows=mixes())
def fill_diagonal(X: Array, *, value: float = 0.0, offset: int = 0, wrap: bool = False):
    """Out = X with `value` on diagonal number `offset`, repeated below in a tall matrix if `wrap`;
    with more than two axes, all indices are equal.
    """
    return jnp.where(_diagonal(X.shape, offset, wrap), np.asarray(value, X.dtype), X)


@grad_of("fill_diagonal", "")
def fill_diagonal_grad(d_Out: Array, *, offset: int, wrap: bool):
    """X@GRAD = Out@GRAD, but 0 on that diagonal."""
    return jnp.where(_diagonal(d_Out.shape, offset, wrap), 0, d_Out)


def _diagonal(shape: Sequence[int], offset: int, wrap: bool) -> np.ndarray:
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ShapeError(
            f"fill_diagonal takes a matrix, or a tensor of equal sides, not {list(shape)}"
        )
    width, count = shape[1], int(np.prod(shape))
    stride = sum(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    at = np.arange(0, count if wrap or len(shape) > 2 else min(count, width * width), stride)
    at = at[(at % width + offset >= 0) & (at % width + offset < width)] + offset
    found = np.zeros(count, bool)
    found[at] = True
    return found.reshape(shape)


@op(outs="Out", rows=mixes())
def fill_diagonal_tensor(X: Array, Y: Array, *, offset: Int64 = 0, dim1: int = 0, dim2: int = 1):
    """Out = X with Y [..., n] ([1, n] or [n] for a matrix) on diagonal number `offset` of the
    planes of dim1 and dim2.
    """
    moved = jnp.moveaxis(jnp.asarray(X), (dim1, dim2), (-2, -1))
    high, wide = moved.shape[-2:]
    count = max(0, min(high + min(offset, 0), wide - max(offset, 0)))
    at = np.arange(count)
    values = Y if Y.ndim < moved.ndim else Y.reshape(*moved.shape[:-2], count)
    out = moved.at[..., at - min(offset, 0), at + max(offset, 0)].set(values)
    return jnp.moveaxis(out, (-2, -1), (dim1, dim2))


@grad_of("fill_diagonal_tensor", "", nograd="Y")
def fill_diagonal_tensor_grad(d_Out: Array, *, offset: int, dim1: int, dim2: int):
    """X@GRAD = Out@GRAD, but 0 on these diagonals."""
    return fill_diagonal_tensor(
        d_Out, np.zeros((), d_Out.dtype), offset=offset, dim1=dim1, dim2=dim2
    )
