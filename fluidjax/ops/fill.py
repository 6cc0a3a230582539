"""Constants, ranges and tensors shaped like others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import EnforceNotMet, MixesRows, ShapeError
from .concrete import (
    SMALL,
    are_numbers,
    concrete,
    integers,
    is_negative,
    is_number,
    known,
    numbers_of,
    refuse_huge,
    shape_spec,
)
from .infer import Spec
from .ragged import ROWS, Ragged, rows_of
from .registry import Array, Float64s, Floats, Int64, Ints, Longs, Scalars, op
from .sampling import HOST
from .traits import EAGER, Eager, knows_rows, mixes, row_wise, sizes_from


def constant(shape: Sequence[int], value: Any, dtype: np.dtype, small: int = SMALL) -> Array:
    """A tensor of one value; a small one is a NumPy array, so that it may decide a later shape."""
    if any(map(is_negative, shape)):
        raise ShapeError(f"a constant's shape holds no negative number, but it is {list(shape)}")
    refuse_huge("fill_constant", shape, dtype)
    return (
        np.full(shape, value, dtype)
        if are_numbers(shape) and math.prod(shape) <= small
        else jnp.full(shape, np.asarray(value, dtype))
    )


def scalar(value: float, text: str, dtype: np.dtype) -> Any:
    """The number that `text` writes, or `value` if it is empty; integers are exact, unlike in
    float32.

    Paddle 1.8.5 reads "inf" and "nan" as 0. Raises EnforceNotMet if int64 cannot hold it.
    """
    if text and dtype == np.int64 and text.lstrip("+-").isdecimal():
        if abs(2 * int(text) + 1) >= 2**64:
            raise EnforceNotMet(
                f"str_value is {text}, but an int64 is between {-(2**63)} and {2**63 - 1}"
            )
        return np.int64(text)
    try:
        number = float(text) if text else value
    except ValueError:
        raise EnforceNotMet(f"str_value is {text!r}, which is not a number") from None
    if text and not math.isfinite(number):
        number = 0.0
    # a value that no integer holds becomes the least one, as in 1.8.5
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(number).astype(dtype)[()]


def _constant_spec(
    ValueTensor: Spec | None, ShapeTensor: Spec | None, ShapeTensorList: tuple[Spec, ...] | None, *,
    shape: Longs, dtype: int, value: float, str_value: str, force_cpu: bool,
) -> Spec:  # fmt: skip
    return Spec(shape_spec(shape, ShapeTensor, ShapeTensorList), name_of(dtype))


def _filled(
    small: int, ValueTensor: Array | None, ShapeTensor: Array | None, ShapeTensorList: list[Array] | None,
    shape: Longs, dtype: int, value: float, str_value: str, force_cpu: bool,
) -> Array:  # fmt: skip
    """The result of fill_constant; a NumPy array if it has at most `small` elements."""
    kind = numpy_dtype(name_of(dtype))
    dims = integers(
        "fill_constant",
        "ShapeTensor",
        ShapeTensor,
        ShapeTensorList if ShapeTensor is None else None,
        shape,
    )
    if ValueTensor is None:
        return constant(dims, scalar(value, str_value, kind), kind, small)
    number = known(ValueTensor)
    if number is not None:
        return constant(dims, number.reshape(-1)[0], kind, small)
    return jnp.broadcast_to(ValueTensor.reshape(-1)[0].astype(kind), dims)


@op(
    outs="Out",
    infer=_constant_spec,
    rows=mixes(),
    fills=True,
    eager=Eager(partial(_filled, HOST)),
    sizes=sizes_from(
        "ShapeTensor ShapeTensorList",
        lambda op, slot, i: slot == "ShapeTensorList" and bool(op.input("ShapeTensor")),
    ),
)
def fill_constant(
    ValueTensor: Array | None, ShapeTensor: Array | None, ShapeTensorList: list[Array] | None, *,
    shape: Longs = (), dtype: int = 5, value: float = 0.0, str_value: str = "", force_cpu: bool = False,
):  # fmt: skip
    """Out[...] = ValueTensor, or the number in str_value, or value; tensors override `shape`."""
    return _filled(
        SMALL, ValueTensor, ShapeTensor, ShapeTensorList, shape, dtype, value, str_value, force_cpu
    )


def batch_shape(
    op_type: str,
    Input: Array | Ragged,
    shape: Sequence[int],
    input_dim_idx: int,
    output_dim_idx: int,
    sequences: bool = False,
) -> tuple[int, ...]:
    """`shape` with dim output_dim_idx replaced by Input's dim input_dim_idx; for an Input with
    sequences, dim 0 is their number.
    """
    dims = list(shape)
    sizes = rows_of(Input).shape
    if isinstance(Input, Ragged) and input_dim_idx == 0:
        if sequences and not Input.bare:
            sizes = (Input.sequences,)
        elif Input.padded:
            raise MixesRows(f"op '{op_type}' makes a size of the number of rows")
    dims[output_dim_idx] = sizes[input_dim_idx]
    return tuple(dims)


@op(outs="Out", rows=knows_rows(each="Out"), shape_of=("Input",))
def fill_constant_batch_size_like(
    Input: Array | Ragged, *, shape: Ints, dtype: int = 5, value: float = 0.0, str_value: str = "",
    input_dim_idx: int = 0, output_dim_idx: int = 0, force_cpu: bool = False,
):  # fmt: skip
    """Out[...] = value, of `shape` with Input's dim input_dim_idx as dim output_dim_idx.

    Dimension 0 of an Input with a LoD is its number of sequences (of the last level); for random
    ops, its number of rows.
    """
    kind = numpy_dtype(name_of(dtype))
    if isinstance(Input, Ragged) and Input.each == ROWS and input_dim_idx == output_dim_idx == 0:
        return Input.with_rows(
            jnp.full((Input.capacity, *shape[1:]), scalar(value, str_value, kind), kind)
        )
    dims = batch_shape(
        "fill_constant_batch_size_like",
        Input,
        shape,
        input_dim_idx,
        output_dim_idx,
        sequences=True,
    )
    return constant(dims, scalar(value, str_value, kind), kind)


@op(outs="Out", rows=row_wise("X"), shape_of=("X",))
def fill_any_like(X: Array, *, value: float = 0.0, dtype: int = -1):
    """Out[...] = value, with X's shape, and X's dtype if `dtype` is -1."""
    return jnp.full(X.shape, value, X.dtype if dtype == -1 else numpy_dtype(name_of(dtype)))


@op(outs="Out", rows=row_wise("X"), shape_of=("X",))
def fill_zeros_like(X: Array):
    """Out[...] = 0, with X's shape and dtype."""
    return jnp.zeros(X.shape, X.dtype)


