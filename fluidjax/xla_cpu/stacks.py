"""Runs equal ops (chosen by batching.py) as one op over their stacked inputs, and keeps their
outputs as rows of stacks.

A row is taken out of its stack only when an op that runs by itself reads it. The gradients of
slices of one value are boxes. They are not padded to that value's size one by one; all are added to
its cells at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..ir.desc import EMPTY, OpDesc
from ..lower.env import Context, Env, requested
from ..ops.described import described
from ..ops.registry import OpDef, lookup
from .batching import LEAST, Unit, fits, sides_of, starts_of

# largest table of the boxes that each cell is in; beyond it boxes are scattered one by one
MOST_TABLE = 1 << 18


@dataclass(frozen=True, eq=False)
class Boxes:
    """Stacked arrays of the sides `sides`, each at a place of its own in zeros of the shape
    `shape`.
    """

    starts: np.ndarray  # [boxes, axes]
    sides: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """Element `at` of a stack. boxes: the element is one of these boxes, with zeros around it."""

    stack: jax.Array
    at: int
    boxes: Boxes | None = None

    def value(self) -> jax.Array:
        row = lax.index_in_dim(self.stack, self.at, 0, keepdims=False)
        if self.boxes is None:
            return row
        place = zip(
            self.boxes.starts[self.at].tolist(), self.boxes.sides, self.boxes.shape, strict=True
        )
        return lax.pad(
            row, jnp.zeros((), row.dtype), [(a, n - a - side, 0) for a, side, n in place]
        )


class Stacks:
    """The environment of a step in which some names are rows of stacks."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self._rows: dict[str, Row] = {}

    def show(self, names: Iterable[str]) -> None:
        """Put the values of these names into the environment, for ops that run by themselves."""
        for name in names:
            row = self._rows.pop(name, None)
            if row is not None:
                self.env[name] = row.value()

    def forget(self, names: Iterable[str]) -> None:
        """Drop the rows of these names, because the names have other values now."""
        for name in names:
            self._rows.pop(name, None)

    def hold(self, names: Sequence[str], stack: jax.Array, boxes: Boxes | None = None) -> None:
        """Note that the names are the rows of a stack, in order."""
        for at, name in enumerate(names):
            if name != EMPTY:
                self.env.pop(name, None)
                self._rows[name] = Row(stack, at, boxes)

    def rows(self, names: Sequence[str]) -> list[Row] | None:
        """The rows of the names; None if some name is not a row."""
        found = [self._rows.get(n) for n in names]
        return None if None in found else found  # type: ignore[return-value]

    def stacked(self, names: Sequence[str]) -> jax.Array | None:
        """The values of the names, stacked along a new first axis; None if they are not arrays of
        one type.
        """
        rows = self.rows(names)
        if rows is not None and all(r.boxes is None for r in rows):
            whole = {id(r.stack): r.stack for r in rows}
            if len({(s.shape[1:], s.dtype) for s in whole.values()}) == 1:
                begins = dict(
                    zip(
                        whole,
                        np.cumsum([0, *(len(s) for s in whole.values())]).tolist(),
                        strict=False,
                    )
                )
                joined = (
                    next(iter(whole.values()))
                    if len(whole) == 1
                    else jnp.concatenate(list(whole.values()))
                )
                return _taken(joined, [begins[id(r.stack)] + r.at for r in rows])
        self.show(names)
        values = [self.env.get(n) for n in names]
        if not all(isinstance(v, jax.Array) for v in values):
            return None
        if len({(v.shape, v.dtype) for v in values}) != 1:  # type: ignore[union-attr]
            return None
        return jnp.stack(values)  # type: ignore[arg-type]


def _taken(stack: jax.Array, rows: Sequence[int]) -> jax.Array:
    steps = {b - a for a, b in itertools.pairwise(rows)} or {1}
    if len(steps) > 1 or min(steps) < 1:
        return stack.at[np.asarray(rows, np.int32)].get(mode="promise_in_bounds")
    return (
        stack
        if len(rows) == len(stack)
        else lax.slice_in_dim(stack, rows[0], rows[-1] + 1, steps.pop())
    )


