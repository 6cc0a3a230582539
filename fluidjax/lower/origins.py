"""Where arrays of integers come from: the sequences whose lengths they are, or the sizes that they
hold, which are symbolic while a step is exported for any batch.

The traced arrays do not tell. So an op whose output has such an origin keeps it, ops that copy
elements or compute sizes pass it on, and an op that makes rows or a size of it gets it.

The key is the identity of the array during one trace: a computed value is another array, and so is
one that leaves a loop or a branch. Lengths of unknown origin are plain numbers of rows; sizes of
unknown origin must be known otherwise (sizes.py).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..ir.desc import OpDesc
from ..ops.concrete import are_numbers, known
from ..ops.lengths import Lengths, same_numbers
from ..ops.ragged import Ragged
from ..ops.registry import OpDef
from ..ops.symbolic import RULES
from .env import Context, Env

Slots = dict[str, Any]


def with_origins(op: OpDesc, definition: OpDef, inputs: Slots, ctx: Context) -> Slots:
    """The inputs of an op: lengths with their sequences, symbolic sizes in place of the arrays that
    hold them.
    """
    slot, decides = definition.traits.lengths, definition.traits.sizes
    if not ctx.origins or (slot is None and decides is None):
        return inputs
    found = dict(inputs)
    if slot is not None and isinstance(of := _origin(inputs.get(slot), ctx), Ragged):
        found[slot] = Lengths(inputs[slot], of)
    for slot, i in decides.needed(op) if decides is not None else ():
        value = found.get(slot)
        if isinstance(value, list):
            found[slot] = [*value[:i], _held(value[i], ctx), *value[i + 1 :]]
        else:
            found[slot] = _held(value, ctx)
    return found


def keep_origin(op: OpDesc, definition: OpDef, inputs: Slots, env: Env, ctx: Context) -> None:
    """Keep the origin of the output of an op that has run. inputs: without origins."""
    slot = definition.traits.lengths
    lengths = op.output(slot) if slot is not None else ()
    if not ctx.origins and not lengths and op.type != "shape":
        return
    name = lengths[0] if lengths else next(op.writes, None)
    value = None if name is None else env.get(name)
    if value is None:
        return
    of = inputs.get("X") if lengths else _passed_on(op, definition, inputs, value, ctx)
    if isinstance(of, Ragged | np.ndarray) and not isinstance(value, Ragged):
        ctx.origins[id(value)] = value, of  # with the value, so that no other one gets its id


def _origin(value: Any, ctx: Context) -> Any:
    """A Ragged, an array of sizes (dtype object), or None if the origin is unknown."""
    return ctx.origins.get(id(value), (None, None))[1]


def _held(value: Any, ctx: Context) -> Any:
    """The symbolic sizes that an array holds; itself if it holds none."""
    of = _origin(value, ctx)
    return of if isinstance(of, np.ndarray) else value


def _passed_on(op: OpDesc, definition: OpDef, inputs: Slots, value: Any, ctx: Context) -> Any:
    """The origin of an op's output, given those of its inputs."""
    if (carries := definition.traits.carries) is not None:
        given = inputs.get(carries)
        if isinstance(of := _origin(given, ctx), Ragged):
            return of if hasattr(value, "size") and same_numbers(value, given) else None
    sizes = _sizes(op, definition, inputs, ctx)
    if sizes is None or not isinstance(value, jax.core.Tracer) or value.size != sizes.size:
        return None
    return sizes.reshape(value.shape)


def _sizes(op: OpDesc, definition: OpDef, inputs: Slots, ctx: Context) -> np.ndarray | None:
    """The symbolic sizes that an op computes."""
    if op.type == "shape":
        shape = getattr(inputs["Input"], "shape", ())
        return None if are_numbers(shape) else np.array(shape, object)
    if (carries := definition.traits.carries) is not None:
        of = _origin(inputs.get(carries), ctx)
        return of if isinstance(of, np.ndarray) else None
    rule = RULES.get(op.type)
    given = [v for each in inputs.values() for v in (each if isinstance(each, list) else [each])]
    found = [_as_sizes(v, ctx) for v in given if v is not None]
    symbolic = any(isinstance(_origin(v, ctx), np.ndarray) for v in given)
    if rule is None or not symbolic or any(f is None for f in found):
        return None
    return rule(definition.arguments(op.attrs), *found)


def _as_sizes(value: Any, ctx: Context) -> np.ndarray | None:
    """The sizes that an array of integers holds, None if they are not known."""
    if isinstance(of := _origin(value, ctx), np.ndarray):
        return of
    found = known(value)
    return found.astype(object) if found is not None and found.dtype.kind in "iu" else None
