"""assert: a step whose condition is false raises and prints the data. Paddle 2 added the op."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...errors import EnforceNotMet
from .. import loops
from ..concrete import known
from ..control_interface import Call, ControlOp
from ..registry import Attr, control_op
from ..traits import Runs


def claim(call: Call) -> None:
    """Raise unless Cond, one boolean, is true, and print the first `summarize` numbers of each
    variable of Data.
    """
    op = call.op
    (name,) = op.input("Cond")
    holds = call.exact(name, call.read(name))
    if holds.dtype != bool or holds.size != 1:
        raise EnforceNotMet(
            f"op 'assert' takes one boolean as Cond, but {name!r} is {holds.dtype} of shape"
            f" {list(holds.shape)}"
        )
    found = known(holds)
    bad = ~holds.reshape(()) if found is None else ~found.reshape(())
    data = {n: jnp.asarray(call.exact(n, call.read(n))).reshape(-1) for n in op.input("Data")}
    count = int(op.attrs.get("summarize", -1))
    shown = {n: v if count < 0 else v[:count] for n, v in data.items()}

    def show() -> None:
        for n, value in shown.items():
            jax.debug.print(n.replace("{", "{{").replace("}", "}}") + " {value}", value=value)

    if shown and (found is None or bad):
        loops.cond(bad, show, lambda: None)
    call.refuse(bad, f"asserts {name!r}, which does not hold")


control_op(
    "assert",
    ins="Cond Data*",
    outs="",
    attrs={"summarize": Attr("summarize", "LONG", -1)},
    doc="Raises unless Cond holds.",
    runs=Runs.EFFECT,
    control=ControlOp(lower=claim),
)
