"""The sequences of an array of lengths: known for the output of an op with the trait `lengths`, and
passed on by ops that copy elements.

The key is the identity of the value during one trace: a computed value is another value, and so is
one that leaves a loop or a branch. Correctness does not depend on it: lengths of unknown origin are
plain numbers of rows.
"""

from __future__ import annotations

from typing import Any

from ..ir.desc import OpDesc
from ..ops.lengths import Lengths, same_numbers
from ..ops.ragged import Ragged
from ..ops.registry import OpDef
from .env import Context, Env

Slots = dict[str, Any]


def with_origin(definition: OpDef, inputs: Slots, ctx: Context) -> Slots:
    """The inputs of an op; lengths with known sequences come with these."""
    slot = definition.traits.lengths
    if slot is None or not ctx.origins:
        return inputs
    lengths, of = ctx.origins.get(id(inputs.get(slot)), (None, None))
    return {**inputs, slot: Lengths(lengths, of)} if isinstance(of, Ragged) else inputs


def follow(op: OpDesc, definition: OpDef, inputs: Slots, env: Env, ctx: Context) -> None:
    """Remember the lengths among the outputs of an op that has run."""
    what = definition.traits
    if what.lengths is not None and op.output(what.lengths):
        _remember(op.output(what.lengths)[0], inputs.get("X"), env, ctx)
    elif what.carries is not None and ctx.origins:
        lengths, of = ctx.origins.get(id(inputs.get(what.carries)), (None, None))
        out = env.get(op.output("Out")[0])
        if isinstance(of, Ragged) and hasattr(out, "size") and same_numbers(out, lengths):
            _remember(op.output("Out")[0], of, env, ctx)


def _remember(name: str, of: Any, env: Env, ctx: Context) -> None:
    value = env.get(name)
    if value is not None and not isinstance(value, Ragged) and isinstance(of, Ragged):
        ctx.origins[id(value)] = value, of  # with the value, so that no other one gets its id