@dataclass(frozen=True, eq=False)
class Batches:
    """A schedule that runs the ops of a unit at once. kept: names that are read afterwards."""

    units: Sequence[Unit]
    kept: Sequence[str]

    def run(self, env: Env, ctx: Context, run_one: Callable[[OpDesc, Env, Context], None]) -> None:
        """Run all the ops."""
        stacks = Stacks(env)
        for unit in self.units:
            if _run_unit(unit, stacks, ctx):
                continue
            for op in unit:
                stacks.show(op.reads)
                run_one(op, env, ctx)
                stacks.forget(op.writes)
        stacks.show(self.kept)


def _run_unit(unit: Unit, stacks: Stacks, ctx: Context) -> bool:
    """Run the ops of a unit at once, or one op on rows of stacks. False if they must run by
    themselves.
    """
    op = unit[0]
    with described(op), jax.named_scope(op.type):
        if len(unit) == 1:
            return op.type in _KNOW_STACKS and _KNOW_STACKS[op.type](op, stacks)
        if ctx.sizes is not None and any(each.uid in ctx.sizes.folded for each in unit):
            return False
        if op.type in ("slice", "slice_grad"):
            return (_slices if op.type == "slice" else _slice_gradients)(unit, stacks)
        return _mapped(unit, stacks)


def _mapped(unit: Unit, stacks: Stacks) -> bool:
    definition = lookup(unit[0].type)
    given = _operands(unit, definition, stacks)
    if given is None:
        return False
    values, axes = given
    wanted, many = requested(unit[0]), {s.name for s in definition.inputs if s.many}

    def one(values: dict[str, jax.Array]) -> dict[str, Any]:
        out = definition(
            {s: [v] if s in many else v for s, v in values.items()}, unit[0].attrs, None, wanted
        )
        lists = {s.name for s in definition.outputs if s.many}
        return {s: out[s][0] if s in lists else out[s] for s in wanted}

    if any(axis == 0 for axis in axes.values()):
        found = jax.vmap(one, in_axes=(axes,))(values)
    else:
        found = {
            slot: jnp.broadcast_to(value, (len(unit), *value.shape))
            for slot, value in one(values).items()
        }
    for slot, stack in found.items():
        stacks.hold([op.outputs[slot][0] for op in unit], stack)
    return True


def _operands(
    unit: Unit, definition: OpDef, stacks: Stacks
) -> tuple[dict[str, jax.Array], dict[str, int | None]] | None:
    """For each slot the value that all ops read (axis None), or the stacked values (axis 0); None
    if one is not a plain array.
    """
    values: dict[str, Any] = {}
    axes: dict[str, int | None] = {}
    for slot in (s.name for s in definition.inputs if unit[0].inputs.get(s.name)):
        names = [op.inputs[slot][0] for op in unit]
        same = len(set(names)) == 1
        axes[slot] = None if same else 0
        if same:
            stacks.show(names[:1])
        values[slot] = stacks.env.get(names[0]) if same else stacks.stacked(names)
        if not isinstance(values[slot], jax.Array):
            return None
    return values, axes


# Slices of one value


def _slices(unit: Unit, stacks: Stacks) -> bool:
    (name,) = unit[0].input("Input")
    stacks.show([name])
    x = stacks.env.get(name)
    if not isinstance(x, jax.Array) or not all(fits(op, x.shape) for op in unit):
        return False
    cut = _sliced_boxes(
        x, np.asarray([starts_of(op, x.ndim) for op in unit], np.int32), sides_of(unit[0], x.shape)
    )
    gone = {1 + a % x.ndim for a in unit[0].attrs.get("decrease_axis", ())}
    left = [n for i, n in enumerate(cut.shape) if i not in gone]
    stacks.hold(
        [op.output("Out")[0] for op in unit],
        cut.reshape(left if len(left) > 1 or not gone else (len(unit), 1)),
    )
    return True


def _sliced_boxes(x: jax.Array, starts: np.ndarray, sides: Sequence[int]) -> jax.Array:
    """The boxes of x that begin at `starts`, [boxes, sides...]."""
    return jax.vmap(lambda at: lax.dynamic_slice(x, list(at), sides))(starts)


