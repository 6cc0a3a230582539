"""Loops that Python drives (partition/cuts.py), iteration by iteration on known values, and
backwards through saved ones.

Shapes may change between iterations, and arrays and LoDs may grow. The values of each iteration
that gradient blocks read are saved, as in Fluid's step scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import EnforceNotMet, note
from ..ir import walk
from ..ir.desc import EMPTY
from .checking import WORD
from .control_interface import Call, Env
from .definition import GRAD
from .ragged import Ragged, like, rows_of
from .selected import SelectedRows
from .step_scopes import made_by, no_gradient, used_up
from .tensor_array import Listed, Stacked, TensorArray, is_array, unstacked


@dataclass(frozen=True, eq=False)
class HostScopes:
    """each: the values of every iteration that gradient blocks read. before: the values changed in
    place, as before the loop.
    """

    each: list[Env]
    before: Env


def holds(call: Call, name: str, value: Any) -> bool:
    """The value of a condition of one element; waits for it. Raises EnforceNotMet for any other
    condition.
    """
    found = np.asarray(call.exact(name, value))
    refuse_no_boolean(call, name, found)
    return bool(found.reshape(()))


def refuse_no_boolean(call: Call, name: str, value: Any) -> None:
    """Raises EnforceNotMet for a condition that is not one boolean."""
    if value.dtype != bool or value.size != 1:
        raise EnforceNotMet(
            f"op 'while' ({call.op.loc}) takes one boolean as its condition, but {name!r} is"
            f" {value.dtype} of shape {list(value.shape)}; compare first, for instance by"
            " layers.less_than"
        )


def drive(call: Call, kept: tuple[Sequence[str], Sequence[str]]) -> None:
    """Run a loop's block while its condition is true. kept: the names that gradient blocks read at
    an iteration's end, and at its beginning.
    """
    (idx,), (condition,) = call.op.blocks, call.op.input("Condition")
    names = [*walk.written_outside(call.desc, call.op), WORD]
    ends, starts = kept
    each: list[Env] = []
    values = {n: call.env[n] for n in names if n in call.env}
    before = {n: call.env[n] for n in ends if n in values}
    count = 0
    while holds(call, condition, values.get(condition, call.env[condition])):
        inner = {**call.env, **values}
        try:
            call.run_block(idx, inner, iteration=count)
        except Exception as error:
            _tell_changes(error, call, values, count)
            raise
        if ends or starts:
            each.append(
                {
                    **{n: inner[n] for n in ends if n in inner},
                    **{n: values[n] for n in starts if n in values},
                }
            )
        values = {n: inner[n] for n in names if n in inner}
        count += 1
    call.env.update(values)
    call.env.update(
        {n: HostScopes(each or [{}] * count, before) for n in call.op.output("StepScopes")}
    )


def _tell_changes(error: Exception, call: Call, values: Env, count: int) -> None:
    """Add to an error which loop-carried values have changed their shapes: an op may not accept
    them.
    """
    shapes = {n: (_entry_shape(call.env.get(n), 0), _entry_shape(v, -1)) for n, v in values.items()}
    changed = [
        f"{n!r} from shape {list(a)} to {list(b)}"
        for n, (a, b) in shapes.items()
        if a is not None and b is not None and a != b
    ]
    if changed:
        note(
            error,
            f"in iteration {count} of the loop at {call.op.loc}, which has changed"
            f" {' and '.join(changed)}",
        )


def _entry_shape(value: Any, at: int) -> tuple[int, ...] | None:
    """The shape of a value, or of an array's entry."""
    if isinstance(value, Listed):
        value = value.items[at] if value.items else None
    return (
        tuple(rows_of(value).shape)
        if hasattr(value, "shape") or isinstance(value, Ragged)
        else None
    )


def drive_rows(
    step: Callable[[Any, Any], Any], carry: Any, given: tuple[Any, ...], reverse: bool
) -> tuple[Any, list[Any]]:
    """jax.lax.scan in Python: the last carry, and the results of each step. given: row numbers, and
    values with as many rows.
    """
    count = given[0].shape[0]
    found: list[Any] = [None] * count
    for k in reversed(range(count)) if reverse else range(count):
        carry, found[k] = step(carry, (k, *jax.tree.map(lambda v, k=k: v[k], given[1:])))
    return carry, found


