"""Ops that hold blocks: each block is a separate function, with named parameters and results.

Such a block reads no outer variable. An op names the parameters and the results of its blocks in
attributes, and passes the values of its input slots to them in order. Several ops may thus share a
block, and jax.vjp differentiates an op as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ...ir.desc import EMPTY, OpDesc, ProgramDesc
from ..control_interface import Call, ControlOp
from ..definition import GradNames, GradOp, Unwritten
from ..registry import GRAD, Attr, control_op
from ..traits import Runs

Values = Sequence[Any]
Function = Callable[..., list[Any]]
MakeFunction = Callable[[Call, Sequence[int]], Function]
# The attributes of an op's one block
BLOCK = (Attr("sub_block", "BLOCK"), Attr("args", "STRINGS"), Attr("results", "STRINGS"))
AGAIN = Unwritten(
    "differentiate the JAX function itself, with jax.grad of jax.grad, and trace that"
)


def block_function(call: Call, idx: int, args: Sequence[str], results: Sequence[str]) -> Function:
    """A block as a function from values of its parameters to values of its results."""

    def run(*values: Any) -> list[Any]:
        env = dict(zip(args, values, strict=True))
        call.run_block(idx, env)
        return [env[name] for name in results]

    return run


def only_block(call: Call) -> Function:
    """The op's one block, as declared by BLOCK."""
    attrs = call.op.attrs
    return block_function(call, attrs["sub_block"].idx, attrs["args"], attrs["results"])


def declare_block_op(
    kind: str,
    *,
    ins: str,
    outs: str,
    attrs: Sequence[Attr],
    doc: str,
    make: MakeFunction,
    differentiable: bool = True,
    write_grad: Any = None,
    runs: Runs = Runs.STEP,
) -> None:
    """Declare ``jax.<kind>`` and its gradient op.

    make: takes a call and the number of values of each input slot, and returns the op as a function
    of all these values. The gradient is jax.vjp of that function, unless `write_grad` writes
    another.
    """
    in_slots, out_slots = _names(ins), _names(outs)
    table = {a.name: a for a in attrs}
    gradient = f"jax.{kind}_vjp"

    def lower(call: Call) -> None:
        counts, values = _inputs(call, in_slots)
        _bind(
            call,
            [n for slot in out_slots for n in call.op.output(slot)],
            make(call, counts)(*values),
        )

    def lower_gradient(call: Call) -> None:
        counts, values = _inputs(call, in_slots)
        primals, pull = jax.vjp(lambda *given: tuple(make(call, counts)(*given)), *values)
        names = [n for slot in out_slots for n in call.op.input(slot + GRAD)]
        if len(names) != len(primals):
            names = [*names, *[EMPTY] * (len(primals) - len(names))]
        grads = pull(
            tuple(_cotangent(p, call.env.get(n)) for p, n in zip(primals, names, strict=True))
        )
        _bind(call, *_wanted(call, in_slots, counts, grads))

    def write(op: OpDesc, names: GradNames) -> list[GradOp]:
        return [
            GradOp(gradient, *gradient_slots(op, names, in_slots, out_slots), own_attrs(op, table))
        ]

    control_op(
        f"jax.{kind}",
        ins=ins,
        outs=outs,
        attrs=table,
        doc=doc,
        runs=runs,
        write_grad=write_grad or (write if differentiable else None),
        control=ControlOp(lower=lower, carried=nothing),
    )
    if differentiable:
        taken = " ".join(f"{slot}{GRAD}*" for slot in out_slots)
        given = " ".join(f"{slot}{GRAD}*" for slot in in_slots)
        control_op(
            gradient,
            ins=f"{ins} {taken}",
            outs=given,
            attrs=table,
            forward=f"jax.{kind}",
            write_grad=AGAIN,
            runs=runs,
            doc=f"The vector-Jacobian product of jax.{kind}.",
            control=ControlOp(lower=lower_gradient, carried=nothing),
        )


def gradient_slots(
    op: OpDesc, names: GradNames, in_slots: Sequence[str], out_slots: Sequence[str]
) -> tuple[Any, Any]:
    """The input and output slots of an op's gradient op: each input, the gradient of each output;
    the gradient of each input.
    """
    ins = {slot: list(op.input(slot)) for slot in in_slots if op.input(slot)}
    for slot in out_slots:
        taken = iter(names.taken(slot + GRAD))
        if op.output(slot):
            ins[slot + GRAD] = [EMPTY if n == EMPTY else next(taken) for n in op.output(slot)]
    outs = {slot + GRAD: names.given(slot) for slot in in_slots if op.input(slot)}
    return ins, outs


def own_attrs(op: OpDesc, table: Iterable[str]) -> dict[str, Any]:
    return {name: op.attrs[name] for name in table if name in op.attrs}


def nothing(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """No old value stays, because the block reads no outer variable."""
    return ()


def _names(slots: str) -> tuple[str, ...]:
    return tuple(word.rstrip("*?") for word in slots.split())


def _inputs(call: Call, slots: Sequence[str]) -> tuple[list[int], list[Any]]:
    """The number of values of each slot, and all values."""
    names = [call.op.input(slot) for slot in slots]
    values = [call.exact(n, call.read(n)) for each in names for n in each]
    return list(map(len, names)), values


def _bind(call: Call, names: Iterable[str], values: Iterable[Any]) -> None:
    call.env.update((n, v) for n, v in zip(names, values, strict=True) if n != EMPTY)


def _cotangent(primal: Any, given: Any) -> Any:
    """The gradient of an output; zero if there is none."""
    if not jax.numpy.issubdtype(primal.dtype, jax.numpy.inexact):
        return np.zeros(primal.shape, jax.dtypes.float0)
    if given is None:
        return jax.numpy.zeros(primal.shape, primal.dtype)
    return jax.numpy.asarray(given, primal.dtype).reshape(primal.shape)


def _wanted(
    call: Call, slots: Sequence[str], counts: Sequence[int], grads: Sequence[Any]
) -> tuple[list[str], list[Any]]:
    """The names of the requested gradients, and their values."""
    names: list[str] = []
    for slot, count in zip(slots, counts, strict=True):
        given = call.op.output(slot + GRAD)
        names += given if len(given) == count else [EMPTY] * count
    return names, [g if n != EMPTY else None for n, g in zip(names, grads, strict=True)]