@op(outs="Out", rows=row_wise("X"), shape_of=("X",))
def fill_zeros_like2(X: Array, *, dtype: int = 5):
    """Out[...] = 0 of `dtype`, with X's shape."""
    return jnp.zeros(X.shape, numpy_dtype(name_of(dtype)))


_VALUES = {
    "bool": "bool_values",
    "int32": "int32_values",
    "int64": "int64_values",
    "float32": "fp32_values",
}


@op(outs="Out", eager=EAGER)
def assign_value(
    *, shape: Ints, dtype: int, bool_values: Ints = (), fp32_values: Floats = (), int32_values: Ints = (),
    int64_values: Longs = (), values: Scalars = (), fp64_values: Float64s = (),
):  # fmt: skip
    """Out = the values of the attribute for `dtype`, with `shape`; since Paddle 2.5 `values` holds
    them for any dtype.
    """
    given = {
        "bool": bool_values,
        "float32": fp32_values,
        "int32": int32_values,
        "int64": int64_values,
    }
    given |= {"float64": fp64_values} if fp64_values else {}  # of Paddle 2
    kind = name_of(dtype)
    if values:
        return np.asarray(values).astype(numpy_dtype(kind)).reshape(shape)
    if kind not in given:
        raise EnforceNotMet(f"assign_value holds {', '.join(given)}, not {kind}")
    return np.asarray(given[kind], numpy_dtype(kind)).reshape(shape)


