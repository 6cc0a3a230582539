"""jax.call: a function as a block of the program, with its own gradient if JAX has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...errors import UnsupportedError
from ...ir.desc import EMPTY, OpDesc
from ..control_interface import Call, ControlOp
from ..definition import GradNames, GradOp
from ..registry import GRAD, Attr, control_op
from ..traits import Runs
from .blocks import (
    AGAIN,
    BLOCK,
    Function,
    block_function,
    declare_block_op,
    gradient_slots,
    nothing,
    only_block,
    own_attrs,
)


def _call(call: Call, counts: Sequence[int]) -> Function:
    return only_block(call)


def _remat(call: Call, counts: Sequence[int]) -> Function:
    run = _call(call, counts)
    return lambda *values: jax.checkpoint(lambda *v: tuple(run(*v)))(*values)


_NAMED = [*BLOCK, Attr("function", "STRING", "")]

declare_block_op(
    "call",
    ins="Args*",
    outs="Out*",
    attrs=_NAMED,
    make=_call,
    doc="Out = sub_block(Args). function: what the source calls it.",
)
declare_block_op(
    "checkpoint",
    ins="Args*",
    outs="Out*",
    attrs=_NAMED,
    make=_remat,
    doc="Out = sub_block(Args); its gradient computes everything in it again (jax.checkpoint).",
)


def _custom(call: Call, counts: Sequence[int]) -> Function:
    """The function with its own rule, which also applies to outer derivatives: of a scan, or a
    caller's jax.grad.
    """
    run = _call(call, counts)

    @jax.custom_vjp
    def function(*values: Any) -> tuple[Any, ...]:
        return tuple(run(*values))

    function.defvjp(
        lambda *values: (tuple(run(*values)), values),
        lambda values, flowing: tuple(_rule(call)(values, flowing)),
    )
    return lambda *values: list(function(*values))


_RULE = [
    *_NAMED,
    Attr("grad_block", "BLOCK"),
    Attr("grad_args", "STRINGS"),
    Attr("grad_results", "STRINGS"),
    Attr("refusal", "STRING", ""),
    Attr("closed_over", "INT", 0),
]


def _refuse(op: OpDesc) -> None:
    if op.attrs.get("refusal"):
        place = f" ({op.loc})" if op.loc else ""
        raise UnsupportedError(
            f"{op.attrs['function']!r}{place} has no gradient, and JAX says why:"
            f" {op.attrs['refusal']}"
        )


def _write_rule(op: OpDesc, names: GradNames) -> list[GradOp]:
    _refuse(op)
    slots = gradient_slots(op, names, ("Args",), ("Out",))
    wanted = slots[1].get("Args" + GRAD, [])[: op.attrs.get("closed_over", 0)]
    for name, grad in zip(op.input("Args"), wanted, strict=False):
        if grad != EMPTY:
            place = f" ({op.loc})" if op.loc else ""
            raise UnsupportedError(
                f"{op.attrs['function']!r}{place} closes over {name!r}, for which its custom_vjp"
                " rule gives no gradient: pass it as an argument, or stop its gradient by"
                " jax.lax.stop_gradient"
            )
    return [GradOp("jax.custom_call_vjp", *slots, own_attrs(op, [a.name for a in _RULE]))]


declare_block_op(
    "custom_call",
    ins="Args*",
    outs="Out*",
    attrs=_RULE,
    make=_custom,
    differentiable=False,
    write_grad=_write_rule,
    doc="""Out = sub_block(Args), whose gradient is grad_block(Args, gradients of Out): jax.custom_jvp, jax.custom_vjp.

    grad_results: the gradients of those Args that have one, "" for each of the others. closed_over: how many of the first
    Args the rule says nothing of, though the function reads them. refusal: why there is no gradient at all.""",
)


def _lower_rule(call: Call) -> None:
    """The gradients of Args by the rule's block; zero for outputs that nothing depends on."""
    op = call.op
    values = [call.exact(n, call.read(n)) for n in op.input("Args")]
    shapes = jax.eval_shape(_call(call, [len(values)]), *values)
    cotangents = [
        _flowing(call.env.get(n), s) for n, s in zip(op.input("Out" + GRAD), shapes, strict=True)
    ]
    for name, grad in zip(op.output("Args" + GRAD), _rule(call)(values, cotangents), strict=True):
        if grad is not None:
            call.env[name] = grad


def _rule(call: Call) -> Any:
    """A function from Args and the gradients of Out to the gradients of Args; None for those that
    have none.
    """
    _refuse(call.op)
    attrs = call.op.attrs
    rule = block_function(
        call, attrs["grad_block"].idx, attrs["grad_args"], [n for n in attrs["grad_results"] if n]
    )

    def gradients(values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        found = iter(
            rule(*values, *(c for c in cotangents if jnp.issubdtype(c.dtype, jnp.inexact)))
        )
        return [next(found) if n else None for n in attrs["grad_results"]]

    return gradients


def _flowing(value: Any, like: Any) -> Any:
    return (
        jnp.zeros(like.shape, like.dtype)
        if value is None
        else jnp.asarray(value, like.dtype).reshape(like.shape)
    )


control_op(
    "jax.custom_call_vjp",
    ins=f"Args* Out{GRAD}*",
    outs=f"Args{GRAD}*",
    attrs={a.name: a for a in _RULE},
    forward="jax.custom_call",
    write_grad=AGAIN,
    runs=Runs.STEP,
    doc="The gradients of Args, by grad_block.",
    control=ControlOp(lower=_lower_rule, carried=nothing),
)
