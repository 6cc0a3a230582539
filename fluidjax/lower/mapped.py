"""Gradient ops within a shard_map of the caller's: what all devices share has one gradient, the sum
of what each finds.

So jax.grad has it. Where a gradient op is a function of its own, and not JAX's transposition of the
forward op, that is seen to here.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax

from ..ir.desc import EMPTY, OpDesc
from ..ops.definition import GRAD
from ..ops.loops import axes_of, varying
from .env import Context, Env


def as_varying(inputs: dict[str, Any]) -> dict[str, Any]:
    """What a gradient op is given, the gradients among it varying over what the values vary over: a
    constant is the same everywhere.
    """
    axes = axes_of([value for slot, value in inputs.items() if not slot.endswith(GRAD)])
    return {
        s: jax.tree.map(lambda v: varying(v, axes), value) if s.endswith(GRAD) else value
        for s, value in inputs.items()
    }


def add_up(op: OpDesc, env: Env, ctx: Context) -> None:
    """Add up the gradients that a gradient op gives for values that vary less than they do. Not
    within a loop or a branch, where a sum over devices would wait for those that go another way:
    such a gradient stays of the type that differs."""
    if ctx.target.enclosed:
        return
    for name in op.writes:
        value = env.get(name.rpartition(GRAD)[0]) if GRAD in name and name != EMPTY else None
        if value is not None and name in env:
            axes = tuple(sorted(axes_of(env[name]) - axes_of(value)))
            if axes:
                env[name] = jax.tree.map(
                    lambda v, axes=axes: lax.psum(v, axes) if _floats(v) else v, env[name]
                )


def _floats(value: Any) -> bool:
    return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.inexact))
