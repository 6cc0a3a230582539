"""Tensor arrays: write_to_array, read_from_array (each is the other's gradient), lod_array_length,
tensor_array_to_tensor.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet
from ...ir.desc import EMPTY, FrozenMap
from ..checking import VALUE
from ..concrete import known
from ..control_interface import Call, ControlOp
from ..definition import GRAD, GradDef
from ..infer import Spec
from ..loop_course import unknown_entry
from ..ragged import Ragged, like, rows_of
from ..registry import Attr, Reuse, control_op, grad_reuses
from ..step_scopes import no_gradient, on_gradients, version
from ..tensor_array import (
    Listed,
    Stacked,
    TensorArray,
    as_gradient,
    empty_like,
    entry,
    is_array,
    is_written,
    plus,
    put,
    unstacked,
)
from ..traits import Runs, mixes

MOST = 2**24  # entries; unwritten ones take memory too


def index_of(call: Call) -> Any:
    """The position: an int if it is known while tracing, else a scalar."""
    (name,) = call.op.input("I")
    value = call.exact(name, call.read(name))
    if value.size != 1:
        raise EnforceNotMet(
            f"op '{call.op.type}' takes one integer as I, but {name!r} has the shape"
            f" {list(value.shape)}"
        )
    found = known(value)
    if found is None:
        return value.reshape(())
    index = int(found.reshape(()))
    if index < 0:
        raise EnforceNotMet(
            f"op '{call.op.type}' takes entry {index} of an array, by {name!r}; they count from 0"
        )
    return index


def mark(call: Call) -> Hashable:
    """Placeholder for the number of the entry."""
    return version(call, call.op.input("I")[0])


def _array(call: Call, name: str) -> TensorArray:
    """The array of a name; an empty one if nothing has written it yet."""
    value = call.env.get(name, Listed())
    if not is_array(value):
        raise EnforceNotMet(
            f"op '{call.op.type}' takes an array, but {name!r} is a tensor; array_write makes"
            " arrays"
        )
    return value


def write(call: Call) -> None:
    """Out[I] = X; where Out is a gradient, X is added to it."""
    (x,), (out,) = call.op.input("X"), call.op.output("Out")
    array, index = _array(call, out), index_of(call)
    if not isinstance(index, int):
        array = _with_room(call, array)
    if on_gradients(call.op) and x not in call.env:
        return
    if isinstance(index, int) and index >= MOST:
        raise EnforceNotMet(
            f"op '{call.op.type}' writes entry {index} of {out!r}, but an array has {MOST} entries"
            " at most"
        )
    value = call.read(x)
    if on_gradients(call.op):
        value = as_gradient(value)
        old = (
            entry(array, index) if isinstance(index, int) or not isinstance(array, Listed) else None
        )
        value = value if old is None else plus(old, value)
        if (
            isinstance(value, Ragged)
            and isinstance(array, Stacked)
            and isinstance(array.rows, Ragged)
        ):
            value = replace(value, key=array.rows.key, each=array.rows.each)
    call.env[out] = put(array, index, value, partial(mark, call))


def _with_room(call: Call, array: TensorArray) -> TensorArray:
    """The array with the largest number of entries that it can reach. Raises NotOneStep if that
    depends on a loop whose course is unknown.
    """
    (out,) = call.op.output("Out")
    forward = call.env.get(out.partition(GRAD)[0]) if on_gradients(call.op) else None
    if isinstance(array, Listed) and not array.capacity and isinstance(forward, Stacked):
        return empty_like(forward)
    if not call.in_loop or (isinstance(array, Listed) and not (array.capacity or array.length)):
        raise unknown_entry(call.op)
    return array


def read(call: Call) -> None:
    """Out = X[I]. For an array of gradients (X_W is given), a missing entry gives zeros like X_W,
    and the entry is removed.
    """
    op = call.op
    (x,), (out,), shape = op.input("X"), op.output("Out"), op.input("X_W")
    array, index = _array(call, x), index_of(call)
    found = (
        None
        if isinstance(array, Listed) and not any(v is not None for v in array.items)
        else entry(array, index, partial(mark, call))
    )
    if shape:
        value = call.read(shape[0])
        call.env[out] = (
            no_gradient(value) if found is None else like(value, _rows_for(value, found))
        )
        if found is not None:
            call.env[x] = put(array, index, None)
        return
    if found is None and not isinstance(index, int):
        raise unknown_entry(op)
    if found is None:
        raise EnforceNotMet(f"op 'read_from_array' reads entry {index} of {x!r}, {_has(array)}")
    if not isinstance(index, int):
        call.refuse(
            ~is_written(array, index),
            f"reads entry {VALUE} of {x!r}, which nothing has written",
            index,
        )
    call.env[out] = found


def _rows_for(value: Any, found: Any) -> Any:
    """The rows of a gradient, cut to the number of a plain value if the entries have room for more."""
    rows = rows_of(found)
    return rows if isinstance(value, Ragged) or not rows.ndim else rows[: value.shape[0]]


def _has(array: TensorArray) -> str:
    length = array.length
    if not isinstance(length, int):
        return "which nothing wrote"
    return f"which has {length} entries" if length else "which nothing has written"


def length(call: Call) -> None:
    """Out = the number of entries of X, int64 [1]."""
    (x,), (out,) = call.op.input("X"), call.op.output("Out")
    found = _array(call, x).length
    call.env[out] = (
        np.array([found], np.int64)
        if isinstance(found, int)
        else found.astype(jnp.int64).reshape(1)
    )


def join(call: Call) -> None:
    """Out = X's entries joined along axis, or stacked there if use_stack; OutIndex = the size of
    each along axis.
    """
    op = call.op
    axis, items = int(op.attrs.get("axis", 0)), _entries(call)
    stack = bool(op.attrs.get("use_stack", False))
    _refuse_unequal(
        call, [v.shape if stack else v.shape[:axis] + v.shape[axis:][1:] for v in items], items
    )
    out = jnp.stack(items, axis) if stack else jnp.concatenate(items, axis)
    # the entries' dimensions, stacked or not; 1 beyond the last axis
    sizes = [(*v.shape, 1)[axis] for v in items]
    call.env[op.output("Out")[0]] = out
    for name in op.output("OutIndex"):
        call.env[name] = np.array(sizes, np.int32)


def _refuse_unequal(call: Call, kept: list[tuple[int, ...]], items: list[Any]) -> None:
    """Raises EnforceNotMet for entries that cannot be joined. kept: the part of their shapes that
    must be equal.
    """
    at = next((i for i, shape in enumerate(kept) if shape != kept[0]), None)
    if at is not None:
        how = (
            "stacks entries of one shape"
            if call.op.attrs.get("use_stack", False)
            else "joins entries that differ along axis alone"
        )
        raise EnforceNotMet(
            f"op '{call.op.type}' {how}, but entry {at} of {call.op.input('X')[0]!r} has the shape"
            f" {list(items[at].shape)} beside {list(items[0].shape)}"
        )


def _entries(call: Call) -> list[Any]:
    (x,) = call.op.input("X")
    items = unstacked(_array(call, x)).items
    if not items or any(v is None for v in items):
        at = next((i for i, v in enumerate(items) if v is None), 0)
        raise EnforceNotMet(
            f"op '{call.op.type}' joins the entries of {x!r}, but nothing has written entry {at}"
        )
    return [jnp.asarray(call.exact(x, v)) for v in items]


def split(call: Call) -> None:
    """X@GRAD: the gradient of Out, cut into the entries of X."""
    op = call.op
    (given,), (out,) = op.input("Out" + GRAD), op.output("X" + GRAD)
    if out == EMPTY:
        return
    items, axis, gradient = _entries(call), int(op.attrs.get("axis", 0)), call.read(given)
    ends = np.cumsum([1 if op.attrs.get("use_stack", False) else v.shape[axis] for v in items])[:-1]
    parts = jnp.split(gradient, ends, axis)
    call.env[out] = Listed(tuple(p.reshape(v.shape) for p, v in zip(parts, items, strict=True)))


def _entry_spec(X: Spec, I: Spec, X_W: Spec | None = None) -> Spec:  # noqa: E741
    return X


def _joined_spec(X: Spec, *, axis: int = 0, use_stack: bool = False) -> tuple[Spec, Spec]:
    axis = axis % (X.ndim + use_stack)
    before, after = X.shape[:axis], X.shape[axis + (not use_stack) :]
    return Spec((*before, -1, *after), X.dtype), Spec((), "int32")


JOINED = {"axis": Attr("axis", "INT", 0), "use_stack": Attr("use_stack", "BOOLEAN", False)}

JOINED_GRAD = GradDef(
    "tensor_array_to_tensor_grad",
    FrozenMap({"X": "X", "Out" + GRAD: "Out" + GRAD}),
    FrozenMap({"X" + GRAD: "X"}),
)

control_op("write_to_array", ins="X I", outs="Out", doc="Out[I] = X.", runs=Runs.STEP, infer=lambda X, I: X,  # noqa: E741
           control=ControlOp(lower=write))  # fmt: skip
control_op("read_from_array", ins="X I X_W?", outs="Out", doc="Out = X[I].", runs=Runs.STEP, infer=_entry_spec,
           control=ControlOp(lower=read))  # fmt: skip
control_op("lod_array_length", ins="X", outs="Out", doc="Out = the number of entries of X.", runs=Runs.STEP,
           infer=lambda X: Spec((1,), "int64"), control=ControlOp(lower=length))  # fmt: skip
control_op("tensor_array_to_tensor", ins="X", outs="Out OutIndex", attrs=JOINED, runs=Runs.STEP, grad=JOINED_GRAD,
           infer=_joined_spec, rows=mixes(), control=ControlOp(lower=join),
           doc="Out = the entries of X, joined along axis or stacked.")  # fmt: skip
control_op("tensor_array_to_tensor_grad", ins="X Out@GRAD", outs="X@GRAD", attrs=JOINED, runs=Runs.STEP,
           forward="tensor_array_to_tensor", doc="X@GRAD = Out@GRAD, cut.", control=ControlOp(lower=split))  # fmt: skip
grad_reuses(
    "write_to_array",
    Reuse("read_from_array", {"I": "I", "X": "Out@GRAD", "X_W": "X"}, {"Out": "X@GRAD"}),
)
grad_reuses(
    "read_from_array", Reuse("write_to_array", {"I": "I", "X": "Out@GRAD"}, {"Out": "X@GRAD"})
)
