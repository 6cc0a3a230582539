"""while_grad: runs the gradient block of a loop for each iteration, from the last to the first.

A gradient that the op takes (Out@GRAD) and returns (X@GRAD) under one name is passed from iteration
to iteration, and so is an array's. The others (parameters, and variables that the loop only reads)
are summed. The gradient of a variable that every iteration overwrites belongs to the last one
alone.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ...ir.desc import EMPTY
from .. import loops
from ..control_interface import Call, ControlOp, Env
from ..host_loop import HostScopes, drive_back
from ..ragged import Ragged, like, rows_of
from ..registry import GRAD, Attr, control_op
from ..selected import SelectedRows
from ..step_scopes import NO_SECOND, Scopes, made_by, no_gradient, used_up, zeros
from ..tensor_array import Listed, as_gradient, empty_like, is_array, stacked
from ..traits import Runs


class Backwards:
    """One run of a while_grad op within a trace."""

    def __init__(self, call: Call) -> None:
        self.call, self.op = call, call.op
        (self.idx,) = self.op.blocks
        self.scopes: Scopes = call.read(self.op.input("StepScopes")[0])
        self.given = dict(
            zip(self.op.attrs["original_output_grad"], self.op.input("Out" + GRAD), strict=True)
        )
        pairs = zip(self.op.input("X"), self.op.output("X" + GRAD), strict=True)
        self.wanted = {x: outer for x, outer in pairs if outer != EMPTY}
        self.handed_on, self.constant = self._starts()
        self.made = made_by(call, self.idx)
        self.summed = [x + GRAD for x in self.wanted if x + GRAD not in self.handed_on]

    def _starts(self) -> tuple[Env, Env]:
        """The gradients at the last iteration: those that iterations pass on, and those that all of
        them read.
        """
        handed: Env = OrderedDict()  # ordered, so that names do not change the compiled step
        constant: Env = {}
        for x in self.wanted:
            value = self.call.env.get(x)
            if is_array(value) or x + GRAD in self.given:
                handed[x + GRAD] = self._given(x, value)
        for inner, outer in self.given.items():
            value = self.call.env.get(outer)
            if inner not in handed and value is not None:
                (constant if is_array(value) else handed)[inner] = jax.tree.map(jnp.asarray, value)
        return handed, constant

    def _given(self, x: str, value: Any) -> Any:
        """The gradient of a variable that the loop changes, zero where nothing after the loop
        depends on it.
        """
        found = self.call.env.get(self.given.get(x + GRAD, ""))
        if not is_array(value):
            return no_gradient(value) if found is None else jax.tree.map(jnp.asarray, found)
        if isinstance(value, Listed):
            value = stacked(value, value.length)
        empty = empty_like(value)
        if found is None:
            return empty
        found = stacked(found, value.capacity, like=jax.tree.map(lambda r: r[0], empty.rows))
        return replace(found, rows=as_gradient(found.rows))

    def once(self, handed: Env, left: Any, k: Any) -> tuple[Env, Env]:
        """One iteration: the gradients that it passes on, and its terms of those that are summed."""
        inner = {**self.call.env, **self.scopes.iteration(left), **self.constant}
        for name in self.summed:
            inner.pop(name, None)
        inner.update(handed)
        self.call.run_block(self.idx, inner, iteration=k)
        after = {n: inner.get(n, v) for n, v in handed.items()}
        for name in handed:
            flows = name.removesuffix(GRAD) in self.wanted and name in self.made
            # earlier iterations do not affect what this one overwrote
            if not (flows or is_array(handed[name])):
                after[name] = used_up(self.call, self.idx, inner, name.removesuffix(GRAD))
        parts = OrderedDict((n, rows_of(inner[n])) for n in self.summed if n in inner)
        return OrderedDict((n, _in_form_of(handed[n], v)) for n, v in after.items()), parts

    def run(self) -> None:
        env, count = self.call.env, self.scopes.count
        if count:
            handed, parts = self._scan(count)
        else:
            handed, parts = self.handed_on, {}
        for x, outer in self.wanted.items():
            env.pop(outer, None)
            if x + GRAD in handed:
                env[outer] = handed[x + GRAD]
            else:
                value = self.call.read(x)
                env[outer] = (
                    like(value, parts[x + GRAD]) if x + GRAD in parts else no_gradient(value)
                )
        env.update(
            {
                outer: handed[n]
                for n, outer in self.given.items()
                if n in handed and n.removesuffix(GRAD) not in self.wanted
            }
        )
        # the gradient of `increment` undoes the step
        env.update({n: v for n, v in self.scopes.before.items() if n in self.made})

    def _scan(self, count: int) -> tuple[Env, Env]:
        scopes, steps = self.scopes, jnp.arange(count, dtype=jnp.int32)
        first = jax.jit(self.once, inline=True)
        left = jax.tree.map(lambda v: v[0], scopes.each)
        _, types = jax.eval_shape(first, self.handed_on, left, 0)
        sparse = [n for n, t in types.items() if isinstance(t, SelectedRows)]
        sums = OrderedDict((n, zeros(t)) for n, t in types.items() if n not in sparse)

        def one(handed: Env, sums: Env, left: Any, k: Any) -> tuple[Env, Env, Env]:
            handed, parts = self.once(handed, left, k)
            return (
                handed,
                OrderedDict((n, v + parts[n]) for n, v in sums.items()),
                OrderedDict((n, parts[n]) for n in sparse),
            )

        def body(carry: Any, now: Any) -> tuple[Any, Env]:
            (handed, sums), (left, ran, k) = carry, now
            if scopes.ran is None:
                *carry, rows = one(handed, sums, left, k)
            else:
                skipped = handed, sums, OrderedDict((n, nothing(types[n])) for n in sparse)
                *carry, rows = loops.cond(ran, lambda: one(handed, sums, left, k), lambda: skipped)
            return tuple(carry), rows

        (handed, sums), rows = loops.scan(
            body, (self.handed_on, sums), (scopes.each, scopes.ran, steps), reverse=True
        )
        return handed, {**sums, **{n: _flat(v) for n, v in rows.items()}}


def _in_form_of(before: Any, after: Any) -> Any:
    """A gradient after an iteration in the form of the one before."""
    if isinstance(before, Ragged):
        after = like(before, rows_of(after))
    return jax.tree.map(lambda a, b: jnp.asarray(b, a.dtype).reshape(a.shape), before, after)


def nothing(types: SelectedRows) -> SelectedRows:
    """Sparse rows of a type, none of them set."""
    rows = jnp.full(types.rows.shape, types.height, types.rows.dtype)
    return SelectedRows(
        rows, jnp.zeros(types.values.shape, types.values.dtype), types.height, types.unique
    )


def _flat(value: SelectedRows) -> SelectedRows:
    """The sparse rows of all iterations."""
    return SelectedRows(
        value.rows.reshape(-1), value.values.reshape(-1, *value.values.shape[2:]), value.height
    )


def run(call: Call) -> None:
    """X@GRAD of a loop."""
    scopes = call.read(call.op.input("StepScopes")[0])
    if isinstance(scopes, HostScopes):
        drive_back(call, scopes)
    else:
        Backwards(call).run()


control_op(
    "while_grad",
    ins="X* Out* Out@GRAD* StepScopes",
    outs="X@GRAD*",
    attrs={
        "sub_block": Attr("sub_block", "BLOCK"),
        "is_test": Attr("is_test", "BOOLEAN", False),
        "original_output_grad": Attr("original_output_grad", "STRINGS", ()),
        "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
    },
    forward="while",
    write_grad=NO_SECOND,
    doc="X@GRAD = what sub_block, the gradient block, gives over all iterations.",
    runs=Runs.STEP,
    control=ControlOp(lower=run, carried=lambda desc, op: ()),
)
