"""Gradient ops inside a caller's shard_map: a value that all devices share has one gradient, the
sum over the devices.

jax.grad does so itself. This module does it for hand-written gradient ops, which do not use JAX's
transposition of the forward op.
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
    """The inputs of a gradient op, with its gradients varying over the mesh axes of its values,
    which a constant gradient does not do itself.
    """
    axes = axes_of([value for slot, value in inputs.items() if not slot.endswith(GRAD)])
    return {
        s: jax.tree.map(lambda v: varying(v, axes), value) if s.endswith(GRAD) else value
        for s, value in inputs.items()
    }


def add_up(op: OpDesc, env: Env, ctx: Context) -> None:
    """Sum over devices the gradients that vary over more mesh axes than their values. Within a loop
    or a branch, where the sum would wait for devices on another path, the gradient keeps its
    varying type.
    """
    if ctx.target.nested:
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
