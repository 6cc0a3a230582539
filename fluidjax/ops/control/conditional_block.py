"""conditional_block: runs its block if a condition holds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...errors import EnforceNotMet, UnsupportedError
from ...ir import walk
from ..control_interface import Call, ControlOp, Env, decided_by
from ..definition import Unwritten
from ..ragged import Ragged
from ..registry import Attr, control_op
from ..traits import Runs


def run(call: Call) -> None:
    """What the block writes outside keeps its old value if the condition does not hold.

    With ``is_scalar_condition`` the condition is one boolean; without, the block runs if all inputs have elements.
    """
    op = call.op
    (idx,) = op.blocks
    if op.attrs.get("is_scalar_condition", False):
        _choose(call, idx)
    elif all(call.exact(n, call.read(n)).size for n in op.input("Input")):
        call.run_block(idx, call.env)


def _choose(call: Call, idx: int) -> None:
    old = _before(call)
    (name,) = call.op.input("Cond")

    def taken(values: Env) -> dict[str, Any]:
        inner = {**call.env, **values}
        call.run_block(idx, inner)
        new = {n: call.exact(n, inner[n]) for n in values}
        return {n: jnp.asarray(new[n], v.dtype).reshape(v.shape) for n, v in values.items()}

    call.env.update(jax.lax.cond(call.read(name).reshape(()), taken, dict, old))


def _before(call: Call) -> dict[str, jax.Array]:
    """The old values of what the block writes outside. Raises EnforceNotMet where one has none, UnsupportedError for rows."""
    written = walk.written_outside(call.desc, call.op)
    missing = [n for n in written if n not in call.env]
    if missing:
        raise EnforceNotMet(
            f"op 'conditional_block' writes {missing[0]!r}, which has no value for the case that its condition is false; "
            "give it one before the block"
        )
    ragged = [n for n in written if isinstance(call.env[n], Ragged)]
    if ragged:
        raise UnsupportedError(f"op 'conditional_block' writes {ragged[0]!r}, which holds ragged rows; a block can write plain arrays")
    return {n: jnp.asarray(call.exact(n, call.env[n])) for n in written}


control_op(
    "conditional_block",
    ins="Cond* Input*",
    outs="Out* Scope",
    attrs={
        "sub_block": Attr("sub_block", "BLOCK"),
        "is_scalar_condition": Attr("is_scalar_condition", "BOOLEAN", False),
        "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
    },
    doc="Out = the values that sub_block gives its outer variables if Cond holds, else their old ones.",
    runs=Runs.STEP,
    write_grad=Unwritten("keep control flow off the path from the parameters to the loss"),
    control=ControlOp(lower=run, divergence=decided_by("Cond")),
)