def _range_spec(Start: Spec, End: Spec, Step: Spec) -> Spec:
    return Spec((-1,), Start.dtype)


@op("range", outs="Out", infer=_range_spec, rows=mixes(), sizes=sizes_from("Start End Step"))
def range_(Start: Array, End: Array, Step: Array):
    """Out = Start, Start + Step, ... before End; floats are summed step by step, as in Paddle."""
    given = {"Start": Start, "End": End, "Step": Step}
    kind = next((v.dtype for v in given.values() if v.dtype != object), np.dtype("int32"))
    if np.issubdtype(kind, np.integer):
        start, end, step = (integers("range", s, v, None, ())[0] for s, v in given.items())
        _check_range(start, end, step)
        count = -((start - end) // step)
        few = are_numbers([count, start, step]) and count <= SMALL
        each = np.arange(count, dtype=kind) if few else lax.iota(kind, count)
        array = np.asarray if few else jnp.asarray
        return each * array(step, kind) + array(start, kind)
    start, end, step = (concrete(v, "range", s).reshape(-1)[0] for s, v in given.items())
    _check_range(start, end, step)
    count = math.ceil(abs((end - start) / step))
    refuse_huge("range", [count], kind)
    return np.add.accumulate(np.array([start, *[step] * (count - 1)][:count], kind), dtype=kind)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0 or is_negative((end - start) * step):
        raise ShapeError(f"range from {start} to {end} never gets there in steps of {step}")


def _linspace_spec(Start: Spec, Stop: Spec, Num: Spec, *, dtype: int) -> Spec:
    return Spec((-1,), Start.dtype if dtype < 0 else name_of(dtype))


@op(outs="Out", infer=_linspace_spec, rows=mixes(), sizes=sizes_from("Num"))
def linspace(Start: Array, Stop: Array, Num: Array, *, dtype: int = -1):
    """Out[i] = Start + i (Stop - Start) / (Num - 1), for i < Num; Start's dtype, or `dtype` in
    later Paddles.
    """
    if dtype < 0:
        return _spaced(Start, Stop, Num)
    kind = numpy_dtype(name_of(dtype))
    wide = np.dtype("float32" if kind == np.float32 else "float64")
    return _spaced(Start.astype(kind).astype(wide), Stop.astype(kind).astype(wide), Num).astype(
        kind
    )


def _spaced(Start: Array, Stop: Array, Num: Array) -> Array:
    count = integers("linspace", "Num", Num, None, ())[0]
    if is_number(count) and count < 1:
        raise ShapeError(f"linspace needs at least one number, Num is {count}")
    refuse_huge("linspace", [count], Start.dtype)
    start, stop = Start.reshape(-1)[:1], Stop.reshape(-1)[:1]
    if count == 1:
        return start
    xp = numbers_of([count])
    step = (stop - start) / xp.asarray(count - 1, Start.dtype)
    index = xp.arange(count, dtype=Start.dtype)
    # the first one also where the step overflows
    return jnp.where(index == 0, start, start + step * index)


@op(outs="Out")
def eye(*, num_rows: Int64, num_columns: Int64 = -1, dtype: int = 5):
    """Out[i, j] = 1 where i = j, else 0; as many columns as rows if num_columns is -1."""
    return jnp.eye(
        num_rows, num_rows if num_columns == -1 else num_columns, dtype=numpy_dtype(name_of(dtype))
    )


@op(outs="Out", eager=EAGER)
def fill(*, value: Floats, shape: Ints, dtype: int = 5, force_cpu: bool = False):
    """Out = the numbers `value`, with `shape`."""
    return np.asarray(value).astype(numpy_dtype(name_of(dtype))).reshape(shape)


@op(outs="Out", eager=Eager(lambda shape: constant(shape, 0.0, np.dtype(np.float32), HOST)))
def fake_init(*, shape: Longs):
    """Out = zeros, for a table that lives on parameter servers; Paddle leaves it uninitialised."""
    return jnp.zeros(shape, np.float32)
