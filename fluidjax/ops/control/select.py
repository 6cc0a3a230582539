"""select_input and select_output: one of several values by a number; each is the other's gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...errors import EnforceNotMet, NotOneStep
from ...ir.desc import EMPTY
from ..checking import VALUE
from ..concrete import known
from ..control_interface import Call, ControlOp
from ..registry import Reuse, control_op, grad_reuses
from ..step_scopes import on_gradients
from ..traits import Runs


def _number(call: Call, count: int) -> Any:
    """The mask: an int if it is known while tracing, else a scalar."""
    (name,) = call.op.input("Mask")
    value = call.exact(name, call.read(name))
    if value.size != 1 or not jnp.issubdtype(value.dtype, jnp.integer):
        raise EnforceNotMet(
            f"op '{call.op.type}' takes one integer as Mask, but {name!r} is {value.dtype} of shape"
            f" {list(value.shape)}"
        )
    found = known(value)
    if found is None:
        return value.reshape(())
    number = int(found.reshape(()))
    if not 0 <= number < count:
        raise EnforceNotMet(
            f"op '{call.op.type}' chooses among {count} variables, but {name!r} is {number}"
        )
    return number


def choose(call: Call) -> None:
    """Out = X[Mask]."""
    (out,) = call.op.output("Out")
    names = call.op.input("X")
    number = _number(call, len(names))
    if isinstance(number, int):
        call.env[out] = call.read(names[number])
        return
    values = [jax.tree.map(jnp.asarray, call.read(n)) for n in names]
    _refuse_different(call, names, values)
    what = f"chooses among {len(names)} variables, but {call.op.input('Mask')[0]!r} is {VALUE}"
    call.refuse((number < 0) | (number >= len(names)), what, number)
    call.env[out] = jax.tree.map(
        lambda *each: jax.lax.select_n(number.astype("int32"), *each), *values
    )


def _refuse_different(call: Call, names: tuple[str, ...], values: list[Any]) -> None:
    """Raises NotOneStep unless all values are of one type."""
    first = jax.tree.map(jnp.shape, values[0]), jax.tree.structure(values[0])
    for name, value in zip(names, values, strict=True):
        if (jax.tree.map(jnp.shape, value), jax.tree.structure(value)) != first:
            raise NotOneStep(
                f"op '{call.op.type}' chooses between {names[0]!r} of shape {_shape(values[0])} and"
                f" {name!r} of shape {_shape(value)}, and which is known only when the step runs;"
                " give both branches results of one shape"
            )


def _shape(value: Any) -> Any:
    return list(value.shape) if hasattr(value, "shape") else type(value).__name__


def place(call: Call) -> None:
    """Out[Mask] = X; the others are zero, or have no value if Mask is known while tracing."""
    names = call.op.output("Out")
    (x,) = call.op.input("X")
    number = _number(call, len(names))
    value = call.env.get(x) if on_gradients(call.op) else call.read(x)
    for i, name in enumerate(names):
        if name == EMPTY:
            continue
        call.env.pop(name, None)
        if value is not None and (not isinstance(number, int) or number == i):
            call.env[name] = value if isinstance(number, int) else _where(number == i, value)


def _where(here: Any, value: Any) -> Any:
    """The value or zero; the offsets of sequences stay."""
    return jax.tree.map(
        lambda v: (
            jnp.where(here, v, jnp.zeros((), v.dtype))
            if jnp.issubdtype(v.dtype, jnp.inexact)
            else v
        ),
        value,
    )


control_op(
    "select_input",
    ins="X* Mask",
    outs="Out",
    doc="Out = X[Mask].",
    runs=Runs.STEP,
    control=ControlOp(lower=choose),
)
control_op(
    "select_output",
    ins="X Mask",
    outs="Out*",
    doc="Out[Mask] = X; the gradient of select_input.",
    runs=Runs.STEP,
    control=ControlOp(lower=place),
)
grad_reuses(
    "select_input", Reuse("select_output", {"X": "Out@GRAD", "Mask": "Mask"}, {"Out": "X@GRAD"})
)
grad_reuses(
    "select_output", Reuse("select_input", {"X": "Out@GRAD", "Mask": "Mask"}, {"Out": "X@GRAD"})
)
