"""py_func: calls a Python function of the process that built the program, from within the step."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from ...base.dtypes import numpy_dtype
from ...errors import NotOneStep, UnsupportedError
from ...ir.desc import EMPTY, OpDesc
from .. import py_functions
from ..control_interface import Call, ControlOp
from ..definition import GradNames, GradOp
from ..ragged import Ragged, rows_of
from ..registry import GRAD, Attr, control_op
from ..step_scopes import on_gradients
from ..traits import Runs


def run(call: Call) -> None:
    """Out = function(*X), with None for a gradient that nothing computed. A function without
    outputs is also called.
    """
    op = call.op
    number, place = int(op.attrs["forward_callable_id"]), f" ({op.loc})" if op.loc else ""
    py_functions.function(number, place)
    given = [call.env.get(n) if on_gradients(op) else call.read(n) for n in op.input("X")]
    there = [v is not None for v in given]
    values = [
        _whole(call, n, v) for n, v in zip(op.input("X"), given, strict=True) if v is not None
    ]
    outs = [_declared(call, n) for n in op.output("Out")]

    def host(*arrays: Any) -> list[np.ndarray]:
        found = iter(arrays)
        given = [jax.tree.map(np.asarray, next(found)) if is_there else None for is_there in there]
        return py_functions.called(number, place, given, outs)

    names = [n for n, _, _ in outs if n]
    if call.hosted:
        call.env.update(zip(names, host(*values), strict=True))
        return
    if not names:
        jax.debug.callback(partial(_ignored, host), *values)
        return
    types = [jax.ShapeDtypeStruct(shape, dtype) for n, shape, dtype in outs if n]
    results = jax.pure_callback(host, types, *values)
    call.env.update(zip(names, results, strict=True))


def _ignored(host: Any, *arrays: Any) -> None:
    host(*arrays)


def _whole(call: Call, name: str, value: Any) -> Any:
    """An array, or a value with its LoD. Raises what `exact` raises."""
    rows = call.exact(name, value)
    return value if isinstance(value, Ragged) and not value.bare else rows


def _declared(call: Call, name: str) -> tuple[str, tuple[int, ...], np.dtype]:
    """Name, shape and dtype of an output. A gradient has those of its variable; a leading -1 takes
    the first input's size.
    """
    if name == EMPTY:
        return "", (), np.dtype("float32")
    if GRAD in name and (value := rows_of(call.env.get(name[: name.find(GRAD)]))) is not None:
        return name, tuple(value.shape), np.dtype(value.dtype)
    var = next((b.vars[name] for b in call.desc.blocks if name in b.vars), None)
    if var is None or var.shape is None or var.dtype is None:
        raise UnsupportedError(
            f"op 'py_func' ({call.op.loc}) writes {name!r}, but its shape and dtype are not declared"
        )
    shape = list(var.shape)
    if shape and shape[0] < 0 and call.op.input("X"):
        shape[0] = rows_of(call.read(call.op.input("X")[0])).shape[0]
    # if Python runs the op, the function's result gives the shape
    if any(n < 0 for n in shape) and not call.hosted:
        raise NotOneStep(
            f"op 'py_func' ({call.op.loc}) writes {name!r} of shape {list(var.shape)}; a compiled"
            " step must know it, so declare all of it but a first dimension that is the first"
            " input's"
        )
    return name, tuple(shape), np.dtype(numpy_dtype(var.dtype))


def write_grad(op: OpDesc, names: GradNames) -> list[GradOp]:
    """Another py_func, of the backward function: its X are X, Out and the gradients of Out, without
    the skipped ones.
    """
    backward = int(op.attrs.get("backward_callable_id", -1))
    if backward < 0:
        return []
    skipped = set(op.attrs.get("backward_skip_vars", ()))
    ins = [n for n in (*names.taken("X"), *names.taken("Out")) if n not in skipped] + names.taken(
        "Out" + GRAD
    )
    attrs = {"forward_callable_id": backward, "backward_callable_id": -1, "backward_skip_vars": ()}
    return [GradOp("py_func", {"X": ins}, {"Out": names.given("X")}, attrs)]


control_op(
    "py_func",
    ins="X*",
    outs="Out*",
    attrs={
        "forward_callable_id": Attr("forward_callable_id", "INT", 0),
        "backward_callable_id": Attr("backward_callable_id", "INT", -1),
        "backward_skip_vars": Attr("backward_skip_vars", "STRINGS", ()),
    },
    doc="Out = function(*X), in Python.",
    runs=Runs.EFFECT,
    write_grad=write_grad,
    control=ControlOp(lower=run, may_raise=True),
)
