"""recurrent: a block that runs once for each row of its inputs, as a lax.scan; recurrent_grad: its
gradient block, backwards.

The forward block's variables that the gradient block reads are saved for every step, in the step
scopes. A scan's inputs, carries and outputs are in the order in which the op lists them, not sorted
by name as a plain dict's would be.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ...errors import EnforceNotMet, UnsupportedError
from ...ir import walk
from ...ir.desc import EMPTY, BlockRef, OpDesc, ProgramDesc
from .. import loops
from ..checking import WORD
from ..control_interface import Call, ControlOp, Env
from ..definition import GradNames, GradOp
from ..host_loop import HostScopes, drive_rows, side_by_side
from ..ragged import Ragged, like, rows_of
from ..registry import GRAD, Attr, control_op
from ..step_scopes import NO_SECOND, Form, Scopes, left_by, scopes_of
from ..traits import Runs

# attributes: the names of a state before and after a step, within the block
BEGINS, ENDS = "ex_states", "states"


def _rows(call: Call) -> Env:
    """The inputs of which each step takes a row. Raises EnforceNotMet for different lengths."""
    found = OrderedDict(
        (n, jnp.asarray(call.exact(n, call.read(n)))) for n in call.op.input("inputs")
    )
    sizes = {n: v.shape[0] if v.ndim else 0 for n, v in found.items()}
    if not found or len(set(sizes.values())) > 1:
        raise EnforceNotMet(
            f"op '{call.op.type}' takes inputs of one length, not"
            f" {', '.join(f'{n!r} of {k}' for n, k in sizes.items())}"
        )
    return found


def run(call: Call) -> None:
    """outputs[t] = the block's outputs for row t of the inputs and the states after step t - 1."""
    op = call.op
    (idx,), outputs = op.blocks, op.output("outputs")
    begins, ends = op.attrs.get(BEGINS, ()), op.attrs.get(ENDS, ())
    outside = _written_outside(call.desc, op)
    handed = [n for n in outside if n in call.env]
    rows, outer = _rows(call), dict(call.env)
    first = _first(call, begins)
    first.update((n, jnp.asarray(call.exact(n, call.read(n)))) for n in handed)
    first.update({WORD: jnp.asarray(outer[WORD])} if WORD in outer else {})
    count = next(iter(rows.values())).shape[0]
    forms: dict[int, Form] = {}

    def step(states: Env, given: tuple[Any, Env]) -> tuple[Env, tuple[Env, Any]]:
        number, row = given
        inner = {**outer, **row, **states}
        call.run_block(idx, inner, iteration=number)
        new = OrderedDict(
            (begin, jnp.asarray(call.exact(end, inner[end])))
            for begin, end in zip(begins, ends, strict=True)
        )
        new.update((n, jnp.asarray(call.exact(n, inner[n]))) for n in handed)
        new.update({WORD: jnp.asarray(inner[WORD])} if WORD in inner else {})
        _check_states(call, states, new)
        made = OrderedDict(
            (n, jnp.asarray(call.exact(n, inner[n])))
            for n in (*outputs, *(n for n in outside if n not in handed))
        )
        left = left_by(call, idx, inner)
        if call.hosted:
            return new, (made, left)
        forms[idx], leaves = Form.of(left)
        return new, (made, leaves)

    steps, reverse = jnp.arange(count, dtype=jnp.int32), bool(op.attrs.get("reverse", False))
    scopes: Scopes | HostScopes
    if call.hosted:
        end, each = drive_rows(step, first, (steps, rows), reverse)
        made, scopes = (
            side_by_side([m for m, _ in each]),
            HostScopes([kept for _, kept in each], {}),
        )
    else:
        end, (made, left) = loops.scan(step, first, (steps, rows), reverse=reverse)
        scopes = scopes_of(forms[idx], left, None, {}, count)
    call.env.update((n, made[n]) for n in outputs)
    call.env.update(
        (n, v[0 if reverse else -1]) for n, v in made.items() if n not in outputs and count
    )
    call.env.update({n: v for n, v in end.items() if n in (WORD, *handed)})
    for scope in op.output("step_scopes"):
        call.env[scope] = scopes


