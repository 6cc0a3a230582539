"""Several ranks of one program in one trace, op by op in turn: for parts of unequal sizes, or for
more ranks than devices.

Every rank has its own environment. An op runs for each of them in turn; a collective op runs for
all at once, on stacked inputs, under jax.vmap with a named axis. Each rank thus computes exactly
the same as on a separate device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import UnsupportedError, note
from ..ir import text, walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ops import ring
from ..ops.checking import WORD
from ..ops.registry import lookup
from ..ops.selected import total
from ..ops.target import Target
from .checks import Objections, begin
from .env import Env, read_slots, requested, write_slots
from .selected import is_sparse, treat_sparse
from .step import Step


def lockstep(
    step: Step,
    states: Sequence[Mapping[str, Any]],
    feeds: Sequence[Mapping[str, Any]],
    key: jax.Array | None = None,
    watch: Callable[[OpDesc, Env], None] | None = None,
    objections: Objections | None = None,
    target: Target | None = None,
) -> list[tuple[dict[str, Any], list[Any], Any]]:
    """For every rank, the result of step.run(state, feed, key, objections, watch, rank, target) on
    separate devices.

    Raises UnsupportedError if a collective gets different shapes from two ranks, and if one is in a
    block, because each rank runs an op with blocks separately.
    """
    for op in step.ops:
        _refuse_inside(step.desc, op)
    given = list(zip(states, feeds, strict=True))
    steps = [step.closed(state, feed) for state, feed in given]
    envs = [own.enter(*each) for own, each in zip(steps, given, strict=True)]
    contexts = [own.context(key, objections, watch, rank, target) for rank, own in enumerate(steps)]
    with jax.enable_x64(True):
        for at, op in enumerate(step.ops):
            if lookup(op.type).traits.ranks.together:
                _together([own.ops[at] for own in steps], envs)
                continue
            for own, env, ctx in zip(steps, envs, contexts, strict=True):
                own.run_one(own.ops[at], env, ctx)
        left = [step.leave(env, ctx) for env, ctx in zip(envs, contexts, strict=True)]
    words = [env[WORD] if any(ctx.objected for ctx in contexts) else begin() for env in envs]
    return [
        ({**old, **changed}, values, word)
        for old, (changed, values), word in zip(states, left, words, strict=True)
    ]


def _refuse_inside(desc: ProgramDesc, op: OpDesc) -> None:
    below = walk.below(desc, [op])
    found = next((o for o in below if lookup(o.type).traits.ranks.together), None)
    if found is not None:
        raise _refused(
            op,
            f"op '{op.type}' holds '{found.type}', by which ranks talk, but here they take turns,"
            " since the batch is split into unequal parts or the places outnumber the devices;"
            " feed a batch that the places divide, and have a device for each",
        )


def _refused(op: OpDesc, why: str) -> BaseException:
    return note(UnsupportedError(why), text.op_noted(op))


def _together(ops: Sequence[OpDesc], envs: Sequence[Env]) -> None:
    """Run a collective op for all ranks. ops: the op at the sizes of each rank, which may differ."""
    op = ops[0]
    own = {
        n: [o.attrs[n] for o in ops]
        for n, v in op.attrs.items()
        if any(o.attrs[n] != v for o in ops)
    }
    definition = lookup(op.type)
    inputs = [read_slots(op, definition, env) for env in envs]
    if any(map(is_sparse, inputs)):  # the ranks may have different numbers of rows
        # only a sum accepts it
        taken = [treat_sparse(op, definition, i).inputs["X"] for i in inputs]
        rows = total(taken)
        for env in envs:
            write_slots(op, definition, {"Out": rows}, env)
        return
    shapes = [[v.shape for v in jax.tree.leaves(i)] for i in inputs]
    if any(s != shapes[0] for s in shapes):
        raise _refused(
            op,
            f"op '{op.type}' needs equal shapes on all devices, but the batch is split into unequal"
            " parts; feed a batch that the number of devices divides",
        )
    stacked = jax.tree.map(lambda *values: jnp.stack(values), *inputs)
    wanted = requested(op) if definition.forward is not None else None
    with ring.bound(ring.Ring(ring.AXIS, len(envs))), jax.named_scope(op.type):
        results = jax.vmap(
            lambda slots, sizes: definition(slots, {**op.attrs, **sizes}, None, wanted),
            axis_name=ring.AXIS,
        )(stacked, {n: jnp.asarray(v) for n, v in own.items()})
    for rank, env in enumerate(envs):
        write_slots(op, definition, jax.tree.map(lambda v, r=rank: v[r], results), env)