def _slice_gradients(unit: Unit, stacks: Stacks) -> bool:
    (name,) = unit[0].input("Input")
    stacks.show([name])
    x = stacks.env.get(name)
    if not isinstance(x, jax.Array) or not all(
        fits(op, x.shape) and op.input("Out@GRAD") for op in unit
    ):
        return False
    given = stacks.stacked([op.input("Out@GRAD")[0] for op in unit])
    if given is None:
        return False
    boxes = Boxes(
        np.asarray([starts_of(op, x.ndim) for op in unit], np.int32),
        tuple(sides_of(unit[0], x.shape)),
        x.shape,
    )
    stacks.hold(
        [op.output("Input@GRAD")[0] for op in unit], given.reshape(len(unit), *boxes.sides), boxes
    )
    return True


def _added(stack: jax.Array, boxes: Boxes) -> jax.Array:
    """The sum of the boxes in the cells of their shape."""
    table = _table(boxes)
    if table is None:
        like = jax.ShapeDtypeStruct(boxes.shape, stack.dtype)
        return jax.linear_transpose(lambda x: _sliced_boxes(x, boxes.starts, boxes.sides), like)(
            stack
        )[0]
    flat = jnp.concatenate([stack.reshape(-1), jnp.zeros((1,), stack.dtype)])
    found = flat.at[table].get(mode="promise_in_bounds")
    return (found[0] if len(table) == 1 else found.sum(0)).reshape(boxes.shape)


def _table(boxes: Boxes) -> np.ndarray | None:
    """A table [most boxes over a cell, cells] of the stack's elements at each cell, in order;
    unused entries point behind the last element.
    """
    inside = np.stack(np.unravel_index(np.arange(math.prod(boxes.sides)), boxes.sides), -1)
    cells = np.ravel_multi_index(
        tuple(np.moveaxis(boxes.starts[:, None] + inside, -1, 0)), boxes.shape
    ).reshape(-1)
    order = np.argsort(cells, kind="stable")
    counts = np.bincount(cells, minlength=math.prod(boxes.shape))
    if counts.max() * len(counts) > MOST_TABLE:
        return None
    table = np.full((counts.max(), len(counts)), len(cells), np.int32)
    begins = np.cumsum(counts) - counts
    table[np.arange(len(cells)) - begins[cells[order]], cells[order]] = order
    return table


# Ops of many values


def _sum(op: OpDesc, stacks: Stacks) -> bool:
    names = op.input("X")
    rows = stacks.rows(names) if len(names) >= LEAST else None
    if rows is None:
        return False
    held = {id(r.stack): (r.stack, r.boxes) for r in rows}
    if all(boxes is None for _, boxes in held.values()):
        stack = stacks.stacked(names)
        total = None if stack is None else stack.sum(0)
    else:  # every box of every stack, once
        once = len(set(names)) == len(names) == sum(len(stack) for stack, _ in held.values())
        total = None
        if once and all(boxes for _, boxes in held.values()):
            sums = [_added(stack, boxes) for stack, boxes in held.values()]  # type: ignore[arg-type]
            total = reduce(jnp.add, sums)
    if total is None:
        return False
    stacks.forget(op.writes)
    stacks.env[op.output("Out")[0]] = total
    return True


def _stack(op: OpDesc, stacks: Stacks) -> bool:
    names = op.input("X")
    rows = stacks.rows(names) if len(names) >= LEAST else None
    found = (
        stacks.stacked(names) if rows is not None and all(r.boxes is None for r in rows) else None
    )
    if found is None:
        return False
    stacks.forget(op.writes)
    stacks.env[op.output("Y")[0]] = jnp.moveaxis(found, 0, op.attrs.get("axis", 0) % found.ndim)
    return True


def _stack_gradient(op: OpDesc, stacks: Stacks) -> bool:
    names = op.output("X@GRAD")
    stacks.show(op.reads)
    given = stacks.env.get(op.input("Y@GRAD")[0])
    if len(names) < LEAST or not isinstance(given, jax.Array):
        return False
    stacks.hold(names, jnp.moveaxis(given, op.attrs.get("axis", 0) % given.ndim, 0))
    return True


_KNOW_STACKS: dict[str, Callable[[OpDesc, Stacks], bool]] = {
    "sum": _sum,
    "stack": _stack,
    "stack_grad": _stack_gradient,
}