def _first(call: Call, begins: Iterable[str]) -> Env:
    """The states before the first step."""
    pairs = zip(begins, call.op.input("initial_states"), strict=True)
    return OrderedDict((n, jnp.asarray(call.exact(o, call.read(o)))) for n, o in pairs)


def _written_outside(desc: ProgramDesc, op: OpDesc) -> list[str]:
    """Outer variables that every step writes and passes to the next: statistics, counters.

    Raises UnsupportedError if gradients flow through one, because the op's gradient does not cover
    it.
    """
    outside = [n for n in walk.written_outside(desc, op) if n not in op.output("outputs")]
    for name in outside:
        var = next((block.vars[name] for block in desc.blocks if name in block.vars), None)
        if var is None or not (var.persistable or var.stop_gradient):
            raise UnsupportedError(
                f"the block of op '{op.type}' writes {name!r}, which is declared outside; make it a"
                " memory, or a step_output"
            )
    return outside


def _check_states(call: Call, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises EnforceNotMet for a state whose shape or dtype a step changes."""
    for name, value in new.items():
        before = old[name]
        if (value.shape, value.dtype) != (before.shape, before.dtype):
            raise EnforceNotMet(
                f"op '{call.op.type}' carries {name!r}, which is {before.dtype} of shape"
                f" {list(before.shape)} before a step and {value.dtype} of shape"
                f" {list(value.shape)} after it; the shape and dtype of a memory are those of its init"
            )


# -- the gradient ----------------------------------------------------------------------------------


def run_gradient(call: Call) -> None:
    """The gradient block, from the last step to the first: gradients of states are passed back,
    those of parameters are summed.
    """
    op = call.op
    (idx,), scopes = op.blocks, call.read(op.input("step_scopes")[0])
    begins, ends = op.attrs.get(BEGINS, ()), op.attrs.get(ENDS, ())
    rows, parameters, states = (
        _asked(call, slot) for slot in ("inputs", "parameters", "initial_states")
    )
    outer = {n: v for n, v in call.env.items() if not n.endswith(GRAD)}
    d_outputs = _given(call)
    whole = {n: call.read(n) for n in (*rows, *parameters, *states)}
    first = _first(call, begins)
    count = rows_of(call.read(op.input("inputs")[0])).shape[0]

    by_python = isinstance(scopes, HostScopes)

    def step(carry: tuple[Env, Env], given: tuple[Any, Any, Env]) -> tuple[tuple[Env, Env], Env]:
        (d_states, sums), (number, leaves, d_out) = carry, given
        kept = scopes.each[number] if by_python else scopes.iteration(leaves)
        inner = {
            **outer,
            **kept,
            **d_out,
            **{end + GRAD: d_states[begin] for begin, end in zip(begins, ends, strict=True)},
        }
        call.run_block(idx, inner, iteration=number)
        back = OrderedDict((n, _computed(call, inner, n, v)) for n, v in d_states.items())
        total = OrderedDict(
            (n, v + _computed(call, inner, n, v, whole[n])) for n, v in sums.items()
        )
        return (back, total), OrderedDict(
            (n, call.exact(n, inner[n + GRAD])) for n in rows if n + GRAD in inner
        )

    zero = (
        jax.tree.map(jnp.zeros_like, first),
        OrderedDict((n, jnp.zeros_like(rows_of(whole[n]))) for n in parameters),
    )
    given = jnp.arange(count, dtype=jnp.int32), [] if by_python else scopes.each, d_outputs
    reverse = not op.attrs.get("reverse", False)
    if call.hosted:
        (d_first, sums), each = drive_rows(step, zero, given, reverse)
        d_rows = side_by_side(each)
    else:
        (d_first, sums), d_rows = loops.scan(step, zero, given, reverse=reverse)
    d_rows = {n: d_rows[n] if n in d_rows else jnp.zeros_like(rows_of(whole[n])) for n in rows}
    d_states = {o: d_first[n] for n, o in zip(begins, op.input("initial_states"), strict=True)}
    for names, gradients in ((rows, d_rows), (parameters, sums), (states, d_states)):
        call.env.update({grad: like(whole[n], gradients[n]) for n, grad in names.items()})


def _given(call: Call) -> Env:
    """The gradients of the outputs, by their names in the gradient block; none for an output that
    nothing depends on.
    """
    op = call.op
    grads = dict(zip(op.input("outputs"), op.input("outputs" + GRAD), strict=False))
    return OrderedDict(
        (n + GRAD, jnp.asarray(call.exact(g, call.env[g])))
        for n, g in grads.items()
        if g in call.env
    )


def _asked(call: Call, slot: str) -> dict[str, str]:
    """The variables of a slot whose gradients have names, and these."""
    pairs = zip(call.op.input(slot), call.op.output(slot + GRAD), strict=False)
    return {name: grad for name, grad in pairs if grad != EMPTY}


def _computed(call: Call, inner: Env, name: str, value: Any, of: Any = None) -> Any:
    """The gradient that the block computed for a variable, or zero if it computed none. of: a value
    with these rows, if they are ragged.
    """
    gradient = inner.get(name + GRAD)
    if isinstance(gradient, Ragged) and isinstance(of, Ragged) and gradient.key == of.key:
        gradient = gradient.rows  # padded ones are zero, as in the sum
    return (
        jnp.zeros_like(value)
        if gradient is None
        else jnp.asarray(call.exact(name + GRAD, gradient), value.dtype).reshape(value.shape)
    )


def write_grad(op: OpDesc, names: GradNames) -> list[GradOp]:
    """The block's gradient ops, in a separate block; the scopes count as their own gradients, as in
    1.8.5.
    """
    block = names.inside()
    slots = ("inputs", "initial_states", "parameters", "outputs", "outputs" + GRAD, "step_scopes")
    ins = {slot: names.taken(slot) for slot in slots}
    ins["step_scopes" + GRAD] = names.taken("step_scopes")
    outs = {slot + GRAD: names.given(slot) for slot in ("inputs", "initial_states", "parameters")}
    attrs = {name: op.attrs[name] for name in ATTRS if name in op.attrs}
    return [GradOp("recurrent_grad", ins, outs, {**attrs, "sub_block": BlockRef(block.idx)})]


def nothing(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """The block always runs, so no old value stays."""
    return ()


ATTRS = {
    "sub_block": Attr("sub_block", "BLOCK"),
    "has_states": Attr("has_states", "BOOLEAN", False),
    "ex_states": Attr("ex_states", "STRINGS"),
    "states": Attr("states", "STRINGS"),
    "reverse": Attr("reverse", "BOOLEAN", False),
    "is_train": Attr("is_train", "BOOLEAN", True),
    "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
}

control_op(
    "recurrent",
    ins="inputs* initial_states* parameters*",
    outs="outputs* step_scopes",
    attrs=ATTRS,
    doc="outputs[t] = what sub_block gives for inputs[t] and the states of step t - 1.",
    runs=Runs.STEP,
    write_grad=write_grad,
    control=ControlOp(lower=run, carried=nothing),
)
control_op(
    "recurrent_grad",
    ins="inputs* initial_states* parameters* outputs* outputs@GRAD* step_scopes step_scopes@GRAD",
    outs="inputs@GRAD* initial_states@GRAD* parameters@GRAD*",
    attrs=ATTRS,
    forward="recurrent",
    write_grad=NO_SECOND,
    doc=(
        "The gradients of inputs, initial_states and parameters by sub_block, the gradient block,"
        " from the last step to the first."
    ),
    runs=Runs.STEP,
    control=ControlOp(lower=run_gradient, carried=nothing),
)
