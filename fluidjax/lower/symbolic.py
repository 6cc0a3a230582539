"""Sizes that are symbolic while a step is exported for any batch, through the ops that compute
other sizes from them.

What decides a size must be known while the step is traced, but `shape` gives an array that is known
only when the exported step runs. So the symbolic sizes are kept beside that array, by its identity
(as in lengths.py), and an op that makes a size of it gets them instead.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..ir.desc import OpDesc
from ..ops.concrete import are_numbers, known
from ..ops.registry import OpDef
from ..ops.symbolic import RULES, Rule, same
from .env import Context, Env

Slots = dict[str, Any]


def with_sizes(op: OpDesc, definition: OpDef, inputs: Slots, ctx: Context) -> Slots:
    """The inputs of an op; what decides its sizes is symbolic sizes, where they are known."""
    decides = definition.traits.sizes
    if decides is None or not ctx.origins:
        return inputs
    found = dict(inputs)
    for slot, i in decides.needed(op):
        value = found.get(slot)
        if isinstance(value, list):
            found[slot] = [*value[:i], _instead(value[i], ctx), *value[i + 1 :]]
        else:
            found[slot] = _instead(value, ctx)
    return found


def _instead(value: Any, ctx: Context) -> Any:
    sizes = ctx.origins.get(id(value), (None, None))[1]
    return sizes if isinstance(sizes, np.ndarray) else value


def keep_sizes(op: OpDesc, definition: OpDef, inputs: Slots, env: Env, ctx: Context) -> None:
    """Keep the sizes that an op has computed."""
    if op.type != "shape" and not ctx.origins:
        return
    name = next(op.writes, None)
    value = env.get(name) if name is not None else None
    sizes = _computed(op, definition, inputs, ctx)
    if sizes is not None and isinstance(value, jax.core.Tracer) and value.size == sizes.size:
        # with the value, so that no other one gets its id
        ctx.origins[id(value)] = value, sizes.reshape(value.shape)


def _computed(op: OpDesc, definition: OpDef, inputs: Slots, ctx: Context) -> np.ndarray | None:
    if op.type == "shape":
        shape = getattr(inputs["Input"], "shape", ())
        return None if are_numbers(shape) else np.array(shape, object)
    carries = definition.traits.carries
    rule: Rule | None = RULES.get(op.type) if carries is None else same
    if rule is None:
        return None
    slots = inputs if carries is None else (carries,)
    given = [v for s in slots if (v := inputs.get(s)) is not None]
    values = [v for each in given for v in (each if isinstance(each, list) else [each])]
    found = [_sizes(v, ctx) for v in values]
    if any(f is None for f in found) or all(_instead(v, ctx) is v for v in values):
        return None
    return rule(definition.arguments(op.attrs), *found)


def _sizes(value: Any, ctx: Context) -> np.ndarray | None:
    """The sizes that an array of integers holds, None if they are not known."""
    if isinstance(sizes := _instead(value, ctx), np.ndarray) and sizes.dtype == object:
        return sizes
    found = known(value)
    whole = found is not None and found.dtype.kind in "iu"
    return found.astype(object) if found is not None and whole else None
