"""while: runs its block as long as a condition holds. Its gradient is in while_grad.py.

The facts known about the loop before it runs (loop_course.py) decide how it is lowered. If a bound
on its iterations is known, and the loop is differentiated or the bound is exact, it becomes a
``lax.scan`` in which iterations after the last do nothing; else a ``lax.while_loop``. A gradient
block reads the values of each iteration from the step scopes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import EnforceNotMet, NotOneStep
from ...ir import walk
from ...ir.desc import EMPTY, BlockRef, OpDesc, ProgramDesc
from .. import loops
from ..checking import WORD
from ..concrete import known
from ..control_interface import Call, ControlOp, Env
from ..definition import GradNames, GradOp
from ..endless import decided_outside
from ..forms import form_of
from ..host_loop import drive, refuse_no_boolean
from ..loop_course import entries, foresee
from ..loop_forms import Forms, fitted
from ..missing import flags, marked
from ..registry import GRAD, Attr, control_op
from ..step_scopes import NO_SCOPES, Form, Scopes, scopes_of, zeros
from ..tensor_array import KIND, Listed, Stacked, is_array, stacked
from ..traits import Runs


class Loop:
    """One run of a while op within a trace."""

    def __init__(self, call: Call) -> None:
        self.call, self.op, self.desc = call, call.op, call.desc
        (self.idx,), (self.condition,) = self.op.blocks, self.op.input("Condition")
        refuse_no_boolean(
            call, self.condition, call.exact(self.condition, call.read(self.condition))
        )
        self.written = (
            *walk.written_outside(self.desc, self.op),
            *([WORD] if WORD in call.env else []),
        )
        _refuse_endless(call, self.condition, self.written)
        self.course = foresee(call, self.idx, self.condition)
        self.there = {n: entries(v) for n in self.written if is_array(v := call.env.get(n))}
        self.start, self.missing = self._carried_values()
        self.end_names, self.start_names = kept(call, self.written, self.course.written)
        self.differentiated = any(block.forward == self.idx for block in self.desc.blocks)

    def _carried_values(self) -> tuple[Env, list[str]]:
        """The carried values, and the carried names that have none before the first iteration."""
        found: Env = {}
        missing = []
        for name in self.written:
            value = self.call.env.get(name)
            if is_array(value) or (value is None and name in self.course.written):
                value = self._room(name, value)
            if value is None or (isinstance(value, Listed) and not value.length):
                missing.append(name)
            else:
                found[name] = jax.tree.map(jnp.asarray, value)
        return found, missing

    def _room(self, name: str, array: Any) -> Any:
        """The array with the number of entries that it will reach."""
        marks = self.course.written.get(name, set())
        if marks is None:
            raise NotOneStep(
                f"op 'while' ({self.op.loc}) writes entries of {name!r} whose numbers are known"
                " only when the step runs; compute them from constants and the loop's counter"
            )
        if self.course.count is None and marks:
            raise NotOneStep(
                f"op 'while' ({self.op.loc}) writes the array {name!r}, but the loop has no known limit of iterations; compare a "
                "counter with a constant, in the condition or beside it by logical_and", counts=True,
            )  # fmt: skip
        there = (
            0 if array is None else array.capacity if isinstance(array, Stacked) else array.length
        )
        capacity = max([there, *(m + 1 for m in marks)])
        if array is None or not there:
            return Listed((), capacity)
        return stacked(array, capacity)

    def once(self, values: Env, k: Any) -> tuple[Env, list[Any]]:
        """One iteration: the carried values after it, and the values saved for its gradient block."""
        inner = {
            **self.call.env,
            **{n: self._empty(n) for n in self.missing if n in self.course.written},
            **values,
        }
        self.call.run_block(self.idx, inner, iteration=k)
        left = {n: inner[n] for n in self.end_names if n in inner}
        left.update({n: values[n] for n in self.start_names if n in values})
        self.form, leaves = Form.of(left)
        return {n: inner[n] for n in self.written if n in inner}, leaves

    def _empty(self, name: str) -> Listed:
        return self._room(name, self.call.env.get(name))

    def run(self) -> None:
        course = self.course
        if course.count == 0 and course.exact:
            self.call.env.update({n: NO_SCOPES for n in self.op.output("StepScopes")})
            return
        first = jax.jit(self.once, inline=True)
        types, left = jax.eval_shape(first, self.start, 0)
        # ordered, so that names do not change the compiled step
        start: Env = OrderedDict(self.start)
        start.update((n, zeros(types[n])) for n in self.missing if n in types)
        forms = Forms()
        while (wider := forms.next(start, types)) is not None:
            start = OrderedDict(wider)
            types, left = jax.eval_shape(first, start, 0)
        before = {n: self.call.env[n] for n in self.end_names if n in self.start}
        if course.count is not None and (course.exact or self.differentiated):
            end, scopes = self._scan(start, left, before)
        elif self.differentiated:
            raise NotOneStep(
                f"op 'while' ({self.op.loc}) is differentiated, but has no known limit of iterations; compare a counter with a "
                "constant, in the condition or beside it by logical_and", counts=True,
            )  # fmt: skip
        elif decided_outside(self.desc.blocks[self.idx].ops, self.condition) is not None:
            raise NotOneStep(
                f"op 'while' ({self.op.loc}) tests {self.condition!r}, but its block changes"
                " nothing that this depends on, so the loop never ends once it has begun; count"
                " there, for instance by layers.increment(i)"
            )
        else:
            end, scopes = self._until(start), NO_SCOPES
        self._mark_missing(end)
        self.call.env.update(end)
        self.call.env.update({n: scopes for n in self.op.output("StepScopes")})
        self._tell_known(end)

    def _scan(self, start: Env, left: Any, before: Env) -> tuple[Env, Scopes]:
        count, exact = self.course.count, self.course.exact
        assert count is not None

        def run(values: Env, k: Any) -> tuple[Env, list[Any]]:
            new, kept = self.once(values, k)
            return self._same(values, new), kept

        def body(values: Env, k: Any) -> tuple[Env, Any]:
            if exact:
                return run(values, k)
            going = values[self.condition].reshape(())
            return_, kept = loops.cond(going, lambda: run(values, k), lambda: (values, zeros(left)))
            return return_, (kept, going)

        end, ys = loops.scan(body, start, jnp.arange(count, dtype=jnp.int32))
        each, ran = (ys, None) if exact else ys
        return end, scopes_of(self.form, each, ran, before, count)

    def _until(self, start: Env) -> Env:
        def body(carry: tuple[Env, Any]) -> tuple[Env, Any]:
            values, k = carry
            return self._same(values, self.once(values, k)[0]), k + 1

        return loops.while_loop(
            lambda c: c[0][self.condition].reshape(()), body, (start, jnp.zeros((), jnp.int32))
        )[0]

    def _same(self, before: Env, after: Env) -> Env:
        """The values after an iteration in the form of those before. Raises UnsupportedError if a
        shape has changed.
        """
        return OrderedDict(
            (
                n,
                _in_form_of(
                    self.op, n, before[n], fitted(after[n], before[n]) if n in after else before[n]
                ),
            )
            for n in before
        )

    def _mark_missing(self, end: Env) -> None:
        """A variable that only the loop sets has a value if there was an iteration."""
        if self.missing and not (self.course.exact and self.course.count):
            began = self.call.read(self.condition)
            marked(
                self.call.env,
                {
                    k: began
                    for k in flags([n for n in self.missing if not is_array(end.get(n))], end)
                },
            )

    def _tell_known(self, end: Env) -> None:
        """Counters with a known last value stay NumPy, and so do the flags of written entries."""
        if not self.course.exact:
            return
        env = self.call.env
        env.update({n: v for n, v in self.course.values.items() if n in end})
        for name, marks in self.course.written.items():
            before, array = self.there.get(name, set()), env.get(name)
            if isinstance(array, Stacked) and marks is not None and before is not None:
                env[name] = replace(
                    array, written=np.isin(np.arange(array.capacity), [*before, *marks])
                )


def kept(
    call: Call, written: Iterable[str], arrays: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """The names that gradient blocks read at an iteration's end (the block's own, and variables
    changed in place), and at its start.

    written: outer variables that the block writes. arrays: those that are arrays, besides those
    that have a value.
    """
    (idx,), desc = call.op.blocks, call.desc
    own = list(walk.read_back(desc, idx))
    grads = [i for i, block in enumerate(desc.blocks) if block.forward == idx]
    reads = dict.fromkeys(n for g in grads for n in walk.captured(desc, g).reads)
    in_place = {n for op in desc.blocks[idx].ops for n in op.reads if n in set(op.writes)}
    outer = [n for n in written if n in reads and GRAD not in n and n not in own]
    outer = [n for n in outer if not is_array(call.env.get(n)) and n not in arrays]
    return own + [n for n in outer if n in in_place], [n for n in outer if n not in in_place]


def _refuse_endless(call: Call, name: str, written: Iterable[str]) -> None:
    value = known(call.read(name))
    if name not in written and not (value is not None and not value.reshape(-1)[0]):
        raise EnforceNotMet(
            f"op 'while' ({call.op.loc}) tests {name!r}, which its block never writes, so it would"
            " never end; write it there, for instance by layers.less_than(i, n, cond=condition)"
        )


def _in_form_of(op: OpDesc, name: str, before: Any, after: Any) -> Any:
    """A value after an iteration in the form of the one before."""
    now = jax.tree.map(jnp.shape, after)
    was = jax.tree.map(jnp.shape, before)
    if now != was or form_of(after) != form_of(before):
        raise NotOneStep(
            f"op '{op.type}' ({op.loc}) begins an iteration with {name!r} of shape {_shape(before)}"
            f" and ends it with {_shape(after)}; the shape must stay the same, so write a value"
            " of a growing shape to an array"
        )
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        if jnp.result_type(a) != jnp.result_type(b):
            raise NotOneStep(
                f"op '{op.type}' ({op.loc}) begins an iteration with {name!r} of"
                f" {jnp.result_type(a)} and ends it with {jnp.result_type(b)}; the dtype must stay"
                " the same, so cast it"
            )
    return jax.tree.map(lambda a, b: jnp.asarray(b, a.dtype), before, after)


def _shape(value: Any) -> Any:
    return list(value.shape) if hasattr(value, "shape") else f"a {type(value).__name__}"


def run(call: Call) -> None:
    """The block, as long as Condition holds."""
    if call.hosted:
        arrays = {n for block in call.desc.blocks for n, v in block.vars.items() if v.kind == KIND}
        drive(call, kept(call, walk.written_outside(call.desc, call.op), arrays))
    else:
        Loop(call).run()


def carried(desc: ProgramDesc, op: OpDesc) -> Iterable[str]:
    """Outer variables that the block writes and another op writes too; a variable that only the
    block writes has no old value.
    """
    return walk.written_before(desc, op, walk.written_outside(desc, op))


def write_grad(op: OpDesc, names: GradNames) -> list[GradOp]:
    """while_grad takes the gradients that its block reads and does not compute, and returns those
    that it computes.
    """
    block = names.inside()
    made = {n for written in block.writes for n in written}
    gives = [n if n in made else EMPTY for n in names.given("X")]
    seen = {*op.input("X"), *op.output("Out")}
    needed: dict[str, None] = {}
    for reads, writes in zip(block.reads, block.writes, strict=True):
        needed.update((n, None) for n in reads if n not in seen and not block.sees(n))
        seen.update(writes)
    ins = {
        "X": names.taken("X"),
        "Out": names.taken("Out"),
        "Out" + GRAD: list(needed),
        "StepScopes": names.taken("StepScopes"),
    }
    attrs = {
        "sub_block": BlockRef(block.idx),
        "original_output_grad": tuple(needed),
        "skip_eager_deletion_vars": (),
    }
    attrs["is_test"] = op.attrs.get("is_test", False)
    return [GradOp("while_grad", ins, {"X" + GRAD: gives}, attrs)]


ATTRS = {
    "sub_block": Attr("sub_block", "BLOCK"),
    "is_test": Attr("is_test", "BOOLEAN", False),
    "skip_eager_deletion_vars": Attr("skip_eager_deletion_vars", "STRINGS", ()),
}

control_op(
    "while",
    ins="X* Condition*",
    outs="Out* StepScopes",
    attrs=ATTRS,
    doc="Out = what sub_block leaves, run as long as Condition holds.",
    runs=Runs.STEP,
    write_grad=write_grad,
    control=ControlOp(lower=run, carried=carried),
)