def side_by_side(each: Sequence[Any]) -> Any:
    """Values of one form, stacked along a leading dimension; None if there are none."""
    return jax.tree.map(lambda *v: jnp.stack(v), *each) if each else {}


def drive_back(call: Call, scopes: HostScopes) -> None:
    """Run a loop's gradient block for each iteration, from the last to the first."""
    op, env = call.op, call.env
    (idx,) = op.blocks
    given = dict(zip(op.attrs["original_output_grad"], op.input("Out" + GRAD), strict=True))
    wanted = {
        x: outer
        for x, outer in zip(op.input("X"), op.output("X" + GRAD), strict=True)
        if outer != EMPTY
    }
    handed, constant = _starts(call, given, wanted)
    made = made_by(call, idx)
    sums: dict[str, Any] = {}
    for count in reversed(range(len(scopes.each))):
        inner = {**env, **scopes.each[count], **constant}
        for x in wanted:
            inner.pop(x + GRAD, None)
        inner.update(handed)
        call.run_block(idx, inner, iteration=count)
        parts = {
            x: rows_of(inner[x + GRAD])
            for x in wanted
            if x + GRAD not in handed and x + GRAD in inner
        }
        handed = {
            n: _handed(call, idx, inner, n, v, n.removesuffix(GRAD) in wanted and n in made)
            for n, v in handed.items()
        }
        sums = _added(sums, parts)
    for x, outer in wanted.items():
        env.pop(outer, None)
        env[outer] = handed.get(x + GRAD)
        if env[outer] is None:
            env[outer] = (
                like(call.read(x), _joined(sums[x])) if x in sums else no_gradient(call.read(x))
            )
    env.update(
        {
            outer: handed[n]
            for n, outer in given.items()
            if n in handed and n.removesuffix(GRAD) not in wanted
        }
    )
    # the gradient of `increment` undoes the step
    env.update({n: v for n, v in scopes.before.items() if n in made})


def _starts(call: Call, given: dict[str, str], wanted: dict[str, str]) -> tuple[Env, Env]:
    """The gradients at the last iteration: those that iterations pass on, and those that all of
    them read.
    """
    handed: Env = {}
    constant: Env = {}
    for x in wanted:
        value = call.env.get(x)
        if is_array(value) or x + GRAD in given:
            found = call.env.get(given.get(x + GRAD, ""))
            if found is None:
                found = (
                    Listed((None,) * _listed(value).length)
                    if is_array(value)
                    else no_gradient(value)
                )
            handed[x + GRAD] = _listed(found) if is_array(found) else found
    for inner, outer in given.items():
        value = call.env.get(outer)
        if inner not in handed and value is not None:
            (constant if is_array(value) else handed)[inner] = value
    return handed, constant


def _listed(array: TensorArray) -> Listed:
    """The entries as a list; between compiled segments it is known which have been written."""
    return unstacked(
        replace(array, written=np.asarray(array.written)) if isinstance(array, Stacked) else array
    )


def _handed(call: Call, idx: int, inner: Env, name: str, before: Any, flows: bool) -> Any:
    """The gradient that an iteration passes to the one before it, which does not affect what this
    one overwrote.
    """
    value = inner.get(name, before)
    if flows or is_array(value):
        return value
    return used_up(call, idx, {**inner, name: value}, name.removesuffix(GRAD))


@jax.jit
def _sum(sums: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    return {n: jax.tree.map(jnp.add, sums[n], parts[n]) for n in sums}


def _added(sums: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """Gradients summed over iterations; sparse ones are collected in lists."""
    sparse = {n: [*sums.get(n, []), v] for n, v in parts.items() if isinstance(v, SelectedRows)}
    dense = {n: v for n, v in parts.items() if n not in sparse}
    both = {n: sums[n] for n in dense if n in sums}
    new = _sum(both, {n: dense[n] for n in both}) if both else {}
    return {**sums, **dense, **new, **sparse}


def _joined(found: Any) -> Any:
    if not isinstance(found, list):
        return found
    rows, values = (
        jnp.concatenate([getattr(v, what) for v in found]) for what in ("rows", "values")
    )
    return SelectedRows(rows, values, found[0].height)
