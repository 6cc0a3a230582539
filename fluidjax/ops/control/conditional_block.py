"""conditional_block: runs its block if a condition holds; conditional_block_grad: runs the gradient
block if it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet
from ...ir import walk
from ...ir.desc import EMPTY, BlockRef, OpDesc, ProgramDesc
from ..checking import WORD
from ..concrete import known
from ..control_interface import Call, ControlOp, Env, decided_by
from ..definition import GradNames, GradOp
from ..missing import doubtful, flags, marked
from ..ragged import ROWS, Ragged
from ..registry import GRAD, Attr, control_op
from ..step_scopes import (
    NO_SECOND,
    NOT_RUN,
    Form,
    NotRun,
    bind_gradients,
    either,
    found_by,
    left_by,
    made_by,
    no_gradient,
    used_up,
)
from ..traits import Runs


def run(call: Call) -> None:
    """Outer variables that the block writes keep their old values if the condition does not hold; a
    variable without a value is marked as missing (missing.py).

    With ``is_scalar_condition`` the condition is one boolean; without it, the block runs if all
    inputs have elements.
    """
    (idx,), names = call.op.blocks, walk.written_outside(call.desc, call.op)
    old = {n: call.env[n] for n in (*names, WORD) if n in call.env}
    open_ = doubtful(names, call.env)
    old.update(flags(open_, call.env))
    forms: dict[str, Form] = {}

    def taken() -> Env:
        inner = dict(call.env)
        call.run_block(idx, inner)
        found = {n: inner[n] for n in (*names, WORD) if n in inner}
        found.update(flags([n for n in open_ if not _may_be_empty(inner.get(n))], inner))
        for scope in call.op.output("Scope"):
            forms[scope], found[scope] = Form.of(
                {**left_by(call, idx, inner), **found_by(call, idx)}
            )
        return found

    holds = _holds(call)
    call.env.update(marked(call.env, either(call, holds, taken, old)))
    if holds is False:
        call.env.update(dict.fromkeys(call.op.output("Scope"), NOT_RUN))
    for scope, form in forms.items():
        call.env[scope] = form.joined(call.env[scope])


def _may_be_empty(value: Any) -> bool:
    """Whether a value carries its own number of rows, so that one that is never computed has no
    rows.
    """
    return isinstance(value, Ragged) and (value.each == ROWS or value.alive is not None)


def run_gradient(call: Call) -> None:
    """The gradient block, run with the values that the block saved.

    If the block did not run, the gradient of a variable that it overwrites passes through
    unchanged, and others are zero.
    """
    op = call.op
    (idx,) = op.blocks
    names = {
        inner + GRAD: outer
        for inner, outer in zip(op.input("Input"), op.output("Input" + GRAD), strict=True)
        if outer != EMPTY
    }
    scope = call.env.get(op.input("Scope")[0], {})
    ran = not isinstance(scope, NotRun)
    left = scope if ran else {}
    old = {
        inner: call.env[outer]
        for inner, outer in names.items()
        if outer in op.input("Out" + GRAD) and outer in call.env
    }
    pairs = zip(op.input("Out"), op.input("Out" + GRAD), strict=True)
    anew = {
        name: outer for name, outer in pairs if name not in op.input("Input") and outer in call.env
    }
    old.update({name + GRAD: call.env[outer] for name, outer in anew.items()})

    updated = _updated(call.desc, op)
    old.update({n: call.read(n) for n in updated})
    old.update({n: call.env[n] for n in [WORD] if n in call.env})
    made = made_by(call, idx)
    unread = {
        n
        for n in op.input("Input")
        if n in op.input("Out") and n + GRAD not in made and n + GRAD in old
    }

    def taken() -> Env:
        inner = {n: v for n, v in {**call.env, **left}.items() if n not in names}
        bind_gradients(call, inner, "Out")
        call.run_block(idx, inner)
        used = {n + GRAD: used_up(call, idx, inner, n) for n in (*anew, *unread)}
        return {**{n: inner[n] for n in (*names, *updated, WORD) if n in inner}, **used}

    nothing = {
        n: no_gradient(v)
        for n in names
        if isinstance(v := call.env.get(n.removesuffix(GRAD)), Ragged)
    }
    found = either(call, ran and _holds(call), taken, old, nothing)
    call.env.update({n: found[n] for n in (*updated, WORD) if n in found})
    call.env.update({outer: found[name + GRAD] for name, outer in anew.items()})
    for name, outer in zip(op.input("Input"), op.output("Input" + GRAD), strict=True):
        if outer != EMPTY:
            call.env[outer] = (
                found[name + GRAD] if name + GRAD in found else no_gradient(call.read(name))
            )


def _updated(desc: ProgramDesc, op: OpDesc) -> list[str]:
    """The state that a gradient block writes: it holds the updates if minimize was called inside
    the case.
    """
    kept = walk.persistables(desc)
    return [n for n in walk.written_outside(desc, op) if n in kept]


def _holds(call: Call) -> Any:
    """The condition, a bool if it is known while tracing. Raises EnforceNotMet unless it is one
    boolean.
    """
    op = call.op
    if not op.attrs.get("is_scalar_condition", False):
        found = _all_have_elements(call)
        return bool(np.asarray(found)) if call.hosted else found
    (name,) = op.input("Cond")
    value = call.exact(name, call.read(name))
    if value.dtype != bool or value.size != 1:
        raise EnforceNotMet(
            f"op '{op.type}' takes one boolean as its condition, but {name!r} is {value.dtype} of"
            f" shape {list(value.shape)}; compare first, for instance by layers.less_than"
        )
    found = known(value)
    return value.reshape(()) if found is None else bool(found.reshape(()))


def _all_have_elements(call: Call) -> Any:
    """Whether all inputs that are tensors have elements: a traced value if a number of rows is
    data.
    """
    values = [
        v
        for n in call.op.input("Input")
        if isinstance(v := call.read(n), Ragged) or hasattr(v, "size")
    ]
    if not all(v.rows.size if isinstance(v, Ragged) else v.size for v in values):
        return False
    unsure = [v.count > 0 for v in values if isinstance(v, Ragged) and v.padded]
    return jnp.stack(unsure).all() if unsure else True


def carried(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """Outer variables that the block writes and another op writes too; a variable that only the
    block writes has no old value.
    """
    return walk.written_before(desc, op, walk.written_outside(desc, op))


def write_grad(op: OpDesc, names: GradNames) -> list[GradOp]:
    """Gradients begin at the assigns that pass the block's results out, and flow back from these
    results.
    """

    def ends(inside: Sequence[OpDesc]) -> list[OpDesc]:
        return [o for out in op.writes for o in inside if o.type == "assign" and out in o.writes]

    block = names.inside(ends)
    ins = {slot: names.taken(slot) for slot in ("Cond", "Input", "Out", "Out" + GRAD, "Scope")}
    attrs = {
        "sub_block": BlockRef(block.idx),
        "is_scalar_condition": op.attrs.get("is_scalar_condition", False),
    }
    return [GradOp("conditional_block_grad", ins, {"Input" + GRAD: names.given("Input")}, attrs)]


ATTRS = {
    "sub_block": Attr("sub_block", "BLOCK"),
    "is_scalar_condition": Attr("is_scalar_condition", "BOOLEAN", False),
    "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
}

control_op(
    "conditional_block",
    ins="Cond* Input*",
    outs="Out* Scope",
    attrs=ATTRS,
    doc=(
        "Out = the values that sub_block gives its outer variables if Cond holds, else their old"
        " ones."
    ),
    runs=Runs.STEP,
    write_grad=write_grad,
    control=ControlOp(lower=run, divergence=decided_by("Cond"), carried=carried),
)
control_op(
    "conditional_block_grad",
    ins="Cond* Input* Out* Out@GRAD* Scope",
    outs="Input@GRAD*",
    attrs=ATTRS,
    forward="conditional_block",
    write_grad=NO_SECOND,
    doc="The gradients of Input that sub_block, the gradient block, computes if Cond holds.",
    runs=Runs.STEP,
    control=ControlOp(lower=run_gradient, divergence=decided_by("Cond"), carried=_updated),
)
control_op(
    "conditional_block_infer",
    ins="Cond* Input*",
    outs="Out* Scope",
    attrs=ATTRS,
    doc="Out = what conditional_block gives, in a program for inference.",
    runs=Runs.STEP,
    control=ControlOp(lower=run, divergence=decided_by("Cond"), carried=carried),
)
