"""Computes rows whose number depends on data block by block, and only the blocks that have true
rows.

The output of an op that chooses rows has room for all rows that it might choose (docs/lod.md), and
a detector's proposals may fill a third of that room. If an op with a large weight processes such
rows one by one and is not differentiated, the op and the row-wise ops behind it run as a loop over
blocks of rows. Nothing is computed behind the last true row.

A Faster R-CNN predicts in 1.6 CPU seconds instead of 7.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..errors import FluidError
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..lower.env import Context, Env
from ..ops import loops
from ..ops.ragged import Ragged, by_data, copied, rows_of
from ..ops.registry import lookup, traits
from ..ops.traits import RowWise, Sequences, SparseGradient

BLOCK = 32  # rows of a block
LEAST = 1 << 24  # least product of the weight's elements and the rows for a loop
KEY = "a block of rows"

RunOne = Callable[[OpDesc, Env, Context], None]


@dataclass(frozen=True)
class _Group:
    """Ops that process rows block by block. rows: the names that they read; made: by name, the
    types of a block of the rows that are needed afterwards; lods: names of rows whose LoD the
    program reads.
    """

    ops: Sequence[OpDesc]
    rows: tuple[str, ...]
    made: Mapping[str, Ragged]
    lods: frozenset[str]


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """A schedule that runs some ops of a step in blocks of rows.

    kept: names whose values are read after the last op. alone: the uids of ops that run by
    themselves, because they are differentiated or computed while the step is traced.
    """

    desc: ProgramDesc
    ops: Sequence[OpDesc]
    kept: frozenset[str]
    alone: frozenset[int]

    @cached_property
    def starts(self) -> frozenset[int]:
        """The positions of ops that may begin a loop, judged by declarations; empty if no op
        chooses rows by data.
        """
        if not any(traits(op.type).chosen is not None for op in self.ops):
            return frozenset()
        return frozenset(at for at, op in enumerate(self.ops) if self._by_rows(op))

    def _by_rows(self, op: OpDesc) -> bool:
        """Whether an op only computes rows from rows, without look-ups, random numbers or
        communication between ranks.
        """
        what = traits(op.type)
        if what.ranks.together or lookup(op.type).is_random(op.attrs):
            return False
        if (
            not (isinstance(what.rows, RowWise) or _row_wise_slot(op))
            or isinstance(what.sparse, SparseGradient)
            or op.uid in self.alone
        ):
            return False
        return what.bounds is None and what.refuses is None and not op.blocks and not what.runs.acts

    def run(self, env: Env, ctx: Context, run_one: RunOne) -> None:
        """Run all the ops."""
        at = 0
        while at < len(self.ops):
            done = self._blocks(at, env, ctx, run_one) if at in self.starts else 0
            if not done:
                run_one(self.ops[at], env, ctx)
            at += done or 1

    def _blocks(self, at: int, env: Env, ctx: Context, run_one: RunOne) -> int:
        """Run the ops from `at` on that process chosen rows, block by block. Returns how many ops
        ran; 0 if a loop is not worth it.
        """
        lead = _lead_rows(self.ops[at], env)
        if lead is None:
            return 0
        inner = replace(ctx, pullbacks={}, origins={}, objections=None)
        group = self._group(at, lead, env, inner, run_one)
        if not group.ops:
            return 0
        made = _looped(group, lead, env, inner, run_one)
        env.update(
            {
                n: lead.with_rows(copied(lead.with_rows(rows)), bare=group.made[n].bare)
                for n, rows in made.items()
            }
        )
        return len(group.ops)

    def _group(self, at: int, lead: Ragged, env: Env, ctx: Context, run_one: RunOne) -> _Group:
        """The ops from `at` on that compute rows of these sequences from such rows, found by
        running them on the types of a block.
        """
        offsets = (jax.ShapeDtypeStruct(lead.offsets[-1].shape, jnp.int32),)
        rows = {
            n: v
            for n, v in env.items()
            if isinstance(v, Ragged) and v.key == lead.key and v.capacity == lead.capacity
        }
        types = {
            n: Ragged(
                jax.ShapeDtypeStruct((BLOCK, *v.rows.shape[1:]), v.dtype),
                offsets,
                (BLOCK,),
                KEY,
                padded=True,
                bare=v.bare,
            )
            for n, v in rows.items()
        }
        taken: list[OpDesc] = []

        def through(given: Env) -> Env:
            values = {**env, **given}
            # each op gets rows with the LoD that the program reads, or none
            for op in self.ops[at:]:
                before = dict(values)
                if (
                    not self._by_rows(op)
                    or not _computed(op, values, ctx, run_one)
                    or self._has_other_outputs(at + len(taken), op, values)
                ):
                    values = before
                    break
                taken.append(op)
            written = {n for op in taken for n in op.writes}
            return {n: v for n, v in values.items() if n in written and _of_block(v)}

        found = jax.eval_shape(through, types)
        needed, read = self._needed_after(at + len(taken)), {n for op in taken for n in op.reads}
        lods = frozenset(n for n, v in (*types.items(), *found.items()) if not v.bare)
        return _Group(
            tuple(taken),
            tuple(n for n in rows if n in read),
            {n: v for n, v in found.items() if n in needed},
            lods,
        )

    def _has_other_outputs(self, at: int, op: OpDesc, values: Env) -> bool:
        """Whether a later op needs an output of this op that is not rows of the block."""
        same = traits(op.type).unchanged
        left = (
            {n for slot in same.outs for n in op.output(slot)}
            if same is not None and same.holds(op)
            else set()
        )
        other = {n for n in op.writes if n not in left and not _of_block(values.get(n))}
        return bool(other and other & self._needed_after(at + 1))

    def _needed_after(self, at: int) -> set[str]:
        """The names whose values are needed after the first `at` ops."""
        needed = set(self.kept)
        for op in reversed(self.ops[at:]):
            walk.step_back(self.desc, op, needed)
        return needed


def _lead_rows(op: OpDesc, env: Env) -> Ragged | None:
    """The rows that an op processes, if the data choose them, there are many, and the op has a
    large weight.
    """
    values = [env[n] for n in op.reads if n in env]
    rows = next((v for v in values if isinstance(v, Ragged) and by_data(v)), None)
    if rows is None or rows.capacity < 2 * BLOCK or rows.alive is not None or len(rows.offsets) > 1:
        return None
    weight = max(
        (math.prod(v.shape) for v in values if not isinstance(v, Ragged) and hasattr(v, "shape")),
        default=0,
    )
    return rows if weight * rows.capacity >= LEAST else None


def _row_wise_slot(op: OpDesc) -> str:
    """The slot whose rows a sequence op takes one by one; "" if there is none."""
    rows = traits(op.type).rows
    return (
        rows.alone if isinstance(rows, Sequences) and (rows.when is None or rows.when(op)) else ""
    )


def _of_block(value: Any) -> bool:
    return isinstance(value, Ragged) and value.key == KEY and value.rows.shape[:1] == (BLOCK,)


def _computed(op: OpDesc, values: Env, ctx: Context, run_one: RunOne) -> bool:
    """Whether an op can run on a block; if so, its outputs are added to `values`."""
    try:
        run_one(op, values, ctx)
    except (FluidError, TypeError, ValueError):
        # it mixes rows, or reads a value with the rows of all blocks
        return False
    return True


def _looped(group: _Group, lead: Ragged, env: Env, ctx: Context, run_one: RunOne) -> Env:
    """The outputs of the ops, [capacity, ...]; zeros behind the last block that has a true row."""
    last, within = lead.capacity - BLOCK, ctx.nested()

    def block(state: tuple[Any, Env]) -> tuple[Any, Env]:
        number, made = state
        begin = jnp.minimum(number * BLOCK, last)
        values = {
            **env,
            **{n: lax.dynamic_slice_in_dim(env[n].rows, begin, BLOCK) for n in group.rows},
        }
        sequences = replace(
            lead,
            offsets=(jnp.clip(lead.offsets[-1] - begin, 0, BLOCK),),
            longest=(BLOCK,),
            key=KEY,
            most=None,
        )
        for op in group.ops:
            given = {
                n: replace(sequences, rows=values[n], bare=False)
                for n in op.input(_row_wise_slot(op))
                if n in group.lods
            }
            inner = {**values, **given} if given else values
            run_one(op, inner, within)
            values.update({n: rows_of(inner[n]) for n in op.writes if n in inner} if given else {})
        return number + 1, {
            n: lax.dynamic_update_slice_in_dim(v, values[n], begin, 0) for n, v in made.items()
        }

    empty = {
        n: jnp.zeros((lead.capacity, *v.rows.shape[1:]), v.dtype) for n, v in group.made.items()
    }
    return loops.while_loop(
        lambda state: state[0] * BLOCK < lead.count, block, (jnp.zeros((), jnp.int32), empty)
    )[1]
