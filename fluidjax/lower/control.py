"""Ops that are more than a function of arrays: they hold blocks, or talk to the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import EnforceNotMet
from ..ir import walk
from ..ir.desc import OpDesc
from .env import Context, Env, read

RunBlock = Callable[[int, Env, Context], None]
IGNORED = frozenset({"feed", "fetch"})  # the executor binds what they name
EFFECTS = frozenset({"print"})  # run for what they do, not for what they compute


def conditional_block(op: OpDesc, env: Env, ctx: Context, run_block: RunBlock) -> None:
    """Run the sub-block if the condition holds; what it writes outside keeps its old value otherwise.

    With ``is_scalar_condition`` the condition is one boolean; without, the block runs if any input has elements.
    """
    idx = op.attrs["sub_block"].idx
    if not op.attrs.get("is_scalar_condition", False):
        if all(read(env, n, op).size for n in op.input("Input")):
            run_block(idx, env, ctx)
        return
    outer = set(ctx.desc.blocks[idx].vars)
    written = [n for n in walk.captured(ctx.desc, idx).writes if n not in outer]
    missing = [n for n in written if n not in env]
    if missing:
        raise EnforceNotMet(
            f"op 'conditional_block' writes {missing[0]!r}, which has no value for the case that its condition is false; "
            "give it one before the block"
        )
    (name,) = op.input("Cond")
    old = {n: jnp.asarray(env[n]) for n in written}

    def taken(values: dict[str, Any]) -> dict[str, Any]:
        inner = {**env, **values}
        run_block(idx, inner, ctx)
        return {n: jnp.asarray(inner[n], values[n].dtype).reshape(values[n].shape) for n in written}

    env.update(jax.lax.cond(read(env, name, op).reshape(()), taken, dict, old))


def print_op(op: OpDesc, env: Env, ctx: Context, run_block: RunBlock) -> None:
    """Print a value from inside the step, and pass it on."""
    (name,) = op.input("In")
    value = read(env, name, op)
    message = str(op.attrs.get("message") or "").replace("{", "{{").replace("}", "}}")
    if op.attrs.get("is_forward", True):
        jax.debug.print(message + " " + name + " {value}", value=value)
    for out in op.output("Out"):
        env[out] = value


HANDLERS: dict[str, Callable[[OpDesc, Env, Context, RunBlock], None]] = {
    "conditional_block": conditional_block,
    "print": print_op,
}
